"""What there is to run here, and what of it a run takes: cases, targets and cells, with neither torch nor triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from portability.backend import Backend, look_up_blocks
from portability.kernel import Blocks
from portability.matrix import Matrix, MatrixError, Samples
from portability.model import DEFAULT_ENVIRONMENT, CaseInfo, Cell, Evidence, SampleInfo, Target, from_json, to_json
from portability.tomltable import nearest

HALF = "float16"
AS = ".as."  # in a sample's name: interpreted with the blocks of the target that follows


@dataclass(frozen=True)
class Catalogue:
    """Every case and every target, as the runners reported them."""

    cases: tuple[CaseInfo, ...]
    targets: tuple[Target, ...]
    errors: Mapping[str, str] = field(default_factory=dict)  # kernel module -> why it could not be imported
    versions: Mapping[str, str] = field(default_factory=dict)

    def case(self, name: str) -> CaseInfo:
        """Return the case of that name. Raises `KeyError` for none."""
        return self._cases[name]

    def target(self, cell: Cell) -> Target:
        """Return the target that a cell is for, in the cell's environment. Raises `KeyError` for none."""
        return self._targets[cell.target, cell.environment]

    @cached_property
    def _cases(self) -> Mapping[str, CaseInfo]:
        return {c.name: c for c in self.cases}

    @cached_property
    def _targets(self) -> Mapping[tuple[str, str], Target]:
        return {(t.id, t.environment): t for t in self.targets}


@dataclass(frozen=True)
class Selection:
    """What a run is asked to take; empty means all."""

    kernels: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    samples: Samples = Samples.DEFAULT
    timing: bool = True
    environments: tuple[str, ...] = ()


def to_text(catalogue: Catalogue) -> dict[str, Any]:
    """Return the catalogue as JSON's types, to be handed to workers."""
    made: dict[str, Any] = to_json(catalogue)
    return made


def from_text(data: Any) -> Catalogue:
    """Return what `to_text` wrote."""
    return from_json(Catalogue, data)


def check(selection: Selection, catalogue: Catalogue, adapters: Mapping[str, Backend]) -> None:
    """Raise `MatrixError` for a name on the command line that is nothing here."""
    known = {
        "--kernel": ({c.name for c in catalogue.cases}, selection.kernels),
        "--backend": (set(adapters), selection.backends),
        "--target": ({t.id for t in catalogue.targets}, selection.targets),
        "--environment": ({t.environment for t in catalogue.targets}, selection.environments),
        "--dtype": ({d for c in catalogue.cases for d in c.dtypes}, selection.dtypes),
    }
    for option, (choices, asked) in known.items():
        for name in asked:
            if not any(fnmatchcase(c, name) for c in choices):
                raise MatrixError(f"{option}: {name!r} is nothing here; {nearest(name, sorted(choices))}")


def cells(catalogue: Catalogue, matrix: Matrix, selection: Selection, adapters: Mapping[str, Backend]) -> list[Cell]:
    """Return the cells that `selection` takes, those of one binary next to each other."""
    made: list[Cell] = []
    targets = [t for t in catalogue.targets if _takes_target(selection, t)]
    for case in catalogue.cases:
        if not _named(selection.kernels, case.name) or (case.group and not _takes_probe(case, selection)):
            continue
        for target in targets:
            for dtype in _dtypes(case, target, selection):
                for sample in _samples(case, dtype, target, selection):
                    made.append(Cell(case.name, dtype, sample, target.id, target.environment))
                if target.evidence is Evidence.INTERPRETED and target.environment == DEFAULT_ENVIRONMENT:
                    others = [
                        t for t in targets if t.evidence is Evidence.COMPILED and t.environment == DEFAULT_ENVIRONMENT
                    ]
                    made += _with_blocks_of(others, case, dtype, target, matrix, selection, adapters)
    return made


