# SPDX-License-Identifier: BSD-3-Clause
"""The frozen structure of a sparse matrix, and what is derived from it once and kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Shape = tuple[int, int]


def as_index(name: str, given: Any) -> Tensor:
    """A tensor from a tensor, a NumPy array or a list; lists become int64."""
    if isinstance(given, Tensor):
        return given
    tensor = torch.as_tensor(given)
    return tensor.long() if tensor.numel() == 0 else tensor


def as_shape(op: str, shape: Sequence[int]) -> Shape:
    """(rows, cols) as two ints."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) != 2:
        raise ValueError(f"{op}: shape must be (rows, cols), not {sizes}")
    return sizes[0], sizes[1]


class Merged(NamedTuple):
    """The union of two patterns and where their entries are in it, or the intersection and where its entries are."""

    pattern: Pattern
    at_A: Tensor
    at_B: Tensor


Merged.__module__ = "gossamer"  # a NamedTuple takes no attribute in its body


class Pattern:
    """Where the entries of a sparse matrix are.

    ``indptr`` has rows + 1 entries; the columns of row i are ``indices[indptr[i]:indptr[i + 1]]``, sorted and unique.
    Both are int32 or int64 and must not be written to. The structure is checked here, in O(rows + nnz), and trusted
    ever after; ``check=False`` skips that for data that is known to be good.
    """

    __module__ = "gossamer"  # where users find it, and where pickles look for it

    def __init__(self, indptr: Any, indices: Any, shape: Sequence[int], *, check: bool = True) -> None:
        self.indptr = as_index("indptr", indptr)
        self.indices = as_index("indices", indices)
        self.shape = as_shape("Pattern", shape)
        self._transpose: tuple[Tensor, Tensor, Tensor] | None = None
        self._T: Pattern | None = None
        self._kept: dict[tuple[str, int], tuple[Any, Any]] = {}  # what was derived together with another pattern
        self._parts: dict[Hashable, Any] = {}  # what was derived from this pattern alone
        if check and not torch.compiler.is_compiling():
            torch.ops.gossamer.check_pattern(self.indptr, self.indices, self.shape)

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.indices.shape[0]

    @property
    def device(self) -> torch.device:
        return self.indices.device

    @property
    def row_indices(self) -> Tensor:
        """The row of each entry, int64."""
        return torch.ops.gossamer.row_indices(self.indptr, self.indices)

    def transpose(self) -> tuple[Tensor, Tensor, Tensor]:
        """indptr and indices of the transpose, and ``perm``: its entry q is entry ``perm[q]`` here. Kept."""
        if self._transpose is None:
            self._transpose = torch.ops.gossamer.transpose(self.indptr, self.indices, self.shape)
        return self._transpose

    @property
    def T(self) -> Pattern:
        """The transposed pattern; ``P.T.T is P``."""
        if self._T is None:
            indptr, indices, _ = self.transpose()
            self._T = Pattern(indptr, indices, self.shape[::-1], check=False)
            self._T._T = self
        return self._T

    def product(self, other: Pattern) -> Pattern:
        """The pattern of the product of two matrices. Kept."""

        def derive() -> Pattern:
            both = self.tensors(), self.shape, other.tensors(), other.shape
            indptr, indices = torch.ops.gossamer.spgemm_pattern(*both)
            return Pattern(indptr, indices, (self.shape[0], other.shape[1]), check=False)

        return self._keep("product", other, derive)

    def merge(self, other: Pattern, intersect: bool = False) -> Merged:
        """The union with another pattern of the same shape, or the intersection. Kept."""

        def derive() -> Merged:
            both = self.tensors(), other.tensors(), self.shape
            indptr, indices, at_A, at_B = torch.ops.gossamer.merge(*both, intersect)
            same = len(indices) == self.nnz  # as many entries as here: these
            pattern = self if same else Pattern(indptr, indices, self.shape, check=False)
            return Merged(pattern, at_A, at_B)

        return self._keep("intersection" if intersect else "union", other, derive)

    def equals(self, other: Pattern) -> bool:
        """The same arrays, entry for entry. Found out once for each other pattern."""
        return self is other or self._keep("equal", other, lambda: _same(self, other))

    def _keep(self, what: str, other: Pattern, derive: Callable[[], Any]) -> Any:
        """Derived once for each other pattern, and forgotten with it. Keyed by the object, never by its contents."""
        key = what, id(other)
        if key not in self._kept:
            kept = self._kept
            self._kept[key] = weakref.ref(other, lambda _: kept.pop(key, None)), derive()
        return self._kept[key][1]

    def levels(self, upper: bool) -> list[Tensor]:
        """``level_ptr`` and ``order`` of a triangle: the rows of a level need only earlier levels. Kept."""
        levels = torch.ops.gossamer.levels
        return self.keep(("levels", upper), lambda: list(levels(self.indptr, self.indices, self.shape, upper)))

    def analysis(self) -> Tensor:
        """What a factorisation can know from the pattern alone, as a handle for torch.ops.gossamer.factorize. Kept."""
        return self.keep("analysis", lambda: torch.ops.gossamer.analyze(self.tensors(True), self.shape))

    def tensors(self, with_transpose: bool = False) -> list[Tensor]:
        """As ops take it: with the transpose if it is at hand or asked for."""
        if with_transpose or self._transpose is not None:
            return [self.indptr, self.indices, *self.transpose()]
        return [self.indptr, self.indices]

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made once and kept with the pattern under ``key``."""
        if key not in self._parts:
            self._parts[key] = make()
        return self._parts[key]

    def to(self, device: torch.device | str | None = None, index_dtype: torch.dtype | None = None) -> Pattern:
        """The same pattern on another device or with another index width; itself if nothing changes."""
        indptr = self.indptr.to(device=device, dtype=index_dtype)
        if indptr is self.indptr:
            return self
        if index_dtype is torch.int32 and max(*self.shape, self.nnz) > torch.iinfo(torch.int32).max:
            raise ValueError(f"Pattern.to: shape {self.shape} with {self.nnz} entries does not fit int32")
        return Pattern(indptr, self.indices.to(device=device, dtype=index_dtype), self.shape, check=False)

    def __eq__(self, other: object) -> bool:
        """The same entries in the same shape; widths may differ."""
        if not isinstance(other, Pattern):
            return NotImplemented
        if self is other:
            return True
        return self.shape == other.shape and _same(self, other.to(index_dtype=self.indptr.dtype))

    __hash__ = object.__hash__  # caches are keyed by the object, never by its contents

    # Copies and pickles have the arrays alone: what is kept belongs to this object, and a factor to this process.
    def __getstate__(self) -> dict[str, Any]:
        return {"indptr": self.indptr, "indices": self.indices, "shape": self.shape}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Pattern.__init__(self, **state)

    def __repr__(self) -> str:
        rows, cols = self.shape
        return f"Pattern({rows} x {cols}, nnz={self.nnz}, {short(self.indices.dtype)}, {self.device})"


def _same(P: Pattern, Q: Pattern) -> bool:
    same_kind = P.shape == Q.shape and P.nnz == Q.nnz and P.device == Q.device and P.indptr.dtype == Q.indptr.dtype
    return same_kind and torch.equal(P.indptr, Q.indptr) and torch.equal(P.indices, Q.indices)


def short(dtype: torch.dtype) -> str:
    """float32, not torch.float32."""
    return str(dtype).removeprefix("torch.")
