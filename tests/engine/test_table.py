"""The table: what a square says, what stands below, and that nothing in a results file does more than be shown."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from portability.merge import merge
from portability.model import (
    CaseInfo,
    Cell,
    Evidence,
    Expectation,
    Finding,
    Observation,
    Outcome,
    SampleInfo,
    Target,
    Timing,
)
from portability.render import FORMS, render
from portability.report import build
from portability.results import Provenance, Selection, header_line, observation_line
from portability.table import PACKAGE, Square, Table, TableError, View, grid
from portability.text import clean, clip_apart, escape
from portability.times import duration, figures
from tests.engine.drawn import given, st
from tests.engine.fake_runs import CASES, TARGETS, cell, header, merged, rule, run, seen, timing

RAN, NONE = Evidence.RAN, Evidence.NONE
WRONG, PASS = Outcome.WRONG, Outcome.PASS


def square(*observations: Observation, rules: tuple[Expectation, ...] = ()) -> Square:
    """The square of `matmul` on cuda:90."""
    found = grid(merged(*observations, of=header(*rules)), View.KERNELS)
    return found.rows[0].squares[1]


def sections(table: Table) -> dict[str, tuple[str, ...]]:
    return {s.title.split(":")[0]: s.lines for s in table.sections}


# ------------------------------------------------------------------------------------------------- squares

F32, TALL = cell(dtype="float32"), cell(sample="tall")


@pytest.mark.parametrize(
    ("observations", "text"),
    [
        ([seen()], "compiled 1/1"),
        ([seen(evidence=RAN), seen(evidence=RAN, of=F32)], "ran 2/2"),
        ([seen(evidence=RAN), seen(of=F32)], "compiled 2/2"),  # the lowest evidence
        ([seen(evidence=RAN), seen(WRONG, RAN, of=F32)], "ran 1/2 wrong!"),
        ([seen(Outcome.CRASH, RAN), seen(WRONG, RAN, of=F32)], "ran 0/2 crash!"),  # the worst outcome
        ([seen(), seen(Outcome.UNAVAILABLE, NONE, of=F32)], "compiled 1/2 unavailable"),
        ([seen(Outcome.UNAVAILABLE, NONE)], "unavailable"),
        ([seen(Outcome.TIMEOUT, stage="compile")], "compiled 0/1 timeout?"),
    ],
)
def test_a_square_says_evidence_count_and_outcome(observations: list[Observation], text: str) -> None:
    assert square(*observations).text == text


def test_a_declared_failure_is_marked_beside_one_that_is_not() -> None:
    rules = (rule(WRONG, sample=("tall",)),)
    assert square(seen(WRONG, RAN, of=TALL), seen(WRONG, RAN), rules=rules).text == "ran 0/2 wrong! wrong*"


def test_a_stale_pass_and_an_undecided_one_are_marked() -> None:
    assert square(seen(evidence=RAN), rules=(rule(WRONG),)).text == "ran 1/1 stale!"
    assert square(seen(), rules=(rule(WRONG),)).text == "compiled 1/1 ?"


def test_an_unclaimed_dtype_that_is_refused_is_not_counted() -> None:
    made = header(claims={"cuda:90": ("float32",)})
    assert grid(merged(seen(Outcome.UNSUPPORTED), of=made), View.KERNELS).rows[0].squares[1].text == "n/a"
    both = merged(seen(Outcome.UNSUPPORTED), seen(of=F32), of=made)
    assert grid(both, View.KERNELS).rows[0].squares[1].text == "compiled 1/1"


def test_what_was_not_run_says_so() -> None:
    assert grid(merged(seen()), View.KERNELS).rows[0].squares[0].text == "not run"


@given(st.lists(st.tuples(st.sampled_from(Outcome), st.sampled_from(Evidence)), min_size=1, max_size=3, unique=True))
def test_no_square_claims_more_than_its_cells(parts: list[tuple[Outcome, Evidence]]) -> None:
    cells = (cell(), F32, TALL)
    got = square(*(seen(o, e, of=c) for (o, e), c in zip(parts, cells, strict=False)))
    tried = [(o, e) for o, e in parts if o is not Outcome.UNAVAILABLE]
    assert got.passed == sum(o is PASS for o, _ in parts)
    assert got.evidence.rank == min((e.rank for _, e in tried), default=0)
    assert ("0 %" in got.share) <= bool(tried)  # missing is never 0 %


def test_a_share_of_100_percent_is_all_of_them() -> None:
    assert Square(RAN, passed=199, total=200).share == "ran 99 %"
    assert Square(RAN, passed=200, total=201, unavailable=1).share == "ran 100 %"


def test_machines_add_up_and_the_column_takes_the_strongest_pass() -> None:
    lab = replace(header(name="run-2"), provenance=Provenance(host="lab"))
    both = merge([run(seen()), run(seen(evidence=RAN, device="NVIDIA H200"), of=lab)])
    assert grid(both, View.KERNELS).rows[0].squares[1].text == "ran 1/1"
    lines = sections(build(both))["Where it comes from"]
    assert "laptop" in lines[0]
    assert lines[1].startswith("lab")
    assert lines[1].endswith("ran: cuda:90")


# --------------------------------------------------------------------------------------------------- rows


def test_rows_by_dtype_and_sample_in_the_case_s_order() -> None:
    got = grid(merged(seen(of=TALL), seen(), seen(of=F32)), View.KERNELS, ("dtype", "sample"))
    assert [r.names for r in got.rows] == [("float32", "64x64"), ("float16", "64x64"), ("float16", "tall")]


def test_rows_by_something_unknown_are_refused_with_the_choices() -> None:
    with pytest.raises(TableError, match="cannot be grouped by 'colour'; they can by group, kernel"):
        grid(merged(seen()), View.KERNELS, ("colour",))


def test_probes_and_packages_have_views_of_their_own() -> None:
    recorded = CaseInfo("rms_norm", ("float32",), (SampleInfo("1x1"),), group=f"{PACKAGE}liger-kernel 0.5")
    made = header(cases=(*CASES, recorded))
    probe, kernel = cell(kernel="tl.exp", dtype="float32"), cell(kernel="rms_norm", dtype="float32")
    table = build(merged(seen(), seen(of=probe), seen(of=kernel), of=made))
    assert [(g.view, [r.names for r in g.rows]) for g in table.grids] == [
        (View.KERNELS, [("matmul",)]),
        (View.API, [("math",)]),
        (View.PACKAGES, [("liger-kernel 0.5",)]),
    ]


def test_a_view_that_is_asked_for_stands_alone() -> None:
    table = build(merged(seen(), seen(of=cell(kernel="tl.exp", dtype="float32"))), [View.API], ("group", "kernel"))
    assert [r.names for g in table.grids for r in g.rows] == [("math", "tl.exp")]
    assert [e.cell.kernel for e in table.cells] == ["tl.exp"]


def test_the_backend_with_the_strongest_evidence_stands_first() -> None:
    lab = tuple(replace(t, evidence=RAN) if t.id == "hip:gfx942" else t for t in TARGETS)
    got = grid(merge([run(seen()), run(seen(), of=header(targets=lab))]), View.KERNELS)
    assert [c.target for c in got.columns] == ["hip:gfx942", "cuda:80", "cuda:90", "npu:910B"]


def test_columns_of_one_target_in_two_environments_are_told_apart() -> None:
    old = replace(TARGETS[1], environment="triton-3.6")
    made = header(targets=(TARGETS[1], old))
    text = render(build(merged(seen(), seen(of=replace(cell(), environment="triton-3.6")), of=made)))
    assert "in triton-3.6" in text


def test_a_target_that_another_machine_could_try_is_not_shown_as_lacking() -> None:
    npu = next(t for t in TARGETS if t.evidence is NONE)
    lowered = replace(npu, evidence=Evidence.LOWERED, environment="ascend", why="", remedy="")
    here = run(
        seen(evidence=Evidence.LOWERED, of=replace(cell(npu.id), environment="ascend")), of=header(targets=(lowered,))
    )
    table = build(merge([run(seen()), here]))
    columns = [c for g in table.grids for c in g.columns if c.target == npu.id]
    assert [c.environment for c in columns] == ["ascend"]
    assert "Unavailable" not in sections(table)


# ----------------------------------------------------------------------------------------------- sections


def test_sections_say_what_fails_what_is_declared_and_what_is_missing() -> None:
    rules = (rule(WRONG, sample=("tall",), reason="known since 3.8", link="https://example.org/1"),)
    bad = seen(Outcome.CRASH, detail="signal 11\nmore", line="kernels/matmul.py:4", of=F32)
    warned = seen(warnings=(Finding("grid-limit", "near it", targets=("hip:gfx942",)),))
    got = sections(build(merged(seen(WRONG, RAN, of=TALL), bad, warned, of=header(*rules))))
    assert got["Regressions"] == ("matmul-float32-64x64-cuda:90: crash at kernels/matmul.py:4: signal 11",)
    assert got["Declared"][0].startswith("wrong, 1 cell: known since 3.8 https://example.org/1 (matrix.toml")
    assert got["Unavailable"] == (
        "npu:910B: triton-ascend is not installed; to fill it: portability env create ascend",
    )
    assert got["Warnings"] == ("grid-limit: near it (hip:gfx942)",)
    assert "* declared with its reason (below)" in got["Legend"]


def test_stale_rules_and_rules_that_matched_nothing_have_their_sections() -> None:
    stale = rule(WRONG)
    table = build(merged(seen(evidence=RAN), of=header(stale)), unmatched=[rule(WRONG, reason="gone")])
    assert "it works (ran)" in sections(table)["Stale"][0]
    assert sections(table)["Rules that matched no cell"] == ("matrix.toml: [[expect]] 1: gone",)
    assert table.fails


def test_conflicts_are_shown_with_both_sides() -> None:
    both = merge([run(seen(when="2026-11-01")), run(seen(WRONG, when="2026-11-02"))])
    (line,) = sections(build(both))["Conflicts"]
    assert line.endswith("wrong at 2026-11-02 in laptop (shown), pass at 2026-11-01 in laptop")


def test_an_interrupted_run_says_how_far_it_came() -> None:
    made = replace(run(seen(), of=replace(header(), selection=Selection(cells=9))), footer=None)
    (line,) = sections(build(merge([made])))["Where it comes from"]
    assert "interrupted after 1 of 9 cells" in line


def test_cells_that_differ_in_their_sample_alone_share_a_line() -> None:
    got = sections(build(merged(*(seen(WRONG, RAN, of=cell(sample=s)) for s in ("64x64", "tall")))))
    assert got["Regressions"] == ("matmul-float16-64x64-cuda:90 and 1 more sample: wrong",)


# --------------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            timing(0.204, tflops=642.0, torch_median=0.255, ceiling=0.823, ceiling_of="matmul float16 780 TFLOP/s"),
            ("204 us", "2 %", "642 TFLOP/s", "1.25x", "82 %", "matmul float16 780 TFLOP/s"),
        ),
        (
            timing(1.5, gbps=3792.4, tflops=0.5, ceiling=0.89, ceiling_of="copy 4257 GB/s"),
            ("1.5 ms", "2 %", "3792 GB/s", "-", "89 %", "copy 4257 GB/s"),
        ),
        (timing(1.5, 0.3, stable=False, gbps=1.0), ("unstable", "30 %", "-", "-", "-", "-")),
        (timing(1.5, gbps=1.0, performance=False), ("1.5 ms", "2 %", "no performance", "-", "-", "-")),
    ],
)
def test_figures_are_printed_only_where_they_mean_something(made: Timing, said: tuple[str, ...]) -> None:
    assert figures(made) == said


def test_an_interpreter_s_times_are_left_out_and_said() -> None:
    slow = seen(evidence=Evidence.INTERPRETED, timing=timing(5.0, performance=False))
    table = build(merged(slow))
    assert table.times == ()
    assert sections(table)["Times left out"] == ("cuda:90: 1 cell, whose times are no measure of performance",)


def test_times_are_in_the_order_of_the_cases() -> None:
    cells = (TALL, cell(), F32)
    table = build(merged(*(seen(evidence=RAN, of=c, timing=timing(1.0)) for c in cells)))
    assert [row[1:3] for row in table.times[1:]] == [("float32", "64x64"), ("float16", "64x64"), ("float16", "tall")]


@pytest.mark.parametrize(
    ("milliseconds", "said"), [(0.0081, "8.1 us"), (0.9996, "1e+03 us"), (1, "1 ms"), (2500, "2.5 s"), (0, "0 us")]
)
def test_durations(milliseconds: float, said: str) -> None:
    assert duration(milliseconds) == said.replace("1e+03", "1000")


# ----------------------------------------------------------------------------------------------- renderers

HOSTILE = "\x1b[2J\x07<script>alert(1)</script>|`x`\u202e@all [a](http://e.vil) =cmd()\r\n# head\ud800"


def hostile() -> Table:
    bad = Target(HOSTILE, "cuda", HOSTILE, evidence=RAN, why=HOSTILE, remedy=HOSTILE)
    gone = Target("gone", "cuda", why=HOSTILE, remedy=HOSTILE)
    case = CaseInfo(HOSTILE, (HOSTILE,), (SampleInfo(HOSTILE),))
    seen_there = seen(
        WRONG,
        RAN,
        Cell(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        detail=HOSTILE,
        line=HOSTILE,
        warnings=(Finding(HOSTILE, HOSTILE),),
        device=HOSTILE,
        timing=timing(1.0, ceiling=0.5, ceiling_of=HOSTILE),
        versions={"triton": HOSTILE},
    )
    made = header(rule(WRONG, reason=HOSTILE, link=HOSTILE), name=HOSTILE, targets=(bad, gone), cases=(case,))
    other = replace(seen_there, outcome=PASS, when="2020")
    return build(merge([run(other, of=made, file=HOSTILE), run(seen_there, of=made, file=HOSTILE)]))


@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_reaches_no_terminal_page_or_sheet(form: str) -> None:
    text = render(hostile(), form)
    assert all(c.isprintable() or c in "\n\u200b" for c in text)
    if form == "markdown":
        assert "<script" not in text
        assert "http://" not in text
        assert "@all" not in text
        assert "[a](" not in text
    if form == "csv":
        assert not [v for row in csv.reader(io.StringIO(text)) for v in row if v[:1] in ("=", "+", "-", "@")]


@given(st.text())
def test_markdown_cells_stay_cells(text: str) -> None:
    got = escape(text)
    assert "\n" not in got
    assert got.count("|") == got.count("\\|")
    assert "<" not in got


@given(st.text())
def test_clean_text_is_printable_and_one_line(text: str) -> None:
    assert clean(text).isprintable()


def test_a_terminal_of_100_columns_is_kept_to() -> None:
    targets = tuple(Target(f"cuda:{i}", "cuda", "A long title of a card", evidence=RAN) for i in range(20))
    made = header(targets=targets)
    cells = [seen(WRONG, RAN, cell(t.id), detail="x" * 500, timing=timing(1.0)) for t in targets]
    for by in ((), ("kernel", "dtype", "sample")):
        text = render(build(merged(*cells, of=made), by=by))
        assert max(map(len, text.splitlines())) <= 100
        assert all(t.id in text for t in targets)


def test_names_that_begin_alike_are_cut_where_they_differ() -> None:
    """Else two rows of a table read alike."""
    names = [
        "attention_forward_causal_kernel",
        "attention_forward_causal_varlen",
        "add",
        "attention_forward_causal_kernel",
    ]
    short = clip_apart(names, 20)
    assert short == ["attention_…al_kernel", "attention_…al_varlen", "add", "attention_…al_kernel"]
    assert clip_apart(["a" * 30 + "b" + "a" * 30, "a" * 61], 20) == ["a" * 30 + "b" + "a" * 30, "a" * 61]


def test_long_sections_are_cut_and_say_where_the_rest_is() -> None:
    targets = tuple(Target(f"cuda:{i}", "cuda", evidence=RAN) for i in range(30))
    table = build(merged(*(seen(WRONG, RAN, cell(t.id)) for t in targets), of=header(targets=targets)))
    assert "… and 10 more; --format json holds all of them" in render(table)
    assert len(json.loads(render(table, "json"))["cells"]) == 30


def test_json_holds_squares_and_cells() -> None:
    data = json.loads(render(build(merged(seen(WRONG, RAN, detail="off"))), "json"))
    assert data["fails"] is True
    assert data["grids"][0]["rows"][0]["squares"][1]["text"] == "ran 0/1 wrong!"
    (only,) = data["cells"]
    assert (only["standing"], only["detail"], only["id"]) == ("regression", "off", "matmul-float16-64x64-cuda:90")


def test_csv_has_a_line_a_square() -> None:
    rows = list(csv.DictReader(io.StringIO(render(build(merged(seen())), "csv"))))
    assert [(r["kernel"], r["target"], r["text"]) for r in rows][:2] == [
        ("matmul", "cuda:80", "not run"),
        ("matmul", "cuda:90", "compiled 1/1"),
    ]


def test_an_unknown_format_is_refused_with_the_choices() -> None:
    with pytest.raises(TableError, match="no format 'pdf'; there are terminal, markdown, json, csv"):
        render(build(merged(seen())), "pdf")


def test_ten_thousand_cells_take_less_than_a_second_and_neither_torch_nor_triton(tmp_path: object) -> None:
    path = f"{tmp_path}/run.jsonl"
    cases = tuple(CaseInfo(f"k{i}", ("float32",), tuple(SampleInfo(str(s)) for s in range(40))) for i in range(50))
    targets = tuple(Target(f"cuda:{i}", "cuda", evidence=RAN) for i in range(5))
    with open(path, "w", encoding="ascii") as file:
        file.write(header_line(header(cases=cases, targets=targets)))
        for c in cases:
            for s in c.samples:
                file.writelines(
                    observation_line(seen(of=Cell(c.name, "float32", s.name, t.id), detail="x" * 80)) for t in targets
                )
    script = (
        "import sys, time; from pathlib import Path\n"
        "from portability.diff import diff; from portability.merge import merge\n"
        "from portability.render import render\n"
        "from portability.report import build; from portability.results import read_runs\n"
        f"text = render(build(merge(read_runs(Path({path!r})))))\n"
        "assert 'k49' in text\n"
        "print(time.process_time(), 'torch' in sys.modules or 'triton' in sys.modules)"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, loaded = done.stdout.split()
    # Time of the process, start-up and all: what a machine with nothing else to do takes.
    assert float(seconds) < 1.0, f"{seconds} s of processor time, {time.perf_counter() - began:.1f} s in all"
    assert loaded == "False"
