"""Runs as files: what is written is read, what is damaged is refused or said, and merging hides nothing."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import portability
from portability.merge import merge, shown
from portability.model import Accuracy, Evidence, Finding, Outcome, Resources, Standing, from_json, to_json
from portability.results import (
    VERSION,
    Footer,
    Header,
    Provenance,
    ResultsError,
    Selection,
    exit_code,
    footer_line,
    header_line,
    observation_line,
    read_run,
    read_runs,
    write_runs,
)
from portability.schema import schema
from portability.writer import Writer
from tests.engine.drawn import given, st
from tests.engine.fake_runs import cell, header, rule, run, seen, timing

FULL = seen(
    Outcome.WRONG,
    Evidence.RAN,
    stage="compare",
    detail="off \x1b[31m by \u202e one \ud800",
    line="kernels/matmul.py:41",
    warnings=(Finding("grid-limit", "near it", targets=("hip:gfx942",)),),
    accuracy=Accuracy(float("inf"), 0.5, float("nan")),
    resources=(Resources("k", registers=32, occupancy=0.5),),
    timing=timing(1.5),
    blocks={"BLOCK_M": 64},
    device="NVIDIA H200",
)
FINISHED = "2026-11-03T13:00:00+00:00"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results" / "run.jsonl"


def write(path: Path, *observations: Any, finish: bool = True, of: Header | None = None) -> None:
    with Writer(path, of or header()) as writer:
        for observation in observations:
            writer.write(observation)
        if finish:
            writer.finish(FINISHED)


# ------------------------------------------------------------------------------------- writing and reading


def test_a_run_is_read_as_it_was_written(path: Path) -> None:
    first = header(rule(Outcome.WRONG, target=("hip:*",)))
    write(path, seen(of=cell("cuda:80")), replace(FULL, accuracy=None), of=first)
    got = read_run(path)
    assert got.header == first
    assert got.observations == (seen(of=cell("cuda:80")), replace(FULL, accuracy=None))
    assert got.footer == Footer(FINISHED, {"pass": 1, "wrong": 1})
    assert not got.interrupted


def test_infinities_and_nan_survive() -> None:
    again = from_json(type(FULL), json.loads(observation_line(FULL))).accuracy
    assert again is not None
    assert (again.error, again.ratio != again.ratio) == (float("inf"), True)


def test_lines_are_plain_ascii() -> None:
    line = observation_line(FULL)
    assert line.isascii()
    assert line[:-1].isprintable()


def test_each_observation_is_in_the_file_when_written(path: Path) -> None:
    with Writer(path, header()) as writer:
        writer.write(seen())
        assert read_run(path).observations == (seen(),)
        assert read_run(path).interrupted


def test_the_last_observation_of_a_cell_counts(path: Path) -> None:
    write(path, seen(Outcome.CRASH), seen())
    assert read_run(path).observations == (seen(),)


def test_a_torn_last_line_is_left_out_and_said(path: Path) -> None:
    write(path, seen(), finish=False)
    with path.open("ab") as file:
        file.write(observation_line(FULL).encode()[:50])
    got = read_run(path)
    assert (got.torn, got.interrupted, got.observations) == (True, True, (seen(),))


@given(st.integers(0, 2500))
def test_a_file_cut_anywhere_keeps_its_whole_lines(at: int) -> None:
    lines = [header_line(header()), observation_line(seen(of=cell("cuda:80"))), observation_line(FULL)]
    text = "".join(lines)[:at]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        path.write_text(text)
        if at < len(lines[0]) - 1:
            with pytest.raises(ResultsError):
                read_run(path)
            return
        whole = sum(at >= len("".join(lines[: n + 2])) - 1 for n in range(2))  # a newline alone may be missing
        assert len(read_run(path).observations) == whole


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":2: no JSON"),
        ("[1]", ":2: a table is needed, not '[1]'"),
        ('{"cell": 1}', ":2: Observation.cell: a table is needed"),
        ('{"cell": {"kernel": "a"}}', ":2: Observation.cell: "),
        (observation_line(seen())[:-2] + ', "colour": 1}', ":2: Observation: unknown field 'colour'"),
        (observation_line(seen()).replace("compiled", "fancied"), ":2: Observation.evidence: 'fancied' is none of"),
        ('{"seconds": NaN}', ":2: no JSON: NaN is not JSON"),
        ("[" * 100_000, ":2: no JSON"),
        ("\x00", ":2: no JSON"),
        (f'{{"finished": "{FINISHED}"}}\n{{}}', ":3: goes on after the end of the run"),
    ],
)
def test_a_malformed_line_is_refused_by_file_and_line(path: Path, line: str, said: str) -> None:
    path.parent.mkdir()
    path.write_text(header_line(header()) + line.rstrip("\n") + "\n")
    with pytest.raises(ResultsError) as error:
        read_run(path)
    assert f"run.jsonl{said}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ":1: no header of a run"),
        ('{"cell": {}}\n', ":1: no results file of this harness"),
        ('{"format": "other", "version": 1, "run": "x"}\n', ":1: no results file of this harness"),
        ('{"format": "portability-results", "version": "1", "run": "x"}\n', ":1: version '1' of"),
        (
            f'{{"format": "portability-results", "version": {VERSION + 1}, "run": "x", "new": 1}}\n',
            f":1: version {VERSION + 1} of portability-results is newer than {VERSION}",
        ),
    ],
)
def test_what_is_no_results_file_or_too_new_is_refused_by_name(path: Path, text: str, said: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ResultsError) as error:
        read_run(path)
    assert f"run.jsonl{said}" in str(error.value)


def test_a_rule_in_a_file_that_cannot_be_judged_by_is_refused(path: Path) -> None:
    write(path, of=header(rule(Outcome.WRONG, match="(")))
    with pytest.raises(ResultsError, match=r"run\.jsonl:1: .*unterminated"):
        read_run(path)


def test_joined_files_are_several_runs(path: Path) -> None:
    write(path, seen())
    path.write_text(path.read_text() * 2)
    assert len(read_runs(path)) == 2
    with pytest.raises(ResultsError, match="holds 2 runs, where one is needed"):
        read_run(path)


# ---------------------------------------------------------------------------------------------- interrupted


def test_resuming_goes_on_after_a_torn_line(path: Path) -> None:
    write(path, seen(), finish=False)
    with path.open("ab") as file:
        file.write(b'{"cell": {"ker')
    with Writer.resume(path) as writer:
        assert list(writer.observations) == [cell()]
        writer.write(FULL)
        writer.write(seen(of=cell("cuda:80")))
        writer.finish(FINISHED)
    got = read_run(path)
    assert (got.torn, got.interrupted, len(got.observations)) == (False, False, 2)
    assert got.footer == Footer(FINISHED, {"pass": 1, "wrong": 1})


def test_resuming_a_finished_run_replaces_its_end(path: Path) -> None:
    write(path, seen())
    with Writer.resume(path) as writer:
        writer.write(seen(of=cell("cuda:80")))
        writer.finish("later")
    assert read_run(path).footer == Footer("later", {"pass": 2})


def test_resuming_takes_the_new_expectations_and_keeps_the_start(path: Path) -> None:
    write(path, seen(), finish=False)
    Writer.resume(path, header(rule(Outcome.WRONG), name="run-2", started="2027-01-01")).close()
    got = read_run(path).header
    assert (got.run, got.provenance.started) == ("run-1", header().provenance.started)
    assert got.expectations == (rule(Outcome.WRONG),)


def test_resuming_with_another_triton_is_refused(path: Path) -> None:
    write(path, seen(), finish=False)
    other = replace(header(), provenance=replace(header().provenance, triton="3.8.0"))
    before = path.read_bytes()
    with pytest.raises(ResultsError, match=r"cannot be resumed here: triton was '3\.9\.0' and is '3\.8\.0'"):
        Writer.resume(path, other)
    assert path.read_bytes() == before


def test_a_full_disk_is_named_and_keeps_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full_after_a_few_bytes(file: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2])

    writer = Writer(path, header())
    writer.write(seen())
    monkeypatch.setattr(os, "write", full_after_a_few_bytes)
    with pytest.raises(ResultsError, match=r"run\.jsonl: cannot be written: No space left.*; 1 finished observation"):
        writer.write(FULL)
    writer.close()
    assert not read_run(path).torn
    assert read_run(path).observations == (seen(),)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_device_that_is_full_from_the_start() -> None:
    with pytest.raises(ResultsError, match="/dev/full: cannot be written: No space left"):
        Writer(Path("/dev/full"), header())


# ------------------------------------------------------------------------------------- judging and merging


def test_two_runs_do_not_write_one_file(path: Path) -> None:
    """The second is refused, whether it would begin the file or go on with it, and the first's cells stay."""
    with Writer(path, header()) as first:
        first.write(seen(Outcome.PASS))
        with pytest.raises(ResultsError, match="another run is writing it; --results names another file"):
            Writer(path, header())
        with pytest.raises(ResultsError, match="another run is writing it"):
            Writer.resume(path)
        first.finish("2026-01-01T00:00:00+00:00")
    assert len(read_run(path).observations) == 1
    Writer(path, header()).close()


