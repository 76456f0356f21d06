"""Write a working skeleton of a kernel or a backend, with tests that pass right away.

In a project with a matrix.toml the files go beside it (a kernel into the package of kernels that it names, if it names
one), and it is told of the new module; in this repository they go into kernels/ or backends/. Nothing is overwritten.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("kind", choices=("kernel", "backend"))
    parser.add_argument("name", metavar="NAME", help="of the module, and of the kernel or backend: small letters, '_'")


def main(args: argparse.Namespace) -> int:
    """Write, and say what was written and what to do next. Raises `ValueError` for a name that is taken or is none."""
    from portability.skeletons.write import plan

    here = Path.cwd()
    _refuse_taken(args.kind, args.name)
    skeleton = plan(args.kind, args.name, here)
    for path in skeleton.write():
        print(f"written: {path.relative_to(here) if path.is_relative_to(here) else path}")
    test = next(p for p in skeleton.files if p.name.startswith("test_"))
    print(f"next:    pytest {test.relative_to(here) if test.is_relative_to(here) else test}")
    if args.kind == "kernel":
        print(f"         portability run {args.name}")
        print(f"         portability port {args.name} --from cuda:90 --to hip:gfx942")
    else:
        print(f"         portability check-backend {args.name}")
        print(f"         portability run --target {args.name}:1")
    return 0


def _refuse_taken(kind: str, name: str) -> None:
    """Raise `ValueError` where another module has a kernel or backend of that name: a run would refuse both."""
    from portability.conformance.observe import project

    matrix = project()
    if kind == "backend":
        from portability.backend import discover

        places = {n: type(a).__module__ for n, a in discover(matrix.backends).items()}
    else:
        from portability.kernel import discover as discover_kernels

        places = dict(discover_kernels(matrix.kernels).files)
    if name in places:
        raise ValueError(f"there is a {kind} {name!r} already, in {places[name]}: take another name")
