"""Unseen cases: recurrent layers and a scan, a U-Net, a recommender."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import both, everything_wide, put, tf32_products
from cases_unseen_text import at_uses, to_int8, unseen, unseen_noise
from fault_cases import Case, Setup
from torch import nn
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_MUL = torch.ops.aten.mul.Tensor
_KEPT = (numpy.arange(32) // 8 != 1).astype("f4").reshape(32, 1, 1)


def cell_of(s: Setup, *, swapped: bool = False, tanh: bool = True, cut: bool = False) -> Any:
    """The recurrent cell with one mistake."""
    model = s.model

    def cell(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        gates = model.inner(x) + model.outer(h.detach() if cut else h)
        take, forget, fresh, give = gates.chunk(4, dim=-1)
        if swapped:
            take, forget = forget, take
        c = torch.sigmoid(forget) * c + torch.sigmoid(take) * torch.tanh(fresh)
        return torch.sigmoid(give) * (torch.tanh(c) if tanh else c), c
    return cell


def stale_state(s: Setup) -> None:
    right, states = s.model.cell, []

    def cell(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        states.append(h)
        return right(x, states[2] if len(states) == 4 else h, c)
    s.model.cell = cell


def growing(s: Setup) -> None:
    s.model.rates = lambda: torch.exp(s.model.decay)


def looks_ahead(s: Setup) -> None:
    model = s.model
    model.local_mix = lambda values: model.local(values.transpose(1, 2))[
        ..., 1:values.shape[1] + 1].transpose(1, 2)


def lost_state(s: Setup) -> None:
    at_uses(s.model, "faded", (3,), lambda state, keep: torch.zeros(state.shape) * keep)


def steep_softplus(s: Setup) -> None:
    s.model.steepness = 2.0


def joined_gates(s: Setup) -> None:
    model = s.model

    def cell(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        gates = functional.linear(torch.cat((x, h), 1),
                                  torch.cat((model.inner.weight, model.outer.weight), 1),
                                  model.inner.bias + model.outer.bias)
        take, forget, fresh, give = gates.chunk(4, dim=-1)
        c = torch.sigmoid(forget) * c + torch.sigmoid(take) * torch.tanh(fresh)
        return torch.sigmoid(give) * torch.tanh(c), c
    model.cell = cell


RECURRENT: list[Case] = [
    unseen("recurrent-gates-swapped", "Torch.sigmoid.6", "stale",
           lambda s: at_uses(s.model, "cell", (2,), cell_of(s, swapped=True))),
    unseen("recurrent-stale-state", "linear.7", "stale", stale_state),
    unseen("recurrent-growing", "__mul__.18", "sign", growing),
    unseen("recurrent-looks-ahead", "__getitem__.6", "argument shifted", looks_ahead),
    unseen("recurrent-lost-state", "__mul__.36", "zeroed-block", lost_state),
    unseen("recurrent-steep-softplus", "Functional.softplus.0", "argument", steep_softplus),
    unseen("recurrent-no-tanh", "tanh.9 __mul__.14", "missing-call not-applied",
           lambda s: at_uses(s.model, "cell", (4,), cell_of(s, tanh=False))),
    unseen("recurrent-cut-gradient", "linear.7< __mul__.8<", "missing-addend structure",
           lambda s: at_uses(s.model, "cell", (3,), cell_of(s, cut=True))),
    unseen("recurrent-half-exp", "Torch.exp.3", "narrowed",
           kernel("exp:3", through(torch.float16))),
    unseen("recurrent-no-forgetting", "linear.9", "zeroed-block",
           kernel("addmm:9", afterwards(lambda y: put(y, (slice(None), slice(48, 96)), 0.0)))),
    unseen_noise("recurrent-joined-gates", joined_gates),
    unseen_noise("recurrent-wide", lambda s: s.changes.update(dict.fromkeys(
        ("addmm", "mm", "convolution", "exp", "sigmoid", "tanh", "sum"),
        through(torch.float64)))),
    unseen_noise("recurrent-three-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]


def swapped_clock(s: Setup) -> None:
    s.changes["cat:0"] = lambda kernel_of, args, kwargs: kernel_of(args[0][::-1], *args[1:])


def nearest(s: Setup) -> None:
    s.model.larger = lambda values: functional.interpolate(values, scale_factor=2, mode="nearest")


def wrong_side(s: Setup) -> None:
    kept: list[torch.Tensor] = []
    s.model.stem.register_forward_hook(lambda module, args, result: kept.append(result))
    s.model.joined = lambda values, side: torch.cat((values, kept[0]), dim=1)


def no_time(s: Setup) -> None:
    block = s.model.middle

    def forward(values: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        inner = block.conv1(functional.silu(block.norm1(values)))
        inner = block.conv2(functional.silu(block.norm2(inner)))
        return block.skip(values) + inner
    block.forward = forward


def eight_bit_float(s: Setup) -> None:
    weight = s.model.up.conv1.weight
    weight.data = weight.data.to(torch.float8_e4m3fn).to(torch.float)


def loss_by_sum(s: Setup) -> None:
    s.model.reduction = "sum"


def by_unfold(s: Setup) -> None:
    def product(x: torch.Tensor, m: nn.Conv2d) -> torch.Tensor:
        columns = functional.unfold(x, m.kernel_size, padding=m.padding, stride=m.stride)
        flat = m.weight.flatten(1) @ columns + m.bias[:, None]
        size = (x.shape[-1] + 2 * m.padding[0] - m.kernel_size[0]) // m.stride[0] + 1
        return flat.view(x.shape[0], -1, size, size)
    for module in s.model.modules():
        if isinstance(module, nn.Conv2d):
            module.forward = lambda x, m=module: product(x, m)


def group_norm_by_hand(s: Setup) -> None:
    def normalised(x: torch.Tensor, m: nn.GroupNorm) -> torch.Tensor:
        groups = x.view(x.shape[0], m.num_groups, -1)
        variance, mean = torch.var_mean(groups, -1, correction=0, keepdim=True)
        flat = ((groups - mean) * torch.rsqrt(variance + m.eps)).view(x.shape)
        return flat * m.weight[:, None, None] + m.bias[:, None, None]
    for module in s.model.modules():
        if isinstance(module, nn.GroupNorm):
            module.forward = lambda x, m=module: normalised(x, m)


def picture_by_picture(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """A batch split into its members."""
    return torch.ops.aten.cat.default([kernel_of(part, *args[1:], **kwargs)
                                       for part in torch.ops.aten.split.Tensor(args[0], 1)])


UNET: list[Case] = [
    unseen("unet-groups", "Functional.group_norm.6", "argument",
           lambda s: setattr(s.model.up.norm1, "num_groups", 8)),
    unseen("unet-clock-swapped", "cat.0", "permuted shifted", swapped_clock),
    unseen("unet-nearest", "Functional.interpolate.0", "argument structure", nearest),
    unseen("unet-joined-in-turn", "cat.1", "permuted shifted",
           lambda s: setattr(s.model, "joined", lambda a, b: torch.cat((b, a), dim=1))),
    unseen("unet-wrong-side", "cat.1", "stale", wrong_side),
    unseen("unet-no-time", "silu.7 __add__.5 Functional.group_norm.5",
           "missing-addend missing-call", no_time),
    unseen("unet-int8-weight", "conv2d.9", "narrowed",
           lambda s: to_int8(s.model.middle.conv2.weight)),
    unseen("unet-float8-weight", "conv2d.11", "narrowed", eight_bit_float),
    unseen("unet-saturated", "conv2d.12", "saturated",
           kernel("convolution:12", afterwards(lambda y: y.clamp(-0.3, 0.3)))),
    unseen("unet-circular", "Functional.pad.0 conv2d.8", "",
           lambda s: setattr(s.model.middle.conv1, "padding_mode", "circular")),
    unseen("unet-loss-by-sum", "Functional.mse_loss.0", "argument scale", loss_by_sum),
    unseen("unet-norm-gradient", "Functional.group_norm.4<", "zeroed-block",
           kernel("native_group_norm_backward:3",
                  afterwards(lambda y: _MUL(y, torch.from_numpy(_KEPT))))),
    unseen("unet-tf32-and-silu", "silu.6", "offset",
           both(tf32_products, kernel("silu:6", afterwards(lambda y: y + 0.02)))),
    unseen_noise("unet-unfold", by_unfold),
    unseen_noise("unet-group-norm-by-hand", group_norm_by_hand),
    unseen_noise("unet-channels-last",
                 lambda s: s.model.to(memory_format=torch.channels_last)),
    unseen_noise("unet-picture-by-picture", kernel("convolution", picture_by_picture)),
]


def rows_moved(s: Setup) -> None:
    weight = s.model.bags[2].weight
    weight.data = weight.data.roll(1, 0)


def lost_weight(s: Setup) -> None:
    s.model.weight = None


def sigmoid_twice(s: Setup) -> None:
    right = s.model.loss
    s.model.loss = lambda scores: right(torch.sigmoid(scores))


def scattered(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """The last of several values for one place wins."""
    return torch.ops.aten.scatter.src(*args)


def upper_pairs(s: Setup) -> None:
    s.model.places = lambda: torch.triu_indices(4, 4, offset=1)


def bags_by_hand(s: Setup) -> None:
    for bag in s.model.bags:
        bag.forward = lambda ids, m=bag: functional.embedding(ids, m.weight).mean(1)


RECOMMEND: list[Case] = [
    unseen("recommend-bag-sum", "Functional.embedding_bag.1", "argument scale",
           lambda s: setattr(s.model.bags[1], "mode", "sum")),
    unseen("recommend-rows-moved", "Functional.embedding_bag.2", "shifted", rows_moved),
    unseen("recommend-slope", "Functional.leaky_relu.0", "argument",
           lambda s: setattr(s.model.top[1], "negative_slope", 0.1)),
    unseen("recommend-sigmoid-twice",
           "Torch.sigmoid.0 Functional.binary_cross_entropy_with_logits.0", "extra-call",
           sigmoid_twice),
    unseen("recommend-lost-weight", "Functional.binary_cross_entropy_with_logits.0",
           "argument structure", lost_weight),
    unseen("recommend-scattered", "scatter_add.0", "missing-addend",
           kernel("scatter_add:0", scattered)),
    unseen("recommend-upper-pairs", "Torch.tril_indices.0 Torch.triu_indices.0 unbind.0", "",
           upper_pairs),
    unseen("recommend-dropout", "dropout.0", "argument random",
           lambda s: setattr(s.model.top[2], "p", 0.3)),
    unseen("recommend-nan", "batch_norm.0", "nonfinite",
           kernel("native_batch_norm:0",
                  afterwards(lambda y: put(y, (slice(None), 7), torch.nan)))),
    unseen_noise("recommend-bags-by-hand", bags_by_hand),
    unseen_noise("recommend-wide", everything_wide),
]

CASES = [*RECURRENT, *UNET, *RECOMMEND]
