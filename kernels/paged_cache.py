"""A paged cache: keys and values of sequences that grow, in pages of a common pool (vLLM's PagedAttention, 2023).

    k_pages[page_table[t // PAGE], t % PAGE] = k,   t = lengths, v alike

Memory is taken page by page as tokens come, and a sequence that ends gives its pages back: nothing is copied.
"""

import torch
import triton
import triton.language as tl

from portability.kernel import Blocks, Draw, KernelCase, Sample, blocks_for, cdiv, next_power_of_2
from portability.kernels.checks import check_shape
from portability.kernels.decode_attention import check_pages, decode_attention, shuffled_table


@triton.jit
def append_kernel(
    k_ptr, v_ptr, table_ptr, lengths_ptr, new_k_ptr, new_v_ptr, n_tokens, head_dim,
    stride_kp, stride_kt, stride_kh, stride_vp, stride_vt, stride_vh, stride_tb,
    stride_nkb, stride_nkt, stride_nkh, stride_nvb, stride_nvt, stride_nvh,
    PAGE: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Each program writes one head of one new token into its slot behind the sequence's last."""
    batch, new = (tl.program_id(0) // n_tokens).to(tl.int64), (tl.program_id(0) % n_tokens).to(tl.int64)
    head = tl.program_id(1)
    d = tl.arange(0, BLOCK_D)
    t = tl.load(lengths_ptr + batch) + new
    page = tl.load(table_ptr + batch * stride_tb + t // PAGE).to(tl.int64)
    k = tl.load(new_k_ptr + batch * stride_nkb + new * stride_nkt + head * stride_nkh + d, mask=d < head_dim)
    v = tl.load(new_v_ptr + batch * stride_nvb + new * stride_nvt + head * stride_nvh + d, mask=d < head_dim)
    tl.store(k_ptr + page * stride_kp + (t % PAGE) * stride_kt + head * stride_kh + d, k, mask=d < head_dim)
    tl.store(v_ptr + page * stride_vp + (t % PAGE) * stride_vt + head * stride_vh + d, v, mask=d < head_dim)


def paged_append(
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    page_table: torch.Tensor,
    lengths: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: Blocks | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Write T tokens of each sequence into its pages, in place, behind its last one; return the pages.

    k, v: (B, T, H_kv, D), last dimension contiguous. Other operands and errors as `decode_attention`. The lengths stay
    as they are, so that all layers of a model can use one table.
    """
    check_pages("paged_append", k_pages, v_pages, page_table, lengths, k=k, v=v)
    check_shape("paged_append", k=(k, (len(lengths), "T", *k_pages.shape[2:])), v=(v, k.shape))
    launch_paged_append(
        k_pages, v_pages, page_table, lengths, k, v, k_pages, v_pages, blocks or blocks_for("paged_append", k)
    )
    return k_pages, v_pages


def launch_paged_append(k_pages, v_pages, page_table, lengths, k, v, _k_out, _v_out, blocks):
    """Write into the pages, which are also the outputs."""
    B, T, H_kv, D = k.shape
    if k.numel():
        append_kernel[(B * T, H_kv)](
            k_pages, v_pages, page_table, lengths, k, v, T, D,
            *k_pages.stride()[:3], *v_pages.stride()[:3], page_table.stride(0), *k.stride()[:3], *v.stride()[:3],
            PAGE=k_pages.shape[1], BLOCK_D=next_power_of_2(D), **blocks,
        )  # fmt: skip


class PagedCache:
    """Keys and values of `batch` sequences of up to `max_tokens`, in `pages` pages (by default what all may need).

    What is handed out is known on the host; the device is given the table and the lengths, and nothing is read back.
    """

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        head_dim: int,
        max_tokens: int,
        pages: int | None = None,
        page_size: int = 16,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.page_size = page_size
        self.max_pages = cdiv(max_tokens, page_size)  # of one sequence
        pages = batch * self.max_pages if pages is None else pages
        self.k, self.v = (
            torch.zeros((pages, page_size, kv_heads, head_dim), dtype=dtype, device=device) for _ in range(2)
        )
        self.table = torch.zeros((batch, self.max_pages), dtype=torch.int32, device=device)
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.free = list(range(pages))
        self.used: list[list[int]] = [[] for _ in range(batch)]
        self.tokens = [0] * batch  # what `lengths` holds

    def append(self, k: torch.Tensor, v: torch.Tensor) -> None:
        """Add tokens to each sequence; k and v are (batch, tokens, kv_heads, head_dim).

        Raises `MemoryError` where no page is left, `ValueError` where a sequence is full; nothing is added then.
        """
        new = k.shape[1]
        for sequence, used in enumerate(self.used):
            while len(used) * self.page_size < self.tokens[sequence] + new:
                self._take_page(sequence)
        paged_append(self.k, self.v, self.table, self.lengths, k, v)
        self.lengths += new
        self.tokens = [tokens + new for tokens in self.tokens]

    def attend(self, q: torch.Tensor, scale: float | None = None) -> torch.Tensor:
        """Return the attention of one query (batch, heads, head_dim) of each sequence over all its tokens."""
        return decode_attention(q, self.k, self.v, self.table, self.lengths, scale)

    def release(self, sequence: int) -> None:
        """Forget a sequence's tokens and give its pages back."""
        self.free += self.used[sequence]
        self.used[sequence] = []
        self.tokens[sequence] = 0
        self.lengths[sequence] = 0

    def _take_page(self, sequence: int) -> None:
        used = self.used[sequence]
        if len(used) == self.max_pages:
            raise ValueError(f"PagedCache: sequence {sequence} is full, with {self.tokens[sequence]} tokens")
        if not self.free:
            raise MemoryError(f"PagedCache: all {self.k.shape[0]} pages of {self.page_size} tokens are in use")
        used.append(self.free.pop())
        self.table[sequence, len(used) - 1] = used[-1]


def paged_append_reference(k_pages, v_pages, page_table, lengths, k, v):
    rows = torch.arange(len(lengths), device=k.device)[:, None]
    t = lengths[:, None].long() + torch.arange(k.shape[1], device=k.device)
    page, slot = page_table[rows, t // k_pages.shape[1]].long(), t % k_pages.shape[1]
    k_pages[page, slot], v_pages[page, slot] = k, v
    return k_pages, v_pages


def _operands(lengths, kv_heads, head_dim, page=16, tokens=1):
    def inputs(d: Draw):
        table, n_pages = shuffled_table(d, lengths, page, spare=tokens)
        k_pages, v_pages = (d.normal(n_pages, page, kv_heads, head_dim) for _ in range(2))
        k, v = (d.normal(len(lengths), tokens, kv_heads, head_dim) for _ in range(2))
        return k_pages, v_pages, table, torch.tensor(lengths, dtype=torch.int32), k, v

    return inputs


CASE = KernelCase(
    name="paged_append",
    operator=paged_append,
    launch=launch_paged_append,
    reference=paged_append_reference,
    samples=(
        Sample("0-1x1", _operands((0,), 1, 1)),
        Sample("33.7.0.15.16-2x40-page8", _operands((33, 7, 0, 15, 16), 2, 40, page=8), quick=True),
        Sample("64.16-4x64", _operands((64, 16), 4, 64)),
        Sample("9.0-2x20-page4-11-tokens", _operands((9, 0), 2, 20, page=4, tokens=11)),  # over several pages
    ),
    dtypes=("float32", "float16", "bfloat16"),
    mutates=(0, 1),
    blocks=Blocks(num_warps=1),
    space={"num_warps": (1, 2)},
)
