"""A check from the outside: files times targets through runners, the static rules, and one report.

A file that aborts or hangs ends its runner's child, and is a finding on that target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from portability.backend import Backend
from portability.checks import differences
from portability.checks.model import Answer, Fault, FileReport, Made, Report, Seen, TargetReport
from portability.harness import Harness
from portability.kernel import relative
from portability.lint import lint_paths
from portability.matrix import Matrix, MatrixError
from portability.model import DEFAULT_ENVIRONMENT, Evidence, Outcome, Target, from_json, to_json
from portability.pool import RunnerDiedError, RunnerTimedOutError, temporary_folder
from portability.tomltable import nearest

OF_LAUNCHES = {"grid-limit", "grid-total", "grid-empty", "grid-threads", "threads"}
RUN_LIMIT, COMPILE_LIMIT = 120.0, 300.0  # seconds a file may take on one target


@dataclass(frozen=True)
class Request:
    """What is asked of a check."""

    targets: tuple[str, ...] = ()  # patterns; empty means every one
    run_limit: float = RUN_LIMIT
    compile_limit: float = COMPILE_LIMIT
    rules: bool = True  # whether the static rules are applied


class Checker:
    """Checks files, one after another, with runners that are kept between them."""

    def __init__(self, request: Request, folder: Path, root: Path, matrix: Matrix | None = None) -> None:
        """`folder` is for temporary files; lines in the report are relative to `root`."""
        self.request, self.root = request, root
        self._harness = Harness(matrix or Matrix(), folder, root, {})  # its kernels are not looked at
        self._targets: Sequence[Target] | None = None

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of the default environment."""
        return self._harness.catalogue.versions

    @property
    def adapters(self) -> Mapping[str, Backend]:
        """The adapters by name."""
        return self._harness.adapters

    @property
    def targets(self) -> Sequence[Target]:
        """The targets that are asked for. Raises `MatrixError` for a pattern that matches none."""
        if self._targets is None:
            every = self._harness.catalogue.targets
            names = {t.id for t in every}
            for pattern in self.request.targets:
                if not any(fnmatchcase(n, pattern) for n in names):
                    raise MatrixError(f"--target: {pattern!r} is nothing here; {nearest(pattern, sorted(names))}")
            wanted = self.request.targets or ("*",)
            self._targets = [t for t in every if any(fnmatchcase(t.id, p) for p in wanted)]
        return self._targets

    def check(self, path: Path, say: Callable[[str], None] = lambda _: None, only: Sequence[str] = ()) -> FileReport:
        """Return what is found in one file. `only` names fewer targets than are asked for."""
        shown = relative(str(path), self.root)
        targets = [t for t in self.targets if not only or t.id in only]
        rules = self._rules(path, shown, targets) if self.request.rules else []
        if isinstance(rules, str):
            return FileReport(shown, unreadable=rules)
        answers: dict[str, Answer] = {}
        for target in targets:
            say(f"{shown}: {target.id}")
            answer = answers[_label(target)] = self._ask(path, target)
            known = answer.of_triton or answer.at_import
            if answer.broken and not known and target.environment == DEFAULT_ENVIRONMENT:
                return FileReport(shown, unreadable=_unreadable(answer))
        asked = [a for a in answers.values() if a.evidence is not Evidence.NONE]
        if asked and all(a.broken and not a.of_triton for a in asked):
            return FileReport(shown, unreadable=_unreadable(asked[0]))
        answers = {t: _not_imported(t, a) if a.broken else a for t, a in answers.items()}
        made = {t: a.made for t, a in answers.items() if a.made}
        interpreted = any(a.evidence is Evidence.INTERPRETED and a.launches for a in answers.values())
        faults = [f for a in answers.values() for f in a.faults]
        found = [
            *_merged(_at_the_launch(faults)),
            *differences.compare(made, interpreted),
            *self._estimates(made, targets),
            *rules,
        ]
        reports = tuple(_target_report(t, answers[_label(t)]) for t in targets)
        patterns = {t: _patterns(m) for t, m in made.items() if _patterns(m)}
        return FileReport(shown, tuple(sorted(_distinct(found, set(made)), key=_order)), reports, patterns)

    def close(self) -> None:
        """End every runner."""
        self._harness.close()

    # -------------------------------------------------------------------------------------------- one target

    def _ask(self, path: Path, target: Target) -> Answer:
        if target.evidence is Evidence.NONE:
            why = f"{target.why}; {target.remedy}" if target.remedy else target.why
            return Answer(Evidence.NONE, Outcome.UNAVAILABLE, detail=why)
        limit = self.request.run_limit if target.evidence.executes else self.request.compile_limit
        limit += self.request.compile_limit if target.evidence is Evidence.RAN else 0
        request = {"op": "check", "file": str(path.resolve()), "root": str(self.root), "target": to_json(target)}
        try:
            reply = self._harness.ask(target.environment, request, limit)
        except RunnerTimedOutError as error:
            return _lost(target, Outcome.TIMEOUT, error, error.line)
        except RunnerDiedError as error:
            return _lost(target, Outcome.CRASH, error)
        if "failure" in reply:
            return Answer(target.evidence, Outcome.HARNESS_ERROR, detail=f"{reply['failure']}\n{reply['traceback']}")
        return from_json(Answer, reply["check"])

    # ------------------------------------------------------------------------------------- what needs no runner

    def _rules(self, path: Path, shown: str, targets: Sequence[Target]) -> list[Fault] | str:
        """Return what the static rules find, or why the file cannot be read."""
        report = lint_paths([path])
        if report.unreadable:
            return report.unreadable[0].reason
        names = [t.id for t in targets]
        return [
            Fault(
                f.code, f"{f.rule}: {f.message}", Seen.SOURCE, f"{shown}:{f.line}",
                tuple(n for n in names if f.concerns(n)), everywhere=f.targets == ("*",), link=f.link,
            )
            for f in report.findings if any(f.concerns(n) for n in names)
        ]  # fmt: skip

    def _estimates(self, made: Mapping[str, Sequence[Made]], targets: Sequence[Target]) -> Iterator[Fault]:
        """Blocks that no memory of a core can hold, for targets that nothing here compiles for.

        The first of an adapter's `buffers` is the one that blocks are loaded into, and the largest where a kernel
        multiplies matrices.
        """
        kernels = next(iter(made.values()), ())
        for target in targets:
            adapter: Backend = self._harness.adapters[target.backend]
            buffers = adapter.limits_of(target.id).buffers
            if target.evidence is not Evidence.NONE or not buffers:
                continue
            for kernel in kernels:
                name = max(buffers, key=lambda n: buffers[n]) if kernel.products else next(iter(buffers))
                if kernel.tile > buffers[name]:
                    size = f"a block of {kernel.tile} bytes is loaded at once, more than the {buffers[name]} of {name}"
                    message = f"{kernel.kernel}: {size}: an estimate from Triton's IR"
                    line = kernel.tile_line or kernel.line
                    yield Fault("buffer", message, Seen.ASSEMBLY, line, (target.id,), Outcome.OUT_OF_RESOURCES)


