"""Reads files, applies the rules, and leaves out what comments suppress."""

from __future__ import annotations

import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from portability.lint.branches import in_vendor_branch
from portability.lint.model import LintFinding, Report, Rule, Unreadable, registered
from portability.lint.source import Source, parsed

SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})


def lint_paths(paths: Iterable[str | Path], select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Report:
    """Return what is found in files and, recursively, in folders.

    `select` and `ignore` are codes or their beginnings ("TP4"); nothing selected is everything. Files without a use of
    Triton hold no findings. Raises `ValueError` for a code that no rule has.
    """
    rules = chosen(select, ignore)
    findings: list[LintFinding] = []
    unreadable: list[Unreadable] = []
    files = kernels = 0
    for file, folders in _files([Path(p) for p in paths], unreadable):
        try:
            source = read(file, folders)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            unreadable.append(Unreadable(str(file), _why(error)))
            continue
        files += 1
        if source is None:
            continue
        try:
            findings += lint_source(source, rules)
        except RecursionError as error:  # generated code may nest deeper than Python's stack
            unreadable.append(Unreadable(str(file), _why(error)))
        kernels += len(source.kernels)
    return Report(tuple(sorted(findings)), tuple(unreadable), files, kernels)


def read(file: Path, folders: Sequence[str] = ()) -> Source | None:
    """Return a file as the rules see it, or None where it does not mention Triton.

    Raises `OSError`, `SyntaxError`, `ValueError` (an encoding, a NUL byte), `RecursionError` or `MemoryError`.
    """
    with tokenize.open(file) as stream:  # honours a coding comment
        text = stream.read()
    if "triton" not in text:
        parsed(text)  # what is no Python is unreadable, and never taken for clean
        return None
    return Source(text, str(file), folders)


def lint_source(source: Source, rules: Sequence[Rule] | None = None) -> list[LintFinding]:
    """Return the findings of a parsed file, sorted by place."""
    if not source.names.uses_triton():
        return []
    return sorted(set(_findings(source, list(registered.values()) if rules is None else rules)))


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Rule]:
    """Return the rules that are selected and not ignored. Raises `ValueError` for a code that no rule has."""
    select, ignore = [s.upper() for s in select], [i.upper() for i in ignore]
    for code in (*select, *ignore):
        if not any(known.startswith(code) for known in registered):
            raise ValueError(f"no rule {code!r}; there are {', '.join(registered)}")
    return [
        rule
        for code, rule in registered.items()
        if (not select or code.startswith(tuple(select))) and not (ignore and code.startswith(tuple(ignore)))
    ]


def _findings(source: Source, rules: Sequence[Rule]) -> Iterator[LintFinding]:
    for rule in rules:
        for hit in rule.check(source):
            if rule.branches and in_vendor_branch(source, hit.node):
                continue
            targets = hit.targets or rule.targets
            if source.suppressions.cover(rule.code, hit.node, source.statement(hit.node)) or not _concerns_vendor(
                source.vendor, targets
            ):
                continue
            line, column = getattr(hit.node, "lineno", 1), getattr(hit.node, "col_offset", 0) + 1
            yield LintFinding(source.path, line, column, rule.code, rule.name, hit.message, targets, rule.link)


def _concerns_vendor(vendor: str, targets: Sequence[str]) -> bool:
    """Return whether a finding matters to a file that holds one vendor's code: it is never meant for the others."""
    return not vendor or any(t == "*" or t.split(":")[0] == vendor for t in targets)


def _files(paths: Sequence[Path], unreadable: list[Unreadable]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield each file once, with the folders below the path that was given (or written out in a relative one)."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            unreadable.append(Unreadable(str(path), "no such file or folder"))
            continue
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            inner = file.relative_to(path).parts[:-1] if path.is_dir() else ()
            if any(part in SKIPPED or part.startswith(".") for part in inner) or file.resolve() in seen:
                continue
            seen.add(file.resolve())
            outer = () if path.is_absolute() else (path if path.is_dir() else path.parent).parts
            yield file, (*outer, *inner)


def _why(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg  # an encoding has no line
    return f"{type(error).__name__}: {error}"
