"""Reading one table of a TOML file key by key, with errors that name the place, the value and the choices."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any, NoReturn, TypeVar

from portability.model import Word

W = TypeVar("W", bound=Word)


class MatrixError(ValueError):
    """Something in `matrix.toml` that cannot be meant."""


def nearest(value: str, choices: Iterable[str]) -> str:
    """Return a clause with the names of `choices` that `value` may have meant, or with all of them if there are few.

    Close to it is what is written nearly like it, else what holds it.
    """
    known = sorted({str(c) for c in choices})
    near = difflib.get_close_matches(value, known, n=3, cutoff=0.6)
    near = near or sorted((n for n in known if value and value in n), key=lambda n: n.index(value))[:3]
    if near:
        return f"nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    return f"known are {', '.join(known[:12])}{more}" if known else "none is known"


class Table:
    """One table of a file. `keys` are those that it may hold; `None` means any."""

    def __init__(self, file: str, label: str, data: Any, keys: Collection[str] | None) -> None:
        self.place = f"{file}: {label}".rstrip(": ")
        if not isinstance(data, dict):
            raise MatrixError(f"{self.place}: {data!r} is not a table")
        self.data = data
        for key in data:
            if keys is not None and key not in keys:
                raise MatrixError(f"{self.place}: unknown key {key!r}; {nearest(key, keys)}")

    def refuse(self, key: str, value: Any, problem: str) -> NoReturn:
        """Raise `MatrixError` for the value of one key."""
        raise MatrixError(f"{self.place}: {key} = {value!r}: {problem}")

    def text(self, key: str, default: str = "") -> str:
        """Return the text of `key`."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            self.refuse(key, value, "text is needed")
        return value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the texts of `key`, which may be one text or a list that is not empty."""
        value = self.data.get(key, default)
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)) or not all(isinstance(i, str) and i for i in items):
            self.refuse(key, value, "text or a list of texts is needed")
        if key in self.data and not items:
            self.refuse(key, value, "an empty list names nothing")
        return tuple(items)

    def flag(self, key: str) -> bool:
        """Return the bool of `key`; false where it is missing."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, value, "true or false is needed")
        return value

    def tables(self, key: str) -> dict[str, Any]:
        """Return the table under `key`; an empty one where it is missing."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, value, "a table is needed")
        return value

    def choice(self, key: str, default: W) -> W:
        """Return the word under `key`, of the enumeration of `default`."""
        words = type(default)
        value = self.text(key, default.value)
        if value not in list(words):
            self.refuse(key, value, nearest(value, [w.value for w in words]))
        return words(value)
