"""The fifth hold-out: pictures and series."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, through
from cases_held_out import kernel
from cases_plain import everything_wide, nothing, tf32_products, unfused_norm
from cases_second import attribute, changed
from cases_unseen_text import at_uses, threads
from fault_cases import Case, Setup
from fifth_changes import (
    by_error_function,
    by_moments,
    by_windows,
    channels_last,
    deterministic,
    each,
    fifth,
    fifth_noise,
    in_two,
    joined,
    math_attention,
    own_products_off,
    side_by_side,
    under_autocast,
)
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers.activations import GELUActivation


def resnet_epsilon(s: Setup) -> None:
    s.model.blocks[1].norm1.eps = 1e-3


def resnet_sides(s: Setup) -> None:
    s.model.smaller = lambda values: functional.max_pool2d(
        functional.pad(values, (0, 1, 0, 1)), 3, 2)


def folded(s: Setup) -> None:
    def fold(conv: Any, norm: Any) -> None:
        factor = norm.weight.data * torch.rsqrt(norm.running_var + norm.eps)
        bias = norm.bias.data - norm.running_mean * factor
        weight = conv.weight.data * factor[:, None, None, None]
        conv.forward = lambda x: functional.conv2d(x, weight, bias, conv.stride, conv.padding)
        norm.forward = lambda x: x

    fold(s.model.stem, s.model.norm)
    for block in s.model.blocks:
        fold(block.conv1, block.norm1)
        fold(block.conv2, block.norm2)
        if block.around is not None:
            fold(*block.around)


def mean_of_pixels(s: Setup) -> None:
    s.model.pooled = lambda values: values.flatten(2).mean(-1)


RESNET: list[Case] = [
    fifth("resnet-epsilon", "batch_norm.3", "argument", resnet_epsilon),
    fifth("resnet-colours-exchanged", "__sub__.0", "permuted",
           lambda s: setattr(s.model, "pictures", s.model.pictures.flip(1))),
    fifth("resnet-edge-on-one-side", "Functional.pad.0 Functional.max_pool2d.0",
           "extra-call argument structure", resnet_sides),
    fifth("resnet-root-of-spread", "batch_norm.2", "", changed(
        "blocks.0.norm2.running_var", torch.sqrt)),
    fifth_noise("resnet-folded", folded),
    fifth_noise("resnet-channels-last", channels_last),
    fifth_noise("resnet-products-off", own_products_off),
    fifth_noise("resnet-windows", each(nn.Conv2d, by_windows)),
    fifth_noise("resnet-mean-of-pixels", mean_of_pixels),
    fifth_noise("resnet-autocast", under_autocast),
    fifth_noise("resnet-baseline-kernels", nothing,
                 environment=(("ATEN_CPU_CAPABILITY", "default"),)),
]


def swin_unmoved(s: Setup) -> None:
    s.model.swin.encoder.layers[0].blocks[1].shift_size = 0


def swin_corners(s: Setup) -> None:
    merging = s.model.swin.encoder.layers[0].downsample

    def forward(x: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        x = x.view(x.shape[0], *size, -1)
        corners = [x[:, row::2, column::2, :] for row in range(2) for column in range(2)]
        whole = torch.cat(corners, dim=-1)
        return merging.reduction(merging.norm(whole.view(x.shape[0], -1, whole.shape[-1])))
    merging.forward = forward


def swin_bias(s: Setup) -> None:
    for path, module in s.model.named_modules():
        if ".layers.1.blocks.0." in path and path.endswith("relative_position_bias"):
            index = module.relative_position_index
            index.data = index.view(16, 16).t().reshape(-1)


def swin_joint(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "q_proj"):
            joined([module.q_proj, module.k_proj, module.v_proj])


SWIN: list[Case] = [
    fifth("swin-windows-stay", "Torch.roll.0 transpose.8", "missing-call", swin_unmoved),
    fifth("swin-corners-exchanged", "__getitem__.5", "argument permuted", swin_corners),
    fifth("swin-places-from-behind", "__getitem__.8", "permuted transposed", swin_bias),
    fifth_noise("swin-joint", swin_joint),
    fifth_noise("swin-tf32", tf32_products),
    fifth_noise("swin-columns-parallel", each(nn.Linear, side_by_side)),
    fifth_noise("swin-error-function", each(GELUActivation, by_error_function)),
    fifth_noise("swin-norm-by-formula", unfused_norm),
]


def layer_scale(s: Setup, change: Any) -> None:
    for path, module in s.model.named_modules():
        if path.endswith("stages.1.layers.1"):
            change(module)


def not_scaled(s: Setup) -> None:
    layer_scale(s, lambda m: setattr(m, "layer_scale_parameter", None))


def turned_kernel(s: Setup) -> None:
    def turn(m: Any) -> None:
        m.dwconv.weight.data = m.dwconv.weight.data.flip(2, 3).contiguous()
    layer_scale(s, turn)


def scale_in_weight(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "layer_scale_parameter"):
            scale, last = module.layer_scale_parameter, module.pwconv2
            module.layer_scale_parameter = None
            last.forward = lambda x, w=last, k=scale: functional.linear(
                x, w.weight * k[:, None], w.bias * k)


CONVNEXT: list[Case] = [
    fifth("convnext-not-scaled", "__mul__.2 permute.9", "missing-call scale", not_scaled),
    fifth("convnext-turned-kernel", "conv2d.4", "permuted", turned_kernel),
    fifth_noise("convnext-channels-last", channels_last),
    fifth_noise("convnext-products-off", own_products_off),
    fifth_noise("convnext-scale-in-weight", scale_in_weight),
    fifth_noise("convnext-wide", lambda s: s.changes.update(dict.fromkeys(
        ("convolution", "convolution_backward"), through(torch.float64)))),
    fifth_noise("convnext-rows-parallel", each(nn.Linear, in_two)),
]


def no_one(s: Setup) -> None:
    at_uses(s.model.layers[1], "moved", (0,),
            lambda values, shift, scale: values * scale + shift)


def gates(s: Setup) -> None:
    right = s.model.layers[1].controls

    def controls(time: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c, d, e, f = right(time)
        return a, b, f, d, e, c
    s.model.layers[1].controls = controls


def sines_first(s: Setup) -> None:
    def clock(times: torch.Tensor) -> torch.Tensor:
        angles = times[:, None] * torch.exp(torch.arange(8) * (-9.210340371976184 / 8))
        return torch.cat((torch.sin(angles), torch.cos(angles)), dim=-1)
    s.model.clock = clock


def other_whole(s: Setup) -> None:
    s.model.whole = lambda rows: torch.einsum(
        "nhwpqc->nchqwp", rows.view(-1, 6, 6, 2, 2, 4)).reshape(-1, 4, 12, 12)


def dit_again(s: Setup) -> None:
    for layer in s.model.layers:
        right = layer.forward
        layer.forward = lambda values, time, right=right: checkpoint(
            right, values, time, use_reentrant=False)


def dit_fused(s: Setup) -> None:
    for layer in s.model.layers:
        def attended(x: torch.Tensor, m: Any = layer) -> torch.Tensor:
            q, k, v = m.joint(x).view(*x.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(q, k, v)
            return m.out(mixed.transpose(1, 2).reshape(x.shape))
        layer.attended = attended


def dit_einsum(s: Setup) -> None:
    for layer in s.model.layers:
        def attended(x: torch.Tensor, m: Any = layer) -> torch.Tensor:
            q, k, v = m.joint(x).view(*x.shape[:2], 3, 4, -1).unbind(2)
            scores = torch.einsum("nqhd,nkhd->nhqk", q, k) * 8 ** -0.5
            mixed = torch.einsum("nhqk,nkhd->nqhd", torch.softmax(scores, -1), v)
            return m.out(mixed.reshape(x.shape))
        layer.attended = attended


def added_products(s: Setup) -> None:
    for layer in s.model.layers:
        layer.moved = lambda x, shift, scale: torch.addcmul(shift + x, x, scale)


DIT: list[Case] = [
    fifth("dit-one-forgotten", "__radd__.2 __mul__.7",
           "missing-call missing-addend offset", no_one),
    fifth("dit-gates-exchanged", "__mul__.9", "stale", gates),
    fifth("dit-sines-first", "cat.0", "permuted shifted stale", sines_first),
    fifth("dit-patches-transposed", "Torch.einsum.0", "transposed argument", other_whole),
    fifth("dit-epsilon", "layer_norm.3", "argument", attribute("layers.1.norm2.eps", 1e-4)),
    fifth_noise("dit-again", dit_again),
    fifth_noise("dit-fused", dit_fused),
    fifth_noise("dit-einsum", dit_einsum),
    fifth_noise("dit-added-products", added_products),
    fifth_noise("dit-windows", each(nn.Conv2d, by_windows)),
    fifth_noise("dit-rows-parallel", each(nn.Linear, in_two)),
]


def segment_ignored(s: Setup) -> None:
    s.model.entropy = lambda scores, classes: functional.cross_entropy(
        scores, classes.clamp(max=4))


def segment_aligned(s: Setup) -> None:
    s.model.larger = lambda values: functional.interpolate(
        values, scale_factor=2, mode="bilinear", align_corners=True)


def segment_frozen(s: Setup) -> None:
    s.model.norm2.eval()


def entropy_over_count(s: Setup) -> None:
    s.model.entropy = lambda scores, classes: functional.cross_entropy(
        scores, classes, ignore_index=255, reduction="sum") / (classes != 255).sum()


def wide_overlap(s: Setup) -> None:
    right = s.model.overlap
    s.model.overlap = lambda scores, classes: right(scores.double(), classes).float()


SEGMENT: list[Case] = [
    fifth("segment-nothing-ignored", "clamp.0 cross_entropy.0",
           "extra-call structure argument", segment_ignored),
    fifth("segment-aligned-corners", "Functional.interpolate.0", "argument", segment_aligned),
    fifth("segment-frozen-norm", "batch_norm.1", "argument", segment_frozen),
    fifth("segment-gradient-of-one-half", "conv2d.0<", "scale missing-addend", kernel(
        "convolution_backward:5", lambda kernel_of, args, kwargs: tuple(
            None if part is None else torch.ops.aten.mul.Tensor(part, 0.5)
            for part in kernel_of(*args)))),
    fifth_noise("segment-norm-by-moments", each(nn.BatchNorm2d, by_moments)),
    fifth_noise("segment-channels-last", channels_last),
    fifth_noise("segment-products-off", own_products_off),
    fifth_noise("segment-entropy-over-count", entropy_over_count),
    fifth_noise("segment-wide-overlap", wide_overlap),
    fifth_noise("segment-deterministic", deterministic),
]


def whole_pixels(s: Setup) -> None:
    def centres() -> torch.Tensor:
        line = torch.arange(8) * 4.0
        rows, columns = torch.meshgrid(line, line, indexing="ij")
        return torch.stack((columns, rows), dim=-1).reshape(-1, 2)
    s.model.centres = centres


def sizes_not_halved(s: Setup) -> None:
    def corners(moves: torch.Tensor) -> torch.Tensor:
        middle = s.model.centres() + moves[..., :2] * 4
        size = torch.exp(moves[..., 2:].clamp(max=4)) * 8
        return torch.cat((middle - size, middle + size), dim=-1)
    s.model.corners = corners


def focal_by_logs(s: Setup) -> None:
    model = s.model

    def focal(scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        chances = torch.sigmoid(scores)
        yes = -model.alpha * (1 - chances) ** 2 * functional.logsigmoid(scores)
        no = -(1 - model.alpha) * chances ** 2 * functional.logsigmoid(-scores)
        return (yes * truth + no * (1 - truth)).sum()
    model.focal = focal


def factors(s: Setup) -> None:
    model = s.model

    def apart(boxes: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        low, high = (torch.max(boxes[..., :2], truth[..., :2]),
                     torch.min(boxes[..., 2:], truth[..., 2:]))
        sides = functional.relu(high - low)
        common = sides[..., 0] * sides[..., 1]
        union = model.areas(boxes) + (model.areas(truth) - common)
        hull = torch.max(boxes[..., 2:], truth[..., 2:]) - torch.min(boxes[..., :2],
                                                                     truth[..., :2])
        return 2 - common / union - union / (hull[..., 0] * hull[..., 1])
    model.apart = apart


DETECT: list[Case] = [
    fifth("detect-whole-pixels", "__add__.0 __mul__.0",
           "missing-call missing-addend offset dtype", whole_pixels),
    fifth("detect-sizes-not-halved", "__truediv__.0 __sub__.0", "missing-call scale",
           sizes_not_halved),
    fifth("detect-other-share", "__rmul__.0", "argument scale", attribute("alpha", 0.75)),
    fifth_noise("detect-focal-by-logarithms", focal_by_logs),
    fifth_noise("detect-factors", factors),
    fifth_noise("detect-windows", each(nn.Conv2d, by_windows)),
    fifth_noise("detect-channels-wide", lambda s: s.changes.update(dict.fromkeys(
        ("convolution", "convolution_backward", "native_group_norm", "exp", "sigmoid"),
        through(torch.float64)))),
    fifth_noise("detect-products-off", own_products_off),
]


def unbiased(s: Setup) -> None:
    s.model.scales = lambda series: (
        torch.mean(series, dim=1, keepdim=True),
        torch.sqrt(torch.var(series, dim=1, keepdim=True, unbiased=True) + 1e-5))


def one_later(s: Setup) -> None:
    s.model.patches = lambda series: series.roll(-1, 1).unfold(1, 8, 4)


def no_mean(s: Setup) -> None:
    s.model.back = lambda values, mean, spread: values * spread[..., None]


def norm_last(s: Setup) -> None:
    s.model.layers[1].norm_first = False


def both_at_once(s: Setup) -> None:
    def scales(series: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        spread, mean = torch.var_mean(series, dim=1, keepdim=True, correction=0)
        return mean, torch.sqrt(spread + 1e-5)
    s.model.scales = scales


def either(s: Setup) -> None:
    def lost(result: torch.Tensor, future: torch.Tensor) -> torch.Tensor:
        error = future[..., None] - result
        return torch.where(error >= 0, s.model.levels * error, (s.model.levels - 1) * error).mean()
    s.model.lost = lost


def stacked(s: Setup) -> None:
    s.model.patches = lambda series: torch.stack(
        [series[:, at:at + 8] for at in range(0, 41, 4)], dim=1)


FORECAST: list[Case] = [
    fifth("forecast-unbiased", "Torch.var.0", "argument", unbiased),
    fifth("forecast-one-later", "roll.0 unfold.0", "shifted extra-call", one_later),
    fifth("forecast-mean-not-back", "__getitem__.3 __add__.6 __sub__.1",
           "missing-call missing-addend", no_mean),
    fifth("forecast-norm-last", "layer_norm.2 transpose.2", "missing-call", norm_last),
    fifth("forecast-levels-from-behind", "__mul__.1", "permuted", lambda s: setattr(
        s.model, "levels", s.model.levels.flip(0))),
    fifth("forecast-gradient-lost", "layer_norm.3<", "zeroed-block", kernel(
        "native_layer_norm_backward:0", afterwards(lambda y: torch.ops.aten.mul.Tensor(y, 0.0)))),
    fifth_noise("forecast-both-at-once", both_at_once),
    fifth_noise("forecast-either", either),
    fifth_noise("forecast-stacked", stacked),
    fifth_noise("forecast-math-attention", math_attention),
    fifth_noise("forecast-wide", everything_wide),
    fifth_noise("forecast-threads", threads),
]

CASES = [*RESNET, *SWIN, *CONVNEXT, *DIT, *SEGMENT, *DETECT, *FORECAST]
