"""Cross entropy of logits x (row by row) and a target t, with label smoothing ε over V classes:

    lse  = log Σⱼ exp(xⱼ)
    loss = lse - (1 - ε) · x_t - ε/V · Σⱼ xⱼ

The logits are read once: maximum and sum are kept online (Milakov and Gimelshein, 2018), so that no row must fit a
block. The backward needs the logits and lse only:

    dxⱼ = dloss · (exp(xⱼ - lse) - (1 - ε) · [j = t] - ε/V)
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

TARGETS = (torch.int64, torch.int32)
REDUCTIONS = ("mean", "sum", "none")


@triton.jit
def cross_entropy_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr, n_classes, stride_xm, stride_xn, ignore_index, smoothing,
    SMOOTH: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """Each program reads one row of logits, BLOCK_V at a time."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row).to(tl.int64)
    if target == ignore_index:
        tl.store(loss_ptr + row, 0.0)
        tl.store(lse_ptr + row, 0.0)
        return

    x_row = x_ptr + row * stride_xm
    m = -float("inf")  # the maximum so far
    l = 0.0  # Σ exp(x - m) so far
    total = 0.0  # Σ x so far
    for start in range(0, n_classes, BLOCK_V):
        cols = start + tl.arange(0, BLOCK_V)
        mask = cols < n_classes
        x = tl.load(x_row + cols.to(tl.int64) * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)  # -∞ - -∞ is NaN: a row may begin with masked classes
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
        if SMOOTH:
            total += tl.sum(tl.where(mask, x, 0.0), axis=0)
    lse = m + tl.log(l)

    # A kernel cannot raise: a target that is no class gives NaN.
    is_class = (target >= 0) & (target < n_classes)
    x_target = tl.load(x_row + target * stride_xn, mask=is_class, other=float("nan")).to(tl.float32)
    loss = lse - (1.0 - smoothing) * x_target
    if SMOOTH:  # not with ε = 0: a masked class has x = -∞, and 0 · ∞ is NaN
        loss -= smoothing / n_classes * total
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def cross_entropy_backward_kernel(
    dloss_ptr, x_ptr, target_ptr, lse_ptr, dx_ptr, n_classes, stride_xm, stride_xn, stride_dm,
    ignore_index, smoothing, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """Each program writes BLOCK_V gradients of one row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    mask = cols < n_classes
    target = tl.load(target_ptr + row)
    counted = target != ignore_index
    n_read = tl.where(counted, n_classes, 0)  # an ignored row is not read: dloss = 0 gives dx = 0
    dloss = tl.load(dloss_ptr + row, mask=counted, other=0.0)
    lse = tl.load(lse_ptr + row, mask=counted, other=0.0)
    x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn, mask=cols < n_read, other=0.0).to(tl.float32)
    dx = dloss * (tl.exp(x - lse) - tl.where(cols == target, 1.0 - smoothing, 0.0) - smoothing / n_classes)
    tl.store(dx_ptr + row * stride_dm + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def launch_cross_entropy(logits, target, ignore_index, label_smoothing, loss, lse, blocks):
    """Write loss and lse of each row."""
    M, V = logits.shape
    if M:
        cross_entropy_kernel[(M,)](
            logits, target, loss, lse, V, *logits.stride(), ignore_index, float(label_smoothing),
            SMOOTH=label_smoothing > 0, **blocks,
        )  # fmt: skip


def launch_cross_entropy_backward(dloss, logits, target, lse, ignore_index, label_smoothing, dlogits, blocks):
    """Write the gradients of the logits, rows contiguous."""
    M, V = logits.shape
    if M:
        cross_entropy_backward_kernel[(M, cdiv(V, blocks["BLOCK_V"]))](
            dloss, logits, target, lse, dlogits, V, *logits.stride(), dlogits.stride(0),
            ignore_index, float(label_smoothing), **blocks,
        )  # fmt: skip


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target, ignore_index, label_smoothing, blocks):
        loss, lse = cross_entropy_forward(logits, target, ignore_index, label_smoothing, blocks)
        ctx.save_for_backward(logits, target, lse)
        ctx.options = ignore_index, label_smoothing
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, dloss):
        return cross_entropy_backward(dloss.contiguous(), *ctx.saved_tensors, *ctx.options), None, None, None, None


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the loss as `torch.nn.functional.cross_entropy` does, in float32; differentiable in the logits.

    logits  (M, V), float32, float16 or bfloat16, any strides
    target  (M,), int64 or int32: a class, or `ignore_index`, whose rows count neither in the loss nor in the mean. Any
            other value gives NaN

    `reduction` is "mean", "sum" or "none". Raises `TypeError` for another dtype, `ValueError` for other shapes, devices
    or options.
    """
    check_reduction(reduction)
    options = ignore_index, label_smoothing, blocks
    if differentiating(logits):
        loss = _CrossEntropy.apply(logits, target, *options)
    else:
        loss, _ = cross_entropy_forward(logits, target, *options)
    return reduced(loss, target, ignore_index, reduction)


def reduced(loss, target, ignore_index, reduction):
    """Return the mean of the losses of the rows that count, their sum, or the losses."""
    if reduction == "none":
        return loss
    return loss.sum() / (target != ignore_index).sum() if reduction == "mean" else loss.sum()


def check_reduction(reduction):
    if reduction not in REDUCTIONS:
        raise ValueError(f"cross_entropy: reduction {reduction!r} is none of {', '.join(REDUCTIONS)}")


def cross_entropy_forward(
    logits: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of each row and the log-sum-exp of its logits, both (M,) float32, 0 where the target is ignored.

    Operands and errors as `cross_entropy`.
    """
    _check("cross_entropy", logits, target, label_smoothing)
    loss = torch.empty(logits.shape[0], dtype=torch.float32, device=logits.device)
    lse = torch.empty_like(loss)
    blocks = blocks or blocks_for("cross_entropy", logits)
    launch_cross_entropy(logits, target, ignore_index, label_smoothing, loss, lse, blocks)
    return loss, lse


def cross_entropy_backward(
    dloss: torch.Tensor,
    logits: torch.Tensor,
    target: torch.Tensor,
    lse: torch.Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the gradient of the logits, contiguous, for the gradient `dloss` (M,) float32 of each row's loss.

    lse: (M,) float32, of the forward. Other operands and errors as `cross_entropy`.
    """
    _check("cross_entropy_backward", logits, target, label_smoothing)
    check_device("cross_entropy_backward", logits=logits, dloss=dloss, lse=lse)
    check_dtype("cross_entropy_backward", (torch.float32,), dloss=dloss, lse=lse)
    check_shape("cross_entropy_backward", dloss=(dloss, target.shape), lse=(lse, target.shape))
    check_contiguous("cross_entropy_backward", dloss=dloss, lse=lse)
    dlogits = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
    blocks = blocks or blocks_for("cross_entropy_backward", logits)
    launch_cross_entropy_backward(dloss, logits, target, lse, ignore_index, label_smoothing, dlogits, blocks)
    return dlogits


def _check(operator, logits, target, label_smoothing):
    check_device(operator, logits=logits, target=target)
    check_dtype(operator, FLOATS, logits=logits)
    check_dtype(operator, TARGETS, target=target)
    check_shape(operator, logits=(logits, ("M", "V")), target=(target, logits.shape[:1]))
    if logits.shape[1] == 0:
        raise ValueError(f"{operator}: logits of shape {tuple(logits.shape)} have no class")
    check_contiguous(operator, target=target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"{operator}: label_smoothing is {label_smoothing}; taken is 0 to 1")


def cross_entropy_reference(logits, target, ignore_index, label_smoothing):
    lse = torch.logsumexp(logits, dim=1)
    is_class = (target >= 0) & (target < logits.shape[1])
    x_target = logits.gather(1, target.long().where(is_class, 0)[:, None])[:, 0].where(is_class, torch.nan)
    loss = lse - (1 - label_smoothing) * x_target
    if label_smoothing:
        loss = loss - label_smoothing * logits.mean(dim=1)
    counted = target != ignore_index
    return loss.where(counted, 0.0), lse.where(counted, 0.0)


def cross_entropy_terms(logits, *_):
    """The loss is a difference of three numbers; what is lost is relative to them and not to it."""
    largest = logits.nan_to_num(neginf=0.0).abs().amax(dim=1) + torch.tensor(float(logits.shape[1])).log()
    return 3 * largest, largest


def cross_entropy_backward_reference(dloss, logits, target, lse, ignore_index, label_smoothing):
    counted = (target != ignore_index)[:, None]
    hit = torch.arange(logits.shape[1]) == target[:, None]
    wanted = (1 - label_smoothing) * hit + label_smoothing / logits.shape[1]
    return (dloss[:, None] * ((logits - lse[:, None]).exp() - wanted)).where(counted, 0.0)


def cross_entropy_backward_terms(dloss, logits, _target, lse, *_):
    """The exponent's own rounding counts: exp(x - lse) errs by its argument."""
    p = (logits - lse[:, None]).exp()
    return dloss.abs()[:, None] * (p * (1 + logits.nan_to_num(neginf=0.0).abs() + lse.abs()[:, None]) + 1)


def _operands(rows, classes, label_smoothing=0.0, scale=2.0, ignored=True):
    def inputs(d: Draw):
        logits = d.normal(rows, classes, scale=scale)
        target = d.integers(rows, low=0, high=classes, dtype=torch.int64)
        if ignored:
            target[1::3] = -100  # every third row is ignored, whatever it holds
            logits[1::3] = float("nan")
        return logits, target, -100, label_smoothing

    return inputs


def _masked_classes(d: Draw):
    """Classes ruled out by -∞, the first block whole: as constrained decoding leaves them."""
    n = d.blocks["BLOCK_V"]
    logits = d.normal(3, n + 40)
    logits[:, :n] = -float("inf")
    return logits, torch.tensor([n, n + 7, n + 39]), -100, 0.0


def _no_class(d: Draw):
    """Targets on both sides of the classes, which give NaN, beside an ignored one."""
    return d.normal(5, 64), torch.tensor([64, -1, 63, 7, 0]), 7, 0.0


def _strided(d: Draw):
    logits, target, *options = _operands(5, 96)(d)
    return d.transposed(logits), target.to(torch.int32), *options


SAMPLES = (
    Sample("0x5", _operands(0, 5)),
    Sample("1x1", _operands(1, 1)),
    Sample("7x781", _operands(7, 781), quick=True),
    Sample("7x781-smoothed", _operands(7, 781, label_smoothing=0.1)),
    Sample("6x3-smoothed", _operands(6, 3, label_smoothing=0.3)),  # so few classes that their number shows
    Sample("4x512", _operands(4, 512, scale=20.0)),  # a few logits rule their row
    Sample("4xblock-plus-1", lambda d: _operands(4, d.blocks["BLOCK_V"] + 1, label_smoothing=0.25)(d)),
    Sample("3xblock-plus-40-masked", _masked_classes),
    Sample("5x64-no-class", _no_class),
    Sample("5x96-transposed", _strided),
    Sample("4096x32000", _operands(4096, 32000, ignored=False), bench=True),
)


def _and_lse(d: Draw, logits, target, *options):
    lse = torch.logsumexp(logits.float(), dim=1)
    return d.normal(logits.shape[0], dtype=torch.float32), logits, target, lse, *options


def _with_lse(sample: Sample) -> Sample:
    return Sample(sample.name, lambda d: _and_lse(d, *sample.inputs(d)), bench=sample.bench, quick=sample.quick)


def _cost(*operands):
    """What the operands hold: an ignored row, which is not read, is in no timed sample."""
    return Cost(bytes=sum(t.numel() * t.element_size() for t in operands if isinstance(t, torch.Tensor)))


CASES = [
    KernelCase(
        name="cross_entropy",
        operator=cross_entropy_forward,
        launch=launch_cross_entropy,
        reference=cross_entropy_reference,
        torch=lambda logits, target, ignore_index, label_smoothing: torch.nn.functional.cross_entropy(
            logits, target, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction="none"
        ),
        terms=cross_entropy_terms,
        samples=SAMPLES,
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(8, 16), lambda d, n: _operands(4096, n, ignored=False)(d), "classes of 4096 rows"),
        blocks=Blocks(BLOCK_V=2048, num_warps=8),
        space={"BLOCK_V": (512, 1024, 2048, 4096, 8192), "num_warps": (4, 8, 16)},
    ),
    KernelCase(
        name="cross_entropy_backward",
        operator=cross_entropy_backward,
        launch=launch_cross_entropy_backward,
        reference=cross_entropy_backward_reference,
        terms=cross_entropy_backward_terms,
        samples=[_with_lse(s) for s in SAMPLES],
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(
            powers_of_2(8, 16), lambda d, n: _and_lse(d, *_operands(4096, n, ignored=False)(d)), "classes of 4096 rows"
        ),
        blocks=Blocks(BLOCK_V=2048, num_warps=8),
        space={"BLOCK_V": (512, 1024, 2048, 4096, 8192), "num_warps": (4, 8, 16)},
    ),
]
