"""The further operators: what they refuse, and what their cases of the matrix do not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from portability.backend import Session
from portability.backends.cuda import Cuda
from portability.kernel import Blocks
from portability.kernels import autotuned
from portability.kernels.causal_convolution import convolution_range, convolution_static_range
from portability.kernels.cross_entropy import cross_entropy, cross_entropy_backward
from portability.kernels.cumsum import cumsum
from portability.kernels.decode_attention import decode_attention
from portability.kernels.decoder_layer import DecoderLayer, cached_attention, decoder_layer
from portability.kernels.dropout import dropout, dropout_backward
from portability.kernels.embedding import embedding, embedding_backward
from portability.kernels.float8_matmul import float8_matmul
from portability.kernels.grouped_matmul import grouped_matmul
from portability.kernels.histogram import histogram
from portability.kernels.mla_decode import cache_bytes, mla_decode
from portability.kernels.paged_cache import PagedCache, paged_append
from portability.kernels.quantized_matmul import (
    int4_matmul,
    int4_reference,
    int8_matmul,
    int8_reference,
    quantize_int4,
    quantize_int8,
)
from portability.kernels.rotary_embedding import (
    angles,
    rotary_embedding,
    rotary_embedding_backward,
    rotary_embedding_pair,
    rotary_reference,
)
from portability.kernels.swiglu import swiglu, swiglu_backward
from portability.kernels.topk import topk

Call = Callable[[], object]


def f(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device=device)


def i(*shape: int, dtype: torch.dtype = torch.int32, device: str = "cpu") -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def f8(*shape: int) -> torch.Tensor:
    return f(*shape).to(torch.float8_e4m3fn)


def mla(**changed: torch.Tensor) -> Call:
    given = {"q": f(2, 3, 8), "q_rope": f(2, 3, 4), "cache": f(2, 9, 16), "w_uk": f(3, 8, 12), "w_uv": f(3, 12, 6)}
    return lambda: mla_decode(**{**given, "lengths": i(2), **changed})


def decode(**changed: torch.Tensor) -> Call:
    given = {"q": f(2, 4, 8), "k_pages": f(3, 16, 2, 8), "v_pages": f(3, 16, 2, 8), "page_table": i(2, 2)}
    return lambda: decode_attention(**{**given, "lengths": i(2), **changed})


def append(**changed: torch.Tensor) -> Call:
    given = {"k_pages": f(3, 16, 2, 8), "v_pages": f(3, 16, 2, 8), "page_table": i(2, 2), "lengths": i(2)}
    return lambda: paged_append(**{**given, "k": f(2, 1, 2, 8), "v": f(2, 1, 2, 8), **changed})


META = {"device": "meta"}
MIXED_DEVICES: dict[str, Call] = {
    "swiglu": lambda: swiglu(f(2, 3), f(2, 3, **META)),
    "swiglu_backward": lambda: swiglu_backward(f(2, 3, **META), f(2, 3), f(2, 3)),
    "rotary_embedding": lambda: rotary_embedding(f(1, 2, 3, 4), f(2, 2), f(2, 2, **META)),
    "rotary_embedding_backward": lambda: rotary_embedding_backward(f(1, 2, 3, 4, **META), f(2, 2), f(2, 2)),
    "rotary_embedding_pair": lambda: rotary_embedding_pair(f(1, 2, 3, 4), f(1, 2, 3, 4, **META), f(2, 2), f(2, 2)),
    "cross_entropy": lambda: cross_entropy(f(2, 3), i(2, dtype=torch.int64, **META)),
    "cross_entropy_backward": lambda: cross_entropy_backward(f(2, **META), f(2, 3), i(2), f(2)),
    "embedding": lambda: embedding(f(2, 3), i(4, **META)),
    "embedding_backward": lambda: embedding_backward(f(4, 3), i(4, **META), 2),
    "grouped_matmul": lambda: grouped_matmul(f(4, 3), f(2, 3, 5), i(2, **META)),
    "decode_attention": decode(page_table=i(2, 2, **META)),
    "paged_append": append(v=f(2, 1, 2, 8, **META)),
    "mla_decode": mla(w_uv=f(3, 12, 6, **META)),
    "int4_matmul": lambda: int4_matmul(f(2, 32), i(16, 5, dtype=torch.uint8, **META), f(1, 5)),
    "int8_matmul": lambda: int8_matmul(f(2, 32), i(32, 5, dtype=torch.int8), f(1, 5, **META)),
    "float8_matmul": lambda: float8_matmul(f8(2, 32), f(2, 1), f8(32, 5), f(1, 1, **META)),
    "sgd_step": lambda: autotuned.sgd_step(f(3), f(3, **META), 0.1),
    "convolution_range": lambda: convolution_range(f(1, 2, 3), f(3, 4, **META)),
    "convolution_static_range": lambda: convolution_static_range(f(1, 2, 3, **META), f(3, 4)),
}


@pytest.mark.parametrize("operator", MIXED_DEVICES)
def test_operands_on_two_devices_are_refused(operator: str) -> None:
    """The error names the operator and both devices."""
    with pytest.raises(
        ValueError, match=rf"{operator}: operands must share one device.* on (cpu|meta).* on (cpu|meta)"
    ):
        MIXED_DEVICES[operator]()


DOUBLE = {"dtype": torch.float64}
WRONG_DTYPES: dict[str, tuple[Call, str]] = {
    "swiglu": (lambda: swiglu(f(2, 3, **DOUBLE), f(2, 3, **DOUBLE)), "gate is float64; taken are float32"),
    "swiglu-mixed": (lambda: swiglu(f(2, 3), f(2, 3).half()), "gate is float32, up is float16"),
    "swiglu_backward": (lambda: swiglu_backward(f(2, 3).half(), f(2, 3), f(2, 3)), "dout is float16"),
    "rotary_embedding": (lambda: rotary_embedding(i(1, 2, 3, 4), f(2, 2), f(2, 2)), "x is int32"),
    "rotary_embedding-mixed": (lambda: rotary_embedding(f(1, 2, 3, 4), f(2, 2), f(2, 2).half()), "sin is float16"),
    "cross_entropy": (lambda: cross_entropy(f(2, 3), f(2)), "target is float32; taken are int64, int32"),
    "cross_entropy_backward": (lambda: cross_entropy_backward(f(2).half(), f(2, 3), i(2), f(2)), "dloss is float16"),
    "embedding": (lambda: embedding(f(2, 3), f(4)), "ids is float32; taken are int64, int32"),
    "embedding_backward": (lambda: embedding_backward(i(4, 3), i(4), 2), "dout is int32"),
    "dropout": (lambda: dropout(i(4), 0.5), "x is int32"),
    "dropout_backward": (lambda: dropout_backward(i(4), 0.5, 1), "dout is int32"),
    "topk": (lambda: topk(i(2, 3), 1), "x is int32; taken are float32, float16, bfloat16"),
    "cumsum": (lambda: cumsum(i(2, 3, dtype=torch.bool)), "x is bool"),
    "histogram": (lambda: histogram(f(4), 3), "x is float32; taken are int32"),
    "grouped_matmul": (lambda: grouped_matmul(f(4, 3), f(2, 3, 5).half(), i(2)), "x is float32, w is float16"),
    "grouped_matmul-ends": (lambda: grouped_matmul(f(4, 3), f(2, 3, 5), i(2, dtype=torch.int64)), "ends is int64"),
    "decode_attention": (decode(v_pages=f(3, 16, 2, 8).half()), "v_pages is float16"),
    "decode_attention-lengths": (decode(lengths=i(2, dtype=torch.int64)), "lengths is int64"),
    "paged_append": (append(k=f(2, 1, 2, 8).half()), "k is float16"),
    "mla_decode": (mla(cache=f(2, 9, 16).half()), "cache is float16"),
    "int4_matmul": (
        lambda: int4_matmul(f(2, 32), i(16, 5, dtype=torch.int8), f(1, 5)),
        "packed is int8; taken are uint8",
    ),
    "int8_matmul": (lambda: int8_matmul(f(2, 32), i(32, 5, dtype=torch.uint8), f(1, 5)), "q is uint8; taken are int8"),
    "float8_matmul": (
        lambda: float8_matmul(f(2, 32), f(2, 1), f8(32, 5), f(1, 1)),
        "x is float32; taken are float8_e4m3fn",
    ),
    "float8_matmul-mixed": (
        lambda: float8_matmul(f8(2, 32), f(2, 1), f(32, 5).to(torch.float8_e5m2), f(1, 1)),
        "x is float8_e4m3fn, q is float8_e5m2",
    ),
    "column_sum": (lambda: autotuned.column_sum(i(2, 3)), "x is int32"),
    "column_max": (lambda: autotuned.column_max(f(2, 3)), "x is float32; taken are int32"),
    "sgd_step": (lambda: autotuned.sgd_step(f(3), f(3).half(), 0.1), "p is float32, g is float16"),
    "normalize": (lambda: autotuned.normalize(i(2, 3)), "x is int32"),
    "convolution_range": (lambda: convolution_range(f(1, 2, 3), f(3, 4).half()), "w is float16"),
}


@pytest.mark.parametrize("operator", WRONG_DTYPES)
def test_another_dtype_is_a_type_error(operator: str) -> None:
    """The error names the operator, the operand, what was given and what is taken."""
    call, message = WRONG_DTYPES[operator]
    with pytest.raises(TypeError, match=rf"^{operator.partition('-')[0]}: .*{message}"):
        call()


WRONG_VALUES: dict[str, tuple[Call, str]] = {
    "swiglu": (lambda: swiglu(f(2, 3), f(3, 2)), r"up has shape \(3, 2\), expected \(2, 3\)"),
    "swiglu-layout": (lambda: swiglu(f(2, 3, 4).transpose(0, 1), f(3, 2, 4)), "gate of shape .* is not a view of rows"),
    "swiglu_backward": (lambda: swiglu_backward(f(3), f(2, 3), f(2, 3)), r"dout has shape \(3,\), expected \(2, 3\)"),
    "rotary_embedding": (lambda: rotary_embedding(f(2, 3, 4), f(2, 2), f(2, 2)), "x has shape"),
    "rotary_embedding_pair": (
        lambda: rotary_embedding_pair(f(1, 2, 3, 4), f(1, 2, 3, 6), f(2, 2), f(2, 2)),
        "k has shape",
    ),
    "rotary_embedding_pair-angles": (
        lambda: rotary_embedding_pair(f(1, 2, 3, 4), f(1, 2, 3, 4), f(2, 2), f(2, 4)[:, :2]),
        "sin has strides",
    ),
    "rotary_embedding-positions": (lambda: rotary_embedding(f(1, 2, 3, 4), f(3, 2), f(3, 2)), "cos has shape"),
    "rotary_embedding-too-wide": (lambda: rotary_embedding(f(1, 2, 3, 4), f(2, 3), f(2, 3)), "R = 6; taken is 2 to"),
    "rotary_embedding-layout": (lambda: rotary_embedding(f(1, 2, 3, 4), f(2, 2).T, f(2, 2).T), "cos has strides"),
    "rotary_embedding-gradient": (
        lambda: rotary_embedding(f(1, 2, 3, 4), f(2, 2).requires_grad_(), f(2, 2)),
        "cos requires a gradient",
    ),
    "cross_entropy": (lambda: cross_entropy(f(2, 3), i(3)), r"target has shape \(3,\), expected \(2,\)"),
    "cross_entropy-layout": (lambda: cross_entropy(f(2, 3), i(4)[::2]), "target .* contiguous"),
    "cross_entropy-reduction": (
        lambda: cross_entropy(f(2, 3), i(2), reduction="max"),
        "'max' is none of mean, sum, none",
    ),
    "cross_entropy-smoothing": (lambda: cross_entropy(f(2, 3), i(2), label_smoothing=2.0), "label_smoothing is 2.0"),
    "cross_entropy-classes": (lambda: cross_entropy(f(2, 0), i(2)), "have no class"),
    "cross_entropy_backward": (lambda: cross_entropy_backward(f(3), f(2, 3), i(2), f(2)), "dloss has shape"),
    "embedding": (lambda: embedding(f(2), i(4)), r"weight has shape \(2,\), expected \(V, D\)"),
    "embedding-padding": (lambda: embedding(f(2, 3), i(4), padding_idx=2), "padding_idx is 2; taken is a row, 0 to 1"),
    "embedding-layout": (lambda: embedding(f(2, 3), i(4, 2).T), "ids .* contiguous"),
    "embedding_backward": (lambda: embedding_backward(f(3, 3), i(4), 2), "dout has shape"),
    "dropout": (lambda: dropout(f(4), 1.5), "p is 1.5; taken is a probability"),
    "dropout-seed": (lambda: dropout(f(4), 0.5, seed=-1), "seed is -1"),
    "dropout-layout": (lambda: dropout(f(4, 2).T, 0.5), "x .* contiguous"),
    "topk": (lambda: topk(f(2, 3), 4), "k is 4; taken is 0 to 3"),
    "topk-most": (lambda: topk(f(2, 300), 129), "k is 129; taken is 0 to 128"),
    "topk-layout": (lambda: topk(f(2, 3, 4).transpose(0, 1), 1), "x of shape .* is not a view of rows"),
    "cumsum": (lambda: cumsum(f()), "x is a scalar"),
    "cumsum-gradient": (lambda: cumsum(f(2, 3).requires_grad_()), "x requires a gradient"),
    "histogram": (lambda: histogram(i(4), 0), "bins is 0; taken is 1 to 4096"),
    "histogram-layout": (lambda: histogram(i(4, 2).T, 3), "x .* contiguous"),
    "grouped_matmul": (lambda: grouped_matmul(f(4, 3), f(2, 4, 5), i(2)), r"w has shape .* expected \(G, 3, N\)"),
    "grouped_matmul-ends": (lambda: grouped_matmul(f(4, 3), f(2, 3, 5), i(3)), "ends has shape"),
    "decode_attention": (decode(q=f(2, 3, 8)), "3 query heads are no multiple of 2 heads of keys"),
    "decode_attention-table": (decode(page_table=i(3, 2)), "page_table has shape"),
    "decode_attention-layout": (decode(q=f(2, 8, 4).transpose(1, 2)), "q has strides"),
    "paged_append": (append(k=f(2, 1, 4, 8)), r"k has shape \(2, 1, 4, 8\), expected \(2, T, 2, 8\)"),
    "mla_decode": (mla(cache=f(2, 9, 15)), r"cache has shape .* expected \(2, tokens, 16\)"),
    "mla_decode-nothing": (
        mla(cache=f(2, 9, 4), w_uk=f(3, 8, 0), w_uv=f(3, 0, 6)),
        r"w_uk has shape \(3, 8, 0\): a latent of one element or more is taken",
    ),
    "int4_matmul": (
        lambda: int4_matmul(f(2, 96), i(48, 5, dtype=torch.uint8), f(1, 5)),
        "K = 96 in 1 groups; taken are",
    ),
    "int8_matmul": (lambda: int8_matmul(f(2, 32), i(32, 5, dtype=torch.int8), f(3, 5)), "K = 32 in 3 groups"),
    "int8_matmul-gradient": (
        lambda: int8_matmul(f(2, 32).requires_grad_(), i(32, 5, dtype=torch.int8), f(1, 5)),
        "x requires a gradient",
    ),
    "float8_matmul": (
        lambda: float8_matmul(f8(2, 129), f(2, 1), f8(129, 5), f(2, 1)),
        r"x_scales .* expected \(2, 2\)",
    ),
    "column_sum": (lambda: autotuned.column_sum(f(3)), "x has shape"),
    "sgd_step": (lambda: autotuned.sgd_step(f(3), f(4), 0.1), "g has shape"),
    "normalize": (lambda: autotuned.normalize(f(1, 65537)), "at most 65536 are taken"),
    "convolution_range": (
        lambda: convolution_range(f(1, 2, 3), f(4, 4)),
        r"w has shape \(4, 4\), expected \(3, taps\)",
    ),
}


@pytest.mark.parametrize("operator", WRONG_VALUES)
def test_another_shape_layout_or_option_is_a_value_error(operator: str) -> None:
    """The error names the operator, what was given and what is taken."""
    call, message = WRONG_VALUES[operator]
    with pytest.raises(ValueError, match=rf"^{operator.partition('-')[0]}: .*{message}"):
        call()


# --------------------------------------------------------------------------------------------- what cases do not show


def gradients(outputs: torch.Tensor, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    weights = torch.arange(outputs.numel(), dtype=outputs.dtype).view(outputs.shape).sin()
    return torch.autograd.grad((outputs * weights).sum(), inputs)


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).requires_grad_()


def test_swiglu_is_differentiable(interpreter: Session) -> None:
    """Autograd reaches the backward kernel, through a gradient that is a broadcast scalar too."""
    gate, up = leaf(3, 5, 7), leaf(3, 5, 7)

    def twin() -> torch.Tensor:
        return torch.nn.functional.silu(gate) * up

    torch.testing.assert_close(gradients(swiglu(gate, up), gate, up), gradients(twin(), gate, up))
    sums = swiglu(gate, up).sum(), twin().sum()
    torch.testing.assert_close(*(torch.autograd.grad(total, (gate, up)) for total in sums))


def test_rotary_embedding_of_a_pair_is_differentiable(interpreter: Session) -> None:
    """Queries and keys, which have heads of their own, are turned back each by itself."""
    q, k, (cos, sin) = leaf(2, 3, 4, 6), leaf(2, 3, 2, 6), angles(torch.arange(3), 4)
    for x, which in ((q, 0), (k, 1)):
        turned = rotary_embedding_pair(q, k, cos, sin)[which]
        torch.testing.assert_close(gradients(turned, x), gradients(rotary_reference(x, cos, sin), x))


def test_rotary_embedding_is_differentiable(interpreter: Session) -> None:
    """The gradient is the rotation back."""
    x, (cos, sin) = leaf(2, 3, 2, 6), angles(torch.arange(3), 4)
    torch.testing.assert_close(gradients(rotary_embedding(x, cos, sin), x), gradients(rotary_reference(x, cos, sin), x))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_is_torchs(interpreter: Session, reduction: str) -> None:
    """Loss and gradient, with an ignored row and smoothing."""
    logits, target = leaf(4, 9), torch.tensor([3, -100, 0, 8])
    options = {"label_smoothing": 0.2, "reduction": reduction}
    loss = cross_entropy(logits, target, **options)
    twin = torch.nn.functional.cross_entropy(logits, target, **options)
    torch.testing.assert_close(loss, twin)
    torch.testing.assert_close(gradients(loss, logits), gradients(twin, logits))


def test_cross_entropy_of_a_target_that_is_no_class_is_nan(interpreter: Session) -> None:
    """A kernel cannot raise, and must not read past the row."""
    loss = cross_entropy(f(3, 5), torch.tensor([5, -1, 4]), reduction="none")
    assert loss.isnan().tolist() == [True, True, False]


def test_embedding_is_differentiable(interpreter: Session) -> None:
    """The padding row gets no gradient."""
    weight, ids = leaf(5, 3), torch.tensor([[1, 4, 1], [0, 2, 2]])
    twin = torch.nn.functional.embedding(ids, weight, padding_idx=2)
    torch.testing.assert_close(gradients(embedding(weight, ids, 2), weight), gradients(twin, weight))


def test_embedding_of_an_id_that_is_no_row_is_nan(interpreter: Session) -> None:
    """Ids below 0 and past the end are not read."""
    out = embedding(f(3, 2), torch.tensor([-1, 2, 3]))
    assert out.isnan().tolist() == [[True, True], [False, False], [True, True]]


@pytest.mark.parametrize("size", [64, 128, 2048])
def test_the_mask_of_dropout_does_not_depend_on_the_block_size(interpreter: Session, size: int) -> None:
    """Only seed and place decide."""
    x = f(1000)
    expected = dropout(x, 0.4, seed=7, blocks=Blocks(BLOCK_SIZE=256, num_warps=1))
    assert torch.equal(dropout(x, 0.4, seed=7, blocks=Blocks(BLOCK_SIZE=size, num_warps=1)), expected)


def test_the_backward_of_dropout_has_the_forwards_mask(interpreter: Session) -> None:
    """What was dropped gets no gradient, what was kept gets 1 / (1 - p)."""
    x = f(500).requires_grad_()
    out = dropout(x, 0.5)  # a seed of its own
    assert torch.equal(*torch.autograd.grad(out.sum(), x), out.detach())


def test_dropout_drops_the_share_that_is_asked_for(interpreter: Session) -> None:
    """Within four standard deviations."""
    n, p = 20_000, 0.3
    dropped = int((dropout(f(n), p, seed=3) == 0).sum())
    assert abs(dropped - n * p) < 4 * (n * p * (1 - p)) ** 0.5


def test_a_second_derivative_is_refused(interpreter: Session) -> None:
    """The backward kernels have no backward: that must not look like a gradient of 0."""
    gate, up = leaf(2, 3), leaf(2, 3)
    (grad,) = torch.autograd.grad(swiglu(gate, up).square().sum(), gate, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_a_paged_cache_grows_as_plain_keys_and_values_do(interpreter: Session) -> None:
    """A prompt and then token by token, over several pages, with query heads that share keys."""
    cache = PagedCache(batch=2, kv_heads=2, head_dim=8, max_tokens=12, page_size=4)
    k, v = torch.randn(2, 9, 2, 8), torch.randn(2, 9, 2, 8)
    cache.append(k[:, :4], v[:, :4])
    for t in range(4, 9):
        cache.append(k[:, t : t + 1], v[:, t : t + 1])
        q = torch.randn(2, 4, 8)
        keys, values = (x[:, : t + 1].transpose(1, 2).repeat_interleave(2, 1) for x in (k, v))
        twin = torch.nn.functional.scaled_dot_product_attention(q[:, :, None], keys, values)
        torch.testing.assert_close(cache.attend(q), twin[:, :, 0])


def test_a_paged_cache_takes_memory_as_tokens_come(interpreter: Session) -> None:
    """A page a sequence for each page of tokens; released pages are used again; a full pool says so."""
    cache = PagedCache(batch=2, kv_heads=1, head_dim=4, max_tokens=8, pages=3, page_size=2)
    token = f(2, 1, 1, 4)
    cache.append(token, token)
    cache.append(token, token)
    assert [len(pages) for pages in cache.used] == [1, 1]
    with pytest.raises(MemoryError, match="all 3 pages of 2 tokens are in use"):
        cache.append(token, token)
    cache.release(1)
    cache.append(token, token)
    assert [len(pages) for pages in cache.used] == [2, 1]


def test_a_full_sequence_of_a_paged_cache_says_so(interpreter: Session) -> None:
    """It is not written past its table."""
    cache = PagedCache(batch=1, kv_heads=1, head_dim=4, max_tokens=2, page_size=2)
    for _ in range(2):
        cache.append(f(1, 1, 1, 4), f(1, 1, 1, 4))
    with pytest.raises(ValueError, match="sequence 0 is full, with 2 tokens"):
        cache.append(f(1, 1, 1, 4), f(1, 1, 1, 4))


def test_the_latent_cache_is_counted_beside_plain_heads() -> None:
    """DeepSeek-V2: 576 numbers a token in place of 128 heads of 192 + 128."""
    counted = cache_bytes(1000, heads=128, head_dim=128, rope_dim=64, value_dim=128, rank=512, itemsize=2)
    assert (counted.latent, counted.plain) == (1000 * 576 * 2, 1000 * 128 * 320 * 2)
    assert str(counted) == "1,152,000 B latent, 81,920,000 B plain: 71.1 times"


@pytest.mark.parametrize("group", [32, 64])
def test_int4_weights_come_back_within_half_a_step(group: int) -> None:
    """The reference unpacks what `quantize_int4` packs."""
    w = torch.randn(128, 5)
    packed, scales = quantize_int4(w, group)
    error = (int4_reference(torch.eye(128), packed, scales) - w).abs().view(-1, group, 5)
    assert bool((error <= scales[:, None] / 2 + 1e-6).all())
    assert packed.numel() * packed.element_size() == w.numel() // 2


def test_int8_weights_come_back_within_half_a_step() -> None:
    """One scale a column."""
    w = torch.randn(50, 5)
    q, scales = quantize_int8(w)
    assert bool(((int8_reference(torch.eye(50), q, scales) - w).abs() <= scales / 2 + 1e-6).all())


def test_trials_of_a_tuner_do_not_add_up(interpreter: Session) -> None:
    """With every configuration tried on the caller's tensors, sums, maxima and updates are those of one launch."""
    interpreter.configs = "all"  # type: ignore[attr-defined]  # of the interpreter's session
    x = torch.randn(70, 40)
    torch.testing.assert_close(autotuned.column_sum(x), x.sum(0))
    whole = -torch.arange(1, 61, dtype=torch.int32).view(20, 3)
    assert torch.equal(autotuned.column_max(whole), whole.amax(0))
    p, g = torch.randn(300), torch.randn(300)
    torch.testing.assert_close(autotuned.sgd_step(p.clone(), g, 0.5, 0.1), p - 0.5 * (g + 0.1 * p))