def test_a_file_is_judged_by_its_own_header_on_its_own_day() -> None:
    made = header(rule(Outcome.WRONG, expires="2026-11-03"), claims={"cuda:90": ("float32",)})
    got = run(seen(Outcome.WRONG, Evidence.RAN), seen(Outcome.UNSUPPORTED), of=made)
    assert [v.standing for v in got.verdicts()] == [Standing.AS_EXPECTED, Standing.AS_EXPECTED]


def test_the_exit_code_follows_from_the_file() -> None:
    assert exit_code([run(seen())]) == 0
    assert exit_code([run(seen(), seen(Outcome.WRONG, Evidence.RAN, of=cell("cuda:80")))]) == 1
    assert exit_code([run(seen())], unmatched=[rule(Outcome.WRONG)]) == 1
    assert exit_code([run(seen(Outcome.UNAVAILABLE, Evidence.NONE))]) == 2
    assert exit_code([run()]) == 2


def test_the_newest_of_one_key_is_kept_and_the_difference_is_a_conflict() -> None:
    old, new = seen(when="2026-11-01"), seen(Outcome.WRONG, when="2026-11-02")
    for runs in ([run(old), run(new)], [run(new), run(old)]):
        got = merge(runs)
        assert [e.observation for e in got.entries] == [new]
        assert [[e.observation for e in c.entries] for c in got.conflicts] == [[new, old]]


