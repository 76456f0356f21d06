"""Say what is known of a target, and from where: compute units, memories, matrix instructions, software, limits.

A target is one of an adapter's list ("cuda:90"), or any architecture of one of its families ("cuda:103"). Nothing is
opened and nothing compiled; `portability doctor` says what this machine can do.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from portability.backend import Backend
from portability.facts import Fact, Facts

FORMATS = ("text", "markdown", "json")
HEADINGS = {
    "device": "Device", "compute": "Compute units", "memory": "Memory", "matrix": "Matrix instructions",
    "software": "Software", "triton": "What Triton does there", "limits": "Limits of a launch",
}  # fmt: skip
VERSION = 1  # of the JSON form


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("target", metavar="TARGET", help="cuda:90, hip:gfx942, npu:Ascend910B3, interpreter, …")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml with adapters of its own")


def main(args: argparse.Namespace) -> int:
    """Describe the target. Raises `ValueError` with the choices where no adapter has it."""
    from portability.backend import discover
    from portability.facts import described, facts_of
    from portability.matrix import read_matrix
    from portability.paths import importable
    from portability.plugin import find_matrix

    path = args.matrix or find_matrix(Path.cwd())
    if path:
        importable(path.resolve().parent)
    adapters = discover(read_matrix(path).backends if path else ())
    adapter = _owner(args.target, adapters)
    facts = described(facts_of(adapter, args.target), adapter, args.target)
    render = {"text": _text, "markdown": _markdown, "json": _json}[args.format]
    print("\n".join(render(args.target, adapter, facts)))
    return 0


def _owner(target: str, adapters: Mapping[str, Backend]) -> Backend:
    from portability.tomltable import nearest

    for adapter in adapters.values():
        if target in adapter.targets:
            return adapter
    for adapter in adapters.values():  # an architecture in no list, which has its family's facts
        if any(target in members for members in adapter.families.values()):
            return adapter
    known = [t for a in adapters.values() for t in a.targets]
    raise ValueError(f"no target {target!r}; {nearest(target, known)}")


def _text(target: str, adapter: Backend, facts: Facts) -> Iterator[str]:
    yield f"{target}{_title(target, adapter)}, by the adapter {adapter.name!r}"
    dtypes = adapter.lookup(adapter.dtypes, target, ())
    yield f"\nDtypes that it claims\n  {', '.join(dtypes) or 'none'}"
    for section, found in _sections(facts):
        yield f"\n{HEADINGS[section]}"
        width = min(34, max(len(f.name) for f in found))
        last = ""
        for fact in found:  # a source is said once for the facts that follow each other
            if fact.source != last:
                yield f"  from: {fact.source}"
            last = fact.source
            yield f"    {fact.name:<{width}}  {fact.value}"


def _markdown(target: str, adapter: Backend, facts: Facts) -> Iterator[str]:
    yield f"## {target}{_title(target, adapter)}\n"
    yield f"Dtypes: {', '.join(adapter.lookup(adapter.dtypes, target, ())) or 'none'}"
    for section, found in _sections(facts):
        yield f"\n### {HEADINGS[section]}\n\n| what | is | source |\n| --- | --- | --- |"
        yield from (f"| {_cell(f.name)} | {_cell(f.value)} | {_cell(f.source)} |" for f in found)


def _json(target: str, adapter: Backend, facts: Facts) -> Iterator[str]:
    known = [(s, found) for s, found in _sections(facts)]
    sections = {s: [{"name": f.name, "is": f.value, "source": f.source} for f in found] for s, found in known}
    yield json.dumps(
        {
            "version": VERSION, "target": target, "backend": adapter.name, "title": adapter.titles.get(target, ""),
            "dtypes": list(adapter.lookup(adapter.dtypes, target, ())), **sections,
        },
        indent=1,
    )  # fmt: skip


def _sections(facts: Facts) -> Iterator[tuple[str, tuple[Fact, ...]]]:
    yield from ((section, facts.sections[section]) for section in HEADINGS if facts.sections.get(section))


def _title(target: str, adapter: Backend) -> str:
    title = adapter.titles.get(target, "")
    return f" ({title})" if title and title != target else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
