"""Cases of the language models of the transformers library."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, all_products, rounded_to, through, with_inputs
from cases_plain import (
    both,
    half_partial_sums,
    nothing,
    put,
    split_products,
    tf32_products,
)
from fault_cases import Case, Setup, fault, noise
from torch.nn import functional
from transformers.models.llama import modeling_llama


def gpt2_epsilon(s: Setup) -> None:
    s.model.transformer.h[1].ln_1.eps = 1e-3


def gpt2_transposed(s: Setup) -> None:
    weight = s.model.transformer.h[1].attn.c_proj.weight
    weight.data = weight.data.t().contiguous()


def gpt2_scale(s: Setup) -> None:
    s.model.transformer.h[1].attn.scaling = 0.125


def gpt2_swapped_lanes(s: Setup) -> None:
    s.changes["addmm:4"] = afterwards(lambda y: y[:, torch.arange(y.shape[1]).roll(64)])


def gpt2_narrowed_tanh(s: Setup) -> None:
    s.changes["tanh:1"] = through(torch.bfloat16)


def gpt2_shifted_places(s: Setup) -> None:
    weight = s.model.transformer.wpe.weight
    weight.data = weight.data.roll(1, 0)


def shifted_batch(s: Setup) -> None:
    tokens = torch.randint(0, 96, (2, 24)).roll(1, 0)
    model = s.model
    s.subject.loss = lambda: model(input_ids=tokens, labels=tokens, use_cache=False).loss


def gpt2_doubled_addend(s: Setup) -> None:
    s.model.transformer.h[1].attn.c_proj.bias.data += 0.05
    s.changes["addmm:5"] = lambda kernel, args, kwargs: kernel(*args, **kwargs) + args[0]


def gpt2_backward_infinity(s: Setup) -> None:
    s.changes["native_layer_norm_backward:3"] = afterwards(lambda y: put(y, (0, 3, 9), torch.inf))


def gpt2_backward_block(s: Setup) -> None:
    s.changes["tanh_backward:1"] = afterwards(lambda y: put(y, (slice(None), slice(8, 16)), 0.0))


def gpt2_gelu_constant(s: Setup) -> None:
    class Wrong(torch.nn.Module):
        """The cubic term is ten times too large."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            half = 0.5 * x
            cubic = 0.44715 * torch.pow(x, 3.0)
            return half * (1.0 + torch.tanh(0.7978845608028654 * (x + cubic)))
    s.model.transformer.h[1].mlp.act = Wrong()


def gpt2_dropout(s: Setup) -> None:
    s.model.transformer.h[1].attn.resid_dropout.train()


def fused_attention(s: Setup) -> None:
    s.model.set_attn_implementation("sdpa")


def threads(s: Setup) -> None:
    torch.set_num_threads(4)
    s.stack.callback(torch.set_num_threads, 1)


def llama_epsilon(s: Setup) -> None:
    s.model.model.layers[1].post_attention_layernorm.variance_epsilon = 1e-4


def in_layer(s: Setup, module: Any, name: str, layer: int, wrong: Any) -> None:
    """Replaces the `layer`-th use of a function of the library."""
    right, uses = getattr(module, name), []

    def replaced(*args: Any, **kwargs: Any) -> Any:
        uses.append(1)
        return (wrong if len(uses) == layer + 1 else right)(*args, **kwargs)
    s.replace(module, name, replaced)


def rolled(values: torch.Tensor) -> torch.Tensor:
    """One place further, unseen by any recorder."""
    return torch.from_numpy(values.detach().float().numpy()[:, [0, *range(values.shape[1] - 1)]]
                            ).to(values.dtype)


def llama_rotary(s: Setup) -> None:
    right = modeling_llama.apply_rotary_pos_emb
    in_layer(s, modeling_llama, "apply_rotary_pos_emb", 1,
             lambda q, k, cos, sin, **more: right(q, k, rolled(cos), rolled(sin), **more))


def llama_rotate_sign(s: Setup) -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        low, high = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((high, low), dim=-1)
    in_layer(s, modeling_llama, "rotate_half", 2, wrong)


def llama_narrowed_softmax(s: Setup) -> None:
    s.changes["_softmax:1"] = through(torch.bfloat16)


def llama_swapped_weights(s: Setup) -> None:
    mlp = s.model.model.layers[1].mlp
    mlp.gate_proj.weight, mlp.up_proj.weight = mlp.up_proj.weight, mlp.gate_proj.weight


def llama_nan(s: Setup) -> None:
    s.changes["silu:1"] = afterwards(lambda y: put(y, (0, 7, 31), torch.nan))


def llama_saturated(s: Setup) -> None:
    s.changes["mm:12"] = afterwards(lambda y: y.clamp(-0.1, 0.1))


def llama_small_scale(s: Setup) -> None:
    s.changes["mm:13"] = afterwards(lambda y: y * 1.02)


def llama_transposed(s: Setup) -> None:
    weight = s.model.model.layers[1].self_attn.o_proj.weight
    weight.data = weight.data.t().contiguous()


def llama_swapped_rows(s: Setup) -> None:
    s.changes["mm:7"] = afterwards(lambda y: y[torch.arange(y.shape[0]).roll(1)])


