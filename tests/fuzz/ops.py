# SPDX-License-Identifier: BSD-3-Clause
"""Raw ops, torch.ops.gossamer.*, with arguments changed at random: an op may raise, it never reads or writes outside.

Calls are recorded while the case table runs (tests/table/test_raw_ops.py), several for each op; one to three of the
arguments of one are changed, and it is called, half of the time with gradients. The integers inside of a pattern are
changed only where an op looks at them: elsewhere they were checked when the Pattern was built, and are trusted. Ops on
many processes are called by this one alone, which sends to itself.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from mutation import other_number, other_tensor

sys.path[:0] = [str(Path(__file__).parents[1] / "table"), str(Path(__file__).parents[2])]
import test_raw_ops as table  # noqa: E402

# Arguments whose integers come from an op of ours and are trusted like a pattern's.
TRUSTED = {"indptr", "indices", "perm", "at", "at_a", "at_b", "positions", "which", "slot", "colour", "open", "labels"}
TRUSTED |= {"pattern", "A", "B", "C", "levels", "factor", "gram", "jacobian", "indptrs", "diagonal", "order"}
# A number that says how long to work, or how much to make, is the caller's wish.
WISHES = {"maxiter", "restart", "ncv", "k", "num_nodes", "num_edges", "num_features", "sizes", "grid", "n", "size"}
WISHES |= {"heads", "rows", "cols", "nnz", "num_classes", "buckets", "first", "last", "hidden", "shape", "columns"}
# As many steps as the matrix is large, all of them kept for the gradient; as many nodes as the largest number says.
MOST_OF = {"expm_multiply": 99, "from_edge_index": 10**6}
CALLS: dict[str, list[table.Call]] = {}
MOST = 8  # recorded calls of one op


def record(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Keeps the first calls of each op."""
    name = str(op).removeprefix("gossamer.").split(".")[0]
    if str(op).startswith("gossamer.") and name not in table.FILES | {"krylov_signals"}:
        known = CALLS.setdefault(name, [])
        if len(known) < MOST:
            known.append((tuple(table.detached(x) for x in args), kwargs))


def calls() -> dict[str, list[table.Call]]:
    """The recorded calls of every op."""
    if not CALLS:
        table.record, kept = record, table.record
        with table.FromPython(), table.FromDispatcher():
            table.run_table()
            table.run_the_rest()
        table.record = kept
    return CALLS


def within(t: Tensor, most: int | None) -> Tensor:
    """The numbers, none of them larger."""
    if most is None or t.is_complex() or t.dtype in (torch.bool, torch.uint8):
        return t
    most = min(most, int((torch.finfo if t.is_floating_point() else torch.iinfo)(t.dtype).max))
    return t.clamp(-most, most)


def changed(random: Random, name: str, argument: str, x: Any) -> Any:
    """Something else in place of an argument."""
    contents = name in table.SYMBOLIC or argument not in TRUSTED
    if isinstance(x, Tensor):
        return within(other_tensor(random, x, contents), MOST_OF.get(name))
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], Tensor):
        kind = random.randrange(5)
        if kind == 0:
            return list(x[:-1])
        if kind == 1:  # one more; not in place of one that was dropped, which is trusted
            whole = contents or len(x) in (2, 3, 5, 6, 7)
            return [*x, x[random.randrange(len(x))]] if whole else list(x)
        k = random.randrange(len(x))
        return [*x[:k], other_tensor(random, x[k], name in table.SYMBOLIC), *x[k + 1 :]]
    if isinstance(x, (list, tuple)):
        least, more = (-1, 1) if name in table.SYMBOLIC else (0, 50)  # a shape that is too small is trusted
        if random.random() < 0.2 or not x:
            return random.choice([[], list(x[:-1]), [*x, more], [-1] * len(x)])
        k = random.randrange(len(x))
        return [*x[:k], x[k] + random.randint(least, 3), *x[k + 1 :]] if isinstance(x[k], int) else list(x)
    if x is None:
        return random.choice([None, torch.ones(3, dtype=torch.int64), torch.ones(6)])
    number = other_number(random, x)
    return min(number, 50) if argument in WISHES and isinstance(number, int) else number


def execute(random: Random) -> bool:
    """One call; whether the op gave a result."""
    known = calls()
    name = random.choice(sorted(known))
    args, kwargs = random.choice(known[name])
    op, new = getattr(torch.ops.gossamer, name), list(args)
    schema = op.default._schema.arguments if hasattr(op, "default") else op._schema.arguments
    for _ in range(random.choice([1, 1, 2, 3])):
        if new:
            k = random.randrange(len(new))
            new[k] = changed(random, name, schema[k].name, new[k])
    if random.random() < 0.05:
        new = [x.to("meta") if isinstance(x, Tensor) else x for x in new]
    gradients = random.random() < 0.5
    if gradients:
        new = [x.detach().requires_grad_() if isinstance(x, Tensor) and x.is_floating_point() else x for x in new]
    with torch.set_grad_enabled(gradients), contextlib.suppress(*table.REFUSALS):
        result = op(*new, **kwargs)
        for t in result if isinstance(result, (list, tuple)) else [result]:
            if gradients and isinstance(t, Tensor) and t.requires_grad and t.is_floating_point():
                t.sum().backward()
                break
        return True
    return False
