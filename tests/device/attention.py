"""Attention on a device against float64: `DEVICE DTYPE DESCRIPTORS` as arguments; prints JSON.

Grouped heads, lengths that no block divides, other lengths of queries and keys, and views; forward and backward, each
several times, by pointers (DESCRIPTORS = 0) or by the kernels that fetch by descriptors (1). Reported: the largest
relative error (norm of the difference over the norm), how many calls were taken, and how many repeated ones differed
in bits.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import torch

from portability.kernel import blocks_for
from portability.kernels.flash_attention import flash_attention_with_lse
from portability.kernels.flash_attention_backward import flash_attention_backward

REPEATED = 12
Tensors = tuple[torch.Tensor, ...]
Make = Callable[[torch.dtype, str], Tensors]


def plain(batch: int, seq_q: int, seq_k: int, heads: int, kv_heads: int, D: int) -> Make:
    """Contiguous operands of (batch, sequence, heads, D)."""
    shapes = ((batch, seq_q, heads, D), (batch, seq_k, kv_heads, D), (batch, seq_k, kv_heads, D))
    return lambda dtype, device: tuple(torch.randn(s, device=device).to(dtype) for s in shapes)


def side_by_side(dtype: torch.dtype, device: str) -> Tensors:
    """As a projection of all three makes them."""
    return torch.randn(1, 1024, 3, 4, 128, device=device).to(dtype).unbind(2)


def heads_first(dtype: torch.dtype, device: str) -> Tensors:
    return tuple(t.transpose(1, 2) for t in torch.randn(3, 2, 4, 640, 128, device=device).to(dtype))


def after_a_prefix(dtype: torch.dtype, device: str) -> Tensors:
    return tuple(t[:, 60:] for t in torch.randn(3, 2, 1060, 4, 128, device=device).to(dtype))


CASES: tuple[tuple[Make, bool], ...] = (
    (plain(2, 1000, 1000, 8, 2, 128), True),
    (plain(2, 1000, 1000, 8, 8, 128), False),
    (plain(2, 500, 1300, 8, 2, 128), True),
    (plain(1, 900, 300, 4, 2, 128), True),  # the first queries see no key
    (plain(1, 1301, 1301, 4, 1, 128), True),
    (plain(3, 1, 2048, 8, 2, 128), True),
    (plain(2, 1024, 1024, 4, 2, 64), True),
    (plain(1, 512, 512, 2, 2, 96), False),
    (plain(1, 512, 512, 2, 2, 256), True),
    (side_by_side, True),
    (heads_first, False),
    (after_a_prefix, False),
)


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return attention of float64 operands, a row that sees no key being 0."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if causal:
        visible = torch.ones_like(scores, dtype=torch.bool).tril(scores.shape[-1] - scores.shape[-2])
        some = visible.any(-1, keepdim=True)
        return ((scores.masked_fill(~visible & some, -math.inf).softmax(-1) * visible) @ v).transpose(1, 2)
    return (scores.softmax(-1) @ v).transpose(1, 2)


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    """Return the relative error, infinite where something is not finite."""
    return float((got.double() - want).norm() / want.norm()) if torch.isfinite(got).all() else math.inf


def attend(operands: Tensors, dout: torch.Tensor, causal: bool, descriptors: int) -> Tensors:
    """Return the output and the gradients by the kernels that a table with `DESCRIPTORS = descriptors` takes."""
    q, k, v = operands
    chosen = blocks_for("flash_attention", q) | {"DESCRIPTORS": descriptors}
    out, lse = flash_attention_with_lse(q, k, v, causal, blocks=chosen)
    blocks = blocks_for("flash_attention_backward", q) | {"DQ_DESCRIPTORS": descriptors, "DESCRIPTORS": descriptors}
    return out, *flash_attention_backward(dout, q, k, v, out, lse, causal, blocks=blocks)


def main() -> None:
    device, dtype, descriptors = sys.argv[1], getattr(torch, sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(0)
    worst, differing = 0.0, 0
    for make, causal in CASES:
        operands = make(dtype, device)
        leaves = tuple(t.detach().double().requires_grad_() for t in operands)
        want = exact(*leaves, causal)
        dout = torch.randn(want.shape, device=device).to(dtype)
        wanted = (want.detach(), *torch.autograd.grad(want, leaves, dout.double()))
        made = attend(operands, dout, causal, descriptors)
        worst = max(worst, *(error(g, w) for g, w in zip(made, wanted, strict=True)))
        for _ in range(REPEATED):
            again = attend(operands, dout, causal, descriptors)
            differing += not all(torch.equal(a, b) for a, b in zip(made, again, strict=True))
    print(json.dumps({"error": worst, "calls": len(CASES) * (1 + REPEATED), "differing": differing}))


if __name__ == "__main__":
    main()
