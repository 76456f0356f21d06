"""What is generated, inside a page that people write: it stands between two marks, and is written anew there."""

from __future__ import annotations


def between(page: str, begin: str, end: str, made: str, name: str) -> str:
    """Return `page` with `made` between its two marks. Raises `ValueError`, naming the page, unless both are there."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"{name}: needs {begin} and after it {end}, once each")
    before, after = page[: page.index(begin)], page[page.index(end) + len(end) :]
    return f"{before}{begin}\n\n{made}\n{end}{after}"
