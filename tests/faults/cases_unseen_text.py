"""Unseen cases: an encoder, an encoder with a decoder, a mixture of experts."""

from __future__ import annotations

import functools
from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import everything_wide, nothing, split_products, tf32_products
from fault_cases import Case, Setup, fault, noise
from torch import nn
from torch.nn import functional
from transformers.models.t5 import modeling_t5

unseen = functools.partial(fault, group="unseen")
unseen_noise = functools.partial(noise, group="unseen")


def at_uses(owner: Any, name: str, which: tuple[int, ...], wrong: Any) -> None:
    """Replaces some uses of an instance's method."""
    right, count = getattr(owner, name), [0]

    def replaced(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return (wrong if count[0] - 1 in which else right)(*args, **kwargs)
    setattr(owner, name, replaced)


def to_int8(weight: nn.Parameter) -> None:
    """Rounds to 8-bit integers with one scale, and back."""
    scale = weight.data.abs().max() / 127
    weight.data = (weight.data / scale).round() * scale


def bert_padding(s: Setup) -> None:
    s.model.inputs["attention_mask"] = torch.ones(2, 20, dtype=torch.long)


def bert_places(s: Setup) -> None:
    s.model.bert.embeddings.position_ids += 1


def bert_untied(s: Setup) -> None:
    head = s.model.cls.predictions.decoder
    head.weight = nn.Parameter(0.02 * torch.randn_like(head.weight))


def bert_relu(s: Setup) -> None:
    s.model.bert.encoder.layer[1].intermediate.intermediate_act_fn = nn.ReLU()


def bert_unscaled(s: Setup) -> None:
    s.model.bert.encoder.layer[1].attention.self.scaling = 1.0


def bert_labels(s: Setup) -> None:
    labels = s.model.inputs["labels"]
    s.model.inputs["labels"] = torch.where(labels == -100, 0, labels)


def bert_residual(s: Setup) -> None:
    output = s.model.bert.encoder.layer[0].output
    output.forward = lambda hidden, _: output.LayerNorm(output.dropout(output.dense(hidden)))


def tanh_gelu(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """The approximation instead of the error function."""
    return kernel_of(args[0], approximate="tanh")


def bert_sdpa(s: Setup) -> None:
    s.model.set_attn_implementation("sdpa")


def threads(s: Setup) -> None:
    torch.set_num_threads(3)
    s.stack.callback(torch.set_num_threads, 1)


def unfused_linear(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.forward = lambda x, m=module: torch.matmul(x, m.weight.t()) + m.bias


def whole_in_half(s: Setup) -> None:
    s.model.bfloat16()


BERT: list[Case] = [
    unseen("bert-padding-attended", "all.0", "", bert_padding),
    unseen("bert-places-shifted", "__getitem__.0", "offset shifted", bert_places),
    unseen("bert-head-untied", "linear.13", "random", bert_untied),
    unseen("bert-relu", "gelu.1 relu.0", "", bert_relu),
    unseen("bert-forgotten-root", "__mul__.1", "scale argument", bert_unscaled),
    unseen("bert-tanh-gelu", "gelu.0", "", kernel("gelu:0", tanh_gelu)),
    unseen("bert-labels-not-ignored", "cross_entropy.0", "", bert_labels),
    unseen("bert-missing-residual", "__add__.6 layer_norm.2", "missing-addend missing-call",
           bert_residual),
    unseen_noise("bert-sdpa", bert_sdpa),
    unseen_noise("bert-threads", threads),
    unseen_noise("bert-tf32", tf32_products),
    unseen_noise("bert-unfused-linear", unfused_linear),
    unseen_noise("bert-whole-in-half", whole_in_half),
]


def t5_no_bias(s: Setup) -> None:
    attention = s.model.decoder.block[0].layer[0].SelfAttention
    attention.relative_attention_bias.weight.data.zero_()


def t5_direction(s: Setup) -> None:
    s.model.decoder.block[0].layer[0].SelfAttention.is_decoder = False


def t5_epsilon(s: Setup) -> None:
    s.model.decoder.block[1].layer[2].layer_norm.variance_epsilon = 1e-2


def t5_unscaled_head(s: Setup) -> None:
    s.model.config.scale_decoder_outputs = False
    s.model.config.tie_word_embeddings = False


def t5_other_keys(s: Setup) -> None:
    blocks = s.model.decoder.block
    blocks[1].layer[1].EncDecAttention.k.weight = blocks[0].layer[1].EncDecAttention.k.weight


def t5_activation(s: Setup) -> None:
    s.model.encoder.block[1].layer[1].DenseReluDense.act = nn.SiLU()


def t5_not_shifted(s: Setup) -> None:
    s.model._shift_right = lambda tokens: tokens


def t5_cross_mask(s: Setup) -> None:
    right = modeling_t5.create_bidirectional_mask
    uses: list[int] = []

    def wrong(**kwargs: Any) -> Any:
        uses.append(1)
        mask = right(**kwargs)
        return torch.zeros_like(mask) if len(uses) == 2 and mask is not None else mask
    s.replace(modeling_t5, "create_bidirectional_mask", wrong)


def no_sum_term(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """The gradient of softmax without what its sum takes away."""
    return torch.ops.aten.mul.Tensor(args[0], args[1])


def t5_fused_norm(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, modeling_t5.T5LayerNorm):
            module.forward = lambda x, m=module: functional.rms_norm(
                x, (x.shape[-1],), m.weight, m.variance_epsilon)


T5: list[Case] = [
    unseen("t5-no-bias", "embedding.3", "zeroed-block", t5_no_bias),
    unseen("t5-direction", "Torch.min.1 __gt__.1", "missing-call extra-call", t5_direction),
    unseen("t5-epsilon", "__add__.39", "argument", t5_epsilon),
    unseen("t5-unscaled-head", "__mul__.33 linear.32", "scale missing-call", t5_unscaled_head),
    unseen("t5-other-keys", "linear.27", "stale", t5_other_keys),
    unseen("t5-activation", "relu.1 silu.0", "", t5_activation),
    unseen("t5-not-shifted", "__getitem__.7 embedding.2", "shifted missing-call", t5_not_shifted),
    unseen("t5-cross-unmasked", "__add__.27 Torch.zeros_like.0", "zeroed-block", t5_cross_mask),
    unseen("t5-softmax-gradient", "softmax.3<", "", kernel("_softmax_backward_data:2",
                                                           no_sum_term)),
    unseen_noise("t5-split", split_products),
    unseen_noise("t5-fused-norm", t5_fused_norm),
    unseen_noise("t5-wide", everything_wide),
]


def expert_skipped(s: Setup) -> None:
    at_uses(s.model.experts[1], "added", (2,), lambda total, rows, part: total)


def unnormalised(s: Setup) -> None:
    s.model.experts[1].routed = lambda scores: torch.topk(
        functional.softmax(scores, dim=-1), 2, dim=-1)


def gate_and_up(s: Setup) -> None:
    expert = s.model.experts[0].experts[1]
    expert.gate.weight, expert.up.weight = expert.up.weight, expert.gate.weight


def overwritten(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """The last of several additions to one place wins."""
    return torch.ops.aten.index_copy.default(args[0], args[1], args[2], args[3])


def wrong_base(s: Setup) -> None:
    s.model.attention[1].base = 1000.0


def keys_later(s: Setup) -> None:
    attention = s.model.attention[1]
    turned = attention.turned

    def later(values: torch.Tensor) -> torch.Tensor:
        attention.first = 1
        return turned(values)
    at_uses(attention, "turned", (1,), later)


def not_causal(s: Setup) -> None:
    s.model.attention[0].options = {"is_causal": False}


def repeated_in_turn(s: Setup) -> None:
    s.model.attention[1].repeated = lambda values: values.repeat(1, 2, 1, 1)


def attention_by_hand(s: Setup, hidden: float = float("-inf")) -> None:
    def attended(query: Any, key: Any, value: Any) -> torch.Tensor:
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        ahead = torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool), diagonal=1)
        return functional.softmax(scores.masked_fill(ahead, hidden), dim=-1) @ value
    for attention in s.model.attention:
        attention.attended = attended


def large_mask(s: Setup) -> None:
    ahead = torch.full((18, 18), torch.finfo(torch.float).min).triu(1)
    for attention in s.model.attention:
        attention.options = {"attn_mask": ahead}


def by_einsum(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, nn.Linear):
            module.forward = lambda x, m=module: torch.einsum("...i,oi->...o", x, m.weight)


EXPERTS: list[Case] = [
    unseen("experts-wrong-base", "Torch.pow.2", "argument", wrong_base),
    unseen("experts-one-skipped", "Torch.index_add.6 Torch.index_add.7",
           "missing-addend missing-call", expert_skipped),
    unseen("experts-unnormalised", "sum.1 __truediv__.5 __getitem__.17", "missing-call scale",
           unnormalised),
    unseen("experts-gate-and-up", "linear.8", "", gate_and_up),
    unseen("experts-overwritten", "Torch.index_add.1", "missing-addend",
           kernel("index_add:1", overwritten)),
    unseen("experts-router-narrowed", "softmax.1", "narrowed",
           kernel("_softmax:1", through(torch.bfloat16))),
    unseen("experts-shares-swapped", "Torch.topk.0", "permuted",
           kernel("topk:0", afterwards(lambda y: y.flip(-1)))),
    unseen("experts-not-causal", "scaled_dot_product_attention.0", "argument", not_causal),
    unseen("experts-keys-later", "__add__.11", "argument", keys_later),
    unseen("experts-repeated-in-turn", "repeat_interleave.2 Tensor.repeat.0",
           "permuted missing-call extra-call", repeated_in_turn),
    unseen("experts-int8-weight", "linear.24", "narrowed",
           lambda s: to_int8(s.model.experts[1].experts[0].down.weight)),
    unseen_noise("experts-attention-by-hand", attention_by_hand),
    unseen_noise("experts-large-mask", large_mask),
    unseen_noise("experts-tf32", tf32_products),
    unseen_noise("experts-einsum", by_einsum),
    unseen_noise("experts-repetition", nothing),
    unseen_noise("experts-seven-parts", lambda s: s.changes.update(all_products(in_parts(7)))),
]

CASES = [*BERT, *T5, *EXPERTS]
