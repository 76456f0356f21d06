"""The pieces of work that `kernels.py` times: ours, what users would take instead, and how fast ours shall be.

A group is a generator of works, so that one group's tensors are gone before the next one's are made. Values are random:
products of zeros run faster than real ones.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from portability.kernel import Cost, blocks_for
from portability.kernels import cross_entropy as ce
from portability.kernels import flash_attention as flash
from portability.kernels import layer_norm, layer_norm_linear_gelu, matmul, quantized_matmul, rms_norm, vector_add
from portability.kernels import rotary_embedding as rope
from portability.kernels import softmax as soft
from portability.kernels import swiglu as glu
from portability.kernels.decode_attention import launch_decode_attention
from portability.kernels.flash_attention_backward import launch_flash_attention_backward
from portability.kernels.latent_attention import launch_mla_decode
from portability.kernels.layer_norm_backward import launch_layer_norm_backward
from portability.kernels.mla_decode import blocks_of_heads

Call = Callable[[], Any]
HALF = torch.float16
CEILING = "ceiling"  # stands among the peers for what the device itself reaches


@dataclass(frozen=True)
class Work:
    """One row: `ours` against `peers`, each a call; `asked` is the least that ours shall reach of a peer or ceiling."""

    name: str
    ours: Call
    peers: Mapping[str, Call] = field(default_factory=dict)
    asked: Mapping[str, float] = field(default_factory=dict)
    cost: Cost | None = None
    group: str = ""  # works of one group are judged by the geometric mean of their ratios
    memory: bool = False  # whether the peak of memory beside the operands is taken


Group = Callable[[], Iterator[Work]]
GROUPS: dict[str, Group] = {}


def _group(function: Group) -> Group:
    GROUPS[function.__name__] = function
    return function


def _randn(*shape: int, dtype: torch.dtype = HALF, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape, device="cuda", dtype=torch.float32) * scale).to(dtype)


def _bytes(*tensors: torch.Tensor) -> int:
    return sum(t.nbytes for t in tensors)


def _gradient(function: Callable[..., torch.Tensor], dout: torch.Tensor, *inputs: torch.Tensor) -> Call:
    """Return a call of the backward pass alone, of a forward pass that is made here."""
    out = function(*inputs)
    wanted = [x for x in inputs if x.requires_grad]
    return lambda: torch.autograd.grad(out, wanted, dout, retain_graph=True)


def _both(function: Callable[..., torch.Tensor], dout: torch.Tensor, *inputs: torch.Tensor) -> Call:
    """Return a call of the forward and the backward pass."""
    wanted = [x for x in inputs if x.requires_grad]
    return lambda: torch.autograd.grad(function(*inputs), wanted, dout)


def _liger(module: str, function: str) -> Callable[..., Any] | None:
    """Return the `apply` of one of Liger-Kernel's autograd functions, or None where that package is not installed."""
    try:
        found = getattr(importlib.import_module(f"liger_kernel.ops.{module}"), function)
    except ImportError:
        return None
    apply: Callable[..., Any] = found.apply
    return apply


# ------------------------------------------------------------------------------------------- bound by memory


@_group
def add() -> Iterator[Work]:
    x, y = _randn(2, 1 << 28, dtype=torch.float32)
    out = torch.empty_like(x)
    blocks = blocks_for("vector_add", x)
    yield Work(
        "add 2^28 float32",
        lambda: vector_add.launch_add(x, y, out, blocks),
        {"torch": lambda: torch.add(x, y, out=out)},
        {"torch": 0.99, CEILING: 0.98},
        Cost(_bytes(x, y, out)),
    )


@_group
def softmax() -> Iterator[Work]:
    inductor = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False)
    for rows, columns, least in ((16384, 4096, 2.2), (2048, 50257, 1.0), (512, 262144, 1.0)):
        x = _randn(rows, columns)
        y = torch.empty_like(x)
        blocks = blocks_for("softmax", x)
        yield Work(
            f"softmax {rows}x{columns}",
            lambda x=x, y=y, blocks=blocks: soft.launch_softmax(x, y, blocks),
            {"Inductor": lambda x=x: inductor(x), "torch": lambda x=x: torch.softmax(x, -1)},
            {"Inductor": least, CEILING: 0.92},
            Cost(_bytes(x, y)),
        )


