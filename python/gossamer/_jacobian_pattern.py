# SPDX-License-Identifier: BSD-3-Clause
"""Where the entries of a Jacobian are, found by multiplying with it. The arithmetic is in C++, the products torch's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer._transforms import is_batched, outside, unwrapped

CHUNK = 24 << 20  # bytes of the vectors that are multiplied at once: larger temporaries are not kept by malloc
BUCKETS = 10  # of the first probes; twice as many for what they leave open, and so on
FORWARD = (
    threading.RLock()
)  # torch has one level of forward mode for all threads, and who leaves it takes it from others

Seeds = Callable[[int, int], Tensor]  # the vectors first … last - 1


class Linearised:
    """A function y (m,) of x (n,) near x, as its products with vectors: J v and vᵀ J."""

    def __init__(self, op: str, f: Callable[[Tensor], Any], x: Tensor, chunk_size: int | None = None) -> None:
        self.op, self._f, self.x, self._chunk_size = op, f, x, chunk_size
        self.rows: int | None = None  # the m that is expected

    def __call__(self, x: Tensor) -> Tensor:
        y = self._f(x)
        if not isinstance(y, Tensor):
            raise TypeError(f"{self.op}: f must return a tensor, not {type(y).__name__}")
        if y.dim() != 1:
            raise ValueError(f"{self.op}: f must return a vector (m,), not shape {tuple(y.shape)}")
        if not y.is_floating_point():
            raise TypeError(f"{self.op}: f must return floating-point numbers, not {y.dtype}")
        if self.rows is not None and self.rows != len(y):
            raise ValueError(f"{self.op}: the pattern is {self.rows} x {len(self.x)}, but f gives {len(y)} numbers")
        return y

    def at(self, x: Tensor) -> Linearised:
        """The same function near another point."""
        return Linearised(self.op, self._f, x, self._chunk_size)

    def push(self, count: int, seeds: Seeds) -> Tensor:
        """J v for each of the vectors, (count, m)."""

        def product(v: Tensor) -> Tensor:
            return torch.func.jvp(self, (self.x,), (v,))[1]

        with FORWARD:
            return self._each(product, count, seeds)

    def pull(self, count: int, seeds: Seeds) -> Tensor:
        """vᵀ J for each of the vectors, (count, n)."""
        back = torch.func.vjp(self, self.x)[1]

        def product(v: Tensor) -> Tensor:
            gradient: Tensor = back(v)[0]
            return gradient

        return self._each(product, count, seeds)

    def _each(self, product: Callable[[Tensor], Tensor], count: int, seeds: Seeds) -> Tensor:
        """By vmap, some at once; one by one without it, for an f that vmap does not know or that is large enough."""
        size = max(1, len(self.x) * self.x.element_size())
        step = self._chunk_size or max(1, CHUNK // size)
        parts = []
        for first in range(0, count, step):
            v = seeds(first, min(first + step, count)).to(self.x.device)
            parts.append(product(v[0])[None] if len(v) == 1 else torch.func.vmap(product)(v))
        if not parts:
            return self.x.new_empty((0, 0))
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class Colouring(NamedTuple):
    """Columns (or rows) of one colour share no row (no column), so that one product finds all their entries."""

    columns: bool
    colours: int
    colour: Tensor
    at: Tensor  # where each entry lies in the products of all colours

    def values(self, near: Linearised, direction: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The entries of the Jacobian on the pattern; and its product with a direction, which goes with the seeds."""
        dtype, count = near.x.dtype, self.colours

        def seeds(first: int, last: int) -> Tensor:
            some: Tensor = torch.ops.gossamer.colour_seeds(self.colour, first, min(last, count), dtype)
            return some if last <= count or direction is None else torch.cat([some, direction[None].to(some)])

        if not self.columns:
            products = near.pull(count, seeds)
            product = None if direction is None else near.push(1, lambda first, last: direction[None])[0]
        else:
            products = near.push(count + (direction is not None), seeds)
            product = None if direction is None else products[count]
        return products.flatten().index_select(0, self.at), product


