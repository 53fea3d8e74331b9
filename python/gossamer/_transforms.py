# SPDX-License-Identifier: BSD-3-Clause
"""torch.func's transforms seen from what outlives them: patterns, and what is kept with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

_functorch = torch._C._functorch


def is_inside() -> bool:
    """Whether the caller is inside grad, jvp, vmap or another transform."""
    return _functorch.maybe_current_level() is not None


@contextmanager
def as_it_was(grad_enabled: bool, depth: int) -> Iterator[None]:
    """Grad mode and torch.func's transforms as they were: what is kept must not depend on who asks for it first."""
    left = []
    while _functorch.get_dynamic_layer_stack_depth() > depth:
        left.append(_functorch.pop_dynamic_layer_stack())
    try:
        with torch.inference_mode(False), torch.set_grad_enabled(grad_enabled):
            yield
    finally:
        for layer in reversed(left):
            _functorch.push_dynamic_layer_stack(layer)


def outside() -> AbstractContextManager[None]:
    """Out of torch.func's transforms, which do not outlive a call, as what is kept with a pattern does."""
    return nullcontext() if torch.compiler.is_compiling() else as_it_was(False, 0)


def is_wrapped(t: Tensor) -> bool:
    """Whether a transform made this tensor, which says nothing outside of it."""
    return bool(_functorch.is_functorch_wrapped_tensor(t))


def unwrapped(t: Tensor) -> Tensor:
    """What is behind torch.func's transforms."""
    while is_wrapped(t):
        t = _functorch.get_unwrapped(t)
    return t


def lasting(make: Callable[[], Any], *arrays: Tensor) -> Any:
    """What ``make`` gives, to be kept with a pattern that has these arrays: made outside of all transforms, for the
    results of an op inside are the transform's. A pattern that was made inside belongs to the transform anyway."""
    if torch.compiler.is_compiling() or not is_inside() or any(is_wrapped(t) for t in arrays):
        return make()
    with outside():
        return make()


def is_batched(t: Tensor) -> bool:
    """Whether vmap has put several tensors into this one."""
    while is_wrapped(t):
        if _functorch.is_batchedtensor(t):
            return True
        t = _functorch.get_unwrapped(t)
    return False
