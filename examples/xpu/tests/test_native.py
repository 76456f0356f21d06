"""What ocloc says and what it made are two things: told apart with a program in its place, and with ocloc itself."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from portability_xpu import native, spirv

MODULE = Path(__file__).with_name("double_kernel.spv").read_bytes()  # of xpu_cases.double, by triton-xpu 3.3.0b1
needs_ocloc = pytest.mark.skipif(shutil.which("ocloc") is None, reason="apt-get install intel-opencl-icd")


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a shell script in the place of ocloc."""
    program = folder / "ocloc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(native, "program", lambda: str(program))


def compiled(limit: float = native.LIMIT) -> native.Native:
    return native.compile_spirv(MODULE, "double_kernel", "pvc", "", limit)


def test_an_ocloc_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(native.OclocTimeoutError, match=r"^ocloc: no end after 0\.2 s$"):
        compiled(limit=0.2)


def test_a_time_out_is_an_outcome_and_no_fault_of_the_harness() -> None:
    from portability.outcomes import OUTCOMES

    assert any(c.__name__ in OUTCOMES for c in native.OclocTimeoutError.__mro__)


def test_success_without_a_binary_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "echo Build succeeded.")
    with pytest.raises(native.EmptyBinaryError, match="no code of double_kernel in its 0 bytes"):
        compiled()


def test_a_refusal_tells_what_ocloc_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = (
        "Compilation from IR - skipping loading of FCL\\nin kernel: k\\nerror: no double\\nCommand was: ocloc compile"
    )
    stand_in(tmp_path, monkeypatch, f"printf '{told}'; exit 245")
    with pytest.raises(native.NativeCompilerError) as raised:
        compiled()
    assert str(raised.value) == "ocloc: error: no double\nin kernel: k"


@needs_ocloc
@pytest.mark.parametrize(("compiler", "disassembler"), [("pvc", "pvc"), ("dg2-g10", "dg2")])
def test_a_whole_module_has_its_kernel_in_the_binary(compiler: str, disassembler: str) -> None:
    made = native.compile_spirv(MODULE, "double_kernel", compiler, "")
    assert len(made.code) > 100
    assert made.spills == 0
    assert "send" in native.disassemble(made.binary, disassembler)


@needs_ocloc
def test_a_truncated_module_succeeds_with_ocloc_and_fails_here() -> None:
    cut = MODULE[: len(MODULE) // 3 // 4 * 4]
    with pytest.raises(native.EmptyBinaryError):
        native.compile_spirv(cut, "double_kernel", "pvc", "")


@needs_ocloc
def test_a_device_that_ocloc_does_not_know_is_not_claimed() -> None:
    assert native.knows("pvc")
    assert not native.knows("no-such-device")


def test_a_binary_that_is_none_has_no_kernels() -> None:
    assert not list(native.kernels(b""))
    assert not list(native.kernels(b"\x7fELF and no more"))


# --------------------------------------------------------------------------------------------------------- SPIR-V


def module(*instructions: tuple[int, ...]) -> bytes:
    """A module of instructions, each an opcode and its operands."""
    words = [0x07230203, 0x00010400, 0, 10, 0]
    for opcode, *operands in instructions:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


def words_of(text: str) -> tuple[int, ...]:
    raw = text.encode() + b"\0" * (4 - len(text) % 4)
    return struct.unpack(f"<{len(raw) // 4}I", raw)


def test_a_module_without_assembly_has_none() -> None:
    assert not spirv.has_assembly(MODULE)
    assert spirv.with_other_assembly(MODULE) == MODULE


def test_other_letters_stand_in_the_place_of_assembly_and_nothing_else_changes() -> None:
    made = module(
        (spirv.ASSEMBLY, 1, 2, 3, 4, *words_of("rcp $0, $1;"), *words_of("=f,f")), (spirv.ASSEMBLY_CALL, 1, 5, 2)
    )
    other = spirv.with_other_assembly(made)
    assert spirv.has_assembly(made)
    assert b"qqq $0, $1;\0" in other
    assert b"=f,f\0" in other
    assert len(other) == len(made)
