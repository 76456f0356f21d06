"""Operators called as users call them: shapes, strides and dtypes that no sample has, against torch in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from portability.backend import Session, blocks_of, discover
from portability.kernels import elementwise as ours
from portability.kernels.cross_entropy import cross_entropy
from portability.kernels.cumsum import cumsum
from portability.kernels.embedding import embedding
from portability.kernels.flash_attention import flash_attention
from portability.kernels.grouped_matmul import grouped_matmul
from portability.kernels.histogram import histogram
from portability.kernels.layer_norm import layer_norm
from portability.kernels.layer_norm_linear_gelu import layer_norm_linear_gelu
from portability.kernels.linear import linear
from portability.kernels.matmul import matmul
from portability.kernels.rms_norm import rms_norm
from portability.kernels.softmax import softmax
from portability.kernels.swiglu import swiglu
from portability.kernels.topk import topk

HALF, BRAIN = torch.float16, torch.bfloat16
NEAR = {torch.float64: 1e-12, torch.float32: 1e-4, HALF: 5e-3, BRAIN: 4e-2}


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + len(shape))).to(dtype)


def whole(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=dtype)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Attention with the mask at the bottom right; a row that sees nothing gives 0."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // max(1, k.shape[1]), 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
        scores = scores.masked_fill(~seen, -math.inf)
    return (torch.softmax(scores, -1).nan_to_num(0) @ v).transpose(1, 2)


def last(function: Callable[..., Any], *more: Any, **options: Any) -> Callable[..., torch.Tensor]:
    """Return torch's operation over the last dimension, whose size it wants to be told."""
    return lambda x, *rest: function(x, x.shape[-1:], *rest, *more, **options)