def test_a_tuning_is_recorded_once_a_key() -> None:
    """Sizes that round up to one power of two share a key; another size is tuned anew, with what pruning leaves."""
    cuda = Cuda()
    target = next(t for t in cuda.status() if t.id == "cuda:90")
    with cuda.open(target) as session:
        for rows, columns in ((5, 100), (7, 120), (20, 100), (20, 60)):
            autotuned.column_sum(torch.zeros(rows, columns))
    made = {t.key: t.configurations for t in session.tunings.values()}
    counts = {"8, 128": 3, "32, 128": 3, "32, 64": 2}
    assert made == {f"{key}, torch.float32, torch.float32": n for key, n in counts.items()}
    assert all(t.kernel == "column_sum_kernel" and t.seconds > 0 for t in session.tunings.values())


def test_given_blocks_leave_the_tuner_out(interpreter: Session) -> None:
    """So that a table can take its place."""
    x = torch.randn(70, 40)
    autotuned.column_sum(x, blocks=Blocks(BLOCK_M=16, BLOCK_N=16, num_warps=1))
    (launch,) = interpreter.launches
    assert launch.grid == (5, 3)
    assert not launch.config


def test_too_wide_configurations_are_not_tried() -> None:
    """Of a narrow matrix most of a wide tile would be empty."""
    kept = autotuned.narrow_enough(autotuned.COLUMN_CONFIGS, {"N": 40})
    assert [config.kwargs["BLOCK_N"] for config in kept] == [32, 64]
    assert [c.kwargs["BLOCK_N"] for c in autotuned.narrow_enough(autotuned.COLUMN_CONFIGS, {"N": 1})] == [32]


