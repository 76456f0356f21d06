"""Every command, given what it cannot use: it says the place, the value and the choices, and ends with exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from portability.cli import main
from portability.tomltable import nearest

RESULTS = str(Path(__file__).parents[2] / "results")
PORTED = "--from", "cuda:90", "--to", "hip:gfx942"

# The words of a command line; {} is a folder with the files below. What it says, beside the command's name.
WRONG = {
    "table {}/absent.jsonl": "{}/absent.jsonl: cannot be read: No such file or directory",
    "table {}/empty.jsonl": "{}/empty.jsonl:1: no header of a run",
    "table {}/binary.jsonl": "{}/binary.jsonl:1: no JSON",
    "table {}/folder": "{}/folder: cannot be read: Is a directory",
    "table {results}/cpu.jsonl --update {}/absent.md": "{}/absent.md: No such file",
    "table {results}/cpu.jsonl --format html -o {}/plain.py": "{}/plain.py: File exists",
    "merge {results}/cpu.jsonl -o {}/folder": "{}/folder: cannot be written: Is a directory",
    "diff {}/folder {}/folder": "{}/folder: cannot be read: Is a directory",
    "history {}/absent": "{}/absent: no such folder",
    "history {}/plain.py": "{}/plain.py: no folder",
    "history {}/folder": "{}/folder: no results file",
    "explain matmul {results}/cpu.jsonl": "no cell 'matmul' in {results}/cpu.jsonl; nearest are matmul-",
    "lint {}/absent.py": "{}/absent.py: no such file",
    "lint {}/binary.py": "{}/binary.py: ",
    "check absent.py": "absent.py: cannot be checked: no such file",
    "check {}/folder": "{}/folder: a folder; a file is checked",
    "check {}/empty.json": "{}/empty.json: no JSON",
    "check {}/object.json": "{}/object.json: no launches in it; `portability record",
    "caniuse --kernel {}/absent.py": "no file '{}/absent.py' here",
    "caniuse --kernel {}/binary.py": "{}/binary.py: cannot be read as Python",
    "caniuse --kernel {}/syntax.py": "{}/syntax.py: cannot be read as Python: invalid syntax",
    "caniuse --kernel {}/plain.py": "{}/plain.py: no kernel of Triton's in it",
    "mutate softmax --kind mask": "--kind: no mistake 'mask' in what is asked for; nearest is mask-dropped",
    "describe cuda:91": "no target 'cuda:91'; nearest are cuda:90",
    "new kernel 1abc": "'1abc': a name of small letters",
    "check-backend zzz": "no backend 'zzz'; known are ascend",
    "reproduce x-y-z-cuda:90 --launches {}/object.json -o {}/out.py": "{}/object.json: no launches in it",
    "env create acme": "no environment 'acme'; there are ascend",
    "record -o {}/l.json": "no program; ",
    "record -o {}/l.json -- {}/absent.py": "{}/absent.py: no such Python file",
    "record -o {}/l.json -- {}/folder": "{}/folder: no such Python file",
    "record -o {}/l.json -- -c": "-c: code is needed after it",
    "record -o {}/l.json -- -m": "-m: a module is needed after it",
    "record -o {}/l.json -- -x y": "-x: no option that is known",
    "record -o {}/folder -- -c 1": "{}/folder: Is a directory",
    "record -o {}/plain.py/l.json -- -c 1": "{}/plain.py: File exists",
    "record -o /proc/l.json -- -c 1": "/proc/l.json",
    "record -o {}/l.json --target acme -- -c 1": "target 'acme' is none that launches can be recorded for; there",
    "record -o {}/l.json --target interpreter -- pytest": "target 'interpreter' is none that launches can be",
    "scan acme": "acme: no such package can be imported here",
    "scan json --driver {}/absent.py": "{}/absent.py: no such Python file",
    "scan json --driver {}/plain.py --target acme": "--target: 'acme' is nothing here; known are cuda",
    "scan json --driver {}/plain.py --record-target acme": "target 'acme' is none that launches can be recorded for",
    f"port {{}}/absent.py {' '.join(PORTED)}": "{}/absent.py: no such file",
    f"port {{}}/binary.json {' '.join(PORTED)}": "{}/binary.json: no JSON",
}
SLOW = "check absent.py", "mutate"  # they start a runner, or read every kernel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    binary = bytes(range(0xF0, 0x100))
    for name, data in {
        "empty.jsonl": b"", "binary.jsonl": binary, "empty.json": b"", "binary.json": binary, "object.json": b"{}",
        "binary.py": binary, "syntax.py": b"def f(:\n", "plain.py": b"x = 1\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("line", [pytest.param(w, marks=[pytest.mark.slow] * w.startswith(SLOW)) for w in WRONG])
def test_bad_input_is_named_with_its_place_and_the_choices(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No line of it is a traceback."""
    monkeypatch.chdir(folder)
    words = [word.replace("{}", str(folder)).replace("{results}", RESULTS) for word in line.split()]
    assert main(words) == 2
    said = capfd.readouterr()
    wanted = WRONG[line].replace("{}", str(folder)).replace("{results}", RESULTS)
    assert wanted in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_a_folder_of_runs_may_hold_other_lines_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are named and left out."""
    (tmp_path / "run.jsonl").symlink_to(Path(RESULTS) / "interpreter.jsonl")
    (tmp_path / "other.jsonl").write_text('{"mine": 1}\n')
    assert main(["history", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "left out: " in said.err
    assert "other.jsonl:1: no results file" in said.err
    assert "2026" in said.out


def test_what_holds_a_word_is_near_it_where_nothing_is_written_like_it() -> None:
    """What begins with it comes first."""
    assert nearest("matmul", ["a-grouped_matmul-x", "matmul-float16-257x129x65", "softmax"]) == (
        "nearest are matmul-float16-257x129x65, a-grouped_matmul-x"
    )
