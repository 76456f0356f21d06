"""From the outside: which cell is meant, and what its runner says of it. Neither torch nor triton is imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from portability import catalogue as catalogues
from portability.harness import Harness
from portability.model import DEFAULT_ENVIRONMENT, CaseInfo, Cell, Evidence, Outcome, Target, from_json, to_json
from portability.pool import RunnerDiedError, RunnerTimedOutError
from portability.stages.model import Answer
from portability.tomltable import nearest

HALF = "float16"


@dataclass(frozen=True)
class Wanted:
    """What is asked of one side: which cell, with which blocks over those of its table, and what besides stages."""

    cell: Cell
    blocks: Mapping[str, int]
    passes: bool = False
    sass: bool = False


def find_case(harness: Harness, kernel: str) -> CaseInfo:
    """Return the kernel case of that name. Raises `ValueError` with the nearest ones, or why a file has none."""
    cases = {c.name: c for c in harness.catalogue.cases}
    if kernel not in cases:
        broken = "".join(f"; {m} cannot be imported: {why}" for m, why in harness.catalogue.errors.items())
        raise ValueError(f"no kernel {kernel!r}; {nearest(kernel, list(cases))}{broken}")
    return cases[kernel]


def find_target(harness: Harness, name: str) -> Target:
    """Return the target "cuda:90", or that of an environment, "cuda:90@triton-3.6".

    Raises `ValueError` with the choices, and where nothing here compiles for it, with why and the remedy.
    """
    target_id, _, environment = name.partition("@")
    found = [t for t in harness.catalogue.targets if t.id == target_id]
    chosen = [t for t in found if t.environment == environment] if environment else _at_home(found)
    if not chosen:
        known = [t.id if t.environment == DEFAULT_ENVIRONMENT else f"{t.id}@{t.environment}" for t in found]
        choices = known or sorted({t.id for t in harness.catalogue.targets})
        raise ValueError(f"no target {name!r}; {nearest(name, choices)}")
    target = chosen[0]
    if target.evidence is Evidence.NONE:
        raise ValueError(f"{name}: {target.why}; {target.remedy}")
    if target.evidence in (Evidence.INTERPRETED, Evidence.EMULATED):
        compiling = [t.id for t in harness.catalogue.targets if t.evidence in (Evidence.RAN, Evidence.COMPILED)]
        raise ValueError(f"{name} compiles nothing: {target.why}; targets with stages are {', '.join(compiling)}")
    # Compiled for and launched into nothing, where the hardware is too: nobody asked for values.
    return replace(target, evidence=Evidence.COMPILED) if target.evidence is Evidence.RAN else target


def _at_home(found: list[Target]) -> list[Target]:
    return sorted(found, key=lambda t: t.environment != DEFAULT_ENVIRONMENT)


def find_cell(case: CaseInfo, target: Target, dtype: str = "", sample: str = "") -> Cell:
    """Return the cell that is meant; the default is float16 where there is one, and the quick sample.

    Raises `ValueError` with the choices.
    """
    chosen = dtype or (HALF if HALF in case.dtypes else case.dtypes[0])
    if chosen not in case.dtypes:
        raise ValueError(f"{case.name}: no dtype {chosen!r}; {nearest(chosen, case.dtypes)}")
    usable = [s for s in case.samples if not s.dtypes or chosen in s.dtypes]
    names = [s.name for s in usable]
    if sample and sample not in names:
        raise ValueError(f"{case.name}: no sample {sample!r} of {chosen}; {nearest(sample, names)}")
    plain = [s for s in usable if not s.bench] or usable
    quick = next((s.name for s in plain if s.quick), plain[0].name)
    return Cell(case.name, chosen, sample or quick, target.id, target.environment)


def read_blocks(text: str, known: Mapping[str, int]) -> dict[str, int]:
    """Return "BLOCK_M=128,num_warps=8" as blocks. Raises `ValueError` naming what is no block of the case."""
    options = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")
    made: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = entry.partition("=")
        if name not in known and name not in options:
            raise ValueError(f"--blocks: no block {name!r}; {nearest(name, [*known, *options])}")
        if not equals or not value.removeprefix("-").isdigit():
            raise ValueError(f"--blocks: {entry!r}: a whole number is needed, as in {name or 'BLOCK'}=64")
        made[name] = int(value)
    return made


def ask(harness: Harness, wanted: Wanted, target: Target) -> Answer:
    """Return what compiling the cell made; a compiler that crashes or hangs is an answer too."""
    cell, case = wanted.cell, harness.catalogue.case(wanted.cell.kernel)
    blocks, source = catalogues.blocks_of(cell, case, harness.matrix, harness.adapters, target)
    request = {
        "op": "stages", "cell": to_json(cell), "target": to_json(target), "blocks": {**blocks, **wanted.blocks},
        "blocks_from": source, "options": harness.options, "passes": wanted.passes, "sass": wanted.sass,
    }  # fmt: skip
    try:
        reply = harness.ask(cell.environment, request, harness.limit(cell, target))
    except RunnerTimedOutError as error:
        return Answer(target.evidence, Outcome.TIMEOUT, detail=str(error), line=error.line)
    except RunnerDiedError as error:
        return Answer(target.evidence, Outcome.CRASH, detail=str(error))
    if "failure" in reply:
        raise RuntimeError(f"{cell.id}: {reply['failure']}\n{reply['traceback']}")
    return from_json(Answer, reply["stages"])
