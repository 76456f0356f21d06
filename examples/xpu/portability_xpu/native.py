"""Native code out of SPIR-V by `ocloc`, Intel's offline compiler, and what can be read in it without a GPU.

ocloc says "Build succeeded" where it made nothing, drops inline assembly that it does not know, and may not come back.
So its binary is read: format of Intel's compute runtime 22.43, "Intel(R) OpenCL Device Binary" with patch tokens.
"""

from __future__ import annotations

import ctypes.util
import re
import shutil
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from portability.elf import Elf

LIMIT = 120.0  # seconds: a kernel takes half a second; what takes this long does not end
LARGE_REGISTERS = "-cl-intel-256-GRF-per-thread"
SECTION = "Intel(R) OpenCL Device Binary"
PROGRAM = struct.Struct("<4s6I")  # magic, version, device, pointer bytes, number of kernels, stepping, patch list bytes
KERNEL = struct.Struct("<IQ7I")  # checksum, hash; bytes of: name, patch list, code, three heaps; code without padding
SPILLED = re.compile(r"kernel (\S+)\s+compiled SIMD(\d+) allocated (\d+) regs and spilled around (\d+)")
PRODUCT = re.compile(r"\b(dpasw?)\.\d+x\d+ .*\br[\d.]+:(\w+)\s+r[\d.]+:\w+")  # the types of both operands come last


class NativeCompilerError(RuntimeError):
    """ocloc refused the module; the message holds what it printed."""


class EmptyBinaryError(RuntimeError):
    """ocloc succeeded, and the kernel is not in what it made."""


class OclocTimeoutError(subprocess.TimeoutExpired):
    """ocloc did not come back."""

    def __str__(self) -> str:
        return f"ocloc: no end after {self.timeout:g} s"


@dataclass(frozen=True)
class Native:
    """One kernel's native code."""

    binary: bytes
    code: bytes  # of the kernel alone, whose text `assembly` is
    spills: int = 0  # bytes, as ocloc says "around"
    registers: int | None = None  # a thread, where ocloc says so: it does when it spills
    assembly: str = ""  # empty where no disassembler is

    @property
    def matrix(self) -> str:
        """The matrix instructions with the type of their operands, the most frequent first; "scalar" for none."""
        found = Counter(f"{m[1]} {m[2]}" for m in PRODUCT.finditer(self.assembly))
        return " + ".join(name for name, _ in found.most_common()) or "scalar"


@cache
def program() -> str | None:
    """Return the path of ocloc, where it is installed."""
    return shutil.which("ocloc")


@cache
def release() -> str:
    """Return the version of ocloc's driver, empty where it cannot say."""
    with tempfile.TemporaryDirectory() as folder:
        _run([program() or "ocloc", "query", "OCL_DRIVER_VERSION"], folder, LIMIT)
        said = Path(folder, "OCL_DRIVER_VERSION")
        return said.read_text().strip("\0 \n") if said.exists() else ""


@cache
def knows(device: str) -> bool:
    """Return whether ocloc is here and compiles for `device`."""
    if program() is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return _run([program() or "", "ids", device], folder, LIMIT).returncode == 0


def compile_spirv(spirv: bytes, kernel: str, device: str, flags: str, limit: float = LIMIT) -> Native:
    """Return `kernel` of a SPIR-V module as native code for ocloc's `device`, with 256 registers where 128 spill.

    Raises `NativeCompilerError` where ocloc refuses, `EmptyBinaryError` where it made no code of the kernel,
    `OclocTimeoutError` after `limit` seconds.
    """
    made = _compile_once(spirv, kernel, device, flags, limit)
    if made.spills and LARGE_REGISTERS not in flags:  # as triton-xpu's own driver does when it loads the module
        larger = _compile_once(spirv, kernel, device, f"{flags} {LARGE_REGISTERS}".strip(), limit)
        return min(made, larger, key=lambda n: n.spills)
    return made


def _compile_once(spirv: bytes, kernel: str, device: str, flags: str, limit: float) -> Native:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.spv")
        source.write_bytes(spirv)
        command = [program() or "ocloc", "compile", "-file", str(source), "-spirv_input", "-device", device,
                   "-out_dir", folder, *(["-options", flags] if flags else [])]  # fmt: skip
        done = _run(command, folder, limit)
        said = (done.stdout + done.stderr).replace(f"{folder}/", "")
        found = sorted(Path(folder).glob("*.bin"))
        if done.returncode != 0:
            raise NativeCompilerError(_refusal(said, done.returncode))
        binary = found[0].read_bytes() if found else b""
    code = dict(kernels(binary)).get(kernel, b"")
    if not code:
        raise EmptyBinaryError(f"ocloc succeeds, and there is no code of {kernel} in its {len(binary)} bytes")
    spilled = next((m for m in SPILLED.finditer(said) if m[1] == kernel), None)
    return Native(binary, code, int(spilled[4]) if spilled else 0, int(spilled[3]) if spilled else None)


def _refusal(said: str, code: int) -> str:
    """Return what ocloc says is wrong, once each, without the words around it and its command line."""
    lines = dict.fromkeys(line.strip() for line in said.splitlines() if line.strip())
    told = [line for line in lines if not line.startswith(("Command was:", "Compilation from IR", "Build "))]
    errors = [line for line in told if line.startswith("error:")]
    return "ocloc: " + "\n".join([*errors, *(line for line in told if line not in errors)] or [f"exit code {code}"])


def kernels(binary: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield name and code of each kernel in a binary of ocloc."""
    try:
        data = Elf(binary).section(SECTION).data
    except ValueError:  # no ELF file, or one without Intel's section
        return
    if len(data) < PROGRAM.size:
        return
    _, _, _, _, count, _, patches = PROGRAM.unpack_from(data)
    at = PROGRAM.size + patches
    for _ in range(count):
        _, _, name, tokens, code, general, dynamic, surface, own = KERNEL.unpack_from(data, at)
        at += KERNEL.size
        yield data[at : at + name].rstrip(b"\0").decode(), data[at + name : at + name + own]
        at += name + code + general + dynamic + surface + tokens


def disassemble(binary: bytes, device: str) -> str:
    """Return the instructions of a binary for the disassembler's `device`; empty where there is no disassembler.

    ocloc looks for `libiga64.so`, which Debian installs under its versioned name alone.
    """
    library = ctypes.util.find_library("iga64")
    if library is None or program() is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        source, dump = Path(folder, "kernel.bin"), Path(folder, "dump")
        source.write_bytes(binary)
        dump.mkdir()
        Path(folder, "libiga64.so").symlink_to(_located(library))
        command = [program() or "", "disasm", "-file", str(source), "-device", device, "-dump", str(dump)]
        _run(command, folder, LIMIT, {"LD_LIBRARY_PATH": folder})
        return "\n".join(path.read_text(errors="replace") for path in sorted(dump.glob("*.asm")))


def _located(library: str) -> Path:
    """Return the path of a shared library that the dynamic linker knows by name."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"{re.escape(library)} .*=> (\S+)", listed)
    return Path(found[1] if found else library)


def _run(
    command: list[str], folder: str, limit: float, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    import os

    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=folder, timeout=limit, check=False,
            env={**os.environ, **(variables or {})},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise OclocTimeoutError(error.cmd, limit) from None
