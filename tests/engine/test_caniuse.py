"""Looking names of the language up: what is printed, for which spelling, from the published baselines alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from portability.baselines import files
from portability.baselines.answers import (
    UnknownNameError,
    advice,
    dtype_of,
    known_names,
    look_up,
    newest_of,
    resolve,
)
from portability.baselines.coverage import coverage
from portability.baselines.crossing import crossing
from portability.baselines.history import best
from portability.cli import main
from portability.model import Evidence, Outcome
from tests.engine.conftest import ROOT


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["caniuse", *words]) == 0
    return capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("dot_scaled", "tl.dot_scaled"),
        ("tl.exp", "tl.exp"),
        ("triton.language.exp", "tl.exp"),
        ("exp()", "tl.exp"),
        ("libdevice.cbrt", "libdevice.cbrt"),
        ("triton.language.extra.libdevice.cbrt", "libdevice.cbrt"),
        ("cbrt", "libdevice.cbrt"),
        ("float8e4nv", "tl.float8e4nv"),
        ("float8_e4m3fn", "tl.float8e4nv"),
        ("torch.bfloat16", "tl.bfloat16"),
        ("fp16", "tl.float16"),
        ("num_stages", "launch.num_stages"),
        ("@triton.autotune", "jit.autotune"),
        ("tensor.sum", "tensor.sum"),
        ("gather_out_to_ub", "ascend.gather_out_to_ub"),
        ("tl.dot.k8", "tl.dot.k8"),
        ("smid", "tl.extra.cuda.smid"),
    ],
)
def test_a_name_is_found_as_people_write_it(asked: str, name: str) -> None:
    assert resolve(asked)[0] == name


@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("transpose", "tl.trans or tl.permute"),
        ("tl.splat", "tl.full or tl.broadcast_to"),
        ("ones", "tl.full"),
        ("autotuning", "triton.autotune"),
        ("fast_flush", "leave it out"),
        ("tl.tanh", "libdevice.tanh"),
        ("tl.mean", "tl.sum"),
        ("tl.relu", "tl.maximum"),
        ("unroll", "tl.static_range"),
    ],
)
def test_what_is_written_and_does_not_exist_gets_the_right_one(
    asked: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["caniuse", asked]) == 2
    printed = capsys.readouterr()
    assert right in printed.err
    assert not printed.out


def test_a_misspelt_name_gets_the_nearest_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caniuse", "dot_scalled"]) == 2
    assert "'dot_scalled' is no name of the language; nearest are tl.dot_scaled" in capsys.readouterr().err


def test_a_name_that_is_like_none_says_so() -> None:
    with pytest.raises(UnknownNameError, match="nothing is like it"):
        resolve("qqqqqqqq")


@pytest.mark.parametrize(
    ("asked", "dtype"), [("bf16", "bfloat16"), ("float8e4nv", "float8_e4m3fn"), ("tl.int1", "bool")]
)
def test_a_dtype_has_several_names(asked: str, dtype: str) -> None:
    assert dtype_of(asked, ["bfloat16", "float8_e4m3fn", "bool"], "tl.load") == dtype


def test_a_dtype_without_a_probe_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caniuse", "atomic_add", "complex64"]) == 2
    assert "no probe at 'complex64'; there are float32," in capsys.readouterr().err


def test_a_target_without_a_baseline_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caniuse", "exp", "--target", "cuda:70"]) == 2
    assert "no baseline of 'cuda:70'; there are cuda:" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------- answers


def test_every_recorded_target_answers() -> None:
    assert {row.target for row in look_up("tl.load").rows} == set(newest_of())


def test_an_answer_is_what_the_baseline_holds() -> None:
    """Every probe of every name, on every target and at every dtype."""
    wrong = []
    for name in ("tl.exp", "tl.atomic_add", "tl.dot", "libdevice.cbrt", "tl.cast"):
        answer = look_up(name)
        for row in answer.rows:
            records = files.read(files.minor_of(row.triton), row.target)
            for label in (*row.works, *row.refused):
                probe, dtype = label.split(" ") if " " in label else (answer.probes[0], label)
                found = best(records, probe, dtype)
                passes = found is not None and found[1].outcome is Outcome.PASS
                if passes is not (label in row.works) or (found and found[0]) is not row.evidence:
                    wrong.append((name, row.target, label))
    assert wrong == []


def test_bfloat16_atomics_are_emulated_before_hopper() -> None:
    rows = {row.target: row for row in look_up("atomic_add", "bfloat16").rows}
    assert rows["cuda:80"].works == {"bfloat16": "emulated"}
    assert rows["cuda:90"].works == {"bfloat16": "native"}


def test_what_every_target_refuses_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "exp", "--target", "cuda:90")
    assert "float16, bfloat16: refused everywhere: Expected dtype ['fp32', 'fp64'] but got fp16" in text
    assert "instead: x.to(tl.float32)" in text


def test_softmax_warns_of_its_axis(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(said(capsys, "softmax").split())
    assert "normalises axis 0" in text
    assert "`dim`" in text


def test_since_when_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "since 3." in said(capsys, "tl.squeeze", "--target", "cuda:90")
    assert "gone in 3.9" in said(capsys, "make_block_ptr", "--target", "cuda:90")


def test_json_holds_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(said(capsys, "atomic_add", "bf16", "--json"))
    assert data["name"] == "tl.atomic_add"
    row = next(r for r in data["rows"] if r["target"] == "cuda:90" and r["evidence"] == "compiled")
    assert row["works"] == {"bfloat16": "native"}
    assert files.minor_of(row["triton"]) == data["triton"]


def test_lowered_is_never_shown_as_more() -> None:
    assert {row.evidence for row in look_up("tl.load").rows if row.target.startswith("npu:")} == {Evidence.LOWERED}


# ----------------------------------------------------------------------------------------- further questions


def test_a_kernel_is_crossed_with_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(said(capsys, "--kernel", "vector_add").split())
    assert "vector_add (vector_add.py) uses" in text
    assert "tl.load" in text
    assert "hip:gfx942: compiled, all" in text


def test_a_file_of_ones_own_is_crossed(tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    tl.store(x, tl.atomic_add(x, 1))\n"
    )
    data = json.loads(said(capsys, "--kernel", "mine.py:k", "--json", "--target", "cuda:80"))
    assert data["names"] == ["tl.atomic_add", "tl.store"]
    assert data["places"][0]["emulated"] == {"tl.atomic_add": ["bfloat16"]}


def test_an_unknown_kernel_gets_the_nearest() -> None:
    with pytest.raises(LookupError, match="no bundled kernel 'flash_atention'; nearest"):
        crossing("flash_atention", (), ROOT)


def test_the_percentages_are_of_what_counts() -> None:
    for share in coverage():
        assert 0 <= share.passed <= share.counted
    everything = {s.target: s for s in coverage() if s.group == "all"}
    total = sum(len(p.dtypes) for p in files.probes().values())
    for share in everything.values():
        assert share.counted + share.contract + share.foreign == total


def test_changes_between_versions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "--changes", "3.6", "3.9")
    assert "added: tl.squeeze (float32, int8) on " in text
    assert "removed: tl.make_block_ptr (float16, float32) on " in text


def test_a_version_without_a_baseline_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caniuse", "--changes", "3.5", "3.9"]) == 2
    assert "no baseline of Triton 3.5; there are" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- by hand


def test_what_is_written_by_hand_names_what_there_is() -> None:
    """A note is about a name, and advice is for probes, dtypes and targets that exist."""
    from fnmatch import fnmatchcase

    dtypes = {d for p in files.probes().values() for d in p.dtypes}
    known = {"probe": set(files.probes()), "dtype": dtypes, "target": set(newest_of())}
    lost = [n["name"] for n in advice()["note"] if n["name"] not in known_names()]
    for entry in advice()["instead"]:
        for field, names in known.items():
            patterns = entry.get(field, "*").split()
            lost += [p for p in patterns if not any(fnmatchcase(n, p) for n in names)]
    assert lost == []


def test_what_does_not_exist_is_no_name() -> None:
    names = [name for entry in advice()["missing"] for name in entry["name"].split()]
    assert [n for n in names if f"tl.{n}" in known_names()] == []


# ------------------------------------------------------------------------------------------------ its price


def test_it_is_quick_and_imports_neither_torch_nor_triton() -> None:
    """Under 0.3 s of processor time; what else runs on this machine is not its doing."""
    code = (
        "import sys, time; from portability.cli import main; code = main(['caniuse', 'dot']);"
        "print(code, 'torch' in sys.modules, 'triton' in sys.modules, time.process_time(), file=sys.stderr)"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code_, torch, triton, seconds = done.stderr.split()
    assert (code_, torch, triton) == ("0", "False", "False")
    assert float(seconds) < 0.3, f"{time.perf_counter() - began:.2f} s elapsed"
