"""The fourth hold-out: written after the engine had learnt from the third."""

from __future__ import annotations

import functools
from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import both, put, tf32_products, unfused_linear, unfused_norm
from cases_second import attribute
from cases_third import PRODUCTS, in_rows, method, method_at, wide
from cases_third_steps import whole
from fault_cases import Case, Setup, fault, noise
from torch.nn import functional

fourth = functools.partial(fault, group="fourth")
fourth_noise = functools.partial(noise, group="fourth")
# A recorder may have put its own functions in place of Tensor's.
_MUL, _ROLL = torch.ops.aten.mul.Tensor, torch.ops.aten.roll.default


def pull_by_distance(model: Any, places: torch.Tensor) -> torch.Tensor:
    """Distances to the third power, divided by."""
    gaps = places[None] - places[:, None]
    square = torch.einsum("ijk,ijk->ij", gaps, gaps) + model.soft
    return torch.einsum("ijk,ij->ik", gaps, model.masses / (square * square.sqrt()))


def pull_by_products(model: Any, places: torch.Tensor) -> torch.Tensor:
    """Sums over the other bodies as a product of matrices."""
    gaps = places[None] - places[:, None]
    weights = model.masses * torch.rsqrt(gaps.square().sum(-1) + model.soft) ** 3
    return weights @ places - weights.sum(1, keepdim=True) * places


BODIES: list[Case] = [
    fourth("bodies-soft", "__add__.0", "argument offset", attribute("soft", 0.2)),
    fourth("bodies-one-step-twice", "__mul__.9 __rmul__.6", "extra-call scale", method_at(
        "pull", (2,), lambda m, places: type(m).pull(m, places) * 2)),
    fourth_noise("bodies-by-distance", method("pull", pull_by_distance)),
    fourth_noise("bodies-by-products", method("pull", pull_by_products)),
    fourth_noise("bodies-wide", wide("sum", "rsqrt", "pow", "mean")),
]

FILTER: list[Case] = [
    fourth("filtered-noise", "__rmul__.0 __rmul__.1", "argument scale", attribute("noise", 0.5)),
    fourth("filtered-gain-turned", "Torch.linalg.inv.3", "sign", kernel(
        "linalg_inv_ex:3", afterwards(lambda y: _MUL(y, -1.0)))),
    fourth_noise("filtered-solve", method("gain", lambda m, spread, seen: torch.linalg.solve(
        seen, m.see @ spread).t())),
    fourth_noise("filtered-joseph", method("corrected", lambda m, spread, gain: (
        torch.eye(4) - gain @ m.see) @ spread)),
    fourth_noise("filtered-one-solve", method_at("gain", (2,), lambda m, spread, seen:
                                                 torch.linalg.solve(seen, m.see @ spread).t())),
    fourth_noise("filtered-wide", wide(*PRODUCTS, "linalg_inv_ex", "mv", "dot")),
]


def squashed_by_norm(model: Any, values: torch.Tensor) -> torch.Tensor:
    """The length itself."""
    length = torch.linalg.vector_norm(values, dim=-1, keepdim=True)
    return values * (length / (1 + length * length))


CAPSULES: list[Case] = [
    fourth("capsules-shares-over-capsules", "softmax.1", "argument", method_at(
        "shares", (1,), lambda m, logits: functional.softmax(logits, dim=1))),
    fourth("capsules-lost-vote", "sum.5", "missing-addend zeroed-block", kernel(
        "sum:5", lambda kernel_of, args, kwargs: kernel_of(
            put(args[0], (slice(None), 2), 0.0), *args[1:], **kwargs))),
    fourth_noise("capsules-by-norm", method("squashed", squashed_by_norm)),
    fourth_noise("capsules-plain-softmax", method("shares", lambda m, logits: torch.exp(logits)
                                                  / torch.exp(logits).sum(2, keepdim=True))),
    fourth_noise("capsules-tf32", tf32_products),
    fourth_noise("capsules-wide", wide(*PRODUCTS, "sum", "_softmax", "sqrt")),
]


def balanced_by_hand(model: Any, costs: torch.Tensor, other: torch.Tensor, dim: int
                     ) -> torch.Tensor:
    """The largest taken out before the division."""
    gain = other - costs
    top = gain.amax(dim, keepdim=True)
    inner = torch.exp((gain - top) / model.smooth).sum(dim)
    return -(top.squeeze(dim) + model.smooth * torch.log(inner))


TRANSPORT: list[Case] = [
    fourth("transport-one-smooth", "Torch.logsumexp.4", "scale argument", kernel(
        "logsumexp:4", afterwards(lambda y: _MUL(y, 1.02)))),
    fourth("transport-points-moved", "Torch.tanh.0", "shifted permuted", both(
        tf32_products, kernel("tanh:0", afterwards(lambda y: _ROLL(y, [1], [0]))))),
    fourth_noise("transport-by-hand", method("balanced", balanced_by_hand)),
    fourth_noise("transport-one-by-hand", method_at("balanced", (3,), balanced_by_hand)),
    fourth_noise("transport-by-products", method("costs", lambda m, left, right:
        left.square().sum(1)[:, None] + right.square().sum(1) - 2 * left @ right.t())),
    fourth_noise("transport-cdist", method("costs", lambda m, left, right: torch.cdist(
        left, right, compute_mode="donot_use_mm_for_euclid_dist").square())),
    fourth_noise("transport-wide", wide(*PRODUCTS, "logsumexp", "exp", "sum", "tanh")),
]

INNER: list[Case] = [
    fourth("inner-rate", "__rmul__.0", "argument scale", attribute("rate", 0.03)),
    fourth_noise("inner-by-cosine", method("angles", lambda m, a, b: functional.cosine_similarity(
        a[:, None], b[None], dim=-1))),
    fourth_noise("inner-divided-after", method("angles", lambda m, a, b: (a @ b.t()) / torch.outer(
        a.norm(dim=-1), b.norm(dim=-1)))),
    fourth_noise("inner-wide", wide(*PRODUCTS, "silu", "_log_softmax")),
    fourth_noise("inner-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]


def fused_norms(s: Setup) -> None:
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
    fourth_noise("qwen-fused-norms", fused_norms),
    fourth_noise("qwen-rows", kernel("mm", in_rows)),
]

CLIP: list[Case] = [
    fourth("clip-scale", "Tensor.exp.0", "scale", lambda s: (
        s.model.logit_scale.data.mul_(0.5), None)[1]),
    fourth("clip-heads-lost", "Torch.matmul.5", "zeroed-block", kernel(
        "bmm:5", afterwards(lambda y: put(y, slice(0, 2), 0.0)))),
    fourth_noise("clip-sdpa", lambda s: s.model.set_attn_implementation("sdpa")),
    fourth_noise("clip-tf32", tf32_products),
    fourth_noise("clip-unfused-linear", unfused_linear),
    fourth_noise("clip-unfused-norm", unfused_norm),
    fourth_noise("clip-wide", wide(*PRODUCTS, "_softmax", "native_layer_norm", "convolution")),
]

CASES = [*BODIES, *FILTER, *CAPSULES, *TRANSPORT, *INNER, *QWEN, *CLIP]