@_group
def layer_normalisation() -> Iterator[Work]:
    x, dy = _randn(16384, 4096), _randn(16384, 4096)
    weight, bias = _randn(4096), _randn(4096)
    y, mean, rstd = layer_norm.layer_norm_with_moments(x, weight, bias, 1e-5)
    blocks, backward_blocks = blocks_for("layer_norm", x), blocks_for("layer_norm_backward", x)

    def plain(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    inductor = torch.compile(plain, dynamic=False)
    yield Work(
        "layer norm 16384x4096",
        lambda: layer_norm.launch_layer_norm(x, weight, bias, 1e-5, y, mean, rstd, blocks),
        {"Inductor": lambda: inductor(x, weight, bias), "torch": lambda: plain(x, weight, bias)},
        {"Inductor": 1.25},
        Cost(_bytes(x, y)),
    )
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
    dx, dw, db = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(bias)
    yield Work(
        "layer norm backward 16384x4096",
        lambda: launch_layer_norm_backward(dy, x, weight, bias, mean, rstd, dx, dw, db, backward_blocks),
        {"Inductor": _gradient(inductor, dy, *leaves), "torch": _gradient(plain, dy, *leaves)},
        {"Inductor": 1.2},
        Cost(_bytes(dy, x, dx)),
    )


@_group
def rms_normalisation() -> Iterator[Work]:
    x, dy, weight = _randn(16384, 4096), _randn(16384, 4096), _randn(4096)
    x, weight = x.requires_grad_(), weight.requires_grad_()
    theirs = _liger("rms_norm", "LigerRMSNormFunction")
    yield from _forward_and_backward(
        "rms norm 16384x4096", rms_norm.rms_norm, theirs and (lambda x, w: theirs(x, w, 1e-6)), dy, x, weight
    )


def _forward_and_backward(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any] | None, dout: torch.Tensor, *inputs: torch.Tensor
) -> Iterator[Work]:
    """Yield the forward pass, and both passes together, of a differentiable operator and Liger-Kernel's."""
    detached = [t.detach() for t in inputs]
    peers = {"Liger": lambda: theirs(*detached)} if theirs else {}
    moved = _bytes(*inputs, dout)
    yield Work(name, lambda: ours(*detached), peers, {"Liger": 1.0}, Cost(moved))
    peers = {"Liger": _both(theirs, dout, *inputs)} if theirs else {}
    yield Work(f"{name}, both passes", _both(ours, dout, *inputs), peers, {"Liger": 1.0})


@_group
def cross_entropy() -> Iterator[Work]:
    """Liger's forward pass makes the gradient too, in place of the logits: both passes are compared."""
    theirs = _liger("cross_entropy", "LigerCrossEntropyFunction")
    for rows, classes in ((4096, 32000), (8192, 128256)):
        logits = _randn(rows, classes).requires_grad_()
        target = torch.randint(classes, (rows,), device="cuda")
        one = torch.ones((), device="cuda")
        ours = _both(lambda x, target=target: ce.cross_entropy(x, target), one, logits)
        peers = {"torch": _both(lambda x, target=target: F.cross_entropy(x.float(), target), one, logits)}
        if theirs:
            copy = logits.detach().clone().requires_grad_()
            peers["Liger"] = _liger_loss(theirs, copy, target, one)
        yield Work(f"cross entropy {rows}x{classes}, both passes", ours, peers, {"Liger": 1.0}, Cost(3 * logits.nbytes))


def _liger_loss(theirs: Callable[..., Any], logits: torch.Tensor, target: torch.Tensor, one: torch.Tensor) -> Call:
    def both() -> Any:
        loss = theirs(logits, target, None)
        return torch.autograd.grad(loss[0] if isinstance(loss, tuple) else loss, logits, one)

    return both


@_group
def swiglu() -> Iterator[Work]:
    gate, up = (_randn(8192, 14336).requires_grad_() for _ in range(2))
    dout = _randn(8192, 14336)
    yield from _forward_and_backward(
        "swiglu 8192x14336", glu.swiglu, _liger("swiglu", "LigerSiLUMulFunction"), dout, gate, up
    )