def test_another_device_or_triton_is_another_key() -> None:
    several = [seen(), seen(evidence=Evidence.RAN, device="NVIDIA H200"), seen(versions={"triton": "3.8.1"})]
    got = merge([run(o) for o in several])
    assert (len(got.entries), got.conflicts) == (3, ())


def test_what_could_not_be_tried_gives_way_to_what_was() -> None:
    nothing = seen(Outcome.UNAVAILABLE, Evidence.NONE, when="2027-01-01", versions={})
    got = merge([run(seen()), run(nothing)])
    assert [e.observation for e in got.entries] == [seen()]
    assert not got.conflicts


def test_a_cell_shows_its_worst_outcome_and_its_strongest_pass() -> None:
    compiled, ran = seen(), seen(evidence=Evidence.RAN, device="NVIDIA H200")
    wrong = seen(Outcome.WRONG, Evidence.RAN, device="NVIDIA H100")
    for several, best in ([compiled, ran], ran), ([compiled, ran, wrong], wrong):
        entries = merge([run(o) for o in several]).entries
        assert shown(entries).observation == best


def test_a_merged_file_holds_what_is_kept_and_what_is_in_conflict(path: Path) -> None:
    path.parent.mkdir()
    other = seen(of=cell("cuda:80"))
    first = run(seen(when="2026-11-01"), replace(other, when="2026-11-01"))
    second = run(seen(Outcome.WRONG, when="2026-11-02"), replace(other, when="2026-11-02"))
    write_runs(path, merge([first, second]).parts())
    again = merge(read_runs(path))
    assert [len(r.observations) for r in again.runs] == [1, 2]
    assert len(again.conflicts) == 1


# --------------------------------------------------------------------------------------------------- schema

PUBLISHED = Path(portability.__file__).with_name("results.schema.json")


def test_the_published_schema_is_in_step() -> None:
    """`python -m portability.schema > portability/results.schema.json` brings it there."""
    assert json.loads(PUBLISHED.read_text()) == schema()


SCALARS: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def fits(value: Any, wanted: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Whether `value` fits the part of JSON Schema that ours uses."""
    if "$ref" in wanted:
        return fits(value, whole["$defs"][wanted["$ref"].rsplit("/", 1)[1]], whole)
    if "const" in wanted or "enum" in wanted:
        return value in wanted.get("enum", [wanted.get("const")])
    if "anyOf" in wanted or "oneOf" in wanted:
        found = sum(fits(value, part, whole) for part in wanted.get("anyOf", wanted.get("oneOf", [])))
        return found == 1 if "oneOf" in wanted else found > 0
    if wanted["type"] == "array":
        return isinstance(value, list) and all(fits(v, wanted["items"], whole) for v in value)
    if wanted["type"] == "object":
        return isinstance(value, dict) and fits_object(value, wanted, whole)
    return isinstance(value, SCALARS[wanted["type"]]) and isinstance(value, bool) is (wanted["type"] == "boolean")


def fits_object(value: dict[str, Any], wanted: dict[str, Any], whole: dict[str, Any]) -> bool:
    known, other = wanted.get("properties", {}), wanted["additionalProperties"]
    return all(name in value for name in wanted.get("required", ())) and all(
        fits(v, known[k], whole) if k in known else other and fits(v, other, whole) for k, v in value.items()
    )


LINES = [header_line(header(rule(Outcome.WRONG))), observation_line(FULL), footer_line(FINISHED, [FULL])]


@pytest.mark.parametrize("line", LINES)
def test_every_kind_of_line_fits_the_schema(line: str) -> None:
    assert fits(json.loads(line), schema(), schema())


@pytest.mark.skipif(not importlib.util.find_spec("jsonschema"), reason="jsonschema is not installed")
@pytest.mark.parametrize("line", LINES)
def test_the_schema_is_one_to_others_too(line: str) -> None:
    import jsonschema  # type: ignore[import-untyped, import-not-found, unused-ignore]

    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads(line), schema())


@pytest.mark.parametrize("change", [{"evidence": "fancied"}, {"colour": 1}, {"launches": True}, {"cell": {}}])
def test_the_schema_refuses_what_the_reader_refuses(change: dict[str, Any]) -> None:
    assert not fits({**json.loads(LINES[1]), **change}, schema(), schema())


@given(st.builds(Provenance, host=st.text(), devices=st.lists(st.text()).map(tuple), seed=st.integers()))
def test_foreign_text_survives_the_file(provenance: Provenance) -> None:
    made = Header("run", provenance, selection=Selection(expression="matmul and not slow"))
    record = json.loads(header_line(made))
    assert from_json(Header, {k: v for k, v in record.items() if k not in ("format", "version")}) == made
    assert to_json(made) == {k: v for k, v in record.items() if k not in ("format", "version")}
