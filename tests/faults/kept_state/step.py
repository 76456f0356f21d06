"""A step of momentum that keeps its state in the function itself: a second run goes on where the first one ended."""

import torch
import triton
import triton.language as tl

FINDS = {"kept-state": ["*"]}
LACKS = {"race": ["*"], "undefined-value": ["*"]}


@triton.jit
def momentum(x_ptr, m_ptr, BLOCK: tl.constexpr):  # here: kept-state
    i = tl.arange(0, BLOCK)
    tl.store(m_ptr + i, tl.load(m_ptr + i) * 0.9 + tl.load(x_ptr + i))


def data():
    return torch.linspace(-1, 1, 16)


def run(dev):
    if not hasattr(run, "state"):
        run.state = torch.zeros(16, device=dev)
    momentum[(1,)](data().to(dev), run.state, BLOCK=16)
    return run.state.clone()


def ref():
    return data()
