"""The nouns of a check: faults, what was reached on each target, and a file's report. Plain values, carried as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from portability.model import Evidence, Outcome, Word

VERSION = 1  # of the JSON form


class Seen(Word):
    """What showed a fault."""

    RAN = "ran"  # values or memory, on a device
    EMULATED = "emulated"
    INTERPRETED = "interpreted"  # values, memory or order, in the checked interpreter
    COMPILED = "compiled"  # a compiler, or a launch's limits
    LOWERED = "lowered"
    ASSEMBLY = "assembly"  # what the compilers made, held against each other
    SOURCE = "source"  # a static rule


@dataclass(frozen=True)
class Fault:
    """One finding of a file. A fault with an outcome is one on its targets; one without differs between targets.

    targets     where it was seen or is known to bite: ids, "interpreter" among them
    everywhere  it was seen where values were computed, and nothing in it depends on the target
    """

    code: str  # "out-of-bounds", "grid-limit", "dot-precision", "TP401"
    message: str
    seen: Seen
    line: str = ""  # "faults/oob.py:12"
    targets: tuple[str, ...] = ()
    outcome: Outcome | None = None
    everywhere: bool = False
    link: str = ""


@dataclass(frozen=True)
class TargetReport:
    """How far a file got on one target, and what happened there."""

    target: str
    evidence: Evidence
    outcome: Outcome
    detail: str = ""
    environment: str = "default"
    seconds: float = 0.0
    launches: int = 0


@dataclass(frozen=True)
class Product:
    """A product of blocks in a kernel's Triton IR, and what a target's compiler made of the kernel's products."""

    kind: str  # element type of the operands, as Triton's IR writes it: "f32", "bf16", "f8E4M3FN"
    accumulator: str  # element type of the result: "f32", "f16"
    precision: str  # "tf32", "ieee", …: what the kernel asks for
    scaled: bool  # tt.dot_scaled
    instruction: str  # "wgmma tf32", "v_mfma_f32_32x32x8_f16", "scalar"; "" where there is no assembly to tell by
    line: str = ""
    imprecise: bool = False  # float8, and the whole depth of a block is summed before anything is added in float32


@dataclass(frozen=True)
class Atomic:
    """An atomic in a kernel's Triton IR, and how a target does it."""

    operation: str  # "fadd"
    kind: str  # element type
    how: str  # "native", "compare-and-swap loop", "both", "" where it cannot be told
    line: str = ""


@dataclass(frozen=True)
class HalfSum:
    """A reduction by addition whose running sum is in half precision."""

    kind: str  # element type
    line: str = ""


@dataclass(frozen=True)
class Made:
    """What one target's compiler made of one launch, as far as targets differ in it."""

    kernel: str
    constants: tuple[str, ...] = ()  # "BLOCK=64"
    products: tuple[Product, ...] = ()
    atomics: tuple[Atomic, ...] = ()
    half_sums: tuple[HalfSum, ...] = ()
    tile: int = 0  # bytes of the largest block that is loaded at once
    tile_line: str = ""
    line: str = ""  # of the kernel's def
    spills: int = 0  # bytes a thread
    reorders: tuple[str, ...] = ()  # lines of operations whose elements come in an order of the target's own
    assembled: bool = False  # whether there is assembly to read
    found: Mapping[str, int] = field(default_factory=dict)  # the file's own pattern in the assembly -> times
    found_ir: tuple[str, ...] = ()  # and of its pattern for Triton's IR


@dataclass(frozen=True)
class Answer:
    """What a runner says of one file on one target."""

    evidence: Evidence
    outcome: Outcome
    faults: tuple[Fault, ...] = ()
    made: tuple[Made, ...] = ()
    detail: str = ""
    broken: str = ""  # the file itself is at fault: it cannot be imported, or its reference raises
    broken_line: str = ""
    at_import: bool = False  # it raised while it was imported: it may be asking for another vendor's device
    of_triton: bool = False  # it is broken by what this release of Triton does not have, which is a finding
    seconds: float = 0.0
    launches: int = 0


@dataclass(frozen=True)
class FileReport:
    """What was found in one file."""

    path: str
    faults: tuple[Fault, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    patterns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # target -> the file's own pattern -> times
    unreadable: str = ""


@dataclass(frozen=True)
class Report:
    """What was found in all files of one call."""

    files: tuple[FileReport, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 nothing, 1 findings, 2 a file could not be read, or the harness failed on a target."""
        if any(f.unreadable or any(t.outcome is Outcome.HARNESS_ERROR for t in f.targets) for f in self.files):
            return 2
        return int(any(f.faults for f in self.files))
