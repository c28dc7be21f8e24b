"""Cases of recurrent layers, scans, chains, caches and series."""

from __future__ import annotations

import functools
from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_plain import everything_wide, put, tf32_products, unfused_norm
from changes import (
    BASELINE,
    PRODUCTS,
    at_uses,
    attribute,
    changed,
    kernel,
    method,
    method_at,
    threads,
    whole,
    wide,
)
from fault_cases import Case, Setup
from groups import fifth, fifth_noise, sixth, sixth_noise, third, third_noise, unseen, unseen_noise
from other_ways import each, math_attention
from sequence_models import Root
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_ROLL = torch.ops.aten.roll.default


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


def recurrent_growing(s: Setup) -> None:
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
    unseen("recurrent-growing", "__mul__.18", "sign", recurrent_growing),
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


def one_slot_later(s: Setup) -> None:
    right = s.model.stored
    at_uses(s.model, "stored", (8, 9, 10, 11),
            lambda cache, start, fresh: right(cache, start + 1, fresh))


def earlier_places(s: Setup) -> None:
    right = s.model.position
    at_uses(s.model, "position", (1, 2, 3), lambda start, count: right(start - 1, count))


def wide_mask(kernel_of: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """One place further than allowed."""
    return kernel_of(args[0], torch.ops.aten.add.Scalar(args[1], 1))


def cached_fused(s: Setup) -> None:
    s.model.attended = lambda query, key, value, allowed: functional.scaled_dot_product_attention(
        query, key, value, attn_mask=allowed)


def finite_mask(s: Setup) -> None:
    def attended(query: Any, key: Any, value: Any, allowed: Any) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-2, -1)) * query.shape[-1] ** -0.5
        scores = scores.masked_fill(~allowed, torch.finfo(torch.float).min)
        return torch.matmul(torch.softmax(scores, dim=-1), value)
    s.model.attended = attended


CACHED: list[Case] = [
    unseen("cached-slot-later", "Torch.arange.19", "argument", one_slot_later),
    unseen("cached-earlier-places", "Torch.arange.9", "argument", earlier_places),
    unseen("cached-wide-mask", "masked_fill.4", "", kernel("le:4", wide_mask)),
    unseen("cached-not-stored", "Torch.index_copy.10", "stale not-applied",
           kernel("index_copy:10", lambda kernel_of, args, kwargs: args[0].clone())),
    unseen("cached-half-cache", "Torch.index_copy.9", "narrowed",
           kernel("index_copy:9", through(torch.float16))),
    unseen("cached-batch-swapped", "embedding.4", "permuted shifted",
           kernel("embedding:4", afterwards(lambda y: y.flip(0)))),
    unseen_noise("cached-fused", cached_fused),
    unseen_noise("cached-finite-mask", finite_mask),
    unseen_noise("cached-five-parts", lambda s: s.changes.update(all_products(in_parts(5)))),
]


def chain_by_hand(model: Any, scores: torch.Tensor) -> torch.Tensor:
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
    third_noise("chain-by-hand", method("summed", chain_by_hand)),
    third_noise("chain-one-by-hand", method_at("summed", (3,), chain_by_hand)),
    third_noise("chain-plain-exp", method("summed", lambda m, scores: torch.log(
        torch.exp(scores).sum(1)))),
    third_noise("chain-by-products", method("all_paths", paths_by_products)),
    third_noise("chain-in-double", lambda s: s.model.double() and None),
    third_noise("chain-in-half", lambda s: s.model.bfloat16() and None),
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


def long_by_hand(model: Any, values: torch.Tensor) -> torch.Tensor:
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
    third_noise("long-by-hand", method("likely", long_by_hand)),
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


def next_seen(s: Setup) -> None:
    m = s.model.layers[1]
    m.neighbours = lambda values: m.near(values)[..., 1:values.shape[-1] + 1]