@_group
def rotary() -> Iterator[Work]:
    """Liger's turns queries and keys in place, so that each call turns them further; ours writes them anew."""
    batch, sequence, heads, size = 4, 4096, 32, 128
    cos, sin = rope.angles(torch.arange(sequence, device="cuda"), size)
    q, k = (_randn(batch, sequence, heads, size).requires_grad_() for _ in range(2))
    dq, dk = _randn(batch, sequence, heads, size), _randn(batch, sequence, heads, size)
    theirs = _liger("rope", "LigerRopeFunction")
    wide = [torch.cat((t, t), -1)[None].to(HALF) for t in (cos, sin)]
    cos, sin = cos.to(HALF), sin.to(HALF)

    def liger(q: torch.Tensor, k: torch.Tensor) -> Any:
        assert theirs is not None
        return theirs(q.transpose(1, 2), k.transpose(1, 2), *wide)

    plain_q, plain_k = q.detach(), k.detach()
    peers = {"Liger": lambda: liger(plain_q, plain_k)} if theirs else {}
    name = f"rotary embedding {batch}x{sequence}x{heads}x{size}, queries and keys"
    ours = lambda: rope.rotary_embedding_pair(plain_q, plain_k, cos, sin)  # noqa: E731
    yield Work(name, ours, peers, {"Liger": 1.0}, Cost(2 * _bytes(q, k)))

    def ours_both() -> Any:
        return torch.autograd.grad(rope.rotary_embedding_pair(q, k, cos, sin), (q, k), (dq, dk))

    def liger_both() -> Any:
        return torch.autograd.grad(liger(q, k), (q, k), (dq.transpose(1, 2), dk.transpose(1, 2)))

    yield Work(f"{name}, both passes", ours_both, {"Liger": liger_both} if theirs else {}, {"Liger": 1.0})


# -------------------------------------------------------------------------------------------------- products


def _product(M: int, N: int, K: int, dtype: torch.dtype, least: float, group: str = "") -> Work:
    a, b = _randn(M, K, dtype=dtype), _randn(K, N, dtype=dtype)
    c = torch.empty(M, N, device="cuda", dtype=dtype)
    blocks = matmul.blocks_of_size(a, b)
    name = f"matmul {str(dtype).removeprefix('torch.')} {M}x{N}x{K}"
    cost = Cost(_bytes(a, b, c), 2 * M * N * K, str(dtype).removeprefix("torch."))
    ours = lambda: matmul.launch_matmul(a, b, c, blocks)  # noqa: E731
    return Work(name, ours, {"cuBLAS": lambda: torch.matmul(a, b, out=c)}, {"cuBLAS": least}, cost, group)


@_group
def products() -> Iterator[Work]:
    for dtype in (torch.float16, torch.bfloat16):
        for side, least in ((1024, 0.9), (4096, 0.98), (8192, 1.02)):
            yield _product(side, side, side, dtype, least)


SKEWED = (
    (1, 4096, 4096), (1, 14336, 4096), (8, 4096, 14336), (16, 4096, 4096), (32, 14336, 4096), (64, 4096, 14336),
    (128, 4096, 4096), (256, 14336, 4096), (512, 4096, 14336), (1024, 4096, 4096), (2048, 14336, 4096),
    (2048, 1024, 8192), (4096, 4096, 1024), (4096, 4096, 14336), (8192, 1024, 4096), (16384, 4096, 4096),
)  # fmt: skip


@_group
def skewed_products() -> Iterator[Work]:
    for M, N, K in SKEWED:
        yield _product(M, N, K, HALF, 0.95, group="skewed products")


@_group
def float8_products() -> Iterator[Work]:
    n = 8192
    a, b = _randn(n, n).to(torch.float8_e4m3fn), _randn(n, n).to(torch.float8_e4m3fn).t()
    c = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    one = torch.ones((), device="cuda")
    blocks = blocks_for("matmul", a)
    yield Work(
        f"matmul float8_e4m3fn {n}x{n}x{n}",
        lambda: matmul.launch_matmul(a, b, c, blocks),
        {"torch._scaled_mm": lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, out=c)},
        {"torch._scaled_mm": 0.95},
        Cost(_bytes(a, b, c), 2 * n**3, "float8_e4m3fn"),
    )


