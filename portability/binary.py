"""Registers, spills, shared memory and occupancy out of a cubin or an hsaco, with no GPU and no vendor's tool.

Sources: for cubins, the `EIATTR_*` records of `.nv.info` (checked against `cuobjdump --dump-resource-usage`); for
hsacos, the `AMDGPU` note of LLVM's "User Guide for AMDGPU Backend", "Code Object Metadata".
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from portability.backend import Launch, Limits
from portability.elf import Elf
from portability.model import Resources


@dataclass(frozen=True)
class Binary:
    """What one kernel's binary says of itself."""

    name: str
    registers: int  # per thread; on CDNA vector and accumulation registers together, which share one file
    spills: int  # bytes per thread written to local memory for want of registers
    stack: int  # bytes of local memory per thread
    shared: int  # bytes of statically allocated shared memory, without what the system reserves
    threads: int | None = None  # per program, where it is fixed


# ------------------------------------------------------------------------------------------------- reading

NV_FORMAT_SIZED = 0x04  # EIFMT_SVAL: two bytes of size, then the value; every other format is four bytes in all
NV_REGISTERS, NV_FRAME, NV_THREADS = 0x2F, 0x11, 0x10  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE, EIATTR_REQNTID
NV_RESERVED = 1024  # bytes: from compute capability 9.0 on `.nv.shared.<kernel>` begins with the system's own
SPILLS = re.compile(r"(\d+) bytes spill stores")


def read_cubin(cubin: bytes, ptxas_log: str = "", kernel: str = "") -> Binary:
    """Return what `kernel` (default: the first) in a cubin needs.

    Spills are the assembler's count (of the whole module) where its log is given, else the stack frame: Triton
    declares no local arrays, so that nothing else lies there. Raises `ValueError` if it is no cubin with that kernel.
    """
    elf = Elf(cubin)
    symbols = elf.symbols()
    registers: dict[str, int] = {}
    frames: dict[str, int] = {}
    for attribute, value in _nv_records(elf.section(".nv.info").data):
        if attribute in (NV_REGISTERS, NV_FRAME):
            symbol, number = struct.unpack("<II", value)
            (registers if attribute == NV_REGISTERS else frames)[symbols[symbol]] = number
    name = kernel or next((s[9:] for s in elf.sections if s.startswith(".nv.info.")), "")
    if name not in registers:
        raise ValueError(f"no kernel {name!r} in this cubin; there are {', '.join(registers) or 'none'}")
    threads = None
    for attribute, value in _nv_records(elf.section(f".nv.info.{name}").data):
        if attribute == NV_THREADS:
            x, y, z = struct.unpack("<III", value)
            threads = x * y * z
    static = elf.sections.get(f".nv.shared.{name}")
    reserved = NV_RESERVED if ".nv.shared.reserved.0" in elf.sections else 0
    shared = max(0, static.size - reserved) if static is not None else 0
    stack = frames.get(name, 0)
    logged = [int(n) for n in SPILLS.findall(ptxas_log)]
    return Binary(name, registers[name], sum(logged) if logged else stack, stack, shared, threads)


def read_hsaco(hsaco: bytes, kernel: str = "") -> Binary:
    """Return what `kernel` (default: the first) in an hsaco needs.

    Spills are spilled vector registers of four bytes; scalar registers spill into vector registers and move no memory.
    Raises `ValueError` if it is no hsaco with that kernel.
    """
    kernels = {k[".name"]: k for k in _amdgpu_metadata(hsaco)["amdhsa.kernels"]}
    name = kernel or next(iter(kernels), "")
    if name not in kernels:
        raise ValueError(f"no kernel {name!r} in this hsaco; there are {', '.join(kernels) or 'none'}")
    k = kernels[name]
    return Binary(
        name=name,
        registers=k[".vgpr_count"],
        spills=4 * k.get(".vgpr_spill_count", 0),
        stack=k[".private_segment_fixed_size"],
        shared=k[".group_segment_fixed_size"],
        threads=k.get(".max_flat_workgroup_size"),
    )


def _nv_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == NV_FORMAT_SIZED:
            yield attribute, data[at : at + size]
            at += size


