"""Cases of models of pictures: classes, masks, boxes, diffusion."""

from __future__ import annotations

from typing import Any

import numpy
import torch
from below_calls import afterwards, through
from cases_plain import both, nothing, put, tf32_products, unfused_linear, unfused_norm
from cases_science import without_mkldnn
from changes import (
    PRODUCTS,
    at_uses,
    attribute,
    changed,
    kernel,
    method,
    method_at,
    threads,
    to_int8,
    wide,
)
from fault_cases import Case, Setup
from groups import (
    fifth,
    fifth_noise,
    fourth,
    fourth_noise,
    second,
    second_noise,
    sixth,
    sixth_noise,
    third,
    third_noise,
    unseen,
    unseen_noise,
)
from other_ways import (
    by_error_function,
    by_moments,
    by_windows,
    channels_last,
    deterministic,
    each,
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

# A recorder may have put its own functions in place of Tensor's.
_FLIP = torch.ops.aten.flip.default
_MUL = torch.ops.aten.mul.Tensor
_ROLL = torch.ops.aten.roll.default
_KEPT = (numpy.arange(32) // 8 != 1).astype("f4").reshape(32, 1, 1)


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


def not_restored(s: Setup) -> None:
    m = s.model

    def restored(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        marks = m.mark.expand(len(values), 16 - m.keep, -1)
        return m.chosen(torch.cat((values, marks), dim=1), order)
    m.restored = restored


def lost_on_seen(s: Setup) -> None:
    s.model.hidden = lambda order: (torch.argsort(order, dim=1) < s.model.keep).to(torch.float32)


def places_after_choice(s: Setup) -> None:
    m = s.model
    m.placed = lambda values, seen: m.chosen(values, seen) + m.place[:, :m.keep]


def biased(s: Setup) -> None:
    def truth(x: torch.Tensor) -> torch.Tensor:
        mean, spread = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
        return (x - mean) / torch.sqrt(spread + 1e-6)
    s.model.truth = truth


def by_convolution(s: Setup) -> None:
    m = s.model.enter
    s.model.embedded = lambda pictures: functional.conv2d(
        pictures, m.weight.unflatten(1, (4, 4, 3)).permute(0, 3, 1, 2), m.bias, stride=4
    ).flatten(2).transpose(1, 2)


def indexed(s: Setup) -> None:
    s.model.chosen = lambda values, index: values[torch.arange(len(values))[:, None], index]


def scattered(s: Setup) -> None:
    m = s.model

    def restored(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        both = torch.cat((values, m.mark.expand(len(values), 16 - m.keep, -1)), dim=1)
        return torch.zeros_like(both).scatter(1, order[..., None].expand_as(both), both)
    m.restored = restored


def only_hidden(s: Setup) -> None:
    s.model.lost = lambda error, hidden: error[hidden.bool()].mean()


def by_squares(s: Setup) -> None:
    def truth(x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        spread = (x.square().mean(-1, keepdim=True) - mean.square()) * (48 / 47)
        return (x - mean) * torch.rsqrt(spread + 1e-6)
    s.model.truth = truth


def by_parts(s: Setup) -> None:
    """Query, key and value by products of their own."""
    for layer in (*s.model.layers, s.model.after):
        def attended(x: torch.Tensor, m: Any = layer) -> torch.Tensor:
            query, key, value = (functional.linear(x, w, b).unflatten(-1, (4, -1)).transpose(1, 2)
                                 for w, b in zip(m.joint.weight.chunk(3), m.joint.bias.chunk(3),
                                                 strict=True))
            mixed = functional.scaled_dot_product_attention(query, key, value)
            return m.out(mixed.transpose(1, 2).flatten(2))
        layer.attended = attended


MASKED: list[Case] = [
    sixth("masked-not-restored", "Torch.argsort.1 __getitem__.2", "missing-call permuted stale",
          not_restored),
    sixth("masked-lost-on-seen", "__ge__.0 __mul__.0", "missing-call", lost_on_seen),
    sixth("masked-places-after-choice", "__add__.0 Torch.gather.0", "missing-call missing-addend",
          places_after_choice),
    sixth("masked-biased-spread", "var.0", "argument scale", biased),
    sixth_noise("masked-by-convolution", by_convolution),
    sixth_noise("masked-indexed", indexed),
    sixth_noise("masked-scattered", scattered),
    sixth_noise("masked-only-hidden", only_hidden),
    sixth_noise("masked-by-squares", by_squares),
    sixth_noise("masked-by-parts", by_parts),
    sixth_noise("masked-math-attention", math_attention),
    sixth_noise("masked-columns-parallel", each(nn.Linear, side_by_side)),
]
