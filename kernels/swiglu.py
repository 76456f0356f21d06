"""SwiGLU: out = silu(gate) · up, with silu(g) = g · σ(g) and σ(g) = 1 / (1 + exp(-g)) (Shazeer, 2020).

Its gradients, with silu'(g) = σ(g) · (1 + g · (1 - σ(g))):

    dgate = dout · up · silu'(gate)
    dup   = dout · silu(gate)
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_device,
    check_dtype,
    check_shape,
    contiguous_like,
    differentiating,
    once_per_layout,
    rows_of,
)


@triton.jit
def swiglu_kernel(
    gate_ptr, up_ptr, out_ptr, n_cols,
    stride_gm, stride_gn, stride_um, stride_un, stride_om, stride_on,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Each program takes BLOCK_N columns of one row."""
    row = tl.program_id(0).to(tl.int64)  # 64 bits: row · stride passes 2³¹ in a large batch
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask).to(tl.float32)
    sigma = 1.0 / (1.0 + tl.exp(-gate))
    out = gate * sigma * up
    tl.store(out_ptr + row * stride_om + cols * stride_on, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def swiglu_backward_kernel(
    dout_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, n_cols,
    stride_dm, stride_dn, stride_gm, stride_gn, stride_um, stride_un, stride_dgm, stride_dum,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Both gradients in one pass: σ(gate) is computed again, which is cheaper than having stored it."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    dout = tl.load(dout_ptr + row * stride_dm + cols * stride_dn, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + row * stride_gm + cols * stride_gn, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + row * stride_um + cols * stride_un, mask=mask).to(tl.float32)
    sigma = 1.0 / (1.0 + tl.exp(-gate))
    dgate = dout * up * sigma * (1.0 + gate * (1.0 - sigma))
    dup = dout * gate * sigma
    tl.store(dgate_ptr + row * stride_dgm + cols, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dup_ptr + row * stride_dum + cols, dup.to(dup_ptr.dtype.element_ty), mask=mask)


def launch_swiglu(gate, up, out, blocks):
    """Write silu(gate) · up into `out`; all are of one shape and view as rows."""
    gate, up, out = (rows_of("swiglu", "an operand", t) for t in (gate, up, out))
    M, N = gate.shape
    if M * N:
        grid = (M, cdiv(N, blocks["BLOCK_N"]))
        swiglu_kernel[grid](gate, up, out, N, *gate.stride(), *up.stride(), *out.stride(), **blocks)


def launch_swiglu_backward(dout, gate, up, dgate, dup, blocks):
    """Write both gradients, whose rows are contiguous; all are of one shape and view as rows."""
    dout, gate, up, dgate, dup = (rows_of("swiglu_backward", "an operand", t) for t in (dout, gate, up, dgate, dup))
    M, N = gate.shape
    if M * N:
        grid = (M, cdiv(N, blocks["BLOCK_N"]))
        swiglu_backward_kernel[grid](
            dout, gate, up, dgate, dup, N,
            *dout.stride(), *gate.stride(), *up.stride(), dgate.stride(0), dup.stride(0), **blocks,
        )  # fmt: skip


class _SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up, blocks):
        ctx.save_for_backward(gate, up)
        return swiglu(gate, up, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        return *swiglu_backward(dout.contiguous(), *ctx.saved_tensors), None


def swiglu(gate: torch.Tensor, up: torch.Tensor, blocks: Blocks | None = None) -> torch.Tensor:
    """Return silu(gate) · up, contiguous; differentiable.

    Both are (..., N) of one shape, float32, float16 or bfloat16; any strides that view as rows, so that the halves of
    one packed projection, `packed[..., :N]` and `packed[..., N:]`, are taken as they lie.
    Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts or two devices.
    """
    check_swiglu(gate, up)
    if differentiating(gate, up):
        return _SwiGLU.apply(gate, up, blocks)
    out = contiguous_like(gate)
    launch_swiglu(gate, up, out, blocks or blocks_for("swiglu", gate))
    return out


def swiglu_backward(
    dout: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, blocks: Blocks | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of `gate` and `up` for the gradient `dout` of the output; all as `swiglu` takes them."""
    check_swiglu_backward(dout, gate, up)
    dgate, dup = contiguous_like(gate), contiguous_like(gate)
    launch_swiglu_backward(dout, gate, up, dgate, dup, blocks or blocks_for("swiglu_backward", gate))
    return dgate, dup


@once_per_layout
def check_swiglu(gate, up):
    check_device("swiglu", gate=gate, up=up)
    check_dtype("swiglu", FLOATS, gate=gate, up=up)
    check_shape("swiglu", up=(up, gate.shape))
    rows_of("swiglu", "gate", gate)
    rows_of("swiglu", "up", up)


@once_per_layout
def check_swiglu_backward(dout, gate, up):
    check_device("swiglu_backward", dout=dout, gate=gate, up=up)
    check_dtype("swiglu_backward", FLOATS, dout=dout, gate=gate, up=up)
    check_shape("swiglu_backward", dout=(dout, gate.shape), up=(up, gate.shape))
    for name, tensor in (("dout", dout), ("gate", gate), ("up", up)):
        rows_of("swiglu_backward", name, tensor)


def swiglu_reference(gate, up):
    return torch.nn.functional.silu(gate) * up


def swiglu_backward_reference(dout, gate, up):
    sigma = torch.sigmoid(gate)
    return dout * up * sigma * (1 + gate * (1 - sigma)), dout * gate * sigma


def _operands(count, *shape):
    return lambda d: tuple(d.normal(*shape, scale=2.0) for _ in range(count))


def _packed(d: Draw):
    """The halves of one projection (M, 2N): rows that do not lie end to end."""
    return d.normal(5, 2 * 130).chunk(2, dim=-1)


def _special(d: Draw):
    gate = d.special(64, nonfinite=False).clamp(-1e4, 1e4)  # silu' of ±∞ is ∞ · 0: not defined
    return gate.reshape(4, 16), d.normal(4, 16)


SAMPLES = (
    Sample("0x5", _operands(2, 0, 5)),
    Sample("1x1", _operands(2, 1, 1)),
    Sample("7x781", _operands(2, 7, 781), quick=True),
    Sample("2x3x64", _operands(2, 2, 3, 64)),
    Sample("3xblock-plus-1", lambda d: _operands(2, 3, d.blocks["BLOCK_N"] + 1)(d)),
    Sample("5x130-packed", _packed),
    Sample("6x48-transposed", lambda d: tuple(d.transposed(d.normal(6, 48)) for _ in range(2))),
    Sample("4x16-special", _special),
    Sample("8192x14336", _operands(2, 8192, 14336), bench=True),
)


def _with_dout(sample: Sample) -> Sample:
    def inputs(d):
        gate, up = sample.inputs(d)
        return d.normal(*gate.shape), gate, up

    return Sample(sample.name, inputs, bench=sample.bench, quick=sample.quick)


def _cost(*tensors):
    return Cost(bytes=sum(t.numel() * t.element_size() for t in tensors))


CASES = [
    KernelCase(
        name="swiglu",
        operator=swiglu,
        launch=launch_swiglu,
        reference=swiglu_reference,
        terms=lambda gate, up: (gate * up).abs() * torch.sigmoid(gate),
        samples=SAMPLES,
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(4, 13), lambda d, n: _operands(2, n, 14336)(d), "rows of 14336"),
        blocks=Blocks(BLOCK_N=1024, num_warps=4),
        space={"BLOCK_N": (256, 512, 1024, 2048, 4096), "num_warps": (2, 4, 8)},
    ),
    KernelCase(
        name="swiglu_backward",
        operator=swiglu_backward,
        launch=launch_swiglu_backward,
        reference=swiglu_backward_reference,
        samples=[_with_dout(s) for s in SAMPLES],
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(4, 13), lambda d, n: _operands(3, n, 14336)(d), "rows of 14336"),
        blocks=Blocks(BLOCK_N=1024, num_warps=4),
        space={"BLOCK_N": (256, 512, 1024, 2048, 4096), "num_warps": (2, 4, 8)},
    ),
]
