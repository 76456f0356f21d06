"""Attention by tensor descriptors: which operands take it, and that the layouts it takes give attention's values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
import torch
import triton
import triton.language as tl

from portability.backend import Session, blocks_of, discover
from portability.kernel import blocks_for, next_power_of_2
from portability.kernels.attention import attention_of_head, per_head
from portability.kernels.flash_attention import flash_attention_descriptors, flash_attention_with_lse
from portability.kernels.flash_attention_backward import flash_attention_backward, flash_attention_backward_descriptors
from portability.kernels.flash_attention_descriptors import head_and_tile
from portability.model import Evidence

Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).half()


def fused() -> Operands:
    """Queries, keys and values side by side in one tensor, as a projection of all three makes them."""
    q, k, v = draw(2, 44, 3, 2, 16).unbind(2)
    return q, k, v


def heads_first() -> Operands:
    q, k, v = draw(3, 2, 2, 44, 16).transpose(2, 3)
    return q, k, v


def after_a_prefix() -> Operands:
    """Batches further apart than their rows are many."""
    q, k, v = draw(3, 2, 60, 2, 16)[:, :, 16:]
    return q, k, v


def one_prompt_for_all() -> Operands:
    """Keys and values of which all batches and heads have the same."""
    return draw(2, 44, 4, 16), draw(1, 44, 1, 16).expand(2, 44, 2, 16), draw(1, 44, 1, 16).expand(2, 44, 2, 16)


def of_length(seq_q: int, seq_k: int, D: int = 16) -> Callable[[], Operands]:
    return lambda: (draw(1, seq_q, 4, D), draw(1, seq_k, 2, D), draw(1, seq_k, 2, D))


def at_2_bytes() -> Operands:
    q, k, v = draw(3 * 44 * 2 * 16 + 1)[1:].view(3, 1, 44, 2, 16)
    return q, k, v


def rows_of_34_bytes() -> Operands:
    q, k, v = draw(3, 1, 44, 1, 17)[..., :16]
    return q, k, v


TAKEN = (fused, heads_first, after_a_prefix, one_prompt_for_all, of_length(52, 97), of_length(80, 44))
REFUSED = (at_2_bytes, rows_of_34_bytes, of_length(44, 44, D=20), of_length(44, 12))


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> list[torch.Tensor]:
    return per_head(attention_of_head, *(t.double() for t in (q, k, v)), causal, None)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("operands", TAKEN)
def test_layouts_give_attention(operands: Callable[[], Operands], causal: bool, interpreter: Session) -> None:
    """Rows of other heads, and keys taken twice by a last block that begins earlier, add nothing."""
    q, k, v = operands()
    for got, want in zip(flash_attention_descriptors(q, k, v, causal), expected(q, k, v, causal), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("operands", TAKEN)
def test_layouts_give_gradients(operands: Callable[[], Operands], causal: bool, interpreter: Session) -> None:
    """The gradients are those of the kernels that load by pointers."""
    q, k, v = operands()
    out, lse = flash_attention_with_lse(q, k, v, causal)
    saved = draw(*q.shape), q, k, v, out, lse, causal
    gradients = zip(flash_attention_backward_descriptors(*saved), flash_attention_backward(*saved), strict=True)
    for got, want in gradients:
        torch.testing.assert_close(got, want, rtol=4e-3, atol=8e-3)


@triton.jit
def order_kernel(out_ptr, heads, tiles, programs, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    head, tile = head_and_tile(index, heads, tiles, programs)
    tl.store(out_ptr + index, head * tiles + tile, mask=index < heads * tiles)


def tiles_of_programs(heads: int, tiles: int, programs: int) -> list[list[int]]:
    """Return what each program takes, as head * tiles + tile."""
    taken = torch.full((heads * tiles,), -1, dtype=torch.int32)
    order_kernel[(1,)](taken, heads, tiles, programs, BLOCK=next_power_of_2(heads * tiles))
    return [taken[program::programs].tolist() for program in range(programs)]


@pytest.mark.parametrize("programs", [1, 3, 16, 132])
@pytest.mark.parametrize(("heads", "tiles"), [(1, 1), (3, 1), (2, 2), (7, 5), (8, 9), (6, 64)])
def test_every_tile_is_taken_once(heads: int, tiles: int, programs: int, interpreter: Session) -> None:
    taken = [tile for tiles_of_one in tiles_of_programs(heads, tiles, programs) for tile in tiles_of_one]
    assert sorted(taken) == list(range(heads * tiles))


@pytest.mark.parametrize(("heads", "tiles"), [(32, 32), (32, 64), (128, 32), (8, 128), (96, 24), (40, 63)])
def test_programs_get_as_much_work(heads: int, tiles: int, interpreter: Session) -> None:
    """Tile i of a causal head takes i + 1 blocks of keys; none has more than its share and one of the longest tiles."""
    work = [sum(tile % tiles + 1 for tile in taken) for taken in tiles_of_programs(heads, tiles, programs=132)]
    assert max(work) <= sum(work) / len(work) + tiles


@pytest.mark.parametrize("operands", REFUSED)
def test_what_descriptors_do_not_take_is_refused(operands: Callable[[], Operands], interpreter: Session) -> None:
    """The message names what is taken."""
    with pytest.raises(ValueError, match=r"taken are heads of 16, 32, 64 or 128, 32 keys or more, rows at 16 bytes"):
        flash_attention_descriptors(*operands())


@pytest.mark.parametrize("operands", [*TAKEN, *REFUSED])
def test_a_table_gets_descriptors_where_operands_allow_them(
    operands: Callable[[], Operands], interpreter: Session
) -> None:
    """Where they do not, it is pointers with the table's own blocks."""
    q, k, v = operands()
    flash_attention_with_lse(q, k, v, blocks=blocks_for("flash_attention", q) | {"DESCRIPTORS": 1})
    kernel = "flash_attention_descriptors_kernel" if operands in TAKEN else "flash_attention_kernel"
    assert interpreter.launches[-1].kernel.endswith(kernel)


