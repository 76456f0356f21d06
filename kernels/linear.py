"""Linear layer: y = activation(x @ weightᵀ + bias), in one launch: bias and activation are the product's epilogue.

With z = x @ weightᵀ + bias and dz the gradient of z, those of the operands are

    dx = dz @ weight,  dweight = dzᵀ @ x,  dbias = Σ dz over the rows
"""

import torch
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Draw, KernelCase, Sample, Sweep, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_shape,
    differentiating,
    named,
    once_per_layout,
    rows_of,
)
from portability.kernels.elementwise import elementwise
from portability.kernels.matmul import CASES as PRODUCTS
from portability.kernels.matmul import blocks_of_size, launch_matmul, matmul, product_cost
from portability.kernels.rows import column_sum

ACTIVATIONS = {"": lambda z: z, "relu": torch.relu, "silu": torch.nn.functional.silu, "gelu": torch.nn.functional.gelu}


def launch_linear(x, weight, bias, activation, y, blocks):
    """Write activation(x @ weightᵀ + bias) into `y`."""
    x, y = rows_of("linear", "x", x), rows_of("linear", "y", y)
    launch_matmul(x, weight.T, y, blocks, bias=bias, activation=activation)


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, activation: str = "",
    blocks: Blocks | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return activation(x @ weightᵀ + bias), for x of (..., K) and weight of (N, K); contiguous; differentiable.

    x, weight: float32, float16 or bfloat16; the leading dimensions of x one without a copy, other strides any.
    bias: contiguous (N,) of the same dtype, or None. activation: a name of ACTIVATIONS; "" is none.
    Raises `ValueError` for shapes, devices and names that do not fit, `TypeError` for dtypes.
    """
    check_linear(x, weight, bias, activation)
    if differentiating(x, weight, bias):
        return _Linear.apply(x, weight, bias, activation, blocks)
    y = torch.empty((*x.shape[:-1], weight.shape[0]), dtype=x.dtype, device=x.device)
    launch_linear(x, weight, bias, activation, y, blocks or blocks_of_size(rows_of("linear", "x", x), weight.T))
    return y


@once_per_layout
def check_linear(x, weight, bias, activation):
    check_device("linear", x=x, weight=weight, bias=bias)
    check_dtype("linear", FLOATS, x=x, weight=weight, bias=bias)
    check_shape("linear", weight=(weight, ("N", *x.shape[-1:])))
    check_shape("linear", bias=(bias, weight.shape[:1]))
    check_contiguous("linear", bias=bias)
    rows_of("linear", "x", x)
    if activation not in ACTIVATIONS:
        raise ValueError(f"linear: activation {activation!r}; taken are {', '.join(map(repr, ACTIVATIONS))}")


class _Linear(torch.autograd.Function):
    """The gradient of an activation needs z, so that it is a launch of its own here."""

    @staticmethod
    def forward(ctx, x, weight, bias, activation, blocks):
        z = linear(x, weight, bias, "", blocks)
        ctx.activation = activation
        ctx.save_for_backward(x, weight, bias, z if activation else None)
        return elementwise(activation, z) if activation else z

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        x, weight, bias, z = ctx.saved_tensors
        dz = elementwise(f"{ctx.activation}_backward", z, dy) if ctx.activation else dy.contiguous()
        rows = rows_of("linear", "dz", dz)
        dx = dweight = dbias = None
        if ctx.needs_input_grad[0]:
            dx = matmul(rows, weight).view(x.shape)
        if ctx.needs_input_grad[1]:
            dweight = matmul(rows.T, rows_of("linear", "x", x))
        if ctx.needs_input_grad[2]:
            dbias = torch.empty_like(bias)
            column_sum(rows, dbias)
        return dx, dweight, dbias, None, None


def _reference(x, weight, bias, activation):
    return ACTIVATIONS[activation](torch.nn.functional.linear(x, weight, bias))


def _terms(x, weight, bias, activation):
    """Activations here are no steeper than 1.13, and add the rounding of their own result."""
    bias = None if bias is None else bias.abs()
    return 2 * torch.nn.functional.linear(x.abs(), weight.abs(), bias)


def _layer(activation, *shape, N, bias=True, layout=None):
    def inputs(draw: Draw):
        weight = draw.normal(N, shape[-1])
        weight = getattr(draw, layout)(weight) if layout else weight
        return draw.normal(*shape), weight, draw.normal(N) if bias else None, activation

    return inputs


def _cost(x, weight, bias, activation, y):
    return product_cost(x.view(-1, x.shape[-1]), weight.T, y)


CASE = KernelCase(
    name="linear",
    operator=linear,
    launch=launch_linear,
    reference=_reference,
    terms=_terms,
    dtypes=tuple(map(named, FLOATS)),
    samples=(
        Sample("0x5x7", _layer("gelu", 0, 5, N=7)),
        Sample("3x0x7-bias-alone", _layer("", 3, 0, N=7)),
        Sample("77x65x129-gelu", _layer("gelu", 77, 65, N=129), quick=True),
        Sample("2x33x65x70-silu", _layer("silu", 2, 33, 65, N=70)),
        Sample("64x64x64-relu", _layer("relu", 64, 64, N=64)),
        Sample("77x80x144-gelu", _layer("gelu", 77, 80, N=144)),  # which descriptors take, with tiles that end outside
        Sample("33x65x70-plain", _layer("", 33, 65, N=70, bias=False)),
        Sample("33x65x70-transposed", _layer("gelu", 33, 65, N=70, layout="transposed")),
        Sample("4096x4096x4096-gelu", _layer("gelu", 4096, 4096, N=4096), bench=True, dtypes=("float16", "bfloat16")),
    ),
    blocks=PRODUCTS[0].blocks,
    space=PRODUCTS[0].space,
    cost=_cost,
    sweep=Sweep(powers_of_2(7, 13), lambda draw, n: _layer("gelu", n, n, N=n)(draw), "rows and columns of each matrix"),
)
