"""flash-linear-attention (fla-core): its operators and fused modules, forward and backward.

A row of the table is what is called and with which arguments, as Python; what it returns is differentiated. An operator
that fails is reported by its name and hides no other; the exit code is 1 then.
"""

# ruff: noqa: E501 - a row of the table is a line
import os
import sys
from contextlib import suppress
from importlib import import_module

os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")  # what the package compiles with torch is none of its own kernels

import fla
import torch
from fla import modules  # noqa: F401 - in the calls

B, T, H, D = 2, 256, 4, 64  # batch, tokens, heads, head size: a short sequence that still holds several chunks
PLACES = """
    ops ops.rwkv4 ops.rwkv7 ops.rwkv7.channel_mixing ops.rwkv7.fused_addcmul ops.rwkv7.fused_k_update
    ops.rwkv7.gate_output_correction ops.ttt ops.hgrn ops.deltaformer ops.gdn2 ops.gated_delta_product ops.gated_oja_rule
    ops.rebased ops.attn.decoding ops.utils ops.utils.sinkhorn ops.mesa_net modules.activations.ops modules.rotary.ops
    modules.token_shift modules.fused_cross_entropy.ops modules.fused_kl_div.ops modules.grpo.ops modules.norm.layernorm
    modules.norm.layernorm_gated modules.norm.layernorm_quant modules.norm.l2norm modules.causal_conv1d.ops"""


def tensor(*shape, dtype=torch.bfloat16):
    return torch.rand(*shape, device="cuda", dtype=dtype).requires_grad_()


def given(*shapes):
    """Tensors without a gradient: of a state that is written to, and where a gradient is made by torch.compile."""
    return [tensor(*shape).detach() for shape in shapes]


def gate(*shape):
    """A decay: the logarithm of a number in (0, 1)."""
    return torch.nn.functional.logsigmoid(torch.randn(*shape, device="cuda")).requires_grad_()


def labels(*shape, high=32000):
    return torch.randint(0, high, shape, device="cuda")


def x(size=D):
    return tensor(B, T, H, size)


def beta():
    return tensor(B, T, H)


def decay():
    return gate(B, T, H)


def decays():
    return gate(B, T, H, D)


def backward(outputs):
    outputs = (outputs,) if torch.is_tensor(outputs) else outputs
    reached = [out.float().sum() for out in outputs if torch.is_tensor(out) and out.requires_grad]
    with suppress(NotImplementedError):  # how the package says that an operator is for inference alone
        sum(reached, torch.zeros((), device="cuda", requires_grad=True)).backward()