def blocks_of(
    cell: Cell, case: CaseInfo, matrix: Matrix, adapters: Mapping[str, Backend], target: Target
) -> tuple[Blocks, str]:
    """Return the blocks that a cell runs with, and where they came from."""
    borrowed = cell.sample.partition(AS)[2]
    name, backend = (borrowed, _owner(borrowed, adapters)) if borrowed else (cell.target, adapters[target.backend])
    resolved = look_up_blocks(backend, case.name, name, cell.dtype, Blocks(dict(case.blocks)), matrix.blocks)
    return resolved.blocks, resolved.source


def titled(catalogue: Catalogue, matrix: Matrix) -> Catalogue:
    """Return the catalogue with the titles of matrix.toml, and without the targets that it omits."""
    settings = matrix.targets
    kept = [t for t in catalogue.targets if not (t.id in settings and settings[t.id].omit)]
    return replace(catalogue, targets=tuple(
        replace(t, title=settings[t.id].title) if t.id in settings and settings[t.id].title else t for t in kept
    ))  # fmt: skip


def _named(patterns: Sequence[str], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, p) for p in patterns)


def _takes_target(selection: Selection, target: Target) -> bool:
    asked = (selection.backends, target.backend), (selection.targets, target.id)
    return all(_named(*pair) for pair in (*asked, (selection.environments, target.environment)))


def _takes_probe(case: CaseInfo, selection: Selection) -> bool:
    """A run without --full takes the probes of the basic set; naming one takes it too."""
    return selection.samples is Samples.FULL or bool(selection.kernels) or case.basic


def _dtypes(case: CaseInfo, target: Target, selection: Selection) -> list[str]:
    taken = [d for d in case.dtypes if _named(selection.dtypes, d)]
    if target.evidence is Evidence.NONE:
        return [] if case.group else taken[:1]  # one cell a kernel says that the column is missing, and why
    if selection.samples is Samples.FULL or selection.dtypes:
        return taken
    if case.group:
        return taken[:1]
    quick = selection.samples is Samples.QUICK
    if target.evidence.executes:
        return [d for d in taken if d in (taken[0], HALF)] if quick else taken
    if case.composed and quick and not selection.kernels:
        return []
    # Where only a compiler speaks, one dtype stands for the others without --full: the one that is used most.
    return [HALF] if HALF in taken else taken[:1]


def _samples(case: CaseInfo, dtype: str, target: Target, selection: Selection) -> Iterator[str]:
    usable = [s for s in case.samples if not s.dtypes or dtype in s.dtypes]
    plain = [s for s in usable if not s.bench]
    if target.evidence.executes and selection.samples is not Samples.QUICK:
        timed = [s for s in usable if s.bench and target.evidence is Evidence.RAN and selection.timing]
        yield from (s.name for s in [*plain, *timed])
    elif selection.samples is Samples.FULL and target.evidence is not Evidence.NONE:
        yield from (s.name for s in plain)
    else:
        yield from _quick(plain)


def _quick(samples: Sequence[SampleInfo]) -> list[str]:
    return [s.name for s in samples if s.quick][:1] or [s.name for s in samples[:1]]


def _with_blocks_of(
    others: Sequence[Target], case: CaseInfo, dtype: str, target: Target, matrix: Matrix, selection: Selection,
    adapters: Mapping[str, Backend],
) -> list[Cell]:  # fmt: skip
    """Return cells that interpret one ragged sample with every distinct block entry of the compile-only targets."""
    usable = [s for s in case.samples if not s.bench and (not s.dtypes or dtype in s.dtypes)]
    if not case.blocks or not usable or (dtype != case.dtypes[0] and selection.samples is not Samples.FULL):
        return []
    own = look_up_blocks(
        adapters[target.backend], case.name, target.id, dtype, Blocks(dict(case.blocks)), matrix.blocks
    )
    seen, made = {own.blocks}, []
    for other in others:
        entry = look_up_blocks(
            adapters[other.backend], case.name, other.id, dtype, Blocks(dict(case.blocks)), matrix.blocks
        ).blocks
        if entry not in seen:
            seen.add(entry)
            made.append(Cell(case.name, dtype, f"{_quick(usable)[0]}{AS}{other.id}", target.id))
    return made


def _owner(target: str, adapters: Mapping[str, Backend]) -> Backend:
    return next(b for b in adapters.values() if target in b.targets)
