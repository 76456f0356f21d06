"""A port as text, Markdown or JSON. A renderer only renders."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from portability.backend import DEFAULT
from portability.checks.model import Fault
from portability.model import Outcome, to_json
from portability.porting.model import VERSION, Attempt, Choice, Report, Verdict

SHOWN = 12  # lines of one list, in text and Markdown; JSON holds them all


def text(reports: Sequence[Report]) -> str:
    """Four steps and a verdict for each kernel."""
    return "\n".join("\n".join(_text(r)) + "\n" for r in reports)


def markdown(reports: Sequence[Report]) -> str:
    """The same with headings, for a pull request."""
    return "\n".join("\n".join(_markdown(r)) + "\n" for r in reports)


def json_text(reports: Sequence[Report]) -> str:
    """One object: `version`, `kernels`, each with every field of `portability.porting.model.Report`."""
    kernels = [{"verdict": r.verdict.value, **to_json(r), "exit_code": r.exit_code} for r in reports]
    return json.dumps({"version": VERSION, "kernels": kernels}, indent=1) + "\n"


FORMATS: Mapping[str, Callable[[Sequence[Report]], str]] = {"text": text, "markdown": markdown, "json": json_text}


def render(reports: Sequence[Report], style: str = "text") -> str:
    """Return the reports in a style of `FORMATS`. Raises `ValueError` naming the choices."""
    if style not in FORMATS:
        raise ValueError(f"format {style!r} is none of {', '.join(FORMATS)}")
    return FORMATS[style](reports)


# --------------------------------------------------------------------------------------------- text and Markdown


def _text(report: Report) -> Iterator[str]:
    yield title(report)
    for heading, lines in _steps(report):
        yield f"\n{heading}"
        yield from (f"  {line}" for line in lines)
    yield f"\n{sentence(report)}"
    yield from (f"  {line}" for line in _verdict(report))


def _markdown(report: Report) -> Iterator[str]:
    yield f"## {title(report)}\n\n**{sentence(report)}**\n"
    yield from (f"- {line}" for line in _verdict(report))
    for entry in _entries(report):
        yield f"\n```toml\n{entry.rstrip()}\n```"
    for heading, lines in _steps(report):
        yield f"\n### {heading}\n"
        yield from (f"    {line[2:]}" if line.startswith("  ") else f"- {line}" for line in lines)


def title(report: Report) -> str:
    """Return "matmul: cuda:90 (H100, H200) -> hip:gfx942 (MI300X)"."""
    ends = [f"{t.id} ({t.title})" if t.title and t.title != t.id else t.id for t in (report.source, report.destination)]
    return f"{report.kernel}: {' -> '.join(ends)}"


def sentence(report: Report) -> str:
    """Return the verdict with how it is known."""
    evidence = f", by code that was {report.destination.evidence}" if report.verdict is not Verdict.UNKNOWN else ""
    but = (
        f"; without {', '.join(report.unclaimed)}, which {report.destination.id} does not have"
        if report.unclaimed
        else ""
    )
    return f"Verdict: {report.verdict}{evidence}{but}"


def _verdict(report: Report) -> Iterator[str]:
    if report.verdict is Verdict.CHANGES:
        yield from dict.fromkeys(report.changes)
    for choice in report.choices:
        if choice.blocks and report.verdict is not Verdict.AS_IT_IS:
            own = "the case's own default" if choice.blocks_from == DEFAULT else choice.blocks_from
            place = f", as {own} has it" if own else ""
            yield f"{', '.join(choice.dtypes)}: {blocks(choice.blocks)}{place}"
    if report.written:
        yield f"written to {report.written}"
    yield from report.notes


def _steps(report: Report) -> Iterator[tuple[str, list[str]]]:
    yield "1. The environment", list(report.needs)
    yield "2. What moves with the source's blocks", list(_moves(report.attempts)) or ["nothing was tried"]
    yield "3. Special operations, layouts, and what differs silently", list(_special(report)) or ["nothing is known to"]
    yield "4. The blocks that fit", list(_choices(report.choices)) or ["none are needed, or none were searched"]


def _moves(attempts: Sequence[Attempt]) -> Iterator[str]:
    """What moves, dtypes of equal blocks on one line; then what does not, once for each dtype and reason."""
    groups: dict[tuple[str, str], list[Attempt]] = {}
    for a in attempts:
        if a.moves:
            groups.setdefault((blocks(a.blocks), a.blocks_from), []).append(a)
    for (values, place), moved in groups.items():
        dtypes = list(dict.fromkeys(a.dtype for a in moved))
        written = f" ({values}; {place})" if values else ""
        samples = len({a.sample for a in moved})
        count = f"{samples} sample{'s' if samples > 1 else ''}"
        yield f"{', '.join(dtypes)}: {moved[0].evidence} in {count}{written}"
    failed: dict[tuple[object, ...], list[Attempt]] = {}
    for a in attempts:
        if not a.moves:
            failed.setdefault((a.sample, a.outcome, a.detail, a.line, a.claimed, a.fails_on_both), []).append(a)
    for alike in failed.values():
        yield from _failed(alike)


def _failed(alike: Sequence[Attempt]) -> Iterator[str]:
    attempt = alike[0]
    dtypes = ", ".join(dict.fromkeys(a.dtype for a in alike))
    place = f"{attempt.line}: " if attempt.line else ""
    word = (
        str(attempt.outcome) if attempt.outcome is not Outcome.PASS else f"spills {attempt.spills} bytes a thread more"
    )
    both = ", on the source too" if attempt.fails_on_both else "" if attempt.claimed else ", and is not claimed"
    yield f"{dtypes} {attempt.sample}: {word}{both}: {place}{attempt.detail}".rstrip(": ")
    if attempt.advice:
        yield f"  {attempt.advice}"


def _special(report: Report) -> Iterator[str]:
    if report.names:
        yield f"names of the language that it uses: {', '.join(report.names)}"
    if not report.missing:
        yield "none of them, and no product or atomic, is refused or emulated there and not here"
    yield from _few([_fault(f) for f in report.missing])
    yield from _few([f"layout: {line}" for line in report.layouts])
    there = report.destination.id
    yield from _few([f"differs silently: {_fault(f)}{_elsewhere(f, there)}" for f in report.silent])
    own = [f for f in report.lint if not f.everywhere]
    yield from _few([f"lint, there and not here: {_fault(f)}" for f in own])
    yield from _few([f"lint, there as here: {_fault(f)}" for f in report.lint if f.everywhere])


def _fault(fault: Fault) -> str:
    place = f"{fault.line}: " if fault.line else ""
    return f"{place}{fault.code}: {fault.message}"


def _elsewhere(fault: Fault, there: str) -> str:
    """Name the targets of a difference that is none of the destination's: what moves is rid of it."""
    return "" if not fault.targets or there in fault.targets else f" (on {', '.join(fault.targets)})"


