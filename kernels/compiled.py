"""The operators under `torch.compile`, so that a model made of them is one graph:

    from portability.kernels import compiled

    compiled.enable()
    model = torch.compile(model, fullgraph=True)

`enable` lets a compiler put the operations of `torch_operations` in place of the operators, which stay as they are
elsewhere: a call that nobody compiles pays nothing for this file. Elementwise operators become torch's own, which a
compiler fuses into their neighbours.
"""

import functools

import torch

from portability.kernels import elementwise
from portability.kernels import torch_operations as ops
from portability.kernels.checks import differentiating
from portability.kernels.cross_entropy import check_reduction, cross_entropy, reduced
from portability.kernels.embedding import embedding
from portability.kernels.flash_attention import flash_attention
from portability.kernels.layer_norm import layer_norm
from portability.kernels.linear import ACTIVATIONS, linear
from portability.kernels.matmul import matmul
from portability.kernels.rms_norm import rms_norm
from portability.kernels.rotary_embedding import rotary_embedding
from portability.kernels.softmax import softmax
from portability.kernels.swiglu import swiglu


def _table_blocks(operator, blocks):
    if blocks is not None:
        raise ValueError(f"{operator}: compiled, it takes the blocks of its device's table; leave `blocks` out")


def _softmax(x, blocks=None):
    _table_blocks("softmax", blocks)
    return ops.SOFTMAX(x)


def _layer_norm(x, weight=None, bias=None, eps=1e-5, blocks=None):
    _table_blocks("layer_norm", blocks)
    return ops.LAYER_NORM(x, weight, bias, eps)[0]


def _rms_norm(x, weight=None, eps=1e-6, blocks=None):
    _table_blocks("rms_norm", blocks)
    return ops.RMS_NORM(x, weight, eps)[0]


def _swiglu(gate, up, blocks=None):
    _table_blocks("swiglu", blocks)
    return ops.SWIGLU(gate, up)


def _cross_entropy(logits, target, ignore_index=-100, label_smoothing=0.0, reduction="mean", blocks=None):
    _table_blocks("cross_entropy", blocks)
    check_reduction(reduction)
    loss, _ = ops.CROSS_ENTROPY(logits, target, ignore_index, label_smoothing)
    return reduced(loss, target, ignore_index, reduction)


def _flash_attention(q, k, v, causal=False, scale=None, blocks=None):
    _table_blocks("flash_attention", blocks)
    return ops.FLASH_ATTENTION(q, k, v, causal, scale)[0]


def _matmul(a, b, precision="ieee", blocks=None):
    _table_blocks("matmul", blocks)
    return ops.MATMUL(a, b, precision)


def _linear(x, weight, bias=None, activation="", blocks=None):
    _table_blocks("linear", blocks)
    if differentiating(x, weight, bias):  # the gradient of an activation needs what it is applied to
        return ACTIVATIONS[activation](ops.LINEAR(x, weight, bias, ""))
    return ops.LINEAR(x, weight, bias, activation)


def _embedding(weight, ids, padding_idx=None, blocks=None):
    _table_blocks("embedding", blocks)
    return ops.EMBEDDING(weight, ids, padding_idx)


def _rotary_embedding(x, cos, sin, interleaved=False, blocks=None):
    _table_blocks("rotary_embedding", blocks)
    return ops.ROTARY_EMBEDDING(x, cos, sin, interleaved)


def _of_torch(operation):
    """Return an elementwise operation in torch's own words, for the compiler to fuse."""

    def unary(x, blocks=None):
        _table_blocks("elementwise", blocks)
        return operation(x)

    def binary(x, y, blocks=None):
        _table_blocks("elementwise", blocks)
        return operation(x, y)

    return unary if operation in UNARY else binary


UNARY = (torch.relu, torch.nn.functional.silu, torch.nn.functional.gelu)
IN_PLACE_OF = {
    softmax: _softmax,
    layer_norm: _layer_norm,
    rms_norm: _rms_norm,
    swiglu: _swiglu,
    cross_entropy: _cross_entropy,
    flash_attention: _flash_attention,
    matmul: _matmul,
    linear: _linear,
    embedding: _embedding,
    rotary_embedding: _rotary_embedding,
    elementwise.add: _of_torch(torch.add),
    elementwise.sub: _of_torch(torch.sub),
    elementwise.mul: _of_torch(torch.mul),
    elementwise.div: _of_torch(torch.div),
    elementwise.relu: _of_torch(torch.relu),
    elementwise.silu: _of_torch(torch.nn.functional.silu),
    elementwise.gelu: _of_torch(torch.nn.functional.gelu),
}


@functools.cache
def enable() -> None:
    """Let `torch.compile` put the operations of this file in place of the operators that a model calls.

    Loads torch's compiler, which takes a second or more. A second call does nothing.
    """
    for operator, operation in IN_PLACE_OF.items():
        torch.compiler.substitute_in_graph(operator)(operation)
