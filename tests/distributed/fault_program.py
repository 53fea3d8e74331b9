# SPDX-License-Identifier: BSD-3-Clause
"""A rank that meets the end of another one, as a program: `fault_program.py EVENT RANK SIZE FOLDER`.

The last rank ends by EVENT while the others are in products; they write what they raised. Started by test_faults.py,
one process a rank: torchrun would end the others itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import gossamer as gs

PATIENCE = timedelta(seconds=120)  # more than any of these takes: nobody is to wait so long


def products(A: gs.distributed.DistributedMatrix) -> None:
    """More than there is time for: they end because a rank does."""
    x = torch.ones(A.local_shape[1], 3, dtype=torch.float64, requires_grad=True)
    for _ in range(10**6):
        (A @ x).sum().backward()


def main(event: str, rank: int, size: int, folder: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=PATIENCE)
    A = gs.distributed.scatter(gs.poisson((20, 20), dtype=torch.float64)).requires_grad_()
    x = torch.ones(A.local_shape[1], dtype=torch.float64)
    (A @ x).sum().backward()
    if rank == size - 1:
        if event == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ArithmeticError("a mistake of the program's own")
    try:
        products(A)
    except Exception as error:
        (folder / f"{rank}.json").write_text(json.dumps([type(error).__name__, str(error)]))
    os._exit(0)  # the group is broken: there is nothing to destroy in order


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
