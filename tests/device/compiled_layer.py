"""A decoder layer in float16, eager and by torch.compile, each against the same layer in float32: `TOKENS` as argument.

Prints JSON: relative errors (norm of the difference over the norm) of the output and of every gradient, eager and
compiled, how many graphs there were, and which kernels that are written somewhere the compiled layer launched.
"""

from __future__ import annotations

import copy
import json
import sys
from typing import Any

import torch

from portability.kernels import compiled
from portability.kernels.decoder_layer import DecoderLayer
from portability.record.session import Session


def results(layer: Any, model: Any, x: torch.Tensor, dout: torch.Tensor) -> dict[str, torch.Tensor]:
    x = x.detach().requires_grad_(True)
    out = model(x)
    out.backward(dout)
    gradients = {name: p.grad.float() for name, p in layer.named_parameters()}
    layer.zero_grad(set_to_none=True)
    assert x.grad is not None
    return {"output": out.detach().float(), "x": x.grad.float(), **gradients}


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    return float((got - want).norm() / want.norm())


def main() -> None:
    compiled.enable()
    torch.manual_seed(0)
    exact = DecoderLayer(256, 4, 512).cuda()
    layer = copy.deepcopy(exact).half()
    x = torch.randn(2, int(sys.argv[1]), 256, device="cuda")
    dout = torch.randn_like(x)
    want = results(exact, exact, x, dout)
    eager = results(layer, layer, x.half(), dout.half())
    graph = torch.compile(layer, fullgraph=True)
    session = Session("device")
    session.start()
    traced = results(layer, graph, x.half(), dout.half())
    session.stop()
    kernels = sorted({call.kernel for call in session.recorder.recording().launches if call.origin == "written"})
    errors = {n: (error(eager[n], want[n]), error(traced[n], want[n])) for n in want}
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    print(json.dumps({"errors": errors, "graphs": graphs, "kernels": kernels}))


if __name__ == "__main__":
    main()
