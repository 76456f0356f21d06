"""Latent attention: into how many parts a sequence is split, longer latents than the tables', and Hopper's products."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import torch

from portability.backend import Session
from portability.backends.cuda import Cuda
from portability.kernel import Blocks
from portability.kernels.latent_attention import LEAST_SPLIT, LONG, describable, tokens_of_a_part
from portability.kernels.mla_decode import mla_decode, mla_decode_reference

BLOCKS = Blocks(SPLIT=4096, PROGRAMS=128, BLOCK_H=64, BLOCK_N=64, BLOCK_K=512, DESCRIPTORS=1, num_warps=8, num_stages=2)


@pytest.mark.parametrize(
    ("tokens", "programs", "split"),
    [(8192, 64, 4096), (8192, 16, 1024), (8192, 128, 4096), (8192, 1, LEAST_SPLIT), (2**20, 1, 4096), (0, 1, 256)],
)
def test_parts_are_as_many_as_occupy_the_device(tokens: int, programs: int, split: int) -> None:
    """64 sequences of 8,192 tokens are halved, 16 are split into eight, and one into no less than LEAST_SPLIT."""
    assert tokens_of_a_part(tokens, programs, BLOCKS) == split


@pytest.mark.parametrize(
    ("cache", "rank", "taken"),
    [
        (torch.zeros(2, 3, 24).half(), 16, True),
        (torch.zeros(2, 3, 24).half()[:, 1:, :], 16, True),
        (torch.zeros(2, 3, 24).half()[:, :, 1:], 16, False),  # begins at 2 bytes
        (torch.zeros(2, 3, 25).half()[:, :, :24], 16, False),  # rows of 50 bytes
        (torch.zeros(2, 75).half()[:, :72].unflatten(1, (3, 24)), 16, False),  # sequences of 150
        (torch.zeros(2, 3, 24).half(), 12, False),  # rotated keys begin at 24 bytes
        (torch.zeros(2, 3, 16).half(), 16, False),  # there are none
        (torch.zeros(2, 1, 24).half().expand(2, 3, 24), 16, False),  # all tokens are one
    ],
)
def test_descriptors_take_rows_at_16_bytes(cache: torch.Tensor, rank: int, taken: bool) -> None:
    assert describable(cache, rank) == taken


def operands(batch: int, heads: int, tokens: int, rank: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(rank)
    shapes = ((batch, heads, 16), (batch, heads, 16), (batch, tokens, rank + 16), (heads, 16, rank), (heads, rank, 16))
    drawn = [(torch.randn(shape, generator=g) / 4).to(dtype) for shape in shapes]
    return *drawn, torch.full((batch,), tokens, dtype=torch.int32)


def test_a_longer_latent_takes_smaller_blocks(interpreter: Session) -> None:
    """Blocks for 512 elements would not leave shared memory for twice as many; the values are the same."""
    given = operands(1, 20, 40, 2 * LONG, torch.float32)
    out = mla_decode(*given, blocks=BLOCKS)
    assert torch.allclose(out, mla_decode_reference(*given, None), atol=1e-4)
    (split,) = (x for x in interpreter.launches if x.kernel == "split_kernel")
    assert (split.constants["BLOCK_H"], split.constants["BLOCK_N"]) == (32, 32)


def test_each_warp_group_makes_the_scores_of_half_of_the_tokens() -> None:
    """64 heads are one group's rows. By rows alone both would make all: twice as many products of 64 by 32."""
    cuda = Cuda()
    with cuda.open(next(t for t in cuda.status() if t.id == "cuda:90")) as session:
        mla_decode(*operands(1, 64, 64, 512, torch.float16), blocks=BLOCKS)
    (split,) = (x for x in session.launches if x.kernel == "split_kernel")
    products = Counter(re.findall(r"wgmma\.mma_async\S*\.(m64n\d+)k16", split.compiled.asm["ptx"]))
    assert products == {"m64n32": (512 + 16) // 16, "m64n256": 64 // 16}
