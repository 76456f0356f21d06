"""The JSON Schema of a line of a results file, made from the nouns: `python -m portability.schema` prints it.

The committed `results.schema.json` is its output, for those who read our files by other means.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from enum import Enum
from typing import Any

from portability.model import Observation
from portability.results import FORMAT, VERSION, Footer, Header

Schema = dict[str, Any]

PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # JSON has neither infinities nor NaN, so these are written as words.
    float: {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]},
}


def schema() -> Schema:
    """Return the schema of one line: a header, an observation or a footer."""
    defs: dict[str, Schema] = {}
    lines = [_schema(kind, defs) for kind in (Header, Observation, Footer)]
    header = defs["Header"]
    header["properties"] = {"format": {"const": FORMAT}, "version": {"const": VERSION}, **header["properties"]}
    header["required"] = ["format", "version", *header["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of a {FORMAT} file, version {VERSION}",
        "description": "A run is a header, then a line an observation, then a footer unless it was interrupted.",
        "oneOf": lines,
        "$defs": dict(sorted(defs.items())),
    }


def _schema(kind: Any, defs: dict[str, Schema]) -> Schema:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(a, defs) if a is not type(None) else {"type": "null"} for a in args]}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], defs)}
    if origin is not None:  # Mapping[str, X]
        return {"type": "object", "additionalProperties": _schema(args[1], defs)}
    if kind in PLAIN:
        return dict(PLAIN[kind])
    if kind.__name__ not in defs:
        defs[kind.__name__] = {}  # before its fields, which may hold the same noun
        defs[kind.__name__] = _word(kind) if issubclass(kind, Enum) else _noun(kind, defs)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _word(kind: type[Enum]) -> Schema:
    return {"enum": [word.value for word in kind]}


def _noun(kind: Any, defs: dict[str, Schema]) -> Schema:
    hints = typing.get_type_hints(kind)
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip().split("\n")[0],
        "properties": {f.name: _schema(hints[f.name], defs) for f in fields},
        "required": [f.name for f in fields if f.default is missing and f.default_factory is missing],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
