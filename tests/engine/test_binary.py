"""What is read out of binaries, checked against the compilers' own words about them."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# (a jitted kernel is no Python to a type checker)

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from portability import binary
from portability.backend import Launch, Limits, discover
from portability.binary import Binary, matrix_instruction, occupancy, read_cubin, read_hsaco, resources
from portability.model import Resources
from tests.engine.drawn import given, st

NVIDIA = ["cuda:80", "cuda:90", "cuda:100"]
AMD = ["hip:gfx90a", "hip:gfx950", "hip:gfx1100", "hip:gfx1250"]


@triton.jit
def product_kernel(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(x_ptr + at), tl.load(y_ptr + at)))


@triton.jit
def copy_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


def number(pattern: str, text: str) -> int:
    """Return the number that `pattern` captures in `text`."""
    match = re.search(pattern, text)
    assert match is not None, pattern
    return int(match[1])


def compiled(target: str, kernel: Any, *tensors: torch.Tensor, **options: Any) -> tuple[Launch, Resources, Limits]:
    """Return the record of one launch, compiled for `target`."""
    backend = discover()["cuda" if target.startswith("cuda") else "rocm"]
    chosen = next(t for t in backend.status() if t.id == target)
    with backend.open(chosen) as session:
        kernel[(1,)](*tensors, **options)
    found = session.resources(session.launches[0])
    assert found is not None
    return session.launches[0], found, backend.limits_of(target)


def product(
    target: str, size: int = 64, dtype: Any = torch.float16, num_warps: int = 4
) -> tuple[Launch, Resources, Limits]:
    x = torch.zeros(size, size, dtype=dtype)
    return compiled(target, product_kernel, x, x, torch.zeros(size, size), SIZE=size, num_warps=num_warps)


@pytest.mark.parametrize("target", NVIDIA)
def test_registers_and_stack_of_a_cubin_are_the_assemblers(target: str) -> None:
    launch, found, _ = product(target)
    assert found.registers == number(r"Used (\d+) registers", launch.ptxas)
    assert found.stack == number(r"(\d+) bytes stack frame", launch.ptxas)


@pytest.mark.parametrize("target", AMD)
def test_registers_and_stack_of_an_hsaco_are_the_assemblys(target: str) -> None:
    launch, found, _ = product(target)
    text = launch.compiled.asm["amdgcn"]
    assert found.registers == number(r"; (?:Total)?NumVgprs: (\d+)(?![\s\S]*; TotalNumVgprs)", text)
    assert found.stack == number(r"; ScratchSize: (\d+)", text)


@pytest.mark.parametrize("target", AMD)
@pytest.mark.parametrize(("size", "num_warps"), [(16, 4), (64, 4), (32, 1)])
def test_registers_bound_occupancy_as_llvm_says(target: str, size: int, num_warps: int) -> None:
    launch, found, limits = product(target, size, num_warps=num_warps)
    waves = number(r"; Occupancy: (\d+)", launch.compiled.asm["amdgcn"])  # per execution unit
    occupied = occupancy(limits, found.registers or 0, 0, 1)
    assert occupied is not None
    assert limits.unit_warps is not None
    assert occupied[0] * limits.unit_warps / limits.partitions == waves


def test_spills_are_the_assemblers_where_its_log_is_given() -> None:
    x = torch.zeros(128, 128, dtype=torch.float16)
    launch, found, limits = compiled("cuda:80", product_kernel, x, x, torch.zeros(128, 128), SIZE=128, maxnreg=64)
    logged = number(r"(\d+) bytes spill stores", launch.ptxas)
    assert found.spills == logged > 0
    launch.ptxas = ""
    without = resources(launch, limits)
    assert without is not None
    assert without.spills == found.stack


@pytest.mark.slow  # what spills takes a while to compile
def test_spills_of_an_hsaco_are_its_vector_registers_in_bytes() -> None:
    launch, found, _ = product("hip:gfx1100", size=128, num_warps=2)
    assert found.spills == 4 * number(r"\.vgpr_spill_count: +(\d+)", launch.compiled.asm["amdgcn"]) > 0


def test_what_the_system_reserves_is_not_the_kernels_shared_memory() -> None:
    _, found, _ = compiled("cuda:90", copy_kernel, torch.zeros(128), torch.zeros(128), SIZE=128)
    assert found.shared == 0


def test_shared_memory_is_what_triton_checks_at_launch() -> None:
    launch, found, limits = product("cuda:90")
    assert found.shared == launch.compiled.metadata.shared > 0
    assert found.shared_limit == limits.shared_memory


@pytest.mark.parametrize(("target", "threads"), [("cuda:90", 256), ("hip:gfx90a", 512), ("hip:gfx1100", 256)])
def test_threads_are_those_of_the_binary(target: str, threads: int) -> None:
    assert product(target, num_warps=8)[1].threads == threads


def test_tensor_memory_is_counted_in_columns() -> None:
    assert product("cuda:100")[1].tensor_memory == 64
    assert product("cuda:90")[1].tensor_memory is None


@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        ("cuda:75", torch.float16, "scalar"),
        ("cuda:80", torch.float16, "mma.sync f16"),
        ("cuda:80", torch.float8_e5m2, "mma.sync f16"),  # emulated
        ("cuda:89", torch.float8_e4m3fn, "mma.sync e4m3"),
        ("cuda:90", torch.bfloat16, "wgmma bf16"),
        ("cuda:100", torch.float16, "tcgen05.mma f16"),
        ("hip:gfx90a", torch.float16, "v_mfma_f32_32x32x8f16"),
        ("hip:gfx942", torch.float8_e4m3fn, "v_mfma_f32_32x32x8_f16"),  # emulated
        ("hip:gfx1201", torch.float8_e4m3fn, "v_wmma_f32_16x16x16_fp8_fp8"),
        ("hip:gfx1100", torch.float32, "scalar"),
    ],
)
def test_the_matrix_instruction_tells_native_from_emulated(target: str, dtype: Any, instruction: str) -> None:
    assert product(target, dtype=dtype, size=64)[1].matrix == instruction


def test_a_kernel_without_a_product_has_no_matrix_instruction() -> None:
    assert compiled("cuda:80", copy_kernel, torch.zeros(128), torch.zeros(128), SIZE=128)[1].matrix == ""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {", "mma.sync s8"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {", "mma.sync f64"),
        ("wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {", "wgmma tf32"),
        ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [", "tcgen05.mma mxf8f6f4"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0 {", "mma.sync e4m3"),
        ("dp4a.s32.s32 r0, r1, r2, r3;", "dp4a s32"),
    ],
)  # fmt: skip
def test_nvidias_instructions_are_named_with_their_operands_type(line: str, name: str) -> None:
    assert matrix_instruction({"ptx": f"\t{line}"}) == name


def test_several_matrix_instructions_are_all_named_the_most_frequent_first() -> None:
    assert matrix_instruction({"amdgcn": "v_wmma_a v0\nv_wmma_b v1\nv_wmma_b v2"}) == "v_wmma_b + v_wmma_a"


# Hand-made from the formulas: a multiprocessor of 64 warps, 65,536 registers in four parts, 32 blocks, 167,936 bytes.
A100 = Limits(
    warp=32, registers=65536, register_granule=8, unit_warps=64, unit_blocks=32,
    unit_shared_memory=167936, shared_granule=128, shared_reserved=1024, tensor_memory=512,
)  # fmt: skip
MI300X = Limits(
    warp=64, registers=4 * 512 * 64, register_granule=8, unit_warps=32, unit_barriers=16,
    unit_shared_memory=65536, shared_granule=512,
)  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "registers", "shared", "warps", "expected"),
    [
        (A100, 32, 0, 8, (1.0, "warps")),
        (A100, 128, 0, 8, (0.25, "registers")),
        (A100, 200, 0, 2, (0.125, "registers")),  # ⌊16384 / 6400⌋ = 2 warps a part: 8 in all, not ⌊65536 / 6400⌋ = 10
        (A100, 33, 0, 4, (0.75, "registers")),  # 33 are given as 40
        (A100, 16, 0, 1, (0.5, "blocks")),
        (A100, 16, 41984, 4, (0.1875, "shared")),  # four fit, were it not for the reserved 1,024 of each
        (A100, 255, 0, 16, (0.0, "registers")),  # does not fit at all
        (MI300X, 64, 0, 4, (1.0, "warps")),
        (MI300X, 65, 0, 4, (0.875, "registers")),
        (MI300X, 64, 32768, 8, (0.5, "shared")),
        (MI300X, 8, 0, 1, (1.0, "warps")),  # single waves need no barrier
    ],
)
def test_occupancy(limits: Limits, registers: int, shared: int, warps: int, expected: tuple[float, str]) -> None:
    assert occupancy(limits, registers, shared, warps) == expected


def test_tensor_memory_bounds_occupancy() -> None:
    assert occupancy(A100, 32, 0, 4, tensor_memory=256) == (0.125, "tensor memory")


def test_occupancy_is_not_guessed() -> None:
    assert occupancy(Limits(), 32, 0, 4) is None


@pytest.mark.parametrize("read", [read_cubin, read_hsaco])
def test_what_is_no_binary_is_refused(read: Callable[[bytes], Binary]) -> None:
    with pytest.raises(ValueError, match="not an ELF file"):
        read(b"nonsense")


def test_a_kernel_that_is_not_there_is_refused_with_those_that_are() -> None:
    launch, _, _ = product("cuda:80")
    with pytest.raises(ValueError, match="no kernel 'absent' in this cubin; there are product_kernel"):
        read_cubin(launch.compiled.asm["cubin"], kernel="absent")
    with pytest.raises(ValueError, match="AMDGPU"):
        read_hsaco(launch.compiled.asm["cubin"])


def test_a_launch_that_compiled_to_nothing_has_no_resources() -> None:
    assert resources(Launch("kernel"), Limits()) is None


@triton.jit
def overload_kernel(x_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(x_ptr + at, tl.exp(tl.load(x_ptr + at)))


def test_a_refused_specialisation_has_not_the_binary_of_another() -> None:
    """What a kernel was compiled to for float32 says nothing of float16, which the language refuses."""
    backend = discover()["cuda"]
    with backend.open(next(t for t in backend.status() if t.id == "cuda:80")) as session:
        overload_kernel[(1,)](torch.zeros(64), SIZE=64)
        with pytest.raises(triton.CompilationError):
            overload_kernel[(1,)](torch.zeros(64, dtype=torch.float16), SIZE=64)
    taken, refused = session.launches
    assert taken.hash
    assert (refused.compiled, refused.hash) == (None, "")


@triton.jit
def long_product_kernel(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, SIZE), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :])
    y = tl.load(y_ptr + k[:, None] * SIZE + m[None, :])
    tl.store(out_ptr + m[:, None] * SIZE + m[None, :], tl.dot(x, y))


def test_what_a_launch_needs_too_much_of_is_known_however_often_it_is_refused() -> None:
    """The second time, this process holds the kernel, and a smaller one was compiled in between."""
    backend = discover()["rocm"]
    with backend.open(next(t for t in backend.status() if t.id == "hip:gfx942")) as session:
        for k in (4096, 64, 4096):
            x, y = torch.zeros(16, k, dtype=torch.float16), torch.zeros(k, 16, dtype=torch.float16)
            with contextlib.suppress(triton.OutOfResources):
                long_product_kernel[(1,)](x, y, torch.zeros(16, 16), SIZE=16, K=k)
    first, between, again = (found.shared for found in map(session.resources, session.launches) if found is not None)
    assert first == again
    assert (first or 0) > (backend.limits_of("hip:gfx942").shared_memory or 0) > (between or 0)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (binary.NVIDIA, binary.NVIDIA_UNITS), (binary.AMD, binary.AMD_UNITS),
        (binary.PTX_SPECIAL, binary.PTX_MARKS), (binary.AMD_SPECIAL, binary.AMD_MARKS),
    ],
    ids=["nvidia", "amd", "ptx", "amdgcn"],
)  # fmt: skip
@given(data=st.data())
def test_a_word_of_a_pattern_is_in_all_that_the_pattern_finds(
    pattern: re.Pattern[str], words: tuple[str, ...], data: st.DataObject
) -> None:
    """What has none of the words is not searched: one that is missing would hide an instruction."""
    found = data.draw(st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii")))
    assert any(word in found for word in words)


@pytest.mark.parametrize(
    ("stage", "line", "name"),
    [
        ("ptx", "dp4a.s32.u32 %r1, %r2, %r3, %r4;", "dp4a s32"),
        ("amdgcn", "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11]", "v_swmmac_f32_16x16x32_f16"),
        ("amdgcn", "v_smfmac_f32_16x16x32_f16 v[0:7], v[8:11]", "v_smfmac_f32_16x16x32_f16"),
        ("amdgcn", "v_dot2_f32_f16 v0, v1, v2, v0", "v_dot2_f32_f16"),
    ],
)
def test_a_text_with_one_instruction_alone_is_searched(stage: str, line: str, name: str) -> None:
    assert matrix_instruction({stage: f"    {line}\n"}) == name
