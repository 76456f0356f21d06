"""The two targets of a port, with what their adapters state and what is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from portability.backend import Backend, Limits
from portability.facts import Facts, facts_of
from portability.harness import Harness
from portability.matrix import MatrixError
from portability.model import Target
from portability.tomltable import nearest

NEEDS = {"compiler": "compiles", "to compile": "to compile", "to run": "to run"}  # facts about software -> words


@dataclass(frozen=True)
class End:
    """One of the two targets, with what its adapter states of it."""

    target: Target
    adapter: Backend
    facts: Facts

    @property
    def limits(self) -> Limits:
        """The target's limits."""
        return self.adapter.limits_of(self.target.id)


def ends(harness: Harness, source: str, destination: str) -> tuple[End, End]:
    """Return both targets. Raises `MatrixError` with the choices for a name that is none, or for twice the same."""
    if source == destination:
        raise MatrixError(f"--from and --to are both {source!r}: nothing is moved")
    found = []
    for option, name in (("--from", source), ("--to", destination)):
        target = _target(harness, name)
        if target is None:
            known = sorted({t.id for t in harness.catalogue.targets})
            raise MatrixError(f"{option}: {name!r} is no target here; {nearest(name, known)}")
        if target not in harness.catalogue.targets:  # in no list: probes are tried on it by its name
            harness.adopt(replace(harness.catalogue, targets=(*harness.catalogue.targets, target)))
        adapter = harness.adapters[target.backend]
        found.append(End(target, adapter, facts_of(adapter, target.id)))
    return found[0], found[1]


def _target(harness: Harness, name: str) -> Target | None:
    """Return a target of the catalogue or, of an architecture in no list, one like its nearest relative's."""
    listed = [t for t in harness.catalogue.targets if t.id == name]
    for target in sorted(listed, key=lambda t: t.environment not in ("default", t.backend)):
        return target
    for adapter in harness.adapters.values():
        if not any(name in members for members in adapter.families.values()):
            continue
        families = set(adapter.families_of(name))
        relatives = [t for t in harness.catalogue.targets if set(adapter.families_of(t.id)) & families]
        if relatives:
            best = max(relatives, key=lambda t: not t.evidence.executes)
            return replace(best, id=name, title=adapter.titles.get(name, ""))
    return None


def needs(end: End) -> Iterator[str]:
    """Yield what a target needs to compile and to run, what of it is here, and what gives more."""
    for name, words in NEEDS.items():
        if end.facts.of("software", name):
            yield f"{words}: {end.facts.of('software', name)}"
    target = end.target
    versions = ", ".join(f"{k} {v}" for k, v in target.versions.items())
    environment = f" in the environment {target.environment!r}" if target.environment != "default" else ""
    here = f"here: {target.evidence}{environment}{f', {versions}' if versions else ''}"
    yield f"{here}; {target.why}" if target.why else here
    if target.remedy:
        yield f"for more: {target.remedy}"
