# SPDX-License-Identifier: BSD-3-Clause
"""Long work of libraries that cannot be asked to stop, from which Ctrl-C returns all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

LONG = 20_000  # rows from which a factorisation may take seconds; a thread takes 0.1 ms


def interruptible(work: Callable[..., Any], *arguments: Any) -> Any:
    """What the work gives. It is done in a thread, for which this one waits, and a wait can be interrupted.

    The engines of a factorisation do not look for signals: interrupted work goes on behind the scenes until it is done,
    and its result is dropped. The number of threads is a thread's own, and is handed on; a transform or a tracer is the
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

    thread = threading.Thread(target=run, name="gossamer factorize", daemon=True)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def _within_a_transform() -> bool:
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:
        return True
    return torch._C._functorch.peek_interpreter_stack() is not None
