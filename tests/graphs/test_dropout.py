# SPDX-License-Identifier: BSD-3-Clause
"""gs.dropout: the mask is a function of seed and place, each element by SplitMix64 as written down here in Python."""

from __future__ import annotations

import pytest
import torch

import gossamer as gs

WORD = 2**64 - 1


def mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def factor(place: int, p: float, seed: int) -> float:
    step = 0x9E3779B97F4A7C15
    key = mixed((seed + step) & WORD)
    kept = mixed((key + step * (place + 1)) & WORD) >> 11 >= int(p * 2**53)
    return 1 / (1 - p) if kept else 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [0, 1, 5, 16, 17, 1000])
def test_is_its_definition(dtype: torch.dtype, n: int) -> None:
    x = torch.arange(1.0, n + 1, dtype=dtype)
    want = torch.tensor([factor(k, 0.3, 7) for k in range(n)], dtype=torch.float64).to(dtype) * x
    assert torch.equal(gs.dropout(x, 0.3, seed=7), want)


def test_any_shape_and_layout() -> None:
    x = torch.randn(6, 5, 4).transpose(0, 2)
    factors = torch.tensor([factor(k, 0.5, 2) for k in range(x.numel())]).view(x.shape)
    assert torch.equal(gs.dropout(x, 0.5, seed=2), x * factors)


def test_every_thread_count_draws_the_same() -> None:
    x = torch.ones(100_003)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = gs.dropout(x, 0.6, seed=3)
        torch.set_num_threads(3)
        assert torch.equal(gs.dropout(x, 0.6, seed=3), one)
    finally:
        torch.set_num_threads(threads)
    assert abs(one.count_nonzero().item() / len(x) - 0.4) < 5 * (0.24 / len(x)) ** 0.5


def test_manual_seed_governs_it_and_draws_differ() -> None:
    x = torch.ones(64)
    torch.manual_seed(1)
    first, second = gs.dropout(x), gs.dropout(x)
    torch.manual_seed(1)
    assert torch.equal(gs.dropout(x), first)
    assert not torch.equal(first, second)


def test_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(50, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda t: gs.dropout(t, 0.4, seed=5), x)


def test_ends_of_p_and_evaluation() -> None:
    x = torch.randn(20)
    assert torch.equal(gs.dropout(x, 0.0), x)
    assert torch.equal(gs.dropout(x, 0.9, training=False), x)
    assert gs.dropout(x, 1.0).count_nonzero() == 0


def test_is_the_mask_of_attention() -> None:
    """The weights of attention are dropped at the same places as ones of their shape."""
    P, _ = gs.graph_pattern(torch.randint(0, 30, (2, 200)), (30, 30))
    x, a, b = torch.randn(30, 3, 4), torch.randn(30, 3), torch.randn(30, 3)
    _, all_weights = gs.gat_with_weights(P, x, a, b)
    _, weights = gs.gat_with_weights(P, x, a, b, dropout=0.5, seed=9)
    torch.testing.assert_close(weights, all_weights * gs.dropout(torch.ones(200, 3), 0.5, seed=9))


@pytest.mark.parametrize("heads", [1, 3, 8])
def test_entries_with_keys_are_drawn_by_them(heads: int) -> None:
    """Fused and composed, values and gradients of both kinds: entry p of head h by keys[p] · heads + h."""
    P, _ = gs.graph_pattern(torch.randint(0, 30, (2, 200)), (30, 30))
    keys = torch.randint(-(2**63), 2**63 - 1, (200,))
    factors = torch.tensor([[factor((k * heads + h) & WORD, 0.5, 9) for h in range(heads)] for k in keys.tolist()])
    drawn = {"dropout": 0.5, "seed": 9, "keys": keys}
    x, y = (torch.randn(30, heads, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    a, b = (torch.randn(30, heads, dtype=torch.float64, requires_grad=True) for _ in range(2))
    att = torch.randn(heads, 4, dtype=torch.float64, requires_grad=True)
    for fused, composed, given in (
        (gs.gat_attention, gs.gat_with_weights, (x, a, b)),
        (gs.gatv2_attention, gs.gatv2_with_weights, (x, y, att)),
    ):
        _, all_weights = composed(P, *given)
        Z, weights = composed(P, *given, **drawn)
        assert torch.equal(weights == 0, factors == 0)
        torch.testing.assert_close(weights, all_weights * factors)
        torch.testing.assert_close(fused(P, *given, **drawn), Z)
        wanted = torch.autograd.grad(Z.square().sum(), given)
        torch.testing.assert_close(torch.autograd.grad(fused(P, *given, **drawn).square().sum(), given), wanted)
    torch.autograd.gradgradcheck(lambda *t: gs.gat_attention(P, *t, **drawn), (x, a, b), fast_mode=True)


def test_keys_that_do_not_fit() -> None:
    P = gs.eye(3).pattern
    x, a = torch.ones(3, 1, 2), torch.ones(3, 1)
    with pytest.raises(
        ValueError, match=r"gat_attention: keys must be a number for each of the 3 entries, .* not \(4,\)"
    ):
        gs.gat_attention(P, x, a, a, dropout=0.5, seed=1, keys=torch.arange(4))
    with pytest.raises(TypeError, match="gatv2_attention: keys must be int64, not Int"):
        gs.gatv2_attention(P, x, x, x[0], dropout=0.5, seed=1, keys=torch.arange(3, dtype=torch.int32))


def test_compiles() -> None:
    x = torch.randn(33)
    compiled = torch.compile(lambda t: gs.dropout(t, 0.5, seed=4) * 2, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), gs.dropout(x, 0.5, seed=4) * 2)


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_p_outside_its_range(p: float) -> None:
    with pytest.raises(ValueError, match=r"dropout: p must be in \[0, 1\]"):
        gs.dropout(torch.ones(3), p)


def test_integers() -> None:
    with pytest.raises(TypeError, match="dropout: x must be floating point"):
        gs.dropout(torch.ones(3, dtype=torch.int64))
