"""The wrapper looks at the last stride alone: a view with its first dimensions swapped has other rows."""

import torch
import triton
import triton.language as tl

FINDS = {"wrong-value": ["*"]}
PASSES = ["cuda:90", "hip:gfx942"]


@triton.jit
def log_sum_exp(x_ptr, out_ptr, V: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * V + tl.arange(0, V))
    largest = tl.max(x, 0)
    tl.store(out_ptr + row, largest + tl.log(tl.sum(tl.exp(x - largest), 0)))  # here: wrong-value


def data():
    torch.manual_seed(9)
    return torch.randn(3, 4, 8).transpose(0, 1)


def run(dev):
    x = data().to(dev)
    if x.stride(-1) != 1:
        x = x.contiguous()
    out = torch.empty(x.shape[:-1], device=dev)
    log_sum_exp[(out.numel(),)](x, out, V=8)
    return out


def ref():
    return torch.logsumexp(data(), -1)