def check_files(
    paths: Sequence[Path], request: Request, matrix: Matrix | None = None, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Return what is found in each file. Raises `MatrixError` for a target that is nothing here."""
    with temporary_folder() as folder:
        checker = Checker(request, folder, Path.cwd(), matrix)
        try:
            files = tuple(checker.check(path, say) for path in paths)
            return Report(files, dict(checker.versions))
        finally:
            checker.close()


def _label(target: Target) -> str:
    """A target's id, with its environment where several have it."""
    plain = target.environment in (DEFAULT_ENVIRONMENT, target.backend)
    return target.id if plain else f"{target.id} ({target.environment})"


def _lost(target: Target, outcome: Outcome, error: Exception, line: str = "") -> Answer:
    seen = {Evidence.INTERPRETED: Seen.INTERPRETED, Evidence.RAN: Seen.RAN}.get(target.evidence, Seen.COMPILED)
    code = outcome.value.replace("_", "-")
    everywhere = target.evidence is Evidence.INTERPRETED and outcome is Outcome.TIMEOUT
    fault = Fault(code, str(error), seen, line, (_label(target),), outcome, everywhere)
    return Answer(target.evidence, outcome, (fault,), detail=str(error).split("\n")[0])


def _unreadable(answer: Answer) -> str:
    """Return why a file cannot be checked, and where."""
    return f"{answer.broken} ({answer.broken_line})" if answer.broken_line else answer.broken


def _not_imported(target: str, answer: Answer) -> Answer:
    """What can be read elsewhere and not in a target's own environment is a finding of that target."""
    outcome = Outcome.LAUNCH_ERROR
    message = f"in this target's environment {answer.broken}"
    fault = Fault("not-imported", message, Seen.COMPILED, answer.broken_line, (target,), outcome)
    return Answer(answer.evidence, outcome, (fault,), detail=answer.broken.split("\n")[0])


def _target_report(target: Target, answer: Answer) -> TargetReport:
    return TargetReport(
        target.id, answer.evidence, answer.outcome, answer.detail, target.environment, answer.seconds, answer.launches
    )


def _at_the_launch(faults: Sequence[Fault]) -> Iterator[Fault]:
    """Give a launch that a target refuses the line that launches, where the interpreter foretold it there."""
    foretold: dict[str, set[str]] = {}
    for f in faults:
        if f.code in OF_LAUNCHES and f.seen is Seen.INTERPRETED:
            foretold.setdefault(f.code, set()).add(f.line)
    for f in faults:
        lines = foretold.get(f.code, set())
        yield replace(f, line=next(iter(lines))) if len(lines) == 1 and f.seen is not Seen.INTERPRETED else f


def _merged(faults: Iterable[Fault]) -> list[Fault]:
    """Join what differs in nothing but its target."""
    found: dict[Fault, list[str]] = {}
    for fault in faults:
        found.setdefault(replace(fault, targets=()), []).extend(fault.targets)
    return [replace(fault, targets=tuple(dict.fromkeys(targets))) for fault, targets in found.items()]


def _distinct(faults: Sequence[Fault], compiled: set[str]) -> Iterator[Fault]:
    """Leave out what the interpreter foretells of a target that was compiled for, where its compiler has the say."""
    strength = (Seen.RAN, Seen.EMULATED, Seen.COMPILED, Seen.LOWERED, Seen.ASSEMBLY)
    said = {(f.code, t) for f in faults if f.seen in strength for t in f.targets}
    for fault in faults:
        foretold = fault.seen is Seen.INTERPRETED and fault.outcome is None
        if foretold and fault.everywhere and fault.code in differences.DECIDED and compiled:
            continue
        decided = compiled if fault.code in differences.DECIDED else set()
        left = tuple(t for t in fault.targets if not (foretold and ((fault.code, t) in said or t in decided)))
        if left or not fault.targets:
            yield replace(fault, targets=left)


def _order(fault: Fault) -> tuple[Any, ...]:
    file, _, number = fault.line.rpartition(":")
    return (file, int(number) if number.isdigit() else 0, fault.code, fault.targets)


def _patterns(made: Sequence[Made]) -> dict[str, int]:
    found: dict[str, int] = {}
    for kernel in made:
        for name, times in kernel.found.items():
            found[name] = found.get(name, 0) + times
        found.update(dict.fromkeys(kernel.found_ir, 1))
    return found
