"""Problems and warnings of runs -> faults, each with a code that says what is wrong and a line of the file."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from portability.backend import Launch, Problem, Session
from portability.checks.assembly import inline_assembly_line
from portability.checks.model import Fault, Seen
from portability.kernel import relative
from portability.model import Evidence, Finding, Observation, Outcome, Target
from portability.paths import without_paths

# Codes of exceptions by their message, in this order; what is in none is named by its outcome.
CODES: Sequence[tuple[str, str]] = [
    (r"was specified but unrecognised", "unknown-option"),
    (r"out of resource: shared memory|\bLDS\b|shared data", "shared-memory"),
    (r"out of resource: tensor memory", "tensor-memory"),
    (r"out of resource: threads", "threads"),
    (r"out of resource: (UB|L1|L0C)\b|\b(UB|L1|L0C) overflow", "buffer"),
    (r"Input shapes should have M >=", "dot-minimum"),
    (r"input_precision must be one of", "dot-precision-name"),
    (r"type fp8\w+ not supported in this architecture|doesn't provide conversion for this type", "float8-type"),
    (r"libdevice' has no attribute|cannot convert None[\s\S]*\blibdevice\.", "libdevice-gap"),
    (r"conversion of CUDA \w+ device function", "libdevice-gap"),
    (r"must be a power of 2", "not-a-power-of-two"),
    (r"[Ii]nline assembly|register for constraint|assembler rejected", "inline-assembly"),
]
LIBRARY_FUNCTION = re.compile(r"CUDA __nv_(\w+) device function")  # that another vendor's library has not
ADDRESS = re.compile(r" object at 0x[0-9a-f]+")  # of a Python object: another in every process
SEEN = {
    Evidence.RAN: Seen.RAN, Evidence.EMULATED: Seen.EMULATED, Evidence.INTERPRETED: Seen.INTERPRETED,
    Evidence.COMPILED: Seen.COMPILED, Evidence.LOWERED: Seen.LOWERED,
}  # fmt: skip
VALUES = {Outcome.WRONG, Outcome.RACE, Outcome.UNDEFINED_VALUE, Outcome.NONDETERMINISTIC}
# What these say of a run under the interpreter is said of the interpreter alone.
ITS_OWN = {Outcome.UNSUPPORTED, Outcome.COMPILE_ERROR, Outcome.LAUNCH_ERROR, Outcome.HARNESS_ERROR}


class Collector:
    """The faults of one file on one target, each once per code, line and outcome."""

    def __init__(self, target: Target, root: Path) -> None:
        self.target, self.root = target, root
        self.faults: list[Fault] = []

    def refuse(self, code: str, message: str, line: str, outcome: Outcome) -> None:
        """Take one fault that a run did not raise."""
        self._add(code, message, line, outcome)

    def take(
        self,
        observation: Observation,
        problems: Sequence[Problem],
        session: Session | None,
        note: str = "",
        called: str = "",
        stored: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Take what one run found.

        `note` is added to messages, `called` is the file's line that raised, and `stored(message)` the line that
        stored the element which a message names.
        """
        launches = session.launches if session is not None else []
        explained = {p.outcome for p in problems if p.line and p.outcome is not Outcome.WRONG}
        for p in problems:
            if p.line or p.outcome not in explained:
                self._add(code_of(p), note + p.message, self._line(p, launches, called, stored), p.outcome)
        for w in observation.warnings:
            everywhere = not w.targets and observation.evidence is Evidence.INTERPRETED
            targets, line = w.targets or (self.target.id,), self._line_of(w, launches)
            fault = Fault(w.code, note + w.message, SEEN[observation.evidence], line, targets, None, everywhere)
            known = any((f.code, f.line, f.targets) == (w.code, line, targets) for f in self.faults)
            if w.code != "sampled-grid" and not known:
                self.faults.append(fault)

    def replace_values(self, code: str, message: str, launch: Launch, outcome: Outcome = Outcome.WRONG) -> None:
        """Put one fault in the place of those of values, at the definition of the kernel that was launched."""
        self.faults = [f for f in self.faults if f.outcome not in VALUES]
        self._add(code, message, f"{launch.file}:{definition(launch)}", outcome)

    def knows(self, problem: Problem) -> bool:
        """Return whether a fault says the same."""
        kind = code_of(problem), problem.outcome
        return any((f.code, f.outcome) == kind and problem.message in f.message for f in self.faults)

    def _add(self, code: str, message: str, line: str, outcome: Outcome) -> None:
        everywhere = self.target.evidence is Evidence.INTERPRETED and outcome not in ITS_OWN
        seen, line = SEEN[self.target.evidence], self._short(line)
        message = ADDRESS.sub("", without_paths(message, self.root))
        fault = Fault(code, message, seen, line, (self.target.id,), outcome, everywhere)
        if not any((f.code, f.line, f.outcome) == (code, line, outcome) for f in self.faults):
            self.faults.append(fault)

    def _line(self, problem: Problem, launches: Sequence[Launch], called: str, stored: Callable[[str], str]) -> str:
        """The kernel's own line; else, of a launch that was refused, the line that launches."""
        launch = self._begun(launches).get(self._short(problem.line)) if problem.line else None
        if problem.line and launch is None:
            return problem.line
        if launch is not None and code_of(problem) == "inline-assembly":
            called = inline_assembly_line(launch, lambda file: relative(file, self.root)) or called
        if launch is not None and (m := LIBRARY_FUNCTION.search(problem.message)):
            called = _call_of(m[1], launch) or called
        if launch is not None:
            return called or f"{launch.file}:{definition(launch)}"
        if problem.outcome in VALUES and launches:
            return stored(problem.message) or f"{launches[-1].file}:{definition(launches[-1])}"
        return called

    def _line_of(self, warning: Finding, launches: Sequence[Launch]) -> str:
        launch = self._begun(launches).get(self._short(warning.line))
        return self._short(f"{launch.file}:{definition(launch)}") if launch is not None else warning.line

    def _begun(self, launches: Sequence[Launch]) -> dict[str, Launch]:
        """Return the launches by where their kernels begin, as records of them say it."""
        return {self._short(f"{x.file}:{x.line}"): x for x in launches if x.file}

    def _short(self, line: str) -> str:
        file, _, number = line.rpartition(":")
        return f"{relative(file, self.root)}:{number}" if file else line


def code_of(problem: Problem) -> str:
    """Return the problem's own code, or what an exception's message says."""
    if problem.code != "exception":
        return problem.code
    for pattern, code in CODES:
        if re.search(pattern, problem.message):
            return code
    return problem.outcome.value.replace("_", "-")


def _call_of(function: str, launch: Launch) -> str:
    """Return the line of a kernel that calls a library's function; `sinf` is called as `sin`."""
    kernel = getattr(launch.function, "fn", None)
    if kernel is None:
        return ""
    lines, first = inspect.getsourcelines(kernel)
    calls = [n for n in ast.walk(ast.parse(textwrap.dedent("".join(lines)))) if isinstance(n, ast.Call)]
    named = [(n.lineno, n.func.attr) for n in calls if isinstance(n.func, ast.Attribute)]
    likely = [line for line, name in named if function in (name, f"{name}f")]
    return f"{launch.file}:{first + likely[0] - 1}" if likely else ""


def definition(launch: Launch) -> int:
    """Return the line of a launched kernel's `def`; a code object begins at the first decorator."""
    function = getattr(launch.function, "fn", None)
    if function is None:
        return launch.line
    lines, first = inspect.getsourcelines(function)
    return first + next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
