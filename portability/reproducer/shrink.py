"""Which smaller cell still fails in the same way: dtype, sample, sizes, blocks, values, one after another.

Each candidate is run as any cell is, in a runner of its own process, so that a crash is an answer too. A candidate is
taken if outcome, line and words are the same; numbers in the words may differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from portability.model import Observation, Outcome

PLAIN_DTYPES = ("float32", "int32")  # the first of them that a case has
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")  # no sizes
SMALLEST_BLOCK = 16  # what a product of blocks takes on most targets
SAMPLES = 4  # smaller samples that are tried
NUMBER = re.compile(r"-?\b(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan|True|False)\b")


@dataclass(frozen=True)
class Attempt:
    """A cell's dtype, sample and blocks, and what is made of the sample (see `portability.reproducer.change`)."""

    dtype: str
    sample: str
    blocks: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    scalars: bool = False
    values: str = "own"

    @property
    def change(self) -> Mapping[str, object]:
        """What a runner is told."""
        return {"sizes": dict(self.sizes), "scalars": self.scalars, "values": self.values}

    def size(self, n: int) -> int:
        """Return what a size becomes."""
        return self.sizes.get(str(n), n)


@dataclass(frozen=True)
class Known:
    """What can be tried: the dtypes of the case, and the shapes of its samples at the cell's dtype."""

    dtypes: Sequence[str]
    shapes: Mapping[str, Sequence[Sequence[int]]]
    floating: bool  # whether values are computed, so that sizes and values matter


def signature(observation: Observation) -> tuple[Outcome, str, str]:
    """Return what must stay: the outcome, the line, and the first line of the words without their numbers."""
    words = observation.detail.split("\n")[0]
    if observation.outcome is Outcome.WRONG:
        words = words.partition(" is ")[0]
    return observation.outcome, observation.line, re.sub(r"\[[#, ]*\]", "", NUMBER.sub("#", words))


class Shrinker:
    """Tries one attempt after another for at most `budget` seconds; `run` returns what came of one."""

    def __init__(
        self, run: Callable[[Attempt], Observation], wanted: tuple[Outcome, str, str], budget: float,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._run, self._wanted, self._say = run, wanted, say
        self._until = time.monotonic() + budget
        self._seen: dict[Attempt, bool] = {}
        self.tried = 0

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._until

    def smallest(self, start: Attempt, known: Known) -> Attempt:
        """Return the smallest attempt that was found to fail as `start` does."""
        now = self._first(start, self._plainer(start, known))
        if known.floating:
            now = self._first(now, self._smaller_samples(now, known))
        before = None
        while before != now and not self.over:
            before = now
            if known.floating:
                now = self._sizes(now, known)
            now = self._blocks(now)
        if known.floating:
            now = self._first(now, [replace(now, values=v) for v in ("whole", "drawn")])
        return now

    # ----------------------------------------------------------------------------------------------- candidates

    def _plainer(self, start: Attempt, known: Known) -> list[Attempt]:
        plain = [d for d in PLAIN_DTYPES if d in known.dtypes][:1]
        return [replace(start, dtype=d) for d in plain if d != start.dtype]

    def _smaller_samples(self, start: Attempt, known: Known) -> list[Attempt]:
        own = _elements(known.shapes.get(start.sample, ()))
        smaller = [s for s, shapes in known.shapes.items() if 0 < _elements(shapes) < own]
        smaller.sort(key=lambda s: _elements(known.shapes[s]))
        return [replace(start, sample=s) for s in smaller[:SAMPLES]]

    def _sizes(self, start: Attempt, known: Known) -> Attempt:
        now = start
        for old in sorted({n for shape in known.shapes.get(start.sample, ()) for n in shape}, reverse=True):
            for new in _below(now.size(old)):
                sizes = {**now.sizes, str(old): new}
                found = self._first(now, [replace(now, sizes=sizes, scalars=s) for s in (now.scalars, True)])
                if found != now:
                    now = found
                    break
        return now

    def _blocks(self, start: Attempt) -> Attempt:
        now = start
        for name, value in start.blocks.items():
            size = value
            while name not in OPTIONS and size > SMALLEST_BLOCK and size % 2 == 0:
                size //= 2
                found = self._first(now, [replace(now, blocks={**now.blocks, name: size})])
                if found == now:
                    break
                now = found
        return now

    def _first(self, now: Attempt, candidates: Sequence[Attempt]) -> Attempt:
        """Return the first candidate that fails in the same way, else `now`."""
        for candidate in candidates:
            if self.over:
                break
            if candidate != now and self._fails(candidate):
                return candidate
        return now

    def _fails(self, candidate: Attempt) -> bool:
        self.tried += 1
        observation = self._run(candidate)
        same = signature(observation) == self._wanted
        self._say(f"{self.tried} tried; {'taken' if same else 'not taken'}: {_words(candidate)}")
        return same


def _below(size: int) -> Iterator[int]:
    """Yield smaller sizes, small ones first: powers of two and their neighbours."""
    made = {1, 2, 3} | {n for p in range(2, size.bit_length() + 1) for n in (2**p - 1, 2**p, 2**p + 1)}
    return iter(sorted(n for n in made if n < size))


def _elements(shapes: Sequence[Sequence[int]]) -> int:
    total = 0
    for shape in shapes:
        count = 1
        for n in shape:
            count *= n
        total += count
    return total


def _words(attempt: Attempt) -> str:
    sizes = ", ".join(f"{old} to {new}" for old, new in attempt.sizes.items())
    blocks = ", ".join(f"{k}={v}" for k, v in attempt.blocks.items())
    return "; ".join(filter(None, [attempt.dtype, attempt.sample, sizes, blocks, attempt.values]))
