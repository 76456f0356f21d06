"""What kernels of attention share: loads, softmax, blocks for a head, checks, and attention in plain torch."""

import functools

import torch
import triton
import triton.language as tl

from portability.kernel import Draw, next_power_of_2
from portability.kernels.checks import (
    FLOATS,
    check_device,
    check_dtype,
    check_last_stride,
    check_shape,
    once_per_layout,
)


@triton.jit
def row_pointers(ptr, start, stride, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr):
    """Return pointers to BLOCK_D elements of each of BLOCK rows of a matrix, from row `start` on."""
    rows = start + tl.arange(0, BLOCK)[:, None]
    return ptr + rows.to(tl.int64) * stride + tl.arange(0, BLOCK_D)[None, :]


@triton.jit
def load_tile(ptrs, left, RAGGED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Return what `row_pointers` lead to, with zeros past D. RAGGED: there may be fewer than BLOCK rows left."""
    if RAGGED or D < BLOCK_D:
        mask = tl.arange(0, BLOCK)[:, None] < left
        if D < BLOCK_D:
            mask &= tl.arange(0, BLOCK_D)[None, :] < D
        tile = tl.load(ptrs, mask=mask, other=0.0)
    else:
        tile = tl.load(ptrs)
    return tile


@triton.jit
def load_rows(ptr, start, stride, n_rows, BLOCK: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Return rows `start` to `start + BLOCK` of a matrix of n_rows × D, with zeros past its end and past D."""
    return load_tile(row_pointers(ptr, start, stride, BLOCK, BLOCK_D), n_rows - start, True, BLOCK, D, BLOCK_D)


@triton.jit
def online_softmax(s, m, scale, MASKED: tl.constexpr):
    """Return P of the scores s, what rescales the sums so far, and m with s seen; `scale` includes log2 e."""
    m_new = tl.maximum(m, tl.max(s, axis=1) * scale)
    shift = m_new
    if MASKED:  # while a row has seen no key, there is nothing to subtract: -inf - -inf is NaN
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
    return tl.exp2(s * scale - shift[:, None]), tl.exp2(m - shift), m_new


@triton.jit
def add_sums(l, p, alpha, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, LANES: tl.constexpr):
    """Return l · alpha plus the sums of the rows of p, each in LANES parts, or in one of no dimension of its own.

    Where one thread holds all of a part, no thread waits for another.
    """
    if LANES == 1:
        l = l * alpha + tl.sum(p, axis=1)
    else:
        l = l * alpha[:, None] + tl.sum(tl.reshape(p, (BLOCK_M, BLOCK_N // LANES, LANES)), axis=1)
    return l


@triton.jit
def describe(ptr, rows, stride, BLOCK: tl.constexpr, D: tl.constexpr):
    """Describe the matrix that an operand lies in (`rows_of`), of which tiles are BLOCK rows of one head."""
    return tl.make_tensor_descriptor(ptr, [rows, stride], [stride, 1], [BLOCK, D])


@functools.lru_cache
def rows_of(shape, strides, itemsize):
    """Return how a tensor of (batch, sequence, heads, D) lies in one matrix, each of whose rows is a row of a head.

    That is (rows, stride, by_batch, by_head, columns): element (b, m, h, d) is in row b · by_batch + h · by_head + m,
    column h · columns + d. None where it is in no such matrix, or in one that no descriptor takes: those ask for rows
    that begin at multiples of 16 bytes, in the matrix and in its tiles.
    """
    (batch, length, heads, D), (stride_b, stride, stride_h, dense) = shape, strides
    if dense != 1 or stride < D or stride * itemsize % 16:
        return None
    by_batch, rest = divmod(stride_b, stride) if batch > 1 else (0, 0)
    by_head, columns = divmod(stride_h, stride) if heads > 1 else (0, 0)
    if rest or columns * itemsize % 16 or (columns and (by_head or (heads - 1) * columns + D > stride)):
        return None
    rows = (batch - 1) * by_batch + (heads - 1) * by_head + length
    return (rows, stride, by_batch, by_head, columns) if rows < 2**31 else None


def describable(*tensors):
    """Return whether descriptors take the tensors, as wide as a tile: D a power of two of 16 to 128."""
    D = tensors[0].shape[-1]
    return D in (16, 32, 64, 128) and all(
        t.numel() and t.data_ptr() % 16 == 0 and rows_of(t.shape, t.stride(), t.element_size()) for t in tensors
    )


def memory_for_descriptors(size, alignment, stream):
    """Allocate what `triton.set_allocator` asks for: memory for the descriptors that a kernel makes."""
    return torch.empty(size, dtype=torch.int8, device=triton.runtime.driver.active.get_active_torch_device())


@functools.lru_cache
def fit_head(D, itemsize, blocks, lengths=("BLOCK_M", "BLOCK_N")):
    """Return the constants and options for heads of D elements of `itemsize` bytes; `lengths` names what counts rows.

    A table's blocks are for heads of up to 128 and operands of two bytes; wider ones take as many bytes in shorter
    blocks.
    """
    BLOCK_D = max(16, next_power_of_2(D))
    wider = max(1, BLOCK_D // 128) * max(1, itemsize // 2)
    shorter = {name: max(16, blocks[name] // wider) for name in lengths}
    constants = {name: size for name, size in blocks.items() if not name.endswith("DESCRIPTORS")}  # choose kernels
    return constants | shorter | {"D": D, "BLOCK_D": BLOCK_D}


@once_per_layout
def check_attention(operator, q, k, v, causal, scale, out=None, dout=None):
    """Raise what `flash_attention` says for operands that it does not take."""
    like_q = {"out": out, "dout": dout}
    check_device(operator, q=q, k=k, v=v, **like_q)
    check_dtype(operator, FLOATS, q=q, k=k, v=v, **like_q)
    check_shape(operator, q=(q, ("batch", "seq_q", "heads", "D")), k=(k, ("batch", "seq_k", "kv_heads", "D")))
    batch, _, heads, D = q.shape
    check_shape(operator, k=(k, (batch, "seq_k", "kv_heads", D)), v=(v, k.shape))
    check_shape(operator, **{name: (t, q.shape) for name, t in like_q.items()})
    if not isinstance(causal, bool):
        raise TypeError(f"{operator}: causal is a {type(causal).__name__}; taken is a bool. No mask of another form is")
    if heads % max(1, k.shape[2]) or bool(heads) != bool(k.shape[2]):
        raise ValueError(f"{operator}: {heads} query heads, {k.shape[2]} of keys; a multiple of them is taken, but 0")
    if not 1 <= D <= 256:
        raise ValueError(f"{operator}: heads have dimension {D}; 1 to 256 is taken")
    if scale is not None and not scale > 0:
        raise ValueError(f"{operator}: scale is {scale}; a positive number is taken")
    check_last_stride(operator, q=q, k=k, v=v, **like_q)


def attention_of_head(q, k, v, causal, scale):
    """Attention of one head in plain torch: q of (seq_q, D), k and v of (seq_k, D)."""
    s = q @ k.T * scale
    if causal:
        rows = torch.arange(len(q), device=q.device)[:, None]
        columns = torch.arange(len(k), device=q.device)[None, :]
        s = s.masked_fill(columns > rows + len(k) - len(q), float("-inf"))
    lse = torch.logsumexp(s, -1)
    return torch.exp(s - lse.masked_fill(lse == float("-inf"), 0.0)[:, None]) @ v, lse


def per_head(function, q, k, v, causal, scale):
    """Return what `function` gives for each head, as (batch, seq_q, heads, D) and (batch, heads, seq_q).

    Head by head, so that long sequences fit into memory.
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out, lse = torch.empty_like(q), q.new_empty((q.shape[0], q.shape[2], q.shape[1]))
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            kv = h // (q.shape[2] // k.shape[2])
            out[b, :, h], lse[b, h] = function(q[b, :, h], k[b, :, kv], v[b, :, kv], causal, scale)
    return out, lse


def qkv(batch, seq_q, seq_k, heads, kv_heads, D, causal=False, scale=None, layout=None, size=1.0):
    """Return what draws the operands of these sizes; `layout` changes q, k and v."""

    def inputs(draw: Draw):
        shapes = ((batch, seq_q, heads, D), (batch, seq_k, kv_heads, D), (batch, seq_k, kv_heads, D))
        q, k, v = (draw.normal(*shape, scale=size) for shape in shapes)
        if layout:
            q, k, v = map(layout, (q, k, v))
        return q, k, v, causal, D**-0.5 if scale is None else scale

    return inputs


def heads_first(t):
    """The same values and shape, out of a tensor of (batch, heads, sequence, dim)."""
    return t.transpose(1, 2).contiguous().transpose(1, 2)
