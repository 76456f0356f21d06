"""The operators: what they refuse, with which error; and what hangs together behind them: gradients and launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from portability.backend import Session
from portability.kernel import Blocks
from portability.kernels import elementwise, matmul, matmul_persistent
from portability.kernels.flash_attention import flash_attention, flash_attention_with_lse
from portability.kernels.flash_attention_backward import flash_attention_backward
from portability.kernels.layer_norm import layer_norm
from portability.kernels.layer_norm_backward import layer_norm_backward
from portability.kernels.layer_norm_linear_gelu import layer_norm_linear_gelu, layer_norm_then_linear_then_gelu
from portability.kernels.linear import linear
from portability.kernels.rms_norm import rms_norm
from portability.kernels.rms_norm_backward import rms_norm_backward
from portability.kernels.softmax import softmax, softmax_backward
from portability.kernels.vector_add import add


def tensor(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=device)


def half(*shape: int) -> torch.Tensor:
    return tensor(*shape, dtype=torch.float16)


def meta(*shape: int) -> torch.Tensor:
    return tensor(*shape, device="meta")


@dataclass(frozen=True)
class Refusal:
    """A call, and what it must raise: the message names what was given and what is taken."""

    name: str
    call: Callable[[], Any]
    error: type[Exception]
    says: str


def shape(name: str, call: Callable[[], Any], says: str) -> Refusal:
    return Refusal(f"{name}-shape", call, ValueError, says)


def dtype(name: str, call: Callable[[], Any], says: str) -> Refusal:
    return Refusal(f"{name}-dtype", call, TypeError, says)


def device(name: str, call: Callable[[], Any]) -> Refusal:
    return Refusal(f"{name}-device", call, ValueError, "share one device, but .* on meta")


def layout(name: str, call: Callable[[], Any], says: str) -> Refusal:
    return Refusal(f"{name}-layout", call, ValueError, says)


def value(name: str, call: Callable[[], Any], error: type[Exception], says: str) -> Refusal:
    return Refusal(f"{name}-value", call, error, says)


def heads(seq: int = 4, heads: int = 2, D: int = 16, **options: Any) -> torch.Tensor:
    return tensor(1, seq, heads, D, **options)


REFUSALS = [
    shape("add", lambda: add(tensor(3), tensor(4)), r"y has shape \(4,\), expected \(3,\)"),
    dtype("add", lambda: add(tensor(3), half(3)), "x is float32, y is float16"),
    dtype(
        "add-bool",
        lambda: add(tensor(3, dtype=torch.bool), tensor(3, dtype=torch.bool)),
        "x is bool; taken are float32",
    ),
    device("add", lambda: add(tensor(3), meta(3))),
    layout("add", lambda: add(tensor(3, 4).T, tensor(4, 3)), r"x \(4, 3\) has strides \(1, 4\); contiguous"),
    value("add-gradient", lambda: add(tensor(3).requires_grad_(), tensor(3)), ValueError, "x requires a gradient"),
    shape("elementwise", lambda: elementwise.add(tensor(3), tensor(4)), r"\(3,\) and \(4,\) do not broadcast"),
    dtype("elementwise", lambda: elementwise.mul(tensor(3), half(3)), "x is float32, y is float16"),
    dtype(
        "elementwise-div", lambda: elementwise.div(*[tensor(3, dtype=torch.int32)] * 2), "x is int32; taken are float32"
    ),
    device("elementwise", lambda: elementwise.sub(tensor(3), meta(3))),
    layout(
        "elementwise", lambda: elementwise.copy(tensor(2, 3, 4, 5, 6).permute(4, 3, 2, 1, 0)), "at most 4 are taken"
    ),
    value(
        "elementwise", lambda: elementwise.elementwise("pow", tensor(3), tensor(3)), ValueError, "'pow'; taken are add"
    ),
    value(
        "elementwise-gradient",
        lambda: elementwise.maximum(tensor(3).requires_grad_(), tensor(3)),
        ValueError,
        "x requires a gradient",
    ),
    shape("softmax", lambda: softmax(tensor()), "x is a scalar|is a scalar; at least one dimension"),
    dtype("softmax", lambda: softmax(tensor(3, dtype=torch.int32)), "x is int32; taken are float32"),
    layout("softmax", lambda: softmax(tensor(2, 3, 4).transpose(0, 1)), "is not a view of rows"),
    shape("softmax-backward", lambda: softmax_backward(tensor(2, 3), tensor(3, 2)), r"dy has shape \(3, 2\)"),
    device("softmax-backward", lambda: softmax_backward(tensor(2, 3), meta(2, 3))),
    shape(
        "layer-norm",
        lambda: layer_norm(tensor(2, 3), tensor(4), tensor(3)),
        r"weight has shape \(4,\), expected \(3,\)",
    ),
    dtype("layer-norm", lambda: layer_norm(tensor(2, 3), half(3)), "x is float32, weight is float16"),
    device("layer-norm", lambda: layer_norm(tensor(2, 3), tensor(3), meta(3))),
    layout("layer-norm", lambda: layer_norm(tensor(3, 2).T, tensor(3)), r"x has strides \(1, 2\); 1 in the last"),
    layout("layer-norm-weight", lambda: layer_norm(tensor(2, 3), tensor(6)[::2]), r"weight \(3,\) has strides \(2,\)"),
    shape(
        "layer-norm-backward",
        lambda: layer_norm_backward(tensor(2, 3), tensor(2, 3), None, None, tensor(3), tensor(2)),
        r"mean has shape \(3,\)",
    ),
    dtype(
        "layer-norm-backward",
        lambda: layer_norm_backward(half(2, 3), half(2, 3), None, None, half(2), half(2)),
        "mean is float16",
    ),
    shape("rms-norm", lambda: rms_norm(tensor(2, 3), tensor(4)), r"weight has shape \(4,\), expected \(3,\)"),
    dtype("rms-norm", lambda: rms_norm(tensor(2, 3, dtype=torch.float64)), "x is float64; taken are float32"),
    device("rms-norm", lambda: rms_norm(tensor(2, 3), meta(3))),
    shape(
        "rms-norm-backward",
        lambda: rms_norm_backward(tensor(2, 3), tensor(3, 2), None, tensor(3)),
        r"dy has shape \(2, 3\)",
    ),
    shape("matmul", lambda: matmul.matmul(tensor(3, 4), tensor(5, 6)), r"b has shape \(5, 6\), expected \(4, N\)"),
    shape(
        "matmul-batch",
        lambda: matmul.matmul(tensor(2, 3, 4), tensor(4, 6)),
        r"a has shape \(2, 3, 4\), expected \(M, K\)",
    ),
    dtype("matmul", lambda: matmul.matmul(tensor(3, 4), half(4, 5)), "a is float32, b is float16"),
    dtype(
        "matmul-uint8", lambda: matmul.matmul(*[tensor(4, 4, dtype=torch.uint8)] * 2), "a is uint8; taken are float32"
    ),
    device("matmul", lambda: matmul.matmul(tensor(3, 4), meta(4, 5))),
    value(
        "matmul",
        lambda: matmul.matmul(tensor(3, 4), tensor(4, 5), "high"),
        ValueError,
        "precision 'high'; taken are ieee",
    ),
    shape("linear", lambda: linear(tensor(3, 4), tensor(5, 6)), r"weight has shape \(5, 6\), expected \(N, 4\)"),
    shape(
        "linear-bias", lambda: linear(tensor(3, 4), tensor(5, 4), tensor(4)), r"bias has shape \(4,\), expected \(5,\)"
    ),
    dtype("linear", lambda: linear(tensor(3, 4), tensor(5, 4), half(5)), "bias is float16"),
    device("linear", lambda: linear(tensor(3, 4), meta(5, 4))),
    value(
        "linear", lambda: linear(tensor(3, 4), tensor(5, 4), None, "tanh"), ValueError, "'tanh'; taken are '', 'relu'"
    ),
    shape("attention", lambda: flash_attention(heads(), heads(D=32), heads(D=32)), "k has shape .*expected .*16"),
    shape("attention-rank", lambda: flash_attention(tensor(4, 16), heads(), heads()), r"q has shape \(4, 16\)"),
    shape("attention-heads", lambda: flash_attention(heads(heads=3), heads(), heads()), "3 query heads, 2 of keys"),
    shape("attention-none", lambda: flash_attention(heads(heads=0), heads(), heads()), "0 query heads, 2 of keys"),
    shape("attention-dim", lambda: flash_attention(*[heads(D=257)] * 3), "dimension 257; 1 to 256"),
    dtype("attention", lambda: flash_attention(heads(), heads(), heads(dtype=torch.float16)), "v is float16"),
    device("attention", lambda: flash_attention(heads(), heads(), heads(device="meta"))),
    layout(
        "attention",
        lambda: flash_attention(heads().transpose(1, 3), *[tensor(1, 16, 2, 4)] * 2),
        "1 in the last dimension",
    ),
    value(
        "attention-mask",
        lambda: flash_attention(heads(), heads(), heads(), torch.ones(4, 4)),
        TypeError,
        "causal is a Tensor; taken is a bool. No mask",
    ),
    value(
        "attention-scale",
        lambda: flash_attention(heads(), heads(), heads(), scale=-1.0),
        ValueError,
        "scale is -1.0; a positive",
    ),
    value(
        "attention-lse-gradient",
        lambda: flash_attention_with_lse(heads().requires_grad_(), heads(), heads()),
        ValueError,
        "q requires a gradient",
    ),
    shape(
        "attention-backward",
        lambda: flash_attention_backward(*[heads()] * 5, tensor(1, 4, 2)),
        r"lse has shape \(1, 4, 2\), expected \(1, 2, 4\)",
    ),
    shape(
        "layer-norm-linear-gelu",
        lambda: layer_norm_linear_gelu(tensor(2, 3), tensor(3), tensor(3), tensor(4, 3), tensor(3)),
        r"bias has shape \(3,\)",
    ),
    dtype(
        "layer-norm-linear-gelu",
        lambda: layer_norm_linear_gelu(tensor(2, 3), tensor(3), tensor(3), half(4, 3), tensor(4)),
        "weight is float16",
    ),
    device(
        "layer-norm-linear-gelu",
        lambda: layer_norm_linear_gelu(tensor(2, 3), tensor(3), meta(3), tensor(4, 3), tensor(4)),
    ),
    shape(
        "layer-norm-linear-gelu-empty",
        lambda: layer_norm_linear_gelu(tensor(2, 0), tensor(0), tensor(0), tensor(4, 0), tensor(4)),
        "at least one column",
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda r: r.name)
def test_refuses(refusal: Refusal) -> None:
    """An operand that is not taken is refused before anything is launched, with what was given and what is taken."""
    with pytest.raises(refusal.error, match=refusal.says):
        refusal.call()


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def attention_in_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)


GRADIENTS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "add": (elementwise.add, torch.add, (draw(3, 5), draw(5))),
    "sub": (elementwise.sub, torch.sub, (draw(3, 1), draw(5))),
    "mul": (elementwise.mul, torch.mul, (draw(3, 5), draw(3, 1))),
    "div": (elementwise.div, torch.div, (draw(3, 5), draw(5).abs() + 1)),
    "relu": (elementwise.relu, F.relu, (draw(3, 5),)),
    "silu": (elementwise.silu, F.silu, (draw(3, 5),)),
    "gelu": (elementwise.gelu, F.gelu, (draw(3, 5),)),
    "softmax": (softmax, lambda x: torch.softmax(x, -1), (draw(2, 3, 7),)),
    "layer_norm": (layer_norm, lambda x, w, b: F.layer_norm(x, (7,), w, b), (draw(2, 3, 7), draw(7), draw(7))),
    "layer_norm-plain": (layer_norm, lambda x: F.layer_norm(x, (7,)), (draw(2, 3, 7),)),
    "rms_norm": (rms_norm, lambda x, w: F.rms_norm(x, (7,), w, 1e-6), (draw(2, 3, 7), draw(7))),
    "rms_norm-plain": (rms_norm, lambda x: F.rms_norm(x, (7,), None, 1e-6), (draw(2, 3, 7),)),
    "matmul": (matmul.matmul, torch.matmul, (draw(5, 6), draw(6, 7))),
    "linear": (linear, F.linear, (draw(2, 5, 6), draw(7, 6), draw(7))),
    "linear-no-bias": (linear, F.linear, (draw(2, 5, 6), draw(7, 6))),
    "linear-gelu": (
        lambda *xwb: linear(*xwb, "gelu"),
        lambda *xwb: F.gelu(F.linear(*xwb)),
        (draw(5, 6), draw(7, 6), draw(7)),
    ),
    "flash_attention": (
        lambda q, k, v: flash_attention(q, k, v, causal=True),
        attention_in_torch,
        (draw(1, 9, 4, 16), draw(1, 9, 2, 16), draw(1, 9, 2, 16)),
    ),
    "layer_norm_linear_gelu": (
        layer_norm_linear_gelu,
        lambda x, g, b, w, c: F.gelu(F.linear(F.layer_norm(x, (6,), g, b), w, c)),
        (draw(5, 6), draw(6), draw(6), draw(7, 6), draw(7)),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_autograd_gives_every_operand_its_gradient(name: str, interpreter: Session) -> None:
    """Through autograd, each operand gets what torch's own operation gives it in float64."""
    operator, in_torch, operands = GRADIENTS[name]
    ours = [t.clone().requires_grad_() for t in operands]
    theirs = [t.double().requires_grad_() for t in operands]
    out, expected = operator(*ours), in_torch(*theirs)
    dout = draw(*out.shape)
    gradients = torch.autograd.grad(out, ours, dout)
    for got, want in zip(gradients, torch.autograd.grad(expected, theirs, dout.double()), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-5)


