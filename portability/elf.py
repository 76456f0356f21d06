"""Sections, symbols and notes of a 64-bit little-endian ELF file, which cubins and hsacos are.

Source: System V ABI, "Object Files". A general reader takes milliseconds for each of the thousands of binaries of a
run; the few structures that are asked for here take a hundredth of that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

MAGIC = b"\x7fELF\x02\x01"  # ELFCLASS64, ELFDATA2LSB
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
NOTE = struct.Struct("<III")
PT_NOTE, SHT_NOBITS = 4, 8


@dataclass(frozen=True)
class Section:
    """One section: its size in bytes, its content (none where the loader only reserves it), and a section it names."""

    size: int
    data: bytes
    link: int  # of a symbol table: the number of the section that holds the names


class Elf:
    """An ELF file in memory. Raises `ValueError` for what is none, also later, where it names what is not in it."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise ValueError(f"not an ELF file: 64-bit little-endian ones begin with {MAGIC!r}, this with {data[:6]!r}")
        self._data = data
        fields = self._unpack(HEADER, 0)
        self._segments_at, self._sections_at = fields[5], fields[6]
        self._segment_count, self._section_count, self._names_in = fields[10], fields[12], fields[13]

    @cached_property
    def sections(self) -> Mapping[str, Section]:
        """The sections by name, in the file's order."""
        names = self._numbered[self._names_in].data if self._numbered else b""
        starts = [self._unpack(SECTION, self._sections_at + i * SECTION.size)[0] for i in range(self._section_count)]
        return {_text(names, start): s for start, s in zip(starts, self._numbered, strict=True)}

    def section(self, name: str) -> Section:
        """Return a section. Raises `ValueError` where there is none of that name."""
        if name not in self.sections:
            raise ValueError(f"no section {name!r} in this binary")
        return self.sections[name]

    def symbols(self) -> list[str]:
        """Return the names of the symbols, by their numbers."""
        table = self.section(".symtab")
        names = self._numbered[table.link].data
        whole = len(table.data) // SYMBOL.size * SYMBOL.size
        return [_text(names, fields[0]) for fields in SYMBOL.iter_unpack(table.data[:whole])]

    def notes(self) -> Iterator[tuple[str, bytes]]:
        """Yield the owner and the content of each note that is loaded with the program."""
        for i in range(self._segment_count):
            kind, _, offset, _, _, size, _, _ = self._unpack(SEGMENT, self._segments_at + i * SEGMENT.size)
            at, end = offset, offset + size
            while kind == PT_NOTE and at + NOTE.size <= end:
                owner, content, _ = self._unpack(NOTE, at)
                begins = at + NOTE.size + _padded(owner)
                yield _text(self._data, at + NOTE.size), self._data[begins : begins + content]
                at = begins + _padded(content)

    @cached_property
    def _numbered(self) -> list[Section]:
        made = []
        for i in range(self._section_count):
            _, kind, _, _, offset, size, link, *_ = self._unpack(SECTION, self._sections_at + i * SECTION.size)
            made.append(Section(size, b"" if kind == SHT_NOBITS else self._data[offset : offset + size], link))
        return made

    def _unpack(self, layout: struct.Struct, at: int) -> tuple[int, ...]:
        try:
            return layout.unpack_from(self._data, at)
        except struct.error:
            raise ValueError(f"not an ELF file: it ends before byte {at + layout.size}") from None


def _text(data: bytes, at: int) -> str:
    return data[at : data.find(b"\0", at)].decode(errors="replace")


def _padded(size: int) -> int:
    """Return `size` rounded up to whole words of four bytes."""
    return -(-size // 4) * 4