def _amdgpu_metadata(hsaco: bytes) -> Any:
    import msgpack

    for owner, content in Elf(hsaco).notes():
        if owner == "AMDGPU":
            return msgpack.unpackb(content, strict_map_key=False)
    raise ValueError("no AMDGPU note in this binary: not an hsaco")


# ----------------------------------------------------------------------------------------------- occupancy


def occupancy(
    limits: Limits, registers: int, shared: int, warps: int, tensor_memory: int = 0
) -> tuple[float, str] | None:
    """Return the fraction of a compute unit's warps that programs can fill, and what bounds it; None if not known.

    `registers` per thread, `shared` bytes and `warps` per program. What bounds is "warps", "registers", "shared",
    "blocks", "barriers" or "tensor memory". With ⌈x⌉g for x rounded up to a multiple of g, programs that fit are

        registers  partitions · ⌊registers of a partition / (⌈registers⌉granule · warp)⌋ / warps
        shared     shared memory of the unit / ⌈shared + reserved⌉granule
        warps      warps of the unit / warps
        blocks     the unit's own number, and on AMD that of its barriers, which single warps do not need

    each rounded down: NVIDIA's cuda_occupancy.h, `cudaOccMaxBlocksPerSM{Regs,Smem,Warps}Limit`; AMD's in LLVM,
    AMDGPUBaseInfo.cpp, `getNumWavesPerEUWithNumVGPRs`, `getMaxWorkGroupsPerCU`, and `getLdsDwGranularity`. Columns of
    tensor memory do not bound what is resident, but a program waits in `tcgen05.alloc` until they are free (PTX ISA).
    """
    if limits.unit_warps is None or limits.registers is None or limits.warp is None or warps < 1:
        return None
    a_warp = max(1, _up(registers, limits.register_granule)) * limits.warp
    fits = {
        "warps": limits.unit_warps // warps,
        "registers": limits.registers // limits.partitions // a_warp * limits.partitions // warps,
    }
    allocated = _up(shared + limits.shared_reserved, limits.shared_granule)
    if limits.unit_shared_memory is not None and allocated:
        fits["shared"] = limits.unit_shared_memory // allocated
    if limits.unit_blocks is not None:
        fits["blocks"] = limits.unit_blocks
    if limits.unit_barriers is not None and warps > 1:
        fits["barriers"] = limits.unit_barriers
    if limits.tensor_memory is not None and tensor_memory:
        fits["tensor memory"] = limits.tensor_memory // tensor_memory
    bound = min(fits, key=lambda what: fits[what])
    return fits[bound] * warps / limits.unit_warps, bound


