"""What targets differ in, read from the text of a compiled kernel's stages: no compiler is needed for it.

Sources of the names: PTX ISA, "Data Movement and Conversion Instructions"; AMD's instruction set architecture guides,
"Vector Memory" and "Data Share Operations", in LLVM's spelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from portability.binary import AMD, NVIDIA, matrix_instruction
from portability.stages.model import Compiled

LAYOUT = re.compile(r"^#(?!loc)(\w+) = (#.+)$", re.MULTILINE)
OPERATION = re.compile(r'(?:^|= )\s*"?((?:tt|ttg|ttng|nvws|amdg|amdgpu|triton_intel_gpu|ttig)\.\w+)', re.MULTILINE)
# What every kernel has in plenty, and what says nothing of a target.
PLAIN = re.compile(
    r"tt\.(?:func|return|call|splat|addptr|make_range|expand_dims|broadcast|get_program_id|get_num_programs|"
    r"bitcast|int_to_ptr|ptr_to_int|reduce\.return|scan\.return)$"
)

PTX_ACCESS = re.compile(r"\b(ld|st|red|atom)((?:\.|::)[\w.:]+)\s")
PTX_COPY = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\S*\s+\[[^\]]*\],\s*\[[^\]]*\],\s*(0x[0-9a-f]+|\d+)")
PTX_TENSOR = re.compile(r"\bcp(\.reduce)?\.async\.bulk(\.tensor)?\S*\b(shared::\w+\.global|global\.shared::\w+)")
PTX_MATRIX = re.compile(r"\b(ld|st)matrix\.sync\S*?\.x([124])\b")

AMD_ACCESS = re.compile(r"^\s*(global|buffer|flat|scratch|ds)_(load|store|read|write)(2)?(\w*)\s(.*)$", re.MULTILINE)
AMD_WORDS = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "short": 2, "ushort": 2, "sshort": 2}
AMD_WORDS |= {"byte": 1, "ubyte": 1, "sbyte": 1}
AMD_SIZE = re.compile(r"_(?:2addr_|tr_|tr\d_)?(?:d16_)?(?:hi_)?([biu])(\d+)")

LLVM_ACCESS = re.compile(
    r"\b(load|store) (?:volatile )?(?:<(\d+) x )?(i|half|bfloat|float|double|ptr)(\d*)>?.*?ptr addrspace\((\d)\)"
)
LLVM_BYTES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
LLVM_SPACE = {"1": "global", "3": "shared"}


def facts(made: Compiled) -> dict[str, list[str]]:
    """Return what is worth knowing of a compiled kernel: names in words -> lines, those that are not known left out."""
    r = made.resources
    found = {
        "constants": _joined(made.constants),
        "options": _joined(made.options),
        "configuration": [made.config] if made.config else [],
        "warps": [str(made.warps)] if made.warps else [],
        "layouts": layouts(made.stages.get("ttgir", "")),
        "operations": counted(operations(made.stages.get("ttgir", "") or made.stages.get("ttadapter", ""))),
        "matrix": _matrix(made),
        "accesses": counted(accesses(made.stages)),
    }
    if r is not None:
        found |= {
            "shared memory": _of(r.shared, r.shared_limit, "B"),
            "registers": [f"{r.registers} a thread"] if r.registers is not None else [],
            "spills": [f"{r.spills} B a thread"] if r.spills is not None else [],
            "tensor memory": [f"{r.tensor_memory} columns"] if r.tensor_memory else [],
            "buffers": [f"{name} {size} B" for name, size in r.buffers.items()],
            "threads": _of(r.threads, r.threads_limit, ""),
            "occupancy": [f"{r.occupancy:.0%}, by {r.occupancy_limit}"] if r.occupancy is not None else [],
        }
    found["stages"] = [", ".join(f"{n} {_size(made, n)}" for n in made.names)] if made.names else []
    found["error"] = made.error.strip().splitlines()[-1:]  # the front end shows the source first
    return {name: lines for name, lines in found.items() if lines}


def _joined(values: Mapping[str, str]) -> list[str]:
    return [", ".join(f"{k}={v}" for k, v in values.items())] if values else []


def _matrix(made: Compiled) -> list[str]:
    """The matrix instructions by name, and how many stand in the assembly, where it is one of the two known ones."""
    name = made.resources.matrix if made.resources is not None else ""
    name = name or matrix_instruction(made.stages)
    count = sum(1 for _ in NVIDIA.finditer(made.stages.get("ptx", "")))
    count += sum(1 for _ in AMD.finditer(made.stages.get("amdgcn", "")))
    return [f"{name}, {count} of them" if count else name] if name else []


def layouts(ttgir: str) -> list[str]:
    """Return the layouts of a module in Triton's GPU IR, as it writes them, without its dialect's prefix."""
    return [
        f"#{m[1]} = {re.sub(r'#ttn?g[.]', '', m[2])}" for m in LAYOUT.finditer(ttgir) if "shared_memory" not in m[2]
    ]


def operations(ir: str) -> Counter[str]:
    """Return how often each operation of Triton's dialects stands in a module, those of every kernel left out."""
    return Counter(name for name in OPERATION.findall(ir) if not PLAIN.match(name))


