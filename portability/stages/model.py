"""The nouns: one compiled kernel with its stages, and a runner's answer. Plain values, carried as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from portability.model import Evidence, Outcome, Resources

# In the order in which compilers make them; others follow in the order in which they were made.
ORDER = ("ttir", "ttgir", "ttadapter", "hivm", "llir", "ptx", "amdgcn", "spv", "sass", "cubin", "hsaco")


@dataclass(frozen=True)
class Pass:
    """One pass of the compiler, and the IR that it left behind."""

    name: str  # "TritonGPUCoalesce"
    ir: str  # empty for the last one before code generation, whose result is a stage
    changed: bool = True


@dataclass(frozen=True)
class Compiled:
    """One distinct binary that a cell's launches made, or the launch that failed."""

    label: str  # the kernel's name; "name#2" for its second binary
    kernel: str
    line: str = ""  # of its definition, "kernels/matmul.py:31"
    signature: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    config: str = ""  # the autotune configuration
    grid: tuple[int, ...] = ()
    warps: int = 0
    launches: int = 1  # of this binary
    stages: Mapping[str, str] = field(default_factory=dict)  # text
    binaries: Mapping[str, str] = field(default_factory=dict)  # base64
    resources: Resources | None = None
    passes: tuple[Pass, ...] = ()
    error: str = ""

    @property
    def names(self) -> list[str]:
        """Every stage, in the order in which compilers make them."""
        every = [*self.stages, *self.binaries]
        return sorted(every, key=lambda s: (ORDER.index(s) if s in ORDER else len(ORDER), every.index(s)))


@dataclass(frozen=True)
class Answer:
    """What a runner says of one cell: every compiled kernel, and how it ended."""

    evidence: Evidence
    outcome: Outcome
    compiled: tuple[Compiled, ...] = ()
    detail: str = ""
    line: str = ""
    blocks: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what could not be had, and why
