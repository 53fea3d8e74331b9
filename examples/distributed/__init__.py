# SPDX-License-Identifier: BSD-3-Clause
"""Graph networks on graphs that several processes share: ``torchrun -m examples.distributed.training``."""
