"""A Transformer decoder layer out of these kernels, and its twin in plain torch (pre-norm; Xiong et al., 2020).

    h = x + W_O attention(W_QKV norm₁(x))        causal, `heads` heads
    y = h + W₂ gelu(W₁ norm₂(h))

`decoder_layer` and `torch_decoder_layer` are the same lines with other operators. With a cache, only new tokens are
given, and they attend over what the cache holds as well.
"""

from typing import NamedTuple

import torch
from torch.nn import functional
from torch.profiler import record_function

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, powers_of_2
from portability.kernels.checks import check_device, check_dtype, check_shape
from portability.kernels.elementwise import add
from portability.kernels.flash_attention import flash_attention
from portability.kernels.layer_norm import layer_norm
from portability.kernels.linear import linear
from portability.kernels.paged_cache import PagedCache


class Weights(NamedTuple):
    """The parameters of one layer, for D features and F hidden ones. Every bias of a product may be None."""

    norm1: torch.Tensor  # (D,)
    norm1_bias: torch.Tensor  # (D,)
    qkv: torch.Tensor  # (3 D, D): queries, keys and values
    qkv_bias: torch.Tensor | None  # (3 D,)
    out: torch.Tensor  # (D, D)
    out_bias: torch.Tensor | None  # (D,)
    norm2: torch.Tensor  # (D,)
    norm2_bias: torch.Tensor  # (D,)
    up: torch.Tensor  # (F, D)
    up_bias: torch.Tensor | None  # (F,)
    down: torch.Tensor  # (D, F)
    down_bias: torch.Tensor | None  # (D,)


def decoder_layer(x: torch.Tensor, weights: Weights, heads: int, cache: PagedCache | None = None) -> torch.Tensor:
    """Return the layer of `x` (batch, tokens, D), contiguous; differentiable without a cache.

    x and weights share a dtype, float32, float16 or bfloat16, and a device; D is a multiple of `heads`. A cache (of
    `heads` heads of D / heads) that holds tokens takes one more at a time, an empty one a whole prompt.
    Raises what the operators raise, and `ValueError` for heads that do not divide D and for a second prompt.
    """
    _check(x, weights, heads)
    w = weights
    with record_function("projections"):
        a = layer_norm(x, w.norm1, w.norm1_bias)
        q, k, v = linear(a, w.qkv, w.qkv_bias).unflatten(-1, (3, heads, -1)).unbind(2)
    with record_function("attention"):
        attended = flash_attention(q, k, v, causal=True) if cache is None else cached_attention(q, k, v, cache)
    with record_function("output"):
        h = add(x, linear(attended.flatten(2), w.out, w.out_bias))
    with record_function("feed-forward"):
        b = layer_norm(h, w.norm2, w.norm2_bias)
        return add(h, linear(linear(b, w.up, w.up_bias, "gelu"), w.down, w.down_bias))


def torch_decoder_layer(x: torch.Tensor, weights: Weights, heads: int) -> torch.Tensor:
    """Return the layer of `x` (batch, tokens, D) by torch's own operations, the scores of all tokens at once."""
    w = weights
    with record_function("projections"):
        a = functional.layer_norm(x, x.shape[-1:], w.norm1, w.norm1_bias)
        q, k, v = functional.linear(a, w.qkv, w.qkv_bias).unflatten(-1, (3, heads, -1)).transpose(1, 3).unbind(2)
    with record_function("scores"):
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    with record_function("softmax"):
        p = scores.softmax(-1)
    with record_function("values"):
        attended = (p @ v).transpose(1, 2)
    with record_function("output"):
        h = x + functional.linear(attended.flatten(2), w.out, w.out_bias)
    with record_function("feed-forward"):
        b = functional.layer_norm(h, x.shape[-1:], w.norm2, w.norm2_bias)
        return h + functional.linear(functional.gelu(functional.linear(b, w.up, w.up_bias)), w.down, w.down_bias)


