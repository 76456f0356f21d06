"""Baselines: what is kept of a probe, how its files are written, and what a run is told by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from portability.backend import discover as discover_backends
from portability.baselines import files, history
from portability.baselines.files import BaselineError, Record, Records
from portability.baselines.records import first_error, how_of, merged, with_baseline
from portability.binary import special_instructions
from portability.catalogue import Catalogue, Selection, cells
from portability.cli import main
from portability.commands.update import record
from portability.kernel import discover
from portability.matrix import Matrix, MatrixError, explain, parse_matrix, validate
from portability.model import CaseInfo, Cell, Evidence, Observation, Outcome, Recorded, Resources, SampleInfo, Standing
from portability.report import build
from portability.results import write_runs
from portability.table import View, grid
from tests.engine.drawn import given, st
from tests.engine.fake_runs import TARGETS, header, run
from tests.engine.fake_runs import merged as runs_of

COMPILED, RAN, LOWERED, INTERPRETED = Evidence.COMPILED, Evidence.RAN, Evidence.LOWERED, Evidence.INTERPRETED
PASS, REFUSED, CRASH, IGNORED = Outcome.PASS, Outcome.COMPILE_ERROR, Outcome.CRASH, Outcome.IGNORED
EXP = CaseInfo("tl.exp", ("float32", "float16"), (SampleInfo("64"),), group="math", names=("tl.exp",))
DOT = CaseInfo("tl.dot", ("float16",), (SampleInfo("64"),), group="linear_algebra", names=("tl.dot",))
SMID = CaseInfo(
    "tl.extra.cuda.smid", ("float32",), (SampleInfo("64"),), group="extra", names=("tl.extra.cuda.smid",), vendor="cuda"
)
HEADER = header(cases=(EXP, DOT, SMID))


def seen(
    outcome: Outcome = PASS, of: CaseInfo = EXP, target: str = "cuda:90", dtype: str = "float32",
    evidence: Evidence = COMPILED, triton: str = "3.9.0", **fields: object,
) -> Observation:  # fmt: skip
    cell = Cell(of.name, dtype, "64", target)
    return Observation(cell, evidence, outcome, launches=1, versions={"triton": triton}, **fields)  # type: ignore[arg-type]


def standing(observation: Observation) -> Standing:
    return run(observation, of=HEADER).verdicts()[0].standing


def recorded(folder: Path, *observations: Observation) -> list[str]:
    return list(record([run(*observations, of=HEADER)], [EXP, DOT, SMID], folder=folder))


# -------------------------------------------------------------------------------------------------- judging


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (PASS, PASS, Standing.AS_EXPECTED),
        (REFUSED, REFUSED, Standing.AS_EXPECTED),
        (IGNORED, IGNORED, Standing.AS_EXPECTED),
        (PASS, REFUSED, Standing.REGRESSION),
        (PASS, CRASH, Standing.REGRESSION),
        (REFUSED, PASS, Standing.STALE),
        (REFUSED, CRASH, Standing.MISMATCH),
        (PASS, Outcome.UNAVAILABLE, Standing.UNKNOWN),
    ],
)
def test_a_change_in_either_direction_fails(before: Outcome, now: Outcome, expected: Standing) -> None:
    assert standing(seen(now, recorded=Recorded("3.9", before))) is expected


def test_what_was_native_and_is_emulated_fails() -> None:
    now = seen(how="emulated", recorded=Recorded("3.9", PASS, "native"))
    assert standing(now) is Standing.MISMATCH
    assert standing(replace(now, how="native")) is Standing.AS_EXPECTED


def test_an_absent_one_is_unknown() -> None:
    assert standing(seen()) is Standing.UNKNOWN
    assert standing(seen(REFUSED)) is Standing.UNKNOWN


def test_wrong_values_fail_without_a_baseline_too() -> None:
    assert standing(seen(Outcome.WRONG, evidence=RAN)) is Standing.REGRESSION


def test_a_compiler_that_ran_out_of_time_is_unknown() -> None:
    slow = seen(Outcome.TIMEOUT, stage="compile", recorded=Recorded("3.9"))
    assert standing(slow) is Standing.UNKNOWN
    assert standing(seen(recorded=Recorded("3.9", Outcome.TIMEOUT))) is Standing.UNKNOWN


def test_a_newer_triton_is_compared_with_the_nearest_older_and_told_without_failing(tmp_path: Path) -> None:
    recorded(tmp_path, seen(REFUSED, triton="3.7.1"), seen(triton="3.8.0"))
    now = with_baseline(seen(REFUSED, triton="3.10.0.dev5"), EXP.names, tmp_path)
    assert now.recorded == Recorded("3.8")
    assert standing(now) is Standing.UNKNOWN
    table = build(runs_of(now, of=HEADER))
    said = next(s.lines for s in table.sections if s.title.startswith("Changed since the baseline"))
    assert said == ("tl.exp (float32 on cuda:90): changed since Triton 3.8: pass there, compile_error in 3.10.0.dev5",)
    assert not table.fails


def test_only_the_evidence_that_was_reached_is_compared(tmp_path: Path) -> None:
    recorded(tmp_path, seen(REFUSED, evidence=RAN))
    assert with_baseline(seen(evidence=COMPILED), EXP.names, tmp_path).recorded is None
    assert with_baseline(seen(evidence=RAN), EXP.names, tmp_path).recorded == Recorded("3.9", REFUSED)


def test_a_file_is_judged_as_its_run_was(tmp_path: Path) -> None:
    """The observation carries what was recorded then; a baseline that changes later changes no old file."""
    recorded(tmp_path, seen(REFUSED))
    kept = with_baseline(seen(REFUSED), EXP.names, tmp_path)
    recorded(tmp_path, seen(PASS))
    assert standing(kept) is Standing.AS_EXPECTED


def test_a_kernel_has_no_baseline(tmp_path: Path) -> None:
    recorded(tmp_path, seen(REFUSED))
    assert with_baseline(seen(REFUSED), (), tmp_path).recorded is None


def test_a_rule_on_a_probe_is_refused() -> None:
    text = '[[expect]]\nkernel = "tl.exp"\noutcome = "compile_error"\nreason = "known"'
    with pytest.raises(MatrixError, match="an API probe is compared with its baseline, not a rule"):
        validate(parse_matrix(text), [EXP], TARGETS)


# ---------------------------------------------------------------------------------------------------- files

WORDS = st.text(st.characters(blacklist_characters="\t\n", blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=30)
RECORDS = st.dictionaries(
    st.tuples(st.sampled_from(["tl.exp", "tl.dot.k8", "cast.bool"]), st.sampled_from(["float32", "bool"]),
              st.sampled_from(list(Evidence))),
    st.builds(Record, st.sampled_from(list(Outcome)), st.sampled_from(["", "native", "emulated"]), WORDS),
)  # fmt: skip


@given(RECORDS)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, records: Records) -> None:
    folder = tmp_path_factory.mktemp("baselines")
    files.write("3.9", "cuda:90", "3.9.0", records, folder)
    assert files.read("3.9", "cuda:90", folder) == records
    assert files.version_of("3.9", "cuda:90", folder) == "3.9.0"


def test_the_order_of_a_run_changes_no_file(tmp_path: Path) -> None:
    both = [seen(), seen(REFUSED, dtype="float16"), seen(of=DOT, dtype="float16")]
    recorded(tmp_path / "a", *both)
    recorded(tmp_path / "b", *both[::-1])
    a, b = ((tmp_path / x / "3.9/cuda-90.tsv").read_bytes() for x in "ab")
    assert a == b


def test_dtypes_that_came_out_alike_share_a_line(tmp_path: Path) -> None:
    recorded(tmp_path, seen(), seen(dtype="float16"))
    assert "tl.exp\tcompiled\tpass\t\tfloat16 float32\t" in (tmp_path / "3.9/cuda-90.tsv").read_text()


def test_an_update_says_what_changed_and_keeps_what_was_not_reached(tmp_path: Path) -> None:
    recorded(tmp_path, seen(), seen(evidence=RAN), seen(target="cuda:80"))
    said = recorded(tmp_path, seen(REFUSED, detail="CompilationError: no exp"))
    assert said == ["3.9 cuda:90 tl.exp float32 compiled: pass -> compile_error"]
    kept = files.read("3.9", "cuda:90", tmp_path)
    assert kept["tl.exp", "float32", RAN] == Record(PASS)
    assert kept["tl.exp", "float32", COMPILED] == Record(REFUSED, "", "no exp")
    assert files.targets("3.9", tmp_path) == ["cuda:80", "cuda:90"]


def test_a_file_that_knows_fewer_probes_takes_none_away(tmp_path: Path) -> None:
    recorded(tmp_path, seen(), seen(of=DOT, dtype="float16"))
    list(record([run(seen(REFUSED), of=header(cases=(EXP,)))], [EXP, DOT, SMID], folder=tmp_path))
    assert ("tl.dot", "float16", COMPILED) in files.read("3.9", "cuda:90", tmp_path)
    assert set(files.probes(tmp_path)) == {"tl.exp", "tl.dot", "tl.extra.cuda.smid"}


def test_check_writes_nothing_and_says_what_would_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (files.FOLDER / "3.9/cuda-90.tsv").read_bytes()
    for outcome, code in ((REFUSED, 1), (PASS, 0)):
        write_runs(tmp_path / "run.jsonl", [run(seen(outcome), of=HEADER)])
        assert main(["update", "--check", str(tmp_path / "run.jsonl")]) == code
    printed = capsys.readouterr().out
    assert printed == "3.9 cuda:90 tl.exp float32 compiled: pass -> compile_error\nnothing changed\n"
    assert (files.FOLDER / "3.9/cuda-90.tsv").read_bytes() == before


def test_nothing_to_record_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_runs(tmp_path / "run.jsonl", [run(seen(), of=HEADER)])
    assert main(["update", "--target", "cuda:70", str(tmp_path / "run.jsonl")]) == 2
    assert "no probe was run on cuda:70; nothing to record" in capsys.readouterr().err


def test_a_probe_that_is_no_more_leaves_the_baseline() -> None:
    old = {("tl.gone", "float32", COMPILED): Record(PASS), ("tl.exp", "int8", COMPILED): Record(PASS)}
    assert merged(old, [], {"tl.exp": EXP}) == {}


def test_what_could_not_be_tried_changes_nothing() -> None:
    old = {("tl.exp", "float32", COMPILED): Record(PASS)}
    assert merged(old, [seen(Outcome.UNAVAILABLE), seen(Outcome.HARNESS_ERROR)], {"tl.exp": EXP}) == old


@pytest.mark.parametrize(
    ("line", "message"),
    [("tl.exp\tcompiled", "3: 'tl.exp"), ("tl.exp\tguessed\tpass\t\tfloat32\t", "3: 'guessed' is no evidence")],
)
def test_a_line_that_does_not_fit_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = files.write("3.9", "cuda:90", "3.9.0", {}, tmp_path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(BaselineError, match=f"cuda-90.tsv:{message}"):
        files.read("3.9", "cuda:90", tmp_path)


def test_versions_are_sorted_as_versions(tmp_path: Path) -> None:
    for minor in ("3.10", "3.9", "3.6"):
        files.write(minor, "cuda:90", minor, {}, tmp_path)
    assert files.versions("cuda:90", tmp_path) == ["3.6", "3.9", "3.10"]


# ------------------------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize(
    ("detail", "error"),
    [
        ("", ""),
        ("CompilationError: atomic_add does not support int8\nat 7:9:", "atomic_add does not support int8"),
        ("CompilationError: AttributeError(\"module 'x' has no attribute 'jn'\")", "module 'x' has no attribute 'jn'"),
        ("KernelError: update_kernel: ValueError: no int8 (kernels/api/atomics.py:28)", "no int8"),
        ("KernelError: k: AssertionError: cannot cast [ 0 191 193 193 195 197 63 66 0 199 70 197\n", "cannot cast […]"),
        (
            "PTXASError: PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
            "ptxas tmpkm.ptx, line 36; error   : Modifier '.wait' requires .target sm_90 or higher",
            "Modifier '.wait' requires .target sm_90 or higher",
        ),
        ("Unsupported conversion from 'f8'\nPassManager::run failed", "Unsupported conversion from 'f8'"),
        (
            "failed to legalize operation 'tt.x' that was explicitly marked illegal: \"tt.x\"(%203)\nPassManager",
            "failed to legalize operation 'tt.x' that was explicitly marked illegal",
        ),
        ("x" * 300, "x" * 159 + "…"),
    ],
)  # fmt: skip
def test_the_innermost_error_is_kept_without_what_differs_from_run_to_run(detail: str, error: str) -> None:
    assert first_error(detail) == error


@pytest.mark.parametrize(
    ("kernel", "dtype", "names", "matrix", "special", "how"),
    [
        ("tl.dot", "float16", ["tl.dot"], "mma.sync f16", (), "native"),
        ("tl.dot", "float16", ["tl.dot"], "scalar", (), "emulated"),
        ("tl.dot", "float16", ["tl.dot"], "v_mfma_f32_32x32x8_f16", (), "native"),
        ("tl.dot", "bfloat16", ["tl.dot"], "v_mfma_f32_32x32x8_f16", (), "emulated"),
        ("tl.dot", "float8_e4m3fn", ["tl.dot"], "v_mfma_f32_32x32x8_f16", (), "emulated"),
        ("tl.dot", "float8_e4m3fnuz", ["tl.dot"], "v_mfma_f32_32x32x16_fp8_fp8", (), "native"),
        ("tl.dot", "float8_e4m3fn", ["tl.dot"], "wgmma e4m3", (), "native"),
        ("tl.dot", "bfloat16", ["tl.dot"], "tcgen05.mma f16", (), "native"),  # its name for both
        ("tl.dot", "int8", ["tl.dot"], "tcgen05.mma i8", (), "native"),
        ("tl.dot.input_precision.bf16x3", "float32", ["tl.dot"], "mma.sync bf16", (), "native"),
        ("tl.dot", "int8", ["tl.dot"], "mma.sync s8", (), "native"),
        ("tl.dot", "int8", ["tl.dot"], "v_wmma_i32_16x16x16_iu8", (), "native"),
        ("tl.dot_scaled.e2m1.e2m1", "uint8", ["tl.dot_scaled"], "tcgen05.mma mxf4nvf4", (), "native"),
        ("tl.dot_scaled.e4m3.e4m3", "float8_e4m3fn", ["tl.dot_scaled"], "mma.sync bf16", (), "emulated"),
        ("tl.atomic_add", "bfloat16", ["tl.atomic_add"], "", ("atom.cas.b32",), "emulated"),
        ("tl.atomic_add", "bfloat16", ["tl.atomic_add"], "", ("atom.add.bf16",), "native"),
        ("tl.atomic_add", "float16", ["tl.atomic_add"], "", ("global_atomic_cmpswap", "global_atomic_add"), "mixed"),
        ("tl.atomic_cas", "int32", ["tl.atomic_cas"], "", ("atom.cas.b32",), "native"),
        ("cast.float8_e4m3fn", "float32", ["tl.cast"], "", ("cvt.e4m3x2.f32",), "native"),
        ("cast.float8_e4m3fn", "float32", ["tl.cast"], "", (), "emulated"),
        ("cast.float32", "float16", ["tl.cast"], "", (), ""),
        ("tensor_descriptor.load", "float32", ["tensor_descriptor.load"], "", ("cp.async.bulk.tensor",), "native"),
        ("tensor_descriptor.load", "float32", ["tensor_descriptor.load"], "", (), "emulated"),
        ("tl.exp", "float32", ["tl.exp"], "", (), ""),
    ],
)  # fmt: skip
def test_native_is_told_from_emulated(
    kernel: str, dtype: str, names: Sequence[str], matrix: str, special: tuple[str, ...], how: str
) -> None:
    resources = (Resources("k", registers=32, matrix=matrix, special=special),)
    o = Observation(Cell(kernel, dtype, "64", "cuda:90"), COMPILED, PASS, resources=resources)
    assert how_of(o, names) == how
    assert how_of(replace(o, outcome=REFUSED), names) == ""


def test_special_instructions_are_named_without_where_and_how_they_order() -> None:
    ptx = (
        "@%p1 atom.global.gpu.acq_rel.add.noftz.bf16x2 %r1, [%rd1], %r2;\ncvt.rn.satfinite.e4m3x2.f32 %rs1, %r2, %r1;\n"
        'cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1];\n.file 1 "atomics.py"\nadd.f32 %f1, %f2, %f3;'
    )
    assert special_instructions({"ptx": ptx}) == ("atom.add.bf16x2", "cp.async.bulk.tensor", "cvt.e4m3x2.f32")
    gcn = 'global_atomic_cmpswap v0\n.asciz "atomics.py"\nv_cvt_pk_bf8_f32 v1\ntensor_load_to_lds s[20:23]'
    assert special_instructions({"amdgcn": gcn}) == ("global_atomic_cmpswap", "tensor_load_to_lds", "v_cvt_pk_bf8_f32")


# ---------------------------------------------------------------------------------- versions and coverage


def test_since_and_gone_are_derived(tmp_path: Path) -> None:
    for triton, outcome in (("3.6.0", REFUSED), ("3.7.1", PASS), ("3.8.0", PASS), ("3.9.0", REFUSED)):
        recorded(tmp_path, seen(outcome, triton=triton), seen(of=DOT, dtype="float16", triton=triton))
    assert history.span("tl.exp", "float32", "cuda:90", tmp_path).text == "gone in 3.9"
    assert history.span("tl.dot", "float16", "cuda:90", tmp_path).text == ""
    assert [(c.kind, c.key[0]) for c in history.changes("3.6", "3.7", tmp_path)] == [("added", "tl.exp")]
    assert [c.kind for c in history.changes("3.8", "3.9", tmp_path)] == ["removed"]
    (tmp_path / "3.9/cuda-90.tsv").unlink()
    files.read.cache_clear()
    assert history.span("tl.exp", "float32", "cuda:90", tmp_path).text == "since 3.7"


def test_since_when_compares_like_with_like(tmp_path: Path) -> None:
    """What crashed when it ran, and was only compiled with the next version, is not said to work since that."""
    for triton in ("3.6.0", "3.7.1"):
        recorded(tmp_path, seen(triton=triton))
    recorded(tmp_path, seen(CRASH, triton="3.6.0", evidence=Evidence.RAN))
    assert history.span("tl.exp", "float32", "cuda:90", tmp_path).text == ""


def test_what_every_target_refuses_is_the_languages_contract(tmp_path: Path) -> None:
    recorded(
        tmp_path, seen(REFUSED), seen(REFUSED, target="hip:gfx942"), seen(of=DOT, dtype="float16"),
        seen(REFUSED, of=DOT, dtype="float16", target="hip:gfx942"), seen(evidence=INTERPRETED, target="interpreter"),
    )  # fmt: skip
    assert history.contract("3.9", tmp_path) == {("tl.exp", "float32")}


def test_what_only_one_backend_refuses_counts_against_it(tmp_path: Path) -> None:
    recorded(tmp_path, seen(REFUSED), seen(REFUSED, target="cuda:80"))
    assert history.contract("3.9", tmp_path) == frozenset()


def test_a_group_has_its_percentage_without_contract_and_foreign_extensions() -> None:
    """Of four on gfx942 one is refused by all, one is CUDA's own; of what is left half passes."""
    observations = [
        seen(REFUSED, dtype="float16"), seen(REFUSED, dtype="float16", target="hip:gfx942"),
        seen(), seen(target="hip:gfx942"),
        seen(of=DOT, dtype="float16"), seen(REFUSED, of=DOT, dtype="float16", target="hip:gfx942"),
        seen(of=SMID), seen(REFUSED, of=SMID, target="hip:gfx942"),
    ]  # fmt: skip
    judged = [replace(o, recorded=Recorded("3.9", o.outcome)) for o in observations]
    found = grid(runs_of(*judged, of=HEADER), View.API)
    totals = {c.target: s for c, s in zip(found.columns, found.totals, strict=True)}
    assert totals["cuda:90"].share == "compiled 100 %"
    assert totals["hip:gfx942"].share == "compiled 50 %"
    assert totals["hip:gfx942"].refused == 2


