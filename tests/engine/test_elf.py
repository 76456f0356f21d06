"""The reader of ELF files, on one that is made here byte by byte, and on what is none."""

from __future__ import annotations

import pytest

from portability.elf import HEADER, MAGIC, NOTE, PT_NOTE, SECTION, SEGMENT, SHT_NOBITS, SYMBOL, Elf


def section_header(name: int, kind: int, offset: int, size: int, link: int = 0) -> bytes:
    return SECTION.pack(name, kind, 0, 0, offset, size, link, 0, 1, 0)


def small_file() -> bytes:
    """Return an ELF file with a text, names, symbols, 4096 reserved bytes and two notes."""
    names = b"\0.names\0.text\0.symtab\0.reserved\0"
    symbols = SYMBOL.pack(0, 0, 0, 0, 0, 0) + SYMBOL.pack(names.index(b".text"), 0, 0, 0, 0, 0)
    notes = NOTE.pack(3, 5, 1) + b"ME\0\0" + b"first\0\0\0" + NOTE.pack(7, 2, 1) + b"AMDGPU\0\0" + b"ok\0\0"
    parts, at, places = [b"code", names, symbols, notes], HEADER.size, []
    for part in parts:
        places.append(at)
        at += len(part)
    sections = b"".join(
        (
            section_header(0, 0, 0, 0),
            section_header(names.index(b".text"), 1, places[0], 4),
            section_header(names.index(b".names"), 3, places[1], len(names)),
            section_header(names.index(b".symtab"), 2, places[2], len(symbols), link=2),
            section_header(names.index(b".reserved"), SHT_NOBITS, places[0], 4096),
        )
    )
    segment = SEGMENT.pack(PT_NOTE, 0, places[3], 0, 0, len(notes), len(notes), 4)
    header = HEADER.pack(
        MAGIC, 2, 190, 1, 0, at + len(sections), at, 0, HEADER.size, SEGMENT.size, 1, SECTION.size, 5, 2
    )
    return header + b"".join(parts) + sections + segment


def read_whole(data: bytes) -> tuple[int, int]:
    """Return how many sections and notes there are."""
    elf = Elf(data)
    return len(elf.sections), len(list(elf.notes()))


def test_sections_are_found_by_name() -> None:
    assert Elf(small_file()).section(".text").data == b"code"


def test_a_reserved_section_has_a_size_and_no_content() -> None:
    reserved = Elf(small_file()).section(".reserved")
    assert (reserved.size, reserved.data) == (4096, b"")


def test_symbols_are_named_by_the_section_that_their_table_links_to() -> None:
    assert Elf(small_file()).symbols() == ["", ".text"]


def test_notes_are_read_whatever_their_padding() -> None:
    assert list(Elf(small_file()).notes()) == [("ME", b"first"), ("AMDGPU", b"ok")]


def test_a_section_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"no section '\.nv\.info'"):
        Elf(small_file()).section(".nv.info")


@pytest.mark.parametrize("data", [b"", b"MZ", b"\x7fELF\x01\x01" + bytes(100)], ids=["empty", "other", "32-bit"])
def test_what_is_no_such_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an ELF file"):
        Elf(data)


@pytest.mark.parametrize("length", range(HEADER.size, len(small_file()), 24))
def test_a_file_that_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="it ends before byte"):
        read_whole(small_file()[:length])
