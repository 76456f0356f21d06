"""The operators as operations of torch: `torch.ops.portability.<name>`, with a schema, the shapes that it returns (so
that it is traced without data) and its gradient. `compiled` puts them into models that torch compiles.

They are opaque to a compiler (`custom_op`), and not traced into their launches (`triton_op`): a launch takes its blocks
from the table of the device that it runs on, which a trace would fix, with the sizes that it was made for; and tracing
a launch needs a GPU, where these also trace for the interpreter and an NPU.
"""

import torch

from portability.kernels.cross_entropy import cross_entropy_backward, cross_entropy_forward
from portability.kernels.embedding import embedding, embedding_backward
from portability.kernels.flash_attention import flash_attention_with_lse
from portability.kernels.flash_attention_backward import flash_attention_backward
from portability.kernels.layer_norm import layer_norm_with_moments
from portability.kernels.layer_norm_backward import layer_norm_backward
from portability.kernels.linear import linear
from portability.kernels.matmul import RESULT, matmul
from portability.kernels.rms_norm import rms_norm_with_rstd
from portability.kernels.rms_norm_backward import rms_norm_backward
from portability.kernels.rotary_embedding import rotary_embedding, rotary_embedding_backward
from portability.kernels.softmax import softmax, softmax_backward
from portability.kernels.swiglu import swiglu, swiglu_backward


def _like(t, shape=None, dtype=None):
    return torch.empty(t.shape if shape is None else shape, dtype=dtype or t.dtype, device=t.device)


def _each_like(*tensors):
    return [_like(t) for t in tensors if t is not None]


def _given(gradients):
    return [g for g in gradients if g is not None]


def _handed_out(operands, gradients):
    """Return a gradient for each operand that was given, and None for each that was not: schemas know no such None."""
    found = iter(gradients)
    return [None if t is None else next(found) for t in operands]


def _operation(name, schema, run, shapes, save=None, backward=None):
    """Register `torch.ops.portability.<name>`: `run` on data, `shapes` without; with a gradient if one is given."""
    operation = torch.library.custom_op(f"portability::{name}", run, mutates_args=(), schema=schema)
    operation.register_fake(shapes)
    if backward:
        operation.register_autograd(backward, setup_context=save)
    return operation


# A gradient comes with whatever strides its own operation has; the kernels of the backward pass take dense ones.

SOFTMAX_BACKWARD = _operation(
    "softmax_backward", "(Tensor y, Tensor dy) -> Tensor",
    lambda y, dy: softmax_backward(y, dy.contiguous()),
    lambda y, dy: _like(y),
)  # fmt: skip
SOFTMAX = _operation(
    "softmax", "(Tensor x) -> Tensor", softmax, _like,
    save=lambda ctx, inputs, output: ctx.save_for_backward(output),
    backward=lambda ctx, dy: SOFTMAX_BACKWARD(*ctx.saved_tensors, dy),
)  # fmt: skip


def _save_layer_norm(ctx, inputs, output):
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*inputs[:3], *output[1:])


def _grad_layer_norm(ctx, dy, *_):
    return *_handed_out(ctx.saved_tensors[:3], LAYER_NORM_BACKWARD(dy, *ctx.saved_tensors)), None


LAYER_NORM_BACKWARD = _operation(
    "layer_norm_backward",
    "(Tensor dy, Tensor x, Tensor? weight, Tensor? bias, Tensor mean, Tensor rstd) -> Tensor[]",
    lambda dy, *saved: _given(layer_norm_backward(dy.contiguous(), *saved)),
    lambda dy, x, weight, bias, mean, rstd: _each_like(x, weight, bias),
)
LAYER_NORM = _operation(
    "layer_norm", "(Tensor x, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    layer_norm_with_moments,
    lambda x, weight, bias, eps: (_like(x), *(_like(x, x.shape[:-1], torch.float32) for _ in range(2))),
    _save_layer_norm, _grad_layer_norm,
)  # fmt: skip


def _save_rms_norm(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs[:2], output[1])


def _grad_rms_norm(ctx, dy, _drstd):
    return *_handed_out(ctx.saved_tensors[:2], RMS_NORM_BACKWARD(dy, *ctx.saved_tensors)), None


RMS_NORM_BACKWARD = _operation(
    "rms_norm_backward", "(Tensor dy, Tensor x, Tensor? weight, Tensor rstd) -> Tensor[]",
    lambda dy, *saved: _given(rms_norm_backward(dy.contiguous(), *saved)),
    lambda dy, x, weight, rstd: _each_like(x, weight),
)  # fmt: skip
RMS_NORM = _operation(
    "rms_norm", "(Tensor x, Tensor? weight, float eps) -> (Tensor, Tensor)",
    rms_norm_with_rstd,
    lambda x, weight, eps: (_like(x), _like(x, x.shape[:-1], torch.float32)),
    _save_rms_norm, _grad_rms_norm,
)  # fmt: skip

SWIGLU_BACKWARD = _operation(
    "swiglu_backward", "(Tensor dout, Tensor gate, Tensor up) -> (Tensor, Tensor)",
    lambda dout, gate, up: swiglu_backward(dout.contiguous(), gate, up),
    lambda dout, gate, up: (_like(gate), _like(gate)),
)  # fmt: skip
SWIGLU = _operation(
    "swiglu", "(Tensor gate, Tensor up) -> Tensor", swiglu, lambda gate, up: _like(gate),
    save=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    backward=lambda ctx, dout: SWIGLU_BACKWARD(dout, *ctx.saved_tensors),
)  # fmt: skip


