# SPDX-License-Identifier: BSD-3-Clause
"""Long work that cannot be asked to stop, from which Ctrl-C returns all the same. Loops in C++ ask by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gossamer._transforms import is_inside

LONG = 4_000  # rows from which a factorisation may take a second; a thread takes 0.1 ms
MANY = 500_000  # entries from which any work may
LARGE = 10_000_000  # bytes of a file from which reading may


def _is_measured(*patterns: Any) -> bool:
    """Whether it can be asked how much work this is: a tracer knows no numbers, and on a device the work stays in this
    thread, whose stream it belongs to."""
    return not torch.compiler.is_compiling() and all(P.device.type == "cpu" for P in patterns)


def is_long(*patterns: Any) -> bool:
    """Whether work on these patterns on the host may take a second, if each entry is met a few hundred times."""
    return _is_measured(*patterns) and sum(P.nnz for P in patterns) >= MANY


def takes_long(P: Any) -> bool:
    """The same of a factorisation, which meets them as often as there are rows."""
    return _is_measured(P) and (P.shape[0] >= LONG or P.nnz >= MANY)


def called(long: bool, op: Callable[..., Any], *arguments: Any) -> Any:
    """The op's result, in a thread that Ctrl-C can leave if it may take long. A thread has modes of its own: they are
    handed on, or the work stays here if they cannot be."""
    if torch.compiler.is_compiling() or not long or torch.is_autocast_enabled("cpu") or _watched():
        return op(*arguments)
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def work() -> Any:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad and not inference):
            return op(*arguments)

    return interruptible(work)


def _watched() -> bool:
    """Whether something that belongs to this thread sees the ops in it: a mode, a profiler, hooks of what is saved."""
    modes = torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack()
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(False)
    return modes > 0 or hooks is not None or torch.autograd._profiler_enabled()


def of_both(op: Callable[..., Any], P: Any, Q: Any) -> tuple[Tensor, Tensor]:
    return called(is_long(P, Q), op, P.tensors(), P.shape, Q.tensors(), Q.shape)


def interruptible(work: Callable[..., Any], *arguments: Any) -> Any:
    """What the work gives. It is done in a thread, for which this one waits, and a wait can be interrupted.

    Engines and kernels do not look for signals: interrupted work goes on behind the scenes until it is done, and its
    result is dropped. The number of threads is a thread's own, and is handed on; a transform or a tracer is the
    caller's own, too, and is not, so within one the work is done at once.
    """
    if threading.current_thread() is not threading.main_thread() or _within_a_transform():
        return work(*arguments)
    outcome: dict[str, Any] = {}
    threads = torch.get_num_threads()

    def run() -> None:
        torch.set_num_threads(threads)
        try:
            outcome["result"] = work(*arguments)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, name="gossamer at work", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)  # A signal that comes just before a wait does not end it, but is seen after it.
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def _within_a_transform() -> bool:
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return True
    return is_inside()
