"""Environments of their own for compilers that cannot share one with the harness: triton-ascend, other Tritons."""

from __future__ import annotations

import argparse

from portability import environments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("action", choices=("create", "list", "remove"))
    parser.add_argument("name", nargs="?", help=", ".join(environments.known()))
    parser.add_argument("--python", help="the Python to make it with (default: the first on PATH that fits)")


def main(args: argparse.Namespace) -> int:
    """Create, list or remove. Raises `LookupError` and `CreationError` with the choices."""
    if args.action == "list":
        installed = environments.installed()
        for name, recipe in environments.known().items():
            state = "installed" if name in installed else f"portability env create {name}"
            print(f"{name:<12} {recipe.holds}: {state}")
        return 0
    if not args.name:
        raise ValueError(f"name an environment: {', '.join(environments.known())}")
    if args.action == "create":
        environments.create(args.name, args.python, say=print)
    elif not environments.remove(args.name):
        print(f"{args.name} is not installed")
    return 0
