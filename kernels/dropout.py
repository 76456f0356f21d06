"""Dropout: out = x / (1 - p) where it is kept, else 0, and kept is u ≥ p for u uniform in [0, 1).

u comes from a counter and not from a state (Philox; Salmon et al., 2011): uᵢ = philox(seed, i) / 2³². So the mask
depends on the seed and the element's place alone, whatever the block size, and the backward draws it again instead of
storing it:

    dx = dout / (1 - p) where kept, else 0
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import FLOATS, check_contiguous, check_dtype, differentiating


@triton.jit(do_not_specialize=["seed"])  # a new seed must not be a new binary
def dropout_kernel(x_ptr, out_ptr, n_elements, threshold, scale, seed, BLOCK_SIZE: tl.constexpr):
    """Each program drops out of BLOCK_SIZE neighbours; forward and backward alike. The threshold is p · 2³²."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    # The counter in words of 32 bits: `tl.rand` makes other ones of a 64-bit offset in other versions of Triton.
    low, high = offsets.to(tl.uint32), (offsets >> 32).to(tl.uint32)
    bits, _, _, _ = tl.philox(seed, low, high, low * 0, low * 0)
    keep = bits.to(tl.int64) >= threshold
    out = tl.where(keep, x * scale, 0.0)
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def launch_dropout(x, p, seed, out, blocks):
    """Write what is kept of `x`, scaled, into `out`; both contiguous."""
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    if n:
        dropout_kernel[(cdiv(n, blocks["BLOCK_SIZE"]),)](x, out, n, round(p * 2**32), scale, seed, **blocks)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed, blocks):
        ctx.options = p, seed
        return dropout(x, p, seed, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        return dropout_backward(dout.contiguous(), *ctx.options), None, None, None


def dropout(x: torch.Tensor, p: float, seed: int | None = None, blocks: Blocks | None = None) -> torch.Tensor:
    """Return `x` with each element dropped with probability `p`, the others divided by 1 - p; differentiable.

    x     float32, float16 or bfloat16, contiguous
    seed  0 to 2⁶³ - 1; equal seeds give equal masks. None takes one from torch's generator of the CPU

    Raises `TypeError` for another dtype, `ValueError` for another layout, probability or seed.
    """
    if seed is None:
        seed = int(torch.randint(2**31, ()))
    _check("dropout", "x", x, p, seed)
    if differentiating(x):
        return _Dropout.apply(x, p, seed, blocks)
    out = torch.empty_like(x)
    launch_dropout(x, p, seed, out, blocks or blocks_for("dropout", x))
    return out


def dropout_backward(dout: torch.Tensor, p: float, seed: int, blocks: Blocks | None = None) -> torch.Tensor:
    """Return the gradient of `x` for the gradient `dout` of the output, with the mask of `seed`. Errors as above."""
    _check("dropout_backward", "dout", dout, p, seed)
    dx = torch.empty_like(dout)
    launch_dropout(dout, p, seed, dx, blocks or blocks_for("dropout_backward", dout))
    return dx


def _check(operator, name, x, p, seed):
    check_dtype(operator, FLOATS, **{name: x})
    check_contiguous(operator, **{name: x})
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{operator}: p is {p}; taken is a probability, 0 to 1")
    if not 0 <= seed < 2**63:
        raise ValueError(f"{operator}: seed is {seed}; taken is 0 to 2^63 - 1")


def philox(seed: int, n: int) -> torch.Tensor:
    """Return philox(seed, 0 … n - 1), int64: the first word of Philox-4x32 after 10 rounds, 0 to 2³² - 1.

    A product of two words of 32 bits wraps around in int64, to the right bits.
    """
    low = 0xFFFFFFFF
    offsets = torch.arange(n, dtype=torch.int64)
    c0, c1, c2, c3 = offsets & low, offsets >> 32, torch.zeros_like(offsets), torch.zeros_like(offsets)
    k0, k1 = seed & low, (seed >> 32) & low
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32 & low) ^ c1 ^ k0, b & low, (a >> 32 & low) ^ c3 ^ k1, a & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0


def dropout_reference(x, p, seed):
    keep = (philox(seed, x.numel()) >= round(p * 2**32)).view(x.shape).to(x.device)
    return torch.where(keep, x / (1 - p) if p < 1 else 0.0, 0.0).to(x.dtype)


def _operand(*shape, p=0.25, seed=1234):
    return lambda d: (d.normal(*(n(d) if callable(n) else n for n in shape)), p, seed)


def _past_a_block(d: Draw) -> int:
    return d.blocks["BLOCK_SIZE"] + 1


SAMPLES = (
    Sample("0", _operand(0)),
    Sample("1", _operand(1, p=0.5)),
    Sample("7x781", _operand(7, 781), quick=True),
    Sample("4096", _operand(4096, p=0.9, seed=2**40 + 7)),  # a seed past 32 bits
    Sample("block-plus-1", _operand(_past_a_block, seed=1)),
    Sample("33-at-the-threshold", lambda d: (d.normal(33), float(philox(5, 8)[7]) / 2**32, 5)),  # u = p is kept
    Sample("33-keep-all", _operand(33, p=0.0)),
    Sample("33-drop-all", _operand(33, p=1.0)),
    Sample("8192x4096", _operand(8192, 4096), bench=True),
)

_SHARED = {
    "reference": dropout_reference,
    "launch": launch_dropout,
    "samples": SAMPLES,
    "dtypes": ("float32", "float16", "bfloat16"),
    "torch": lambda x, p, _seed: torch.nn.functional.dropout(x, p),
    "cost": lambda x, _p, _seed, out: Cost(bytes=(x.numel() + out.numel()) * x.element_size()),
    "sweep": Sweep(powers_of_2(12, 26), lambda d, n: _operand(n)(d)),
    "space": {"BLOCK_SIZE": (256, 512, 1024, 2048, 4096), "num_warps": (2, 4, 8)},
}

CASES = [
    KernelCase(name="dropout", operator=dropout, blocks=Blocks(BLOCK_SIZE=1024, num_warps=4), **_SHARED),
    # other blocks than the forward's, on purpose: the mask must be the same
    KernelCase(
        name="dropout_backward", operator=dropout_backward, blocks=Blocks(BLOCK_SIZE=512, num_warps=4), **_SHARED
    ),
]