@_group
def fused() -> Iterator[Work]:
    x, gamma, beta = _randn(8192, 1024), _randn(1024), _randn(1024)
    weight, bias = _randn(4096, 1024, scale=1024**-0.5), _randn(4096)
    y = torch.empty(8192, 4096, device="cuda", dtype=HALF)
    blocks = blocks_for("layer_norm_linear_gelu", x)

    def chain() -> torch.Tensor:
        return F.gelu(F.linear(F.layer_norm(x, (1024,), gamma, beta), weight, bias))

    yield Work(
        "layer_norm_linear_gelu 8192x1024x4096",
        lambda: layer_norm_linear_gelu.launch_layer_norm_linear_gelu(x, gamma, beta, weight, bias, 1e-5, y, blocks),
        {"Inductor": torch.compile(chain, dynamic=False), "torch": chain},
        {"Inductor": 1.0},
        Cost(_bytes(x, weight, y), 2 * 8192 * 1024 * 4096, "float16"),
    )


@_group
def quantized() -> Iterator[Work]:
    K, N, group = 14336, 4096, 128
    packed, scales = quantized_matmul.quantize_int4(_randn(K, N, scale=K**-0.5), group)

    def chain(x: torch.Tensor) -> torch.Tensor:
        halves = packed.view(K // group, -1, N)
        q = torch.cat((halves & 0xF, halves >> 4), dim=1).to(HALF) - 8
        return x @ (scales[:, None] * q).flatten(0, 1)

    inductor = torch.compile(chain, dynamic=False)
    for M in (1, 16, 64):
        x = _randn(M, K)
        out = torch.empty(M, N, device="cuda", dtype=HALF)
        blocks = blocks_for("quantized_matmul_int4", x)
        yield Work(
            f"quantized_matmul int4 {M}x{N}x{K}",
            lambda x=x, out=out, b=blocks: quantized_matmul.launch_int4_matmul(x, packed, scales, out, b),
            {"Inductor": lambda x=x: inductor(x)},
            {"Inductor": 1.0, CEILING: 0.8},
            Cost(_bytes(packed, scales)),
        )


# ------------------------------------------------------------------------------------------------- attention


def _sdpa(backend: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    with sdpa_kernel(backend):
        out: torch.Tensor = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out.transpose(1, 2)


def _eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(2, 3) * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1), -math.inf)
    out: torch.Tensor = scores.softmax(-1) @ v
    return out


def _flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Call:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    n = q.shape[1]
    mask = create_block_mask(lambda _b, _h, i, j: i >= j, None, None, n, n, device="cuda") if causal else None
    compiled = torch.compile(flex_attention, dynamic=False)
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return lambda: compiled(q, k, v, block_mask=mask)


SIZES = ((128, False), (128, True), (64, True))  # of a head, and whether causal


@_group
def attention() -> Iterator[Work]:
    for size, causal in SIZES:
        yield _attention(size, causal)


def _attention(size: int, causal: bool) -> Work:
    q, k, v = (_randn(4, 4096, 32, size) for _ in range(3))
    out, lse = torch.empty_like(q), torch.empty(4, 32, 4096, device="cuda")
    blocks, scale = blocks_for("flash_attention", q), size**-0.5
    return Work(
        f"attention 4x32x4096x{size}{' causal' if causal else ''}",
        lambda: flash.launch_flash_attention(q, k, v, causal, scale, out, lse, blocks),
        {
            "cuDNN": lambda: _sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, causal),
            "FlexAttention": _flex(q, k, v, causal),
            "torch flash": lambda: _sdpa(SDPBackend.FLASH_ATTENTION, q, k, v, causal),
            "eager": lambda: _eager(q, k, v, causal),
        },
        {"cuDNN": 0.95, "FlexAttention": 1.2},
        Cost(_bytes(q, k, v, out), 4 * q.numel() * 4096 * (0.5 if causal else 1.0), "float16"),
    )


