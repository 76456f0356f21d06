"""The search for block sizes: by time where the hardware is, by compiling and a model of occupancy where it is not.

Without hardware nothing is measured, and nothing here says that it was. What does not compile, does not fit or spills
is dropped; the rest is ranked by what a tile must load and by what hides the latency of loading it.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomllib

from portability.model import Observation, Outcome

HIDING_WARPS = 8  # resident warps of a compute unit that hide the latency of a load; more hide no more of it
GOLDEN = (1 + math.sqrt(5)) / 2
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")  # no sizes


@dataclass(frozen=True)
class Trial:
    """One configuration and what came of it."""

    blocks: Mapping[str, int]
    observation: Observation

    @property
    def fits(self) -> bool:
        """Whether it works, and keeps everything in registers."""
        return self.observation.outcome is Outcome.PASS and not self.spills

    @property
    def spills(self) -> int:
        """Bytes that the worst of its binaries spills."""
        return max((r.spills or 0 for r in self.observation.resources), default=0)

    @property
    def registers(self) -> int:
        """Registers a thread of the worst of its binaries."""
        return max((r.registers or 0 for r in self.observation.resources), default=0)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of the worst of its binaries."""
        return max((r.shared or 0 for r in self.observation.resources), default=0)

    @property
    def occupancy(self) -> float:
        """That of its least resident binary."""
        return min((r.occupancy for r in self.observation.resources if r.occupancy is not None), default=0.0)

    @property
    def matrix(self) -> str:
        """The matrix instruction of its binaries, or "scalar", or empty where there is no product."""
        found = [r.matrix for r in self.observation.resources if r.matrix]
        return next((m for m in found if m != "scalar"), found[0] if found else "")

    @property
    def median(self) -> float | None:
        """Milliseconds, where it was timed and the time is stable."""
        timing = self.observation.timing
        return timing.median if timing is not None and timing.performance and timing.stable else None


def candidates(space: Mapping[str, Sequence[int]], base: Mapping[str, int], most: int) -> list[dict[str, int]]:
    """Return the configurations to try: `base` with each combination of `space`, evenly thinned to `most`."""
    names = list(space)
    made = [{**base, **dict(zip(names, values, strict=True))} for values in itertools.product(*space.values())]
    unique = list({tuple(sorted(m.items())): m for m in made}.values())
    return unique if len(unique) <= most else [unique[i] for i in _spread(len(unique), most)]


def _spread(n: int, most: int) -> list[int]:
    """Return `most` of the numbers below n, spread evenly by steps of the golden ratio.

    Steps of n / most would leave values out: with three stages as the last dimension, every third combination has the
    same number of them. A step that shares no factor with n meets all values of every dimension.
    """
    step = round(n / GOLDEN)
    while math.gcd(step, n) != 1:
        step += 1
    return sorted(i * step % n for i in range(most))


def rank(trials: Iterable[Trial], unit_warps: int | None) -> list[Trial]:
    """Return the trials that fit, the best first: by time where all were timed, else by the model (see `score`)."""
    fitting = [t for t in trials if t.fits]
    if fitting and all(t.median is not None for t in fitting):
        return sorted(fitting, key=lambda t: t.median or math.inf)
    timed = [t for t in fitting if t.median is not None]
    if timed:
        return sorted(timed, key=lambda t: t.median or math.inf)
    return sorted(fitting, key=lambda t: score(t, unit_warps), reverse=True)


def score(trial: Trial, unit_warps: int | None) -> tuple[bool, float]:
    """Return what a configuration promises, to be compared: larger is better. It is a model and no measurement.

    First, that a product uses a matrix unit. Then what a tile loads for what it computes times how far that is hidden:
    a BLOCK_M x BLOCK_N tile of a product loads 1/BLOCK_M + 1/BLOCK_N elements for each multiplication, and latency is
    hidden in proportion to the resident warps (Little's law), up to `HIDING_WARPS`. Where no matrix unit is used there
    may be no tile at all among the sizes, and resident warps alone decide. What is tried first, the case's own blocks,
    stays first among equals: more warps than hide a load promise nothing.
    """
    tile, unit = _tile(trial.blocks), trial.matrix not in ("", "scalar")
    reuse = 1 / sum(1 / size for size in tile) if len(tile) > 1 and unit else 1.0
    hidden = min(1.0, trial.occupancy * (unit_warps or HIDING_WARPS) / HIDING_WARPS)
    return unit, reuse * hidden


