"""The CUDA and ROCm adapters: which devices are seen, what the rest is good for, and what their tables claim."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# (a jitted kernel is no Python to a type checker)

import ctypes
import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from portability import kernel
from portability.backend import Launch, Limits, Session, check_launch, discover, read_blocks, selectors
from portability.backends.cuda import Cuda, enumerate_devices
from portability.backends.rocm import Rocm, architecture, read_topology, visible_devices
from portability.device import Device, DeviceBackend, NotHereError
from portability.model import Evidence

ADAPTERS: list[DeviceBackend] = [Cuda(), Rocm()]
TARGETS = [(a, t) for a in ADAPTERS for t in a.targets]


@triton.jit
def widen_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32))


def opened(adapter: DeviceBackend, target: str) -> AbstractContextManager[Session]:
    return adapter.open(next(t for t in adapter.status() if t.id == target))


# ------------------------------------------------------------------------------------------- what there is here


class WithDevices(Cuda):
    """The CUDA adapter on a machine with devices, under a torch that is built for them or not."""

    name = ""  # not an adapter of its own

    def __init__(self, *found: str) -> None:
        self.found = found

    def devices(self) -> Sequence[Device]:
        return [Device(i, target, f"card {i}", 2**30, f"uuid-{i}") for i, target in enumerate(self.found)]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.name)
def test_without_a_device_every_target_is_compiled_for_and_says_why(
    adapter: DeviceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(adapter), "_here", ((), NotHereError("no device", "a machine with one")))
    found = adapter.status()
    assert [t.id for t in found] == list(adapter.targets)
    assert {(t.evidence, t.why, t.remedy) for t in found} == {
        (Evidence.COMPILED, "no device: compiled for, never run", "a machine with one")
    }


def test_a_device_makes_its_target_run_and_no_other(built: None) -> None:
    found = {t.id: t for t in WithDevices("cuda:90").status()}
    assert found["cuda:90"].evidence is Evidence.RAN
    assert (found["cuda:90"].device, found["cuda:90"].index, found["cuda:90"].memory) == ("card 0", 0, 2**30)
    others = [t for t in found.values() if t.id != "cuda:90"]
    assert len(others) == len(Cuda.targets) - 1
    assert {t.evidence for t in others} == {Evidence.COMPILED}


def test_two_devices_of_an_architecture_are_one_target_on_the_first(built: None) -> None:
    runs = [t for t in WithDevices("cuda:80", "cuda:90", "cuda:90").status() if t.evidence is Evidence.RAN]
    assert [(t.id, t.index) for t in runs] == [("cuda:80", 0), ("cuda:90", 1)]


def test_a_device_in_no_list_is_a_target_of_its_own(built: None) -> None:
    found = WithDevices("cuda:87").status()
    assert found[0].id == "cuda:87"
    assert found[0].evidence is Evidence.RAN
    assert len(found) == len(Cuda.targets) + 1


def test_a_device_that_torch_is_not_built_for_is_named_with_the_remedy(not_built: None) -> None:
    found = WithDevices("cuda:90").status()
    assert {t.evidence for t in found} == {Evidence.COMPILED}
    assert found[0].why.startswith(f"card 0 is here, but torch {torch.__version__} is not built for it")
    assert "pip install torch" in found[0].remedy


def test_a_device_names_its_target_and_its_lock(built: None) -> None:
    adapter = WithDevices("cuda:80", "cuda:90")
    assert adapter.device_target(1) == "cuda:90"
    assert adapter.device_uuid(next(t for t in adapter.status() if t.id == "cuda:90")) == "uuid-1"
    with pytest.raises(LookupError, match="no device 2"):
        adapter.device_target(2)


def test_a_triton_without_the_compiler_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cuda, "compiler", "ascend")
    found = Cuda().status()
    assert {t.evidence for t in found} == {Evidence.NONE}
    assert "has no ascend compiler, only" in found[0].why
    assert "3.6" in found[0].remedy


def test_a_triton_that_is_too_old_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton, "__version__", "3.2.0")
    assert Cuda().status()[0].why == "triton 3.2.0 is older than 3.6"


# -------------------------------------------------------------------------------------------------- CUDA's driver


class FakeDriver:
    """libcuda as far as it is asked; what would create a context is not there to be called."""

    def __init__(self, *devices: tuple[tuple[int, int], bytes], code: int = 0) -> None:
        self.devices, self.code = devices, code

    def cuInit(self, flags: int) -> int:
        return self.code

    def cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = len(self.devices)

    def cuDeviceGet(self, handle: Any, index: int) -> None:
        handle._obj.value = index

    def cuDeviceGetAttribute(self, number: Any, attribute: int, handle: Any) -> None:
        major, minor = self.devices[handle.value][0]
        number._obj.value = {75: major, 76: minor}[attribute]

    def cuDeviceGetName(self, buffer: Any, size: int, handle: Any) -> None:
        buffer.value = self.devices[handle.value][1]

    def cuDeviceTotalMem_v2(self, memory: Any, handle: Any) -> None:
        memory._obj.value = 2**37

    def cuDeviceGetUuid(self, buffer: Any, handle: Any) -> None:
        ctypes.memmove(buffer, bytes(range(16)), 16)


def test_the_driver_is_asked_for_what_needs_no_context() -> None:
    found = enumerate_devices(FakeDriver(((9, 0), b"NVIDIA H200"), ((12, 1), b"NVIDIA GB10")))
    assert [(d.index, d.target, d.name, d.memory) for d in found] == [
        (0, "cuda:90", "NVIDIA H200", 2**37),
        (1, "cuda:121", "NVIDIA GB10", 2**37),
    ]
    assert found[0].uuid == "00010203-0405-0607-0809-0a0b0c0d0e0f"


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (FakeDriver(code=100), "shows no device"),
        (FakeDriver(), "shows no device"),
        (FakeDriver(code=803), "does not start .cuInit gives 803."),
    ],
)
def test_a_driver_that_shows_nothing_says_why(driver: Any, why: str) -> None:
    with pytest.raises(NotHereError, match=why):
        enumerate_devices(driver)


# ------------------------------------------------------------------------------------------------ ROCm's topology


def node(folder: Path, number: int, version: int, unique: int = 0, name: str = "aqua_vanjaram") -> None:
    place = folder / str(number)
    (place / "mem_banks" / "0").mkdir(parents=True)
    (place / "name").write_text(f"{name}\n")
    (place / "properties").write_text(
        f"simd_count {4 * bool(version)}\ngfx_target_version {version}\nunique_id {unique}\n"
    )
    (place / "mem_banks" / "0" / "properties").write_text("heap_type 1\nsize_in_bytes 206141652992\n")


@pytest.mark.parametrize(
    ("version", "name"),
    [(90010, "gfx90a"), (90402, "gfx942"), (110000, "gfx1100"), (120001, "gfx1201"), (120500, "gfx1250")],
)
def test_versions_of_the_topology_are_architectures(version: int, name: str) -> None:
    assert architecture(version) == name


def test_the_topology_lists_gpus_in_its_order(tmp_path: Path) -> None:
    node(tmp_path, 0, 0, name="")  # a CPU
    node(tmp_path, 10, 120001)
    node(tmp_path, 2, 90402, unique=0xAB)
    found = read_topology(tmp_path)
    assert [(n.arch, n.memory, n.uuid) for n in found] == [
        ("gfx942", 206141652992, "GPU-00000000000000ab"),
        ("gfx1201", 206141652992, ""),
    ]


def test_a_machine_without_the_driver_has_an_empty_topology(tmp_path: Path) -> None:
    assert read_topology(tmp_path / "absent") == []


@pytest.mark.parametrize(
    ("environment", "targets"),
    [
        ({}, ["hip:gfx942", "hip:gfx950", "hip:gfx1100"]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, ["hip:gfx1100", "hip:gfx942"]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ["hip:gfx950"]),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, ["hip:gfx942"]),
        ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, ["hip:gfx1100"]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000000002"}, ["hip:gfx950"]),
        ({"HIP_VISIBLE_DEVICES": "0,-1,1"}, ["hip:gfx942"]),
        ({"HIP_VISIBLE_DEVICES": ""}, []),
        ({"HIP_VISIBLE_DEVICES": "2", "HSA_OVERRIDE_GFX_VERSION": "11.0.1"}, ["hip:gfx1101"]),
    ],
)
def test_variables_hide_devices_as_the_runtime_does(
    tmp_path: Path, environment: dict[str, str], targets: list[str]
) -> None:
    for number, version in enumerate((90402, 90500, 110000), 1):
        node(tmp_path, number, version, unique=number)
    found = visible_devices(read_topology(tmp_path), environment)
    assert [d.target for d in found] == targets
    assert [d.index for d in found] == list(range(len(targets)))


# --------------------------------------------------------------------------------------------------- the tables


@pytest.mark.parametrize(("adapter", "target"), TARGETS, ids=lambda x: getattr(x, "name", x))
def test_every_target_states_its_limits_with_their_source(adapter: DeviceBackend, target: str) -> None:
    limits: Any = adapter.limits_of(target)
    wanted = ("shared_memory", "threads", "warp", "registers", "unit_warps", "unit_shared_memory", "source")
    assert [field for field in wanted if not getattr(limits, field)] == []
    assert limits.unit_shared_memory >= limits.shared_memory


@pytest.mark.parametrize(
    ("adapter", "unlisted", "relative"),
    [
        (Cuda(), "cuda:87", "cuda:80"),
        (Cuda(), "cuda:103", "cuda:100"),
        (Cuda(), "cuda:121", "cuda:120"),
        (Cuda(), "cuda:999", "cuda:120"),
        (Rocm(), "hip:gfx1101", "hip:gfx1100"),
        (Rocm(), "hip:gfx1200", "hip:gfx1201"),
    ],
)
def test_an_unlisted_architecture_has_its_relatives_families_dtypes_and_limits(
    adapter: DeviceBackend, unlisted: str, relative: str
) -> None:
    assert adapter.families_of(unlisted) == adapter.families_of(relative) != []
    assert adapter.lookup(adapter.dtypes, unlisted, ()) == adapter.lookup(adapter.dtypes, relative, ())
    assert adapter.limits_of(unlisted).shared_memory == adapter.limits_of(relative).shared_memory


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.name)
def test_claims_are_torchs_dtypes(adapter: DeviceBackend) -> None:
    claimed = {d for dtypes in adapter.dtypes.values() for d in dtypes}
    assert [d for d in claimed if not isinstance(getattr(torch, d, None), torch.dtype)] == []


@pytest.mark.parametrize(
    ("adapter", "target", "dtype"),
    [
        (Cuda(), "cuda:80", "float8_e4m3fn"),
        (Cuda(), "cuda:89", "float8_e4m3fn"),
        (Cuda(), "cuda:75", "float8_e5m2"),
        (Cuda(), "cuda:90", "float8_e4m3fnuz"),
        (Rocm(), "hip:gfx90a", "float8_e4m3fn"),
        (Rocm(), "hip:gfx1100", "float8_e5m2fnuz"),
        (Rocm(), "hip:gfx942", "bool"),
        (Cuda(), "cuda:86", "bfloat16"),
    ],
)
def test_what_is_claimed_compiles_and_what_is_not_is_refused(adapter: DeviceBackend, target: str, dtype: Any) -> None:
    with opened(adapter, target) as session:
        try:
            widen_kernel[(1,)](torch.zeros(64).to(getattr(torch, dtype)), torch.zeros(64), BLOCK=64)
        except triton.CompilationError:
            assert session.launches[0].error is not None
    assert adapter.claims(target, dtype) == (session.launches[0].error is None)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.name)
def test_block_tables_name_targets_families_and_dtypes_that_exist(adapter: DeviceBackend) -> None:
    places = {"*", *adapter.targets, *adapter.families}
    unknown = [
        f"{kernel} {selector}"
        for kernel, entries in read_blocks(adapter.block_table()).items()
        for selector in entries
        for place, _, dtype in [selector.partition("/")]
        if place not in places or (dtype and not hasattr(torch, dtype))
    ]
    assert unknown == []


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.name)
def test_no_entry_of_a_block_table_is_without_effect(adapter: DeviceBackend) -> None:
    """Of entries the most specific wins: a family's for one dtype counts for nothing beside a target's for all."""
    dtypes = {name: case.dtypes for name, case in kernel.discover().cases.items()}
    for name, entries in read_blocks(adapter.block_table()).items():
        effective: set[str] = set()
        for target, dtype in itertools.product(adapter.targets, dtypes[name]):
            if adapter.claims(target, dtype):
                decides = {n: s for s in selectors(adapter, target, dtype) if s in entries for n in entries[s]}
                effective |= set(decides.values())
        # what a family of one target says is for its other devices, which are in no list
        lone = {f for f, members in adapter.families.items() if len(members) == 1}
        assert {s for s in entries if s not in effective and s.partition("/")[0] not in lone} == set(), name


def test_both_are_found_and_neither_sees_the_others_devices() -> None:
    assert isinstance(discover()["cuda"], Cuda)
    assert isinstance(discover()["rocm"], Rocm)


# ------------------------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(
    ("adapter", "target", "stage"),
    [(Cuda(), "cuda:120", "cubin"), (Rocm(), "hip:gfx1201", "hsaco")],
    ids=["cuda", "rocm"],
)
def test_opening_a_target_without_a_device_compiles_to_its_binary(
    adapter: DeviceBackend, target: str, stage: str
) -> None:
    with opened(adapter, target) as session:
        widen_kernel[(1,)](torch.zeros(64), torch.zeros(64), BLOCK=64)
    assert stage in session.launches[0].compiled.asm
    found: Any = session.resources(session.launches[0])
    limits: Any = adapter.limits_of(target)
    assert found.threads == 4 * limits.warp


def test_shared_memory_beyond_the_targets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = Cuda()
    monkeypatch.setattr(Cuda, "limits", {"*": Limits(shared_memory=1024, threads=1024, warp=32)})
    with opened(adapter, "cuda:80"), pytest.raises(triton.OutOfResources, match="shared memory"):
        wide_kernel[(1,)](torch.zeros(64, 64, dtype=torch.float16), torch.zeros(64, 64), SIZE=64)


@triton.jit
def wide_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x))


def test_hips_threads_are_limited_along_x_and_not_in_all() -> None:
    limits = Rocm().limits_of("hip:gfx942")
    many = Launch("kernel", grid=(2**24, 1024), num_warps=4)
    assert check_launch(limits, many)[0].code == "grid-threads"
    assert check_launch(limits, Launch("kernel", grid=(1024, 60000, 60000), num_warps=4)) == []
