# SPDX-License-Identifier: BSD-3-Clause
"""What the numbers were measured on: processor, versions, allocator, memory bandwidth."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import scipy
import torch

import gossamer
from bench.race import clock_of, race
from bench.row import CPU

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # malloc.h


def keep_freed_memory() -> str:
    """Make glibc's malloc keep what is freed, so that no contender pays for fresh pages in every call."""
    if platform.libc_ver()[0] != "glibc" or "malloc" in os.environ.get("LD_PRELOAD", ""):
        return describe_malloc()
    libc = ctypes.CDLL(None)
    done = libc.mallopt(M_MMAP_MAX, 0) and libc.mallopt(M_TRIM_THRESHOLD, -1)
    return "glibc, M_MMAP_MAX=0, M_TRIM_THRESHOLD=-1" if done else describe_malloc()


@contextmanager
def freed_memory_kept() -> Iterator[str]:
    """keep_freed_memory for a while: then malloc's defaults, and the system gets back what is free."""
    told = keep_freed_memory()
    try:
        yield told
    finally:
        if told != describe_malloc():
            libc = ctypes.CDLL(None)
            libc.mallopt(M_MMAP_MAX, 65536)
            libc.mallopt(M_TRIM_THRESHOLD, 128 * 1024)
            libc.malloc_trim(0)


def use_malloc(choice: str) -> str:
    """--malloc keep: freed memory is kept, for everyone; --malloc default: as it is. Returns what it is now."""
    return keep_freed_memory() if choice == "keep" else describe_malloc()


def describe_malloc() -> str:
    """The allocator as it is."""
    return os.environ.get("LD_PRELOAD") or f"default ({platform.libc_ver()[0] or platform.system()})"


def describe() -> dict[str, Any]:
    """Machine and versions, for the JSON."""
    return {
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "system": platform.platform(),
            "load_at_start": os.getloadavg()[0],
            "gpus": gpus(),
        },
        "versions": {
            "gossamer": gossamer.__version__,
            "torch": torch.__version__,
            "scipy": scipy.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }


def gpus() -> list[str]:
    """The names of the devices that torch can use."""
    return (
        [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    )


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def available_memory() -> int:
    """Bytes that can be had without taking them from others."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def last_level_cache() -> int:
    """Bytes of the largest cache of the first core; 32 MiB where the system does not tell."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((1024 * int(size.removesuffix("K")) for size in sizes if size.endswith("K")), default=2**25)


def bandwidth(threads: int, quick: bool = False, device: torch.device = CPU) -> float:
    """Bytes a second from and to memory, the better of copy and triad on arrays far larger than the caches."""
    if threads:
        torch.set_num_threads(threads)
    size = 2**24 if quick else 2**25
    a, b, c = (torch.ones(size, device=device) for _ in range(3))
    runs = {"copy": lambda: a.copy_(b), "triad": lambda: torch.add(b, c, alpha=3.0, out=a)}
    samples = race(runs, 0.05 if quick else 0.5, clock=clock_of(device))
    return max(2 * a.nbytes / min(samples["copy"]), 3 * a.nbytes / min(samples["triad"]))
