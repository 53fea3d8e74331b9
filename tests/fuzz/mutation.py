# SPDX-License-Identifier: BSD-3-Clause
"""Random changes: of the bytes of a file, and of the arguments of an op."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128]
DTYPES += [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
NUMBERS = [0, 1, 2, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1]
WRITTEN = [b"0", b"-1", b"1", b"7", b"2147483648", b"1000000000000", b"9223372036854775808", b"1e999", b"nan"]


def mutated(random: Random, data: bytes, words: Sequence[bytes]) -> bytes:
    """The bytes with one to six changes; words are what the format is made of."""
    text = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 3, 6])):
        at = random.randint(0, len(text))
        end = min(at + random.choice([1, 1, 2, 4, 8, 40]), len(text))
        kind = random.randrange(8)
        if kind == 0 and text:
            text[at % len(text)] ^= 1 << random.randrange(8)
        elif kind == 1 and text:
            text[at % len(text)] = random.randrange(256)
        elif kind == 2:
            del text[at:end]
        elif kind == 3:
            text[at:at] = text[at:end]
        elif kind == 4:
            text[at:end] = random.choice(words)
        elif kind == 5:
            text[at:at] = random.choice(words)
        elif kind == 6:
            width = random.choice([2, 4, 8])
            text[at : at + width] = (random.choice(NUMBERS) % 256**width).to_bytes(width, "little")
        else:
            text[at:end] = random.choice(WRITTEN)
    return bytes(text)


def strided(random: Random, t: Tensor) -> Tensor:
    """The same numbers, laid out in another way: by columns, with gaps, behind something, repeated without memory."""
    kind = random.randrange(4)
    if kind == 0 and t.dim() > 1:
        return t.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == 1 and t.dim():
        return torch.stack([t, t], -1)[..., 1]
    if kind == 2 and t.dim():
        return torch.cat([t[:1], t])[1:]
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] and t.is_floating_point() else t.clone()


def resized(random: Random, t: Tensor, contents: bool) -> Tensor:
    """Another length or another number of dimensions, of the same numbers. Copied: beyond a view lies the rest.

    Integers that are trusted may be offsets, after which smaller ones would be others: the last is repeated.
    """
    kind = random.randrange(7)
    if kind == 0:
        return t.new_empty(0)
    if kind == 1:
        return t.unsqueeze(random.randint(0, t.dim()))
    if t.dim() == 0:
        return t.expand(random.randint(0, 4)).clone()
    if kind == 2:
        return t[: random.randint(0, t.shape[0])].clone()
    if kind == 3:
        more = random.randint(0, t.shape[0])
        return torch.cat([t, t[:more] if contents or t.is_floating_point() else t[-1:].expand(more, *t.shape[1:])])
    if kind == 4 and t.shape[0]:
        return t[random.randrange(t.shape[0])].clone()
    if kind == 5:
        return t.unsqueeze(-1).expand(*t.shape, random.randint(0, 3)).clone()
    return t.reshape(-1).clone()


def other_tensor(random: Random, t: Tensor, contents: bool) -> Tensor:
    """A tensor in place of t: another layout, size, dtype or device or, where integers are not trusted, contents."""
    if t.layout is not torch.strided:
        return t.to_dense()
    kind = random.randrange(6)
    if kind == 0:
        return strided(random, t)
    if kind in (1, 2):
        return resized(random, t, contents)
    if kind == 3 and not t.is_floating_point() and not contents:  # a cast of small integers keeps them
        return t.to(random.choice([torch.int64, torch.int32, torch.int16, torch.float64]))
    if kind == 3:
        return t.to(random.choice(DTYPES))
    if kind == 4:
        return t.to("meta")
    if t.is_floating_point() or t.is_complex():
        return torch.full_like(t, random.choice([float("nan"), float("inf"), 0.0, -1.0, 60000.0]))
    if contents and t.dtype is not torch.bool:
        low, high = random.choice([(-3, 12), (0, 4), (-(2**31), 2**31 - 1), (0, 100)])
        high = min(high, torch.iinfo(t.dtype).max)
        return torch.randint(max(low, torch.iinfo(t.dtype).min), high, t.shape, dtype=t.dtype)
    return t.clone()


def other_number(random: Random, x: Any) -> Any:
    """Another number, flag or word in place of x."""
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return random.choice([-1, 0, 1, x - 1, x + 1, random.randint(-3, 20), 2**62, -(2**63)])
    if isinstance(x, float):
        return random.choice([-1.0, 0.0, 1.0, float("nan"), float("inf"), 1e-300])
    if isinstance(x, str):
        return random.choice(["", "nothing", "lu", "cholesky", "eigen", "cg", "LM", "SA", x + "\0"])
    return x
