"""Embedding: out[t] = weight[id_t]. Its gradient gathers what each row of the weight was used for:

    dweight[v] = Σ_{t: id_t = v} dout[t]

The sum is taken without atomics: tokens are sorted by id, and a program owns a row of the weight. So it needs no
float32 copy of the weight's gradient, works in every dtype, and gives the same bits every time.
"""

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, cdiv, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_shape,
    differentiating,
)

IDS = (torch.int64, torch.int32)


@triton.jit
def embedding_kernel(
    weight_ptr, ids_ptr, out_ptr, n_rows, n_cols, stride_wv, stride_wd, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program copies BLOCK_D features of one token."""
    token = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = cols < n_cols
    row = tl.load(ids_ptr + token).to(tl.int64)
    is_row = (row >= 0) & (row < n_rows)
    n_read = tl.where(is_row, n_cols, 0)  # a kernel cannot raise: an id that is no row gives NaN
    weight = tl.load(weight_ptr + row * stride_wv + cols * stride_wd, mask=cols < n_read, other=float("nan"))
    tl.store(out_ptr + token * n_cols + cols, weight, mask=mask)


@triton.jit
def embedding_backward_kernel(
    dout_ptr, order_ptr, starts_ptr, dweight_ptr, n_cols, padding_idx, stride_dt, stride_dd,
    BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program sums BLOCK_D features of one row's tokens, which are order[starts[v] : starts[v + 1]]."""
    v = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    start = tl.load(starts_ptr + v)
    end = tl.load(starts_ptr + v + 1)
    end = tl.where(v == padding_idx, start, end)  # the padding row gets no gradient
    dweight = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for first in range(start, end, BLOCK_T):
        t = first + tl.arange(0, BLOCK_T)
        tokens = tl.load(order_ptr + t, mask=t < end, other=0)
        dout = tl.load(
            dout_ptr + tokens[:, None] * stride_dt + cols[None, :] * stride_dd,
            mask=(t < end)[:, None] & (cols < n_cols)[None, :],
            other=0.0,
        )
        dweight += tl.sum(dout.to(tl.float32), axis=0)
    tl.store(dweight_ptr + v * n_cols + cols, dweight.to(dweight_ptr.dtype.element_ty), mask=cols < n_cols)


def launch_embedding(weight, ids, _padding_idx, out, blocks):
    """Write the rows into `out` (..., D), contiguous."""
    V, D = weight.shape
    if out.numel():
        embedding_kernel[(ids.numel(), cdiv(D, blocks["BLOCK_D"]))](weight, ids, out, V, D, *weight.stride(), **blocks)


def launch_embedding_backward(dout, ids, _num_embeddings, padding_idx, dweight, blocks):
    """Sort the ids and write all of `dweight`, contiguous: the sort is part of what this costs."""
    V, D = dweight.shape
    if not dweight.numel():
        return
    ids, order = torch.sort(ids.reshape(-1), stable=True)
    starts = torch.searchsorted(ids, torch.arange(V + 1, dtype=ids.dtype, device=ids.device))
    dout = dout.view(-1, D)
    embedding_backward_kernel[(V, cdiv(D, blocks["BLOCK_D"]))](
        dout, order, starts, dweight, D, -1 if padding_idx is None else padding_idx, *dout.stride(), **blocks
    )


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, ids, padding_idx, blocks):
        ctx.save_for_backward(ids)
        ctx.options = weight.shape[0], padding_idx
        return embedding(weight, ids, padding_idx, blocks)

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        return embedding_backward(dout.contiguous(), *ctx.saved_tensors, *ctx.options), None, None, None


