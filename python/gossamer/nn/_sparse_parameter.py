# SPDX-License-Identifier: BSD-3-Clause
"""A matrix that is learned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gossamer._indices import Shape
from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix


class SparseParameter(torch.nn.Module):
    """A matrix as a part of a module: its values are a parameter, its pattern two buffers.

    So optimisers, ``state_dict``, ``.to()``, ``.double()``, copies, averages of models and data-parallel training treat
    it as they treat a ``Linear``. ``self.A.matrix`` is the matrix; ``self.A(X)`` multiplies by it.

    >>> class Model(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.A = gs.nn.SparseParameter(gs.poisson(3))
    ...
    ...     def forward(self, x):
    ...         return self.A(x)
    >>> [name for name, _ in Model().named_parameters()]
    ['A.values']
    >>> Model()(torch.ones(3))
    tensor([1., 0., 1.], grad_fn=<spmmBackward>)
    """

    __module__ = "gossamer.nn"  # where users find it, and where pickles look for it

    indptr: Tensor
    indices: Tensor

    def __init__(self, A: SparseMatrix, requires_grad: bool = True) -> None:
        super().__init__()
        if not isinstance(A, SparseMatrix):
            raise TypeError(f"SparseParameter: A must be a SparseMatrix, not {type(A).__name__}")
        self.values = torch.nn.Parameter(A.values.detach().clone(), requires_grad=requires_grad)
        # Copies: what is loaded is written to them in place, and the pattern of A is frozen.
        self.register_buffer("indptr", A.pattern.indptr.clone())
        self.register_buffer("indices", A.pattern.indices.clone())
        self._pattern = Pattern(self.indptr, self.indices, A.shape, check=False, simple=A.pattern._simple)

    @property
    def shape(self) -> Shape:
        return self._pattern.shape

    @property
    def matrix(self) -> SparseMatrix:
        """The matrix of the values and the pattern that the module holds now."""
        P = self._pattern
        if P.indptr is not self.indptr or P.indices is not self.indices:  # moved to another device, or loaded
            P = self._pattern = Pattern(self.indptr, self.indices, P.shape, check=False, simple=P._simple)
        return SparseMatrix._trusted(P, self.values)

    def forward(self, X: Any) -> Any:
        """A X."""
        return self.matrix @ X

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """A state with another pattern brings that pattern, checked; the number of entries must be the same."""
        indptr, indices = (state_dict.get(prefix + name) for name in ("indptr", "indices"))
        if isinstance(indptr, Tensor) and isinstance(indices, Tensor):
            loaded = Pattern(indptr, indices, self.shape, simple=self._pattern._simple).to(self.indptr.device)
            if self.matrix.pattern != loaded:
                self.indptr, self.indices = loaded.indptr.clone(), loaded.indices.clone()
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}, nnz={self.indices.shape[0]}"