@pytest.mark.parametrize("keys", [0, 16, 17])
@pytest.mark.parametrize("queries", [0, 16, 17])
@pytest.mark.parametrize("seq_q", [45, 31])
def test_a_table_chooses_each_kernel_of_the_gradients(
    seq_q: int, queries: int, keys: int, interpreter: Session
) -> None:
    """From as wide heads on as it says, where there is a step of queries; both ways give the same."""
    q, k, v = of_length(seq_q, 44)()
    out, lse = flash_attention_with_lse(q, k, v, True)
    saved = draw(*q.shape), q, k, v, out, lse, True
    want = flash_attention_backward(*saved)
    blocks = blocks_for("flash_attention_backward", q) | {"DQ_DESCRIPTORS": queries, "DESCRIPTORS": keys}
    for got, expected_gradient in zip(flash_attention_backward(*saved, blocks=blocks), want, strict=True):
        torch.testing.assert_close(got, expected_gradient, rtol=4e-3, atol=8e-3)
    described = [launch.kernel.endswith("_descriptors_kernel") for launch in interpreter.launches[-2:]]
    assert described == [seq_q == 45 and least == 16 for least in (queries, keys)]


@pytest.fixture
def hopper() -> Iterator[Session]:
    """A session in which operators on CPU tensors are compiled for sm_90, with its blocks, and launch nothing."""
    backend = discover()["cuda"]
    target = next(t for t in backend.status() if t.id == "cuda:90")
    if target.evidence is not Evidence.COMPILED:
        pytest.skip("on such a device tensors of the CPU are not compiled for")
    with backend.open(target) as session, blocks_of("cuda", "cuda:90"):
        yield session


@pytest.mark.parametrize(
    ("D", "causal", "kernel", "threads"),
    [
        (32, False, "flash_attention_kernel", 256),
        (64, False, "flash_attention_descriptors_kernel", 128),
        (128, False, "flash_attention_descriptors_kernel", 384),
        (128, True, "flash_attention_descriptors_kernel", 128),
    ],
)
def test_a_table_says_from_which_heads_on_and_with_which_blocks(
    D: int, causal: bool, kernel: str, threads: int, hopper: Session
) -> None:
    """On sm_90 heads of 64 and causal ones take four warps, wide ones specialised warps, and narrower ones pointers."""
    flash_attention_with_lse(*draw(3, 1, 128, 1, D), causal)
    assert hopper.launches[-1].kernel.endswith(kernel)
    assert f".reqntid {threads}" in hopper.launches[-1].compiled.asm["ptx"]


def test_specialised_warps_hand_tiles_back_once_multiplied(hopper: Session) -> None:
    """Triton hands a tile that is reshaped before its product back to the warps that fetch before it is multiplied."""
    flash_attention_descriptors(*draw(3, 1, 128, 1, 128))
    assembly = hopper.launches[-1].compiled.asm
    assert ".reqntid 384" in assembly["ptx"]  # four warps that fetch, and two groups of four
    group = assembly["ttgir"].partition("partition0(")[2].partition("partition1(")[0]
    assert re.findall("warp_group_dot|arrive_barrier", group)[:4] == ["warp_group_dot", "arrive_barrier"] * 2
