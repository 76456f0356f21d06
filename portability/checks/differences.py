"""What the compilers made of one file, held against each other: where targets compute differently, or by other means.

Nothing here is an error of a target: each does what it can. It is what a kernel's author would want to know before
taking one target's numbers or times for another's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from portability.checks.model import Fault, Made, Product, Seen

Everything = Mapping[str, Sequence[Made]]  # target -> what was made there

PLAIN = ("tf32", "ieee")  # what a product of float32 asks for if nothing is named, and either of them named
FLOAT8 = re.compile(r"^f8")
WIDER = re.compile(r"(?<![a-z\d])b?f16(_1k)?$")  # a matrix instruction whose operands are 16 bits wide
# Codes of the interpreter's warnings on which the assembly has the say, where there is one.
DECIDED = frozenset({"dot-precision", "bf16-atomic"})
SPILLS = 128  # bytes a thread: less is a handful of registers at the edge of a loop


def compare(made: Everything, interpreted: bool) -> list[Fault]:
    """Return the differences. `interpreted` says that values were computed by the interpreter, in exact float32."""
    return [
        *_precisions(made, interpreted),
        *_emulated_products(made),
        *_imprecise_products(made),
        *_atomics(made),
        *_half_sums(made),
        *_spills(made),
        *_reorders(made),
        *_patterns(made),
    ]


def _precisions(made: Everything, interpreted: bool) -> Iterator[Fault]:
    """Products of float32 whose inputs some targets round and others do not, for the same kernel."""
    for line, by_target in _products(made, lambda p: p.kind == "f32" and p.precision in PLAIN).items():
        groups: dict[str, list[str]] = {}
        for target, product in by_target.items():
            groups.setdefault(precision_of(product.instruction), []).append(target)
        if interpreted:
            groups.setdefault("float32", []).append("interpreter")
        if len(groups) > 1:
            said = "; ".join(f"{name} on {', '.join(targets)}" for name, targets in sorted(groups.items()))
            rounding = tuple(t for name, targets in groups.items() if name != "float32" for t in targets)
            yield Fault("dot-precision", f"a product of float32 is computed in {said}", Seen.ASSEMBLY, line, rounding)


def precision_of(instruction: str) -> str:
    """Return what the inputs of a float32 product are rounded to by a matrix instruction ("scalar": by none)."""
    if "xf32" in instruction:
        return "XF32"
    if "tf32" in instruction:
        return "TF32"
    if "bf16" in instruction:
        return "bfloat16 parts"
    return "float32"


def _emulated_products(made: Everything) -> Iterator[Fault]:
    """Products that a target has no instruction for: done lane by lane, or after widening float8."""
    for line, by_target in _products(made).items():
        scalar = [t for t, p in by_target.items() if p.instruction == "scalar" and p.kind not in ("f32", "f64")]
        kind = next((p.kind for p in by_target.values() if FLOAT8.match(p.kind)), next(iter(by_target.values())).kind)
        if scalar and len(scalar) < len(by_target):
            message = f"a product of {kind} has no matrix instruction there and is done lane by lane"
            yield Fault("dot-emulated", message, Seen.ASSEMBLY, line, tuple(scalar))
        widened: dict[str, list[str]] = {}
        for target, p in by_target.items():
            # On some targets the front end widens already: the kind is that of the same line elsewhere.
            if (FLOAT8.match(kind) or p.scaled) and WIDER.search(p.instruction.split(" + ")[0]):
                widened.setdefault(p.instruction, []).append(target)
        if widened:
            said = "; ".join(f"{name} on {', '.join(targets)}" for name, targets in widened.items())
            scaled = "scaled " if any(p.scaled for p in by_target.values()) else ""
            message = f"a {scaled}product of {kind} is widened and done by {said}"
            yield Fault("dot-emulated", message, Seen.ASSEMBLY, line, tuple(t for ts in widened.values() for t in ts))


def _imprecise_products(made: Everything) -> Iterator[Fault]:
    """Products of float8 that Hopper's matrix unit sums in fewer bits than float32 has; DeepSeek-V3 measured 14."""
    for line, by_target in _products(made, lambda p: p.imprecise and "wgmma" in p.instruction).items():
        message = "a product of float8 is summed in about 14 bits there; max_num_imprecise_acc=32 adds parts in float32"
        yield Fault("dot-imprecise", message, Seen.ASSEMBLY, line, tuple(by_target))


