"""NVIDIA's machine code of a cubin as text, by `nvdisasm` of Triton's own wheel."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

LIMIT = 120.0  # seconds


class NoDisassemblerError(RuntimeError):
    """There is no disassembler, or it refuses the cubin; the message says which and what would help."""


def disassemble(cubin: bytes) -> str:
    """Return the instructions of every kernel in `cubin`. Raises `NoDisassemblerError`."""
    tool = _tool()
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(
                [tool, "--print-code", file.name], capture_output=True, text=True, timeout=LIMIT, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoDisassemblerError(f"sass: {tool.name} does not run: {error}") from error
    if done.returncode != 0:
        raise NoDisassemblerError(f"sass: {tool.name} refuses this cubin: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _tool() -> Path:
    """Return the path of `nvdisasm`: what Triton is told to use, else that of its wheel."""
    import triton

    told = getattr(getattr(getattr(triton, "knobs", None), "nvidia", None), "nvdisasm", None)
    here = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    path = Path(told.path) if told is not None else here
    if not path.exists():
        raise NoDisassemblerError(f"sass: no nvdisasm in Triton {triton.__version__}; its wheels from PyPI hold one")
    return path
