"""A run of the matrix: which environments there are, what can be done in each, and one cell after another.

`Harness` owns the runners. With several pytest workers, each has a harness of its own for what is compiled and
interpreted; what runs on a device goes to the one process that holds that device's context, in the controller, by a
socket (`Server`, `Client`).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from portability import catalogue as catalogues
from portability import environments
from portability.backend import Backend, discover
from portability.catalogue import Catalogue
from portability.environments import Environment
from portability.matrix import Matrix, judge, validate
from portability.model import (
    DEFAULT_ENVIRONMENT,
    Cell,
    Evidence,
    Observation,
    Outcome,
    Target,
    Verdict,
    from_json,
    to_json,
)
from portability.paths import importable
from portability.pool import Runner, RunnerDiedError, RunnerTimedOutError, unavailable

BUNDLED = "portability.backends"  # found in every environment, since the engine is
CATALOGUE_LIMIT = 300.0  # seconds: the first import of torch on a slow disk


class HarnessError(RuntimeError):
    """The harness cannot go on; the message says what to do."""


class Harness:
    """Everything that one process needs to run cells."""

    def __init__(self, matrix: Matrix, folder: Path, root: Path, options: Mapping[str, Any]) -> None:
        """`folder` is for temporary files, `root` is the project; `options` are those of `portability.run.Options`."""
        self.matrix, self.folder, self.root = matrix, folder, root
        self.options = {**options, "root": str(root)}
        importable(root)  # as for runners, whatever program this process was started as
        self.adapters: Mapping[str, Backend] = discover(matrix.backends)
        self.device: Client | None = None  # where another process holds the devices
        self.one_of_many = False  # one worker of several, each with runners of its own
        self._runners: dict[str, Runner] = {}
        self._catalogue: Catalogue | None = None
        self._probes: frozenset[str] = frozenset()

    # ------------------------------------------------------------------------------------------ what there is

    @property
    def catalogue(self) -> Catalogue:
        """What there is here; the first use asks the runners."""
        if self._catalogue is None:
            self.adopt(self._ask_all())
        assert self._catalogue is not None
        return self._catalogue

    def adopt(self, catalogue: Catalogue) -> None:
        """Take a catalogue that another process was told. Raises `MatrixError` where matrix.toml does not fit it."""
        families = {f for a in self.adapters.values() for f in a.families}
        if not catalogue.errors:  # a kernel that could not be imported is not a wrong name
            validate(self.matrix, catalogue.cases, catalogue.targets, families)
        self._catalogue = catalogues.titled(catalogue, self.matrix)
        self._probes = frozenset(c.name for c in catalogue.cases if c.names)

    def environment(self, name: str) -> Environment:
        """Return an environment by name: matrix.toml's own, or one that `portability env create` made."""
        if name == DEFAULT_ENVIRONMENT:
            return Environment(name, sys.executable)
        settings = self.matrix.environments.get(name)
        if settings is None:
            return environments.get(name)
        base = environments.installed().get(name)
        python = settings.python or (base.python if base else sys.executable)
        return Environment(name, python, settings.variables, settings.host)

    def _ask_all(self) -> Catalogue:
        installed = environments.installed()
        apart = {b.environment for b in self.adapters.values()} - {DEFAULT_ENVIRONMENT}
        elsewhere = {
            e: [b.name for b in self.adapters.values() if b.environment == e] for e in sorted(apart & set(installed))
        }
        here = [b.name for b in self.adapters.values() if b.environment not in elsewhere]
        main = self._ask(DEFAULT_ENVIRONMENT, here)
        targets = list(main.targets)
        for name, backends in elsewhere.items():
            targets += [replace(t, environment=name) for t in self._ask(name, backends).targets]
        for name, settings in self.matrix.environments.items():
            found = self._ask(name, here).targets
            wanted = [t for t in found if not settings.targets or any(fnmatchcase(t.id, p) for p in settings.targets)]
            targets += [replace(t, environment=name) for t in wanted]
        return replace(main, targets=tuple(targets))

    def _ask(self, environment: str, backends: list[str]) -> Catalogue:
        try:
            reply = self._runner(environment).ask({"op": "catalogue", "ask": backends}, CATALOGUE_LIMIT)
        except (RunnerDiedError, RunnerTimedOutError, OSError) as error:
            raise HarnessError(f"environment {environment!r}: no runner could be started: {error}") from error
        if "failure" in reply:
            raise HarnessError(f"environment {environment!r}: {reply['failure']}")
        return catalogues.from_text(reply["catalogue"])

    def ask(self, environment: str, request: Mapping[str, Any], limit: float) -> dict[str, Any]:
        """Return a runner's reply. Raises `RunnerDiedError` or `RunnerTimedOutError`."""
        return self._runner(environment).ask(request, limit)

    # ------------------------------------------------------------------------------------------------ one cell

    def run(self, cell: Cell) -> Observation:
        """Return what happened to `cell`. Raises nothing for what a kernel does."""
        target, case = self.catalogue.target(cell), self.catalogue.case(cell.kernel)
        if target.evidence is Evidence.NONE:
            return unavailable(cell, target)
        if self.device is not None and target.evidence is Evidence.RAN:
            self.prepare(cell)
            return self.device.run(cell)
        blocks, source = catalogues.blocks_of(cell, case, self.matrix, self.adapters, target)
        return self.run_with(cell, target, blocks, source)

    def run_with(self, cell: Cell, target: Target, blocks: Mapping[str, int], source: str, **more: Any) -> Observation:
        """Return what happened to `cell` with these blocks, which `source` names; `more` goes to the runner."""
        request = {"blocks": dict(blocks), "blocks_from": source, "options": self.options, **more}
        return self._runner(cell.environment).run(request, cell, target, self.limit(cell, target))

    def prepare(self, cell: Cell) -> None:
        """Compile a cell that will run on a device, here and without it: the binary is then in the cache.

        Workers do this side by side while the device's own process runs other cells.
        """
        target, case = self.catalogue.target(cell), self.catalogue.case(cell.kernel)
        sample = next((s for s in case.samples if s.name == cell.sample), None)
        if sample is None or sample.bench:
            return
        blocks, source = catalogues.blocks_of(cell, case, self.matrix, self.adapters, target)
        compiled = replace(target, evidence=Evidence.COMPILED)
        self.run_with(cell, compiled, blocks, source, options={**self.options, "ahead": True})

    def limit(self, cell: Cell, target: Target) -> float:
        """Return the seconds that a cell may take."""
        limits = self.matrix.limits
        # A cell that runs compiles first, unless a worker has done so.
        return limits["run"] + limits["compile"] if target.evidence is Evidence.RAN else limits[
            "run" if target.evidence.executes else "compile"
        ]  # fmt: skip

    def judge(self, observation: Observation) -> Verdict:
        """Return the standing of an observation."""
        return judge(self.matrix, observation, self.claims, date.today(), self._probes)

    def claims(self, cell: Cell) -> bool:
        """Return whether the adapter claims the cell's dtype on its target."""
        return self.adapters[self.catalogue.target(cell).backend].claims(cell.target, cell.dtype)

    def close(self) -> None:
        """End every runner."""
        for runner in self._runners.values():
            runner.close()
        self._runners.clear()
        if self.device is not None:
            self.device.close()

    def _runner(self, environment: str) -> Runner:
        if environment not in self._runners:
            found = self.environment(environment)
            matrix, threads = self.matrix, 1 if self.one_of_many else None
            backends = self._modules_for(environment)
            self._runners[environment] = Runner(found, self.folder, matrix.kernels, backends, threads)
        return self._runners[environment]

    def _modules_for(self, environment: str) -> list[str]:
        """Return the adapters to import in `environment` besides the bundled ones: the loose ones, where it is one of
        this compiler; in another compiler's, those at home in it, since no distribution is installed there.
        """
        if environment == DEFAULT_ENVIRONMENT or environment in self.matrix.environments:
            return list(self.matrix.backends)
        at_home = {type(a) for a in self.adapters.values() if a.environment == environment}
        loose = [m for m in self.matrix.backends if m.partition(":")[0] in {c.__module__ for c in at_home}]
        named = {m.partition(":")[0] for m in loose}
        others = sorted(f"{c.__module__}:{c.__qualname__}" for c in at_home if c.__module__ not in named)
        return [*loose, *(m for m in others if not m.startswith(f"{BUNDLED}."))]


