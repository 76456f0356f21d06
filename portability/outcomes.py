"""Which exception is which outcome, and on which line of the kernel it arose."""

from __future__ import annotations

import inspect
import os
import re
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from portability.backend import Launch, Problem, Session
from portability.kernel import relative
from portability.model import Observation, Outcome

CACHE = "TRITON_CACHE_DIR"  # set for every runner, see `portability.pool`

# Foreign exceptions by class name, so that nothing has to be imported to look one up. What is in no row and was not
# raised by a launch or an operator is the harness's own bug, and is recorded as such.
OUTCOMES: Mapping[str, Outcome] = {
    "OutOfResources": Outcome.OUT_OF_RESOURCES,
    "OutOfMemoryError": Outcome.OUT_OF_RESOURCES,
    "CompilationError": Outcome.COMPILE_ERROR,
    "CompileTimeAssertionFailure": Outcome.COMPILE_ERROR,
    "UnsupportedLanguageConstruct": Outcome.COMPILE_ERROR,
    "PTXASError": Outcome.COMPILE_ERROR,
    "MLIRCompilationError": Outcome.COMPILE_ERROR,
    "CompilerSaidError": Outcome.COMPILE_ERROR,
    "InterpreterError": Outcome.COMPILE_ERROR,
    "AcceleratorError": Outcome.LAUNCH_ERROR,
    "Unsupported": Outcome.UNSUPPORTED,
    "SpinTimeout": Outcome.TIMEOUT,
    "TimeoutExpired": Outcome.TIMEOUT,  # of `subprocess`: a tool that an adapter calls
    "GridError": Outcome.LAUNCH_ERROR,
}
# Where the message tells more than the class. Searched in order, in the first lines of the message.
MESSAGES: Sequence[tuple[re.Pattern[str], Outcome]] = [
    (re.compile(r"illegal memory access|misaligned address"), Outcome.OUT_OF_BOUNDS),
    (re.compile(r"an illegal instruction|unspecified launch failure"), Outcome.CRASH),  # what was compiled is at fault
    (re.compile(r"too much shared data|uses too much|out of resource", re.IGNORECASE), Outcome.OUT_OF_RESOURCES),
    (re.compile(r"exceeds? .*(LDS|local memory|shared memory)", re.IGNORECASE), Outcome.OUT_OF_RESOURCES),
    (re.compile(r"was specified but unrecognised|Triton Error \[(CUDA|HIP)\]"), Outcome.LAUNCH_ERROR),
    (re.compile(r"failed to specialize argument"), Outcome.LAUNCH_ERROR),
    (re.compile(r"PassManager::run failed|failed to translate|LLVM ERROR|Cannot select"), Outcome.COMPILE_ERROR),
]  # fmt: skip
# What the machine lacks is no fault of a kernel. A compiler's own message tells it where it is no exception.
FULL = re.compile(r"No space left on device|Disk quota exceeded|Read-only file system")
STICKY = re.compile(r"CUDA error|HIP error|Triton Error \[(CUDA|HIP)\]|CUDNN_STATUS")  # every later call fails too


def poisons(observation: Observation) -> bool:
    """Return whether what happened leaves the process unable to use its device."""
    return bool(STICKY.search(observation.detail))


def problem_of(error: Exception, session: Session | None, stage: str, root: Path) -> Problem:
    """Name what an exception means. The launch that raised it knows the kernel's line."""
    launches = session.launches if session else []
    launch = next((x for x in reversed(launches) if x.error is error), None)
    message = _caused(_message(error), launch.stderr if launch else "")
    if FULL.search(message) or _is_of_the_cache(error):
        message += f"\ncompiled kernels are kept in {os.environ.get(CACHE, '')}; PORTABILITY_CACHE names another folder"
        return Problem(Outcome.HARNESS_ERROR, "machine", f"this machine cannot store what was made: {message}")
    outcome = next((o for pattern, o in MESSAGES if pattern.search(message)), None)
    outcome = outcome or next((OUTCOMES[c.__name__] for c in type(error).__mro__ if c.__name__ in OUTCOMES), None)
    if outcome is None:
        inside = stage in ("compile", "run", "repeat") and _raised_outside(error)
        compiling = launch is not None and _raised_in_triton(error)
        outcome = (Outcome.COMPILE_ERROR if compiling else Outcome.LAUNCH_ERROR) if inside else Outcome.HARNESS_ERROR
    if outcome is Outcome.HARNESS_ERROR:
        message += "\n" + "".join(traceback.format_exception(error)[-3:])
    line = getattr(error, "line", "") or _line_of(error, launch, message, root)
    return Problem(outcome, "exception", message, line)


