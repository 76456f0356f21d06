"""The templates: Jinja2, with everything escaped, and foreign text made harmless to read by `| clean`."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from portability.text import clean


@cache
def _environment() -> Environment:
    loader = PackageLoader("portability.site")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["clean"] = clean
    return environment


def render_template(name: str, **values: Any) -> str:
    """Return the template of this name with these values; a name that it uses and that is not given is an error."""
    return _environment().get_template(name).render(values)
