"""hypothesis, or without it (it comes with the extra `dev`) a skip for the tests that draw values; a file's others run.

`from tests.engine.drawn import given, st`
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hypothesis import given
    from hypothesis import strategies as st
else:
    try:
        from hypothesis import given
        from hypothesis import strategies as st
    except ModuleNotFoundError:

        class _NoStrategy:
            """Stands for any strategy that is built where a module is read."""

            def __getattr__(self, name: str) -> Any:
                return self

            def __call__(self, *_: Any, **__: Any) -> Any:
                return self

            def __or__(self, other: Any) -> Any:
                return self

        st = _NoStrategy()

        def given(*last: Any, **named: Any) -> Any:
            """Return a test that is skipped, and asks for none of the drawn arguments, but for its others."""

            def skipped(test: Any) -> Any:
                @pytest.mark.skip(reason="hypothesis is not installed: pip install -e '.[dev]'")
                def without(**_: Any) -> None:
                    raise AssertionError("skipped")

                parameters = [p for p in inspect.signature(test).parameters.values() if p.name not in named]
                without.__signature__ = inspect.Signature(parameters[: len(parameters) - len(last)])
                without.__name__, without.__doc__ = test.__name__, test.__doc__
                return without

            return skipped


__all__ = ["given", "st"]
