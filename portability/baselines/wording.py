"""An answer as text: targets that say the same on one line, errors and what to use instead below them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from portability.baselines.answers import Answer, Refusal, Row
from portability.baselines.files import minor_of

WIDTH = 100
MANY = 8  # labels that are listed; more are counted


def answer_text(answer: Answer, width: int = WIDTH) -> str:
    """Return an answer for a terminal."""
    recorded = f"recorded for Triton {', '.join(answer.versions)}"
    lines = [f"{answer.name} ({answer.group.replace('_', ' ')}), Triton {answer.triton}; {recorded}"]
    lines += [f"  note: {answer.note}"] if answer.note else []
    lines += [line for row in _alike(answer.rows) for line in _row_lines(*row, answer.triton)]
    lines += list(_further(answer.further))
    lines += [f"  also: {', '.join(answer.others)}"] if answer.others else []
    return "\n".join(piece for line in lines for piece in _wrapped(line, width)) + "\n"


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _alike(rows: Sequence[Row]) -> Iterator[tuple[list[str], Row]]:
    """Yield rows with the targets that say the same."""
    groups: dict[str, tuple[list[str], Row]] = {}
    for row in rows:
        said = repr(
            (
                row.evidence,
                row.triton,
                sorted(row.works.items()),
                sorted(row.refused.items()),
                sorted(row.spans.items()),
            )
        )
        groups.setdefault(said, ([], row))[0].append(row.target)
    yield from groups.values()


def _row_lines(targets: Sequence[str], row: Row, triton: str) -> Iterator[str]:
    total = len(row.works) + len(row.refused)
    other = "" if minor_of(row.triton) == triton else f" in Triton {row.triton}"
    yield f"  {', '.join(targets)}: {row.evidence}{other}, {_count(row, total)}{_hows(row.works)}{_spans(row)}"
    for refusal, labels in _by_refusal(row.refused):
        what = "refused everywhere" if refusal.contract else str(refusal.outcome).replace("_", " ")
        yield f"      {_labels(labels)}: {what}{': ' if refusal.error else ''}{refusal.error}"
        if refusal.instead:
            yield f"        instead: {refusal.instead}"


def _count(row: Row, total: int) -> str:
    if not row.works:
        return "does not work" if total == 1 else f"none of {total} works"
    if not row.refused:
        return f"all {total} work" if total > MANY else f"works for {_labels(list(row.works))}"
    return f"{len(row.works)} of {total} work"


def _hows(works: Mapping[str, str]) -> str:
    """Say what is native and what is emulated, where the assembly tells."""
    by_how = {how: [label for label, h in works.items() if h == how] for how in ("native", "mixed", "emulated")}
    by_how = {how: labels for how, labels in by_how.items() if labels}
    if len(by_how) == 1 and sum(map(len, by_how.values())) == len(works):
        return f", {next(iter(by_how))}"
    return "".join(f"; {how}: {_labels(labels)}" for how, labels in by_how.items())


def _spans(row: Row) -> str:
    by_text: dict[str, list[str]] = {}
    for label, text in row.spans.items():
        by_text.setdefault(text, []).append(label)
    total = len(row.works) + len(row.refused)
    return "".join(
        f"; {text}{f' ({_labels(labels)})' if len(labels) < total else ''}" for text, labels in by_text.items()
    )


def _by_refusal(refused: Mapping[str, Refusal]) -> Iterator[tuple[Refusal, list[str]]]:
    """Yield what was said, with all that it was said of: errors that differ in the name of a dtype alone are one."""
    alike: dict[tuple[str, str, bool], tuple[Refusal, list[str]]] = {}
    for label, refusal in refused.items():
        key = (str(refusal.outcome), refusal.instead or refusal.error, refusal.contract)
        alike.setdefault(key, (refusal, []))[1].append(label)
    yield from alike.values()


def _labels(labels: Sequence[str]) -> str:
    return ", ".join(labels) if len(labels) <= MANY else f"{', '.join(labels[:MANY])} and {len(labels) - MANY} more"


def _further(further: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Say in a line which other probes work wherever they are recorded, and of the rest where they do not."""
    fine = [probe for probe, rows in further.items() if not any(row.refused for row in rows)]
    if fine:
        yield f"  in other uses, everywhere: {', '.join(fine)}"
    for probe, rows in further.items():
        if probe in fine:
            continue
        works = [row.target for row in rows if not row.refused]
        yield f"  {probe}: {'works on ' + ', '.join(works) if works else 'works nowhere for all its dtypes'}"
        for targets, row in _alike([row for row in rows if row.refused]):
            for refusal, labels in _by_refusal(row.refused):
                yield f"      {', '.join(targets)}, {_labels(labels)}: {refusal.error or refusal.outcome}"
                if refusal.instead:
                    yield f"        instead: {refusal.instead}"
