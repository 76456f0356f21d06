"""What tests of the operators share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portability.backend import Session, blocks_of, discover


@pytest.fixture
def interpreter() -> Iterator[Session]:
    """A session in which operators on CPU tensors are interpreted and launches recorded, and nothing may go wrong."""
    backend = discover()["interpreter"]
    with backend.open(backend.status()[0]) as session, blocks_of("interpreter", "interpreter"):
        yield session
        assert not session.problems
