"""What of a kernel is special to its source: names that the destination lacks, other layouts, silent differences.

Names are tried one by one, by the API probes that are about them. Everything else is read from what the two compilers
made of the same launch, or follows from what both adapters state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from portability.baselines.answers import Answer, Refusal, UnknownNameError, look_up, newest_of
from portability.checks import differences
from portability.checks.model import Fault, Made, Seen
from portability.harness import Harness
from portability.kernel import relative
from portability.lint import lint_paths
from portability.model import CaseInfo, Cell, Evidence, Outcome
from portability.porting.ends import End
from portability.porting.model import Reading

EMULATED = ("dot-emulated", "atomic-emulated")  # codes of differences that are a missing instruction
FLOAT8 = "float8_"
PROBES = 2  # the most of one name that are tried


@dataclass(frozen=True)
class Pair:
    """What both compilers made of one cell; nothing where one of them is no compiler."""

    dtype: str
    source: Sequence[Reading] = ()
    destination: Sequence[Reading] = ()


# ------------------------------------------------------------------------------------------------------- names


def special_names(
    harness: Harness, names: Sequence[str], dtypes: Sequence[str], source: End, destination: End
) -> Iterator[Fault]:
    """Yield the names that the destination refuses or emulates, and the source does not.

    The recorded baselines of both targets say it; of a target without one, the probes about a name are tried.
    """
    recorded = newest_of()
    if {source.target.id, destination.target.id} <= set(recorded):
        for name in names:
            yield from _recorded(name, dtypes, source.target.id, destination.target.id)
    elif destination.target.evidence is not Evidence.NONE:
        for name in names:
            yield from _tried(harness, name, source, destination)


def _recorded(name: str, dtypes: Sequence[str], source: str, destination: str) -> Iterator[Fault]:
    """What the baselines say of one name at the kernel's dtypes, each refusal once."""
    try:
        answer = look_up(name, targets=(source, destination))
    except UnknownNameError:
        return
    here, there = (_by_label(answer, target) for target in (source, destination))
    said: dict[str, list[str]] = {}
    for label, found in there.items():
        dtype = label.rpartition(" ")[2]
        if dtype not in dtypes or isinstance(here.get(label), Refusal):
            continue
        if isinstance(found, Refusal):
            instead = f"; use {found.instead}" if found.instead else ""
            said.setdefault(f"{found.outcome}: {found.error}{instead}", []).append(label)
        elif found == "emulated" and here.get(label) != found:
            said.setdefault("", []).append(label)
    for words, labels in said.items():
        code, what = ("name-refused", words) if words else ("name-emulated", "there is no instruction for it")
        yield Fault(code, f"{name} at {', '.join(labels)}: {what}", Seen.COMPILED, "", (destination,))


def _by_label(answer: Answer, target: str) -> dict[str, str | Refusal]:
    """What one target says at each dtype, by its strongest evidence: native, emulated or "", or why it refuses."""
    found: dict[str, str | Refusal] = {}
    for row in answer.rows:
        if row.target == target:
            found = {**row.works, **row.refused, **found}
    return found


def _tried(harness: Harness, name: str, source: End, destination: End) -> Iterator[Fault]:
    """Try the probes about a name; it is refused where none of them passes there, and one does on the source."""
    found = [(p, harness.run(_cell(p, destination))) for p in _probes(harness, name, destination)]
    if not found or any(o.outcome is Outcome.PASS for _, o in found):
        return
    probe, observation = found[0]
    if source.target.evidence is not Evidence.NONE and harness.run(_cell(probe, source)).outcome is not Outcome.PASS:
        return
    first = (observation.detail.splitlines() or [str(observation.outcome)])[0]
    yield Fault("name-refused", f"{name}: {first}", Seen.COMPILED, "", (destination.target.id,))


def _probes(harness: Harness, name: str, end: End) -> list[CaseInfo]:
    about = [c for c in harness.catalogue.cases if c.group and name in c.names]
    usable = [c for c in about if _dtype(c, end) is not None]
    return sorted(usable, key=lambda c: (c.names[0] != name, not c.basic))[:PROBES]


def _cell(probe: CaseInfo, end: End) -> Cell:
    sample = next((s.name for s in probe.samples if s.quick), probe.samples[0].name)
    return Cell(probe.name, _dtype(probe, end) or probe.dtypes[0], sample, end.target.id, end.target.environment)


def _dtype(probe: CaseInfo, end: End) -> str | None:
    return next((d for d in probe.dtypes if end.adapter.claims(end.target.id, d)), None)


# ----------------------------------------------------------------------------------------------------- layouts


