"""The matrix: every cell that the command line and matrix.toml select."""

from portability.testing import test_cell

__all__ = ["test_cell"]
