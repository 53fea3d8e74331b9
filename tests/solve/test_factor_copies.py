# SPDX-License-Identifier: BSD-3-Clause
"""Factors copied, saved, sent and exported: each object has its own, and none names another's."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import torch
import torch.multiprocessing  # registers torch's reducers

import gossamer as gs

OTHER_PROCESS = """
import sys, torch, gossamer as gs
others = [gs.linalg.factorize(gs.from_dense(torch.eye(2) * k)) for k in range(1, 50)]
print(EXPRESSION)
"""


def in_another_process(expression: str) -> str:
    """What a process that has factored other matrices of the same size prints."""
    program = OTHER_PROCESS.replace("EXPRESSION", expression)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def matrix() -> gs.SparseMatrix:
    return gs.from_dense(torch.tensor([[5.0, 0.0], [1.0, 5.0]]))


def test_a_saved_factor_is_that_of_its_matrix(tmp_path: Path) -> None:
    factor = gs.linalg.factorize(matrix())
    path = tmp_path / "factor.pt"
    torch.save(factor, path)
    assert in_another_process(f"round(torch.load({str(path)!r}, weights_only=False).logdet().exp().item())") == "25"
    assert round(pickle.loads(pickle.dumps(factor)).logdet().exp().item()) == 25
    assert round(factor.logdet().exp().item()) == 25  # saving took nothing away


def test_a_saved_matrix_is_solved_anew(tmp_path: Path) -> None:
    A = matrix()
    gs.linalg.solve(A, torch.ones(2))
    path = tmp_path / "matrix.pt"
    torch.save(A, path)
    program = f"gs.linalg.factorize(torch.load({str(path)!r}, weights_only=False)).logdet().exp().round().item()"
    assert in_another_process(program) == "25.0"


class Model(torch.nn.Module):
    """Holds a matrix and its factors, as users do."""

    def __init__(self) -> None:
        super().__init__()
        self.A = gs.poisson(3)
        self.factor = gs.linalg.factorize(self.A)

    def forward(self, b: torch.Tensor) -> torch.Tensor:
        return self.factor.solve(b) + gs.linalg.solve(self.A, b)


def test_a_copied_model_outlives_the_original() -> None:
    model, b = Model(), torch.tensor([0.0, 0.0, 4.0])
    want = model(b)
    best, averaged = copy.deepcopy(model), torch.optim.swa_utils.AveragedModel(model)
    del model
    torch.testing.assert_close(best(b), want)
    torch.testing.assert_close(averaged(b), want)


def test_gradients_of_a_copied_factor_go_to_the_copied_matrix() -> None:
    factor = gs.linalg.factorize(matrix().requires_grad_())
    copied = copy.deepcopy(factor)
    copied.solve(torch.ones(2)).sum().backward()
    assert copied.A.grad is not None
    assert factor.A.grad is None


def test_a_matrix_sent_to_a_process_stays_usable() -> None:
    """Spawning pickles its arguments with torch's own reducers, which move storage to shared memory."""
    A, b = gs.poisson(3), torch.tensor([0.0, 0.0, 4.0])
    factor, want = gs.linalg.factorize(A), gs.linalg.solve(A, b)
    buffer = io.BytesIO()
    ForkingPickler(buffer).dump((A, factor))
    torch.testing.assert_close(factor.solve(b), want)
    torch.testing.assert_close(gs.linalg.solve(A, b), want)
    there_A, there_factor = pickle.loads(buffer.getvalue())
    torch.testing.assert_close(there_factor.solve(b), want)
    torch.testing.assert_close(gs.linalg.solve(there_A, b), want)


def test_an_exported_solve_analyses_where_it_runs(tmp_path: Path) -> None:
    class Solve(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.A = matrix()

        def forward(self, b: torch.Tensor) -> torch.Tensor:
            return gs.linalg.solve(self.A, b)

    module, b = Solve(), torch.tensor([5.0, 6.0])
    module(b)  # the analysis is kept by now
    path = tmp_path / "solve.pt2"
    torch.export.save(torch.export.export(module, (b,)), path)
    assert in_another_process(f"torch.export.load({str(path)!r}).module()(torch.tensor([5.0, 6.0])).tolist()") == str(
        module(b).tolist()
    )


def test_a_factor_keeps_the_values_it_was_made_of() -> None:
    A = matrix().to(torch.float64).requires_grad_()
    before, b = A.values, torch.ones(2, dtype=torch.float64)
    for M in (A, A.T):
        factor = gs.linalg.factorize(M)
        x, dense = factor.solve(b), factor.A.to_dense().detach()
        M.values = (M.values * 3).detach().requires_grad_()
        torch.testing.assert_close(factor.solve(b), x)
        torch.testing.assert_close(factor.A.to_dense(), dense)
        (gradient,) = torch.autograd.grad(factor.logdet(), before)
        torch.testing.assert_close(
            gradient, torch.linalg.inv(A.with_values(before).to_dense().detach()).T[[0, 1, 1], [0, 0, 1]]
        )
        A.values = before
