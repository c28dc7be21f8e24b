"""Cases of language models: encoders, decoders, a mixture of experts."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_plain import (
    both,
    everything_wide,
    half_partial_sums,
    nothing,
    split_products,
    tf32_products,
    unfused_linear,
    unfused_norm,
)
from changes import (
    PRODUCTS,
    at_uses,
    attribute,
    changed,
    in_rows,
    kernel,
    threads,
    to_int8,
    whole,
    wide,
)
from fault_cases import Case, Setup, noise
from groups import (
    fifth,
    fifth_noise,
    fourth,
    fourth_noise,
    sixth,
    sixth_noise,
    third,
    third_noise,
    unseen,
    unseen_noise,
)
from other_ways import (
    by_error_function,
    by_one_hot,
    each,
    in_two,
    joined,
    math_attention,
    root_norm,
    side_by_side,
    under_autocast,
)
from torch import nn
from torch.nn import functional
from transformers.activations import GELUActivation, NewGELUActivation
from transformers.models.mistral import modeling_mistral
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.t5 import modeling_t5

# A recorder may have put its own functions in place of Tensor's.
_ROLL = torch.ops.aten.roll.default


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


def bert_unfused(s: Setup) -> None:
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
    unseen_noise("bert-unfused-linear", bert_unfused),
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


def gemma_fused_norms(s: Setup) -> None:
    for module in s.model.modules():
        if type(module).__name__ == "Gemma2RMSNorm":
            module.forward = lambda x, m=module: functional.rms_norm(
                x, (x.shape[-1],), 1 + m.weight, m.eps)


def by_sigmoid(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """tanh by another function."""
    return 2 * torch.ops.aten.sigmoid.default(2 * args[0]) - 1


GEMMA: list[Case] = [
    third("gemma-cap", "__truediv__.1", "argument scale", attribute(
        "model.layers.1.self_attn.attn_logit_softcapping", 5.0)),
    third("gemma-eps", "__add__.20", "argument offset", attribute(
        "model.layers.1.pre_feedforward_layernorm.eps", 1e-2)),
    third("gemma-key-shifted", "linear.8", "shifted permuted", both(tf32_products, kernel(
        "mm:8", afterwards(lambda y: _ROLL(y, [1], [0]))))),
    third_noise("gemma-in-half", whole(torch.bfloat16)),
    third_noise("gemma-in-double", whole(torch.float64)),
    third_noise("gemma-fused-norms", gemma_fused_norms),
    third_noise("gemma-parts", lambda s: s.changes.update(all_products(in_parts(4)))),
    third_noise("gemma-tanh-by-sigmoid", kernel("tanh", by_sigmoid)),
]


FALCON: list[Case] = [
    third("falcon-query-doubled", "Tensor.__matmul__.6", "scale", kernel(
        "mm:4", afterwards(lambda y: y * 2))),
    third("falcon-other-eps", "layer_norm.1", "argument", attribute(
        "transformer.h.1.input_layernorm.eps", 1e-1)),
    third_noise("falcon-parts", lambda s: s.changes.update(all_products(in_parts(5)))),
    third_noise("falcon-in-half", whole(torch.bfloat16)),
    third_noise("falcon-tf32", tf32_products),
    third_noise("falcon-unfused-norm", unfused_norm),
]


DEBERTA: list[Case] = [
    third("deberta-places-scaled", "Torch.bmm.5", "scale", kernel(
        "bmm:5", afterwards(lambda y: y * 0.5))),
    third("deberta-places-flipped", "dropout.1", "permuted", changed(
        "deberta.encoder.rel_embeddings.weight", lambda w: w.flip(0))),
    third_noise("deberta-in-half", whole(torch.bfloat16)),
    third_noise("deberta-tf32", tf32_products),
    third_noise("deberta-wide", wide(*PRODUCTS, "_softmax", "native_layer_norm", "gelu")),
    third_noise("deberta-unfused-linear", unfused_linear),
]


def qwen_fused_norms(s: Setup) -> None:
    for module in s.model.modules():
        if type(module).__name__ == "Qwen2RMSNorm":
            module.forward = lambda x, m=module: functional.rms_norm(
                x, (x.shape[-1],), m.weight, m.variance_epsilon)


QWEN: list[Case] = [
    fourth("qwen-value-bias", "linear.9", "offset missing-addend", lambda s: (
        s.model.model.layers[1].self_attn.v_proj.bias.data.add_(0.1), None)[1]),
    fourth("qwen-narrow-silu", "silu.1", "narrowed", kernel("silu:1", through(torch.bfloat16))),
    fourth_noise("qwen-sdpa", lambda s: s.model.set_attn_implementation("sdpa")),
    fourth_noise("qwen-in-half", whole(torch.bfloat16)),
    fourth_noise("qwen-in-double", whole(torch.float64)),
    fourth_noise("qwen-fused-norms", qwen_fused_norms),
    fourth_noise("qwen-rows", kernel("mm", in_rows)),
]


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


QWEN3: list[Case] = [
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


def padding_seen(s: Setup) -> None:
    mask = s.model.inputs["attention_mask"]
    s.model.inputs["attention_mask"] = torch.ones_like(mask)


def segments_exchanged(s: Setup) -> None:
    s.model.inputs["token_type_ids"] = 1 - s.model.inputs["token_type_ids"]


def shared(s: Setup) -> Any:
    """The only layer."""
    return s.model.albert.encoder.albert_layer_groups[0].albert_layers[0]


def quick(s: Setup) -> None:
    shared(s).activation.forward = lambda x: x * torch.sigmoid(1.702 * x)


def second_without_way_around(s: Setup) -> None:
    layer, count = shared(s), [0]

    def forward(values: torch.Tensor, mask: Any = None, **more: Any) -> torch.Tensor:
        count[0] += 1
        inner, _ = layer.attention(values, mask, **more)
        outer = layer.ff_chunk(inner)
        return layer.full_layer_layer_norm(outer if count[0] == 2 else outer + inner)
    layer.forward = forward


def fused_attention(s: Setup) -> None:
    s.model.set_attn_implementation("sdpa")


def by_tangents(_: Any, x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def one_product(s: Setup) -> None:
    attention = shared(s).attention
    joined([attention.query, attention.key, attention.value])


def chosen_words(s: Setup) -> None:
    model = s.model

    def loss() -> torch.Tensor:
        scores, chosen = model(**model.inputs).logits, model.wanted != -100
        return functional.cross_entropy(scores[chosen], model.wanted[chosen])
    s.subject.loss = loss


def in_places(s: Setup) -> None:
    shared(s).chunk_size_feed_forward = 7


ALBERT: list[Case] = [
    sixth("albert-padding-seen", "all.0 __bool__.0 Torch.arange.0", "", padding_seen),
    sixth("albert-segments-exchanged", "embedding.1", "", segments_exchanged),
    sixth("albert-quick-activation", "__rmul__.0 Torch.pow.0 Torch.sigmoid.0 linear.6",
          "argument scale missing-call extra-call", quick),
    sixth("albert-no-way-around", "__add__.11 layer_norm.4", "missing-call missing-addend",
          second_without_way_around),
    sixth_noise("albert-fused", fused_attention),
    sixth_noise("albert-by-tangents", each(NewGELUActivation, by_tangents)),
    sixth_noise("albert-one-product", one_product),
    sixth_noise("albert-chosen-words", chosen_words),
    sixth_noise("albert-one-hot", each(nn.Embedding, by_one_hot)),
    sixth_noise("albert-rows-parallel", each(nn.Linear, in_two)),
    sixth_noise("albert-norm-by-formula", unfused_norm),
    # Mathematically the same, but the shapes differ: counted apart.
    noise("albert-words-in-two-parts", in_places, group="sixth, other shapes"),
]