def test_a_convolution_reads_no_neighbouring_sequence(interpreter: Session) -> None:
    """The first time of a sequence has no past."""
    x = torch.randn(3, 4, 2)
    w = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    for convolution in (convolution_range, convolution_static_range):
        out = convolution(x, w)
        assert torch.equal(out[:, 0], torch.zeros(3, 2))
        assert torch.equal(out[:, 1:], x[:, :-1])


def test_a_training_step_of_the_decoder_layer_follows_its_twin(interpreter: Session) -> None:
    """One module's parameters in both; a step of SGD from each loss leaves the same parameters."""
    torch.manual_seed(0)
    layer, twin = DecoderLayer(16, heads=2, hidden=24), DecoderLayer(16, heads=2, hidden=24, plain=True)
    twin.load_state_dict(layer.state_dict())
    x, target = torch.randn(2, 5, 16), torch.randn(2, 5, 16)
    for module in (layer, twin):
        (module(x) - target).square().mean().backward()
        torch.optim.SGD(module.parameters(), lr=0.1).step()
    torch.testing.assert_close(layer.state_dict(), twin.state_dict())


def test_the_decoder_layer_goes_on_from_its_cache(interpreter: Session) -> None:
    """Each generated token is the next input, and the twin sees the whole sequence again each time."""
    torch.manual_seed(0)
    layer, twin = DecoderLayer(16, heads=2, bias=False), DecoderLayer(16, heads=2, bias=False, plain=True)
    twin.load_state_dict(layer.state_dict())
    with torch.no_grad():
        cache = layer.cache(batch=1, max_tokens=8, page_size=4)
        sequence = torch.randn(1, 3, 16)
        out = layer(sequence, cache)
        for _ in range(4):
            torch.testing.assert_close(out[:, -1], twin(sequence)[:, -1])
            sequence = torch.cat([sequence, out[:, -1:]], dim=1)
            out = layer(sequence[:, -1:].contiguous(), cache)
    assert cache.tokens == [7]


def test_the_decoder_layer_takes_one_prompt() -> None:
    """A second one would not see the first."""
    layer = DecoderLayer(16, heads=2)
    cache = layer.cache(batch=1, max_tokens=8)
    cache.tokens = [3]
    with pytest.raises(ValueError, match=r"2 tokens for a cache of \[3\]; taken is one at a time"):
        cached_attention(f(1, 2, 2, 8), f(1, 2, 2, 8), f(1, 2, 2, 8), cache)


def test_the_decoder_layer_refuses_heads_that_do_not_divide_its_features() -> None:
    """The error names both."""
    layer = DecoderLayer(16, heads=2)
    with pytest.raises(ValueError, match="3 heads of 16 features"):
        decoder_layer(f(1, 2, 16), layer.weights(), heads=3)