def colouring(P: Pattern, mode: str) -> Colouring:
    """Kept with the pattern. "auto" is forward, unless reverse needs less than half the products."""

    def derive(columns: bool) -> Colouring:
        def make() -> Colouring:
            colour, at = torch.ops.gossamer.colour(P.tensors(True), P.shape, columns)
            return Colouring(columns, int(colour.max()) + 1 if len(colour) else 0, colour, at)

        kept: Colouring = P.keep(("colouring", columns), make)
        return kept

    if mode != "auto":
        return derive(mode == "forward")
    forward = derive(True)
    longest_column = P.keep("longest column", lambda: int(P.transpose()[0].diff().max()) if P.shape[1] else 0)
    if forward.colours <= 2 * longest_column:  # reverse needs at least so many
        return forward
    reverse = derive(False)
    return reverse if 2 * reverse.colours < forward.colours else forward


class Mismatch(NamedTuple):
    """A row in which a matrix does not multiply as the Jacobian does: its pattern is too small, or it is not finite."""

    row: int
    finite: bool


def checked_values(near: Linearised, P: Pattern, mode: str, seed: int = 0) -> tuple[Tensor, Mismatch | None]:
    """The entries on the pattern, and the first row in which they do not multiply a random vector as the Jacobian does.
    None if there is none, or where nobody can know: under vmap and to a tracer."""
    ops = torch.ops.gossamer
    v = P.keep(("direction", seed, near.x.dtype), lambda: ops.probe_direction(P.shape[1], seed, near.x.dtype))
    values, its_product = colouring(P, mode).values(near, v)
    if torch.compiler.is_compiling() or its_product is None or is_batched(values) or is_batched(its_product):
        return values, None
    with outside():
        product = unwrapped(its_product).detach()
        rows = ops.jacobian_mismatch(P.tensors(), unwrapped(values).detach(), v.to(product), product, P.shape)
        return values, Mismatch(int(rows[0]), bool(product[rows[0]].isfinite())) if len(rows) else None


def jacobian_pattern(
    f: Callable[..., Any],
    x: Tensor,
    *args: Any,
    points: int = 3,
    seed: int = 0,
    chunk_size: int | None = None,
) -> Pattern:
    """Where the derivatives ∂f_i/∂x_j of ``f(x, *args)`` are not zero, at x or at one of ``points - 1`` points near it.

    f takes a vector (n,), float32 or float64, and gives a vector (m,). It is only multiplied with: columns are hashed
    into buckets, a row that has one entry in a bucket tells its column by the quotient of two products, is taken out,
    and so on (see ``kernels/probe.h``). Each row is verified by one more product with a random vector. Rows with too
    many entries for the buckets get twice as many, and the last few a product vᵀ J each.

    An entry that is zero at x, as that of u² is at u = 0, is found at another of the points: they differ from x by a
    tenth, with the signs of x. One that is zero at all of them is not; ``gs.jacobian`` raises when it is met. Entries
    10¹⁰ times smaller than others of their row (10⁴ in float32) count as zero. The seed makes it reproducible.

    Cost: about 110 products J v for rows of up to 30 entries, whatever n is, and some for each point more. Memory: 100
    numbers for each row.

    >>> P = gs.jacobian_pattern(lambda u: u[1:] * u[:-1] ** 2, torch.zeros(4))
    >>> P.shape, P.indices.tolist()
    ((3, 4), [0, 1, 1, 2, 2, 3])
    """
    check_point("jacobian_pattern", x)
    if points < 1:
        raise ValueError(f"jacobian_pattern: points must be at least 1, not {points}")
    x = x.detach()
    near = Linearised("jacobian_pattern", lambda x: f(x, *args), x, chunk_size)
    with torch.no_grad():
        return find(near, points, seed)