def _few(lines: Sequence[str]) -> list[str]:
    more = [f"and {len(lines) - SHOWN} more: --format json has them all"] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def _choices(choices: Sequence[Choice]) -> Iterator[str]:
    for choice in choices:
        if choice.tried:
            counts = f"{choice.tried} configurations, {choice.failed} do not work, {choice.spilling} spill"
            yield f"{choice.dtypes[0]}: {counts}; {choice.found}"
        for i, ranked in enumerate(choice.ranked, 1):
            time = f"{ranked.median:.4g} ms, " if ranked.median is not None else ""
            needs = [f"{ranked.registers} registers"] if ranked.registers else []
            needs += [f"{ranked.shared} B shared", *([f"occupancy {ranked.occupancy:.0%}"] if ranked.occupancy else [])]
            said = ", ".join([*needs, *([ranked.matrix] if ranked.matrix else [])])
            yield f"  {i}. {blocks(ranked.blocks)}: {time}{said}"
        if choice.interpreted:
            yield f"the interpreter, with {blocks(choice.blocks) or 'the best of them'}: {choice.interpreted}"
        if choice.why:
            yield f"nothing fits: {choice.why}"
        yield from (f"  {line}" for entry in choice.entries for line in entry.text.splitlines())


def _entries(report: Report) -> Iterator[str]:
    yield from (entry.text for choice in report.choices for entry in choice.entries)


def blocks(values: Mapping[str, int]) -> str:
    """Return "BLOCK_M=128, num_warps=8"."""
    return ", ".join(f"{k}={v}" for k, v in values.items())
