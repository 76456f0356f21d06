"""The recipes of the docs: every command in them is one that there is, and the page of several machines is made."""

from __future__ import annotations

import argparse
import glob
import importlib
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from portability.cli import COMMANDS, main
from portability.model import Evidence, Outcome
from portability.results import Provenance, write_runs
from tests.engine.conftest import ROOT
from tests.engine.fake_runs import cell, header, run, seen

RECIPES = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
PAGES = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", RECIPES, re.MULTILINE | re.DOTALL)
# Also where a step of a job runs it, behind "run:", and in the text, between backticks.
WRITTEN = re.findall(r"(?:^|run: |/bin/|`)portability ((?:[^\n`>](?!>))+)", RECIPES, re.MULTILINE)


def parsed(command: str) -> argparse.Namespace:
    name, *words = shlex.split(command)
    parser = argparse.ArgumentParser(exit_on_error=False)
    importlib.import_module(f"portability.commands.{name}").add_arguments(parser)
    return parser.parse_args(words[: words.index("--")] if "--" in words else words)  # what follows is pytest's


def test_the_recipes_use_many_commands() -> None:
    assert {"run", "table", "merge", "diff", "history", "doctor"} <= {w.split()[0] for w in WRITTEN} <= set(COMMANDS)


@pytest.mark.parametrize("command", sorted({w.strip() for w in WRITTEN if len(w.split()) > 1}))
def test_a_command_of_the_recipes_has_these_options(command: str) -> None:
    assert parsed(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_on_a_page(command: str) -> None:
    """By one of its names."""
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module(f"portability.commands.{command.replace('-', '_')}").add_arguments(parser)
    for option in (a.option_strings for a in parser._actions if a.option_strings):
        names = "|".join(map(re.escape, option))
        assert re.search(rf"(?<![\w-])({names})(?![\w-])", PAGES), f"portability {command} {option[-1]}"


def shell(text: str) -> list[list[str]]:
    """The words of each line that runs `portability`, with its patterns for files filled in."""
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("portability ")]
    return [[found for word in line[1:] for found in sorted(glob.glob(word)) or [word]] for line in lines]


def test_three_machines_become_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    machines = {
        "no-gpu": [seen(), seen(of=cell("hip:gfx942"))],
        "nvidia": [seen(evidence=Evidence.RAN, device="NVIDIA H200")],
        "rocm": [seen(Outcome.WRONG, Evidence.RAN, of=cell("hip:gfx942"), device="AMD Instinct MI300X")],
    }
    for name, observations in machines.items():
        made = replace(header(name=name), provenance=Provenance(host=f"ci-{name}"))
        write_runs(Path("results", f"{name}.jsonl"), [run(*observations, of=made)])
    text = next(text for kind, text in BLOCKS if kind == "sh" and "portability merge" in text)
    for line in text.splitlines():
        for words in shell(line):
            assert main(words) == 0
    page = Path("site", "index.html").read_text(encoding="utf-8")
    assert "<td>ran 1/1</td>" in page
    assert "<td>ran 0/1 wrong!</td>" in page


def test_a_readme_is_filled_by_its_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    Path("docs").mkdir()
    write_runs(Path("results/here.jsonl"), [run(seen())])
    Path("README.md").write_text(next(text for kind, text in BLOCKS if kind == "markdown"))
    text = next(text for kind, text in BLOCKS if kind == "sh" and "--check" in text)
    assert [main(words) for words in shell(text)] == [0, 0, 0]
    assert "compiled 1/1" in Path("README.md").read_text()
    assert Path("docs/badge.svg").read_text().startswith("<svg ")
