# SPDX-License-Identifier: BSD-3-Clause
"""The frozen structure of a sparse matrix, and what is derived from it once and kept."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gossamer._indices import as_index, as_shape, short
from gossamer._interrupt import of_both
from gossamer._transforms import is_inside, lasting


class Merged(NamedTuple):
    """The union of two patterns and where their entries are in it, or the intersection and where its entries are."""

    pattern: Pattern
    at_A: Tensor
    at_B: Tensor


Merged.__module__ = "gossamer"  # a NamedTuple takes no attribute in its body

_numbers = itertools.count()  # of patterns: unlike an id, a number is never that of another pattern later


class Pattern:
    """Where the entries of a sparse matrix are.

    ``indptr`` has rows + 1 entries; the columns of row i are ``indices[indptr[i]:indptr[i + 1]]``, sorted and unique.
    Both are int32 or int64 and must not be written to. The structure is checked here, in O(rows + nnz), and trusted
    ever after; ``check=False`` skips that for data that is known to be good.

    With ``simple=False`` a row may hold a column several times, as a graph with parallel edges does (``simple=None``:
    it may or may not, which is found out when it matters). Products with dense matrices, sums, softmax and attention
    count each of them; what needs one entry a place, such as ``A + B`` or a solve, refuses such a pattern, and
    ``A.coalesce()`` adds the parallel ones up.
    """

    __module__ = "gossamer"  # where users find it, and where pickles look for it

    def __init__(
        self, indptr: Any, indices: Any, shape: Sequence[int], *, check: bool = True, simple: bool | None = True
    ) -> None:
        self.indptr = as_index("indptr", indptr)
        self.indices = as_index("indices", indices)
        self.shape = as_shape("Pattern", shape)
        self._transpose: tuple[Tensor, Tensor, Tensor] | None = None
        self._T: Pattern | weakref.ref[Pattern] | None = None  # a transpose knows its original weakly: no cycle
        self._number = next(_numbers)
        self._simple = simple
        self._kept: dict[Hashable, Any] = {}  # what was derived: see keep()
        self._lists: dict[bool | None, list[Tensor]] = {}  # see _tensors_for_product()
        if check and not torch.compiler.is_compiling():
            torch.ops.gossamer.check_pattern(self.indptr, self.indices, self.shape, simple is True)

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.indices.shape[0]

    @property
    def device(self) -> torch.device:
        return self.indices.device

    @property
    def simple(self) -> bool:
        """Each place is stored once. False for the pattern of a graph that has parallel edges."""
        if self._simple is None:
            self._simple = not torch.ops.gossamer.has_parallel_entries(self.indptr, self.indices)
        return self._simple

    def check_simple(self, op: str) -> None:
        """Refuses a pattern with parallel edges, in the name of the op the user called."""
        if not self.simple:
            raise ValueError(
                f"{op}: the pattern has parallel edges, several entries at one place; A.coalesce() adds them up"
            )

    @property
    def row_indices(self) -> Tensor:
        """The row of each entry, int64."""
        return torch.ops.gossamer.row_indices(self.indptr, self.indices)

    def transpose(self) -> tuple[Tensor, Tensor, Tensor]:
        """indptr and indices of the transpose, and ``perm``: its entry q is entry ``perm[q]`` here. Kept."""
        if self._transpose is None:
            find = torch.ops.gossamer.transpose  # not of tensors(), which has more once another thread has been here
            self._transpose = self.keep("transpose", lambda: find(self.indptr, self.indices, self.shape))
        return self._transpose

    @property
    def T(self) -> Pattern:
        """The transposed pattern; ``P.T.T is P`` as long as P lives."""
        T = self._T() if isinstance(self._T, weakref.ref) else self._T
        if T is None:
            indptr, indices, _ = self.transpose()
            T = self._T = Pattern(indptr, indices, self.shape[::-1], check=False, simple=self._simple)
            T._T = weakref.ref(self)
        return T

    def product(self, other: Pattern) -> Pattern:
        """The pattern of the product of two matrices. Kept."""
        P, Q = alike(self, other)

        def derive() -> Pattern:
            return Pattern(*of_both(torch.ops.gossamer.spgemm_pattern, P, Q), (P.shape[0], Q.shape[1]), check=False)

        return P.keep("product", derive, Q)

    def merge(self, other: Pattern, intersect: bool = False) -> Merged:
        """The union with another pattern of the same shape, or the intersection. Kept."""
        op = "hadamard" if intersect else "spadd"
        self.check_simple(op)
        other.check_simple(op)
        P, Q = alike(self, other)

        def derive() -> tuple[Pattern | None, Tensor, Tensor]:
            indptr, indices, at_P, at_Q = torch.ops.gossamer.merge(P.tensors(), Q.tensors(), P.shape, intersect)
            pattern = P._unless_this(indptr, indices) if intersect else P._union(Q, indptr, indices)
            return pattern, at_P, at_Q

        pattern, at_P, at_Q = P.keep("intersection" if intersect else "union", derive, Q)
        return Merged(P if pattern is None else pattern, at_P, at_Q)

    def first_sum(self, a: Tensor, other: Pattern, b: Tensor) -> tuple[Pattern, Tensor]:
        """The union and the values of A + B on it, for two patterns that have not met: in one pass. The maps into the
        union are left to a later ``merge``, unless a derivative will need them."""
        self.check_simple("spadd")
        other.check_simple("spadd")
        P, Q = alike(self, other)
        indptr, indices, at_P, at_Q, c = torch.ops.gossamer.first_sum(P.tensors(), a, Q.tensors(), b, P.shape)
        pattern = P._union(Q, indptr, indices)
        if len(at_P) == P.nnz and len(at_Q) == Q.nnz:
            P.keep("union", lambda: (pattern, at_P, at_Q), Q)
        return P if pattern is None else pattern, c

    def _unless_this(self, indptr: Tensor, indices: Tensor) -> Pattern | None:
        """A union or intersection as large as this pattern is this pattern: kept as None, for what holds itself is
        never freed. A tracer does not know sizes."""
        same = not torch.compiler.is_compiling() and len(indices) == self.nnz
        return None if same else Pattern(indptr, indices, self.shape, check=False)

    def _union(self, other: Pattern, indptr: Tensor, indices: Tensor) -> Pattern | None:
        """One object for all sums of a pair, whether the maps into it are known yet or not."""
        pattern: Pattern | None = self.keep("union pattern", lambda: self._unless_this(indptr, indices), other)
        return pattern

    def equals(self, other: Pattern) -> bool:
        """The same arrays, entry for entry. Found out once for each other pattern."""
        return self is other or self.keep("equal", lambda: _same(self, other), other)

    def levels(self, upper: bool) -> list[Tensor]:
        """``level_ptr`` and ``order`` of a triangle: the rows of a level need only earlier levels. Kept.

        On a device, a triangle that will be solved many times is worth this call: solves then launch level by level
        where there are few of them, and wait for no row. ``level_ptr`` is the host's, which launches them.
        """
        self.check_simple("solve_triangular")

        def derive() -> list[Tensor]:
            level_ptr, order = torch.ops.gossamer.levels(self.indptr, self.indices, self.shape, upper)
            return [level_ptr.cpu() if level_ptr.is_cuda else level_ptr, order]

        return self.keep(("levels", upper), derive)

    def levels_at_hand(self, upper: bool) -> list[Tensor]:
        """The same if they are kept, [] if not. Also [] for a tracer, which wants all tensors on one device."""
        kept = not torch.compiler.is_compiling() and ("levels", upper) in self._kept
        return self.levels(upper) if kept else []

    def analysis(self) -> Tensor:
        """What a factorisation can know from the pattern alone, as a handle for torch.ops.gossamer.factorize. Kept."""
        self.check_simple("factorize")
        analyze = torch.ops.gossamer.analyze
        if torch.compiler.is_exporting():  # a program that runs elsewhere analyses there
            return analyze(self.tensors(True), self.shape)
        return self.keep("analysis", lambda: analyze(self.tensors(True), self.shape))

    def tensors(self, with_transpose: bool = False) -> list[Tensor]:
        """As ops take it: with the transpose if it is at hand or asked for."""
        if with_transpose or self._transpose is not None:
            return [self.indptr, self.indices, *self.transpose()]
        return [self.indptr, self.indices]

    def tensors_for(self, *operands: Tensor | None, with_transpose: bool = False) -> list[Tensor]:
        """The same for a call whose gradient multiplies by the transpose if one of these operands wants one."""
        for t in operands:  # a plain loop: this is on the way of every small product
            with_transpose = with_transpose or (t is not None and t.requires_grad and torch.is_grad_enabled())
        return self.tensors(with_transpose)

    def _tensors_for_product(self, X: Tensor, transpose: bool) -> list[Tensor]:
        """``tensors_for`` a product with X; with runs if X is narrow and this not the first, perhaps the only one."""
        with_transpose = transpose or (X.requires_grad and torch.is_grad_enabled())
        if self._lists and (X.dim() == 1 or (X.dim() == 2 and X.shape[1] <= 4)):
            return self.with_runs(with_transpose)
        self._lists.setdefault(None, [])
        return self.tensors(with_transpose)

    def with_runs(self, with_transpose: bool) -> list[Tensor]:
        """``tensors`` and the runs of rows of a grid or a band. Kept: a list takes as long as a small product."""
        if torch.compiler.is_compiling():
            return self.tensors(with_transpose)
        kept = self._lists.get(with_transpose)
        if kept is None or (len(kept) < 5 and self._transpose is not None):
            kept = self.tensors(with_transpose)
            self._lists[with_transpose] = kept = kept + self._find_runs(*kept)
        return kept

    def _find_runs(self, indptr: Tensor, indices: Tensor, *transpose: Tensor) -> list[Tensor]:
        """Those of the pattern and of its transpose, if it is given; none if there are none."""
        find, size = torch.ops.gossamer.runs.default, self.shape
        runs = [self.keep("runs", lambda: find(indptr, indices, None, size))]
        if transpose:
            runs.append(self.keep("runs of the transpose", lambda: find(*transpose, size[::-1])))
        return runs if any(len(first) for first in runs) else []

    def keep(self, key: Hashable, make: Callable[[], Any], other: Pattern | None = None) -> Any:
        """What ``make`` gives, made once and kept with the pattern under ``key``.

        With another pattern, for as long as that one lives. Keyed by the object, never by its contents. Nothing that is
        kept may hold this pattern: counting references alone shall free it.
        """
        if other is None:
            if key not in self._kept:
                self._kept[key] = lasting(make, self.indptr, self.indices)
            return self._kept[key]
        pair = (key, other._number)
        if pair not in self._kept:
            if torch.compiler.is_compiling():  # a tracer knows no weak references
                return make()
            me = weakref.ref(self)
            made = lasting(make, self.indptr, self.indices, other.indptr, other.indices)
            self._kept[pair] = weakref.ref(other, lambda _: _forget(me(), pair)), made
        return self._kept[pair][1]

    def keeps(self, key: Hashable, other: Pattern) -> bool:
        """Whether this was made for the pair before. A tracer and a transform are told so: they make what they need."""
        return torch.compiler.is_compiling() or is_inside() or (key, other._number) in self._kept

    def widened(self) -> Pattern:
        """The same with int64 indices; itself if it has them. Kept."""
        return self if self.indptr.dtype is torch.int64 else self.keep("int64", lambda: self.to(None, torch.int64))

    def to(self, device: torch.device | str | None = None, index_dtype: torch.dtype | None = None) -> Pattern:
        """The same pattern on another device or with another index width; itself if nothing changes."""
        if index_dtype not in (None, torch.int32, torch.int64):
            raise TypeError(f"Pattern.to: index_dtype must be torch.int32 or torch.int64, not {index_dtype}")
        indptr = self.indptr.to(device=device, dtype=index_dtype)
        if indptr is self.indptr:
            return self
        if index_dtype is torch.int32 and max(*self.shape, self.nnz) > torch.iinfo(torch.int32).max:
            raise ValueError(f"Pattern.to: shape {self.shape} with {self.nnz} entries does not fit int32")
        indices = self.indices.to(device=device, dtype=index_dtype)
        return Pattern(indptr, indices, self.shape, check=False, simple=self._simple)

    def __eq__(self, other: object) -> bool:
        """The same entries in the same shape; widths may differ."""
        if not isinstance(other, Pattern):
            return NotImplemented
        return self is other or (self.shape == other.shape and _same(self, other.to(index_dtype=self.indptr.dtype)))

    __hash__ = object.__hash__  # caches are keyed by the object, never by its contents

    # Copies and pickles have the arrays alone: what is kept belongs to this object, and a factor to this process.
    def __getstate__(self) -> dict[str, Any]:
        return {"indptr": self.indptr, "indices": self.indices, "shape": self.shape, "simple": self._simple}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Pattern.__init__(self, **state)

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"Pattern({rows} x {cols}, nnz={self.nnz}, {short(self.indices.dtype)}, {self.device})"


def _forget(pattern: Pattern | None, pair: Hashable) -> None:
    """Frees what was kept for a pair of patterns, one of which is gone."""
    if pattern is not None:
        pattern._kept.pop(pair, None)


def alike(*patterns: Pattern) -> tuple[Pattern, ...]:
    """The patterns with indices of one width, as ops of several matrices want them: int64 if one of them has it."""
    return patterns if len({P.indptr.dtype for P in patterns}) == 1 else tuple(P.widened() for P in patterns)


def simple_within(*patterns: Pattern) -> bool | None:
    """For a pattern that is made of entries of these: simple if all of them are known to be, else not known."""
    return all(P._simple for P in patterns) or None


def _same(P: Pattern, Q: Pattern) -> bool:
    same_kind = P.shape == Q.shape and P.nnz == Q.nnz and P.device == Q.device and P.indptr.dtype == Q.indptr.dtype
    return same_kind and torch.equal(P.indices, Q.indices) and torch.equal(P.indptr, Q.indptr)