@_group
def attention_backward() -> Iterator[Work]:
    for size, causal in SIZES:
        yield _attention_backward(size, causal)


def _attention_backward(size: int, causal: bool) -> Work:
    q, k, v, dout = (_randn(4, 4096, 32, size) for _ in range(4))
    out, lse = flash.flash_attention_with_lse(q, k, v, causal)
    gradients = [torch.empty_like(t) for t in (q, k, v)]
    blocks, scale = blocks_for("flash_attention_backward", q), size**-0.5
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]

    def peer(backend: SDPBackend) -> Call:
        return _gradient(lambda q, k, v: _sdpa(backend, q, k, v, causal), dout, *leaves)

    return Work(
        f"attention backward 4x32x4096x{size}{' causal' if causal else ''}",
        lambda: launch_flash_attention_backward(dout, q, k, v, out, lse, causal, scale, *gradients, blocks),
        {"cuDNN": peer(SDPBackend.CUDNN_ATTENTION), "torch flash": peer(SDPBackend.FLASH_ATTENTION)},
        {"cuDNN": 0.8, "torch flash": 1.4},
        Cost(_bytes(q, k, v, out, dout, *gradients), 10 * q.numel() * 4096 * (0.5 if causal else 1), "float16"),
    )


@_group
def long_attention() -> Iterator[Work]:
    """Memory beside the operands: the output and one number a row, at any length."""
    for tokens in (16384, 32768, 65536):
        yield _long_attention(tokens)


def _long_attention(tokens: int) -> Work:
    q, k, v = (_randn(1, tokens, 8, 128) for _ in range(3))
    return Work(
        f"attention 1x8x{tokens}x128 causal",
        lambda: flash.flash_attention(q, k, v, causal=True),
        {"cuDNN": lambda: _sdpa(SDPBackend.CUDNN_ATTENTION, q, k, v, True)},
        cost=Cost(4 * q.nbytes, 2 * q.numel() * tokens, "float16"),
        memory=True,
    )


@_group
def decode() -> Iterator[Work]:
    batch, tokens, page = 64, 8192, 16
    lengths = torch.full((batch,), tokens, dtype=torch.int32, device="cuda")
    heads, kv_heads, size = 32, 8, 128
    pages = batch * tokens // page
    k, v = (_randn(pages, page, kv_heads, size) for _ in range(2))
    table = torch.randperm(pages, device="cuda").view(batch, -1).to(torch.int32)
    q = _randn(batch, heads, size)
    out = torch.empty_like(q)
    blocks = blocks_for("decode_attention", q)
    yield Work(
        f"decode_attention {batch}x{tokens} heads 32 over 8",
        lambda: launch_decode_attention(q, k, v, table, lengths, None, out, blocks),
        asked={CEILING: 0.8},
        cost=Cost(_bytes(k, v)),
    )
    for heads in (16, 128):  # 128 heads do 241 operations for each byte of the cache: more than the memory feeds
        yield _latent_decode(batch, tokens, heads)


def _latent_decode(batch: int, tokens: int, heads: int) -> Work:
    rank, rope_size, head, value = 512, 64, 128, 128  # DeepSeek's
    cache = _randn(batch, tokens, rank + rope_size)
    lengths = torch.full((batch,), tokens, dtype=torch.int32, device="cuda")
    w_uk, w_uv = _randn(heads, head, rank, scale=rank**-0.5), _randn(heads, rank, value, scale=rank**-0.5)
    q, q_rope = _randn(batch, heads, head), _randn(batch, heads, rope_size)
    out = torch.empty(batch, heads, value, device="cuda", dtype=HALF)
    blocks = blocks_of_heads(q)
    return Work(
        f"mla_decode {batch}x{tokens} heads {heads}",
        lambda: launch_mla_decode(q, q_rope, cache, w_uk, w_uv, lengths, None, out, blocks),
        asked={CEILING: 0.8},
        cost=Cost(cache.nbytes, 2 * batch * tokens * heads * (2 * rank + rope_size), "float16"),
    )