def _is_of_the_cache(error: BaseException) -> bool:
    """Whether the file that could not be made or written is one of the compiler's cache."""
    cache = os.environ.get(CACHE, "")
    return isinstance(error, OSError) and bool(cache) and str(error.filename or "").startswith(cache)


def _raised_outside(error: BaseException) -> bool:
    """Whether an exception came out of an operator or of Triton, and not out of this package's own files."""
    frames = traceback.extract_tb(error.__traceback__)
    engine = Path(__file__).resolve().parent
    last = Path(frames[-1].filename).resolve() if frames else engine
    return last.parent != engine


def _raised_in_triton(error: BaseException) -> bool:
    """Whether an exception came out of Triton, and not of what it calls of a file: a grid, a hook, a pruning."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "triton" in Path(frames[-1].filename).parts


# What a compiler writes on file descriptor 2 of what it does not take, where its exception says only that it failed.
CAUSE = re.compile(r"^.*?\b(?:error|LLVM ERROR):\s*(.+)|(Assertion .* failed\.)", re.MULTILINE)
EMPTY = re.compile(r"PassManager::run failed|assembler rejected generated|failed to translate")


def _caused(message: str, stderr: str) -> str:
    """Return `message` with the innermost cause before it: the first error of a compiler is what the others follow."""
    found = CAUSE.search(stderr) if EMPTY.search(message.partition("\n")[0]) else None
    return f"{(found[1] or found[2]).strip()}\n{message}" if found else message


def _message(error: BaseException) -> str:
    text = _front_end(error) or str(error).strip() or type(error).__name__
    cause = None if hasattr(error, "error_message") else error.__cause__
    if cause is not None and str(cause).strip() and str(cause).strip() not in text:
        text += f"\n{type(cause).__name__}: {str(cause).strip()}"
    name = type(error).__name__
    return text if name in ("CompilerSaidError", "RuntimeError") else f"{name}: {text}"


def _front_end(error: BaseException) -> str:
    """Return what Triton's front end says, before the source that it shows at length; empty for other errors.

    An error in a helper is wrapped once for each caller, which quotes it: the innermost one says it best.
    """
    if not hasattr(error, "error_message") or not hasattr(error, "node"):
        return ""
    innermost: Any = error
    while hasattr(innermost.__cause__, "error_message"):
        innermost = innermost.__cause__
    said = str(innermost.error_message or innermost.__cause__ or "").strip()
    if isinstance(innermost.__cause__, KeyError):  # of a table of overloads, as a libdevice function has
        said = f"KeyError: {said}: no overload takes these types"
    shown = str(error).removesuffix(str(error.error_message or "")).strip()
    return f"{said}\n{shown}" if said else ""


def _line_of(error: BaseException, launch: Launch | None, message: str, root: Path) -> str:
    """Return the kernel's own line: of the front end's error, of the code generator's message, or of the definition."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    function = _function_of(launch.function, source) if launch is not None and source else None
    # The front end makes nodes of its own for `x += y`, which have no line.
    if function is not None and node is not None and hasattr(node, "lineno"):
        code = function.fn.__code__
        lines = source.count("\n", 0, source.find("def ")) if source and "def " in source else 0
        first = _def_line(function.fn)
        return f"{relative(code.co_filename, root)}:{first + node.lineno - 1 - lines}"
    said = re.search(r"([^\s\"']+\.py)[:\"](?:, line )?(\d+)", launch.stderr or message) if launch else None
    if said:
        return f"{relative(said[1], root)}:{said[2]}"
    return f"{relative(launch.file, root)}:{launch.line}" if launch is not None and launch.file else ""


@cache  # Python tokenizes the file's rest for it, and one function is refused for many dtypes
def _def_line(fn: Any) -> int:
    """Return the line of `def`: Triton's sources begin there, and code objects at the first decorator."""
    lines, first = inspect.getsourcelines(fn)
    return first + next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def _function_of(function: Any, source: str) -> Any:
    """Return the jitted function, or the helper it calls, whose source an error carries."""
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        candidate = waiting.pop()
        if id(candidate) in seen or not hasattr(candidate, "fn") or not hasattr(candidate.fn, "__globals__"):
            continue
        seen.add(id(candidate))
        if getattr(candidate, "src", None) == source:
            return candidate
        names = candidate.fn.__code__.co_names
        waiting += [candidate.fn.__globals__[n] for n in names if n in candidate.fn.__globals__]
    return None
