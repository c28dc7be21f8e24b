"""The third hold-out, models of third_steps.py: written without a look at the engine."""

from __future__ import annotations

import math
from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import both, half_partial_sums, tf32_products, unfused_linear, unfused_norm
from cases_second import attribute, changed
from cases_third import BASELINE, PRODUCTS, method, method_at, third, third_noise, wide
from cases_unseen_text import threads
from fault_cases import Case, Setup
from torch import nn
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_ROLL, _MUL = torch.ops.aten.roll.default, torch.ops.aten.mul.Tensor


def whole(dtype: torch.dtype) -> Any:
    """Parameters and buffers in another type."""
    return lambda s: s.model.to(dtype) and None


def without_mkldnn(s: Setup) -> None:
    s.stack.enter_context(torch.backends.mkldnn.flags(enabled=False))


def full_transform(model: Any, values: torch.Tensor, number: int) -> torch.Tensor:
    """The transform of complex values; the negative frequencies mirror the others."""
    found = model.multiplied(torch.fft.fft(values)[..., :25], model.weights[number])
    whole_found = functional.pad(torch.view_as_real(found), (0, 0, 0, values.shape[-1] - 8))
    one = torch.view_as_complex(whole_found)
    return 2 * torch.fft.ifft(one).real - one[..., :1].real / values.shape[-1]


def by_matrices(model: Any, values: torch.Tensor, number: int) -> torch.Tensor:
    """The transforms as products with cosines and sines."""
    count = values.shape[-1]
    angles = 2 * math.pi / count * torch.outer(torch.arange(count), torch.arange(8)).float()
    waves = torch.complex(values @ torch.cos(angles), -(values @ torch.sin(angles)))
    return torch.fft.irfft(model.multiplied(waves, model.weights[number]), n=count)


WAVES: list[Case] = [
    third("waves-normalised", "__getitem__.1", "scale", method_at(
        "layer", (1,), lambda m, values, number: torch.fft.irfft(m.multiplied(
            torch.fft.rfft(values, norm="ortho"), m.weights[number]), n=values.shape[-1]))),
    third("waves-moved", "Functional.gelu.1", "shifted permuted", kernel(
        "gelu:1", afterwards(lambda y: _ROLL(y, [3], [2])))),
    third_noise("waves-full-transform", method("layer", full_transform)),
    third_noise("waves-by-matrices", method("layer", by_matrices)),
    third_noise("waves-products", method("multiplied", lambda m, waves, weight: torch.matmul(
        waves[..., :8].permute(2, 0, 1), torch.view_as_complex(weight).permute(2, 0, 1)
    ).permute(1, 2, 0))),
    third_noise("waves-wide", wide("convolution", "convolution_backward", "gelu",
                                   "gelu_backward")),
]


def by_hand(model: Any, values: torch.Tensor) -> torch.Tensor:
    """log sum exp without the largest value taken out."""
    return torch.log(torch.exp(values).sum(-1))