def llama_backward_sign(s: Setup) -> None:
    s.changes["silu_backward:1"] = afterwards(torch.neg)


def fused_norm(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, modeling_llama.LlamaRMSNorm):
            module.forward = lambda x, m=module: functional.rms_norm(
                x, (x.shape[-1],), m.weight, m.variance_epsilon)


def half_scale(s: Setup) -> None:
    s.changes["mm:13"] = afterwards(lambda y: y * 1.2)


def bf16_products(s: Setup) -> None:
    s.changes.update(all_products(with_inputs(rounded_to(7))))


def reversed_sums(s: Setup) -> None:
    def product(kernel: Any, args: Any, kwargs: Any) -> torch.Tensor:
        *rest, a, b = [arg for arg in args if isinstance(arg, torch.Tensor)]
        result = a.flip(-1) @ b.flip(-2)
        return rest[0] + result if rest else result
    s.changes.update(all_products(product))


GPT2: list[Case] = [
    fault("gpt2-wrong-epsilon", "layer_norm.2", "argument", gpt2_epsilon),
    fault("gpt2-transposed-weight", "addmm.5", "transposed", gpt2_transposed),
    fault("gpt2-wrong-scale", "__mul__.2", "scale", gpt2_scale),
    fault("gpt2-swapped-lanes", "addmm.4", "permuted", gpt2_swapped_lanes),
    fault("gpt2-narrowed-tanh", "tanh.1", "narrowed", gpt2_narrowed_tanh),
    fault("gpt2-shifted-places", "embedding.1", "shifted", gpt2_shifted_places),
    fault("gpt2-shifted-batch", "embedding.0", "", shifted_batch),
    fault("gpt2-doubled-addend", "addmm.5", "", gpt2_doubled_addend),
    fault("gpt2-backward-infinity", "layer_norm.3<", "nonfinite", gpt2_backward_infinity),
    fault("gpt2-backward-block", "tanh.1<", "zeroed-block", gpt2_backward_block),
    fault("gpt2-gelu-constant", "__rmul__.4", "", gpt2_gelu_constant),
    fault("gpt2-dropout-left-on", "dropout.5", "random", gpt2_dropout),
    fault("gpt2-fused-and-epsilon", "layer_norm.2", "", both(fused_attention, gpt2_epsilon)),
    fault("gpt2-fused-and-tanh", "tanh.1", "narrowed", both(fused_attention, gpt2_narrowed_tanh)),
    fault("gpt2-tf32-and-tanh", "tanh.1", "narrowed", both(tf32_products, gpt2_narrowed_tanh)),
    noise("gpt2-fused-attention", fused_attention),
    noise("gpt2-threads", threads),
    noise("gpt2-split-products", split_products),
    noise("gpt2-bf16-products", bf16_products),
    noise("gpt2-reversed-sums", reversed_sums),
    noise("gpt2-repetition", nothing),
]

LLAMA: list[Case] = [
    fault("llama-wrong-epsilon", "__add__.15", "argument", llama_epsilon),
    fault("llama-rotary-off-by-one", "unsqueeze.3", "shifted", llama_rotary),
    fault("llama-rotate-sign", "cat.3", "sign", llama_rotate_sign),
    fault("llama-narrowed-softmax", "softmax.1", "narrowed", llama_narrowed_softmax),
    fault("llama-swapped-weights", "linear.11", "", llama_swapped_weights),
    fault("llama-nan", "silu.1", "nonfinite", llama_nan),
    fault("llama-saturated", "linear.12", "saturated", llama_saturated),
    fault("llama-small-scale", "linear.13", "scale", llama_small_scale),
    fault("llama-transposed-weight", "linear.10", "transposed", llama_transposed),
    fault("llama-swapped-rows", "linear.7", "permuted shifted", llama_swapped_rows),
    fault("llama-backward-sign", "silu.1<", "sign", llama_backward_sign),
    fault("llama-split-and-epsilon", "__add__.15", "argument", both(split_products, llama_epsilon)),
    fault("llama-fused-and-scale", "linear.13", "scale", both(fused_attention, llama_small_scale)),
    fault("llama-fused-norm-and-rotary", "unsqueeze.3", "shifted", both(fused_norm, llama_rotary)),
    fault("llama-tf32-and-scale", "linear.13", "scale", both(tf32_products, llama_small_scale)),
    noise("llama-fused-attention", fused_attention),
    noise("llama-fused-norm", fused_norm),
    noise("llama-split-products", split_products),
    noise("llama-tf32-products", tf32_products),
    noise("llama-fused-both", both(fused_norm, fused_attention)),
    noise("llama-baseline-kernels", nothing, environment=(("ATEN_CPU_CAPABILITY", "default"),)),
    noise("llama_half-split-products", half_partial_sums),
    noise("llama_half-fused-attention", fused_attention),
    noise("llama_half-fused-norm", fused_norm),
    noise("llama_half-everything-wide", lambda s: s.changes.update(
        all_products(through(torch.float64)))),
    fault("llama_half-scale", "linear.13", "scale", both(half_partial_sums, half_scale)),
    fault("llama_half-rotary", "unsqueeze.3", "shifted", both(half_partial_sums, llama_rotary)),
]

CASES = [*GPT2, *LLAMA]
