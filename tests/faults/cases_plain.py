"""Cases of the plain transformer."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from below_calls import (
    PRODUCTS,
    afterwards,
    all_products,
    in_parts,
    rounded_to,
    through,
    with_inputs,
)
from fault_cases import Case, Setup, fault, noise
from torch import nn
from torch.nn import functional


def put(tensor: torch.Tensor, place: Any, value: float) -> torch.Tensor:
    """A copy with another value in one place.

    Not by assignment, which below autograd leaves a tensor's version as it was: a recorder would
    take the copy for what it was before.
    """
    marks = numpy.zeros(tuple(tensor.shape), dtype=bool)
    marks[place] = True
    return torch.where(torch.from_numpy(marks), torch.tensor(value, dtype=tensor.dtype), tensor)


def missing_scale(s: Setup) -> None:
    s.model.blocks[1].attention.scaled = lambda scores: scores


def wrong_scale(s: Setup) -> None:
    s.model.blocks[1].attention.scale = 0.125


def transposed_weight(s: Setup) -> None:
    weight = s.model.blocks[1].attention.value.weight
    weight.data = weight.data.t().contiguous()


def softmax_axis(s: Setup) -> None:
    s.model.blocks[1].attention.weights = lambda scores: functional.softmax(scores, dim=-2)


def softmax_axis_in_kernel(s: Setup) -> None:
    s.changes["_softmax:1"] = lambda kernel, args, kwargs: kernel(args[0], 1, *args[2:])


def mask_off_by_one(s: Setup) -> None:
    size = s.model.place.shape[0]
    s.model.mask = lambda: torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=2)


def mask_off_in_one_layer(s: Setup) -> None:
    size = s.model.place.shape[0]
    hidden = torch.triu(torch.ones(size, size, dtype=torch.bool), diagonal=2)
    s.model.blocks[1].attention.masked = lambda scores, _: scores.masked_fill(hidden, -torch.inf)


def missing_residual(s: Setup) -> None:
    block = s.model.blocks[1]
    joined, uses = block.joined, []

    def first_left_out(values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        uses.append(1)
        return change if len(uses) == 1 else joined(values, change)

    block.joined = first_left_out


def doubled_residual(s: Setup) -> None:
    s.changes["add:4"] = lambda kernel, args, kwargs: kernel(args[0] + args[1], args[1])


def nan_lane(s: Setup) -> None:
    s.changes["_softmax:1"] = afterwards(lambda y: put(y, (0, 1, slice(None), 3), torch.nan))


def infinite_element(s: Setup) -> None:
    s.changes["gelu:1"] = afterwards(lambda y: put(y, (1, 5, 77), torch.inf))


def narrowed_scores(s: Setup) -> None:
    attention = s.model.blocks[1].attention
    attention.scaled = lambda scores: (scores.to(torch.bfloat16) * attention.scale).to(torch.float)


def narrowed_in_kernel(s: Setup) -> None:
    s.changes["native_layer_norm:3"] = afterwards(rounded_to(7))


def stale_weight(s: Setup) -> None:
    weight = s.model.blocks[1].down.weight
    weight.data += 1e-3 * torch.randn_like(weight) * weight.std()


def dropout_left_on(s: Setup) -> None:
    s.model.blocks[1].dropout.train()


def zeroed_head(s: Setup) -> None:
    s.changes["bmm:3"] = afterwards(lambda y: put(y, slice(2, 3), 0.0))


def backward_scale(s: Setup) -> None:
    s.changes["gelu_backward:1"] = afterwards(lambda y: y * 0.5)


def backward_sign(s: Setup) -> None:
    s.changes["_softmax_backward_data:1"] = afterwards(torch.neg)


def gradient_twice(s: Setup) -> None:
    block = s.model.blocks[1]
    joined, uses = block.joined, []

    def hooked(values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        result = joined(values, change)
        uses.append(1)
        if len(uses) == 2:
            result.register_hook(lambda gradient: gradient * 2)
        return result

    block.joined = hooked


def half_accumulation(s: Setup) -> None:
    s.changes["addmm:11"] = in_parts(32, torch.float16)


def swapped_rows(s: Setup) -> None:
    def swapped(y: torch.Tensor) -> torch.Tensor:
        order = torch.arange(y.shape[0])
        order[3], order[4] = 4, 3
        return y[order]
    s.changes["addmm:9"] = afterwards(swapped)


def other_gelu(s: Setup) -> None:
    s.changes["gelu:1"] = lambda kernel, args, kwargs: kernel(args[0], approximate="tanh")


def shifted_places(s: Setup) -> None:
    s.model.place.data = s.model.place.data.roll(1, 0)


def offset_in_kernel(s: Setup) -> None:
    s.changes["addmm:6"] = afterwards(lambda y: y + 0.01)


def split_products(s: Setup) -> None:
    s.changes.update(all_products(in_parts(4)))


def nothing(s: Setup) -> None:
    pass


def tf32_products(s: Setup) -> None:
    s.changes.update(all_products(with_inputs(rounded_to(10))))


def everything_wide(s: Setup) -> None:
    kernels = (*PRODUCTS, "_softmax", "native_layer_norm", "gelu", "gelu_backward",
               "native_layer_norm_backward", "_softmax_backward_data")
    s.changes.update(dict.fromkeys(kernels, through(torch.float64)))


def unfused_norm(s: Setup) -> None:
    def written_out(values: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        centred = values - values.mean(-1, keepdim=True)
        return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps) * weight + bias

    for module in s.model.modules():
        if isinstance(module, nn.LayerNorm):
            module.forward = lambda x, m=module: written_out(x, m.normalized_shape, m.weight,
                                                             m.bias, m.eps)


def unfused_linear(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, nn.Linear) and module.bias is not None:
            module.forward = lambda x, m=module: torch.matmul(x, m.weight.t()) + m.bias


def fused_attention(s: Setup) -> None:
    for block in s.model.blocks:
        attention = block.attention

        def forward(values: torch.Tensor, hidden: torch.Tensor, a: Any = attention) -> torch.Tensor:
            query, key, value = (a.heads(part(values)) for part in (a.query, a.key, a.value))
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=~hidden)
            return a.out(mixed.transpose(1, 2).reshape(values.shape))

        attention.forward = forward


def half_partial_sums(s: Setup) -> None:
    s.changes.update(all_products(in_parts(4, torch.bfloat16)))


def both(*changes: Any) -> Any:
    """All changes, one after the other."""
    def change(s: Setup) -> None:
        for each in changes:
            each(s)
    return change


CASES: list[Case] = [
    fault("plain-missing-scale", "__mul__.1 masked_fill.1", "scale", missing_scale),
    fault("plain-wrong-scale", "__mul__.1", "scale", wrong_scale),
    fault("plain-transposed-weight", "linear.8", "transposed", transposed_weight),
    fault("plain-softmax-axis", "softmax.1", "", softmax_axis),
    fault("plain-softmax-axis-in-kernel", "softmax.1", "", softmax_axis_in_kernel),
    fault("plain-mask-off-by-one", "triu.0", "", mask_off_by_one),
    fault("plain-mask-off-in-layer", "masked_fill.1", "", mask_off_in_one_layer),
    fault("plain-missing-residual", "__add__.3 layer_norm.3", "missing-addend", missing_residual),
    fault("plain-nan-lane", "softmax.1", "nonfinite", nan_lane),
    fault("plain-infinite-element", "gelu.1", "nonfinite", infinite_element),
    fault("plain-narrowed-scores", "__mul__.1 Tensor.to.0", "narrowed", narrowed_scores),
    fault("plain-narrowed-norm", "layer_norm.3", "narrowed", narrowed_in_kernel),
    fault("plain-stale-weight", "linear.11", "stale", stale_weight),
    fault("plain-dropout-left-on", "dropout.1", "random", dropout_left_on),
    fault("plain-zeroed-head", "matmul.3", "zeroed-block", zeroed_head),
    fault("plain-backward-scale", "gelu.1<", "scale", backward_scale),
    fault("plain-backward-sign", "softmax.1<", "sign", backward_sign),
    fault("plain-gradient-twice", "__mul__.3 __add__.4< layer_norm.4<", "scale", gradient_twice),
    fault("plain-half-accumulation", "linear.11", "accumulation", half_accumulation),
    fault("plain-swapped-rows", "linear.9", "permuted", swapped_rows),
    fault("plain-other-gelu", "gelu.1", "", other_gelu),
    fault("plain-shifted-places", "__add__.0", "shifted", shifted_places),
    fault("plain-offset", "linear.6", "offset", offset_in_kernel),
    # Faults among rounding of another kernel.
    fault("plain-split-and-scale", "__mul__.1", "scale", both(split_products, wrong_scale)),
    fault("plain-split-and-head", "matmul.3", "zeroed-block", both(split_products, zeroed_head)),
    fault("plain-split-and-norm", "layer_norm.3", "narrowed",
          both(split_products, narrowed_in_kernel)),
    fault("plain-split-and-half-sums", "linear.11", "accumulation",
          both(split_products, half_accumulation)),
    fault("plain-wide-and-gelu", "gelu.1", "", both(everything_wide, other_gelu)),
    fault("plain-fused-and-offset", "linear.9", "offset",
          both(fused_attention, lambda s: s.changes.update(
              {"addmm:9": afterwards(lambda y: y + 0.01)}))),
    fault("plain-tf32-and-rows", "linear.9", "permuted", both(tf32_products, swapped_rows)),
    noise("plain-repetition", nothing),
    noise("plain-split-products", split_products),
    noise("plain-tf32-products", tf32_products),
    noise("plain-everything-wide", everything_wide),
    noise("plain-unfused-norm", unfused_norm),
    noise("plain-unfused-linear", unfused_linear),
    noise("plain-fused-attention", fused_attention),
    noise("plain-baseline-kernels", nothing, environment=(("ATEN_CPU_CAPABILITY", "default"),)),
    noise("plain_half-split-products", half_partial_sums),
    noise("plain_half-everything-wide", everything_wide),
    noise("plain_half-fused-attention", fused_attention),
    fault("plain_half-swapped-rows", "linear.9", "permuted", both(half_partial_sums, swapped_rows)),
    fault("plain_half-zeroed-head", "matmul.3", "zeroed-block",
          both(half_partial_sums, zeroed_head)),
]
