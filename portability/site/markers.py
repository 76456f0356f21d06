"""A table inside another file, such as a README: between `<!-- table -->` and `<!-- /table -->`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from portability.render import markdown
from portability.table import Table, TableError

BEGIN, END = "<!-- table -->", "<!-- /table -->"
LEFT_OUT = ("Warnings", "Times left out")  # sections for those who work on the kernels, not for a reader


def embedded(text: str, table: Table, name: str = "the file") -> str:
    """Return `text` with the table between its markers. Raises `TableError` unless each is there once."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise TableError(f"{name}: needs {BEGIN} and after it {END}, once each")
    before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    sections = tuple(s for s in table.sections if s.title not in LEFT_OUT)
    return f"{before}{BEGIN}\n\n{markdown(replace(table, sections=sections))}\n{END}{after}"


def in_step(path: Path, table: Table) -> bool:
    """Return whether the file holds this table. Raises `TableError` where it has no place for one, and `OSError`."""
    text = path.read_text(encoding="utf-8")
    return text == embedded(text, table, str(path))


def update(path: Path, table: Table) -> bool:
    """Write the table into the file, and return whether that changed it. Raises as `in_step` does."""
    text = path.read_text(encoding="utf-8")
    made = embedded(text, table, str(path))
    if made != text:
        path.write_text(made, encoding="utf-8")
    return made != text