def _tile(blocks: Mapping[str, int]) -> list[int]:
    """Return the sides of a product's tile: BLOCK_M and BLOCK_N, or the two largest sizes where it names others."""
    named = [blocks[n] for n in ("BLOCK_M", "BLOCK_N") if n in blocks]
    sizes = [v for k, v in blocks.items() if k not in OPTIONS and not isinstance(v, bool) and v > 1]
    return named if len(named) > 1 else sorted(sizes, reverse=True)[:2]


def entry(kernel: str, selector: str, blocks: Mapping[str, int], base: Mapping[str, int], found: str) -> str:
    """Return the lines of a block table: what differs from `base`, and how it was found."""
    lines = [f'[{kernel}."{selector}"]']
    lines += [f"{k} = {str(v).lower()}" for k, v in blocks.items() if base.get(k) != v]
    return "\n".join([*lines, f'found = "{found}"']) + "\n"


Found = tuple[Mapping[str, int], str]  # blocks, and how they were found


def fold(
    found: Mapping[str, Found],
    families: Mapping[str, Sequence[str]],
    every: Iterable[str],
    kept: Mapping[str, Mapping[str, int]] | None = None,
    within: Mapping[str, str] | None = None,
) -> dict[str, Found]:
    """Return what was found by target as few entries as say the same: for all as "*", for a family, or for a target.

    What was found for one target alone stays that target's. `every`: the targets that an entry for "*" or a family
    decides. One of them that is not in `found` keeps the blocks that `kept` has for it: an entry that would give it
    others is not made. `within`: the place of the entry that a target goes by now; one at a more general place would
    not count there, as the more specific wins.
    """
    rest, made, kept, within = dict(found), {}, kept or {}, within or {}
    if len(found) == 1:
        return rest

    def counts(target: str, selector: str) -> bool:
        place = within.get(target, "*")
        inside = selector in families and set(families[selector]) <= set(families.get(place, (place,)))
        return place == "*" or inside

    by_size = sorted(families.items(), key=lambda f: len(set(f[1]) & set(every)), reverse=True)
    for selector, members in [("*", tuple(every)), *by_size]:
        covered = [t for t in every if t in members]
        one = next((rest[t] for t in covered if t in rest), None)
        if one is None or (selector == "*" and len(covered) == 1):
            continue
        if not all(counts(t, selector) for t in covered if t in rest):
            continue
        if all(rest[t] == one if t in rest else dict(kept.get(t, {})) == dict(one[0]) for t in covered):
            made[selector] = one
            rest = {t: f for t, f in rest.items() if t not in members}
    return {**made, **rest}


def write_entry(path: Path, kernel: str, selector: str, text: str) -> None:
    """Put an entry into a block table, in place of the one with its selector; the other lines stay as they are.

    Raises `ValueError` if the table is no TOML before or after; then nothing is written.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    _check(path, old)
    head = f'[{kernel}."{selector}"]'
    sections = list(_sections(old))
    replaced = [text + "\n" if name == head else body for name, body in sections]
    if head not in dict(sections):
        replaced = [*(part.rstrip("\n") + "\n" for part in ["".join(replaced)] if part.strip()), "\n", text]
    new = "".join(replaced).rstrip("\n") + "\n"
    _check(path, new)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(new, encoding="utf-8")
    partial.replace(path)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Split a table at its headings; what comes before the first has no name."""
    parts = re.split(r"(?m)^(?=\[)", text)
    for part in parts:
        heading = part.split("\n", 1)[0].split("#")[0].strip() if part.startswith("[") else ""
        yield heading, part


def _check(path: Path, text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path.name}: {error}") from None
