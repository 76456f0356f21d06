"""Multi-head latent attention, decoding (DeepSeek-V2, 2024): a token's cache is one latent c and one rotated key k_R.

A head's keys and values are projections of the latent, k = W_UK c and v = W_UV c. They are never made: the projections
are folded into the query and the output, so that all heads read the same few numbers of each token:

    q_c  = W_UKᵀ q                       scores = scale · (q_c · c + q_R · k_R)
    out  = W_UV Σ_t softmax(scores)_t c_t

The kernels are those of `latent_attention`.
"""

from dataclasses import dataclass

import torch

from portability.kernel import Blocks, Cost, Draw, KernelCase, Sample, Sweep, blocks_for, powers_of_2
from portability.kernels.checks import (
    FLOATS,
    check_contiguous,
    check_device,
    check_dtype,
    check_last_stride,
    check_no_gradient,
    check_shape,
    named,
)
from portability.kernels.latent_attention import PARTS, launch_mla_decode

FEW_HEADS = 32  # at the most


def mla_decode(
    q: torch.Tensor,
    q_rope: torch.Tensor,
    cache: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the attention of one query per sequence over its cached latents, (B, H, V), contiguous.

    q        (B, H, D), the part that meets the latent; float32, float16 or bfloat16, last dimension contiguous
    q_rope   (B, H, P), the part that carries the position, turned already; likewise
    cache    (B, tokens, R + P): latent and rotated key of each token, last dimension contiguous
    w_uk     (H, D, R), any strides: k = w_uk[h] @ latent
    w_uv     (H, R, V), any strides: v = latent @ w_uv[h]
    lengths  (B,) int32: how many tokens each sequence has; 0 gives an output of 0
    scale    of the scores; 1 / √(D + P) by default

    All of one dtype but `lengths`, whose values are not checked: they stay on the device.
    Raises `TypeError` for another dtype, `ValueError` for other shapes, layouts or devices.
    """
    operands = {"q": q, "q_rope": q_rope, "cache": cache, "w_uk": w_uk, "w_uv": w_uv}
    check_device("mla_decode", **operands, lengths=lengths)
    check_dtype("mla_decode", FLOATS, **operands)
    check_dtype("mla_decode", (torch.int32,), lengths=lengths)
    check_shape("mla_decode", q=(q, ("B", "H", "D")))
    B, H, D = q.shape
    check_shape("mla_decode", q_rope=(q_rope, (B, H, "P")), w_uk=(w_uk, (H, D, "R")), lengths=(lengths, (B,)))
    P, R = q_rope.shape[2], w_uk.shape[2]
    if not R:
        raise ValueError(f"mla_decode: w_uk has shape {tuple(w_uk.shape)}: a latent of one element or more is taken")
    check_shape("mla_decode", w_uv=(w_uv, (H, R, "V")), cache=(cache, (B, "tokens", R + P)))
    check_last_stride("mla_decode", q=q, q_rope=q_rope, cache=cache)
    check_contiguous("mla_decode", lengths=lengths)
    check_no_gradient("mla_decode", **operands)
    out = torch.empty((B, H, w_uv.shape[2]), dtype=q.dtype, device=q.device)
    launch_mla_decode(q, q_rope, cache, w_uk, w_uv, lengths, scale, out, blocks or blocks_of_heads(q))
    return out


def blocks_of_heads(q):
    """Return the blocks for as many heads as `q` has: few leave room for more programs on a compute unit."""
    return blocks_for("mla_decode_few_heads" if q.shape[1] <= FEW_HEADS else "mla_decode", q)


def mla_decode_few_heads(
    q: torch.Tensor,
    q_rope: torch.Tensor,
    cache: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    lengths: torch.Tensor,
    scale: float | None = None,
    blocks: Blocks | None = None,
) -> torch.Tensor:
    """Return the same with the blocks for few heads, which `mla_decode` takes itself where there are few."""
    blocks = blocks or blocks_for("mla_decode_few_heads", q)
    return mla_decode(q, q_rope, cache, w_uk, w_uv, lengths, scale, blocks=blocks)


@dataclass(frozen=True)
class CacheBytes:
    """What the tokens of one layer take in the cache, in bytes."""

    latent: int  # latent and rotated key, once for all heads
    plain: int  # keys and values of every head

    def __str__(self) -> str:
        return f"{self.latent:,} B latent, {self.plain:,} B plain: {self.plain / max(1, self.latent):.1f} times"


def cache_bytes(
    tokens: int, heads: int, head_dim: int, rope_dim: int, value_dim: int, rank: int, itemsize: int = 2
) -> CacheBytes:
    """Return the cache of `tokens` beside that of plain heads, whose keys have head_dim + rope_dim elements.

    DeepSeek-V2's sizes, one token of one layer in bfloat16:

    >>> print(cache_bytes(1, heads=128, head_dim=128, rope_dim=64, value_dim=128, rank=512))
    1,152 B latent, 81,920 B plain: 71.1 times
    """
    latent = tokens * (rank + rope_dim) * itemsize
    return CacheBytes(latent, plain=tokens * heads * (head_dim + rope_dim + value_dim) * itemsize)


def mla_decode_reference(q, q_rope, cache, w_uk, w_uv, lengths, scale):
    """As the heads are defined: keys and values of every head are made."""
    out = q.new_zeros(*q.shape[:2], w_uv.shape[2])
    for b, n in enumerate(lengths.tolist()):
        if n:
            scores, v = _scores(q[b], q_rope[b], cache[b, :n], w_uk, w_uv, scale)
            out[b] = (scores.softmax(-1)[:, None] @ v)[:, 0]
    return out


def mla_decode_terms(q, q_rope, cache, w_uk, w_uv, lengths, scale):
    """exp(s) errs by the error of s, which is relative to Σ|q k|, so the weights do."""
    out = q.new_zeros(*q.shape[:2], w_uv.shape[2])
    for b, n in enumerate(lengths.tolist()):
        if n:
            scores, _ = _scores(q[b], q_rope[b], cache[b, :n], w_uk, w_uv, scale)
            size, v = _scores(q[b].abs(), q_rope[b].abs(), cache[b, :n].abs(), w_uk.abs(), w_uv.abs(), scale)
            out[b] = ((scores.softmax(-1) * (1 + size.abs()))[:, None] @ v)[:, 0]
    return out


def _scores(q, q_rope, cache, w_uk, w_uv, scale):
    """Return the scores (H, n) of one sequence's query, and its values (H, n, V)."""
    c, k_rope = cache.split((w_uk.shape[2], q_rope.shape[-1]), dim=-1)
    k = c @ w_uk.transpose(1, 2)  # (H, n, D)
    scores = (k @ q[:, :, None])[..., 0] + q_rope @ k_rope.T
    return scores * ((q.shape[-1] + q_rope.shape[-1]) ** -0.5 if scale is None else scale), c @ w_uv


def _operands(lengths, heads, D, P, R, V, scale=None, transposed=False, tokens=None):
    def inputs(d: Draw):
        n = lengths(d) if callable(lengths) else lengths
        q, q_rope = d.normal(len(n), heads, D), d.normal(len(n), heads, P)
        cache = d.normal(len(n), tokens or max(n) + 1, R + P)
        for row, used in zip(cache, n, strict=True):
            row[used:] = float("nan")  # nobody has written there, so anything may be
        w_uk, w_uv = d.normal(heads, D, R, scale=R**-0.5), d.normal(heads, R, V, scale=R**-0.5)
        if transposed:
            w_uk, w_uv = d.transposed(w_uk), d.transposed(w_uv)
        return q, q_rope, cache, w_uk, w_uv, torch.tensor(n, dtype=torch.int32), scale

    return inputs


def _around_a_split(d: Draw):
    n = d.blocks["SPLIT"]
    return n - 1, n, n + 1, 0


def _more_parts_than_a_block(d: Draw):
    """The last token has the largest score by far: what was summed up before it is scaled down."""
    last = d.blocks["SPLIT"] * PARTS
    q, q_rope, cache, *rest = _operands((last + 1,), 16, 16, 8, 32, 16)(d)
    cache[0, last, -q_rope.shape[-1] :] = 5 * q_rope[0, 0]
    return q, q_rope, cache, *rest


def _of_length(d: Draw, n, heads):
    return _operands((n,) * 16, heads, 128, 64, 512, 128, tokens=n)(d)


def _cost(q, q_rope, cache, w_uk, w_uv, lengths, _scale, out):
    tokens, width = int(lengths.sum()), cache.shape[2]
    moved = tokens * width + sum(t.numel() for t in (q, q_rope, w_uk, w_uv, out))
    flops = 2 * tokens * q.shape[1] * (width + w_uk.shape[2]) + 2 * q.shape[0] * (w_uk.numel() + w_uv.numel())
    return Cost(moved * q.element_size(), flops=flops, unit=named(q.dtype))


BLOCKS = Blocks(SPLIT=256, PROGRAMS=1, BLOCK_H=16, BLOCK_N=16, BLOCK_K=64, DESCRIPTORS=0, num_warps=4, num_stages=1)
SPACE = {
    "SPLIT": (128, 256, 512, 1024, 2048, 4096),
    "BLOCK_H": (16, 32, 64),
    "BLOCK_N": (16, 32, 64),
    "BLOCK_K": (32, 64, 128, 256, 512),
    "num_warps": (4, 8),
    "num_stages": (1, 2, 3),
}


def _case(name, operator, samples, heads):
    return KernelCase(
        name=name,
        operator=operator,
        launch=launch_mla_decode,
        reference=mla_decode_reference,
        terms=mla_decode_terms,
        samples=samples,
        dtypes=("float32", "float16", "bfloat16"),
        cost=_cost,
        sweep=Sweep(powers_of_2(8, 14), lambda d, n: _of_length(d, n, heads), f"tokens of 16 sequences, {heads} heads"),
        blocks=BLOCKS,
        space=SPACE,
    )


def _timed(heads):
    inputs = _operands((8192,) * 16, heads, 128, 64, 512, 128, tokens=8192)
    return Sample(f"16x8192-h{heads}-128.64.512.128", inputs, bench=True, dtypes=("float16", "bfloat16"))


CASES = [
    _case(
        "mla_decode",
        mla_decode,
        (
            Sample("1-h1-1.1.1.1", _operands((1,), 1, 1, 1, 1, 1)),
            Sample("33.7.0-h5-20.6.40.24", _operands((33, 7, 0), 5, 20, 6, 40, 24, scale=0.2), quick=True),
            Sample("64.48-h16-32.16.64.32", _operands((64, 48), 16, 32, 16, 64, 32)),
            Sample("around-a-split-h17-16.8.32.16", _operands(_around_a_split, 17, 16, 8, 32, 16)),
            Sample("more-parts-than-a-block-h16-16.8.32.16", _more_parts_than_a_block),
            Sample("40.9-h2-16.8.24.16-large-scores", _operands((40, 9), 2, 16, 8, 24, 16, scale=30.0)),
            Sample("9.20-h4-32.16.48.80-transposed", _operands((9, 20), 4, 32, 16, 48, 80, transposed=True)),
            # Caches that are full to their last number, with no rotated part behind the latent, of more and less than a
            # block.
            Sample("23.35-h2-16.0.100.16-full", _operands((23, 35), 2, 16, 0, 100, 16, tokens=35)),
            Sample("5.7-h2-4.0.5.3-full", _operands((5, 7), 2, 4, 0, 5, 3, tokens=7)),
            Sample("35-h4-128.64.512.128", _operands((35,), 4, 128, 64, 512, 128)),  # DeepSeek's own sizes
            _timed(128),
        ),
        heads=128,
    ),
    _case(
        "mla_decode_few_heads",
        mla_decode_few_heads,
        (
            Sample("33.7.0-h5-20.6.40.24", _operands((33, 7, 0), 5, 20, 6, 40, 24, scale=0.2), quick=True),
            Sample("around-a-split-h3-16.8.32.16", _operands(_around_a_split, 3, 16, 8, 32, 16)),
            Sample("33.7.0-h5-20.24.40.24", _operands((33, 7, 0), 5, 20, 24, 40, 24, scale=0.2)),  # rows at 16 bytes
            Sample("23.35-h2-16.8.104.16-full", _operands((23, 35), 2, 16, 8, 104, 16, tokens=35)),
            _timed(16),
        ),
        heads=16,
    ),
]