def embedding(
    weight: torch.Tensor, ids: torch.Tensor, padding_idx: int | None = None, blocks: Blocks | None = None
) -> torch.Tensor:
    """Return weight[ids], (*ids.shape, D); differentiable in the weight.

    weight  (V, D), float32, float16 or bfloat16, any strides
    ids     int64 or int32, contiguous, each a row of the weight; any other id gives NaN

    The row `padding_idx` gets no gradient. Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts
    or devices.
    """
    check_device("embedding", weight=weight, ids=ids)
    check_dtype("embedding", FLOATS, weight=weight)
    check_shape("embedding", weight=(weight, ("V", "D")))
    _check("embedding", ids, weight.shape[0], padding_idx)
    if differentiating(weight):
        return _Embedding.apply(weight, ids, padding_idx, blocks)
    out = torch.empty((*ids.shape, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    launch_embedding(weight, ids, padding_idx, out, blocks or blocks_for("embedding", weight))
    return out


def embedding_backward(
    dout: torch.Tensor,
    ids: torch.Tensor,
    num_embeddings: int,
    padding_idx: int | None = None,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the gradient (num_embeddings, D) of the weight for the gradient `dout` (*ids.shape, D), contiguous.

    Ids that are no row count nowhere. Other operands and errors as `embedding`.
    """
    check_device("embedding_backward", dout=dout, ids=ids)
    check_dtype("embedding_backward", FLOATS, dout=dout)
    check_shape("embedding_backward", dout=(dout, (*ids.shape, "D")))
    _check("embedding_backward", ids, num_embeddings, padding_idx)
    check_contiguous("embedding_backward", dout=dout)
    dweight = torch.empty((num_embeddings, dout.shape[-1]), dtype=dout.dtype, device=dout.device)
    blocks = blocks or blocks_for("embedding_backward", dout)
    launch_embedding_backward(dout, ids, num_embeddings, padding_idx, dweight, blocks)
    return dweight


def _check(operator, ids, num_embeddings, padding_idx):
    check_dtype(operator, IDS, ids=ids)
    check_contiguous(operator, ids=ids)
    if padding_idx is not None and not 0 <= padding_idx < num_embeddings:
        raise ValueError(f"{operator}: padding_idx is {padding_idx}; taken is a row, 0 to {num_embeddings - 1}")


def embedding_reference(weight, ids, _padding_idx=None):
    is_row = (ids >= 0) & (ids < len(weight))
    return weight[ids.long().where(is_row, 0)].where(is_row[..., None], torch.nan)


def embedding_backward_reference(dout, ids, num_embeddings, padding_idx=None):
    dweight = dout.new_zeros(num_embeddings, dout.shape[-1])
    is_row = (ids >= 0) & (ids < num_embeddings)
    dweight.index_add_(0, ids[is_row].long(), dout[is_row])
    if padding_idx is not None:
        dweight[padding_idx] = 0
    return dweight


def _operands(rows, dim, *ids, padding_idx=None, dtype=torch.int64):
    def inputs(d: Draw):
        dim_ = dim(d) if callable(dim) else dim
        return d.normal(rows, dim_), d.integers(*ids, low=0, high=rows, dtype=dtype), padding_idx

    return inputs


def _one_row_often(d: Draw):
    """One id holds most tokens, more than a block of them; another row has none."""
    n = 3 * d.blocks.get("BLOCK_T", 32) + 5
    ids = torch.zeros(n, dtype=torch.int64)
    ids[-1] = 2
    return d.normal(3, 40), ids, None


def _no_row(d: Draw):
    """Ids on both sides of the rows."""
    return d.normal(6, 32), torch.tensor([-1, 5, 6, 0, 100]), None


def _dout_of(d: Draw, n):
    return d.normal(n, 4096), d.integers(n, low=0, high=32000, dtype=torch.int64), 32000, None


def _past_a_block(d: Draw) -> int:
    return d.blocks["BLOCK_D"] + 1


SAMPLES = (
    Sample("5x8-ids0", _operands(5, 8, 0)),
    Sample("1x1-ids1", _operands(1, 1, 1)),
    Sample("11x77-ids3x5", _operands(11, 77, 3, 5, padding_idx=4, dtype=torch.int32), quick=True),
    Sample("16x64-ids2x16", _operands(16, 64, 2, 16)),
    Sample("5xblock-plus-1-ids7", _operands(5, _past_a_block, 7, padding_idx=0)),
    Sample("3x40-one-row-often", _one_row_often),
    Sample("6x32-no-row", _no_row),
    Sample("32000x4096-ids16384", _operands(32000, 4096, 16384), bench=True),
)


def _strided(d: Draw):
    weight, ids, padding_idx = _operands(9, 33, 12)(d)
    return d.transposed(weight), ids, padding_idx


def _backward(sample: Sample) -> Sample:
    def inputs(d):
        weight, ids, padding_idx = sample.inputs(d)
        return d.normal(*ids.shape, weight.shape[1]), ids, weight.shape[0], padding_idx

    return Sample(sample.name, inputs, bench=sample.bench, quick=sample.quick)


CASES = [
    KernelCase(
        name="embedding",
        operator=embedding,
        launch=launch_embedding,
        reference=embedding_reference,
        samples=(*SAMPLES, Sample("9x33-ids12-transposed", _strided)),
        dtypes=("float32", "float16", "bfloat16"),
        cost=lambda _w, ids, _p, out: Cost(2 * out.numel() * out.element_size() + ids.numel() * ids.element_size()),
        sweep=Sweep(powers_of_2(6, 15), lambda d, n: _operands(32000, 4096, n)(d), "ids, 32000 rows of 4096"),
        blocks=Blocks(BLOCK_D=1024, num_warps=4),
        space={"BLOCK_D": (256, 512, 1024, 2048, 4096), "num_warps": (1, 2, 4, 8)},
    ),
    KernelCase(
        name="embedding_backward",
        operator=embedding_backward,
        launch=launch_embedding_backward,
        reference=embedding_backward_reference,
        samples=[_backward(s) for s in SAMPLES],
        dtypes=("float32", "float16", "bfloat16"),
        cost=lambda dout, _ids, _v, _p, dweight: Cost((dout.numel() + dweight.numel()) * dout.element_size()),
        sweep=Sweep(powers_of_2(6, 15), _dout_of, "ids, 32000 rows of 4096"),
        # Most rows of a vocabulary have no token or one: wide blocks write zeros fast, and few tokens a step suffice.
        blocks=Blocks(BLOCK_T=4, BLOCK_D=1024, num_warps=4),
        space={"BLOCK_T": (1, 2, 4, 8, 16), "BLOCK_D": (256, 512, 1024, 2048, 4096), "num_warps": (2, 4, 8)},
    ),
]
