"""A workspace that is made once and added to by every call."""

import torch
import triton
import triton.language as tl

FINDS = {"kept-state": ["*"]}
LACKS = {"race": ["*"], "undefined-value": ["*"]}


@triton.jit
def column_sums(x_ptr, sums_ptr, N: tl.constexpr):  # here: kept-state
    columns = tl.arange(0, N)
    tl.atomic_add(sums_ptr + columns, tl.load(x_ptr + tl.program_id(0) * N + columns))


WORKSPACES = {}


def data():
    return torch.arange(64, dtype=torch.int32).reshape(4, 16)


def run(dev):
    if dev not in WORKSPACES:
        WORKSPACES[dev] = torch.zeros(16, dtype=torch.int32, device=dev)
    column_sums[(4,)](data().to(dev), WORKSPACES[dev], N=16)
    return WORKSPACES[dev].clone()


def ref():
    return data().sum(0, dtype=torch.int32)
