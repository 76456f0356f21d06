"""Liger-Kernel: every operator, forward and backward, as a training script calls them.

Hidden sizes and the vocabulary are those of a small language model, since they decide the blocks; there are few rows.
An operator that fails is reported by its name and hides no other; the exit code is 1 then.
"""

# ruff: noqa: D102 - a call says itself what it calls
import sys

import torch
from liger_kernel import ops
from liger_kernel.ops.experimental.mm_int8int2 import matmul as matmul_int8_int2
from liger_kernel.transformers import functional as liger

HIDDEN, INNER, VOCAB, ROWS = 2048, 5632, 32000, 8


def tensor(*shape, dtype=torch.bfloat16, grad=True):
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def labels(*shape):
    return torch.randint(0, VOCAB, shape, device="cuda")


def log_probabilities(grad=True):
    return torch.log_softmax(tensor(ROWS, VOCAB, dtype=torch.float32, grad=False), -1).requires_grad_(grad)


def backward(outputs):
    outputs = (outputs,) if torch.is_tensor(outputs) else outputs
    loss = sum(out.float().sum() for out in outputs if torch.is_tensor(out) and out.requires_grad)
    (0.5 * loss).backward()  # as a scaled loss does: another kernel multiplies the gradients


class Operators:
    """One function an operator, called without an instance."""

    def cross_entropy():
        backward(liger.liger_cross_entropy(tensor(ROWS, VOCAB), labels(ROWS)))
        weight = torch.rand(VOCAB, device="cuda")
        backward(
            liger.liger_cross_entropy(tensor(ROWS, VOCAB), labels(ROWS), weight, label_smoothing=0.1, softcap=30.0)
        )
        told = {"return_z_loss": True, "return_token_accuracy": True, "reduction": "none"}
        liger.liger_cross_entropy(tensor(ROWS, VOCAB), labels(ROWS), lse_square_scale=1e-4, **told)

    def vocab_parallel_cross_entropy():
        how = None, -100, 0.1, "pytorch", "global"
        backward(ops.LigerVocabParallelCEFunction.apply(tensor(ROWS, 2, VOCAB), labels(ROWS, 2), *how))

    def fused_linear_cross_entropy():
        for bias in (None, tensor(VOCAB)):
            backward(liger.liger_fused_linear_cross_entropy(tensor(ROWS, 256), tensor(VOCAB, 256), labels(ROWS), bias))

    def fused_linear_jsd():
        teacher = tensor(ROWS, 512, grad=False), tensor(VOCAB, 512, grad=False)
        backward(liger.liger_fused_linear_jsd(tensor(ROWS, 256), tensor(VOCAB, 256), *teacher, labels(ROWS)))

    def fused_linear_kl_div():
        target = log_probabilities(grad=False).exp()
        backward(liger.liger_fused_linear_kl_div(tensor(ROWS, 256), tensor(VOCAB, 256), target, labels(ROWS)))

    def fused_ce_tvd():
        student, teacher = tensor(ROWS, VOCAB), tensor(ROWS, VOCAB, grad=False)
        backward(ops.LigerFusedCETVDFunction.apply(student, teacher, labels(ROWS)))

    def jsd():
        for beta in (0.0, 0.5, 1.0):
            backward(liger.liger_jsd(log_probabilities(), log_probabilities(grad=False), labels(ROWS), beta))

    def kl_div():
        for reduction, log_target in (("batchmean", False), ("none", False), ("batchmean", True)):
            target = log_probabilities(grad=False)
            backward(liger.liger_kl_div(log_probabilities(), target, reduction=reduction, log_target=log_target))

    def tvd():
        backward(liger.liger_tvd(log_probabilities().exp(), log_probabilities(grad=False).exp(), labels(ROWS)))

    def grpo_loss():
        for level in ("token", "sequence"):
            old, reference = torch.randn(2, 16, device="cuda"), torch.randn(2, 16, device="cuda")
            advantages, mask = torch.randn(2, device="cuda"), torch.ones(2, 16, device="cuda", dtype=torch.int32)
            told = old, reference, labels(2, 16), advantages, mask
            backward(
                ops.GrpoLossFunction.apply(
                    tensor(2, 17, VOCAB), *told, 0.9, 0.04, 0.2, 0.4, False, "grpo", None, True, level
                )
            )

    def rms_norm():
        for casting in ("llama", "gemma", "none"):
            backward(liger.liger_rms_norm(tensor(4, 64, HIDDEN), tensor(HIDDEN), 1e-6, 0.0, casting))
        backward(liger.liger_rms_norm(tensor(32768, 128), tensor(128), 1e-6))  # many short rows: kernels of their own

    def fused_add_rms_norm():
        for casting in ("llama", "gemma"):
            x, residual = tensor(4, 64, HIDDEN), tensor(4, 64, HIDDEN)
            backward(liger.liger_fused_add_rms_norm(x, residual, tensor(HIDDEN), 1e-6, 0.0, casting))

    def modulated_rms_norm():
        x, scale, shift = tensor(4, 64, HIDDEN), tensor(4, HIDDEN), tensor(4, HIDDEN)
        backward(liger.liger_modulated_rms_norm(x, tensor(HIDDEN), scale, shift, in_place=False))

    def layer_norm():
        for hidden in (HIDDEN, 12288):
            backward(liger.liger_layer_norm(tensor(4, 16, hidden), tensor(hidden), tensor(hidden), 1e-6))

    def group_norm():
        backward(liger.liger_group_norm(tensor(2, 32, 256), tensor(32), tensor(32), 32, 4, 1e-6))

    def poly_norm():
        backward(liger.liger_poly_norm(tensor(4, 64, HIDDEN), tensor(3), tensor(1)[0].detach().requires_grad_()))

    def dyt():
        for beta in (tensor(HIDDEN), None):
            backward(liger.liger_dyt(tensor(4, 64, HIDDEN), tensor(1), tensor(HIDDEN), beta))

    def softmax():
        for columns in (HIDDEN, 65536):
            backward(liger.liger_softmax(tensor(ROWS, columns)))

    def softmax_of_a_long_row():
        backward(liger.liger_softmax(tensor(ROWS, 131072)))

    def sparsemax():
        backward(liger.liger_sparsemax(tensor(ROWS, HIDDEN)))

    def activations():
        backward(liger.liger_geglu(tensor(4, 16, INNER), tensor(4, 16, INNER)))
        backward(liger.liger_relu_squared(tensor(4, 16, INNER)))

    def swiglu():
        backward(liger.liger_swiglu(tensor(4, 16, INNER), tensor(4, 16, INNER)))
        backward(ops.LigerSiLUMulFunction.apply(tensor(4, 16, 32768), tensor(4, 16, 32768), 0.5, 2.0))

    def fused_gate_up():
        backward(ops.LigerFusedGateUpSiLUMulFunction.apply(tensor(64, 2 * INNER)))

    def fused_gate_up_of_three_dimensions():
        backward(ops.LigerFusedGateUpSiLUMulFunction.apply(tensor(4, 16, 2 * INNER)))

    def mlp():
        x, gate, up, down = tensor(2, 64, 256), tensor(512, 256), tensor(512, 256), tensor(256, 512)
        backward(ops.LigerMLPFunction.apply(x, gate, up, down))
        ops.LigerMLPFunction.apply(*(t.detach() for t in (x, gate, up, down)))

    def fused_moe():
        experts = torch.stack([torch.randperm(8, device="cuda")[:2] for _ in range(64)]).int()
        weights = tensor(8, 512, 256), tensor(8, 256, 256)
        backward(ops.LigerFusedMoEFunction.apply(tensor(64, 256), *weights, experts, torch.rand(64, 2, device="cuda")))

    def rope():
        cos, sin = torch.rand(1, 32, 64, device="cuda"), torch.rand(1, 32, 64, device="cuda")
        backward(liger.liger_rope(tensor(2, 8, 32, 64), tensor(2, 2, 32, 64), cos, sin))

    def qwen2vl_mrope():
        cos, sin = torch.rand(3, 2, 32, 128, device="cuda"), torch.rand(3, 2, 32, 128, device="cuda")
        backward(liger.liger_qwen2vl_mrope(tensor(2, 8, 32, 128), tensor(2, 2, 32, 128), cos, sin, [16, 24, 24]))

    def llama4_rope():
        frequencies = torch.randn(32, 32, device="cuda", dtype=torch.complex64)
        backward(ops.LigerLlama4RopeFunction.apply(tensor(2, 32, 8, 64), tensor(2, 32, 2, 64), frequencies))

    def multi_token_attention():
        for sparse in (False, True):
            scores, kernel = tensor(2, 4, 32, 32, dtype=torch.float32), tensor(4, 4, 3, 3, dtype=torch.float32)
            backward(liger.liger_multi_token_attention(scores, kernel, padding=1, sparse=sparse))

    def neighborhood_attention():
        for length in (128, 512):
            query, key, value = (tensor(1, 2, length, 64) for _ in range(3))
            backward(liger.liger_fused_neighborhood_attention(query, key, value))

    def attn_res():
        backward(liger.liger_attn_res(tensor(4, 2, 16, HIDDEN), tensor(HIDDEN), tensor(HIDDEN)))

    def mhc():
        x, alphas = tensor(2, 16, 4, 512), [torch.rand((), device="cuda", requires_grad=True) for _ in range(3)]
        coefficients = liger.liger_mhc_coeffs(x, tensor(4 * 512, 24), tensor(24, dtype=torch.float32), *alphas)
        backward(liger.liger_mhc_apply(x, tensor(2, 16, 512), *coefficients, return_x_in=True))

    def embedding():
        backward(ops.LigerEmbeddingFunction.apply(tensor(VOCAB, HIDDEN), labels(2, 16)))

    def int8_int2():
        a = torch.randint(-8, 8, (64, 256), device="cuda", dtype=torch.int8)
        matmul_int8_int2(a, torch.randint(0, 255, (64, 128), device="cuda", dtype=torch.uint8))


failed = 0
calls = {name: call for name, call in vars(Operators).items() if not name.startswith("_")}
for name, call in calls.items():
    try:
        call()
    except Exception as error:
        failed += 1
        print(f"{name}: {type(error).__name__}: {(str(error).strip() or '?').splitlines()[0]}")
print(f"Liger-Kernel: {len(calls)} operators called, {failed} failed")
sys.exit(1 if failed else 0)
