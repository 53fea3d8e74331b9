# SPDX-License-Identifier: BSD-3-Clause
"""What may stand beside a matrix in a product or a sum, as tensors of one type.

Tensors are taken as they are, as torch does: two precisions are refused by the op. Integers go along with everything.
NumPy's arrays promote as NumPy does, lists take the type of the matrix.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from gossamer._values import PatternValues

M = TypeVar("M", bound=PatternValues)


def is_dense(X: Any) -> bool:
    """Something that is or becomes a tensor."""
    return isinstance(X, (Tensor, np.ndarray, list, tuple))


def as_tensor(X: Any, values: Tensor) -> Tensor:
    """A tensor from a tensor, a NumPy array or a list, for work with these values."""
    if isinstance(X, Tensor):
        return X
    tensor = torch.tensor(X, device=values.device)  # a copy: NumPy's memory is its owner's to change
    if isinstance(X, (list, tuple)) and not tensor.is_complex() and not _is_integral(values):
        return tensor.to(values.dtype)
    return tensor


def with_dense(A: M, X: Any) -> tuple[M, Tensor]:
    """A matrix and a dense operand in one type."""
    tensor = as_tensor(X, A.values)
    values, tensor = promoted(A.values, tensor, any_types=isinstance(X, np.ndarray))
    return A if values is A.values else A._trusted(A.pattern, values), tensor


def with_matrix(A: M, B: M) -> tuple[M, M]:
    """Two matrices in one type."""
    a, b = promoted(A.values, B.values)
    if a is A.values and b is B.values:
        return A, B
    return A._trusted(A.pattern, a), B._trusted(B.pattern, b)


def promoted(a: Tensor, b: Tensor, any_types: bool = False) -> tuple[Tensor, Tensor]:
    """Both in one type if one alone holds integers, or whatever they hold; else as they are."""
    if a.dtype == b.dtype or not (any_types or _is_integral(a) or _is_integral(b)):
        return a, b
    dtype = torch.promote_types(a.dtype, b.dtype)
    return a.to(dtype), b.to(dtype)


def _is_integral(t: Tensor) -> bool:
    return not (t.is_floating_point() or t.is_complex())