def _up(value: int, granule: int) -> int:
    return -(-value // granule) * granule


# ----------------------------------------------------------------------------------------------- the assembly

DOT = re.compile(r"\btt\.dot(_scaled)?\b")
NVIDIA = re.compile(r"\b(wgmma)\.mma_async\.(\S+)|\b(mma\.sync)\.(\S+)|\b(tcgen05\.mma)\.(\S+)|\b(dp[24]a)\.(\S+)")
AMD = re.compile(r"\bv_(?:mfma|smfmac|wmma|swmmac)_\w+|\bv_dot\d\w+")
# A text in which no word of a pattern stands is not searched for it: each pattern has its words.
NVIDIA_UNITS = ("mma", "dp2a", "dp4a")
AMD_UNITS = ("v_mfma", "v_smfmac", "v_wmma", "v_swmmac", "v_dot")
OPERAND = re.compile(r"^(?:s|u|b|f|bf|tf|u?e\dm)\d+$")  # f16, bf16, tf32, e4m3, s8, f64


def matrix_instruction(asm: Mapping[str, str | bytes]) -> str:
    """Return the matrix instruction in a kernel's assembly (its `asm`, by stage), "scalar" if `dot` became none, and
    "" if there is no `dot`.

    NVIDIA's is named with its operands' type, as in "wgmma f16", "mma.sync e4m3", "tcgen05.mma f8f6f4" (the unit's
    own name for a kind); AMD's is the whole name, as in "v_mfma_f32_32x32x8_f16". A float8 product whose instruction
    takes f16 is emulated. Several are joined by " + ", the most frequent first.
    """
    ptx, amdgcn = _text(asm, "ptx", *NVIDIA_UNITS), _text(asm, "amdgcn", *AMD_UNITS)
    found = Counter(_nvidia_name(m) for m in NVIDIA.finditer(ptx)) + Counter(AMD.findall(amdgcn))
    if found:
        return " + ".join(name for name, _ in found.most_common())
    return "scalar" if DOT.search(_text(asm, "ttir", "tt.dot")) else ""


# Words of a PTX instruction that say where, how ordered and how rounded, and not what it does.
PTX_WORDS = re.compile(
    r"\.(?:global|gpu|cta|sys|cluster|acq_rel|acquire|release|relaxed|noftz|rn|rz|satfinite|relu|shared(?:::\w+)?)\b"
)
PTX_SPECIAL = re.compile(
    r"\b(?:atom|red)\.[\w.:]+|\bcvt\.[\w.]*(?:e4m3|e5m2|e2m1)[\w.]*|\bcp(?:\.reduce)?\.async\.bulk\.tensor\b"
)
AMD_SPECIAL = re.compile(
    r"\b(?:global|flat|buffer)_atomic_\w+|\bv_cvt_\w*(?:fp8|bf8|fp4)\w*|\btensor_(?:load_to_lds|store_from_lds)\b"
)
PTX_MARKS = ("atom", "red.", "e4m3", "e5m2", "e2m1", "bulk.tensor")
AMD_MARKS = ("_atomic_", "fp8", "bf8", "fp4", "tensor_")


def special_instructions(asm: Mapping[str, str | bytes]) -> tuple[str, ...]:
    """Return the instructions by which a kernel's assembly does what others do in several steps, sorted: atomics
    ("atom.cas.b32", "global_atomic_add_f32"), conversions of float8 and copies of whole tensors.
    """
    ptx, amdgcn = _text(asm, "ptx", *PTX_MARKS), _text(asm, "amdgcn", *AMD_MARKS)
    found = {PTX_WORDS.sub("", m) for m in PTX_SPECIAL.findall(ptx)}
    return tuple(sorted(found | set(AMD_SPECIAL.findall(amdgcn))))


def _text(asm: Mapping[str, str | bytes], stage: str, *words: str) -> str:
    """Return a stage's text, "" where none of `words` is in it: to see that takes a hundredth of a pattern's time."""
    text = asm.get(stage, "")
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    return text if any(word in text for word in words) else ""


def _nvidia_name(match: re.Match[str]) -> str:
    name, suffix = (g for g in match.groups() if g)
    kind = re.search(r"kind::(\w+)", suffix)
    if name == "tcgen05.mma" and kind:
        return f"{name} {kind[1]}"
    parts = suffix.split(".")
    types = [p for p in parts if OPERAND.match(p)]
    operand = types[0] if name.startswith("dp") else types[1]  # D's type comes first, then A's
    return f"{name} {operand}"


# ------------------------------------------------------------------------------------------------ a launch


def resources(launch: Launch, limits: Limits) -> Resources | None:
    """Return what a recorded launch's binary needs of `limits`; None where the launch compiled to neither vendor's."""
    asm = getattr(launch.compiled, "asm", {})
    metadata = getattr(launch.compiled, "metadata", None)
    name = getattr(metadata, "name", "")
    if "cubin" in asm:
        binary = read_cubin(asm["cubin"], launch.ptxas, name)
    elif "hsaco" in asm:
        binary = read_hsaco(asm["hsaco"], name)
    else:
        return None
    warp = limits.warp or 32
    threads = binary.threads or launch.num_warps * warp
    shared = binary.shared + getattr(metadata, "shared", 0)
    columns = getattr(metadata, "tmem_size", None) or 0
    fraction, bound = occupancy(limits, binary.registers, shared, -(-threads // warp), columns) or (None, "")
    return Resources(
        kernel=launch.kernel,
        registers=binary.registers,
        spills=binary.spills,
        stack=binary.stack,
        shared=shared,
        shared_limit=limits.shared_memory,
        threads=threads,
        threads_limit=limits.threads,
        tensor_memory=columns or None,
        occupancy=fraction,
        occupancy_limit=bound,
        matrix=matrix_instruction(asm),
        special=special_instructions(asm),
        hash=launch.hash[:16],
        config=launch.config,
    )
