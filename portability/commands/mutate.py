"""Put one mistake at a time into the bundled kernels, and say which cell catches it.

Mistakes: a mask dropped, another `other`, off by one, the maximum not subtracted, a half-precision accumulator, strides
swapped, a factor dropped, a store skipped by one program, a race, zeros returned, the reference returned. Each mutant's
cells run on the interpreter up to the first that fails. What cannot be told apart from the original is argued, with a
reason, in equivalent_mutants.toml beside the kernels.

Exit code 0 if every mutant is caught or argued, 1 if one survives or is not tried or an argument fits none, 2 for bad
input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from portability.kernel import KernelCase
    from portability.matrix import Matrix
    from portability.mutation.journal import Journal
    from portability.mutation.report import Equivalents
    from portability.mutation.trial import Task, Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "kernels",
        nargs="*",
        metavar="KERNEL",
        help="kernel cases: mutants of what they run, tried on every case that runs it (default: all; may hold *)",
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="K", help="only this kind of mistake (repeatable)"
    )
    parser.add_argument("--every", action="store_true", help="list every mutant, with the cell that caught it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--update", type=Path, action="append", default=[], metavar="FILE",
        help="write the score between the markers <!-- mutation --> of a page, and what was told of each file between "
        "<!-- mutants --> (repeatable)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the mutants and run none")
    parser.add_argument("--no-run", action="store_true", help="run none: report what --results holds")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="keep verdicts in a file; a mutant that is caught there is not run"
    )
    parser.add_argument(
        "--budget", type=float, default=300.0, metavar="S", help="seconds that one mutant is tried (default: 300)"
    )
    parser.add_argument("-n", type=int, default=os.cpu_count() or 1, metavar="N", help="workers (default: one a core)")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="matrix.toml (default: the nearest one)")


def main(args: argparse.Namespace) -> int:
    """Make the mutants, run them, and print."""
    from portability.kernel import discover
    from portability.matrix import Matrix, read_matrix
    from portability.mutation import report
    from portability.mutation.journal import Journal, entry_of
    from portability.mutation.trial import State
    from portability.plugin import find_matrix
    from portability.tomltable import nearest

    if args.update and (args.kind or args.kernels):
        raise ValueError(f"--update {args.update[0]} writes the score of all mutants: leave out KERNEL and --kind")
    path = args.matrix or find_matrix(Path.cwd())
    matrix = read_matrix(path) if path else Matrix()
    found = discover(matrix.kernels)
    cases = [c for c in found.cases.values() if not c.group]
    asked = {c.name for c in cases if _named(args.kernels, c.name)}
    exported = {m.__file__: n for n, m in list(sys.modules.items()) if getattr(m, "__file__", None)}
    modules = {c.name: exported[found.files[c.name]] for c in cases}
    if not asked:
        raise ValueError(
            f"no kernel case is named {' or '.join(args.kernels)}; there are {', '.join(c.name for c in cases)}"
        )
    every = list(_tasks(cases, modules, asked))
    kinds = {t.mutant.kind for t in every}
    if wrong := [k for k in args.kind if not any(_named([k], kind) for kind in kinds)]:
        raise ValueError(f"--kind: no mistake {wrong[0]!r} in what is asked for; {nearest(wrong[0], kinds)}")
    tasks = [t for t in every if _named(args.kind, t.mutant.kind)]
    if args.list:
        print("\n".join(t.mutant.name for t in tasks))
        return 0
    equivalents = report.Equivalents(sorted({t.mutant.file.parent for t in tasks}))
    journal = Journal(args.results)
    verdicts = sorted(
        _verdicts(tasks, equivalents, journal, args, matrix),
        key=lambda v: (v.mutant.file.name, v.mutant.line, v.mutant.name, v.mutant.nth),
    )
    unused: list[str] = []
    if not args.kind and not args.kernels:
        unused = equivalents.unused({t.mutant.file.name for t in tasks})
        if args.update or not args.no_run:  # a look at the file leaves it as it is
            journal.replace(verdicts)
    entries = [entry_of(v) for v in verdicts]
    print(report.json_text(entries) if args.json else report.text(entries, args.every), end="")
    for line in unused:
        print(line, file=sys.stderr)
    for page in args.update:
        page.write_text(report.embedded(page.read_text(), report.blocks(entries), str(page)))
    return int(bool(unused) or any(v.state in (State.SURVIVED, State.UNTRIED) for v in verdicts))


def _named(patterns: Sequence[str], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, p) for p in patterns)


def _tasks(cases: Sequence[KernelCase], modules: Mapping[str, str], asked: set[str]) -> Iterator[Task]:
    """Every mutant of what the cases in `asked` run, to be tried on each case that runs it, those of its file first."""
    from portability.mutation.edits import mutants_of
    from portability.mutation.reach import reach
    from portability.mutation.trial import Task

    for path, reached in sorted(reach(cases).items()):
        kernels, operators = (
            [name for name, names in table.items() if asked & set(names)]
            for table in (reached.kernels, reached.operators)
        )
        for mutant in mutants_of(path, kernels, operators):
            names = sorted(dict.fromkeys(reached.cases(mutant.function)), key=lambda n: modules[n] != reached.module)
            yield Task(mutant, reached.module, {n: modules[n] for n in names})


def _verdicts(
    tasks: Sequence[Task], equivalents: Equivalents, journal: Journal, args: argparse.Namespace, matrix: Matrix
) -> Iterator[Verdict]:
    """Yield a verdict for each mutant; those that are argued or known are not run."""
    from portability.mutation.trial import State, Trials, Verdict
    from portability.pool import temporary_folder

    waiting, known_ones = [], []
    for task in tasks:
        reason = equivalents.reason(task.mutant)
        known = journal.known(task.mutant, survivors=args.no_run)
        if reason:
            yield Verdict(task.mutant, State.EQUIVALENT, detail=reason)
        elif known is not None:
            known_ones.append(known)
            yield known
        else:
            waiting.append(task)
    if args.no_run:
        yield from (Verdict(task.mutant, State.UNTRIED) for task in waiting)
    if not waiting or args.no_run:
        return
    with temporary_folder() as folder:
        trials = Trials(matrix, folder, Path.cwd(), max(1, min(args.n, len(waiting))), args.budget)
        trials.learn(known_ones)
        try:
            for i, verdict in enumerate(trials.run(waiting), 1):
                journal.add(verdict)
                print(f"{i}/{len(waiting)} {verdict.state}: {verdict.mutant.name}", file=sys.stderr, flush=True)
                yield verdict
        finally:
            trials.close()