def find(near: Linearised, points: int, seed: int, symmetric: bool = False) -> Pattern:
    rows, cols, m = entries(near, seed)
    pattern = assemble(rows, cols, (m, len(near.x)), symmetric)
    for k in range(1, points):
        there = near.at(torch.ops.gossamer.probe_point(near.x, seed, k))
        _, wrong = checked_values(there, pattern, "forward", seed)
        # Where f has no finite derivatives nothing is learned; x is what was asked for.
        if wrong is not None and wrong.finite:
            more_rows, more_cols, _ = entries(there, seed)
            P = pattern
            rows, cols = torch.cat([P.row_indices, more_rows]), torch.cat([P.indices.long(), more_cols])
            pattern = assemble(rows, cols, P.shape, symmetric)
    return pattern


def assemble(rows: Tensor, cols: Tensor, shape: tuple[int, int], symmetric: bool) -> Pattern:
    if symmetric:
        rows, cols = torch.cat([rows, cols]), torch.cat([cols, rows])
    with outside():
        indptr, indices, _ = torch.ops.gossamer.coo(unwrapped(rows), unwrapped(cols), shape)
    return Pattern(indptr, indices, shape, check=False)


def entries(near: Linearised, seed: int) -> tuple[Tensor, Tensor, int]:
    """The rows and columns of all entries at one point, and the number of rows."""
    n, buckets = len(near.x), BUCKETS
    product = probed(near, seed)
    m, open_rows = len(product), torch.arange(len(product), device=near.x.device)
    found = [(open_rows[:0], open_rows[:0])]
    while n and len(open_rows):
        probes = torch.ops.gossamer.probe_count(n, buckets, near.x.dtype)
        if min(n, len(open_rows)) <= probes:
            found.append(dense_entries(near, open_rows, m, product.dtype))
            break
        rows, cols, status = probe(near, product, open_rows, probes, buckets, seed)
        check_finite(near.op, open_rows[status == 2])
        found.append((rows, cols))
        open_rows = open_rows[status == 0]
        buckets, seed = 2 * buckets, seed + 1
        if len(open_rows):
            product = probed(near, seed)
    rows, cols = (torch.cat(parts) for parts in zip(*found, strict=True))
    return rows, cols, m


def probed(near: Linearised, seed: int) -> Tensor:
    """J v for the random v of a seed."""
    v = torch.ops.gossamer.probe_direction(len(near.x), seed, near.x.dtype)
    return near.push(1, lambda first, last: v[None])[0]


def probe(
    near: Linearised, product: Tensor, open_rows: Tensor, probes: int, buckets: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Entries of the open rows, and what became of each of them."""
    n, dtype, ops = len(near.x), near.x.dtype, torch.ops.gossamer
    Y = near.push(probes, lambda first, last: ops.probe_seeds(n, buckets, seed, first, last, dtype))
    rows, cols, status = ops.probe_rows(Y, product, open_rows, n, buckets, seed)
    return rows, cols, status


def dense_entries(near: Linearised, rows: Tensor, m: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Entries of some rows, from all columns or from these rows themselves, whichever are fewer."""
    n = len(near.x)
    if n <= len(rows):
        columns = near.push(n, lambda first, last: unit(n, torch.arange(first, last), near.x.dtype))
        return nonzeros(near.op, columns[:, rows].T, rows)
    return nonzeros(near.op, near.pull(len(rows), lambda first, last: unit(m, rows[first:last], dtype)), rows)


def unit(n: int, places: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(len(places), n, dtype=dtype).scatter_(1, places.cpu()[:, None], 1)


def nonzeros(op: str, J: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Of dense rows of the Jacobian."""
    check_finite(op, rows[~J.isfinite().all(1)])
    i, j = J.nonzero(as_tuple=True)
    return rows[i], j


def check_finite(op: str, rows: Tensor) -> None:
    if len(rows):
        raise ValueError(f"{op}: the derivatives of f in row {int(rows[0])} are not finite at x")


def check_point(op: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{op}: x must be a torch.Tensor, not {type(x).__name__}")
    if not x.is_floating_point():
        raise TypeError(f"{op}: x must have a floating-point dtype, not {x.dtype}")
    if x.dim() != 1:
        raise ValueError(f"{op}: x must be a vector (n,), not shape {tuple(x.shape)}")
