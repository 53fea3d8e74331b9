# SPDX-License-Identifier: BSD-3-Clause
"""The studies of Nytko et al., §5, on this machine: sections of the report, and options of ``python -m bench``."""