def _save_cross_entropy(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1])
    logits, target, *ctx.options = inputs
    ctx.save_for_backward(logits, target, output[1])


CROSS_ENTROPY_BACKWARD = _operation(
    "cross_entropy_backward",
    "(Tensor dloss, Tensor logits, Tensor target, Tensor lse, int ignore_index, float label_smoothing) -> Tensor",
    lambda dloss, *rest: cross_entropy_backward(dloss.contiguous(), *rest),
    lambda dloss, logits, *rest: _like(logits),
)
CROSS_ENTROPY = _operation(
    "cross_entropy",
    "(Tensor logits, Tensor target, int ignore_index, float label_smoothing) -> (Tensor, Tensor)",
    cross_entropy_forward,
    lambda logits, *rest: tuple(_like(logits, logits.shape[:1], torch.float32) for _ in range(2)),
    _save_cross_entropy,
    lambda ctx, dloss, _dlse: (CROSS_ENTROPY_BACKWARD(dloss, *ctx.saved_tensors, *ctx.options), None, None, None),
)


def _save_attention(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1])
    q, k, v, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output)


FLASH_ATTENTION_BACKWARD = _operation(
    "flash_attention_backward",
    "(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, bool causal, float? scale)"
    " -> (Tensor, Tensor, Tensor)",
    lambda dout, *rest: flash_attention_backward(dout.contiguous(), *rest),
    lambda dout, q, k, v, *rest: tuple(_each_like(q, k, v)),
)
FLASH_ATTENTION = _operation(
    "flash_attention",
    "(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> (Tensor, Tensor)",
    flash_attention_with_lse,
    lambda q, *rest: (_like(q), _like(q, (q.shape[0], q.shape[2], q.shape[1]), torch.float32)),
    _save_attention,
    lambda ctx, dout, _dlse: (*FLASH_ATTENTION_BACKWARD(dout, *ctx.saved_tensors, *ctx.options), None, None),
)


def _save_matmul(ctx, inputs, output):
    *operands, ctx.precision = inputs
    ctx.save_for_backward(*operands)


def _grad_matmul(ctx, dc):
    a, b = ctx.saved_tensors
    return MATMUL(dc, b.T, ctx.precision), MATMUL(a.T, dc, ctx.precision), None


MATMUL = _operation(
    "matmul", "(Tensor a, Tensor b, str precision) -> Tensor", matmul,
    lambda a, b, precision: _like(a, (a.shape[0], b.shape[1]), RESULT[a.dtype]),
    _save_matmul, _grad_matmul,
)  # fmt: skip


def _save_linear(ctx, inputs, output):
    x, weight, bias, activation = inputs
    if activation:
        raise ValueError(f"portability::linear: activation {activation!r} has no gradient here; apply it to the result")
    ctx.has_bias = bias is not None
    ctx.save_for_backward(x, weight)


def _grad_linear(ctx, dy):
    x, weight = ctx.saved_tensors
    dy, rows = (t.flatten(0, -2) if t.ndim > 1 else t[None] for t in (dy, x))
    dx = MATMUL(dy, weight, "ieee").view(x.shape)
    return dx, MATMUL(dy.T, rows, "ieee"), dy.sum(0) if ctx.has_bias else None, None


LINEAR = _operation(
    "linear", "(Tensor x, Tensor weight, Tensor? bias, str activation) -> Tensor", linear,
    lambda x, weight, *rest: _like(x, (*x.shape[:-1], weight.shape[0])),
    _save_linear, _grad_linear,
)  # fmt: skip


def _save_embedding(ctx, inputs, output):
    weight, ids, ctx.padding_idx = inputs
    ctx.rows = weight.shape[0]
    ctx.save_for_backward(ids)


EMBEDDING_BACKWARD = _operation(
    "embedding_backward", "(Tensor dout, Tensor ids, SymInt num_embeddings, int? padding_idx) -> Tensor",
    lambda dout, *rest: embedding_backward(dout.contiguous(), *rest),
    lambda dout, ids, num_embeddings, padding_idx: _like(dout, (num_embeddings, dout.shape[-1])),
)  # fmt: skip
EMBEDDING = _operation(
    "embedding", "(Tensor weight, Tensor ids, int? padding_idx) -> Tensor", embedding,
    lambda weight, ids, padding_idx: _like(weight, (*ids.shape, weight.shape[1])),
    _save_embedding,
    lambda ctx, dout: (EMBEDDING_BACKWARD(dout, *ctx.saved_tensors, ctx.rows, ctx.padding_idx), None, None),
)  # fmt: skip


def _save_rotary(ctx, inputs, output):
    _, cos, sin, ctx.interleaved = inputs
    ctx.save_for_backward(cos, sin)


ROTARY_EMBEDDING_BACKWARD = _operation(
    "rotary_embedding_backward", "(Tensor dout, Tensor cos, Tensor sin, bool interleaved) -> Tensor",
    rotary_embedding_backward,
    lambda dout, *rest: _like(dout),
)  # fmt: skip
ROTARY_EMBEDDING = _operation(
    "rotary_embedding", "(Tensor x, Tensor cos, Tensor sin, bool interleaved) -> Tensor",
    rotary_embedding,
    lambda x, *rest: _like(x),
    _save_rotary,
    lambda ctx, dout: (ROTARY_EMBEDDING_BACKWARD(dout, *ctx.saved_tensors, ctx.interleaved), None, None, None),
)  # fmt: skip
