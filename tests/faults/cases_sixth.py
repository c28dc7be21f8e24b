"""The sixth hold-out, one part of it: latents, a transducer, masked pictures, retention."""

from __future__ import annotations

import functools
from typing import Any

import torch
from cases_plain import tf32_products, unfused_norm
from cases_second import attribute
from cases_unseen_text import at_uses, threads
from fault_cases import Case, Setup, fault, noise
from fifth_changes import each, math_attention, own_products_off, side_by_side
from torch import nn
from torch.nn import functional

sixth = functools.partial(fault, group="sixth")
sixth_noise = functools.partial(noise, group="sixth")


def looked(s: Setup, mixed: Any) -> None:
    """Another way to attend, mixed(scale, query, key, value, hidden)."""
    for part in (s.model.enter, s.model.inner):
        part.mixed = functools.partial(mixed, part.scale)


def gate_exchanged(s: Setup) -> None:
    def gated(both: torch.Tensor) -> torch.Tensor:
        gate, values = both.chunk(2, dim=-1)
        return values * functional.gelu(gate)
    s.model.enter_feed.gated = gated


def one_beyond(s: Setup) -> None:
    s.model.beyond = lambda count, lengths: torch.arange(count) > lengths[:, None]


def degrees(s: Setup) -> None:
    s.model.angles = lambda places: places[:, None] * torch.linspace(1, 10, 4)


def by_products(scale: float, query: Any, key: Any, value: Any, hidden: Any) -> torch.Tensor:
    scores = torch.matmul((query * scale).transpose(1, 2), key.permute(0, 2, 3, 1))
    if hidden is not None:
        scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
    return torch.matmul(torch.softmax(scores, -1), value.transpose(1, 2)).transpose(1, 2)


def fused(_: float, query: Any, key: Any, value: Any, hidden: Any) -> torch.Tensor:
    mask = None if hidden is None else ~hidden[:, None, None]
    return functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (query, key, value)), attn_mask=mask).transpose(1, 2)


def in_blocks(scale: float, query: Any, key: Any, value: Any, hidden: Any) -> torch.Tensor:
    """Keys in two blocks, each with its own largest score."""
    parts = []
    hiddens = (None, None) if hidden is None else hidden.chunk(2, 1)
    for k, v, mask in zip(key.chunk(2, 1), value.chunk(2, 1), hiddens, strict=True):
        scores = torch.einsum("nqhd,nkhd->nhqk", query, k) * scale
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None], -1e9)
        top = scores.amax(-1, keepdim=True)
        shares = torch.exp(scores - top)
        parts.append((top, shares.sum(-1, keepdim=True), torch.matmul(shares, v.transpose(1, 2))))
    (top, total, values), (top2, total2, values2) = parts
    most = torch.maximum(top, top2)
    one, two = torch.exp(top - most), torch.exp(top2 - most)
    return ((values * one + values2 * two) / (total * one + total2 * two)).transpose(1, 2)


