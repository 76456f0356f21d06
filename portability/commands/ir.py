"""Show what the compilers make of a kernel: the IR and assembly of every stage, and what differs between two targets.

Without --stage, what targets differ in is printed: layouts, matrix instructions, widths of memory accesses, shared
memory, registers. --against shows two targets beside each other, --against-blocks two configurations. Everything is
compiled without a device, as a launch on the target would compile it.

Stages: ttir, ttgir, llir, and then ptx, sass (NVIDIA), amdgcn (AMD), ttadapter, hivm (Ascend), or what an adapter adds.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from portability.model import Outcome, to_json

if TYPE_CHECKING:
    from portability.harness import Harness
    from portability.model import CaseInfo
    from portability.stages.model import Answer, Compiled

MACHINE_CODE = "sass"
OF_PASSES = ("ttir", "ttgir", "llir")  # the stages that passes work towards
NARROW, WIDE = 100, 200  # columns: what is no terminal is given the second


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kernel", metavar="KERNEL", help="a kernel case: its name, FILE.py, or FILE.py:NAME")
    parser.add_argument("--target", required=True, metavar="T", help="cuda:90; of another environment: cuda:90@NAME")
    parser.add_argument("--against", metavar="T2", help="show this target beside it")
    parser.add_argument("--stage", action="append", default=[], metavar="S", help="print this stage (repeatable)")
    parser.add_argument("--dtype", metavar="D", help="(default: float16 where the case has it)")
    parser.add_argument("--sample", metavar="S", help="(default: the case's quick one)")
    parser.add_argument("--blocks", default="", metavar="B", help="BLOCK_M=128,num_warps=8, over those of the table")
    parser.add_argument("--against-blocks", metavar="B", help="show these blocks beside --blocks")
    parser.add_argument("--launch", default="*", metavar="N", help="only kernels of this name (a pattern may hold *)")
    parser.add_argument("--passes", action="store_true", help="print the IR after each pass that changes it")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write every stage into files")
    parser.add_argument("--locations", action="store_true", help="leave source locations in printed MLIR")
    parser.add_argument("--width", type=int, default=0, metavar="N", help="columns (default: the terminal's)")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


@dataclass(frozen=True)
class Side:
    """One of two things that are compared, and what compiling it made."""

    title: str
    folder: str  # of its files
    answer: Answer


def main(args: argparse.Namespace) -> int:
    """Compile, print, and return 0 where every side compiles. Raises `ValueError` for names that are nothing."""
    if args.passes and not set(args.stage) <= set(OF_PASSES):
        raise ValueError(f"--stage: with --passes it is one of {', '.join(OF_PASSES)}")
    sides = _all_sides(args)
    _check_launch(sides, args.launch)
    if args.json:
        print(json.dumps({s.title: to_json(s.answer) for s in sides}, indent=1))
    else:
        width = args.width or shutil.get_terminal_size((WIDE, 50)).columns
        print("\n".join(_text(sides, args, max(NARROW, width))))
    if args.output:
        print("\n".join(_write(sides, args)))
    return 0 if all(s.answer.outcome is Outcome.PASS for s in sides) else 1


def _all_sides(args: argparse.Namespace) -> list[Side]:
    from portability.pool import temporary_folder
    from portability.porting.session import harness_for, in_folder
    from portability.porting.subject import find
    from portability.stages.asking import find_case

    if args.output:
        args.output = args.output.absolute()
    subject = find(args.kernel, args.matrix, Path.cwd())
    if subject.loose:
        raise ValueError(f"{args.kernel}: it launches kernels itself; a file of kernel cases, or a name, is needed")
    with temporary_folder() as folder, in_folder(subject.root):
        harness = harness_for(subject, folder)
        try:
            names = subject.cases(harness.catalogue) if subject.file else [args.kernel]
            if len(names) > 1:
                raise ValueError(
                    f"{args.kernel}: name one of its cases, as in {args.kernel}:{names[0]}: {', '.join(names)}"
                )
            return list(_sides(harness, find_case(harness, names[0]), args))
        finally:
            harness.close()


def _sides(harness: Harness, case: CaseInfo, args: argparse.Namespace) -> Iterator[Side]:
    from portability.stages.asking import Wanted, ask, find_cell, find_target, read_blocks

    twice = args.against_blocks is not None
    asked = [(args.target, args.blocks)]
    if args.against or twice:
        asked.append((args.against or args.target, args.against_blocks if twice else args.blocks))
    sass = MACHINE_CODE in args.stage or args.output is not None
    for number, (name, blocks) in enumerate(asked):
        target = find_target(harness, name)
        cell = find_cell(case, target, args.dtype or "", args.sample or "")
        answer = ask(harness, Wanted(cell, read_blocks(blocks, case.blocks), args.passes, sass), target)
        title = f"{cell.id}{f' with {blocks}' if twice else ''}" + (" again" if number and asked[0] == asked[1] else "")
        yield Side(title, _safe(f"{name}-{number}" if twice else name), answer)


def _check_launch(sides: Sequence[Side], pattern: str) -> None:
    known = [c.label for s in sides for c in s.answer.compiled]
    if known and not any(fnmatchcase(label, pattern) for label in known):
        raise ValueError(f"--launch: {pattern!r} is none of {', '.join(dict.fromkeys(known))}")


def _taken(side: Side, pattern: str) -> list[Compiled]:
    return [c for c in side.answer.compiled if fnmatchcase(c.label, pattern)]


# ------------------------------------------------------------------------------------------------------ printing


def _text(sides: Sequence[Side], args: argparse.Namespace, width: int) -> Iterator[str]:
    from portability.stages.sides import pairs, summary

    for side in sides:
        yield from _heading(side)
    taken = [_taken(s, args.launch) for s in sides]
    rows = pairs(taken[0], taken[1]) if len(sides) > 1 else [(c,) for c in taken[0]]
    for row in rows:
        known = next(c for c in row if c is not None)
        times = f", launched {known.launches} times" if known.launches > 1 else ""
        yield f"\n== {known.label} ({known.line}){times}"
        columns = {s.title: c for s, c in zip(sides, row, strict=True)}
        if len(sides) > 1 or not (args.stage or args.passes):
            yield summary(columns, width)
        for stage in args.stage if not args.passes else []:
            yield from _stage(stage, columns, args.locations, width)
        if args.passes:
            for title, made in columns.items():
                yield from _passes(title, made, args)


def _heading(side: Side) -> Iterator[str]:
    answer = side.answer
    blocks = ", ".join(f"{k}={v}" for k, v in answer.blocks.items())
    yield f"{side.title}: {answer.evidence}, {answer.outcome}{f' ({blocks})' if blocks else ''}"
    yield from (f"  {line}" for line in answer.detail.splitlines())
    yield from (f"  {note}" for note in answer.notes)
    if not answer.compiled and answer.outcome is Outcome.PASS:
        yield "  it launches no kernel"


def _stage(name: str, columns: dict[str, Compiled | None], locations: bool, width: int) -> Iterator[str]:
    from portability.stages.sides import beside, counterpart

    texts: list[str] = []
    heads: list[str] = []
    for title, made in columns.items():
        found = counterpart(name, made) if made is not None else ""
        heads.append(f"{title}: {found or name}")
        texts.append(_shown(made, found, name, locations))
    if len(texts) == 1:
        yield f"-- {heads[0]}\n{texts[0]}"
        return
    half = max(20, (width - 3) // 2)
    yield f"{('-- ' + heads[0]).ljust(half)}   -- {heads[1]}"
    yield from beside(texts[0], texts[1], width)


def _shown(made: Compiled | None, stage: str, asked: str, locations: bool) -> str:
    """Return a stage's text, or a line that says why there is none. Raises `ValueError` for a stage that is nothing."""
    from portability.stages.passes import without_locations

    if made is None:
        return "(not launched)"
    if stage in made.stages:
        text = made.stages[stage]
        return text if locations or not stage.startswith(("tt", "hivm")) else without_locations(text)
    if stage in made.binaries:
        return f"({stage} is no text: {len(made.binaries[stage]) * 3 // 4} bytes; -o DIR writes it)"
    if made.error:
        return f"(not reached: {made.error.strip().splitlines()[0]})"
    raise ValueError(f"--stage: no {asked!r} of {made.label}; there are {', '.join(made.names)}")


