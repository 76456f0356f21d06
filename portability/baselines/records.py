"""From an observation of a probe to what a baseline keeps of it: the outcome, how the target does it, the error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from portability.baselines.files import FOLDER, Key, Record, Records, minor_of, order, read, versions
from portability.model import CaseInfo, Observation, Outcome, Recorded

MOST = 160  # characters of an error


def with_baseline(observation: Observation, names: Sequence[str], folder: Path = FOLDER) -> Observation:
    """Return the observation of a probe that is about `names` with how its target does it, and what is recorded of it.

    A Triton without a baseline of the target is compared with the nearest older one. A kernel, which has no names, is
    returned as it is.
    """
    if not names:
        return observation
    cell, minor = observation.cell, minor_of(observation.versions.get("triton", ""))
    older = [v for v in versions(cell.target, folder) if minor and order(v) <= order(minor)]
    records = read(older[-1], cell.target, folder) if older else {}
    record = records.get((cell.kernel, cell.dtype, observation.evidence))
    recorded = Recorded(older[-1], record.outcome, record.how) if record else None
    return replace(observation, how=how_of(observation, names), recorded=recorded)


def record_of(observation: Observation, names: Sequence[str]) -> Record:
    """Return what is kept of an observation of the probe that is about `names`."""
    how = how_of(observation, names)
    return Record(observation.outcome, how, first_error(observation.detail))


# What an operand of a product is called in the names of instructions: `mma.sync e4m3`, `v_mfma_f32_32x32x16_fp8_fp8`.
OPERANDS: Mapping[str, str] = {
    "float16": r"f16", "bfloat16": r"bf16|(?<=tcgen05\.mma )f16", "float64": r"f64", "float32": r"tf32|xf32|f32",
    "int8": r"[su]8|i?u?8|s8", "uint8": r"[su]8|iu?8",
    "float8_e4m3fn": r"e4m3|fp8|f8f6f4", "float8_e5m2": r"e5m2|bf8|f8f6f4",
    "float8_e4m3fnuz": r"fp8", "float8_e5m2fnuz": r"bf8",
}  # fmt: skip
SCALED = r"e[2-5]m[1-3]|mxf\w+|f8f6f4|fp8|bf8"  # operands of products whose formats have scales
EITHER_WAY = re.compile(r"atom\.cas|cmpswap")  # a loop of compare and swap


def how_of(observation: Observation, names: Sequence[str]) -> str:
    """Return how the target does what a probe asks: "native", "emulated", "mixed", or "" where nothing tells.

    Read from the assembly: a product that became no matrix instruction or one of another operand, an atomic that
    became a loop of compare and swap, a conversion of float8 and a tensor's copy that became no instruction of their
    own are emulated.
    """
    if observation.outcome is not Outcome.PASS or not observation.resources:
        return ""
    about, dtype = names[0] if names else "", observation.cell.dtype
    if about in ("tl.dot", "tl.dot_scaled"):
        matrix = " + ".join(r.matrix for r in observation.resources if r.matrix)
        operand = SCALED if about == "tl.dot_scaled" else OPERANDS.get(dtype, "(?!)")
        return _product(matrix, OPERANDS["bfloat16"] if ".bf16x" in observation.cell.kernel else operand)
    if any(r.registers is not None for r in observation.resources):  # there is assembly
        found = [i for r in observation.resources for i in r.special]
        return _special(found, observation.cell.kernel, about, dtype)
    return ""


def _special(found: Sequence[str], kernel: str, about: str, dtype: str) -> str:
    if "atomic_" in about and about not in ("tl.atomic_load", "tl.atomic_store", "tl.atomic_poll"):
        return _atomic(found, swaps="atomic_cas" in about)
    if "tensor_descriptor" in about:
        return "native" if any("tensor" in i for i in found) else "emulated"
    if kernel.startswith("cast.") and "float8" in kernel + dtype and dtype not in kernel:
        return "native" if any("cvt" in i for i in found) else "emulated"
    return ""


def _product(matrix: str, operand: str) -> str:
    if matrix in ("", "cube"):  # the matrix unit of Ascend, which has one kind of instruction
        return "native" if matrix else ""
    return "native" if re.search(rf"(?<![a-z0-9])(?:{operand})(?![0-9a-z])", matrix) else "emulated"


def _atomic(found: Sequence[str], swaps: bool) -> str:
    atomics = [i for i in found if "atom" in i or i.startswith("red.")]
    loops = [i for i in atomics if EITHER_WAY.search(i)]
    if not atomics:
        return ""
    if swaps or not loops:
        return "native"
    return "emulated" if len(loops) == len(atomics) else "mixed"


PREFIX = re.compile(r"^(?:KernelError: \w+: )?(?:(?:\w+Error|Unsupported|OutOfResources): )*")
WRAPPED = re.compile(r"^\w+\(([\"'])(.*)\1\)$")
AT = re.compile(r"^at \d+:\d+:$")
WRAPPING = "Internal Triton PTX codegen error"  # says only that the assembler says more
INNER = re.compile(r"\b(?:error|fatal)\s*:\s*(.+)")


def first_error(detail: str) -> str:
    """Return the first line of the innermost cause that `detail` tells, without what differs from run to run."""
    lines = [line.strip() for line in detail.split("\n") if line.strip()]
    found = (m[1] for m in map(INNER.search, lines[:6]) if m)
    inner = next((said for said in found if not said.startswith(WRAPPING)), "")
    text = PREFIX.sub("", inner or (lines[0] if lines else ""))
    if AT.match(text):  # an assertion without a message: the line that it points to says most
        text = f"no message, at: {lines[lines.index('^') - 1] if '^' in lines else text}"
    wrapped = WRAPPED.match(text)
    text = wrapped[2] if wrapped else text
    text = re.sub(r" \([\w./]+\.py:\d+\)$", "", text)  # the line of a probe, which moves
    text = re.sub(r"(that was explicitly marked illegal).*", r"\1", text)  # the operation, with its numbers
    text = re.sub(r"\[[-\d .,\sTrueFals]{24,}.*", "[…]", text)  # values
    text = re.sub(r"[^ -~…×²Σ]+", " ", text)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"


def merged(old: Records, observations: Iterable[Observation], cases: Mapping[str, CaseInfo]) -> dict[Key, Record]:
    """Return a baseline after a run: what the run reached is replaced, and what is no probe any more is left out.

    Of several samples of a probe the worst counts. Cells that could not be tried, and errors of the harness, change
    nothing.
    """
    kept = {k: r for k, r in old.items() if k[0] in cases and k[1] in cases[k[0]].dtypes}
    fresh: dict[Key, Record] = {}
    for o in observations:
        if o.cell.kernel not in cases or o.outcome in (Outcome.UNAVAILABLE, Outcome.HARNESS_ERROR):
            continue
        key, record = (o.cell.kernel, o.cell.dtype, o.evidence), record_of(o, cases[o.cell.kernel].names)
        if key not in fresh or record.outcome.severity > fresh[key].outcome.severity:
            fresh[key] = record
    return {**kept, **fresh}
