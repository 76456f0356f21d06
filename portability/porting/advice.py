"""What a person can change about a refusal: by the words of compilers, launchers and limits, and by static rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from portability.checks.model import Fault
from portability.model import Outcome

SMALLER = "smaller tiles or fewer stages"
# Searched in order in the first lines of a detail.
MESSAGES: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern, re.IGNORECASE), advice)
    for pattern, advice in (
        (r"warps of \d+ are \d+ threads|out of resource: threads", "fewer warps: a warp may be wider here"),
        (r"shared memory|shared data|tensor memory|ub overflow|cbuf overflow|cc overflow|LDS", SMALLER),
        (r"grid \(.*axis [12]", "put the long axis first in the grid, or give a program more of it"),
        (r"grid \(.*programs, at most|along x, at most", "larger blocks, or a loop in the program over several"),
        (r"no programs, which this target refuses", "return before the launch where there is nothing to do"),
        (r"input_precision must be one of", "name a precision that every target has: input_precision='ieee'"),
        (
            r"could not allocate output register|inline assembly|inline_asm",
            "assembly is one vendor's: a branch on a tl.constexpr for each vendor, with plain Triton for the others",
        ),
        (
            r"fp8e\w+ not supported|not supported in this architecture|fp8\w* .*unsupported|invalid data type",
            "another format: claims by target are in `portability describe`; or convert before the kernel",
        ),
        (r"requires \.target sm_(\d+)", "the instruction is newer than the target: convert in another way"),
        (
            r"has no attribute|undefined symbol|unresolved|not found in libdevice|__nv_\w+|__ocml_\w+",
            "the function is not there: write it with those of `tl`, or branch on a tl.constexpr for each vendor",
        ),
        (r"was specified but unrecognised", "pass the option only where the backend knows it: a block of its table"),
        (r"make_block_ptr|block pointer", "block pointers are gone: tl.make_tensor_descriptor, or offsets and a mask"),
        (r"set_allocator|allocator", "call triton.set_allocator before the launch: its descriptors need memory"),
        (r"(M|N|K)\S* >= ?\d+|shape.*at least", "pad the product's tile to the size that is named"),
        (r"active driver|no CUDA|no NVIDIA driver|compiled with CUDA", "take the device from an input, not by name"),
        (
            r"'arith\.extf' op operand #0 must be floating-point-like, but got 'tensor<[\dx]*xi\d",
            "no product of integers compiles here: cast its operands to float16, which holds those of int8 exactly",
        ),
        (r"no overload takes these types", "cast to float32 before the call, and back after it"),
        (r"no end after", "smaller tiles compile in less time"),
        (r"PassManager::run failed|failed to translate|LLVM ERROR|Cannot select|was ended by SIG", ""),
    )
)  # fmt: skip
COMPILER = "the compiler gives up: smaller tiles first; then write the line in another way, and report it"
# Codes of static rules -> what to do. The others' messages say it themselves.
RULES: Mapping[str, str] = {
    "TP101": "take the device from an input: `device=x.device`",
    "TP102": "check that inputs share a device, not which kind it is",
    "TP103": "ask `triton.runtime.driver.active` or the input's device module",
}
# Rules whose finding stops a wrapper on the target that it names, though no compiler sees the line; and those that say
# why a compiler refuses, where one did.
STOPPING = frozenset(RULES)
EXPLAINING = frozenset({"TP104", "TP105", "TP106", "TP107"})


def advise(outcome: Outcome, detail: str) -> str:
    """Return what to change about a failure, or "" where nothing is known."""
    for pattern, advice in MESSAGES:
        if pattern.search(detail):
            return advice or COMPILER
    if outcome is Outcome.OUT_OF_RESOURCES:
        return SMALLER
    if outcome in (Outcome.COMPILE_ERROR, Outcome.CRASH):
        return COMPILER
    return ""


def changes(lint: Iterable[Fault], failing: bool) -> Iterator[str]:
    """Yield the static findings that are changes to be made; `failing`: something did not compile, or nothing could."""
    for fault in lint:
        if not fault.everywhere and fault.code in (STOPPING | EXPLAINING if failing else STOPPING):
            yield _change(fault)


def _change(fault: Fault) -> str:
    """Return a static finding as a change to be made, with its line."""
    place = f"{fault.line}: " if fault.line else ""
    advice = RULES.get(fault.code, "")
    return f"{place}{fault.message}{f': {advice}' if advice else ''} ({fault.code})"
