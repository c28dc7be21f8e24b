"""Unseen cases: training steps, mixed precision with recomputation, decoding with a cache."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_held_out import kernel
from cases_plain import everything_wide, half_partial_sums
from cases_unseen_text import at_uses, unseen, unseen_noise
from fault_cases import Case, Setup
from torch.nn import functional


def undivided(s: Setup) -> None:
    model = s.model
    model.error = lambda part, values, classes: functional.cross_entropy(
        model.layers(values), classes, label_smoothing=model.smoothing)


def kept_gradients(s: Setup) -> None:
    at_uses(s.model, "forgotten", (1,), lambda number: None)


def decay_in_gradient(s: Setup) -> None:
    model, right = s.model, s.model.stepped

    def stepped(number: int, place: int, old: torch.Tensor, gradient: torch.Tensor
                ) -> torch.Tensor:
        return right(number, place, old, gradient + model.decay * old)
    model.stepped = stepped


def no_correction(s: Setup) -> None:
    right = s.model.stepped
    s.model.stepped = lambda number, *rest: right(1000, *rest)


def lost_moments(s: Setup) -> None:
    model, right = s.model, s.model.learn

    def learn(number: int, *rest: torch.Tensor) -> None:
        if number == 2:
            model.moments = [tuple(torch.zeros(m.shape) for m in pair) for pair in model.moments]
        right(number, *rest)
    model.learn = learn


def not_taken(s: Setup) -> None:
    at_uses(s.model, "taken", (4,), lambda place, p, value: None)


def by_one_norm(s: Setup) -> None:
    limit = s.model.limit

    def clipped(gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        factor = torch.clamp(limit / (norm + 1e-6), max=1.0)
        return [g * factor for g in gradients]
    s.model.clipped = clipped


TRAIN: list[Case] = [
    unseen("train-clip-limit", "__mul__.0", "argument scale",
           lambda s: setattr(s.model, "limit", 0.05)),
    unseen("train-undivided", "__truediv__.0 Torch.ones_like.0 cross_entropy.0<",
           "scale missing-call", undivided),
    unseen("train-kept-gradients", "pow.8", "extra-addend", kept_gradients),
    unseen("train-decay-in-gradient", "__rmul__.0 __add__.1 __mul__.9 __mul__.10",
           "extra-call extra-addend", decay_in_gradient),
    unseen("train-no-correction", "__truediv__.2", "argument scale", no_correction),
    unseen("train-lost-moments", "__mul__.66", "zeroed-block", lost_moments),
    unseen("train-no-smoothing", "cross_entropy.0", "argument",
           lambda s: setattr(s.model, "smoothing", 0.0)),
    unseen("train-no-root", "sqrt.1", "not-applied",
           kernel("sqrt:1", lambda kernel_of, args, kwargs: args[0].clone())),
    unseen("train-not-taken", "linear.7", "stale", not_taken),
    unseen_noise("train-wide", everything_wide),
    unseen_noise("train-one-norm", by_one_norm),
]


def heads_not_exchanged(s: Setup) -> None:
    at_uses(s.model, "merged", (1, 4), lambda mixed: mixed.reshape(4, 12, -1))


def key_and_value(s: Setup) -> None:
    right = s.model.split

    def wrong(joint: torch.Tensor) -> tuple[torch.Tensor, ...]:
        query, key, value = right(joint)
        return query, value, key
    at_uses(s.model, "split", (2, 3), wrong)


def half_loss(s: Setup) -> None:
    model = s.model
    right = s.subject.loss
    # The same inputs as the golden run's, which the closure holds.
    cells = dict(zip(right.__code__.co_freevars, right.__closure__ or (), strict=True))
    values, classes = cells["values"].cell_contents, cells["classes"].cell_contents
    s.subject.loss = lambda: functional.cross_entropy(model(values), classes)


def mixed_fused(s: Setup) -> None:
    model = s.model

    def block(values: torch.Tensor, number: int) -> torch.Tensor:
        query, key, value = model.split(model.joint[number](model.norms[number](values)))
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return values + model.dropout(model.out[number](model.merged(mixed)))
    model.block = block


def not_again(s: Setup) -> None:
    model = s.model

    def forward(values: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            values = model.enter(values)
            for number in range(3):
                values = model.block(values, number)
            return model.leave(values.mean(1))
    model.forward = forward


MIXED: list[Case] = [
    unseen("mixed-heads-not-exchanged", "transpose.3 reshape.1",
           "missing-call permuted transposed", heads_not_exchanged),
    unseen("mixed-softmax-narrowed", "softmax.1", "narrowed", kernel("_softmax:1", afterwards(
        lambda y: y.to(torch.float8_e4m3fn).to(torch.bfloat16)))),
    unseen("mixed-other-when-again", "linear.12", "offset",
           kernel("addmm:10", afterwards(lambda y: y + 0.5))),
    unseen("mixed-divided-twice", "__truediv__.1", "scale",
           kernel("div:1", afterwards(lambda y: y / 8 ** 0.5))),
    unseen("mixed-half-loss", "cross_entropy.0", "dtype narrowed", half_loss),
    unseen("mixed-mean-as-sum", "mean.0", "scale", kernel("mean:0", afterwards(lambda y: y * 12))),
    unseen("mixed-key-and-value", "transpose.4", "stale", key_and_value),
    unseen_noise("mixed-half-sums", half_partial_sums),
    unseen_noise("mixed-fused-attention", mixed_fused),
    unseen_noise("mixed-not-again", not_again),
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

CASES = [*TRAIN, *MIXED, *CACHED]
