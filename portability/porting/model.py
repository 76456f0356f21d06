"""The nouns of a port: what was tried on both targets, what differs, the blocks that fit, the verdict. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from portability.checks.model import Fault, Made
from portability.model import Evidence, Outcome, Target, Word

VERSION = 1  # of the JSON form


class Verdict(Word):
    """What a person has to do."""

    AS_IT_IS = "moves as it is"
    BLOCKS = "needs these blocks"
    CHANGES = "needs these changes"
    UNKNOWN = "cannot be told here"


@dataclass(frozen=True)
class Reading:
    """What one target's compiler made of one launch, as far as moving it is concerned."""

    made: Made
    warps: int = 0
    stages: int = 0
    aligned: int = 0  # arguments that are known to be multiples of 16: what loads are widened and pipelined by
    shared: int = 0  # bytes a program
    layouts: tuple[str, ...] = ()  # "nvidia_mma 16x256x16 over 8x1 warps", "amd_mfma 32x32 over 2x4 warps"
    instruction: str = ""  # the matrix instruction, "scalar", or "" without a product
    flushes: tuple[str, ...] = ()  # instructions that flush denormals to zero: "ex2.approx.ftz.f32"
    names: tuple[str, ...] = ()  # of the language, that the kernel and its helpers use


@dataclass(frozen=True)
class Attempt:
    """One dtype and sample with the source's blocks, on both targets."""

    dtype: str
    sample: str
    blocks: Mapping[str, int] = field(default_factory=dict)
    blocks_from: str = ""
    source: Outcome = Outcome.UNAVAILABLE
    outcome: Outcome = Outcome.UNAVAILABLE
    evidence: Evidence = Evidence.NONE
    claimed: bool = True  # whether the destination's adapter claims the dtype
    spills: int = 0  # bytes a thread, more than on the source
    detail: str = ""
    line: str = ""
    advice: str = ""

    @property
    def moves(self) -> bool:
        """Whether the destination takes it as it is."""
        return self.outcome is Outcome.PASS and not self.spills

    @property
    def fails_on_both(self) -> bool:
        """Whether the source fails too, so that moving is not what is wrong."""
        return self.source not in (Outcome.PASS, Outcome.UNAVAILABLE) and self.outcome is not Outcome.PASS


@dataclass(frozen=True)
class Ranked:
    """One configuration of the search that fits, and what it needs."""

    blocks: Mapping[str, int]
    median: float | None = None  # milliseconds, where it was timed
    registers: int = 0
    shared: int = 0
    occupancy: float = 0.0
    matrix: str = ""


@dataclass(frozen=True)
class Entry:
    """One entry of a block table."""

    selector: str  # "hip:gfx942", "hip:gfx942/float32"
    text: str  # its lines


@dataclass(frozen=True)
class Choice:
    """The blocks that some dtypes take on the destination, and the search that found them."""

    dtypes: tuple[str, ...]  # the first is the one that was searched with
    blocks: Mapping[str, int] = field(default_factory=dict)  # what the search varied; nothing where nothing fits
    blocks_from: str = ""  # the table that has them already
    ranked: tuple[Ranked, ...] = ()  # the best first
    tried: int = 0
    failed: int = 0
    spilling: int = 0
    found: str = ""  # "search without hardware, Triton 3.9.0": how they were ranked
    interpreted: str = ""  # what the interpreter says of them
    entries: tuple[Entry, ...] = ()  # what the destination's block table lacks
    why: str = ""  # where nothing fits


@dataclass(frozen=True)
class Report:
    """One kernel's way from one target to another."""

    kernel: str
    source: Target
    destination: Target
    verdict: Verdict = Verdict.UNKNOWN
    needs: tuple[str, ...] = ()  # what the destination needs, and what of it is here
    attempts: tuple[Attempt, ...] = ()
    unclaimed: tuple[str, ...] = ()  # dtypes that the source has and the destination does not claim
    names: tuple[str, ...] = ()  # of the language, that the kernel uses
    missing: tuple[Fault, ...] = ()  # names and operations that are refused or emulated there
    layouts: tuple[str, ...] = ()
    lint: tuple[Fault, ...] = ()
    silent: tuple[Fault, ...] = ()
    choices: tuple[Choice, ...] = ()
    changes: tuple[str, ...] = ()  # what is to be changed
    written: str = ""  # where --write put the blocks
    file: str = ""
    notes: tuple[str, ...] = ()  # what was not looked at, and why

    @property
    def exit_code(self) -> int:
        """0 where it moves as it is, 1 where it needs something, 2 where that cannot be told here."""
        return {Verdict.AS_IT_IS: 0, Verdict.UNKNOWN: 2}.get(self.verdict, 1)
