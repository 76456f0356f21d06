"""The file of an execution that goes wrong: kernels, inputs, launches, and what shows the failure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from portability.compare import Expected
from portability.reproducer import change as changes
from portability.reproducer import literals
from portability.reproducer.change import Change
from portability.reproducer.source import Sources
from portability.reproducer.trace import Lines, Trace
from portability.reproducer.ways import Way


@dataclass(frozen=True)
class Execution:
    """One call of an operator, recorded, and what it should have given."""

    inputs: Sequence[Any]
    trace: Trace
    outputs: Sequence[torch.Tensor]  # none where the call raised
    expected: Sequence[Expected]
    change: Change
    operator: str
    device: str = "cpu"  # or the device that it runs on
    notes: Sequence[str] = field(default_factory=tuple)


def text(execution: Execution, way: Way, heading: str) -> str:
    """Return the file. Raises `UnwritableError` naming what cannot be written."""
    sources = Sources()
    lines = Lines(execution.trace, sources, way.unwritten.format)
    body = lines.text(execution.outputs)
    names = [f"x{i}" for i in range(len(execution.inputs))]
    returned = ", ".join(execution.trace.name(t) for t in execution.outputs)
    parts = [_inputs(execution, way), _run(execution, names, body, returned)]
    if way.name == "values":
        parts.append(_expected(execution.expected, execution.outputs))
    parts.append(way.main.strip("\n"))
    whole = "\n".join(parts)
    helpers = [h.strip("\n") for name, h in literals.HELPERS.items() if f"{name}(" in whole]
    packed = "".join(literals.IMPORTS.get(name, "") for name in literals.HELPERS if f"{name}(" in whole)
    imports = sorted({"import os", "import sys", *way.imports, *packed.split("\n")} - {""})
    interpret = execution.device == "cpu"
    head = [f'"""{heading}\n"""', "\n".join(imports)]
    if interpret:
        head.append('os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported: its interpreter, on the CPU')
    later = "\n".join(line + ("  # noqa: E402" if interpret else "") for line in sources.import_text().splitlines())
    head += [later, f'DEVICE = "{execution.device}"']
    pieces = [way.helpers.strip("\n"), *helpers, sources.text(), *parts]
    return "\n\n".join(head) + "\n\n\n" + "\n\n\n".join(p for p in pieces if p) + MAIN


MAIN = '\n\n\nif __name__ == "__main__":\n    sys.exit(main())\n'


def _inputs(execution: Execution, way: Way) -> str:
    made = [_input(x, i, execution) for i, x in enumerate(execution.inputs)]
    moved = [
        way.given.format(m) if isinstance(x, torch.Tensor) else m for m, x in zip(made, execution.inputs, strict=True)
    ]
    if execution.device != "cpu":
        moved = [
            f"{m}.to(DEVICE)" if isinstance(x, torch.Tensor) else m
            for m, x in zip(moved, execution.inputs, strict=True)
        ]
    body = textwrap.indent(",\n".join([*moved, ""]), " " * 8)
    return f'def inputs():\n    """The sample on which it fails."""\n    return (\n{body}    )'


def _input(x: Any, number: int, execution: Execution) -> str:
    if isinstance(x, torch.Tensor):
        drawn = x.dtype.is_floating_point and execution.change.values
        shape, kind = tuple(x.shape), repr(x.dtype)
        if drawn == changes.WHOLE and x.numel() > literals.FEW:
            return literals.laid_out(f"(torch.arange({x.numel()}) % 7 - 3).reshape({shape}).float().to({kind})", x)
        if drawn == changes.DRAWN and x.numel() > literals.FEW:
            seed = f"torch.Generator().manual_seed({changes.SEED + number})"
            return literals.laid_out(f"torch.randn({shape}, generator={seed}).to({kind})", x)
        return literals.tensor(x)
    if isinstance(x, (list, tuple)):
        inner = ", ".join(_input(v, number, execution) for v in x)
        return f"[{inner}]" if isinstance(x, list) else f"({inner},)"
    return literals.plain(x)


def _run(execution: Execution, names: Sequence[str], body: Sequence[str], returned: str) -> str:
    lines = [f"def run({', '.join(names)}):", f'    """What {execution.operator} does with them."""']
    for x, name in zip(execution.inputs, names, strict=True):
        inner = (
            [execution.trace.name(t) for t in x if isinstance(t, torch.Tensor)] if isinstance(x, (list, tuple)) else []
        )
        lines += [f"    {', '.join(inner)}, = {name}"] if inner else []
    lines += [f"    {line}" for line in body]
    return "\n".join([*lines, f"    return ({returned},)" if returned else "    return ()"])


def _expected(expected: Sequence[Expected], outputs: Sequence[torch.Tensor]) -> str:
    values = "".join(f"{textwrap.indent(literals.tensor(_packed(e.values)), '    ')},\n" for e in expected)
    allowed = ", ".join(_allowed(e, o) for e, o in zip(expected, outputs, strict=True))
    words = "# What the operation gives in float64, and how far each element may be off."
    return f"{words}\nEXPECTED = (\n{values})\nALLOWED = ({allowed},)"


def _allowed(expected: Expected, output: torch.Tensor) -> str:
    """The largest tolerance, where the output is wrong by that too; else every element's own."""
    if expected.tolerance is None or not expected.tolerance.numel():
        return "0"
    most = float(expected.tolerance.max())
    error = (output.detach().cpu().double() - expected.values).abs() if output.shape == expected.values.shape else None
    if error is None or bool((error > most).any()) or not bool((error > expected.tolerance).any()):
        return f"{most:.3g}"
    return literals.tensor(_packed(expected.tolerance))


def _packed(values: torch.Tensor) -> torch.Tensor:
    """The values alone: what a result is compared with may lie anyhow."""
    return values.clone(memory_format=torch.contiguous_format)
