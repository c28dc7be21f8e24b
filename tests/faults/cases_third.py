"""The third hold-out, models of third_models.py: written without a look at the engine."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import both, put, tf32_products
from cases_second import attribute, changed
from cases_unseen_text import at_uses
from fault_cases import Case, Setup, fault, noise
from torch.nn import functional

third = functools.partial(fault, group="third")
third_noise = functools.partial(noise, group="third")
# A recorder may have put its own functions in place of Tensor's.
_CAT, _SPLIT = torch.ops.aten.cat.default, torch.ops.aten.split.Tensor
BASELINE = (("ATEN_CPU_CAPABILITY", "default"),)


def wide(*kernels: str) -> Any:
    """These kernels in float64, rounded once."""
    return lambda s: s.changes.update(dict.fromkeys(kernels, through(torch.float64)))


PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


def in_rows(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """A product whose rows are computed in groups of five."""
    place = len(args) - 2
    return _CAT([kernel_of(*args[:place], part, args[-1], **kwargs)
                 for part in _SPLIT(args[place], 5)])


def method(name: str, value: Any) -> Any:
    """A method of the model, as a function of the model and the arguments."""
    def apply(s: Setup) -> None:
        model = s.model
        setattr(model, name, lambda *args: value(model, *args))
    return apply


def method_at(name: str, which: tuple[int, ...], value: Any) -> Any:
    """Some uses of a method."""
    return lambda s: at_uses(s.model, name, which, lambda *args: value(s.model, *args))


VAE: list[Case] = [
    third("vae-not-halved", "__rmul__.0 Torch.exp.0", "missing-call scale", method(
        "drawn", lambda m, mean, spread, draw: mean + torch.exp(spread) * draw)),
    third("vae-softplus-offset", "Functional.softplus.0", "offset",
          both(tf32_products, kernel("softplus:0", afterwards(lambda y: y + 0.03)))),
    third_noise("vae-wide", wide(*PRODUCTS, "exp", "tanh", "softplus", "tanh_backward",
                                 "softplus_backward", "mean")),
    third_noise("vae-expm1", method("distance", lambda m, mean, spread: 0.5 * torch.mean(
        mean.pow(2) + torch.expm1(spread) - spread))),
    third_noise("vae-addcmul", method("drawn", lambda m, mean, spread, draw: torch.addcmul(
        mean, torch.sqrt(torch.exp(spread)), draw))),
    third_noise("vae-in-rows", lambda s: s.changes.update(all_products(in_rows))),
]

FLOW: list[Case] = [
    third("flow-not-bounded", "__truediv__.2 Torch.exp.2", "missing-call", lambda s: setattr(
        s.model.steps[2], "bounded", lambda values: values)),
    third("flow-lost-determinant", "sum.2", "zeroed-block",
          kernel("sum:2", afterwards(lambda y: y * 0))),
    third_noise("flow-wide", wide(*PRODUCTS, "exp", "tanh", "sum")),
    third_noise("flow-sum-outside", method("likelihood", lambda m, values: -0.5 * torch.sum(
        values * values, -1) - 0.5 * values.shape[-1] * math.log(2 * math.pi))),
    third_noise("flow-bound-by-sigmoid", lambda s: [setattr(
        step, "bounded", lambda values: 4.0 * torch.sigmoid(values) - 2.0)
        for step in s.model.steps] and None),
    third_noise("flow-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]

PHYSICS: list[Case] = [
    third("physics-viscosity", "__rmul__.0", "argument scale", attribute("viscosity", 0.5)),
    third("physics-sign", "__sub__.0 __add__.1", "missing-call extra-call sign", method(
        "residual", lambda m, value, slope, curve: slope[:, 1:] + value * slope[:, :1]
        + m.viscosity * curve[:, :1])),
    third_noise("physics-wide", wide(*PRODUCTS, "tanh", "tanh_backward", "sum")),
    third_noise("physics-addcmul", method("residual", lambda m, value, slope, curve: torch.sub(
        torch.addcmul(slope[:, 1:], value, slope[:, :1]), curve[:, :1], alpha=m.viscosity))),
    third_noise("physics-tf32", tf32_products),
]


def distances_by_products(model: Any, points: torch.Tensor) -> torch.Tensor:
    """|a|^2 + |b|^2 - 2 ab."""
    own = points.square().sum(-1)
    return own[:, None] + own[None] - 2 * points @ points.t()


def two_triangles(model: Any, root: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Forward, then back."""
    half = torch.linalg.solve_triangular(root, values[:, None], upper=False)
    return torch.linalg.solve_triangular(root.mT, half, upper=True)[:, 0]


