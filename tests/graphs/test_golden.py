# SPDX-License-Identifier: BSD-3-Clause
"""Golden vectors: the command writes them, NumPy reads them and recomputes every one, densely."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gossamer as gs
from gossamer.__main__ import main

Arrays = dict[str, np.ndarray[Any, Any]]
SLOPE = 0.2


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True, initial=-1e300))
    return e / e.sum(axis, keepdims=True)


def forward(q: Arrays, H: np.ndarray, mask: np.ndarray, last: bool) -> Arrays:
    """X, c, L, S, Z, H, everything on all pairs of nodes; `mask` is where the edges are."""
    f: Arrays = {}
    if "W" in q:
        f["X"] = np.einsum("nf,kfd->nkd", H, q["W"])
        f["c_dst"], f["c_src"] = (np.einsum("nkd,kd->nk", f["X"], q[a]) for a in ("a_dst", "a_src"))
        f["sum"] = f["c_dst"][:, None] + f["c_src"][None]
        f["L"] = np.where(f["sum"] > 0, f["sum"], SLOPE * f["sum"])
        values = f["X"]
    else:
        f["X_dst"], f["X_src"] = (np.einsum("nf,kfd->nkd", H, q[W]) for W in ("W_dst", "W_src"))
        f["sum"] = f["X_dst"][:, None] + f["X_src"][None]
        f["L"] = np.einsum("ijkd,kd->ijk", np.where(f["sum"] > 0, f["sum"], SLOPE * f["sum"]), q["a"])
        values = f["X_src"]
    f["S"] = softmax(np.where(mask[..., None], f["L"], -np.inf), 1)
    f["Z"] = np.einsum("ijk,jkd->ikd", f["S"], values)
    elu = np.where(f["Z"] > 0, f["Z"], np.expm1(f["Z"])).reshape(len(H), -1)
    f["H"] = softmax(f["Z"].mean(1), 1) if last else elu
    return f


def backward(q: Arrays, f: Arrays, H: np.ndarray, delta: np.ndarray, last: bool) -> Arrays:
    b: Arrays = {"delta": delta}
    heads = f["Z"].shape[1]
    if last:
        h = f["H"]
        b["jacobian"] = np.stack([np.diag(row) - np.outer(row, row) for row in h])
        b["output_delta"] = h * delta - h * (h * delta).sum(1, keepdims=True)
        b["delta_prime"] = np.repeat(b["output_delta"][:, None] / heads, heads, 1)
    else:
        b["delta_prime"] = np.where(f["Z"] > 0, 1, np.exp(f["Z"])) * delta.reshape(f["Z"].shape)
    v1, S = "W" in q, f["S"]
    b["dS"] = np.einsum("ikd,jkd->ijk", b["delta_prime"], f["X" if v1 else "X_src"])
    b["dL"] = S * b["dS"] - S * (S * b["dS"]).sum(1, keepdims=True)
    slopes = np.where(f["sum"] > 0, 1, SLOPE)
    b["C_prime"] = slopes if v1 else slopes * q["a"]
    b["Delta_edge"] = b["C_prime"] * (b["dL"] if v1 else b["dL"][..., None])
    b["Sigma_dst"], b["Sigma_src"] = b["Delta_edge"].sum(1), b["Delta_edge"].sum(0)
    passed = np.einsum("ijk,ikd->jkd", S, b["delta_prime"])
    if v1:
        b["da_dst"], b["da_src"] = (np.einsum("nkd,nk->kd", f["X"], b[s]) for s in ("Sigma_dst", "Sigma_src"))
        b["bracket"] = passed + sum(b[f"Sigma_{end}"][..., None] * q[f"a_{end}"] for end in ("dst", "src"))
        b["dW"] = np.einsum("nf,nkd->kfd", H, b["bracket"])
        b["dH"] = np.einsum("nkd,kfd->nf", b["bracket"], q["W"])
    else:
        b["da"] = np.einsum("ijk,ijkd->kd", b["dL"], np.where(f["sum"] > 0, f["sum"], SLOPE * f["sum"]))
        b["bracket"] = passed + b["Sigma_src"]
        b["dW_dst"], b["dW_src"] = (np.einsum("nf,nkd->kfd", H, b[name]) for name in ("Sigma_dst", "bracket"))
        b["dH"] = sum(np.einsum("nkd,kfd->nf", b[s], q[W]) for s, W in (("Sigma_dst", "W_dst"), ("bracket", "W_src")))
    return b


def recompute(file: Arrays, layers: int) -> Arrays:
    """Every array of a file from the graph, the features and the parameters in it."""
    n = len(file["y"])
    rows = np.repeat(np.arange(n), np.diff(file["indptr"]))
    mask = np.zeros((n, n), bool)
    mask[rows, file["indices"]] = True
    parameters = [{name: file[f"layer{l + 1}.{name}"] for name in ("W", "W_dst", "W_src", "a", "a_dst", "a_src")
                   if f"layer{l + 1}.{name}" in file} for l in range(layers)]  # fmt: skip
    inputs, forwards = [file["H0"]], []
    for l, q in enumerate(parameters):
        forwards.append(forward(q, inputs[-1], mask, l == layers - 1))
        inputs.append(forwards[-1]["H"])
    nodes = np.flatnonzero(file["train_mask"])
    right = inputs[-1][nodes, file["y"][nodes]]
    delta = np.zeros_like(inputs[-1])
    delta[nodes, file["y"][nodes]] = -1 / (len(nodes) * right)
    found = {name: file[name] for name in ("indptr", "indices", "H0", "y", "train_mask")}
    found["loss"] = -np.log(right).mean()
    for l in reversed(range(layers)):
        b = backward(parameters[l], forwards[l], inputs[l], delta, l == layers - 1)
        delta = b["dH"]
        found |= {f"layer{l + 1}.{name}": value for name, value in (parameters[l] | forwards[l] | b).items()}
    return {k: v[rows, file["indices"]] if v.shape[:2] == (n, n) else v for k, v in found.items()}


@pytest.mark.parametrize("model", ["gat", "gatv2"])
def test_the_file_is_what_numpy_computes(tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "golden.npz"
    options = ["--model", model, "--hidden", "5", "3", "--heads", "2", "3", "2", "--seed", "4"]
    assert main(["export-golden", "--data", "synthetic", *options, "--out", str(out)]) == 0
    assert "180 nodes" in capsys.readouterr().out
    with np.load(out, allow_pickle=False) as contents:
        file = dict(contents)
    expected = recompute(file, layers=3)
    assert set(file) == set(expected)
    for name, array in file.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert file["layer1.L"].shape == (len(file["indices"]), 2)
    assert file["layer3.H"].shape == (180, 3)


def test_real_graph(tmp_path: Path, data: Path) -> None:
    out = tmp_path / "cora.npz"
    arguments = ["export-golden", "--data", str(data / "planetoid" / "cora"), "--model", "gat", "--dtype", "float32"]
    assert main([*arguments, "--hidden", "3", "--heads", "2", "1", "--out", str(out)]) == 0
    with np.load(out) as file:
        assert file["indices"].shape == (2 * 5278 + 2708,)  # with self-loops
        assert file["layer2.H"].shape == (2708, 7)
        assert file["layer2.H"].dtype == np.float32
        assert np.isfinite(file["layer1.dW"]).all()


def test_the_same_options_give_the_same_bytes(tmp_path: Path) -> None:
    graph = gs.datasets.power_law(300, 900, seed=1)
    contents = []
    for k, threads in enumerate((1, 2)):
        torch.set_num_threads(threads)
        again = gs.datasets.power_law(300, 900, seed=1)
        gs.write_npz(tmp_path / f"{k}.npz", {"x": again.x, "indices": again.adjacency.indices})
        contents.append((tmp_path / f"{k}.npz").read_bytes())
    assert contents[0] == contents[1]
    first, other = (gs.equations.golden(graph, seed=seed)["layer1.W"] for seed in (0, 1))
    assert torch.equal(first, gs.equations.golden(graph, seed=0)["layer1.W"])
    assert not torch.equal(first, other)
    assert gs.equations.golden(graph, self_loops=False)["indices"].shape == graph.adjacency.indices.shape


def test_npz_of_every_type_and_shape(tmp_path: Path) -> None:
    arrays = {
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "one": torch.arange(3),
        "strided": torch.arange(12.0).reshape(3, 4).T,
        "half": torch.ones(2, 1, 2, dtype=torch.float16),
        "mask": torch.tensor([True, False]),
        "int32": torch.arange(2, dtype=torch.int32),
        "empty": torch.empty(0, 3),
        "a.b": torch.randn(70, 70, requires_grad=True),
    }
    path = tmp_path / "a.npz"
    gs.write_npz(path, arrays)
    assert zipfile.ZipFile(path).testzip() is None
    with np.load(path, allow_pickle=False) as back:
        assert back.files == list(arrays)
        for name, tensor in arrays.items():
            np.testing.assert_array_equal(back[name], tensor.detach().numpy(), strict=True)
    with pytest.raises(TypeError, match="cannot write x, which is BFloat16"):
        gs.write_npz(path, {"x": torch.ones(2, dtype=torch.bfloat16)})
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        gs.write_npz(tmp_path / "a.zip", arrays)
    with pytest.raises(FileNotFoundError):
        gs.write_npz(tmp_path / "no" / "a.npz", arrays)
    gs.write_npz(path, {})
    assert np.load(path).files == []


MISTAKES = {
    "no such folder": (["--data", "/nowhere", "--out", "a.npz"], "No such file or directory: '/nowhere/adjacency.mtx'"),
    "no .npz": (["--data", "synthetic", "--out", "a.txt"], "the name must end in .npz, not a.txt"),
    "no heads": (
        ["--data", "synthetic", "--heads", "0", "--out", "a.npz"],
        "--heads must be in 1 … 2147483647, not [0]",
    ),
    "too few heads": (["--data", "synthetic", "--heads", "1", "2", "3", "--out", "a.npz"], "the heads of 2 layers"),
    "no such model": (["--data", "synthetic", "--model", "gcn", "--out", "a.npz"], "invalid choice: 'gcn'"),
    "no data": (["--out", "a.npz"], "the following arguments are required: --data"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = MISTAKES[what]
    try:
        code = main(["export-golden", *arguments])
    except SystemExit as exit:
        code = exit.code
    captured = capsys.readouterr()
    assert code == 2
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_as_a_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gossamer", "export-golden", "--data", str(tmp_path), "--out", "a.npz"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("gossamer export-golden: [Errno 2]")
    assert done.stderr.count("\n") == 1