def accesses(stages: Mapping[str, str]) -> Counter[str]:
    """Return how often memory is accessed in which way and width: "load global 16 B". Each stands once in the text,
    however often a loop runs it. Read from the assembly, and from LLVM's IR where there is none.
    """
    if "ptx" in stages:
        return Counter(_ptx(stages["ptx"]))
    if "amdgcn" in stages:
        return Counter(_amdgcn(stages["amdgcn"]))
    return Counter(_llvm(stages.get("llir", "")))


def counted(found: Counter[str]) -> list[str]:
    """Return names with how often they stand, in the order of their names."""
    return [f"{name} × {times}" for name, times in sorted(found.items())]


def _ptx(text: str) -> Iterator[str]:
    verbs = {"ld": "load", "st": "store", "red": "atomic", "atom": "atomic"}
    for m in PTX_ACCESS.finditer(text):
        words = re.split(r"[.:]+", m[2].strip("."))
        space = next((w for w in words if w in ("global", "shared", "local", "param")), "generic")
        if space == "param":
            continue
        lanes = next((int(w[1:]) for w in words if re.fullmatch(r"v\d", w)), 1)
        bits = re.fullmatch(r"[a-z]+(\d+)(x2)?", words[-1])
        size = int(bits[1]) // 8 * (2 if bits[2] else 1) * lanes if bits else 0
        yield f"{verbs[m[1]]} {space} {size} B" if size else f"{verbs[m[1]]} {space}"
    for m in PTX_COPY.finditer(text):
        yield f"copy global to shared {int(m[1], 0)} B"
    for m in PTX_TENSOR.finditer(text):
        yield f"{'tensor' if m[2] else 'bulk'} {'reduction' if m[1] else 'copy'} {_direction(m[3])}"
    for m in PTX_MATRIX.finditer(text):
        yield f"{verbs[m[1]]} shared {4 * int(m[2])} B by {m[1]}matrix"


def _direction(words: str) -> str:
    return "shared to global" if words.startswith("global") else "global to shared"


def _amdgcn(text: str) -> Iterator[str]:
    for space, verb, two, rest, operands in AMD_ACCESS.findall(text):
        name = {"read": "load", "write": "store"}.get(verb, verb)
        where = {"ds": "shared", "scratch": "local"}.get(space, "global")
        size = _amd_bytes(rest) * (2 if two or "_2addr" in rest else 1)
        if "_lds" in rest or re.search(r"\blds\b", operands):
            yield f"copy global to shared {size} B"
        else:
            yield f"{name} {where} {size} B" if size else f"{name} {where}"


def _amd_bytes(rest: str) -> int:
    named = next((w for w in rest.split("_") if w in AMD_WORDS), "")
    if named:
        return AMD_WORDS[named]
    sized = AMD_SIZE.search(rest)
    return int(sized[2]) // 8 if sized else 0


def _llvm(text: str) -> Iterator[str]:
    for verb, lanes, kind, bits, space in LLVM_ACCESS.findall(text):
        if space in LLVM_SPACE:
            each = LLVM_BYTES.get(kind) or max(1, int(bits or 8) // 8)
            yield f"{verb} {LLVM_SPACE[space]} {each * int(lanes or 1)} B"


def _of(used: int | None, limit: int | None, unit: str) -> list[str]:
    if used is None:
        return []
    return [f"{used} of {limit} {unit}".rstrip() if limit is not None else f"{used} {unit}".rstrip()]


def _size(made: Compiled, stage: str) -> str:
    if stage in made.stages:
        return f"{made.stages[stage].count(chr(10))} lines"
    return f"{len(made.binaries[stage]) * 3 // 4} B"
