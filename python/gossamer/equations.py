# SPDX-License-Identifier: BSD-3-Clause
"""Graph attention, equation by equation: the 39 equations of Gould and Parhi, one small function each.

The plain path: slow, nothing fused, everything visible, differentiable throughout. ``docs/equations.md`` lists the
equations with their tests, and where the text of the paper slips. Shapes, for N nodes, E edges, K heads, F features in
and d features out of a head: H (N, F), W (K, F, d), a (K, d), X, Z, δ′ (N, K, d), c (N, K), L and S (E, K); what is a
vector on an edge in GATv2 is (E, K, d). Values on edges stand in the order of the pattern's entries, and row i of A
holds the edges that point at node i.

>>> A = gs.from_edge_index(torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]]))  # 0 → 1 → 2 → 0, and 0 → 0
>>> H, W, a = torch.randn(3, 5), torch.randn(2, 5, 4), torch.randn(2, 4)
>>> X = gs.equations.combination(H, W)
>>> c = gs.equations.coefficients_v1(X, a)
>>> S = gs.equations.attention(A, gs.equations.logits_v1(gs.equations.outer_sum(A, c, c)))
>>> gs.equations.aggregation(A, S, X).shape
torch.Size([3, 2, 4])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gossamer._pattern import Pattern
from gossamer._sparse_matrix import SparseMatrix
from gossamer.datasets import Graph

_ops = torch.ops.gossamer_equations

LEAKY_SLOPE = 0.2
"""Of σ_L where it is negative; σ_E is the ELU with α = 1."""

Adjacency = Pattern | SparseMatrix


def _pattern(A: Adjacency) -> tuple[list[Tensor], tuple[int, int]]:
    pattern = A.pattern if isinstance(A, SparseMatrix) else A
    if not isinstance(pattern, Pattern):
        raise TypeError(f"equations: A must be a Pattern or a SparseMatrix, not {type(A).__name__}")
    return pattern.tensors(), pattern.shape


def convolution(A: SparseMatrix, H: Tensor, W: Tensor) -> Tensor:
    """(1)  z_i = Σ_j A_ij h_j W, with W (F, d)."""
    pattern, shape = _pattern(A)
    return _ops.convolution(pattern, shape, A.values, H, W)


def combination(H: Tensor, W: Tensor) -> Tensor:
    """(2), (3)  X^k = H W^k."""
    return _ops.combination(H, W)


def coefficients_v1(X: Tensor, a: Tensor) -> Tensor:
    """(4)  c_i^k = a^kᵀ X_i^k."""
    return _ops.coefficients_v1(X, a)


def coefficients_v2(X: Tensor) -> Tensor:
    """(5)  C^k = X^k."""
    return _ops.coefficients_v2(X)


def outer_sum(A: Adjacency, c_dst: Tensor, c_src: Tensor) -> Tensor:
    """⊕ of (6) – (9)  c_dst,i + c_src,j at each edge (i, j)."""
    return _ops.outer_sum(*_pattern(A), c_dst, c_src)


def logits_v1(sum: Tensor, slope: float = LEAKY_SLOPE) -> Tensor:
    """(6), (8)  L = σ_L(c_dst ⊕ c_src)."""
    return _ops.logits_v1(sum, slope)


def logits_v2(a: Tensor, sum: Tensor, slope: float = LEAKY_SLOPE) -> Tensor:
    """(7), (9)  L = aᵀ σ_L(C_dst ⊕ C_src)."""
    return _ops.logits_v2(a, sum, slope)


def attention(A: Adjacency, L: Tensor) -> Tensor:
    """(10)  S_i = σ_S(L_i), over the edges that point at i."""
    return _ops.attention(*_pattern(A), L)


def aggregation(A: Adjacency, S: Tensor, X: Tensor) -> Tensor:
    """(11), (12)  Z^k = S^k X^k; X_src for GATv2."""
    return _ops.aggregation(*_pattern(A), S, X)


def hidden_output(Z: Tensor) -> Tensor:
    """(13)  H = ‖_k σ_E(Z^k)."""
    return _ops.hidden_output(Z)


def final_output(Z: Tensor) -> Tensor:
    """(14)  H_i = σ_S(1/K Σ_k Z_i^k)."""
    return _ops.final_output(Z)


def hidden_delta(Z: Tensor, delta: Tensor) -> Tensor:
    """(15)  δ′ = σ′_E(Z) ⊙ δ, with δ (N, K·d)."""
    return _ops.hidden_delta(Z, delta)


def output_jacobian(H: Tensor) -> Tensor:
    """(16)  ∂H_i/∂Z_i = diag(H_i) − H_iᵀ H_i, as (N, d, d)."""
    return _ops.output_jacobian(H)


def output_delta(jacobian: Tensor, delta: Tensor) -> Tensor:
    """(17)  δ′_i = ∂H_i/∂Z_i δ_i, as (N, d)."""
    return _ops.output_delta(jacobian, delta)


def head_delta(output_delta: Tensor, heads: int) -> Tensor:
    """(18)  δ′^k = 1/K δ′."""
    return _ops.head_delta(output_delta, heads)


def attention_gradient(A: Adjacency, delta_prime: Tensor, X: Tensor) -> Tensor:
    """(19)  ∂ℒ/∂S^k = δ′^k X^kᵀ at the edges; X_src for GATv2."""
    return _ops.attention_gradient(*_pattern(A), delta_prime, X)


def attention_jacobian(A: Adjacency, S: Tensor, i: int) -> Tensor:
    """(20)  ∂S_i/∂L_i = diag(S_i) − S_iᵀ S_i, as (K, m, m) for the m edges that point at i."""
    return _ops.attention_jacobian(*_pattern(A), S, i)


def logit_gradient(A: Adjacency, S: Tensor, dS: Tensor) -> Tensor:
    """(21)  ∂ℒ/∂L_i = ∂S_i/∂L_i ∂ℒ/∂S_iᵀ."""
    return _ops.logit_gradient(*_pattern(A), S, dS)


def slopes_v1(sum: Tensor, slope: float = LEAKY_SLOPE) -> Tensor:
    """(22), (23)  C′ = σ′_L(c_dst ⊕ c_src)."""
    return _ops.slopes_v1(sum, slope)


def edge_gradient_v1(C_prime: Tensor, dL: Tensor) -> Tensor:
    """(24)  Δ = C′ ⊙ ∂ℒ/∂L."""
    return _ops.edge_gradient_v1(C_prime, dL)


def slopes_v2(a: Tensor, sum: Tensor, slope: float = LEAKY_SLOPE) -> Tensor:
    """(27)  C′ = a ⊙ σ′_L(C_dst ⊕ C_src)."""
    return _ops.slopes_v2(a, sum, slope)


def edge_gradient_v2(C_prime: Tensor, dL: Tensor) -> Tensor:
    """(28)  Δ_ij = ∂ℒ/∂L_ij · C′_ij."""
    return _ops.edge_gradient_v2(C_prime, dL)


def destination_sum(A: Adjacency, Delta: Tensor) -> Tensor:
    """(25), (29)  Σ_dst,i = Σ_j Δ_ij."""
    return _ops.destination_sum(*_pattern(A), Delta)


def source_sum(A: Adjacency, Delta: Tensor) -> Tensor:
    """(25), (29)  Σ_src,j = Σ_i Δ_ij."""
    return _ops.source_sum(*_pattern(A), Delta)


def vector_gradient_v1(X: Tensor, Sigma: Tensor) -> Tensor:
    """(26)  ∂ℒ/∂a^k = X^kᵀ Σ^k."""
    return _ops.vector_gradient_v1(X, Sigma)


def vector_gradient_v2(dL: Tensor, sum: Tensor, slope: float = LEAKY_SLOPE) -> Tensor:
    """(30)  ∂ℒ/∂a = Σ_ij ∂ℒ/∂L_ij · σ_L(C_dst,i + C_src,j)."""
    return _ops.vector_gradient_v2(dL, sum, slope)


def bracket_v1(
    A: Adjacency, S: Tensor, delta_prime: Tensor, Sigma_dst: Tensor, a_dst: Tensor, Sigma_src: Tensor, a_src: Tensor
) -> Tensor:
    """[ ] of (32), (35)  Σ_dst a_dstᵀ + Σ_src a_srcᵀ + Sᵀ δ′."""
    return _ops.bracket_v1(*_pattern(A), S, delta_prime, Sigma_dst, a_dst, Sigma_src, a_src)


def bracket_v2(A: Adjacency, S: Tensor, delta_prime: Tensor, Sigma_src: Tensor) -> Tensor:
    """[ ] of (37), (39)  Σ_src + Sᵀ δ′."""
    return _ops.bracket_v2(*_pattern(A), S, delta_prime, Sigma_src)


def feature_gradient_v1(bracket: Tensor, W: Tensor) -> Tensor:
    """(31) – (33)  ∂ℒ/∂H = Σ_k [ ]^k W^kᵀ."""
    return _ops.feature_gradient_v1(bracket, W)


def feature_gradient_v2(Sigma_dst: Tensor, W_dst: Tensor, bracket: Tensor, W_src: Tensor) -> Tensor:
    """(36) – (38)  ∂ℒ/∂H = Σ_k (Σ_dst^k W_dst^kᵀ + [ ]^k W_src^kᵀ)."""
    return _ops.feature_gradient_v2(Sigma_dst, W_dst, bracket, W_src)


def weight_gradient(H: Tensor, bracket: Tensor) -> Tensor:
    """(34), (35), (39)  ∂ℒ/∂W^k = Hᵀ [ ]^k; Σ_dst in place of the bracket for W_dst."""
    return _ops.weight_gradient(H, bracket)


def loss(H: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """``ℒ = −1/|T| Σ_{i ∈ T} log H[i, y_i]`` over the nodes T of ``mask``."""
    return _ops.loss(H, y, mask)


def loss_gradient(H: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """δ^L = ∂ℒ/∂H^L."""
    return _ops.loss_gradient(H, y, mask)


def network(
    A: Adjacency,
    H: Tensor,
    y: Tensor,
    mask: Tensor,
    layers: Sequence[tuple[Tensor, Tensor, Tensor]],
    version: int = 1,
    slope: float = LEAKY_SLOPE,
) -> dict[str, Tensor]:
    """Every quantity of a network, forward and backward: ``"loss"``, then ``"layer1.W"``, ``"layer1.X"``, …

    ``layers``: (W, a_dst, a_src) each for version 1, (W_dst, W_src, a) for version 2. Hidden layers concatenate their
    heads and apply the ELU; the last one averages its heads and applies the softmax.

    >>> A, H, y = gs.eye(3), torch.randn(3, 5), torch.tensor([0, 1, 0])
    >>> layers = [(torch.randn(2, 5, 4), torch.randn(2, 4), torch.randn(2, 4)),
    ...           (torch.randn(1, 8, 2), torch.randn(1, 2), torch.randn(1, 2))]
    >>> all = gs.equations.network(A, H, y, torch.ones(3, dtype=torch.bool), layers)
    >>> all["layer1.S"].shape, all["layer2.dW"].shape
    (torch.Size([3, 2]), torch.Size([1, 8, 2]))
    """
    parameters = [parameter for layer in layers for parameter in layer]
    names, values = _ops.network(*_pattern(A), H, y, mask, parameters, version, slope)
    return dict(zip(names, values, strict=True))


def golden(
    graph: Graph,
    *,
    version: int = 1,
    hidden: Sequence[int] = (8,),
    heads: Sequence[int] = (2,),
    seed: int = 0,
    self_loops: bool = True,
    dtype: torch.dtype = torch.float64,
) -> dict[str, Tensor]:
    """Golden vectors: parameters drawn by a seed, and every quantity of the network on them, forward and backward.

    ``version`` 1 is GAT, 2 is GATv2. ``hidden``: the features of a head in each hidden layer; the last layer has one
    for each class. ``heads``: those of each layer, or one number for all. With ``self_loops``, every node has an edge
    to itself. ``docs/equations.md`` has the names, shapes and equations.

    >>> graph = gs.datasets.stochastic_block_model((60, 80), seed=0)
    >>> arrays = gs.equations.golden(graph, version=2, hidden=[5], heads=[3, 1])
    >>> arrays["layer1.X_src"].shape, arrays["layer2.H"].shape
    (torch.Size([140, 3, 5]), torch.Size([140, 2]))
    """
    A = graph.adjacency
    x = graph.x.to_dense() if isinstance(graph.x, SparseMatrix) else graph.x
    nodes = x, graph.y, graph.train_mask, graph.num_classes
    names, values = torch.ops.gossamer.golden(
        A.pattern.tensors(), A.shape, *nodes, version, list(hidden), list(heads), seed, self_loops, dtype
    )
    return dict(zip(names, values, strict=True))
