# SPDX-License-Identifier: BSD-3-Clause
"""Gives a CPU build of torch a device "cuda:0" for tests: see cuda/standin.cpp.

`load(path)` must run before anything imports torch, which looks for CUDA once, and before libgossamer is loaded, whose
CUDA kernels are weak symbols that this library fills in.
"""

import atexit
import contextlib
import ctypes
import importlib.util
import pathlib
import sys
import time

library = None


def largest_allocation():
    """The bytes of the largest allocation on the device since the last call."""
    library.gossamer_standin_largest_allocation.restype = ctypes.c_size_t
    return library.gossamer_standin_largest_allocation()


def traffic():
    """(copies between host and device, numbers the host looked at) since the last call."""
    library.gossamer_standin_copies.restype = ctypes.c_int64
    library.gossamer_standin_looks.restype = ctypes.c_int64
    return library.gossamer_standin_copies(), library.gossamer_standin_looks()


@contextlib.contextmanager
def capture():
    """Keeps the work that is given to the device meanwhile; `replay` does it again, in the same memory."""
    library.gossamer_standin_begin_capture()
    try:
        yield
    finally:
        library.gossamer_standin_end_capture()


def replay():
    """Does the captured work again; returns the number of its steps."""
    library.gossamer_standin_replay.restype = ctypes.c_int64
    return library.gossamer_standin_replay()


def load(path):
    """Loads libgossamer_standin.so from `path`, then torch, and returns torch."""
    global library
    if "torch" in sys.modules:
        raise RuntimeError("cuda_standin.load: torch is already imported")
    torch_libraries = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
    # torch loads these itself, but not for others to see; the stand-in wants them first, and once.
    for file in (
        *sorted(torch_libraries.glob("libgomp*.so*")),
        torch_libraries / "libc10.so",
        torch_libraries / "libtorch_cpu.so",
        pathlib.Path(path),
    ):
        library = ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
    import torch

    # The Python side of a CPU build refuses CUDA before it asks C++. `torch.cuda.is_available()` stays False: what asks
    # it wants a real GPU.
    torch.cuda._lazy_init = lambda: None
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.is_bf16_supported = lambda including_emulation=True: True
    torch.__config__.show = lambda: "PyTorch, with a stand-in for CUDA"  # C++ would ask the CUDA library
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    # The device thread of autograd drops its last graph after backward() has returned, and needs the interpreter for
    # it: torch aborts if that is gone by then. An idle moment at the end lets it finish.
    atexit.register(time.sleep, 0.1)
    return torch
