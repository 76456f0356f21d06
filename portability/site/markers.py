"""A table inside another file, such as a README: between `<!-- table -->` and `<!-- /table -->`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from portability.pages import between
from portability.render import markdown
from portability.table import Table

BEGIN, END = "<!-- table -->", "<!-- /table -->"
LEFT_OUT = ("Warnings", "Times left out")  # sections for those who work on the kernels, not for a reader


def embedded(text: str, table: Table, name: str = "the file") -> str:
    """Return `text` with the table between its markers. Raises `ValueError` unless each is there once."""
    sections = tuple(s for s in table.sections if s.title not in LEFT_OUT)
    return between(text, BEGIN, END, markdown(replace(table, sections=sections)), name)


def in_step(path: Path, table: Table) -> bool:
    """Return whether the file holds this table. Raises `ValueError` where it has no place for one, and `OSError`."""
    text = path.read_text(encoding="utf-8")
    return text == embedded(text, table, str(path))


def update(path: Path, table: Table) -> bool:
    """Write the table into the file, and return whether that changed it. Raises as `in_step` does."""
    text = path.read_text(encoding="utf-8")
    made = embedded(text, table, str(path))
    if made != text:
        path.write_text(made, encoding="utf-8")
    return made != text
