"""A matrix product by descriptors that end inside a block on every side."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def mm(a_desc, b_desc, c_desc, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, acc)
    c_desc.store([m, n], acc.to(tl.float16))


def data():
    torch.manual_seed(1)
    return torch.randn(70, 40).half(), torch.randn(56, 40).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    c = torch.empty(70, 56, dtype=torch.float16, device=dev)
    make = TensorDescriptor.from_tensor
    mm[(3, 2)](make(a, [32, 32]), make(b, [32, 32]), make(c, [32, 32]), 40, BM=32, BN=32, BK=32)
    return c


def ref():
    a, b = data()
    return a.double() @ b.double().T
