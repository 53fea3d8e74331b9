# SPDX-License-Identifier: BSD-3-Clause
"""Large results lie in pages that are kept: no faults in the second call, and a tensor like any other."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import gossamer as gs

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or "libasan" in os.environ.get("LD_PRELOAD", ""),
    reason="pages are kept on Linux, and not under the address sanitizer, which watches malloc",
)

ROWS, COLUMNS = 20_000, 128  # 20 MB in float64
HUGE = 2**21


def product(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """2 X, which is known, and X."""
    X = torch.randn(ROWS, COLUMNS, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return 2 * gs.eye(ROWS, dtype=torch.float64) @ X, X


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def test_a_second_result_takes_the_pages_of_the_first() -> None:
    A, X = gs.eye(ROWS, dtype=torch.float64), torch.ones(ROWS, COLUMNS, dtype=torch.float64)
    Y = A @ X
    place = Y.data_ptr()
    assert place % HUGE == 0
    del Y
    before = faults()
    Y = A @ X
    assert Y.data_ptr() == place
    assert faults() - before < Y.nbytes / 4096 / 10
    assert torch.equal(Y, X)


def test_what_is_in_use_is_not_given_away() -> None:
    results = [product(seed) for seed in range(4)]
    view = results.pop()[0][5:]
    more, _ = product(9)
    assert all(torch.equal(Y, 2 * X) for Y, X in results)
    assert torch.equal(view, 2 * product(3)[1][5:])
    assert more.data_ptr() != view.data_ptr() - 5 * COLUMNS * 8


def test_a_result_is_a_tensor_like_any_other(tmp_path: Path) -> None:
    Y, X = product()
    file = tmp_path / "Y.pt"
    torch.save(Y, file)
    assert torch.equal(torch.load(file), 2 * X)
    assert torch.equal(torch.from_numpy(Y.numpy()), 2 * X)
    assert torch.equal(Y.clone().share_memory_(), 2 * X)
    shared = Y.share_memory_()
    assert torch.equal(shared, 2 * X)
    Z, _ = product()
    Z.resize_(2 * ROWS, COLUMNS)
    assert torch.equal(Z[:ROWS], 2 * X)
    Z.resize_(3)
    assert torch.equal(Z, 2 * X.flatten()[:3])


def test_threads_take_and_leave_pages_at_once() -> None:
    wrong = []

    def work(seed: int) -> None:
        for _ in range(5):
            Y, X = product(seed)
            if not torch.equal(Y, 2 * X):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_has_its_own() -> None:
    Y, X = product()
    child = os.fork()
    if child == 0:  # no exception may leave this branch: pytest would go on twice
        try:
            torch.set_num_threads(1)  # the parent's threads did not come along
            Z, _ = product()
            Y.zero_()
            os._exit(0 if torch.equal(Z, 2 * X) else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert torch.equal(Y, 2 * X)


@pytest.mark.parametrize("keep", ["", "0"])
def test_what_is_kept_is_bounded(keep: str) -> None:
    """Results of many sizes, one after the other: what is kept stays below a sixteenth of the machine's memory."""
    program = """
import resource, torch, gossamer as gs
A = gs.eye(1000)
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
A @ torch.ones(1000, 2000)
before = rss()
for k in range(60):
    A @ torch.ones(1000, 2000).repeat(1, k % 12 + 1)
print((rss() - before) // 2**20)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "GOSSAMER_KEEP_PAGES": keep},
        capture_output=True,
        text=True,
        check=True,
    )
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    assert int(done.stdout) < (total / 16 if keep == "" else 150) + 100
