"""Cases of graphs, densities, fields and bodies."""

from __future__ import annotations

import math
from typing import Any

import numpy
import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_plain import both, tf32_products
from changes import PRODUCTS, attribute, in_rows, kernel, method, method_at, wide
from fault_cases import Case, Setup
from groups import fourth, fourth_noise, second, second_noise, third, third_noise
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_MUL = torch.ops.aten.mul.Tensor
_ROLL = torch.ops.aten.roll.default


def first_half(values: torch.Tensor) -> torch.Tensor:
    """One for the first half of the rows, zero for the others."""
    marks = numpy.zeros((values.shape[0], *[1] * (values.dim() - 1)), dtype="f4")
    marks[:values.shape[0] // 2] = 1
    return torch.from_numpy(marks)


def reversed_edges(s: Setup) -> None:
    right = s.model.rounds[1].forward
    s.model.rounds[1].forward = lambda nodes, sources, targets: right(nodes, targets, sources)


def unstabilised(s: Setup) -> None:
    for messages in s.model.rounds:
        def shares(scores: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
            weights = torch.exp(scores)
            total = torch.zeros(count).index_add(0, targets, weights)
            return weights / torch.index_select(total, 0, targets)
        messages.shares = shares


def share_over_all(s: Setup) -> None:
    s.model.rounds[0].shares = lambda scores, targets, count: functional.softmax(scores, dim=0)


GRAPH: list[Case] = [
    second("graph-wrong-power", "Torch.pow.1", "argument", attribute("rounds.1.power", -1.0)),
    second("graph-reversed-edges", "Torch.index_select.4", "", reversed_edges),
    second("graph-share-over-all", "Functional.softmax.0 Tensor.max.0 Torch.exp.0 __sub__.0",
           "extra-call missing-call structure", share_over_all),
    second("graph-lost-messages", "index_add.2", "missing-addend zeroed-block",
           kernel("index_add:2", lambda kernel_of, args, kwargs: kernel_of(
               args[0], args[1], args[2], _MUL(args[3], first_half(args[3]))))),
    second("graph-other-loss-sign", "Functional.nll_loss.0<", "sign",
           kernel("nll_loss_backward:0", afterwards(torch.ops.aten.neg.default))),
    second_noise("graph-unstabilised", unstabilised),
    second_noise("graph-wide", lambda s: s.changes.update(dict.fromkeys(
        ("mm", "addmm", "exp", "tanh", "_log_softmax", "elu"), through(torch.float64)))),
]


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


FILTERED: list[Case] = [
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
