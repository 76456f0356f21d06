"""A persistent, grouped matrix product whose rows wrap round: what is read twice is stored once."""

import torch
import triton
import triton.language as tl

FINDS = {}
PASSES = ["cuda:90", "hip:gfx942", "interpreter"]


@triton.jit
def _tile(t, nm, nn, G: tl.constexpr):
    per = G * nn
    first = (t // per) * G
    rows = min(nm - first, G)
    return first + (t % per) % rows, (t % per) // rows


@triton.jit
def mm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACT: tl.constexpr):
    nm, nn = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for t in tl.range(tl.program_id(0), nm * nn, tl.num_programs(0), flatten=True):
        pm, pn = _tile(t, nm, nn, 2)
        rm = pm * BM + tl.arange(0, BM)
        rn = pn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            rk = k * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + (rm % M)[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + (rn % N)[None, :], mask=rk[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        if ACT is not None:
            acc = ACT(acc)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)


def data():
    torch.manual_seed(1)
    return torch.randn(70, 40).half(), torch.randn(40, 50).half()


def run(dev):
    a, b = (t.to(dev) for t in data())
    c = torch.empty(70, 50, dtype=torch.float16, device=dev)
    mm[(3,)](a, b, c, 70, 50, 40, BM=16, BN=16, BK=32, ACT=relu)
    return c


def ref():
    a, b = data()
    return torch.relu(a.double() @ b.double())
