# SPDX-License-Identifier: BSD-3-Clause
"""The named matrices, and any Matrix Market file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
from scipy.sparse import csr_array

DEFAULT = ("tridiagonal", "poisson2d", "powerlaw")


def tridiagonal(n: int) -> csr_array:
    """The 1D Laplacian: 3 entries a row."""
    return scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), format="csr")


def poisson2d(side: int, lines: int | None = None) -> csr_array:
    """The 5-point Laplacian on a square grid, or on some of its lines."""
    (down, eye_down), (along, eye_along) = (
        (tridiagonal(n), scipy.sparse.eye_array(n, format="csr")) for n in (lines or side, side)
    )
    return csr_array(
        scipy.sparse.kron(down, eye_along, format="csr") + scipy.sparse.kron(eye_down, along, format="csr")
    )


def poisson3d(side: int) -> csr_array:
    """The 7-point Laplacian on a cube."""
    plane, line = poisson2d(side), tridiagonal(side)
    eye = scipy.sparse.eye_array
    return csr_array(
        scipy.sparse.kron(plane, eye(side), format="csr") + scipy.sparse.kron(eye(side**2), line, format="csr")
    )


def powerlaw(scale: int, edges: int, seed: int = 0) -> csr_array:
    """An R-MAT graph of 2^scale nodes (a, b, c, d = 0.57, 0.19, 0.19, 0.05); duplicate edges are merged."""
    rng = np.random.default_rng(seed)
    row = np.zeros(edges, np.int32)
    col = np.zeros(edges, np.int32)
    for _ in range(scale):  # each bit of (row, col) picks a quadrant
        u = rng.random(edges)
        row = 2 * row + (u >= 0.76)
        col = 2 * col + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
    n = 1 << scale
    return csr_array(scipy.sparse.coo_array((rng.random(edges), (row, col)), shape=(n, n)))


def graph(nodes: int, edges: int) -> csr_array:
    """A power-law graph of any number of nodes, self loops added: ogbn-arxiv's size for attention."""
    A = powerlaw((nodes - 1).bit_length(), edges).tocoo()
    loops = np.arange(nodes)
    row, col = (np.concatenate([axis % nodes, loops]) for axis in A.coords)
    return csr_array(scipy.sparse.coo_array((np.ones(len(row)), (row, col)), shape=(nodes, nodes)))


def tiny() -> csr_array:
    """20 x 15: nothing to compute, so what is timed is the call."""
    return csr_array(scipy.sparse.random_array((20, 15), density=0.2, rng=np.random.default_rng(0)))


def load(name: str, quick: bool = False) -> csr_array:
    """A named matrix (a small version of it if quick) or the .mtx file at that path; canonical CSR, float64."""
    if name == "tridiagonal":
        A = tridiagonal(2048 if quick else 32768)
    elif name == "poisson2d":
        A = poisson2d(50 if quick else 1000)
    elif name == "poisson300":
        A = poisson2d(40 if quick else 300)
    elif name == "poisson3d":
        A = poisson3d(10 if quick else 30)
    elif name == "powerlaw":
        A = powerlaw(11, 2**15) if quick else powerlaw(18, 2**22)
    elif name == "powerlaw16":
        A = powerlaw(10, 2**13) if quick else powerlaw(16, 600_000)
    elif name == "graph":
        A = graph(500, 4000) if quick else graph(169343, 2300000)
    elif name == "tiny":
        A = tiny()
    elif Path(name).is_file():
        A = csr_array(scipy.io.mmread(name))
    else:
        raise ValueError(f"no matrix {name!r}: want one of {', '.join(DEFAULT)} or the path of a .mtx file")
    if np.iscomplexobj(A):
        raise ValueError(f"{name} is complex; the benchmark is of real matrices")
    A = A.astype(np.float64)
    A.sum_duplicates()
    return A
