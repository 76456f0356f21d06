"""What a compiler made of one launch, as far as targets differ in it: products, atomics, half-precision sums, tiles.

Read from Triton's IR (what the kernel asks for, with its lines) and from the assembly (what the target does).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from portability.backend import Launch
from portability.binary import matrix_instruction
from portability.checks.model import Atomic, HalfSum, Made, Product

TENSOR = r"tensor<((?:\d+x)*)([^<>]*(?:<[^<>]*>)?)>"  # its sizes and its elements' type
DOT = re.compile(rf"\btt\.dot (.*?) : {TENSOR} \* {TENSOR} -> {TENSOR}(.*)$", re.MULTILINE)
SCALED = re.compile(r"\btt\.dot_scaled (.*)$", re.MULTILINE)
ATOMIC = re.compile(
    r"\btt\.(?:atomic_rmw (\w+)|atomic_(cas)|descriptor_reduce (\w+))\b.*?(?:tensor<(?:\d+x)*(\w+)>|\(!tt\.ptr<(\w+)>)"
)
LOAD = re.compile(rf"\btt\.(?:load|descriptor_load) .* {TENSOR}(.*)$", re.MULTILINE)
REDUCE = re.compile(rf'"tt\.reduce"(.*?)^\s*\}}\) : \({TENSOR}\)([^\n]*)$', re.DOTALL | re.MULTILINE)
REORDERS = re.compile(r"(%\w+) = (?:tt\.cat\b|tt\.reshape\b.*\ballow_reorder\b).*$", re.MULTILINE)
LOOP_OF = re.compile(r"\bscf\.for .*?iter_args\((.*?)\) ->")
ADDED = re.compile(r"\barith\.addf (%\w+), (%\w+)(?: fastmath<\w+>)? : tensor<(?:\d+x)*(b?f16)>(.*)$", re.MULTILINE)
PLACE = re.compile(
    r'^(#loc\d*) = loc\((?:"([^"]*)":(\d+):\d+|"[^"]*"\((#loc\d*)\)|callsite\((#loc\d*) at (#loc\d*)\))\)$',
    re.MULTILINE,
)
AT = re.compile(r"loc\((?:callsite\((#loc\d*) at #loc\d*\)|(#loc\d*))\)\s*$")
LIBRARY = re.compile(r"/triton/(language|tools)/")

LOOP = re.compile(r"\batom\S*\.cas\b|\batom\S*\.cas\.|_atomic_cmpswap")  # PTX; AMDGCN
NATIVE = re.compile(
    r"\b(?:atom|red)\.(?!\S*\.cas)\S*\.(?:add|min|max|and|or|xor|exch|inc|dec)\b|_atomic_(?!cmpswap)\w+"
)
HALF = ("f16", "bf16")
BITS = re.compile(r"(\d+)")


def read(launch: Launch, patterns: Mapping[str, str], relative: Callable[[str], str]) -> Made | None:
    """Return what was made of a compiled launch, None where it was not compiled.

    `patterns` are regular expressions of the file's own, "asm" and "ttir"; `relative` turns a path into a shorter one.
    """
    asm = getattr(launch.compiled, "asm", None)
    if asm is None or "ttir" not in asm:
        return None
    ir, assembly = _text(asm, "ttir"), _text(asm, "ptx") or _text(asm, "amdgcn")
    places = Places(ir, relative)
    tile, tile_line = _largest_tile(ir, places)
    found = Counter(m.group(0) for m in re.finditer(patterns["asm"], assembly)) if "asm" in patterns else Counter()
    found_ir = dict.fromkeys(m.group(0) for m in re.finditer(patterns["ttir"], ir)) if "ttir" in patterns else {}
    return Made(
        kernel=launch.kernel,
        constants=tuple(f"{k}={v}" for k, v in sorted(launch.constants.items())),
        products=_products(ir, matrix_instruction(asm) if assembly else "", places),
        atomics=_atomics(ir, assembly, places),
        half_sums=_half_sums(ir, places),
        tile=tile,
        tile_line=tile_line,
        line=f"{relative(launch.file)}:{launch.line}",
        reorders=_reorders(ir, places),
        assembled=bool(assembly),
        found=dict(found),
        found_ir=tuple(found_ir),
    )


def inline_assembly_line(launch: Launch, relative: Callable[[str], str]) -> str:
    """Return the line of a launch's first inline assembly, "" where there is none or no Triton IR."""
    ir = _text(getattr(launch.compiled, "asm", {}), "ttir")
    m = re.search(r"\btt\.elementwise_inline_asm\b.*$", ir, re.MULTILINE)
    return Places(ir, relative).of(m.group(0)) if m else ""