def smoothed_by_hand(s: Setup) -> None:
    def entropy(scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        logs = functional.log_softmax(scores, dim=-1)
        own = -logs.gather(1, classes[:, None]).squeeze(1)
        return ((1 - s.model.smoothing) * own - s.model.smoothing * logs.mean(-1)).mean()
    s.model.entropy = entropy


def polar(s: Setup) -> None:
    def features(places: torch.Tensor) -> torch.Tensor:
        angles = s.model.angles(places)
        turns = torch.polar(torch.ones_like(angles), angles)
        return torch.cat((turns.imag, turns.real, places[:, None]), dim=-1)
    s.model.features = features


def two_gates(s: Setup) -> None:
    for part in (s.model.enter_feed, s.model.inner_feed):
        def forward(x: torch.Tensor, m: Any = part) -> torch.Tensor:
            x = m.norm(x)
            values, gate = (functional.linear(x, w, b) for w, b in zip(
                m.up.weight.chunk(2), m.up.bias.chunk(2), strict=True))
            return m.down(functional.gelu(gate) * values)
        part.forward = forward


PERCEIVE: list[Case] = [
    sixth("perceive-scale-of-all-heads", "__mul__.4", "argument scale",
          attribute("inner.scale", 32 ** -0.5)),
    sixth("perceive-gate-exchanged", "gelu.0", "stale", gate_exchanged),
    sixth("perceive-one-beyond", "__ge__.0 __gt__.0 __getitem__.3",
          "extra-call missing-call shifted", one_beyond),
    sixth("perceive-labels-not-smoothed", "cross_entropy.0", "argument",
          attribute("smoothing", 0.0)),
    sixth("perceive-half-turns-forgotten", "__mul__.1 Torch.sin.0", "missing-call scale", degrees),
    sixth_noise("perceive-by-products", lambda s: looked(s, by_products)),
    sixth_noise("perceive-fused", lambda s: looked(s, fused)),
    sixth_noise("perceive-in-blocks", lambda s: looked(s, in_blocks)),
    sixth_noise("perceive-smoothed-by-hand", smoothed_by_hand),
    sixth_noise("perceive-polar", polar),
    sixth_noise("perceive-two-gates", two_gates),
    sixth_noise("perceive-tf32", tf32_products),
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


def one_more(s: Setup) -> None:
    for m in s.model.layers:
        def decays(count: int, m: Any = m) -> torch.Tensor:
            places = torch.arange(count)
            distance = places[:, None] - places
            return torch.where(distance >= 0, torch.pow(m.rates[:, None, None], distance + 1), 0.0)
        m.decays = decays


def keys_turned_back(s: Setup) -> None:
    def back(values: torch.Tensor) -> torch.Tensor:
        speeds = 10.0 ** -torch.linspace(0, 2, values.shape[-1] // 2)
        angles = torch.arange(values.shape[-2])[:, None] * speeds
        sine, cosine = torch.sin(-angles), torch.cos(-angles)
        even, odd = values[..., ::2], values[..., 1::2]
        return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine),
                           dim=-1).flatten(-2)
    at_uses(s.model.layers[1], "turned", (1,), back)


def plain_gate(s: Setup) -> None:
    s.model.layers[1].opened = lambda gate, values: torch.sigmoid(gate) * values


def place_by_place(s: Setup) -> None:
    for m in s.model.layers:
        def retained(query: Any, key: Any, value: Any, m: Any = m) -> torch.Tensor:
            state, results = torch.zeros(*value.shape[:2], 8, 8, dtype=value.dtype), []
            for at in range(value.shape[2]):
                state = state * m.rates[:, None, None] + key[:, :, at, :, None] * value[:, :, at,
                                                                                        None]
                results.append(torch.einsum("nhd,nhde->nhe", query[:, :, at] * m.scale, state))
            return torch.stack(results, dim=2)
        m.retained = retained


def in_chunks(s: Setup) -> None:
    for m in s.model.layers:
        def retained(query: Any, key: Any, value: Any, m: Any = m) -> torch.Tensor:
            rates, places = m.rates[:, None, None], torch.arange(4)[:, None]
            state, results, decays = 0.0, [], m.decays(4)
            for q, k, v in zip(*(x.split(4, 2) for x in (query, key, value)), strict=True):
                inner = torch.matmul(torch.matmul(q, k.transpose(-2, -1)) * m.scale * decays, v)
                if results:
                    inner = inner + torch.matmul(q * m.scale, state) * rates ** (places + 1)
                results.append(inner)
                state = state * rates ** 4 + torch.matmul(
                    (k * rates ** (3 - places)).transpose(-2, -1), v)
            return torch.cat(results, dim=2)
        m.retained = retained


def complex_turns(s: Setup) -> None:
    def turned(values: torch.Tensor) -> torch.Tensor:
        speeds = 10.0 ** -torch.linspace(0, 2, values.shape[-1] // 2)
        angles = torch.arange(values.shape[-2])[:, None] * speeds
        pairs = torch.view_as_complex(values.unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
    for m in s.model.layers:
        m.turned = turned


def decays_by_exp(s: Setup) -> None:
    for m in s.model.layers:
        def decays(count: int, m: Any = m) -> torch.Tensor:
            places = torch.arange(count)
            return torch.exp((places[:, None] - places) * torch.log(m.rates)[:, None, None]).tril()
        m.decays = decays


def norm_of_heads(s: Setup) -> None:
    for m in s.model.layers:
        m.normal = lambda x, m=m: functional.layer_norm(
            x.unflatten(-1, (4, -1)), (8,), eps=m.norm.eps).flatten(-2) * m.norm.weight \
            + m.norm.bias


def gate_over_sum(s: Setup) -> None:
    for m in s.model.layers:
        m.opened = lambda gate, values: values * gate / (1 + torch.exp(-gate))


RETAIN: list[Case] = [
    sixth("retain-one-step-more", "__add__.2 Torch.pow.2",
          "extra-call extra-addend offset scale shifted", one_more),
    sixth("retain-one-group", "Functional.group_norm.1", "argument",
          attribute("layers.1.norm.num_groups", 1)),
    sixth("retain-keys-turned-back", "Torch.sin.3", "sign", keys_turned_back),
    sixth("retain-plain-gate", "silu.1 Torch.sigmoid.0 __mul__.25", "extra-call missing-call",
          plain_gate),
    sixth_noise("retain-place-by-place", place_by_place),
    sixth_noise("retain-in-chunks", in_chunks),
    sixth_noise("retain-complex-turns", complex_turns),
    sixth_noise("retain-decays-by-exp", decays_by_exp),
    sixth_noise("retain-norm-of-heads", norm_of_heads),
    sixth_noise("retain-gate-over-sum", gate_over_sum),
    sixth_noise("retain-norm-by-formula", unfused_norm),
    sixth_noise("retain-threads", threads),
]

CASES = [*PERCEIVE, *TRANSDUCE, *MASKED, *RETAIN]
