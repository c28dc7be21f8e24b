"""The second hold-out: written after the engine had learnt from the unseen cases."""

from __future__ import annotations

import functools
from typing import Any

import numpy
import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import both, everything_wide, half_partial_sums, put, tf32_products
from cases_unseen_text import at_uses
from fault_cases import Case, Setup, fault, noise
from torch.nn import functional

second = functools.partial(fault, group="second")
second_noise = functools.partial(noise, group="second")
# A recorder may have put its own functions in place of Tensor's.
_MUL, _FLIP = torch.ops.aten.mul.Tensor, torch.ops.aten.flip.default


def changed(name: str, change: Any) -> Any:
    """A parameter or buffer, by its path, replaced by what `change` makes of it."""
    def apply(s: Setup) -> None:
        owner, last = s.model, name.rsplit(".", 1)[-1]
        for part in name.split(".")[:-1]:
            owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
        tensor = getattr(owner, last)
        tensor.data = change(tensor.data).contiguous()
    return apply


def attribute(name: str, value: Any) -> Any:
    """An attribute, by its path, with another value."""
    def apply(s: Setup) -> None:
        owner = s.model
        for part in name.split(".")[:-1]:
            owner = owner[int(part)] if part.isdigit() else getattr(owner, part)
        setattr(owner, name.rsplit(".", 1)[-1], value)
    return apply


def vit_mean(s: Setup) -> None:
    right = s.model.vit.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        result = right(*args, **kwargs)
        values = result.last_hidden_state
        result.last_hidden_state = values.mean(1, keepdim=True)
        return result
    s.model.vit.forward = forward


def vit_sdpa(s: Setup) -> None:
    s.model.set_attn_implementation("sdpa")


VIT: list[Case] = [
    second("vit-places-flipped", "__add__.0", "permuted",
           changed("vit.embeddings.position_embeddings", lambda w: w.flip(1))),
    second("vit-patches-transposed", "conv2d.0", "transposed",
           changed("vit.embeddings.patch_embeddings.projection.weight",
                   lambda w: w.transpose(2, 3))),
    second("vit-mean-of-patches", "Tensor.mean.0 __getitem__.0", "extra-call", vit_mean),
    second("vit-wrong-mean", "layer_norm.2", "offset",
           kernel("native_layer_norm:2", afterwards(lambda y: y - 0.05))),
    second("vit-attention-flipped", "softmax.1", "permuted",
           kernel("_softmax:1", afterwards(lambda y: _FLIP(y, [3])))),
    second_noise("vit-sdpa", vit_sdpa),
    second_noise("vit-tf32", tf32_products),
]


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


def not_on_sphere(s: Setup) -> None:
    at_uses(s.model, "sphere", (1,), lambda values: values)


def plain_factor(s: Setup) -> None:
    s.model.factor = lambda: s.model.scale


def next_labels(s: Setup) -> None:
    s.model.labels = lambda count: torch.arange(count).roll(-1)


def entropy_by_hand(s: Setup) -> None:
    model = s.model

    def forward(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        a, b = model.sphere(model.left(left)), model.sphere(model.right(right))
        scores = model.factor() * torch.matmul(a, b.t())
        own = torch.diagonal(scores)
        return ((torch.logsumexp(scores, 1) - own).mean()
                + (torch.logsumexp(scores.t(), 1) - own).mean()) / 2
    model.forward = forward


TOWERS: list[Case] = [
    second("towers-not-on-sphere", "Functional.normalize.1 t.0", "missing-call scale",
           not_on_sphere),
    second("towers-factor-not-raised", "Torch.exp.0 __mul__.0", "missing-call scale",
           plain_factor),
    second("towers-next-labels", "Tensor.roll.0 cross_entropy.0", "extra-call shifted permuted",
           next_labels),
    second("towers-gradient-twice", "linear.2<", "scale",
           both(tf32_products, kernel("mm:5", lambda kernel_of, args, kwargs: _MUL(
               kernel_of(*args), 2)))),
    second_noise("towers-entropy-by-hand", entropy_by_hand),
    second_noise("towers-three-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]


def undilated(s: Setup) -> None:
    s.model.gated[1].dilation, s.model.gated[1].padding = (1,), (1,)


def gates_exchanged(s: Setup) -> None:
    def gate(values: torch.Tensor) -> torch.Tensor:
        gate, value = values.chunk(2, dim=1)
        return torch.tanh(value) * torch.sigmoid(gate)
    at_uses(s.model, "gate", (1,), gate)


def mean_of_two(s: Setup) -> None:
    s.model.halved = lambda values: functional.avg_pool1d(values, 2)


SOUND: list[Case] = [
    second("sound-undilated", "Functional.conv1d.2", "argument", undilated),
    second("sound-gates-exchanged", "Torch.tanh.1", "stale", gates_exchanged),
    second("sound-mean-of-two", "Functional.max_pool1d.0 Functional.avg_pool1d.0",
           "missing-call extra-call structure", mean_of_two),
    second("sound-late", "Functional.conv_transpose1d.0", "shifted",
           kernel("convolution:4", afterwards(lambda y: torch.ops.aten.roll.default(y, [2], [2])))),
    second("sound-doubled", "Torch.add.0 __add__.2", "extra-addend extra-call", lambda s: at_uses(
        s.model, "joined", (2,), lambda values, change: torch.add(values, change, alpha=2))),
    second("sound-one-channel", "Functional.instance_norm.0", "nonfinite",
           kernel("native_batch_norm:0", afterwards(
               lambda y: put(y, (slice(None), 21), float("-inf"))))),
    second_noise("sound-wide", lambda s: s.changes.update(dict.fromkeys(
        ("convolution", "convolution_backward", "native_batch_norm", "tanh", "sigmoid"),
        through(torch.float64)))),
]


def merged(s: Setup) -> None:
    for layer in s.model.layers:
        layer.forward = lambda x, m=layer: functional.linear(
            x, m.weight(x.dtype) + torch.matmul(m.wide, m.narrow) * m.factor)


ADAPTERS: list[Case] = [
    second("adapters-factor", "__mul__.1", "scale argument", attribute("layers.1.factor", 4.0)),
    second("adapters-switched-off", "linear.5", "zeroed-block",
           changed("layers.1.wide", torch.zeros_like)),
    second("adapters-one-row", "Torch.mul.1", "scale", changed(
        "layers.1.rows", lambda w: torch.where(torch.arange(40)[:, None] == 7, w * 3, w))),
    second("adapters-rows-swapped", "linear.3", "permuted",
           both(half_partial_sums, kernel("mm:3", afterwards(
               lambda y: torch.ops.aten.index_select.default(y, 0, _SWAPPED))))),
    second_noise("adapters-merged", merged),
    second_noise("adapters-half-sums", half_partial_sums),
    second_noise("adapters-wide", everything_wide),
]
_SWAPPED = torch.tensor([1, 0, *range(2, 30)])

CASES = [*VIT, *GRAPH, *TOWERS, *SOUND, *ADAPTERS]
