# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a matrix: diagonals, triangles, rows, columns, entries.

The new pattern and the positions its values come from are computed once, in C++; the values are gathered,
differentiably. What depends on the pattern alone (a diagonal, a triangle) is kept with the pattern.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from gossamer._indices import as_index, as_shape
from gossamer._pattern import Pattern, simple_within
from gossamer._values import PatternValues

_ops = torch.ops.gossamer


class Structure(PatternValues):
    """diagonal, trace, tril, triu, submatrix and indexing."""

    def diagonal(self, k: int = 0) -> Tensor:
        """A[i, i + k] as a dense vector; an entry that is not stored is 0. With heads: (length, H).

        Gradient: the entries of the diagonal that are stored get theirs.

        >>> gs.poisson(3).diagonal(1)
        tensor([-1., -1.])
        """
        self.pattern.check_simple("diagonal")
        row, col, size = self._diagonal_places(k)

        def find() -> tuple[Tensor, Tensor]:
            i = torch.arange(size, device=self.pattern.device)
            return self._find(i + row, i + col)

        return _ops.place_entries(self.values, *self.pattern.keep(("diagonal", row, col), find), size)

    def _diagonal_places(self, k: int) -> tuple[int, int, int]:
        """Where diagonal k begins, and how long it is."""
        m, n = self.pattern.shape
        row, col = min(max(-k, 0), m), min(max(k, 0), n)
        return row, col, max(min(m - row, n - col), 0)

    def _find(self, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the places (rows[k], cols[k]) are stored, in ascending order of k, and where."""
        return _ops.entries(self.pattern.indptr, self.pattern.indices, self.pattern.shape, rows, cols)

    def trace(self) -> Tensor:
        """Σ A[i, i]; the matrix need not be square."""
        return _ops.total(self.diagonal())

    def tril(self, k: int = 0) -> Self:
        """The entries on and below diagonal k: j - i <= k.

        >>> gs.poisson(3).tril(-1).to_dense()
        tensor([[ 0.,  0.,  0.],
                [-1.,  0.,  0.],
                [ 0., -1.,  0.]])
        """
        m, n = self.pattern.shape
        return self._band(-m, min(max(k, -m - 1), n))

    def triu(self, k: int = 0) -> Self:
        """The entries on and above diagonal k: j - i >= k."""
        m, n = self.pattern.shape
        return self._band(min(max(k, -m), n), n)

    def _band(self, low: int, high: int) -> Self:
        P = self.pattern

        def make() -> tuple[Pattern, Tensor]:
            indptr, indices, positions = _ops.band(P.indptr, P.indices, P.shape, low, high)
            return Pattern(indptr, indices, P.shape, check=False, simple=simple_within(P)), positions

        pattern, positions = P.keep(("band", low, high), make)
        return self._trusted(pattern, self.values.index_select(0, positions))

    def with_diagonal(self, v: Tensor | float, k: int = 0) -> Self:
        """Another matrix with A[i, i + k] = v[i], or v everywhere on that diagonal, which is stored in it.

        Gradient: dA = G without that diagonal, dv = that diagonal of G.

        >>> gs.poisson(3).with_diagonal(5.0).to_dense()
        tensor([[ 5., -1.,  0.],
                [-1.,  5., -1.],
                [ 0., -1.,  5.]])
        """
        self.pattern.check_simple("with_diagonal")
        row, col, length = self._diagonal_places(k)
        like = self.values
        if isinstance(v, (int, float)):  # is filled in where the matrix is, not copied to there
            new = like.new_full((), v)
        else:
            new = torch.as_tensor(v, dtype=like.dtype, device=like.device)
        if new.dim() > 0 and new.shape[0] != length:
            raise ValueError(f"with_diagonal: v has shape {tuple(new.shape)} but diagonal {k} has {length} entries")
        key = "diagonal pattern", row, col
        union = self.pattern.merge(self.pattern.keep(key, lambda: self._diagonal_pattern(row, col, length)))
        values = _ops.place(self.values, union.at_A, union.pattern.nnz)
        if values.dim() == 2 and new.dim() == 1:
            new = new[:, None]
        placed = new.expand(length, *values.shape[1:])
        return self._trusted(union.pattern, values.index_copy(0, union.at_B.long(), placed))

    def _diagonal_pattern(self, row: int, col: int, length: int) -> Pattern:
        i = torch.arange(length, device=self.pattern.device)
        indptr, indices, _ = _ops.coo(i + row, i + col, self.pattern.shape)
        pattern = Pattern(indptr, indices, self.pattern.shape, check=False)
        return pattern.to(self.pattern.device, self.pattern.indices.dtype)

    def reshape(self, *shape: Any) -> Self:
        """The same numbers, read row by row, in another shape; -1 stands for what is left over.

        >>> gs.poisson(2).reshape(1, 4).to_dense()
        tensor([[ 2., -1., -1.,  2.]])
        """
        P, (m, n) = self.pattern, self.pattern.shape
        given = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        rows, cols = as_shape("reshape", given)
        if -1 in (rows, cols) and max(rows, cols) > 0 and m * n % max(rows, cols) == 0:
            rows, cols = (m * n // cols, cols) if rows == -1 else (rows, m * n // rows)
        if rows * cols != m * n or min(rows, cols) < 0:
            raise ValueError(f"reshape: {m} x {n} numbers do not fit the shape {tuple(given)}")
        if m * n > torch.iinfo(torch.int64).max:
            raise ValueError(f"reshape: {m} x {n} places are more than int64 can count")
        P.check_simple("reshape")

        def make() -> Pattern:
            place = P.row_indices * n + P.indices
            indptr, indices, _ = _ops.coo(place // max(cols, 1), place % max(cols, 1), (rows, cols))
            return Pattern(indptr, indices, (rows, cols), check=False)  # the order stays: it is by rows in both

        return self._trusted(P.keep(("reshape", rows, cols), make), self.values)

    def __getitem__(self, key: Any) -> Any:
        """Rows, columns and entries, by integers, slices, index arrays (repeated and unsorted too) and masks.

        ``A[i, j]`` is a 0-dim tensor, 0 if it is not stored; ``A[rows, cols]`` with two index arrays is the dense
        vector of A[rows[k], cols[k]], as in NumPy. Everything else is a SparseMatrix: ``A[i]`` is 1 x n, ``A[:, j]``
        is m x 1, ``A[rows]``, ``A[:, cols]``, ``A[a:b, c:d]``, and two arrays of which one has two dimensions: they
        are broadcast as NumPy does, so that ``A[rows[:, None], cols]`` is all rows by all columns.

        >>> A = gs.poisson(3)
        >>> A[0, 1], A[[2, 0], 1:].to_dense()
        (tensor(-1.), tensor([[-1.,  2.],
                [-1.,  0.]]))
        """
        axes = key if isinstance(key, tuple) else (key,)
        if len(axes) > 2:
            raise IndexError(f"index: a matrix has 2 axes, not {len(axes)}")
        rows, cols = (*axes, slice(None), slice(None))[:2]
        if _is_array(rows) and _is_array(cols):
            m, n = self.pattern.shape
            return self._at(_positions(rows, m, False), _positions(cols, n, True))
        r, c = _axis(self.pattern, rows, False), _axis(self.pattern, cols, True)
        if _is_integer(rows) and _is_integer(cols):
            assert r is not None
            assert c is not None
            return self._entries(r, c).select(0, 0)
        return self._submatrix(r, c)

    def _at(self, r: Tensor, c: Tensor) -> Any:
        """A[r[k], c[k]] for arrays of one dimension, a matrix of the shape of the two broadcast for two."""
        if r.dim() == 2 and r.shape[1] == 1 and (c.dim() == 1 or c.shape[0] == 1):  # all rows by all columns
            return self._submatrix(r.flatten(), c.flatten())
        if r.dim() == 2 or c.dim() == 2 or 1 in (len(r), len(c)):  # else their lengths must be the same
            try:
                r, c = torch.broadcast_tensors(r, c)
            except RuntimeError:
                shapes = f"{tuple(r.shape)} and cols {tuple(c.shape)}"
                raise IndexError(f"index: rows {shapes} do not broadcast to one shape") from None
        if r.dim() == 1:
            return self._entries(r, c)
        self.pattern.check_simple("index")
        which, positions = self._find(r.flatten(), c.flatten())
        shape, width = tuple(r.shape), max(r.shape[1], 1)
        picked = self.values.index_select(0, positions)
        indptr, indices, values = _ops.from_coo(which // width, which % width, picked, shape)
        return self._trusted(Pattern(indptr, indices, shape, check=False), values)

    def submatrix(self, rows: Any = None, cols: Any = None) -> Self:
        """B[r, c] = A[rows[r], cols[c]]: all these rows by all these columns, ``None`` for all of an axis.

        ``A[rows, cols]`` takes two index arrays pair by pair; this takes each row with each column. Both take what
        ``A[…]`` takes for an axis: index arrays, repeated and unsorted too, masks, slices.

        >>> gs.poisson(3).submatrix([0, 2], [2, 1]).to_dense()
        tensor([[ 0., -1.],
                [ 2., -1.]])
        """
        every = slice(None)
        r = _axis(self.pattern, every if rows is None else rows, False)
        return self._submatrix(r, _axis(self.pattern, every if cols is None else cols, True))

    def _submatrix(self, r: Tensor | None, c: Tensor | None) -> Self:
        P, (m, n) = self.pattern, self.pattern.shape
        indptr, indices, positions = _ops.submatrix(P.indptr, P.indices, P.shape, r, c)
        shape = (m if r is None else r.shape[0], n if c is None else c.shape[0])
        pattern = Pattern(indptr, indices, shape, check=False, simple=simple_within(P))
        return self._trusted(pattern, self.values.index_select(0, positions))

    def _entries(self, rows: Tensor, cols: Tensor) -> Tensor:
        self.pattern.check_simple("index")
        return _ops.place_entries(self.values, *self._find(rows, cols), rows.shape[0])


def _is_integer(index: Any) -> bool:
    if isinstance(index, (bool, slice)) or index is Ellipsis:
        return False
    return isinstance(index, int) or (hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0)


def _is_array(index: Any) -> bool:
    return not (isinstance(index, slice) or index is Ellipsis or _is_integer(index))


def _axis(pattern: Pattern, index: Any, columns: bool) -> Tensor | None:
    """One axis of a key as int64 positions; None for all of it. Those that are made here are made on the device."""
    size = pattern.shape[1 if columns else 0]
    if index is Ellipsis:
        return None
    if isinstance(index, slice):
        if index == slice(None):
            return None
        start, stop, step = index.indices(size)
        return torch.arange(len(range(start, stop, step)), device=pattern.device) * step + start
    if _is_integer(index):
        return _ops.axis_index(torch.full((1,), int(index), device=pattern.device), size, columns)
    positions = _positions(index, size, columns)
    if positions.dim() > 1:
        name = "cols" if columns else "rows"
        raise IndexError(f"index: {name} must have one dimension, not shape {tuple(positions.shape)}")
    return positions


def _positions(index: Any, size: int, columns: bool) -> Tensor:
    """An index array of one or two dimensions, or a mask, as int64 positions."""
    name = "cols" if columns else "rows"
    if index is None or isinstance(index, (bool, str, float)):
        kind = type(index).__name__
        raise TypeError(f"index: {name} must be integers, a slice, an array or a mask, not {kind}")
    given = as_index(name, index)
    if given.dim() == 2 and given.dtype is not torch.bool:
        return _ops.axis_index(given.flatten(), size, columns).reshape(given.shape)
    return _ops.axis_index(given, size, columns)
