# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the table, forward and backward, once for each allocation it makes: that one fails.

What comes out is MemoryError, or what torch raises when a tensor has no room; after it the same call gives the same
bits, and no tensor is left over. Run by test_allocations.py with the allocator of allocations.cpp preloaded:

    python fail_every_allocation.py LIBRARY [row …]

An iteration makes the same allocations in every turn: from the 150th on every 11th is failed, from the 600th on every
53rd. These are primes, so that all of a turn's have their day unless it has a multiple of so many.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))
import gossamer as gs
from cases import CASES, Case, Make

ALLOCATOR = ctypes.CDLL(sys.argv[1])
ALLOCATOR.fail_allocation.argtypes = [ctypes.c_int64]
ALLOCATOR.allocations_made.restype = ALLOCATOR.tensor_bytes_alive.restype = ctypes.c_int64
NO_ROOM = ("can't allocate memory", "Cannot allocate memory", "bad_alloc")


def parts(x: Any) -> list[Tensor]:
    """The tensors of a result."""
    if isinstance(x, gs.SparseMatrix):
        return [x.values]
    if isinstance(x, Tensor):
        return [x]
    return [t for y in x for t in parts(y)] if isinstance(x, (list, tuple)) else []


def leaves(inputs: list[Any]) -> list[Tensor]:
    """The inputs with a gradient."""
    found = []
    for x in inputs:
        if isinstance(x, gs.SparseMatrix) and x.values.is_floating_point():
            found.append(x.requires_grad_().values)
        elif isinstance(x, Tensor) and x.is_floating_point():
            found.append(x.requires_grad_())
    return found


def call(case: Case, inputs: list[Any]) -> list[Tensor]:
    """The results, and the gradients of their sum."""
    results = parts(case.op(gs, *inputs))
    smooth = [t for t in results if t.requires_grad]
    if smooth:
        sum(t.sum() for t in smooth).backward()
    return [t.detach() for t in results]


def outcome(case: Case, n: int) -> tuple[list[Tensor] | None, int]:
    """Results and gradients, or None where the failure came out; and how many allocations there were."""
    torch.manual_seed(0)
    inputs = list(case.inputs(Make("square")))
    given = leaves(inputs)
    ALLOCATOR.fail_allocation(n)
    try:
        results = call(case, inputs)
    except MemoryError:
        return None, ALLOCATOR.allocations_made()
    except RuntimeError as error:
        made = ALLOCATOR.allocations_made()
        if not any(word in str(error) for word in NO_ROOM):
            raise
        return None, made
    made = ALLOCATOR.allocations_made()
    return [*results, *(t.grad for t in given if t.grad is not None)], made


def equal(a: list[Tensor], b: list[Tensor]) -> bool:
    """The same bits; NaN is a number like others."""
    return len(a) == len(b) and all(
        torch.equal(x.nan_to_num(7.5), y.nan_to_num(7.5)) for x, y in zip(a, b, strict=True)
    )


def alive() -> int:
    """The bytes of tensors that are alive once nobody holds them by accident."""
    gc.collect()
    return int(ALLOCATOR.tensor_bytes_alive())


def fail_each(case: Case) -> int:
    """How many allocations of the row were failed."""
    failed = 0
    outcome(case, 0)  # whatever is made once for a process
    wanted, made = outcome(case, 0)
    assert wanted is not None
    before = alive()
    n = 0
    while n < made + 8:  # a few more than were counted: what is kept between calls may differ by some
        n += 1 if n < 150 else 11 if n < 600 else 53
        failed += n <= made
        found, _ = outcome(case, n)
        assert found is None or equal(found, wanted), f"{case.name}: other results after allocation {n} failed"
        if found is not None and n > made:
            break
        found = None
        if failed % 16 == 0:
            again, _ = outcome(case, 0)
            assert equal(again or [], wanted), f"{case.name}: not usable after allocation {n} failed"
            again = None
    found, _ = outcome(case, 0)
    assert equal(found or [], wanted), f"{case.name}: not usable afterwards"
    found = None
    left = alive() - before
    assert left <= 0, f"{case.name}: {left} bytes of tensors are left over after {failed} failures"
    return failed


def main() -> None:
    """All rows, or those that are named."""
    torch.set_num_threads(1)
    chosen = set(sys.argv[2:])
    total = 0
    rows = [case for case in CASES if not chosen or case.name in chosen]
    for case in rows:
        failed = fail_each(case)
        total += failed
        print(f"{case.name}: {failed}", flush=True)
    print(f"{total} allocations of {len(rows)} rows failed, each once")


if __name__ == "__main__":
    main()
