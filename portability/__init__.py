"""Triton kernels on every backend: one source, one matrix, one table of what is known and how."""

__version__ = "0.1.0"
