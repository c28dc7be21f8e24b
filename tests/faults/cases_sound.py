"""Cases of models of sound and speech."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, through
from cases_plain import put, tf32_products
from cases_science import without_mkldnn
from cases_text import attention
from changes import BASELINE, PRODUCTS, at_uses, attribute, changed, kernel, wide
from fault_cases import Case, Setup
from groups import fifth, fifth_noise, second, second_noise, sixth, sixth_noise, third, third_noise
from other_ways import by_error_function, each, own_products_off
from torch import nn
from torch.nn import functional
from transformers.activations import GELUActivation
from transformers.models.whisper import modeling_whisper

# A recorder may have put its own functions in place of Tensor's.
_ROLL = torch.ops.aten.roll.default


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


def whisper_places(s: Setup) -> None:
    weight = s.model.model.decoder.embed_positions.weight
    weight.data = weight.data.roll(-1, 0)


def whisper_no_norm(s: Setup) -> None:
    s.model.model.encoder.layer_norm.forward = lambda x: x


def whisper_scaled_late(s: Setup) -> None:
    def written(module: Any, query: Any, key: Any, value: Any, mask: Any, *_: Any, **__: Any
                ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.matmul(query, key.transpose(2, 3)) / (12 ** -0.5)
        scores = scores * (12 ** -0.5)
        if mask is not None:
            scores = scores + mask[:, :, :, :key.shape[-2]]
        shares = functional.softmax(scores, dim=-1)
        return torch.matmul(shares, value).transpose(1, 2).contiguous(), shares
    s.replace(modeling_whisper, "eager_attention_forward", written)


def by_rows(m: Any, x: torch.Tensor) -> torch.Tensor:
    windows = functional.pad(x, (1, 1)).unfold(2, 3, m.stride[0])
    return torch.einsum("bclk,ock->bol", windows, m.weight) + m.bias[:, None]


WHISPER: list[Case] = [
    fifth("whisper-places-later", "__getitem__.1", "shifted", whisper_places),
    fifth("whisper-encoder-norm-forgotten", "layer_norm.4 linear.17", "missing-call",
           whisper_no_norm),
    fifth("whisper-scaled-twice", "__mul__.10", "scale argument", attribute(
        "model.decoder.layers.1.encoder_attn.scaling", 1 / 12)),
    fifth_noise("whisper-sdpa", attention("sdpa")),
    fifth_noise("whisper-windows", each(nn.Conv1d, by_rows)),
    fifth_noise("whisper-tf32", tf32_products),
    fifth_noise("whisper-products-off", own_products_off),
    fifth_noise("whisper-error-function", each(GELUActivation, by_error_function)),
]


def earlier_frame(s: Setup) -> None:
    s.model.sideways = lambda label, frame, place: label[:, frame - 1, place - 1]


def future_seen(s: Setup) -> None:
    s.model.history = lambda labels: functional.pad(labels, (0, 1), value=s.model.blank)


def steps_of(s: Setup, blank: torch.Tensor, label: torch.Tensor, forwards: bool) -> torch.Tensor:
    """All ways in chances (forwards) or, in logarithms, from the end."""
    frames, places = blank.shape[1:]
    if forwards:
        chance, move = torch.exp(blank), torch.exp(label)
        row = [torch.ones_like(chance[:, 0, 0])]
        for place in range(1, places):
            row.append(row[-1] * move[:, 0, place - 1])
        for frame in range(1, frames):
            below = [p * chance[:, frame - 1, number] for number, p in enumerate(row)]
            row = below[:1]
            for place in range(1, places):
                row.append(below[place] + row[-1] * move[:, frame, place - 1])
        return torch.log(row[-1] * chance[:, -1, -1])
    after: list[torch.Tensor] = []
    for frame in reversed(range(frames)):
        row = []
        for place in reversed(range(places)):
            ways = []
            if frame < frames - 1:
                ways.append(after[places - 1 - place] + blank[:, frame, place])
            if place < places - 1:
                ways.append(row[-1] + label[:, frame, place])
            row.append(s.model.either(*ways) if len(ways) == 2 else
                       ways[0] if ways else blank[:, -1, -1])
        after = row
    return after[-1]


def by_chances(s: Setup) -> None:
    s.model.total = lambda blank, label: steps_of(s, blank, label, True)


def from_the_end(s: Setup) -> None:
    s.model.total = lambda blank, label: steps_of(s, blank, label, False)


def last_blank_forgotten(s: Setup) -> None:
    s.model.ended = lambda ways, blank: ways


def larger_and_rest(s: Setup) -> None:
    s.model.either = lambda one, other: torch.maximum(one, other) + torch.log1p(
        torch.exp(-torch.abs(one - other)))


def logs_by_sums(s: Setup) -> None:
    s.model.logs = lambda scores: scores - torch.logsumexp(scores, dim=-1, keepdim=True)


def side_by_side_joint(s: Setup) -> None:
    m = s.model

    def together(sound: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        shape = (-1, sound.shape[1], labels.shape[1], -1)
        both = torch.cat((sound[:, :, None].expand(shape), labels[:, None].expand(shape)), dim=-1)
        weight = torch.cat((m.of_sound.weight, m.of_labels.weight), dim=1)
        return torch.tanh(functional.linear(both, weight, m.of_sound.bias))
    m.together = together


def by_shifts(s: Setup) -> None:
    """The convolution of each channel as a sum of five products."""
    m = s.model.deep

    def forward(x: torch.Tensor) -> torch.Tensor:
        wide, count = functional.pad(x, (2, 2)), x.shape[-1]
        return sum((wide[..., at:at + count] * m.weight[:, :, at] for at in range(5)),
                   m.bias[:, None])
    m.forward = forward


TRANSDUCE: list[Case] = [
    sixth("transduce-label-of-earlier-frame", "__getitem__.7", "argument", earlier_frame),
    sixth("transduce-future-seen", "Functional.pad.0", "argument shifted", future_seen),
    sixth("transduce-one-group", "Functional.group_norm.0", "argument",
          attribute("norm_deep.num_groups", 1)),
    sixth("transduce-last-blank-forgotten", "__getitem__.45 __add__.41 mean.0",
          "missing-call missing-addend", last_blank_forgotten),
    sixth("transduce-best-way-only", "Torch.logaddexp.0 Torch.maximum.0 __add__.10",
          "extra-call missing-call", lambda s: setattr(s.model, "either", torch.maximum)),
    sixth_noise("transduce-by-chances", by_chances),
    sixth_noise("transduce-from-the-end", from_the_end),
    sixth_noise("transduce-larger-and-rest", larger_and_rest),
    sixth_noise("transduce-logs-by-sums", logs_by_sums),
    sixth_noise("transduce-joint-by-one-product", side_by_side_joint),
    sixth_noise("transduce-by-shifts", by_shifts),
    sixth_noise("transduce-products-off", own_products_off),
]