def test_the_table_names_errors_and_what_is_emulated() -> None:
    observations = [
        seen(of=DOT, dtype="float16", how="emulated"),
        seen(REFUSED, detail="CompilationError: no exp here"), seen(target="hip:gfx942"),
    ]  # fmt: skip
    table = build(runs_of(*observations, of=HEADER), [View.API])
    assert table.grids[0].totals[0].emulated + table.grids[0].totals[1].emulated == 1
    said = next(s.lines for s in table.sections if s.title == "What of the language does not work")
    assert said == ("tl.exp (float32) on cuda:90: compile_error: no exp here",)


def test_explain_names_the_baseline() -> None:
    o = seen(REFUSED, recorded=Recorded("3.9", PASS, "native"))
    assert "decided by the baseline of Triton 3.9: pass, native" in explain(
        Matrix(), o, run(o, of=HEADER).verdicts()[0]
    )


# ------------------------------------------------------------------------------------------- other Tritons


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of Triton 3.7, as `portability env create` leaves it."""
    monkeypatch.setenv("PORTABILITY_ENVIRONMENTS", str(tmp_path))
    (tmp_path / "triton-3.7").mkdir()
    (tmp_path / "triton-3.7" / "environment.json").write_text('{"recipe": "r", "versions": {"triton": "3.7.1"}}')


@pytest.mark.usefixtures("installed")
def test_an_environment_is_asked_where_it_is_named() -> None:
    assert list(Matrix().with_environments(["triton-3.7"]).environments) == ["triton-3.7"]
    assert Matrix().with_environments(["default", "own"], known=["own"]) == Matrix()
    with pytest.raises(LookupError, match=r"portability env create triton-3\.6"):
        Matrix().with_environments(["triton-3.6"])


def test_only_the_cells_of_the_named_environments_are_taken() -> None:
    both = tuple(replace(TARGETS[0], environment=e) for e in ("default", "triton-3.7"))
    adapters = {"cuda": discover_backends()["cuda"]}
    for asked, expected in (((), {"default", "triton-3.7"}), (("triton-3.7",), {"triton-3.7"})):
        selection = Selection(kernels=("tl.exp",), environments=asked)
        made = cells(Catalogue((EXP,), both), Matrix(), selection, adapters)
        assert {c.environment for c in made} == expected


# ------------------------------------------------------------------------------------------- what is published


def test_every_probe_is_in_the_index() -> None:
    """A probe that was added is recorded: `portability update`."""
    probes = {c.name: (c.group, tuple(c.names), set(c.dtypes)) for c in discover().cases.values() if c.names}
    assert {n: (p.group, p.names, set(p.dtypes)) for n, p in files.probes().items()} == probes


@pytest.mark.parametrize("minor", files.versions())
def test_every_published_baseline_can_be_read_and_is_written_alike(tmp_path: Path, minor: str) -> None:
    for target in files.targets(minor):
        records = files.read(minor, target)
        assert records
        copy = files.write(minor, target, files.version_of(minor, target), records, tmp_path)
        assert copy.read_bytes() == (files.FOLDER / minor / copy.name).read_bytes()
