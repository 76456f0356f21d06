"""What binaries say over all samples of a case: how many distinct ones it needs, and whose blocks were seen right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from portability.model import DEFAULT_ENVIRONMENT, CaseInfo, Evidence, Observation, Outcome

Place = tuple[str, str, str, str]  # kernel, dtype, target, environment


def distinct(observations: Iterable[Observation]) -> dict[Place, set[str]]:
    """Return the hashes of the binaries that each kernel and dtype made for each target, over its samples."""
    found: dict[Place, set[str]] = {}
    for o in observations:
        place = (o.cell.kernel, o.cell.dtype, o.cell.target, o.cell.environment)
        found.setdefault(place, set()).update(r.hash for r in o.resources if r.hash)
    return found


def excess(observations: Iterable[Observation], cases: Iterable[CaseInfo]) -> Iterator[str]:
    """Yield a line for each case that needs more binaries than it allows: a size taken as a constant shows here."""
    most = {c.name: c.binaries for c in cases if c.binaries is not None}
    for (kernel, dtype, target, _), hashes in sorted(
        distinct(o for o in observations if o.cell.kernel in most).items()
    ):
        allowed = most[kernel]
        if allowed is not None and len(hashes) > allowed:
            counts = f"{len(hashes)} distinct binaries over its samples, and it allows {allowed}"
            yield f"{kernel}-{dtype}-{target}: {counts}"


def interpreted_right(observations: Iterable[Observation]) -> Iterator[str]:
    """Yield a line for each compile-only target: in how many cells the very same blocks were interpreted right.

    It stays what it is: the target compiled. The interpreter only shows that the blocks do not break the kernel.
    """
    observations = list(observations)
    seen = {
        (o.cell.kernel, o.cell.dtype, frozenset(o.blocks.items()))
        for o in observations
        if o.evidence is Evidence.INTERPRETED and o.outcome is Outcome.PASS and o.blocks
    }
    by_target: dict[str, list[bool]] = {}
    for o in observations:
        if o.evidence is Evidence.COMPILED and o.blocks and o.cell.environment == DEFAULT_ENVIRONMENT:
            key = (o.cell.kernel, o.cell.dtype, frozenset(o.blocks.items()))
            by_target.setdefault(o.cell.target, []).append(key in seen)
    for target, right in by_target.items():
        if any(right):
            yield f"{target}: {sum(right)} of {len(right)} compiled cells with blocks"
