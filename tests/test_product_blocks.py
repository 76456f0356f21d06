"""Which table a product's blocks are taken from, by its size."""

import pytest
import torch

from portability.kernel import blocks_for
from portability.kernels.matmul import FEW_ROWS, LONG, _for_one_tile, blocks_of_size
from portability.kernels.matmul_split import for_rows, shares


def product(M, N, K):
    return torch.empty(M, K, dtype=torch.float16, device="meta"), torch.empty(K, N, dtype=torch.float16, device="meta")


def table(name):
    return blocks_for(name, product(1, 1, 1)[0])


def test_few_rows_have_a_table_of_their_own():
    assert blocks_of_size(*product(FEW_ROWS, 100_000, 64)) == table("matmul_few_rows")


def test_the_largest_tiles_are_taken_where_there_are_enough():
    assert blocks_of_size(*product(4096, 4096, 64)) == table("matmul")


def test_a_long_sum_of_few_tiles_is_split():
    assert blocks_of_size(*product(FEW_ROWS + 1, 16, LONG + 1)) == table("matmul_split")


def test_a_short_sum_of_few_tiles_takes_the_smallest_tiles():
    assert blocks_of_size(*product(FEW_ROWS + 1, 16, LONG)) == table("matmul_least")


@pytest.mark.parametrize(("specialize", "persistent"), [(0, 0), (1, 1)])
def test_programs_with_one_tile_stay_only_for_specialised_warps(specialize, persistent):
    blocks = table("matmul") | {"PERSISTENT": 1, "SPECIALIZE": specialize}
    assert _for_one_tile(blocks)["PERSISTENT"] == persistent


@pytest.mark.parametrize(("tiles", "parts"), [(112, 1), (66, 2), (32, 4), (8, 16), (1, 16)])
def test_parts_are_as_many_as_occupy_the_device(tiles, parts):
    """PROGRAMS 132: 14,336 columns in tiles of 128 are not split, 4,096 in four."""
    blocks = table("matmul_few_rows") | {"BLOCK_K": 128, "SPLIT": 16, "PROGRAMS": 132}
    assert shares(4096, tiles, blocks)[1] == parts


def test_tiles_are_no_taller_than_the_rows():
    blocks = table("matmul_few_rows") | {"BLOCK_M": 64}
    assert [for_rows(blocks, M)["BLOCK_M"] for M in (1, 17, 64)] == [16, 32, 64]
