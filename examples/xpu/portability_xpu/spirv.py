"""Just enough of SPIR-V to find inline assembly in a module, and to write other words in its place.

Source: the SPIR-V specification, "Physical Layout of a SPIR-V Module and Instruction"; SPV_INTEL_inline_assembly.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER_WORDS = 5
ASSEMBLY, ASSEMBLY_CALL = 5610, 5611  # OpAsmINTEL, OpAsmCallINTEL
TEMPLATE = 5  # the word of OpAsmINTEL in which its text begins: after result type, result, function type and target


def instructions(module: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, first word and number of words of each instruction of a little-endian module."""
    words = struct.unpack(f"<{len(module) // 4}I", module[: len(module) // 4 * 4])
    at = HEADER_WORDS
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        if count == 0:
            raise ValueError(f"no SPIR-V: an instruction of no words at word {at}")
        yield opcode, at, count
        at += count


def has_assembly(module: bytes) -> bool:
    """Return whether the module calls inline assembly."""
    return any(opcode == ASSEMBLY_CALL for opcode, _, _ in instructions(module))


def with_other_assembly(module: bytes) -> bytes:
    """Return the module with the letters of every assembly template turned into others: no assembler takes them."""
    changed = bytearray(module)
    for opcode, at, count in instructions(module):
        if opcode == ASSEMBLY:
            start = 4 * (at + TEMPLATE)
            end = module.index(0, start, 4 * (at + count))
            text = bytes(ord("q") if chr(b).isalpha() else b for b in module[start:end])
            changed[start:end] = text
    return bytes(changed)