OPERATORS = {
    "x(), x(), x()": """chunk_linear_attn chunk_retention fused_chunk_linear_attn fused_chunk_retention parallel_retention
        fused_recurrent_linear_attn fused_recurrent_retention parallel_attn parallel_stickbreaking_attn fused_recurrent_delta_rule""",
    "x(16), x(16), x()": "fused_chunk_based parallel_based parallel_rebased",
    "x(), x(), x(), decay()": "chunk_simple_gla fused_chunk_simple_gla fused_recurrent_simple_gla parallel_simple_gla parallel_forgetting_attn parallel_attn",
    "x(), x(), x(), decays()": "chunk_gla fused_recurrent_gla parallel_wall_attn",
    "x(), x(), x(), x()": "chunk_abc parallel_parallax",
    "x(), x(), x(), x(), decays()": "chunk_gsa fused_recurrent_gsa",
    "x(), x(), x(), beta()": "chunk_delta_rule fused_recurrent_delta_rule deltaformer_attn",
    "x(), x(), x(), decay(), beta()": "chunk_gated_delta_rule",
    "x(), x(), x(), decay(), beta(), use_qk_l2norm_in_kernel=True": "chunk_gated_delta_rule",
    "x(), x(), x(), decay(), None, None, beta()": "fused_recurrent_gated_delta_rule",
    "x(), x(), x(), decay(), beta(), use_gate_in_kernel=True, A_log=tensor(H).float(), dt_bias=tensor(H).float()": "chunk_gated_delta_rule",
    "x(), x(), x(), decays(), beta(), use_gate_in_kernel=True, A_log=tensor(H).float(), dt_bias=tensor(H * D).float()": "chunk_kda",
    "x(), x(), x(), decays(), beta(), safe_gate=True, lower_bound=-5.0": "chunk_kda",
    "x(), x(), x(), decays(), beta()": "chunk_kda fused_recurrent_kda chunk_gated_oja_rule fused_recurrent_gated_oja_rule",
    "x(), x(), x(), decays(), x(), x()": "chunk_gdn2 fused_recurrent_gdn2",
    "x(), x(), x(), x(), decay(), beta()": "chunk_comba fused_recurrent_comba",
    "x(), tensor(B, 2 * T, H, D), tensor(B, 2 * T, H, D), decay(), tensor(B, 2 * T, H), 2": "chunk_gated_delta_product",
    "x(), x(), x(), x(), x()": "chunk_iplr_delta_rule fused_recurrent_iplr_delta_rule",
    "x(), x(), x(), x(), x(), decays(), safe_gate=True, lower_bound=-5.0": "chunk_dplr_delta_rule",
    "x(), x(), x(), x(), x(), decays()": "chunk_dplr_delta_rule fused_recurrent_dplr_delta_rule",
    "x(), decays(), x(), x(), x(), x()": "chunk_rwkv7 fused_recurrent_rwkv7 fused_mul_recurrent_rwkv7",
    "x(), x(), x(), decays(), tensor(H, D)": "chunk_rwkv6 fused_recurrent_rwkv6",
    "tensor(128), tensor(128), tensor(B, T, 128), tensor(B, T, 128), tensor(B, 3, 1, 128)": "fused_recurrent_rwkv4",
    "x(), x(), x(), 0, 4": "chunk_lightning_attn fused_recurrent_lightning_attn",
    "x(), x(), x(), decay(), tensor(B, T, H, 9)": "chunk_log_linear_attn",
    "x(), x(), x(), decay(), beta(), tensor(H, D)": "chunk_mesa_net",
    "*(tensor(B, H, D) for _ in range(3)), gate(B, H), tensor(H, D), tensor(B, H), tensor(B, H, D, D), tensor(B, H, D, D)": "mesa_net_decoding_one_step",
    "tensor(B, T, H * D), gate(B, T, H * D)": "fused_recurrent_hgrn chunk_hgrn",
    "x(), x(), x(), decay(), decay(), None, beta(), beta()": "chunk_momentum_delta_rule",
    "x(), x(), x(), decay(), decay(), beta(), beta()": "chunk_precond_gated_delta_rule",
    "x(), x(), x(), decay(), None, None, beta(), decay(), beta()": "fused_recurrent_precond_gated_delta_rule",
    "x(), x(), x(), decays(), decay(), beta(), beta()": "chunk_precond_kda fused_recurrent_precond_kda",
    "x(), x(), x(), decay(), beta(), beta(), tensor(H, 31, 31), tensor(D), tensor(D), 1e-6, 1e-6": "chunk_cyfa",
    "*(t.detach() for t in (x(), x(), x(), decay(), beta(), beta(), tensor(H, 31, 31), tensor(D), tensor(D))), 1e-6, 1e-6": "fused_recurrent_cyfa",
    "x(), x(), x(), tensor(H, D), tensor(H, D), tensor(B, T, H, 1)": "chunk_ttt_linear fused_chunk_ttt_linear",
    "tensor(B, T, 16, D), *(tensor(B, T, 1, D) for _ in range(2)), *(tensor(B, T, 16) for _ in range(3)), block_counts=2": "parallel_nsa",
    "x(), x(), x(), x().float(), beta().float()": "parallel_path_attn",
    "x(), x(), x(), x().float(), beta().float(), decay()": "parallel_path_attn",
    "tensor(1, B, H, D), tensor(1, T, H, D), tensor(1, T, H, D), cu_seqlens=torch.tensor([0, 128, 256], device='cuda')": "attn_decoding_one_step",
    "tensor(256), [tensor(B, T, 256) for _ in range(4)], tensor(256)": "fused_attnres",
    # parts of the above, and what layers are made of
    "decay(), 64": "chunk_local_cumsum",
    "decays(), 64": "chunk_local_cumsum mean_pooling",
    "decay()": "chunk_global_cumsum",
    "decays()": "chunk_global_cumsum softmax_fwd logsumexp_fwd",
    "torch.rand(B, T, H, 64, device='cuda')": "solve_tril",
    "tensor(128, 256), tensor(256, 128)": "matmul",
    "tensor(128, 128), tensor(128, 256), tensor(256, 128)": "addmm",
    "tensor(B * T, 4, 4, dtype=torch.float32)": "sinkhorn",
    "tensor(B * T, 64), torch.tensor([0, 128, 512], device='cuda')": "pack_sequence",
    "tensor(B, T, 256), tensor(B, T, 256)": "powglu",
    "tensor(B, T, 256)": "logsigmoid elu_p1 token_shift",
    "tensor(B, T, 256), tensor(B, T, 256), tensor(128, 256), tensor(128)": "swiglu_linear powglu_linear",
    "tensor(B, T, 256), tensor(256), tensor(256)": "layer_norm layernorm_fn rmsnorm_fn",
    "tensor(B, T, 256), tensor(256), tensor(256), tensor(B, T, 256)": "layernorm_fn",
    "tensor(B * T, 256), tensor(256), tensor(256), 1e-5": "layer_norm_quant_fwd",
    "tensor(B, T, 256), tensor(256, 4), tensor(256), activation='silu'": "causal_conv1d",
    "*given((B, 256), (B, 256, 4)), None, *given((256, 4))": "causal_conv1d_update",
    "x(), tensor(T, 32), tensor(T, 32)": "rotary_embedding",
    "tensor(64, 32000), labels(64)": "cross_entropy_loss",
    "tensor(64, 256), tensor(64, 256).detach(), tensor(32000, 256), tensor(32000, 256).detach()": "fused_kl_div_loss",
    "tensor(2, 65, 32000), tensor(2, 64), labels(2, 64), tensor(2)": "fused_grpo_loss",
    "*given((B, T, 256), (B, 256), (256,), (256, 1024), (1024, 256))": "channel_mixing_rwkv7",
    "*given((B, T, 256), (B, T, 256), *[(1, 1, 256)] * 6)": "fused_addcmul_rwkv7",
    "tensor(B, T, 256), tensor(B, T, 256), tensor(256)": "fused_k_rwkv7",
    "tensor(B, T, H * D), x(), x(), tensor(H, D), x(), tensor(B, T, H * D)": "gate_output_correction",
}
MODULES = {
    "tensor(B, T, 256)": "LayerNorm(256) RMSNorm(256) L2Norm() GroupNorm(4,256) BitLinear(256,256) FusedBitLinear(256,256)",
    "tensor(B, T, 1024)": "LayerNorm(1024) RMSNorm(1024) L2Norm()",
    "tensor(B, T, 1024), tensor(B, T, 1024)": "FusedRMSNormGated(1024)",
    "tensor(B, T, 256), tensor(B, T, 256)": "FusedLayerNormGated(256) FusedRMSNormGated(256) FusedLayerNormSwishGate(256)",
    "tensor(B, T, 256), tensor(256, 256), tensor(256)": "LayerNormLinear(256) RMSNormLinear(256) GroupNormLinear(4,256)",
    "tensor(B, T, 256), tensor(B, T, 256), tensor(256, 256), tensor(256)": "FusedLayerNormSwishGateLinear(256) FusedRMSNormSwishGateLinear(256)",
    "tensor(64, 256), labels(64), tensor(32000, 256)": "FusedLinearCrossEntropyLoss()",
}


def operator(name):
    """Return the operator of that name, or the module that the call makes."""
    if "(" in name:
        return eval(f"modules.{name}").to(device="cuda", dtype=torch.bfloat16)
    found = (getattr(import_module(f"fla.{place}"), name, None) for place in PLACES.split())
    return next(function for function in found if callable(function))


called = failed = 0
for arguments, names in (*OPERATORS.items(), *MODULES.items()):
    for name in names.split():
        called += 1
        try:
            backward(eval(f"operator(name)({arguments})"))
        except Exception as error:
            failed += 1
            print(f"{name}({arguments}): {type(error).__name__}: {(str(error).strip() or '?').splitlines()[0]}")
print(f"flash-linear-attention {fla.__version__}: {called} calls, {failed} failed")
sys.exit(1 if failed else 0)
