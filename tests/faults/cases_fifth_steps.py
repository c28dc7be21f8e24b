"""The fifth hold-out: trainings with optimisers."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards
from cases_held_out import kernel
from cases_plain import half_partial_sums, split_products, tf32_products, unfused_norm
from fault_cases import Case, Setup, noise
from fifth_changes import (
    by_moments,
    by_one_hot,
    each,
    fifth,
    fifth_noise,
    in_two,
    math_attention,
    own_products_off,
)
from torch import nn
from torch.nn import functional


def option(name: str, value: Any) -> Any:
    """Another option of the optimiser."""
    return lambda s: s.model.options.update({name: value})


def all_decay(s: Setup) -> None:
    model = s.model
    right = model.groups
    model.groups = lambda: [group | {"weight_decay": model.decay} for group in right()]


def coupled(s: Setup) -> None:
    model = s.model

    def prepared() -> None:
        model.optimizer = torch.optim.Adam(model.groups(), **model.options)
    model.prepared = prepared


def later_rate(s: Setup) -> None:
    model = s.model
    model.rate = lambda step: model.options["lr"] * min(1.0, step / model.warm)


def kept_gradients(s: Setup) -> None:
    right = s.model.prepared

    def prepared() -> None:
        right()
        clear = s.model.optimizer.zero_grad
        count = [0]

        def zero_grad() -> None:
            count[0] += 1
            if count[0] != 2:
                clear()
        s.model.optimizer.zero_grad = zero_grad
    s.model.prepared = prepared


def by_hand(s: Setup) -> None:
    model = s.model
    moments: dict[Any, list[torch.Tensor]] = {}
    number = [0]

    def stepped() -> None:
        number[0] += 1
        first, second = model.options["betas"]
        with torch.no_grad():
            for group in model.optimizer.param_groups:
                for p in group["params"]:
                    m, v = moments.setdefault(p, [torch.zeros_like(p), torch.zeros_like(p)])
                    m.mul_(first).add_(p.grad, alpha=1 - first)
                    v.mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                    change = (m / (1 - first ** number[0])) / (
                        (v / (1 - second ** number[0])).sqrt() + model.options["eps"])
                    p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(change * group["lr"])
    model.stepped = stepped


def written_out_attention(s: Setup) -> None:
    m = s.model.reader.attention

    def forward(x: torch.Tensor, *_: torch.Tensor, need_weights: bool) -> tuple[Any, None]:
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in functional.linear(
            x, m.in_proj_weight, m.in_proj_bias).chunk(3, dim=-1))
        shares = torch.softmax(q @ k.transpose(-2, -1) * 8 ** -0.5, dim=-1)
        return m.out_proj((shares @ v).transpose(1, 2).flatten(2)), None
    m.forward = forward


TUNE: list[Case] = [
    fifth("tune-betas-exchanged", "lerp_.0", "argument scale", option("betas", (0.98, 0.9))),
    fifth("tune-everything-decays", "mul_.27 mul_.31 addcdiv_.8",
           "extra-call", all_decay),
    fifth("tune-decay-in-gradient", "add.0 mul_.15 lerp_.0",
           "extra-call missing-call extra-addend", coupled),
    fifth("tune-rate-one-later", "mul_.15", "argument scale", later_rate),
    fifth("tune-gradients-kept", "Torch.linalg.vector_norm.16", "extra-addend", kept_gradients),
    fifth_noise("tune-foreach", option("foreach", True)),
    fifth_noise("tune-fused", lambda s: s.model.options.update(foreach=None, fused=True)),
    fifth_noise("tune-by-hand", by_hand),
    fifth_noise("tune-clip-foreach", lambda s: s.model.clip_options.update(foreach=True)),
    fifth_noise("tune-attention-in-steps", written_out_attention),
    fifth_noise("tune-norm-by-formula", unfused_norm),
    fifth_noise("tune-one-hot", each(nn.Embedding, by_one_hot)),
    fifth_noise("tune-tf32", tf32_products),
    fifth_noise("tune-math-attention", math_attention),
]


def clipped_first(s: Setup) -> None:
    model = s.model
    model.ready = lambda gradients: model.unscaled(model.clipped(gradients))


def parts_not_averaged(s: Setup) -> None:
    model = s.model

    def gathered(values: torch.Tensor, classes: torch.Tensor) -> None:
        for x, y in zip(values.chunk(model.parts), classes.chunk(model.parts), strict=True):
            (model.error(x, y) * model.scale).backward()
    model.gathered = gathered


def last_part_only(s: Setup) -> None:
    model = s.model

    def gathered(values: torch.Tensor, classes: torch.Tensor) -> None:
        for x, y in zip(values.chunk(model.parts), classes.chunk(model.parts), strict=True):
            model.zero_grad()
            (model.error(x, y) * (model.scale / model.parts)).backward()
    model.gathered = gathered


def narrow_loss(s: Setup) -> None:
    model = s.model

    def error(values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            scores = model.scores(values)
        return functional.cross_entropy(scores, classes)
    model.error = error


def by_one_norm(s: Setup) -> None:
    model = s.model

    def clipped(gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        norm = torch.cat([g.flatten() for g in gradients]).norm()
        factor = torch.clamp(model.limit / (norm + 1e-6), max=1.0)
        return [torch.mul(g, factor) for g in gradients]
    model.clipped = clipped


def parts(count: int) -> Any:
    """The batch in so many parts."""
    return lambda s: setattr(s.model, "parts", count)


SCALED: list[Case] = [
    fifth("scaled-clipped-first", "Torch.div.0 Torch.linalg.vector_norm.0", "", clipped_first),
    fifth("scaled-parts-not-averaged", "__mul__.0", "argument scale", parts_not_averaged),
    fifth("scaled-last-part-only", "Torch.div.0", "missing-addend stale", last_part_only),
    fifth("scaled-narrow-loss", "cross_entropy.0", "dtype narrowed", narrow_loss),
    fifth_noise("scaled-full-precision", lambda s: setattr(s.model, "kind", torch.float32)),
    fifth_noise("scaled-half-sums", half_partial_sums),
    fifth_noise("scaled-products-off", own_products_off),
    fifth_noise("scaled-by-one-norm", by_one_norm),
    # Mathematically the same, but every shape differs: counted apart.
    noise("scaled-one-part", parts(1), group="fifth, other shapes"),
    noise("scaled-eight-parts", parts(8), group="fifth, other shapes"),
    fifth_noise("scaled-norm-by-formula", unfused_norm),
]


def follows_first(s: Setup) -> None:
    model = s.model

    def learn(one: torch.Tensor, other: torch.Tensor) -> None:
        model.optimizer.zero_grad()
        model.error(one, other).backward()
        model.follow()
        model.optimizer.step()
    model.learn = learn


def own_aim(s: Setup) -> None:
    s.model.aim = lambda view: s.model.student(view).detach()


def slid(s: Setup) -> None:
    s.model.averaged = lambda old, new: old.lerp_(new, 1 - s.model.keep)


def directions(s: Setup) -> None:
    s.model.distance = lambda guess, truth: 2 - 2 * (
        functional.normalize(guess, dim=-1) * functional.normalize(truth, dim=-1)).sum(-1).mean()


TWINS: list[Case] = [
    fifth("twins-other-memory", "mul_.0", "argument scale",
           lambda s: setattr(s.model, "keep", 0.5)),
    fifth("twins-no-look-ahead", "add.1 add_.4", "missing-call scale", option("nesterov", False)),
    fifth("twins-follows-first", "add_.4 add_.14", "stale", follows_first),
    fifth("twins-own-aim", "add_.1 batch_norm.1", "", own_aim),
    fifth("twins-gradient-scaled", "batch_norm.0<", "scale", kernel(
        "native_batch_norm_backward:1", afterwards(
            lambda y: torch.ops.aten.mul.Tensor(y, 1.25)))),
    fifth_noise("twins-slid", slid),
    fifth_noise("twins-foreach", option("foreach", True)),
    fifth_noise("twins-fused", lambda s: s.model.options.update(foreach=None, fused=True)),
    fifth_noise("twins-directions", directions),
    fifth_noise("twins-norm-by-moments", each(nn.BatchNorm1d, by_moments)),
    fifth_noise("twins-split-products", split_products),
    fifth_noise("twins-rows-parallel", each(nn.Linear, in_two)),
]

CASES = [*TUNE, *SCALED, *TWINS]