def _passes(title: str, made: Compiled | None, args: argparse.Namespace) -> Iterator[str]:
    from portability.stages.passes import level

    passes = made.passes if made is not None else ()
    if not passes:
        yield f"-- {title}: this compiler prints no passes"
        return
    where = "ttir"
    for number, step in enumerate(passes, 1):
        where = level(step.ir) if step.ir else where
        if args.stage and where not in args.stage:
            continue
        state = "" if step.changed else ": unchanged"
        yield f"-- {title}: {number}/{len(passes)} {step.name}{state}" + ("" if step.ir else " (its result is a stage)")
        if step.changed and step.ir:
            yield step.ir


# ------------------------------------------------------------------------------------------------------- writing


def _write(sides: Sequence[Side], args: argparse.Namespace) -> Iterator[str]:
    """Write every stage of every side; return a line for each folder."""
    for side in sides:
        folder = args.output / side.folder if len(sides) > 1 else args.output
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for made in _taken(side, args.launch):
            for stage, text in made.stages.items():
                (folder / f"{_safe(made.label)}.{stage}").write_text(text, encoding="utf-8")
            for stage, data in made.binaries.items():
                (folder / f"{_safe(made.label)}.{stage}").write_bytes(base64.b64decode(data))
            for number, step in enumerate(made.passes, 1):
                (folder / f"{_safe(made.label)}.{number:03}-{step.name}.mlir").write_text(step.ir, encoding="utf-8")
            count += len(made.names) + len(made.passes)
        yield f"{folder}: {count} files"


def _safe(name: str) -> str:
    return re.sub(r"[^\w.#@+-]", "-", name)
