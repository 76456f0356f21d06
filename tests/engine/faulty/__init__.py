"""Kernel cases with one fault each, for the tests of the engine: a project of its own with matrix.toml."""
