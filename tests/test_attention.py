"""Attention: what a table may choose, and lengths that blocks divide or not, give attention's values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from portability.backend import Session
from portability.kernel import blocks_for
from portability.kernels.attention import attention_of_head, per_head
from portability.kernels.flash_attention import flash_attention_descriptors, flash_attention_with_lse
from portability.kernels.flash_attention_backward import flash_attention_backward

Operator = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).half()


@pytest.mark.parametrize("operator", [flash_attention_with_lse, flash_attention_descriptors])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("seq_q", "seq_k", "causal"), [(44, 97, False), (64, 64, True), (80, 44, True)])
def test_sums_in_parts_give_attention(
    seq_q: int, seq_k: int, causal: bool, lanes: int, operator: Operator, interpreter: Session
) -> None:
    """Also where a row sees no key, and its sum is 0 in all parts."""
    q, k, v = draw(1, seq_q, 4, 16), draw(1, seq_k, 2, 16), draw(1, seq_k, 2, 16)
    blocks = blocks_for(operator.__name__.removesuffix("_with_lse"), q) | {"LANES": lanes}
    want = per_head(attention_of_head, *(t.double() for t in (q, k, v)), causal, None)
    for x, y in zip(operator(q, k, v, causal, blocks=blocks), want, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("seq_q", "ragged"), [(48, False), (50, True)])
def test_steps_that_end_with_the_queries_load_without_a_mask(
    seq_q: int, ragged: bool, causal: bool, interpreter: Session
) -> None:
    """Those that do not are compiled as RAGGED, and both give the gradients of attention in float64."""
    q, k, v = (draw(1, seq_q + i, 2, 16)[:, i:] for i in range(3))
    out, lse = flash_attention_with_lse(q, k, v, causal)
    blocks = blocks_for("flash_attention_backward", q) | {"HELD": 32, "STEP": 16}
    dout = draw(*q.shape)
    got = flash_attention_backward(dout, q, k, v, out, lse, causal, blocks=blocks)
    assert interpreter.launches[-1].constants["RAGGED"] is ragged
    leaves = [t.double().requires_grad_() for t in (q, k, v)]
    want = torch.autograd.grad(per_head(attention_of_head, *leaves, causal, None)[0], leaves, dout.double())
    for x, y in zip(got, want, strict=True):
        torch.testing.assert_close(x.double(), y, rtol=4e-3, atol=8e-3)