def cached_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cache: PagedCache) -> torch.Tensor:
    """Add keys and values to the cache and return the attention of the new queries over all of it.

    All are (batch, tokens, heads, D): a prompt, if the cache is empty, or one token.
    """
    if any(cache.tokens) and q.shape[1] != 1:
        raise ValueError(f"cached_attention: {q.shape[1]} tokens for a cache of {cache.tokens}; taken is one at a time")
    prompt = not any(cache.tokens)
    cache.append(k, v)
    return flash_attention(q, k, v, causal=True) if prompt else cache.attend(q[:, 0])[:, None]


class DecoderLayer(torch.nn.Module):
    """One layer of `dim` features as a module. `plain` makes it the twin, by torch's own operations."""

    def __init__(self, dim: int, heads: int, hidden: int | None = None, bias: bool = True, plain: bool = False) -> None:
        super().__init__()
        self.heads, self.plain = heads, plain
        self.norm1, self.norm2 = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.qkv = torch.nn.Linear(dim, 3 * dim, bias)
        self.out = torch.nn.Linear(dim, dim, bias)
        self.up = torch.nn.Linear(dim, hidden or 4 * dim, bias)
        self.down = torch.nn.Linear(hidden or 4 * dim, dim, bias)

    def weights(self) -> Weights:
        """Return the parameters in the order that the functions take."""
        layers = (self.norm1, self.qkv, self.out, self.norm2, self.up, self.down)
        return Weights(*(p for layer in layers for p in (layer.weight, layer.bias)))

    def cache(self, batch: int, max_tokens: int, page_size: int = 16) -> PagedCache:
        """Return an empty cache for `batch` sequences."""
        weight = self.qkv.weight
        head_dim = weight.shape[1] // self.heads
        return PagedCache(
            batch, self.heads, head_dim, max_tokens, page_size=page_size, dtype=weight.dtype, device=weight.device
        )

    def forward(self, x: torch.Tensor, cache: PagedCache | None = None) -> torch.Tensor:
        """Return the layer of `x` (batch, tokens, dim); the twin takes no cache."""
        if not self.plain:
            return decoder_layer(x, self.weights(), self.heads, cache)
        if cache is not None:
            raise ValueError("DecoderLayer: the plain twin takes no cache; give it all tokens")
        return torch_decoder_layer(x, self.weights(), self.heads)


def _check(x, weights, heads):
    named_weights = {name: t for name, t in weights._asdict().items() if t is not None}
    check_device("decoder_layer", x=x, **named_weights)
    check_dtype("decoder_layer", (torch.float32, torch.float16, torch.bfloat16), x=x, **named_weights)
    check_shape("decoder_layer", x=(x, ("batch", "tokens", "D")))
    D, F = x.shape[2], weights.up.shape[0]
    check_shape(
        "decoder_layer", qkv=(weights.qkv, (3 * D, D)), out=(weights.out, (D, D)),
        up=(weights.up, (F, D)), down=(weights.down, (D, F)),
    )  # fmt: skip
    if heads < 1 or D % heads:
        raise ValueError(f"decoder_layer: {heads} heads of {D} features; taken is a divisor")


# Forward, one step of training and decoding as rows of the matrix. Blocks are those of the operators inside.


def forward(x, heads, *weights, blocks: Blocks | None = None):
    """The layer of a batch of tokens."""
    del blocks
    return decoder_layer(x, Weights(*weights), heads)


def train(dy, x, heads, *weights, blocks: Blocks | None = None):
    """Output and the gradients of the input and all weights, for the gradient `dy` of the output."""
    del blocks
    return _gradients(decoder_layer, dy, x, heads, weights)


