"""`portability COMMAND`: a table of commands, each a module that is imported when it is used.

Exit codes: 0 as expected, 1 a finding or a regression, 2 bad input or nothing could run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence

from portability import __version__

COMMANDS: Mapping[str, str] = {  # name -> what it does; its module is portability.commands.NAME
    "run": "run the matrix, or a part of it, and print the table",
    "table": "print the table of one or more results files",
    "doctor": "say what each backend can do here, and what would give more",
    "explain": "say which rule decided a cell, and why",
    "merge": "join results files of several machines into one",
    "diff": "compare two results files cell by cell",
    "history": "show how the runs in a folder changed",
    "tune": "search the block sizes of a kernel for a target",
    "bench": "time a kernel over sizes on a device, against torch",
    "lint": "report what in Triton kernels is not portable, from their source",
    "check": "run and compile a file of kernels, or recorded launches, everywhere, and report what is wrong",
    "record": "record the Triton launches of a program or test suite, unchanged",
    "ir": "show what compilers make of a kernel, stage by stage, for one target or two beside each other",
    "update": "record what the API probes come to, as the baseline that runs are compared with",
    "caniuse": "look up where a name of the language works, since when, and what to use instead",
    "port": "say what a kernel of one target needs on another, and find the blocks that fit",
    "describe": "say what is known of a target, and from where",
    "new": "write a working skeleton of a kernel or a backend, with its tests",
    "check-backend": "hold an adapter against the contract",
    "scan": "record what a package launches, and compile it for every target",
    "reproduce": "write one file that shows a failure without this package, shrunk",
    "mutate": "put mistakes into the kernels, and say which cell catches each",
    "env": "create, list and remove environments for other compilers",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="portability",
        description="Triton kernels on every backend: one source, one matrix, one table.",
        epilog="commands:\n" + "\n".join(f"  {name:<13} {what}" for name, what in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"triton-portability {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    command = parser.parse_args(arguments[:1]).command
    module = importlib.import_module(f"portability.commands.{command.replace('-', '_')}")
    own = argparse.ArgumentParser(prog=f"portability {command}", description=module.__doc__)
    own.formatter_class = argparse.RawDescriptionHelpFormatter
    module.add_arguments(own)
    # What follows "--" is another program's: argparse's own REMAINDER would swallow options before it.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    try:
        args = own.parse_args(arguments[1:end], argparse.Namespace(rest=arguments[end + 1 :]))
        code: int = module.main(args)
    except (ValueError, LookupError, OSError, RuntimeError) as error:
        if isinstance(error, BrokenPipeError):  # a pager or head that has seen enough
            sys.stderr.close()
            return 0
        print(f"portability {command}: {_said(error)}", file=sys.stderr)
        return 2
    return code


def _said(error: Exception) -> str:
    """Return what went wrong; an error of the system's names its file first."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