def layouts(pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield, for each kernel with a product or another shared layout, what it is on the source and the destination."""
    for pair in pairs:
        for ours, theirs in zip(pair.source, pair.destination, strict=False):
            left, right = _shape(ours), _shape(theirs)
            if left != right and (left or right):
                yield f"{pair.dtype}: {ours.made.kernel}: {left or 'no layout of its own'} -> {right or 'none'}"


def _shape(reading: Reading) -> str:
    products = [x for x in reading.layouts if not x.endswith("_shared") and x != "shared_memory"]
    shared = [x for x in reading.layouts if x.endswith("_shared")]
    return "; ".join(filter(None, (reading.instruction, ", ".join(products), ", ".join(shared))))


# ------------------------------------------------------------------------------------------------- differences


def compared(pairs: Sequence[Pair], source: End, destination: End) -> list[Fault]:
    """Return what the two compilers do differently with the same kernel: emulations, precision, half accumulators."""
    made: dict[str, list[Made]] = {source.target.id: [], destination.target.id: []}
    for pair in pairs:
        made[source.target.id] += [r.made for r in pair.source]
        made[destination.target.id] += [r.made for r in pair.destination]
    compiled = {t: m for t, m in made.items() if m}
    interprets = Evidence.INTERPRETED in (source.target.evidence, destination.target.evidence)
    found = [f for f in differences.compare(compiled, interprets) if f.code != "register-spills"]
    return [f for f in found if f.code not in EMULATED or destination.target.id in f.targets]


def lint(files: Sequence[Path], source: End, destination: End, root: Path) -> list[Fault]:
    """Return the static findings that matter on the destination; `everywhere` where they do on the source too."""
    report = lint_paths(files)
    there = destination.target.id
    return [
        Fault(
            f.code, f"{f.rule}: {f.message}", Seen.SOURCE, f"{relative(f.path, root)}:{f.line}", (there,),
            everywhere=f.concerns(source.target.id), link=f.link,
        )
        for f in report.findings if f.concerns(there)
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------ silent


def silent(pairs: Sequence[Pair], dtypes: Sequence[str], source: End, destination: End) -> Iterator[Fault]:
    """Yield what differs without a word: float8 formats, denormals, the width of a warp, what stages cost."""
    there = (destination.target.id,)
    yield from (_fault(c, m, there) for c, m in _float8(dtypes, destination))
    yield from (_fault("denormals", m, there) for m in _denormals(pairs, source, destination))
    yield from (_fault("warp-width", m, there) for m in _warps(pairs, source, destination))
    yield from (_fault("grid", m, there) for m in _grids(source, destination))
    yield from (_fault("num-stages", m, there) for m in _stages(pairs, source, destination))


def _fault(code: str, message: str, targets: tuple[str, ...]) -> Fault:
    return Fault(code, message, Seen.ASSEMBLY, "", targets)


def _grids(source: End, destination: End) -> Iterator[str]:
    """What a grid may be, where that is less: a size of the data that no sample has may still go past it."""
    ours, theirs, there = source.limits, destination.limits, destination.target.id
    if theirs.grid_total is not None and (ours.grid_total is None or theirs.grid_total < ours.grid_total):
        yield f"at most {theirs.grid_total:,} programs in all on {there}: larger blocks, or a loop, for larger sizes"
    smaller = [a for a, (here, most) in enumerate(zip(ours.grid, theirs.grid, strict=True)) if most < here]
    for axis in smaller:
        here = f"{ours.grid[axis]:,} on {source.target.id}"
        yield f"at most {theirs.grid[axis]:,} programs along axis {axis} on {there}, {here}"
    if not theirs.grid_empty and ours.grid_empty:
        yield f"a grid of no programs is refused on {there}: return before the launch"


def _float8(dtypes: Sequence[str], destination: End) -> Iterator[tuple[str, str]]:
    native = destination.facts.float8
    for dtype in dtypes:
        if dtype.startswith(FLOAT8) and native is not None and dtype not in native:
            own = f"its own are {', '.join(native)}" if native else "it has none of its own"
            yield (
                "float8-family",
                f"{dtype} is no format of {destination.target.id} ({own}): it is converted in software",
            )


def _denormals(pairs: Sequence[Pair], source: End, destination: End) -> Iterator[str]:
    ours, theirs = (
        {name for pair in pairs for r in getattr(pair, side) for name in r.flushes}
        for side in ("source", "destination")
    )
    if bool(ours) != bool(theirs) and pairs:
        end, other, found = (source, destination, ours) if ours else (destination, source, theirs)
        if other.target.evidence in (Evidence.COMPILED, Evidence.RAN, Evidence.INTERPRETED):
            instructions = ", ".join(sorted(found))
            yield f"denormals become zero on {end.target.id} ({instructions}) and are kept on {other.target.id}"


def _warps(pairs: Sequence[Pair], source: End, destination: End) -> Iterator[str]:
    ours, theirs = source.limits.warp, destination.limits.warp
    warps = sorted({r.warps for pair in pairs for r in (*pair.source, *pair.destination) if r.warps})
    if ours and theirs and ours != theirs and warps:
        said = ", ".join(f"{w} warps are {w * ours} and {w * theirs} threads" for w in warps)
        yield f"a warp is {ours} lanes on {source.target.id} and {theirs} on {destination.target.id}: {said}"
    if ours and not theirs:
        yield f"num_warps means nothing on {destination.target.id}: {destination.facts.warps or 'it has no warps'}"


def _stages(pairs: Sequence[Pair], source: End, destination: End) -> Iterator[str]:
    ours, theirs = source.facts.stages, destination.facts.stages
    staged = any(r.stages > 1 and r.made.products for pair in pairs for r in (*pair.source, *pair.destination))
    if ours != theirs and theirs and staged:
        yield f"num_stages: on {source.target.id} {ours or 'as Triton has it'}; on {destination.target.id} {theirs}"
    said: dict[str, list[str]] = {}
    for pair in pairs if source.limits.shared_memory and destination.limits.shared_memory else ():
        for a, b in zip(pair.source, pair.destination, strict=False):
            if a.shared != b.shared and a.stages > 1:
                here, there = (
                    f"{a.shared} B of shared memory on {source.target.id}",
                    f"{b.shared} on {destination.target.id}",
                )
                said.setdefault(f"the same blocks take {here} and {there}", []).append(pair.dtype)
    yield from (f"{', '.join(dict.fromkeys(dtypes))}: {words}" for words, dtypes in said.items())