class Places:
    """The lines that operations of Triton's IR came from."""

    def __init__(self, ir: str, relative: Callable[[str], str]) -> None:
        self._found = {m[1]: m for m in PLACE.finditer(ir)}
        self._relative = relative

    def of(self, rest: str) -> str:
        """Return "file.py:12" for the end of an operation's line, "" where it is not known."""
        m = AT.search(rest)
        return self._line(m[1] or m[2]) if m else ""

    def _line(self, name: str) -> str:
        """Of a call, the place in the function that is called; of one of the language's own, the place of the call."""
        m = self._found.get(name)
        if m is None:
            return ""
        if m[2]:
            return "" if LIBRARY.search(m[2]) else f"{self._relative(m[2])}:{m[3]}"
        return self._line(m[4]) if m[4] else self._line(m[5]) or self._line(m[6])


def _products(ir: str, instruction: str, places: Places) -> tuple[Product, ...]:
    found = []
    for m in DOT.finditer(ir):
        precision = re.search(r"inputPrecision = (\w+)", m[1])
        summed = re.search(r"maxNumImpreciseAcc = (\d+)", m[1])
        imprecise = summed is not None and int(summed[1]) >= int(m[2].split("x")[-2]) and m[3].startswith("f8")
        asked = precision[1] if precision else "ieee"
        found.append(Product(m[3], m[7], asked, False, instruction, places.of(m[8]), imprecise))
    for m in SCALED.finditer(ir):
        kinds = re.findall(r"\blhs = (\w+)", m[1])
        accumulator = re.findall(TENSOR, m[1])
        kind, total = kinds[0] if kinds else "?", accumulator[-1][1] if accumulator else "?"
        found.append(Product(kind, total, "", True, instruction, places.of(m[1])))
    return tuple(dict.fromkeys(found))


def _atomics(ir: str, assembly: str, places: Places) -> tuple[Atomic, ...]:
    """A loop of compare-and-swap is an emulation, unless the kernel itself compares and swaps."""
    matches = [(m, line) for line in ir.splitlines() if (m := ATOMIC.search(line))]
    loop, native = bool(LOOP.search(assembly)), bool(NATIVE.search(assembly))
    how = "both" if loop and native else "compare-and-swap loop" if loop else "native"
    if not assembly or any(m[2] for m, _ in matches):
        how = ""
    return tuple(
        dict.fromkeys(Atomic(m[1] or m[3], m[4] or m[5], how, places.of(line)) for m, line in matches if not m[2])
    )


def _half_sums(ir: str, places: Places) -> tuple[HalfSum, ...]:
    """Reductions that add in half precision, and loops that carry a block in it and add to that."""
    found = [HalfSum(m[3], places.of(m[4])) for m in REDUCE.finditer(ir) if m[3] in HALF and "arith.addf" in m[1]]
    carried = {name for m in LOOP_OF.finditer(ir) for name in re.findall(r"(%\w+) =", m[1])}
    found += [HalfSum(m[3], places.of(m[4])) for m in ADDED.finditer(ir) if carried & {m[1], m[2]}]
    return tuple(dict.fromkeys(found))


def _reorders(ir: str, places: Places) -> tuple[str, ...]:
    """Lines where elements come in an order of the target's own, unless they are flattened only to be reduced."""
    found = []
    for m in REORDERS.finditer(ir):
        uses = re.findall(rf"^.*(?<!\w){m[1]}\b(?! =).*$", ir[m.end() :], re.MULTILINE)
        flat = re.search(r"-> tensor<\d+x[^\dx]", m[0])
        if not flat or not uses or any('"tt.reduce"(' not in use for use in uses):
            found.append(places.of(m.group(0)))
    return tuple(dict.fromkeys(found))


def _largest_tile(ir: str, places: Places) -> tuple[int, str]:
    """Return the bytes of the largest block that one load brings, and its line."""
    largest, line = 0, ""
    for m in LOAD.finditer(ir):
        element = re.sub(r"!tt\.ptr<(\w+)>", r"\1", m[2])
        bits = BITS.search(element)
        size = int(bits[1]) // 8 if bits else 0
        for n in m[1].split("x"):
            size *= int(n) if n else 1
        if size > largest:
            largest, line = size, places.of(m[3])
    return largest, line


def _text(asm: Mapping[str, Any], stage: str) -> str:
    text = asm.get(stage, "")
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
