# SPDX-License-Identifier: BSD-3-Clause
"""Fig. 11: the fit finds exponents, uses the sizes it says, and wrong results are refused. No time decides."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import style

import gossamer as gs
from bench import __main__ as command
from bench import machine
from bench.race import race
from bench.row import OURS
from bench.studies import scaling


@pytest.fixture(scope="module")
def result() -> scaling.Result:
    return scaling.compute(**scaling.QUICK)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0])
def test_exponent_of_a_power_law(p: float) -> None:
    nnz = [10.0**k for k in range(3, 8)]
    assert scaling.exponent(nnz, [3e-9 * x**p for x in nnz]) == pytest.approx(p, abs=1e-12)


def test_exponent_is_the_least_squares_slope() -> None:
    rng = np.random.default_rng(0)
    nnz = 2.0 ** np.arange(10)
    noise = np.exp(0.2 * rng.standard_normal(10))
    x, y = np.log(nnz), np.log(nnz * noise)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    assert scaling.exponent(nnz.tolist(), (nnz * noise).tolist()) == pytest.approx(slope, abs=1e-12)


def test_a_clock_that_stood_still_measured_nothing() -> None:
    assert scaling.fastest([3e-6, 0.0, 2e-6]) == 2e-6
    assert np.isnan(scaling.fastest([0.0, 0.0]))


def test_fit_uses_the_sizes_beyond_twice_the_cache_alone() -> None:
    nnz = [2.0**k for k in range(10)]
    bend = [1.0 if x < 2**5 else x**1.5 for x in nnz]  # flat in the cache
    series = {"nnz": nnz, "bytes": [10 * x for x in nnz], "forward": bend, "backward": nnz, "scipy": nnz}
    slopes = scaling.fit(series, cache=5 * 2**4)  # 2 * cache = the bytes of 2^4: the first size beyond is 2^5
    assert slopes["from"] == 2**5
    assert slopes["forward"] == pytest.approx(1.5)
    assert slopes["backward"] == pytest.approx(1.0)
    assert scaling.fitted(slopes)
    assert not scaling.fitted(scaling.fit(series, cache=5 * 2**7))  # two sizes are not enough


@pytest.mark.parametrize("name", scaling.OPS)
def test_sizes_double_up_to_the_largest(name: str) -> None:
    op = scaling.OPS[name]
    sizes = scaling.sizes(op, 1e8)
    assert all(b // 2 == a for a, b in itertools.pairwise(sizes))
    assert 0 <= 1e8 - op.bytes_a_row * sizes[-1] < op.bytes_a_row
    assert 3 * sizes[0] >= scaling.SMALLEST > 3 * (sizes[0] // 2)


def test_bytes_are_those_of_operands_and_result() -> None:
    n = 1000
    A, B = gs.poisson(n, dtype=torch.float64), gs.poisson(n, dtype=torch.float64)
    X, x = torch.ones(n, scaling.COLUMNS, dtype=torch.float64), torch.ones(n, dtype=torch.float64)

    def size(*matrices: gs.SparseMatrix | torch.Tensor) -> int:
        arrays = ((M.values, M.indices) if isinstance(M, gs.SparseMatrix) else (M,) for M in matrices)
        return sum(array.nbytes for parts in arrays for array in parts)

    C = A @ B  # five diagonals, as the sum has
    found = [size(A, x, A @ x), size(A, B, C), size(A, B, C), size(A, X, A @ X)]
    for op, want in zip(scaling.OPS.values(), found, strict=True):
        assert op.bytes_a_row * n == pytest.approx(want, rel=0.01)


def test_every_op_is_measured_at_every_size(result: scaling.Result) -> None:
    assert result.series.keys() == result.exponents.keys() == scaling.OPS.keys()
    for name, series in result.series.items():
        sizes = scaling.sizes(scaling.OPS[name], scaling.QUICK["largest"])
        assert series["nnz"] == [gs.poisson(n).nnz for n in sizes]
        assert all(len(values) == len(sizes) and min(values) > 0 for values in series.values())
        assert result.exponents[name]["from"] == pytest.approx(series["nnz"][0])  # quick: all sizes


def test_table_and_summary_tell_the_exponents(result: scaling.Result) -> None:
    header, lines = scaling.table(result)
    assert all(len(line) == len(header) for line in lines)
    known = replace(result, exponents={**result.exponents, "SpMV": {"forward": 1.23, "backward": 0.87, "from": 9.0}})
    assert any("SpMV 1.23 forward, 0.87 backward" in line for line in scaling.summary(known))
    assert scaling.table(known)[1][0][2] == "1.230"
    small = replace(
        known, exponents={name: dict.fromkeys(known.exponents["SpMV"], float("nan")) for name in known.series}
    )
    assert any(line.startswith("No exponent for SpMV") for line in scaling.summary(small))
    assert scaling.table(small)[1][0][2] == "–"
    assert "nan" not in "".join(scaling.summary(small))


def test_result_can_be_kept(result: scaling.Result, tmp_path: Path) -> None:
    torch.save(asdict(result), tmp_path / "result.pt")
    assert scaling.Result(**torch.load(tmp_path / "result.pt", weights_only=True)) == result


@pytest.mark.parametrize("large", [False, True])
def test_a_wrong_result_is_refused_at_every_size(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    op = scaling.OPS["Sp + Sp"]
    sizes = scaling.sizes(op, scaling.QUICK["largest"])

    def cheat(n: int) -> scaling.Contest:
        contest = op.make(n)
        right = contest.forward[OURS]
        if n == sizes[-1 if large else 0]:
            contest.forward[OURS] = lambda: right() * (1 + 1e-6)
        return contest

    monkeypatch.setattr(scaling, "OPS", {"Sp + Sp": replace(op, make=cheat)})
    with pytest.raises(AssertionError, match=r"Sp \+ Sp, N = \d+ forward: .* differs from gossamer"):
        scaling.compute(**scaling.QUICK)


def test_race_keeps_to_its_clock_and_its_least() -> None:
    tick = itertools.count()
    samples = race({"a": lambda: None}, budget=0.0, least=7, clock=lambda: float(next(tick)))
    assert samples == {"a": [1.0] * 7}


def test_cache_is_known() -> None:
    assert 2**18 <= machine.last_level_cache() <= 2**31


@pytest.mark.parametrize("look", ["default", "dark_background"])
def test_figures_have_captions(result: scaling.Result, look: str, tmp_path: Path) -> None:
    with style.context(look):
        drawn = scaling.figures(result)
        assert drawn.keys() == scaling.captions().keys()
        drawn["scaling"].savefig(tmp_path / "scaling.png")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    assert command.main(["--scaling", "--quick", "--out", str(tmp_path)]) == 0
    assert torch.get_num_threads() == threads
    assert "Time grows as nnz to the power of: SpMV" in capsys.readouterr().out
    assert (tmp_path / "scaling.png").read_bytes().startswith(b"\x89PNG")
