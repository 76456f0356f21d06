"""The checked interpreter on the operators of Liger-Kernel, forward and backward: what it says of right kernels.

Prints one line an operator and dtype: launches, problems (bounds, races, undefined values), and codes of warnings.
Exits with 1 where there is a problem. What an operator itself refuses on a CPU is said and counted apart.

    pip install --no-deps liger-kernel        # 0.8.5 when the figures in docs/warnings.md were taken
    python benchmarks/false_alarms.py
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed.tensor

from portability.interpret import Interpretation, opened
from portability.model import Target

CLASSES, ROWS, WIDTH = 90, 9, 65  # ragged: no multiple of any block
IGNORED = -100
EXECUTIONS = ((0, 0), (1, 1), (2, 0))  # order of programs, and poison
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Call:
    """An operator's autograd function on tensors that want gradients."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def op(path: str) -> Any:
    """Return the `apply` of a function: "swiglu.LigerSiLUMulFunction"."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name).apply


def calls(dtype: torch.dtype) -> Iterator[Call]:
    """Yield every operator with small inputs."""
    made = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made).to(dtype)

    target = torch.randint(0, CLASSES, (ROWS,), generator=made)
    target[3] = IGNORED
    teacher = torch.log_softmax(torch.randn(ROWS, CLASSES, generator=made), -1)
    cos, sin, angles = drawn(1, 6, 32), drawn(1, 6, 32), torch.rand(6, 16, generator=made)
    kept = torch.ones(2, 6, dtype=torch.int32)
    row = (ROWS, WIDTH)
    yield Call("swiglu", op("swiglu.LigerSiLUMulFunction"), ((3, 7, 50), (3, 7, 50)))
    yield Call("geglu", op("geglu.LigerGELUMulFunction"), (row, row))
    yield Call("relu_squared", op("relu_squared.LigerReLUSquaredFunction"), (row,))
    rms = op("rms_norm.LigerRMSNormFunction")
    for casting in ("llama", "gemma", "none"):
        how = (1e-6, 0.0, casting, False, None)
        yield Call(f"rms_norm {casting}", lambda x, w, how=how: rms(x, w, *how), (row, (WIDTH,)))
    added = op("fused_add_rms_norm.LigerFusedAddRMSNormFunction")
    yield Call("fused_add_rms_norm", lambda x, r, w: added(x, r, w, 1e-6, 0.0, "llama", False), (row, row, (WIDTH,)))
    yield Call("layer_norm", lambda *a: op("layer_norm.LigerLayerNormFunction")(*a, 1e-6), (row, (WIDTH,), (WIDTH,)))
    group = op("group_norm.LigerGroupNormFunction")
    yield Call("group_norm", lambda x, w, b: group(x, w, b, 6, 3, 1e-6), ((2, 6, 37), (6,), (6,)))
    poly = op("poly_norm.LigerPolyNormFunction")
    yield Call("poly_norm", lambda x, w, b: poly(x * 1, w, b[0], 1e-6, False), (row, (3,), (1,)))
    loss = op("cross_entropy.LigerCrossEntropyFunction")
    smooth = (None, IGNORED, 0.0, 0.1, "mean", None, False)
    yield Call("cross_entropy", lambda x: loss(x * 1, target, *smooth)[0], ((ROWS, CLASSES),))
    capped = (torch.rand(CLASSES, generator=made), IGNORED, 1e-4, 0.0, "sum", 30.0, True)
    yield Call("cross_entropy softcap", lambda x: loss(x * 1, target, *capped)[0], ((ROWS, CLASSES),))
    fused = op("fused_linear_cross_entropy.LigerFusedLinearCrossEntropyFunction")
    yield Call("fused_linear_cross_entropy", lambda x, w: fused(x * 1, w, target)[0], ((ROWS, 32), (CLASSES, 32)))
    divergence = op("fused_linear_jsd.LigerFusedLinearJSDFunction")
    other = drawn(ROWS, 16), drawn(CLASSES, 16)
    yield Call("fused_linear_jsd", lambda x, w: divergence(x * 1, w, *other), ((ROWS, 32), (CLASSES, 32)))
    kl, jsd, tvd = op("kl_div.LigerKLDivLossFunction"), op("jsd.LigerJSDFunction"), op("tvd.LigerTVDLossFunction")
    logits = ((ROWS, CLASSES),)
    yield Call("kl_div", lambda x: kl(x.float().log_softmax(-1), teacher.exp(), "batchmean", False, 1e-10), logits)
    yield Call("jsd", lambda x: jsd(x.float().log_softmax(-1), teacher, None, 0.5, IGNORED), logits)
    yield Call("tvd", lambda x: tvd(x.float().softmax(-1), teacher.exp(), None, "batchmean", IGNORED), logits)
    policy = op("grpo_loss.GrpoLossFunction")
    chosen, gains = torch.randint(0, CLASSES, (2, 6), generator=made), torch.randn(2, generator=made)
    told = (None, None, chosen, gains, kept, 0.9, 0.0, 0.2, 0.4, False)
    yield Call("grpo_loss", lambda x: policy(x * 1, *told)[0], ((2, 7, CLASSES),))
    yield Call("softmax", op("softmax.LigerSoftmaxFunction"), (row,))
    yield Call("softmax of a long row", op("softmax.LigerSoftmaxFunction"), ((2, 5000),))
    yield Call("sparsemax", lambda x: op("sparsemax.LigerSparsemaxFunction")(x, -1), (row,))
    yield Call("dyt", op("dyt.LigerDyTFunction"), (row, (1,), (WIDTH,), (WIDTH,)))
    turned = ((2, 4, 6, 32), (2, 2, 6, 32))
    yield Call("rope", lambda q, k: op("rope.LigerRopeFunction")(q * 1, k * 1, cos, sin), turned)
    planes = drawn(3, 2, 6, 32), drawn(3, 2, 6, 32)
    mrope = op("qwen2vl_mrope.LigerQwen2VLMRopeFunction")
    yield Call("qwen2vl_mrope", lambda q, k: mrope(q * 1, k * 1, *planes, [4, 6, 6]), turned)
    llama = op("llama4_rope.LigerLlama4RopeFunction")
    unit = torch.polar(torch.ones(6, 16), angles)
    yield Call("llama4_rope", lambda q, k: llama(q * 1, k * 1, unit), ((2, 6, 4, 32), (2, 6, 2, 32)))
    looked = op("experimental.embedding.LigerEmbeddingFunction")
    yield Call("embedding", lambda w: looked(w, target.clamp(0)), ((CLASSES, 40),))


def run(call: Call, dtype: torch.dtype, session: Interpretation) -> None:
    """Call forward and backward, in each order of programs and with each poison."""
    for order, poison in EXECUTIONS:
        session.vary(order, poison)
        made = torch.Generator().manual_seed(1)
        given = [torch.randn(*s, generator=made).to(dtype).requires_grad_() for s in call.shapes]
        outputs = call.function(*given)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        wanted = [o for o in outputs if isinstance(o, torch.Tensor) and o.requires_grad]
        torch.autograd.backward(wanted, [torch.ones_like(o) for o in wanted])


def main() -> int:
    """Run all operators at two dtypes and print what was said."""
    from tabulate import tabulate

    rows, alarms, refused = [], 0, 0
    for dtype in (torch.float32, torch.bfloat16):
        for call in calls(dtype):
            said = ""
            with opened(Target("interpreter", "interpreter")) as session:
                try:
                    run(call, dtype, session)
                except Exception as error:  # of the operator: it is named, and the others go on
                    said = f"{type(error).__name__}: {str(error)[:60]}"
            refused += bool(said)
            problems = [*session.problems, *session.undefined()]
            alarms += len(problems)
            told = "; ".join(f"{p.code} {p.line}" for p in problems) or said
            codes = ", ".join(sorted({w.code for w in session.warnings}))
            rows.append((call.name, str(dtype).removeprefix("torch."), len(session.launches), told, codes))
    print(tabulate(rows, headers=["operator", "dtype", "launches", "problems", "warnings"]))
    print(
        f"\n{len(rows)} runs, {sum(r[2] for r in rows)} launches, {alarms} problems, {refused} refused by the operator"
    )
    return int(alarms > 0)


if __name__ == "__main__":
    sys.exit(main())
