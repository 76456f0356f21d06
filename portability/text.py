"""Foreign text made harmless, and the pieces that every text form is made of: rows and sections."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from portability.table import Section, TableError

WIDTH = 100  # columns of a terminal that text is made to fit
MOST = 20  # lines of a section that a person reads; JSON holds them all


def clean(text: str) -> str:
    r"""Return `text` with whatever a terminal or an editor acts upon spelt out: "\x1b" for an escape.

    Line breaks, control characters, the marks that turn the direction of writing, and lone surrogates go.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def clip(text: str, most: int) -> str:
    """Return `text` cleaned and at most so long."""
    text = clean(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def clip_apart(texts: Sequence[str], most: int) -> list[str]:
    """Return texts cleaned and at most so long, where that tells them apart: in the middle those that begin alike."""
    cleaned = [clean(t) for t in texts]
    ends = (most - 1) // 2
    made = [clip(t, most) for t in cleaned]
    for shorter in (lambda t: f"{t[: most - 1 - ends]}…{t[-ends:]}", lambda t: t):
        alike: dict[str, set[str]] = {}
        for text, short in zip(cleaned, made, strict=True):
            alike.setdefault(short, set()).add(text)
        made = [shorter(t) if len(alike[short]) > 1 else short for t, short in zip(cleaned, made, strict=True)]
    return made


def escape(text: str) -> str:
    """Return foreign text as Markdown that shows it and does nothing: no markup, no HTML, no link, nobody notified."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~$#])", r"\\\1", text)
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # within a word it is no emphasis
    text = text.replace("://", "&#58;//").replace("www.", "www&#46;")
    return text.replace("@", "@\u200b")  # a zero-width space: else @name notifies a person


# ------------------------------------------------------------------------------------------------- pieces


def aligned(rows: Sequence[Sequence[str]], heads: Sequence[str], form: str) -> str:
    """Return rows below their headings, nothing in them taken for a number."""
    return tabulate(rows, headers=list(heads), tablefmt=form, disable_numparse=True, stralign="left")


def rows_text(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the first of which is the heading, as a plain table."""
    head, *body = rows
    return aligned([[clean(v) for v in row] for row in body], head, "simple")


def rows_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows, the first of which is the heading, as a table."""
    head, *body = rows
    return aligned([[escape(v) for v in row] for row in body], head, "github")


def section_text(section: Section, width: int = WIDTH) -> str:
    """Return a section's first lines, wrapped and indented below its title."""
    lines = (textwrap.wrap(clean(line), width - 2, subsequent_indent="  ") for line in _cut(section))
    return "\n  ".join((section.title, *(piece for line in lines for piece in line)))


def section_markdown(section: Section) -> str:
    """Return a section as a heading and a list."""
    return "\n".join((f"### {section.title}", "", *(f"- {escape(line)}" for line in _cut(section))))


def render_sections(sections: Sequence[Section], form: str = "terminal", width: int = WIDTH) -> str:
    """Return sections alone, as a difference of runs has them: for a terminal, as Markdown or whole as JSON."""
    if form == "json":
        return json.dumps({s.title: list(s.lines) for s in sections}, indent=1) + "\n"
    if form not in ("terminal", "markdown"):
        raise TableError(f"no format {form!r} for this; there are terminal, markdown, json")
    parts = (section_text(s, width) if form == "terminal" else section_markdown(s) for s in sections)
    return "\n\n".join(parts) + "\n"


def _cut(section: Section) -> Iterator[str]:
    yield from section.lines[:MOST]
    if len(section.lines) > MOST:
        yield f"… and {len(section.lines) - MOST} more; --format json holds all of them"