def half_sum(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """A sum of bfloat16 parts."""
    parts = args[0].view(3, 256, 256).sum(-1).bfloat16()
    total = parts[:, 0]
    for place in range(1, 256):
        total = total + parts[:, place]
    return total.float()


LONG: list[Case] = [
    third("long-half-sum", "sum.0", "accumulation narrowed", kernel("sum:0", half_sum)),
    third("long-lost-tail", "__getitem__.2 Torch.logsumexp.0", "argument missing-call extra-call",
          method("likely", lambda m, values: torch.logsumexp(values[:, :-4096], dim=-1))),
    third_noise("long-threads", threads),
    third_noise("long-baseline", lambda s: None, environment=BASELINE),
    third_noise("long-by-blocks", method("total", lambda m, values: values.view(
        3, 256, 256).sum(-1).sum(-1))),
    third_noise("long-in-order", method("total", lambda m, values: torch.cumsum(
        values, -1)[:, -1])),
    third_noise("long-by-hand", method("likely", by_hand)),
    third_noise("long-by-norm", method("spread", lambda m, values: torch.linalg.vector_norm(
        values, dim=-1, keepdim=True) / values.shape[-1] ** 0.5)),
    third_noise("long-wide", wide("sum", "mean", "var", "addmm", "convolution", "logsumexp")),
]


def one_by_one(model: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
               ) -> torch.Tensor:
    """The state is carried along."""
    state, total, found = 0.0, 0.0, []
    for step in range(query.shape[1]):
        state = state + key[:, step, :, None] * value[:, step, None, :]
        total = total + key[:, step]
        above = torch.einsum("bk,bkv->bv", query[:, step], state)
        found.append(above / (query[:, step] * total).sum(-1, keepdim=True))
    return torch.stack(found, 1)


def all_pairs(model: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
              ) -> torch.Tensor:
    """Every pair of tokens, masked."""
    pairs = torch.tril(query @ key.transpose(1, 2))
    return (pairs @ value) / pairs.sum(-1, keepdim=True)


SCAN: list[Case] = [
    third("scan-late", "Torch.cumsum.3", "shifted", kernel(
        "cumsum:3", afterwards(lambda y: _ROLL(y, [1], [1])))),
    third("scan-not-positive", "Functional.elu.2 __add__.3", "missing-call not-applied", method_at(
        "positive", (2,), lambda m, values: values + 1)),
    third_noise("scan-one-by-one", method("mixed", one_by_one)),
    third_noise("scan-all-pairs", method("mixed", all_pairs)),
    third_noise("scan-in-half", whole(torch.bfloat16)),
    third_noise("scan-in-double", whole(torch.float64)),
    third_noise("scan-wide", wide(*PRODUCTS, "cumsum", "sum", "native_layer_norm", "elu")),
    third_noise("scan-unfused-norm", unfused_norm),
]


def judged_after(model: Any, values: torch.Tensor) -> torch.Tensor:
    """The product is divided, not the weight."""
    hidden = functional.linear(values, model.judge1.weight) / model.strength(model.judge1.weight)
    return model.judge2(functional.leaky_relu(hidden + model.judge1.bias, 0.2))


RIVALS: list[Case] = [
    third("rivals-climbing", "__rmul__.0", "argument sign", attribute("rate", -0.1)),
    third("rivals-gradient-scale", "Functional.leaky_relu.1<", "scale", kernel(
        "leaky_relu_backward:1", afterwards(lambda y: _MUL(y, 1.5)))),
    third_noise("rivals-after", method("judged", judged_after)),
    third_noise("rivals-wide", wide(*PRODUCTS, "mv", "dot", "tanh", "softplus")),
    third_noise("rivals-unfused-linear", unfused_linear),
]

def lost_drift(model: Any, gradient: torch.Tensor) -> torch.Tensor:
    """The drift of the step before is gone."""
    model.drift = torch.zeros(model.drift.shape)
    return type(model).momentum(model, gradient)


OPTIMISE: list[Case] = [
    third("optimise-keep", "Torch.lerp.0", "argument", attribute("keep", 0.5)),
    third("optimise-lost-drift", "__rmul__.13", "zeroed-block", method_at(
        "momentum", (1,), lost_drift)),
    third("optimise-last-part", "Functional.mse_loss.2<", "scale", kernel(
        "mse_loss_backward:2", afterwards(lambda y: _MUL(y, 3.0)))),
    third_noise("optimise-lerp-by-hand", method("averaged", lambda m, weight: m.keep * m.average
                                                + (1 - m.keep) * weight)),
    third_noise("optimise-wide", wide(*PRODUCTS, "silu", "silu_backward", "mean", "rsqrt")),
    third_noise("optimise-tf32", tf32_products),
]


def in_float(s: Setup) -> None:
    model = s.model.float()
    right = model.forward
    model.forward = lambda values: right(values.float())


NARROW: list[Case] = [
    third("narrow-narrow-square", "pow.2 Tensor.pow.2", "narrowed", kernel(
        "pow:2", through(torch.float16))),
    third("narrow-one-layer-twice", "linear.2", "scale", both(half_partial_sums, kernel(
        "addmm:2", afterwards(lambda y: y * 2)))),
    third_noise("narrow-half-sums", lambda s: s.changes.update(
        all_products(in_parts(4, torch.float16)))),
    third_noise("narrow-wide", wide(*PRODUCTS, "silu", "silu_backward")),
    third_noise("narrow-fused-norm", method("norm", lambda m, values: functional.rms_norm(
        values, (24,), eps=1e-5))),
    third_noise("narrow-in-float", in_float),
]


def fused_norms(s: Setup) -> None:
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
    third_noise("gemma-fused-norms", fused_norms),
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

WAVE: list[Case] = [
    third("wave-norm-doubled", "Torch._weight_norm.0 Functional.conv1d.3", "scale argument",
          changed("wav2vec2.encoder.pos_conv_embed.conv.parametrizations.weight.original0",
                  lambda w: 2 * w)),
    third("wave-late", "Functional.conv1d.1", "shifted", kernel(
        "convolution:1", afterwards(lambda y: _ROLL(y, [1], [2])))),
    third_noise("wave-sdpa", lambda s: s.model.set_attn_implementation("sdpa")),
    third_noise("wave-without-mkldnn", without_mkldnn),
    third_noise("wave-baseline", lambda s: None, environment=BASELINE),
    third_noise("wave-in-rows", wide("convolution", "convolution_backward", *PRODUCTS)),
]


def as_products(s: Setup) -> None:
    for module in s.model.modules():
        if isinstance(module, nn.Linear):
            module.forward = lambda x, m=module: torch.einsum("...i,oi->...o", x, m.weight) + m.bias


PICTURES: list[Case] = [
    third("pictures-one-scale", "__mul__.1", "zeroed-block scale", changed(
        "convnext.encoder.stages.1.layers.0.layer_scale_parameter",
        lambda w: torch.where(torch.arange(24) < 12, w, 0.0))),
    third("pictures-depth-shifted", "conv2d.4", "permuted shifted", kernel(
        "convolution:4", afterwards(lambda y: _ROLL(y, [1], [1])))),
    third_noise("pictures-without-mkldnn", without_mkldnn),
    third_noise("pictures-channels-last",
                lambda s: s.model.to(memory_format=torch.channels_last) and None),
    third_noise("pictures-einsum", as_products),
    third_noise("pictures-threads", threads),
]

CASES = [*WAVES, *LONG, *SCAN, *RIVALS, *OPTIMISE, *NARROW, *GEMMA, *FALCON, *DEBERTA, *WAVE,
         *PICTURES]