def test_the_fused_layer_is_one_launch_and_its_chain_three(interpreter: Session) -> None:
    """What fusion saves is launches: one in place of three."""
    operands = (draw(5, 6), draw(6), draw(6), draw(7, 6), draw(7))
    fused = layer_norm_linear_gelu(*operands)
    launches = len(interpreter.launches)
    chain = layer_norm_then_linear_then_gelu(*operands)
    assert (launches, len(interpreter.launches) - launches) == (1, 3)
    torch.testing.assert_close(fused, chain)


def test_too_many_rows_for_y_are_folded_into_x(interpreter: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of the grid's y, both axes are in x, and the result is the same."""
    monkeypatch.setattr(elementwise, "GRID_Y", 3)
    x, blocks = draw(9, 40).T, Blocks(TILE=64, BLOCK_N=16, num_warps=4)
    torch.testing.assert_close(elementwise.copy(x, blocks), x.contiguous())
    assert interpreter.launches[-1].grid[1:] in ((), (1, 1))
    assert interpreter.launches[-1].grid[0] == 10  # 40 / 4 rows of tiles, one column


@pytest.mark.parametrize(
    ("a", "b", "kernel"),
    [
        (half(80, 32), half(32, 64), "matmul_persistent_kernel"),
        (half(32, 80).T, half(64, 32).T, "matmul_persistent_kernel"),
        (half(80, 33), half(33, 64), "matmul_kernel"),  # rows of 66 bytes
        (half(80, 64)[:, ::2], half(32, 64), "matmul_kernel"),  # neither dimension dense
        (half(80 * 32 + 1)[1:].view(80, 32), half(32, 64), "matmul_kernel"),  # starts at 2 bytes
    ],
)
def test_descriptors_are_used_for_what_they_take(
    a: torch.Tensor, b: torch.Tensor, kernel: str, interpreter: Session
) -> None:
    """A table that asks for the persistent kernel gets it where descriptors take the operands, else pointers."""
    matmul.matmul_persistent(a, b)
    assert interpreter.launches[-1].kernel.endswith(kernel)
    assert matmul_persistent.takes(a) == (kernel == "matmul_persistent_kernel")