# ------------------------------------------------------------------------------------------ one device process


class Server:
    """Runs the device cells of all workers, one after another, in the process that called it (in a thread)."""

    def __init__(self, run: Callable[[Cell], Observation], folder: Path) -> None:
        self.path = folder / "device.socket"
        self._run = run
        self._one_at_a_time = threading.Lock()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(self.path))
        self._socket.listen(os.cpu_count() or 8)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more cells."""
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw") as pipe, contextlib.suppress(OSError):
            for line in pipe:
                cell = from_json(Cell, json.loads(line))
                with self._one_at_a_time:
                    observation = self._run(cell)
                pipe.write(json.dumps(to_json(observation)) + "\n")
                pipe.flush()


class Client:
    """A worker's way to the device process."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._pipe = self._socket.makefile("rw")

    def run(self, cell: Cell) -> Observation:
        """Return what the device process observed."""
        self._pipe.write(json.dumps(to_json(cell)) + "\n")
        self._pipe.flush()
        line = self._pipe.readline()
        if not line:
            return Observation(cell, Evidence.RAN, Outcome.HARNESS_ERROR, "run", "the device process ended")
        return from_json(Observation, json.loads(line))

    def close(self) -> None:
        """Leave the device process."""
        self._pipe.close()
        self._socket.close()