def _products(made: Everything, wanted: Callable[[Product], bool] = bool) -> dict[str, dict[str, Product]]:
    """Return the products by line and target that `wanted` takes, of targets where it is known how they are done."""
    found: dict[str, dict[str, Product]] = {}
    for target, kernels in made.items():
        for kernel in kernels:
            for product in kernel.products:
                if product.instruction and wanted(product):
                    found.setdefault(product.line or kernel.line, {})[target] = product
    return found


def _atomics(made: Everything) -> Iterator[Fault]:
    """Atomics that a target lacks: a loop of compare-and-swap stands for them."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for target, kernels in made.items():
        for kernel in kernels:
            for a in kernel.atomics:
                if a.how:
                    found.setdefault((a.line or kernel.line, a.operation, a.kind), {})[target] = a.how
    for (line, operation, kind), by_target in found.items():
        loops = [t for t, how in by_target.items() if how != "native"]
        if not loops:
            continue
        native = [t for t, how in by_target.items() if how == "native"]
        whole = [t for t in loops if by_target[t] == "both"]
        message = f"atomic {operation} of {kind} is a loop of compare-and-swap there"
        message += f" (in part on {', '.join(whole)})" if whole else ""
        message += f", an instruction on {', '.join(native)}" if native else ""
        yield Fault("atomic-emulated", message, Seen.ASSEMBLY, line, tuple(loops))


def _half_sums(made: Everything) -> Iterator[Fault]:
    """Sums whose running total is in half precision: their error grows with the length, in each target's own order."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for target, kernels in made.items():
        for kernel in kernels:
            sums = [("sum", s.kind, s.line) for s in kernel.half_sums]
            sums += [("product", p.accumulator, p.line) for p in kernel.products if p.accumulator in ("f16", "bf16")]
            for what, kind, line in dict.fromkeys(sums):
                found.setdefault((what, kind, line or kernel.line), []).append(target)
    for (what, kind, line), targets in found.items():
        message = f"a {what} is accumulated in {kind}: its error grows with its length, and differs with the order"
        yield Fault("half-accumulator", message, Seen.ASSEMBLY, line, tuple(dict.fromkeys(targets)))


def _spills(made: Everything) -> Iterator[Fault]:
    found: dict[str, dict[str, int]] = {}
    for target, kernels in made.items():
        for kernel in kernels:
            if kernel.spills >= SPILLS:
                found.setdefault(f"{kernel.kernel}\n{kernel.line}", {})[target] = kernel.spills
    for name, by_target in found.items():
        kernel_name, line = name.split("\n")
        said = ", ".join(f"{n} on {t}" for t, n in by_target.items())
        message = f"{kernel_name}: bytes a thread spills for want of registers: {said}"
        yield Fault("register-spills", message, Seen.ASSEMBLY, line, tuple(by_target))


def _reorders(made: Everything) -> Iterator[Fault]:
    found: dict[str, list[str]] = {}
    for target, kernels in made.items():
        for line in (line or kernel.line for kernel in kernels for line in kernel.reorders):
            found.setdefault(line, []).append(target)
    for line, targets in found.items():
        message = "the elements of the result come in whatever order suits the target: tl.cat, or can_reorder"
        yield Fault("reorders", message, Seen.ASSEMBLY, line, tuple(dict.fromkeys(targets)))


def _patterns(made: Everything) -> Iterator[Fault]:
    """The file's own patterns, where something matches them: by what does."""
    line = next((k.line for kernels in made.values() for k in kernels if k.line), "")
    assembled = {t: kernels for t, kernels in made.items() if any(k.assembled for k in kernels)}
    for code, matches in (
        ("assembly", {t: tuple(n for k in ks for n in k.found) for t, ks in assembled.items()}),
        ("ir", {t: tuple(n for k in ks for n in k.found_ir) for t, ks in made.items()}),
    ):
        groups: dict[tuple[str, ...], list[str]] = {}
        for target, names in matches.items():
            groups.setdefault(tuple(sorted(set(names))), []).append(target)
        if any(groups):
            said = "; ".join(f"{', '.join(n) or 'nothing'} on {', '.join(t)}" for n, t in groups.items())
            yield Fault(code, f"what the file looks for: {said}", Seen.ASSEMBLY, line, tuple(matches))