def past_forgotten(s: Setup) -> None:
    s.model.layers[1].through = lambda result, values: result


def select_growing(s: Setup) -> None:
    m = s.model.layers[0]
    m.fading = lambda: torch.exp(m.rates)


def rounded_states(s: Setup) -> None:
    def scanned(logs: torch.Tensor, added: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
        state, results = torch.zeros_like(added[:, 0], dtype=torch.bfloat16), []
        keep = torch.exp(logs)
        for place in range(added.shape[1]):
            state = (keep[:, place] * state + added[:, place]).to(torch.bfloat16)
            results.append((state * shown[:, place, None]).sum(-1))
        return torch.stack(results, dim=1)
    s.model.layers[1].scanned = scanned


def by_matrix(s: Setup) -> None:
    """Every place takes from every place before it."""
    def scanned(logs: torch.Tensor, added: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
        total = torch.cumsum(logs, dim=1)
        later = torch.ones(logs.shape[1], logs.shape[1], dtype=torch.bool).tril()
        shares = torch.exp((total[:, :, None] - total[:, None]).masked_fill(
            ~later[:, :, None, None], -torch.inf))
        return torch.einsum("ntscj,nscj,ntj->ntc", shares, added, shown)
    for m in s.model.layers:
        m.scanned = scanned


def by_doubling(s: Setup) -> None:
    """Sums over one, two, four and eight places before."""
    def scanned(logs: torch.Tensor, added: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
        keep, state = torch.exp(logs), added
        for far in (1, 2, 4, 8):
            back = (0, 0, 0, 0, far, 0)
            state = state + keep * functional.pad(state, back)[:, :-far]
            keep = keep * functional.pad(keep, back)[:, :-far]
        return (state * shown[:, :, None]).sum(-1)
    for m in s.model.layers:
        m.scanned = scanned


def added_products(s: Setup) -> None:
    def scanned(logs: torch.Tensor, added: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
        state, results = torch.zeros_like(added[:, 0]), []
        for gone, new, seen in zip(torch.exp(logs).unbind(1), added.unbind(1), shown.unbind(1),
                                   strict=True):
            state = torch.addcmul(new, gone, state)
            results.append(torch.matmul(state, seen[..., None]).squeeze(-1))
        return torch.stack(results, dim=1)
    for m in s.model.layers:
        m.scanned = scanned


def four_shifts(s: Setup) -> None:
    for m in s.model.layers:
        def neighbours(x: torch.Tensor, m: Any = m.near) -> torch.Tensor:
            wide = functional.pad(x, (3, 0))
            result = m.bias[:, None] + wide[..., 3:] * m.weight[:, :, 3]
            for at in range(3):
                result = result + wide[..., at:at + x.shape[-1]] * m.weight[:, :, at]
            return result
        m.neighbours = neighbours


def steps_by_logs(s: Setup) -> None:
    for m in s.model.layers:
        m.steps = lambda x, m=m: torch.log1p(torch.exp(m.time(x)))


def root_of_library(m: Any, x: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, m.weight.shape, m.weight, m.eps)


SELECT: list[Case] = [
    sixth("select-next-seen", "__getitem__.35", "argument shifted", next_seen),
    sixth("select-past-forgotten", "__mul__.52 __add__.24 __mul__.53",
          "missing-call missing-addend", past_forgotten),
    sixth("select-growing", "__mul__.2", "sign", select_growing),
    sixth("select-rounded-states", "__mul__.32 __mul__.33", "narrowed dtype", rounded_states),
    sixth_noise("select-by-matrix", by_matrix),
    sixth_noise("select-by-doubling", by_doubling),
    sixth_noise("select-added-products", added_products),
    sixth_noise("select-four-shifts", four_shifts),
    sixth_noise("select-steps-by-logarithms", steps_by_logs),
    sixth_noise("select-norm-of-library", each(Root, root_of_library)),
    sixth_noise("select-wide", everything_wide),
]
