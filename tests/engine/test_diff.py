"""What changed between runs: each kind of change is told from the others, and noise is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from portability.diff import HEAD, Diff, Kind, cell_history, diff, history
from portability.merge import merge
from portability.model import Evidence, Observation, Outcome
from portability.results import Provenance
from portability.table import Section, TableError
from portability.text import render_sections, rows_text
from tests.engine.fake_runs import cell, header, merged, rule, run, seen, timing

RAN, NONE = Evidence.RAN, Evidence.NONE
WRONG, CRASH, REFUSED = Outcome.WRONG, Outcome.CRASH, Outcome.COMPILE_ERROR
OLD_TRITON = {"triton": "3.8.0"}
GONE = seen(Outcome.UNAVAILABLE, NONE)


def changed(old: Observation | None, new: Observation | None) -> Diff:
    return diff(*(merged(*([] if o is None else [o])) for o in (old, new)))


def kinds(found: Diff) -> list[tuple[Kind, bool]]:
    return [(c.kind, c.worse) for c in found.changes]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (seen(), seen(), []),
        (seen(), seen(REFUSED), [(Kind.REGRESSED, True)]),
        (seen(WRONG, RAN), seen(evidence=RAN), [(Kind.FIXED, False)]),
        (seen(WRONG, RAN), seen(CRASH, RAN), [(Kind.CHANGED, False)]),
        (seen(), seen(Outcome.TIMEOUT, stage="compile"), [(Kind.UNDECIDED, False)]),  # a slower machine
        (seen(), None, [(Kind.UNTESTED, False)]),
        (seen(), GONE, [(Kind.UNTESTED, False)]),
        (seen(evidence=RAN), seen(), [(Kind.UNTESTED, False)]),
        (None, seen(), [(Kind.TESTED, False)]),
        (GONE, seen(), [(Kind.TESTED, False)]),
        (seen(), seen(evidence=RAN), [(Kind.TESTED, False)]),
        (None, seen(WRONG, RAN), [(Kind.NEW_FAILURE, True)]),
        (seen(), seen(WRONG, RAN, device="NVIDIA H200"), [(Kind.NEW_FAILURE, True)]),
        (seen(versions=OLD_TRITON), seen(REFUSED), [(Kind.VERSION, True)]),
        (seen(REFUSED, versions=OLD_TRITON), seen(), [(Kind.VERSION, False)]),
        (seen(versions=OLD_TRITON), seen(), []),
    ],
)
def test_kinds_of_change(old: Observation | None, new: Observation | None, expected: list[tuple[Kind, bool]]) -> None:
    found = changed(old, new)
    assert kinds(found) == expected
    assert found.exit_code == int(any(worse for _, worse in expected))


def test_a_pass_that_is_lost_as_declared_is_no_regression() -> None:
    new = merged(seen(WRONG, RAN), of=header(rule(WRONG)))
    assert kinds(diff(merged(seen(evidence=RAN)), new)) == [(Kind.DECLARED, False)]


def test_a_failure_that_is_no_longer_declared_regressed() -> None:
    old = merged(seen(WRONG, RAN), of=header(rule(WRONG)))
    assert kinds(diff(old, merged(seen(WRONG, RAN)))) == [(Kind.REGRESSED, True)]


def test_a_probe_that_is_newly_refused_regressed() -> None:
    probe = cell(kernel="tl.exp", dtype="float32", sample="64")
    assert kinds(changed(seen(of=probe), seen(REFUSED, of=probe))) == [(Kind.REGRESSED, True)]


def timed(median: float, spread: float = 0.02, device: str = "NVIDIA H200", **fields: object) -> Observation:
    return seen(evidence=RAN, device=device, timing=timing(median, spread, **fields))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (timed(1.0), timed(1.05), [(Kind.SLOWER, True)]),
        (timed(1.05), timed(1.0), [(Kind.FASTER, False)]),
        (timed(1.0, 0.1), timed(1.05, 0.1), []),  # within the quantiles of both
        (timed(1.0), timed(2.0, stable=False), []),
        (timed(1.0), timed(2.0, method="launch"), []),
        (timed(1.0, performance=False), timed(2.0, performance=False), []),
        (timed(1.0, device="NVIDIA H100"), timed(2.0), []),
        (timed(1.0), seen(evidence=RAN, device="NVIDIA H200"), []),
    ],
)
def test_a_time_changed_only_beyond_the_noise_of_both(
    old: Observation, new: Observation, expected: list[tuple[Kind, bool]]
) -> None:
    assert kinds(changed(old, new)) == expected


def test_one_device_is_compared_with_itself() -> None:
    laptop, lab = seen(), seen(evidence=RAN, device="NVIDIA H200")
    old = merge([run(laptop), run(lab)])
    new = merge([run(replace(laptop, outcome=REFUSED)), run(lab)])
    (change,) = diff(old, new).changes
    assert change.text == "pass (compiled) -> compile_error (compiled)"


def test_the_text_names_cell_line_and_detail() -> None:
    found = changed(seen(), seen(REFUSED, line="kernels/matmul.py:9", detail="no such thing\nand more"))
    text = render_sections(found.sections)
    assert text.startswith("Regressed\n  matmul-float16-64x64-cuda:90: pass (compiled) -> compile_error (compiled) at")
    assert "kernels/matmul.py:9: no such thing" in text.replace("\n    ", " ")
    assert "cells in both: 1; regressed 1" in text


def test_markdown_for_a_pull_request_is_harmless() -> None:
    text = render_sections(changed(seen(), seen(REFUSED, detail="<b>@all")).sections, "markdown")
    assert text.startswith("### Regressed\n\n- matmul-float16-64x64-cuda:90")
    assert "&lt;b&gt;" in text
    assert "@all" not in text


def test_what_was_merely_tested_is_a_line_a_kernel_and_target() -> None:
    new = merged(seen(), seen(of=cell(sample="tall")), seen(of=cell("cuda:80")))
    assert diff(merged(), new).sections[0].lines == (
        "matmul on cuda:90, 2 cells: not run -> compiled",
        "matmul on cuda:80, 1 cell: not run -> compiled",
    )


def test_json_holds_every_line() -> None:
    sections = (Section("Many", tuple(map(str, range(50)))),)
    assert len(json.loads(render_sections(sections, "json"))["Many"]) == 50
    assert "… and 30 more; --format json holds all of them" in render_sections(sections)


def test_no_change_says_so() -> None:
    assert render_sections(changed(seen(), seen()).sections) == "Summary\n  cells in both: 1; no change\n"


def test_another_form_is_refused() -> None:
    with pytest.raises(TableError, match="no format 'html' for this"):
        render_sections((), "html")


def test_history_compares_each_run_with_the_one_before_on_its_host() -> None:
    def on(host: str, day: str, *observations: Observation) -> object:
        made = replace(header(), provenance=Provenance(host=host, triton="3.9.0", started=f"2026-11-0{day}T10:00:00"))
        return run(*observations, of=made)

    runs = [on("b", "3", seen(WRONG, RAN)), on("a", "1", seen()), on("a", "2", seen(REFUSED)), on("a", "4", seen())]
    rows = history(runs)  # type: ignore[arg-type]
    assert rows[0] == HEAD
    assert [(r[0][:10], r[1], *r[5:]) for r in rows[1:]] == [
        ("2026-11-01", "a", "1", "0", "-", "-", "-"),
        ("2026-11-02", "a", "0", "1", "1", "0", "0"),
        ("2026-11-03", "b", "0", "1", "-", "-", "-"),
        ("2026-11-04", "a", "1", "0", "0", "1", "0"),
    ]
    assert "2026-11-04T10:00" in rows_text(rows)


def test_the_history_of_one_cell_is_in_order_of_time() -> None:
    runs = [run(seen(WRONG, when="2026-11-02")), run(seen(when="2026-11-01"))]
    assert [(when, e.observation.outcome) for when, e in cell_history(runs, cell())] == [
        ("2026-11-01", Outcome.PASS),
        ("2026-11-02", WRONG),
    ]
