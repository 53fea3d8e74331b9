# SPDX-License-Identifier: BSD-3-Clause
"""Matrices whose rows are on many processes, over torch.distributed.

The contract: every rank calls the same functions in the same order; what is differentiated is the sum over the ranks of
what each of them calls backward on.
"""

from gossamer.distributed._construct import from_rows, scatter
from gossamer.distributed._files import load, save
from gossamer.distributed._matrix import DistributedMatrix
from gossamer.distributed._parts import partition
from gossamer.distributed._rows import Rows, gather
from gossamer.distributed._sums import dot, sum

__all__ = ["DistributedMatrix", "Rows", "dot", "from_rows", "gather", "load", "partition", "save", "scatter", "sum"]