PROCESS: list[Case] = [
    third("process-noise", "__rmul__.1 __mul__.2", "argument scale", attribute("noise", 0.2)),
    third("process-narrowed", "Torch.exp.2", "narrowed", kernel("exp:2", through(torch.float16))),
    third_noise("process-wide", wide("exp", "linalg_cholesky_ex", "cholesky_solve", "dot", "sum",
                                     *PRODUCTS)),
    third_noise("process-by-products", method("squares", distances_by_products)),
    third_noise("process-two-triangles", method("solved", two_triangles)),
    third_noise("process-solve", method("solved", lambda m, root, values: torch.linalg.solve(
        root @ root.mT, values))),
]


def by_hand(model: Any, scores: torch.Tensor) -> torch.Tensor:
    """log sum exp, stabilised."""
    top = scores.amax(1, keepdim=True).detach()
    return torch.log(torch.exp(scores - top).sum(1)) + top.squeeze(1)


def paths_by_products(model: Any, scores: torch.Tensor) -> torch.Tensor:
    """Probabilities are multiplied by a matrix, and scaled at each step."""
    total, pairs = scores[:, 0], torch.exp(model.pairs)
    for step in range(1, scores.shape[1]):
        top = total.amax(1, keepdim=True)
        total = torch.log(torch.exp(total - top) @ pairs) + top + scores[:, step]
    return model.summed(total[:, :, None])[:, 0]


CHAIN: list[Case] = [
    third("chain-transposed", "__getitem__.2", "transposed",
          changed("pairs", lambda w: w.t())),
    third("chain-best-path", "Torch.logsumexp.4 Tensor.amax.0", "missing-call extra-call",
          method_at("summed", (4,), lambda m, scores: scores.amax(1))),
    third("chain-own-scaled", "Torch.gather.0", "scale",
          kernel("gather:0", afterwards(lambda y: y * 1.2))),
    third_noise("chain-by-hand", method("summed", by_hand)),
    third_noise("chain-one-by-hand", method_at("summed", (3,), by_hand)),
    third_noise("chain-plain-exp", method("summed", lambda m, scores: torch.log(
        torch.exp(scores).sum(1)))),
    third_noise("chain-by-products", method("all_paths", paths_by_products)),
    third_noise("chain-in-double", lambda s: s.model.double() and None),
    third_noise("chain-in-half", lambda s: s.model.bfloat16() and None),
]


def left_by_logarithms(model: Any, opaque: torch.Tensor) -> torch.Tensor:
    """The product as the exponential of a sum."""
    clear = torch.exp(torch.cumsum(torch.log(1 - opaque + 1e-6), dim=-1))
    return torch.cat((torch.ones_like(clear[:, :1]), clear[:, :-1]), dim=-1)


FIELD: list[Case] = [
    third("field-left-of-itself", "__getitem__.2 __getitem__.3 cat.1 __mul__.4", "missing-call",
          method("left", lambda m, opaque: torch.cumprod(1 - opaque + 1e-6, dim=-1))),
    third("field-narrowed", "Torch.sin.0", "narrowed", kernel("sin:0", through(torch.bfloat16))),
    third("field-cosines-first", "cat.0", "permuted shifted",
          kernel("cat:0", lambda kernel_of, args, kwargs: kernel_of(args[0][::-1], *args[1:]))),
    third_noise("field-wide", wide(*PRODUCTS, "exp", "sin", "cos", "cumprod", "softplus",
                                   "sigmoid")),
    third_noise("field-by-logarithms", method("left", left_by_logarithms)),
    third_noise("field-tf32", tf32_products),
]