def decode(x, heads, prompt, *weights, blocks: Blocks | None = None):
    """The layer of the first `prompt` tokens at once and then of each further one alone, with a cache."""
    del blocks
    w = Weights(*weights)
    batch, tokens, D = x.shape
    cache = PagedCache(batch, heads, D // heads, tokens, page_size=4, dtype=x.dtype, device=x.device)
    pieces = [piece.contiguous() for piece in (x[:, :prompt], *x[:, prompt:].split(1, dim=1))]
    return torch.cat([decoder_layer(piece, w, heads, cache) for piece in pieces], dim=1)


def _gradients(layer, dy, x, heads, weights):
    with torch.enable_grad():
        leaves = [None if t is None else t.detach().requires_grad_() for t in (x, *weights)]
        y = layer(leaves[0], Weights(*leaves[1:]), heads)
        return y.detach(), *torch.autograd.grad(y, [t for t in leaves if t is not None], dy)


def forward_reference(x, heads, *weights):
    return torch_decoder_layer(x, Weights(*weights), heads)


def train_reference(dy, x, heads, *weights):
    return _gradients(torch_decoder_layer, dy, x, heads, weights)


def decode_reference(x, heads, prompt, *weights):
    return torch_decoder_layer(x, Weights(*weights), heads)


def _layer(batch, tokens, D, hidden, bias=True):
    """Return what draws an input and weights whose products keep its size."""

    def inputs(d: Draw):
        def product(rows, columns):
            return d.normal(rows, columns, scale=columns**-0.5), d.normal(rows, scale=0.1) if bias else None

        def norm():
            return 1 + d.normal(D, scale=0.1), d.normal(D, scale=0.1)

        attention = (*norm(), *product(3 * D, D), *product(D, D))
        return d.normal(batch, tokens, D), (*attention, *norm(), *product(hidden, D), *product(D, hidden))

    return inputs


def _forward(batch, tokens, D, heads, hidden, bias=True):
    def inputs(d: Draw):
        x, weights = _layer(batch, tokens, D, hidden, bias)(d)
        return x, heads, *weights

    return inputs


def _train(*sizes, **options):
    def inputs(d: Draw):
        x, heads, *weights = _forward(*sizes, **options)(d)
        return d.normal(*x.shape), x, heads, *weights

    return inputs


def _decode(*sizes, prompt, **options):
    def inputs(d: Draw):
        x, heads, *weights = _forward(*sizes, **options)(d)
        return x, heads, prompt, *weights

    return inputs


def _cost(x, heads, *weights_and_out):
    """Products of both halves, and the causal half of the scores; weights and tokens once."""
    tensors = [t for t in (x, *weights_and_out) if t is not None]
    batch, tokens, D = x.shape
    products = 2 * batch * tokens * sum(t.numel() for t in weights_and_out[:-1] if t is not None and t.ndim == 2)
    attention = 2 * batch * tokens * tokens * D
    moved = sum(t.numel() * t.element_size() for t in tensors)
    return Cost(moved, flops=products + attention, unit=str(x.dtype).removeprefix("torch."))


def launch_forward(x, heads, *weights_and_out):
    """The layer as it is called: its operators allocate what they return."""
    *weights, out, _blocks = weights_and_out
    out.copy_(decoder_layer(x, Weights(*weights), heads))


CASES = [
    KernelCase(
        name="decoder_layer",
        operator=forward,
        launch=launch_forward,
        reference=forward_reference,
        samples=(
            Sample("1x1x2-h1", _forward(1, 1, 2, 1, 3)),
            Sample("2x17x48-h3", _forward(2, 17, 48, 3, 80), quick=True),
            Sample("1x32x64-h2-no-bias", _forward(1, 32, 64, 2, 128, bias=False)),
            Sample("1x4096x4096-h32", _forward(1, 4096, 4096, 32, 16384), bench=True, dtypes=("float16", "bfloat16")),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(7, 13), lambda d, n: _forward(1, n, 4096, 32, 16384)(d), "tokens, 32 heads of 128"),
    ),
    KernelCase(
        name="decoder_layer_train",
        composed=True,
        operator=train,
        reference=train_reference,
        samples=(
            Sample("2x17x48-h3", _train(2, 17, 48, 3, 80), quick=True),
            Sample("1x32x64-h2-no-bias", _train(1, 32, 64, 2, 128, bias=False)),
        ),
        dtypes=("float32", "float16", "bfloat16"),
    ),
    KernelCase(
        name="decoder_layer_decode",
        composed=True,
        operator=decode,
        reference=decode_reference,
        samples=(
            Sample("2x7x24-h3-prompt4", _decode(2, 7, 24, 3, 40, prompt=4), quick=True),
            Sample("1x6x32-h2-prompt1-no-bias", _decode(1, 6, 32, 2, 64, prompt=1, bias=False)),
        ),
        dtypes=("float32", "float16", "bfloat16"),
    ),
]