def rows(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


@dataclass(frozen=True)
class Odd:
    """A call of an operator of ours, and of torch's."""

    name: str
    operator: Callable[..., torch.Tensor]
    torch: Callable[..., torch.Tensor]
    operands: tuple[torch.Tensor, ...]


CALLS = [
    Odd("softmax-no-columns", softmax, rows, (draw(3, 0),)),
    Odd("softmax-five-dimensions", softmax, rows, (draw(2, 1, 3, 2, 17, dtype=BRAIN),)),
    Odd("softmax-one-row", softmax, rows, (draw(1000, dtype=HALF),)),
    Odd("softmax-one-row-for-all", softmax, rows, (draw(1, 33).expand(7, 33),)),
    Odd("softmax-one-value-a-row", softmax, rows, (draw(5, 1).expand(5, 8),)),
    Odd("softmax-70001-columns", softmax, rows, (draw(1, 70001),)),
    Odd("layer-norm-one-row", layer_norm, last(F.layer_norm), (draw(7), draw(7) * 2, draw(7) + 1)),
    Odd("layer-norm-one-column", layer_norm, last(F.layer_norm), (draw(5, 1),)),
    Odd("layer-norm-bias-alone", lambda x, b: layer_norm(x, None, b),
        lambda x, b: F.layer_norm(x, (9,), None, b), (draw(5, 9), draw(9))),
    Odd("rms-norm-20011", rms_norm, last(F.rms_norm, 1e-6), (draw(2, 20011, dtype=BRAIN), draw(20011, dtype=BRAIN))),
    Odd("matmul-primes", matmul, torch.matmul, (draw(131, 257, dtype=HALF), draw(257, 67, dtype=HALF))),
    Odd("matmul-outer", matmul, torch.matmul, (draw(1, 1), draw(1, 300))),
    Odd("matmul-strides-of-0", matmul, torch.matmul, (draw(1, 40).expand(30, 40), draw(40, 1).expand(40, 20))),
    Odd("matmul-every-third", matmul, torch.matmul, (draw(60, 50)[::3, ::2], draw(75, 31)[::3])),
    Odd("matmul-float64", matmul, torch.matmul, (draw(33, 65).double(), draw(65, 17).double())),
    Odd("linear-one-row", linear, F.linear, (draw(13), draw(7, 13))),
    Odd("linear-no-features", linear, F.linear, (draw(3, 13), draw(0, 13))),
    Odd("linear-four-dimensions-silu", lambda *xwb: linear(*xwb, "silu"), lambda *xwb: F.silu(F.linear(*xwb)),
        (draw(2, 2, 3, 13, dtype=BRAIN), draw(7, 13, dtype=BRAIN), draw(7, dtype=BRAIN))),
    Odd("attention-head-of-1", flash_attention, attention, (draw(1, 5, 1, 1), draw(1, 7, 1, 1), draw(1, 7, 1, 1) * 2)),
    Odd("attention-head-of-3-causal", lambda *qkv: flash_attention(*qkv, causal=True),
        lambda *qkv: attention(*qkv, causal=True),
        (draw(2, 17, 5, 3, dtype=BRAIN), draw(2, 17, 1, 3, dtype=BRAIN), draw(2, 17, 1, 3, dtype=BRAIN))),
    Odd("attention-head-of-200", lambda *qkv: flash_attention(*qkv, causal=True),
        lambda *qkv: attention(*qkv, causal=True),
        (draw(1, 19, 2, 200, dtype=HALF), draw(1, 90, 2, 200, dtype=HALF), draw(1, 90, 2, 200, dtype=HALF))),
    Odd("attention-one-prompt-for-all", flash_attention, attention,
        (draw(2, 9, 2, 16), draw(1, 9, 2, 16).expand(2, 9, 2, 16), draw(1, 9, 2, 16).expand(2, 9, 2, 16))),
    Odd("attention-no-query", flash_attention, attention, (draw(1, 0, 2, 16), draw(1, 3, 2, 16), draw(1, 3, 2, 16))),
    Odd("swiglu-one-row", swiglu, lambda gate, up: F.silu(gate) * up, (draw(9), draw(9) + 1)),
    Odd("swiglu-every-second", lambda p: swiglu(p[..., ::2], p[..., 1::2]),
        lambda p: F.silu(p[..., ::2]) * p[..., 1::2], (draw(3, 4, 22, dtype=HALF),)),
    Odd("cross-entropy-one-class", cross_entropy, F.cross_entropy, (draw(3, 1), whole(0, 1, 3))),
    Odd("cross-entropy-50257", cross_entropy, F.cross_entropy, (draw(2, 50257, dtype=HALF), torch.tensor([0, 50256]))),
    Odd("embedding-one-id", embedding, lambda w, i: w[i], (draw(5, 3), torch.tensor(2))),
    Odd("embedding-four-dimensions", embedding, lambda w, i: w[i.long()],
        (draw(5, 1, dtype=BRAIN), whole(0, 5, 2, 1, 3, 2, dtype=torch.int32))),
    Odd("layer-norm-linear-gelu-primes", layer_norm_linear_gelu,
        lambda x, g, b, w, c: F.gelu(F.linear(F.layer_norm(x, (11,), g, b), w, c)),
        (draw(3, 5, 11), draw(11), draw(11) + 1, draw(13, 11), draw(13))),
    Odd("add-a-scalar", ours.add, torch.add, (draw(), draw(3, 2, 2))),
    Odd("mul-backwards", ours.mul, torch.mul, (draw(5, 6).flip(0), draw(5, 6) + 1)),
    Odd("div-two-bytes", ours.div, torch.div, (draw(7, dtype=BRAIN), draw(7, dtype=BRAIN) + 5)),
    Odd("gelu-transposed", ours.gelu, F.gelu, (draw(3, 2, 5, dtype=HALF).transpose(0, 2),)),
]  # fmt: skip
EXACT = [
    Odd("matmul-int8", matmul, lambda a, b: a.int() @ b.int(), (
        whole(-128, 128, 33, 65, dtype=torch.int8), whole(-128, 128, 65, 17, dtype=torch.int8))),
    Odd("sub-wraps", ours.sub, torch.sub, (torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([2, 1]).byte())),
    Odd("maximum-of-64-bits", ours.maximum, torch.maximum,
        (torch.tensor([2**62, -(2**63)]), torch.tensor([2**62 + 1, 2**63 - 1]))),
    Odd("cumsum-int8", cumsum, lambda x: x.long().cumsum(-1), (whole(-128, 127, 2, 3, 1031, dtype=torch.int8),)),
    Odd("histogram-of-one", lambda x: histogram(x, 4), lambda x: torch.bincount(x.view(1), minlength=4),
        (torch.tensor(2),)),
    Odd("topk-places", lambda x: topk(x, 3)[1], lambda x: x.topk(3).indices, (draw(40),)),
    Odd("topk-none", lambda x: topk(x, 0)[0], lambda x: x.topk(0).values, (draw(3, 4),)),
    Odd("topk-128-of-129", lambda x: topk(x, 128)[0], lambda x: x.topk(128).values, (draw(2, 129, dtype=BRAIN),)),
]  # fmt: skip


@pytest.fixture
def interpreter() -> Iterator[Session]:
    backend = discover()["interpreter"]
    with backend.open(backend.status()[0]) as session, blocks_of("interpreter", "interpreter"):
        yield session
        assert not session.problems, session.problems[0].message


def leaf(t: torch.Tensor) -> torch.Tensor:
    return t.detach().requires_grad_() if t.is_floating_point() else t


def wide(t: torch.Tensor) -> torch.Tensor:
    return t.detach().double() if t.is_floating_point() else t


@pytest.mark.parametrize("call", CALLS, ids=lambda c: c.name)
def test_values_and_gradients_are_torchs(call: Odd, interpreter: Session) -> None:
    """The result, and the gradient of every floating operand, are those of torch in float64."""
    given, expected = [leaf(t) for t in call.operands], [leaf(wide(t)) for t in call.operands]
    got, want = call.operator(*given), call.torch(*expected)
    near = NEAR.get(given[0].dtype, 0.0)
    torch.testing.assert_close(got.double(), want.double(), rtol=near, atol=near)
    leaves = [i for i, t in enumerate(given) if t.requires_grad]
    dout = draw(*want.shape).to(got.dtype)
    gradients = torch.autograd.grad(got, [given[i] for i in leaves], dout)
    for a, b in zip(gradients, torch.autograd.grad(want, [expected[i] for i in leaves], dout.double()), strict=True):
        largest = float(b.abs().max()) if b.numel() else 1.0
        torch.testing.assert_close(a.double(), b, rtol=2 * near, atol=2 * near * max(1.0, largest))


@pytest.mark.parametrize("call", EXACT, ids=lambda c: c.name)
def test_whole_numbers_and_places_are_torchs(call: Odd, interpreter: Session) -> None:
    """Where nothing is rounded, nothing differs."""
    got, want = call.operator(*call.operands), call.torch(*call.operands)
    assert got.shape == want.shape
    assert torch.equal(got, want.to(got.dtype))


def test_groups_of_no_row_are_passed_over(interpreter: Session) -> None:
    """A group without rows between two others takes none of theirs."""
    x, w, ends = draw(10, 17, dtype=HALF), draw(3, 17, 9, dtype=HALF), torch.tensor([3, 3, 10], dtype=torch.int32)
    want = torch.cat((x[:3].double() @ w[0].double(), x[3:].double() @ w[2].double()))
    torch.testing.assert_close(grouped_matmul(x, w, ends).double(), want, rtol=5e-3, atol=5e-3)
