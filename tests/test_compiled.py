"""The operators under `torch.compile`: each is an operation of torch's, and a model made of them is one graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from portability.backend import blocks_of, discover
from portability.kernel import Blocks
from portability.kernels import compiled
from portability.kernels.cross_entropy import cross_entropy
from portability.kernels.decoder_layer import DecoderLayer
from portability.kernels.embedding import embedding
from portability.kernels.rms_norm import rms_norm
from portability.kernels.rotary_embedding import angles, rotary_embedding
from portability.kernels.softmax import softmax
from portability.kernels.swiglu import swiglu

CHECKED = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    """A session in which operators on CPU tensors are interpreted, and a compiler that knows them."""
    compiled.enable()
    torch._dynamo.reset()
    backend = discover()["interpreter"]
    with backend.open(backend.status()[0]), blocks_of("interpreter", "interpreter"):
        yield


def draw(*shape: int, grad: bool = True) -> torch.Tensor:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return values.requires_grad_(grad)


def heads(n: int) -> torch.Tensor:
    return draw(1, 5, n, 16)


def ids(*shape: int, below: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel()).view(shape) % below


OPERANDS: dict[str, tuple[Any, ...]] = {
    "softmax": (draw(3, 5),),
    "layer_norm": (draw(2, 3, 5), draw(5), draw(5), 1e-5),
    "layer_norm-plain": (draw(3, 5), None, None, 1e-5),
    "rms_norm": (draw(3, 5), draw(5), 1e-6),
    "rms_norm-plain": (draw(3, 5), None, 1e-6),
    "swiglu": (draw(3, 5), draw(3, 5)),
    "cross_entropy": (draw(4, 7), ids(4, below=7), 2, 0.1),
    "flash_attention": (heads(4), heads(2), heads(2), True, None),
    "matmul": (draw(3, 4), draw(4, 5), "ieee"),
    "linear": (draw(2, 3, 4), draw(5, 4), draw(5), ""),
    "linear-gelu": (draw(3, 4, grad=False), draw(5, 4, grad=False), None, "gelu"),
    "embedding": (draw(6, 5), ids(2, 3, below=6), 1),
    "rotary_embedding": (heads(2), *angles(torch.arange(5), 16), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERANDS)
def test_an_operation_is_what_its_registration_says(name: str) -> None:
    """Schema, shapes without data, and gradient agree with what the launch does (torch's own check of operations)."""
    operation = getattr(torch.ops.portability, name.partition("-")[0]).default
    torch.library.opcheck(operation, OPERANDS[name], test_utils=CHECKED)


def same(model: Any, *operands: torch.Tensor, wanted: tuple[torch.Tensor, ...], graph: Any) -> None:
    """Outputs and the gradients of `wanted` are those of the model that nobody compiled."""
    plain, traced = model(*operands), graph(*operands)
    torch.testing.assert_close(traced, plain)
    dout = draw(*plain.shape, grad=False)
    for got, want in zip(
        torch.autograd.grad(traced, wanted, dout), torch.autograd.grad(plain, wanted, dout), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_decoder_layer_is_one_graph() -> None:
    """A layer is traced whole, forward and backward, and once for all sizes; its values are the layer's own."""
    layer = DecoderLayer(32, 2, 48)
    counted = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    graph = torch.compile(layer, fullgraph=True, dynamic=True, backend=counted)
    for tokens in (9, 11, 6):
        same(layer, draw(2, tokens, 32), wanted=tuple(layer.parameters()), graph=graph)
    assert counted.frame_count == 1


def test_a_language_model_is_one_graph() -> None:
    """So is a model of the other operators, down to its loss."""
    weight, norm, table = draw(14, 32), draw(32), draw(14, 32)
    tokens, target = ids(2, 5, below=14), ids(10, below=14)
    cos, sin = angles(torch.arange(5), 16)

    def model(norm: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        x = rms_norm(embedding(table, tokens), norm)
        x = rotary_embedding(x.unflatten(-1, (2, 16)), cos, sin).flatten(2)
        gates = softmax(swiglu(x, x * 0.5))
        return cross_entropy((gates @ weight.T).flatten(0, 1), target)

    same(
        model,
        norm,
        table,
        wanted=(norm, table, weight),
        graph=torch.compile(model, fullgraph=True, backend="aot_eager"),
    )


def test_blocks_are_the_tables_own_when_compiled() -> None:
    """A graph holds no blocks of a call: they are refused, by the operator's name and with what to do."""
    x = draw(3, 5)
    graph = torch.compile(lambda x: softmax(x, Blocks(ROW=8)), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="softmax: compiled, it takes the blocks of its device's table"):
        graph(x)
