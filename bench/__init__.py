# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark: the ops on named matrices, beside the peers, as ratios. See ``python -m bench -h``."""