def by_matrix(model: Any, rewards: torch.Tensor) -> torch.Tensor:
    """The discounted sums as one product."""
    place = torch.arange(rewards.shape[1])
    gap = place[:, None] - place[None]
    return rewards @ torch.where(gap >= 0, model.fade ** gap.clamp(min=0).float(), 0.0)


POLICY: list[Case] = [
    third("policy-fade", "__rmul__.0 __rmul__.1", "argument scale", attribute("fade", 0.99)),
    third("policy-not-standard", "mean.0 __sub__.1 std.0 __mul__.1", "missing-call",
          method("standard", lambda m, values: values)),
    third("policy-one-step-late", "Torch.stack.0", "shifted permuted", kernel(
        "stack:0", lambda kernel_of, args, kwargs: kernel_of(
            [args[0][-1], *args[0][:-1]], *args[1:]))),
    third_noise("policy-by-matrix", method("returns", by_matrix)),
    third_noise("policy-wide", wide(*PRODUCTS, "exp", "tanh", "_log_softmax", "std", "mean",
                                    "sum")),
    third_noise("policy-layer-norm", method("standard", lambda m, values: functional.layer_norm(
        values, values.shape, eps=0.0) * (1 - 1 / values.numel()) ** 0.5)),
]


def gates_joined(model: Any, layers: Any, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """One product for the gates of both sides."""
    count = 2 * h.shape[-1]
    gates = torch.sigmoid(functional.linear(
        torch.cat((x, h), -1), torch.cat((layers[0].weight[:count], layers[1].weight[:count]), 1),
        layers[0].bias[:count] + layers[1].bias[:count]))
    reset, update = gates.chunk(2, -1)
    fresh = torch.addcmul(functional.linear(x, layers[0].weight[count:], layers[0].bias[count:]),
                          reset, functional.linear(h, layers[1].weight[count:],
                                                   layers[1].bias[count:]))
    return model.mixed(update, h, torch.tanh(fresh))


def glance_flat(model: Any, state: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """A softmax over a dimension of one."""
    scores = model.score(torch.tanh(model.look(seen) + model.ask(state)[:, None]))
    return (torch.softmax(scores, dim=2) * seen).sum(1)


def glance_by_product(model: Any, state: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """The weighted mean as a product of matrices."""
    scores = model.score(torch.tanh(model.look(seen) + model.ask(state)[:, None]))
    return torch.bmm(torch.softmax(scores, dim=1).transpose(1, 2), seen)[:, 0]


LISTENER: list[Case] = [
    third("listener-wrong-axis", "Torch.softmax.2", "argument",
          method_at("glance", (2,), glance_flat)),
    third("listener-gate-turned", "__rsub__.3 __mul__.10", "stale sign extra-call missing-call",
          method_at("mixed", (3,), lambda m, update, old, new: update * new + (1 - update) * old)),
    third("listener-lost-memory", "Torch.stack.0", "zeroed-block", kernel(
        "stack:0", afterwards(lambda y: put(y, (slice(None), 2), 0.0)))),
    third_noise("listener-lerp", method("mixed", lambda m, update, old, new: torch.lerp(
        new, old, update))),
    third_noise("listener-other-mix", method("mixed", lambda m, update, old, new: new
                                             + update * (old - new))),
    third_noise("listener-joined", method("unit", gates_joined)),
    third_noise("listener-by-product", method("glance", glance_by_product)),
    third_noise("listener-wide", wide(*PRODUCTS, "tanh", "sigmoid", "_softmax")),
]

CASES = [*VAE, *FLOW, *PHYSICS, *PROCESS, *CHAIN, *FIELD, *POLICY, *LISTENER]
