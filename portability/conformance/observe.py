"""One cell of one case, run in this process: what a kernel's own tests ask for."""

from __future__ import annotations

import os
from pathlib import Path

from portability import catalogue as catalogues
from portability.backend import discover
from portability.kernel import Blocks, KernelCase
from portability.kernel import discover as discover_kernels
from portability.matrix import Matrix, read_matrix
from portability.model import Cell, Observation
from portability.paths import importable
from portability.plugin import find_matrix
from portability.pool import unavailable
from portability.tomltable import nearest

FUSION = "TRITON_DEFAULT_FP_FUSION"  # as a runner sets it: Triton 3.10 changes the default


def project() -> Matrix:
    """Return the matrix.toml of the project that this process works in, and make its modules importable."""
    path = find_matrix(Path.cwd())
    if path is None:
        return Matrix()
    importable(path.resolve().parent)
    return read_matrix(path)


def project_case(name: str) -> KernelCase:
    """Return a kernel case of the project. Raises `LookupError` with the nearest names, or with what failed."""
    found = discover_kernels(project().kernels)
    if name not in found.cases:
        failed = "; ".join(f"{m}: {why}" for m, why in found.errors.items())
        raise LookupError(f"no kernel {name!r}; {failed or nearest(name, found.cases)}")
    return found.cases[name]


def observe(case: KernelCase, dtype: str, sample: str, target: str) -> Observation:
    """Return what one cell of `case` comes to on `target`, with the blocks that the target's table gives.

    Runs here: a kernel that crashes takes this process with it. Raises `LookupError` for a target that is none.
    """
    from portability.run import Options, run_cell

    os.environ.setdefault(FUSION, "1")
    matrix = project()
    adapters = discover(matrix.backends)
    known = {t.id: t for a in adapters.values() for t in a.status()}
    if target not in known:
        raise LookupError(f"no target {target!r}; {nearest(target, known)}")
    found = known[target]
    cell = Cell(case.name, dtype, sample, target, found.environment)
    if not found.evidence.rank:
        return unavailable(cell, found)
    blocks, source = catalogues.blocks_of(cell, case.info(), matrix, adapters, found)
    return run_cell(cell, case, adapters[found.backend], found, Blocks(blocks), source, Options(timing=False))
