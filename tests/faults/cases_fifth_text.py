"""The fifth hold-out, one part of it: language models, preferences, a teacher."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, through
from cases_held_out import kernel
from cases_plain import (
    everything_wide,
    half_partial_sums,
    split_products,
    tf32_products,
    unfused_norm,
)
from cases_second import attribute, changed
from cases_unseen_text import at_uses, threads
from fault_cases import Case, Setup, noise
from fifth_changes import (
    by_error_function,
    by_heads,
    by_one_hot,
    each,
    fifth,
    fifth_noise,
    in_two,
    joined,
    math_attention,
    own_products_off,
    root_norm,
    side_by_side,
    under_autocast,
)
from torch import nn
from torch.nn import functional
from transformers.activations import GELUActivation
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.whisper import modeling_whisper


def attention(kind: str) -> Any:
    """Another implementation of the library."""
    return lambda s: s.model.set_attn_implementation(kind)


def qwen_base(s: Setup) -> None:
    s.model.model.rotary_emb.inv_freq.data = 100.0 ** (-torch.arange(0, 16, 2) / 16)


def qwen_heads(s: Setup) -> None:
    right, count = modeling_qwen3.repeat_kv, [0]

    def repeated(values: torch.Tensor, times: int) -> torch.Tensor:
        count[0] += 1
        return values.repeat(1, times, 1, 1) if count[0] == 3 else right(values, times)
    s.replace(modeling_qwen3, "repeat_kv", repeated)


def qwen_pairs(s: Setup) -> None:
    def neighbours(x: torch.Tensor) -> torch.Tensor:
        return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    s.replace(modeling_qwen3, "rotate_half", neighbours)


def qwen_no_key_norm(s: Setup) -> None:
    s.model.model.layers[1].self_attn.k_norm.forward = lambda x: x


def qwen_complex(s: Setup) -> None:
    def turned(q: Any, k: Any, cos: Any, sin: Any, *_: Any) -> tuple[torch.Tensor, ...]:
        half = cos.shape[-1] // 2
        turn = torch.complex(cos[..., :half], sin[..., :half])[:, None]

        def of(x: torch.Tensor) -> torch.Tensor:
            result = torch.complex(x[..., :half].contiguous(), x[..., half:].contiguous()) * turn
            return torch.cat((result.real, result.imag), dim=-1)
        return of(q), of(k)
    s.replace(modeling_qwen3, "apply_rotary_pos_emb", turned)


def qwen_joint(s: Setup) -> None:
    for layer in s.model.model.layers:
        a = layer.self_attn
        joined([a.q_proj, a.k_proj, a.v_proj])
        joined([layer.mlp.gate_proj, layer.mlp.up_proj])


def again(s: Setup) -> None:
    s.model.gradient_checkpointing_enable({"use_reentrant": False})


QWEN: list[Case] = [
    fifth("qwen3-turns-of-other-base", "__mul__.0", "", qwen_base),
    fifth("qwen3-heads-in-other-order", "repeat.0 __getitem__.17 reshape.3 transpose.8",
           "extra-call missing-call structure permuted", qwen_heads),
    fifth("qwen3-pairs-of-neighbours", "__getitem__.7", "argument structure permuted",
           qwen_pairs),
    fifth("qwen3-key-norm-forgotten", "pow.6 __mul__.22 transpose.6",
           "missing-call scale", qwen_no_key_norm),
    fifth_noise("qwen3-sdpa", attention("sdpa")),
    fifth_noise("qwen3-joint", qwen_joint),
    fifth_noise("qwen3-rows-parallel", each(nn.Linear, in_two, "proj")),
    fifth_noise("qwen3-complex-turns", qwen_complex),
    fifth_noise("qwen3-single-norm", each(modeling_qwen3.Qwen3RMSNorm, root_norm)),
    fifth_noise("qwen3-one-hot", each(nn.Embedding, by_one_hot)),
    fifth_noise("qwen3-again", again),
    fifth_noise("qwen3-autocast", under_autocast),
]


def neox_in_line(s: Setup) -> None:
    s.model.gpt_neox.layers[1].use_parallel_residual = False


def neox_labels(s: Setup) -> None:
    model = s.model

    def loss() -> torch.Tensor:
        logits = model(input_ids=model.tokens, use_cache=False).logits
        return functional.cross_entropy(logits.flatten(0, 1).float(), model.tokens.flatten())
    s.subject.loss = loss


def neox_in_chunks(s: Setup) -> None:
    model = s.model

    def loss() -> torch.Tensor:
        logits = model(input_ids=model.tokens, use_cache=False).logits[:, :-1].flatten(0, 1)
        total = torch.logsumexp(torch.stack(
            [torch.logsumexp(part, -1) for part in logits.chunk(4, dim=-1)]), 0)
        own = torch.gather(logits, 1, model.tokens[:, 1:].reshape(-1, 1)).squeeze(1)
        return torch.sub(total, own).sum() / total.numel()
    s.subject.loss = loss


NEOX: list[Case] = [
    fifth("neox-one-after-the-other", "layer_norm.3 __add__.7",
           "extra-call extra-addend", neox_in_line),
    fifth("neox-epsilon", "layer_norm.2", "argument",
           attribute("gpt_neox.layers.1.input_layernorm.eps", 1e-3)),
    fifth("neox-labels-not-shifted",
           "Functional.pad.0 __getitem__.20 flatten.1 cross_entropy.0",
           "missing-call extra-call shifted structure argument", neox_labels),
    fifth_noise("neox-eager", attention("eager")),
    fifth_noise("neox-math-attention", math_attention),
    fifth_noise("neox-columns-parallel", each(nn.Linear, side_by_side)),
    fifth_noise("neox-error-function", each(GELUActivation, by_error_function)),
    fifth_noise("neox-norm-by-formula", unfused_norm),
    fifth_noise("neox-loss-in-chunks", neox_in_chunks),
    fifth_noise("neox-all-in-half", lambda s: s.model.bfloat16()),
]


def narrow_window(s: Setup) -> None:
    s.model.config.sliding_window = 7


def mistral_turned_back(s: Setup) -> None:
    def turned(x: torch.Tensor) -> torch.Tensor:
        first, last = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
        return torch.cat((last, -first), dim=-1)
    s.replace(modeling_mistral, "rotate_half", turned)


def mistral_residual(s: Setup) -> None:
    layer = s.model.model.layers[1]

    def forward(hidden_states: torch.Tensor, **more: Any) -> torch.Tensor:
        values, _ = layer.self_attn(hidden_states=layer.input_layernorm(hidden_states), **more)
        return values + layer.mlp(layer.post_attention_layernorm(values))
    layer.forward = forward


def wide_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + m.variance_epsilon)
    return (wide * scale * m.weight.float()).to(x.dtype)


def mistral_wide_turns(s: Setup) -> None:
    right = modeling_mistral.apply_rotary_pos_emb

    def turned(q: Any, k: Any, cos: Any, sin: Any, *more: Any) -> Any:
        return tuple(x.to(torch.bfloat16) for x in right(
            q.float(), k.float(), cos.float(), sin.float(), *more))
    s.replace(modeling_mistral, "apply_rotary_pos_emb", turned)


MISTRAL: list[Case] = [
    fifth("mistral-narrow-window", "__sub__.1", "argument", narrow_window),
    fifth("mistral-turned-back", "cat.1", "sign", mistral_turned_back),
    fifth("mistral-missing-residual", "__add__.14 pow.3",
           "missing-call missing-addend", mistral_residual),
    fifth("mistral-eighth-of-weight", "linear.13", "narrowed", changed(
        "model.layers.1.mlp.down_proj.weight", lambda w: w.to(torch.float8_e5m2).to(w.dtype))),
    fifth_noise("mistral-sdpa", attention("sdpa")),
    fifth_noise("mistral-half-sums", half_partial_sums),
    fifth_noise("mistral-single-norm", each(modeling_mistral.MistralRMSNorm, root_norm)),
    fifth_noise("mistral-wide-norm", each(modeling_mistral.MistralRMSNorm, wide_norm)),
    fifth_noise("mistral-rows-parallel", each(nn.Linear, in_two, "proj")),
    fifth_noise("mistral-wide-turns", mistral_wide_turns),
    fifth_noise("mistral-all-in-full", lambda s: s.model.float()),
]


def whisper_places(s: Setup) -> None:
    weight = s.model.model.decoder.embed_positions.weight
    weight.data = weight.data.roll(-1, 0)


def whisper_no_norm(s: Setup) -> None:
    s.model.model.encoder.layer_norm.forward = lambda x: x


def whisper_scaled_late(s: Setup) -> None:
    def written(module: Any, query: Any, key: Any, value: Any, mask: Any, *_: Any, **__: Any
                ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.matmul(query, key.transpose(2, 3)) / (12 ** -0.5)
        scores = scores * (12 ** -0.5)
        if mask is not None:
            scores = scores + mask[:, :, :, :key.shape[-2]]
        shares = functional.softmax(scores, dim=-1)
        return torch.matmul(shares, value).transpose(1, 2).contiguous(), shares
    s.replace(modeling_whisper, "eager_attention_forward", written)


def by_rows(m: Any, x: torch.Tensor) -> torch.Tensor:
    windows = functional.pad(x, (1, 1)).unfold(2, 3, m.stride[0])
    return torch.einsum("bclk,ock->bol", windows, m.weight) + m.bias[:, None]


WHISPER: list[Case] = [
    fifth("whisper-places-later", "__getitem__.1", "shifted", whisper_places),
    fifth("whisper-encoder-norm-forgotten", "layer_norm.4 linear.17", "missing-call",
           whisper_no_norm),
    fifth("whisper-scaled-twice", "__mul__.10", "scale argument", attribute(
        "model.decoder.layers.1.encoder_attn.scaling", 1 / 12)),
    fifth_noise("whisper-sdpa", attention("sdpa")),
    fifth_noise("whisper-windows", each(nn.Conv1d, by_rows)),
    fifth_noise("whisper-tf32", tf32_products),
    fifth_noise("whisper-products-off", own_products_off),
    fifth_noise("whisper-error-function", each(GELUActivation, by_error_function)),
]


def dpo_order(s: Setup) -> None:
    def better(policy: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        good, bad = torch.sub(policy, reference).chunk(2)
        return torch.sub(bad, good)
    s.model.better = better


def dpo_prompt(s: Setup) -> None:
    s.model.shifted = lambda tokens, answer: (tokens[:, 1:], answer[:, :-1])


def dpo_mean(s: Setup) -> None:
    s.model.total = lambda logs, answer: (logs * answer).sum(-1) / answer.sum(-1)


def dpo_mask(s: Setup) -> None:
    at_uses(s.model.policy.layers[1], "attended", (0,), lambda q, k, v:
            functional.scaled_dot_product_attention(q, k, v))


def dpo_by_sums(s: Setup) -> None:
    s.model.logs = lambda logits, targets: torch.sub(
        torch.gather(logits, 2, targets[..., None]).squeeze(-1), torch.logsumexp(logits, -1))


def dpo_entropy(s: Setup) -> None:
    s.model.logs = lambda logits, targets: -functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none")


def dpo_wide(s: Setup) -> None:
    right = s.model.logs
    s.model.logs = lambda logits, targets: right(logits.double(), targets).float()


def steps_of_attention(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "attended"):
            module.attended = by_heads


def dpo_two_forwards(s: Setup) -> None:
    right = s.model.chances
    s.model.chances = lambda model, tokens, answer: torch.cat(
        [right(model, *half) for half in zip(tokens.chunk(2), answer.chunk(2), strict=True)])


DPO: list[Case] = [
    fifth("dpo-order", "Torch.sub.1", "sign stale", dpo_order),
    fifth("dpo-prompt-one-off", "__getitem__.1", "shifted argument", dpo_prompt),
    fifth("dpo-mean", "sum.1 __truediv__.0 Torch.sub.0", "extra-call scale", dpo_mean),
    fifth("dpo-no-mask", "scaled_dot_product_attention.3", "argument structure", dpo_mask),
    fifth_noise("dpo-by-sums", dpo_by_sums),
    fifth_noise("dpo-entropy", dpo_entropy),
    fifth_noise("dpo-wide-loss", dpo_wide),
    fifth_noise("dpo-steps-of-attention", steps_of_attention),
    # Mathematically the same, but every shape differs: counted apart.
    noise("dpo-two-forwards", dpo_two_forwards, group="fifth, other shapes"),
    fifth_noise("dpo-rows-parallel", each(nn.Linear, in_two)),
]


def no_square(s: Setup) -> None:
    model = s.model
    model.both = lambda soft, hard: soft * (1 - model.share) + hard * model.share


def sharp_student(s: Setup) -> None:
    at_uses(s.model, "softened", (0,), lambda logits: logits.flatten(0, 1))


def by_hand(s: Setup) -> None:
    def soft(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        logs = functional.log_softmax(s.model.softened(student), dim=-1)
        truth = functional.log_softmax(s.model.softened(teacher), dim=-1)
        return (truth.exp() * (truth - logs)).sum(-1).mean()
    s.model.soft = soft


def log_target(s: Setup) -> None:
    s.model.soft = lambda student, teacher: functional.kl_div(
        functional.log_softmax(s.model.softened(student), dim=-1),
        functional.log_softmax(s.model.softened(teacher), dim=-1),
        reduction="batchmean", log_target=True)


def three_products(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "parts"):
            module.parts = lambda x, m=module.joint: tuple(
                functional.linear(x, w, b)
                for w, b in zip(m.weight.chunk(3), m.bias.chunk(3), strict=True))


def hot_labels(s: Setup) -> None:
    s.model.hard = lambda logits, tokens: -(
        functional.one_hot(tokens[:, 1:], logits.shape[-1])
        * functional.log_softmax(logits[:, :-1], dim=-1)).sum(-1).mean()


DISTILL: list[Case] = [
    fifth("distill-square-forgotten", "__mul__.0 __mul__.1", "missing-call scale argument",
           no_square),
    fifth("distill-mean-of-all", "Functional.kl_div.0", "argument scale",
           attribute("reduction", "mean")),
    fifth("distill-sharp-student", "__truediv__.0 flatten.3", "missing-call scale",
           sharp_student),
    fifth("distill-half-of-teacher", "linear.6", "narrowed",
           kernel("addmm:6", through(torch.float16))),
    fifth("distill-gradient-negative", "cross_entropy.0< flatten.5<", "sign", kernel(
        "_log_softmax_backward_data:0", afterwards(torch.ops.aten.neg.default))),
    fifth_noise("distill-by-hand", by_hand),
    fifth_noise("distill-log-target", log_target),
    fifth_noise("distill-three-products", three_products),
    fifth_noise("distill-hot-labels", hot_labels),
    fifth_noise("distill-math-attention", math_attention),
    fifth_noise("distill-everything-wide", everything_wide),
    fifth_noise("distill-autocast", under_autocast),
    fifth_noise("distill-threads", threads),
    fifth_noise("distill-split-products", split_products),
]

CASES = [*QWEN, *NEOX, *MISTRAL, *WHISPER, *DPO, *DISTILL]
