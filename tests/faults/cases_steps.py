"""Cases of steps of training: optimisers, mixed and narrow types, adapters, averages."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_plain import (
    both,
    everything_wide,
    half_partial_sums,
    split_products,
    tf32_products,
    unfused_norm,
)
from changes import PRODUCTS, at_uses, attribute, changed, kernel, method, method_at, wide
from fault_cases import Case, Setup, noise
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
from other_ways import by_moments, by_one_hot, each, in_two, math_attention, own_products_off
from torch import nn
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_MUL = torch.ops.aten.mul.Tensor
_SWAPPED = torch.tensor([1, 0, *range(2, 30)])


def undivided(s: Setup) -> None:
    model = s.model
    model.error = lambda part, values, classes: functional.cross_entropy(
        model.layers(values), classes, label_smoothing=model.smoothing)


def train_kept_gradients(s: Setup) -> None:
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


def train_by_one_norm(s: Setup) -> None:
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
    unseen("train-kept-gradients", "pow.8", "extra-addend", train_kept_gradients),
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
    unseen_noise("train-one-norm", train_by_one_norm),
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


def lost_drift(model: Any, gradient: torch.Tensor) -> torch.Tensor:
    """The drift of the step before is gone."""
    model.drift = torch.zeros(model.drift.shape)
    return type(model).momentum(model, gradient)


OPTIMISE: list[Case] = [
    third("optimise-keep", "Torch.lerp.0", "argument", attribute("keep", 0.5)),
    third("optimise-lost-drift", "__rmul__.13", "zeroed-block", method_at(
        "momentum", (1,), lost_drift)),
    third("optimise-last-part", "Functional.mse_loss.2<", "scale", kernel(
        "mse_loss_backward:2", afterwards(lambda y: _MUL(y, 3.0)))),
    third_noise("optimise-lerp-by-hand", method("averaged", lambda m, weight: m.keep * m.average
                                                + (1 - m.keep) * weight)),
    third_noise("optimise-wide", wide(*PRODUCTS, "silu", "silu_backward", "mean", "rsqrt")),
    third_noise("optimise-tf32", tf32_products),
]


def in_float(s: Setup) -> None:
    model = s.model.float()
    right = model.forward
    model.forward = lambda values: right(values.float())


NARROW: list[Case] = [
    third("narrow-narrow-square", "pow.2 Tensor.pow.2", "narrowed", kernel(
        "pow:2", through(torch.float16))),
    third("narrow-one-layer-twice", "linear.2", "scale", both(half_partial_sums, kernel(
        "addmm:2", afterwards(lambda y: y * 2)))),
    third_noise("narrow-half-sums", lambda s: s.changes.update(
        all_products(in_parts(4, torch.float16)))),
    third_noise("narrow-wide", wide(*PRODUCTS, "silu", "silu_backward")),
    third_noise("narrow-fused-norm", method("norm", lambda m, values: functional.rms_norm(
        values, (24,), eps=1e-5))),
    third_noise("narrow-in-float", in_float),
]


INNER: list[Case] = [
    fourth("inner-rate", "__rmul__.0", "argument scale", attribute("rate", 0.03)),
    fourth_noise("inner-by-cosine", method("angles", lambda m, a, b: functional.cosine_similarity(
        a[:, None], b[None], dim=-1))),
    fourth_noise("inner-divided-after", method("angles", lambda m, a, b: (a @ b.t()) / torch.outer(
        a.norm(dim=-1), b.norm(dim=-1)))),
    fourth_noise("inner-wide", wide(*PRODUCTS, "silu", "_log_softmax")),
    fourth_noise("inner-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]


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


def tune_kept_gradients(s: Setup) -> None:
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


def tune_by_hand(s: Setup) -> None:
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
    fifth("tune-gradients-kept", "Torch.linalg.vector_norm.16", "extra-addend",
          tune_kept_gradients),
    fifth_noise("tune-foreach", option("foreach", True)),
    fifth_noise("tune-fused", lambda s: s.model.options.update(foreach=None, fused=True)),
    fifth_noise("tune-by-hand", tune_by_hand),
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


def scaled_by_one_norm(s: Setup) -> None:
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
    fifth_noise("scaled-by-one-norm", scaled_by_one_norm),
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


def cut_off(s: Setup) -> None:
    m = s.model
    m.whole = lambda values, scale: torch.clamp(
        torch.floor(values / scale), m.low, m.high) * scale


def gradient_lost(s: Setup) -> None:
    s.model.straight = lambda values, scale: values + (s.model.whole(values, scale) - values)


def range_of_before(s: Setup) -> None:
    m = s.model

    def inner(values: torch.Tensor, number: int) -> torch.Tensor:
        before = m.ranges[number]
        largest = torch.max(torch.abs(values.detach()))
        m.ranges[number] = before * m.keep + largest * (1 - m.keep)
        return m.straight(values, before / m.high)
    m.inner = inner


def library_rounding(s: Setup) -> None:
    m = s.model

    def weight(w: torch.Tensor) -> torch.Tensor:
        scale = torch.amax(torch.abs(w.detach()), m.axes) / m.high
        return torch.fake_quantize_per_channel_affine(
            w, scale, torch.zeros(len(scale), dtype=torch.int32), 0, m.low, m.high)
    m.weight = weight


class Straight(torch.autograd.Function):
    """Rounds forward and passes gradients on."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, scale: torch.Tensor, low: int, high: int
                ) -> torch.Tensor:
        return torch.clamp(torch.round(values / scale), low, high) * scale

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients[0], None, None, None


def own_function(s: Setup) -> None:
    s.model.straight = lambda values, scale: Straight.apply(
        values, scale, s.model.low, s.model.high)


def factor(s: Setup) -> None:
    m = s.model
    m.whole = lambda values, scale: (values * torch.reciprocal(scale)).round().clamp(
        m.low, m.high).mul(scale)


def slid_ranges(s: Setup) -> None:
    m = s.model

    def inner(values: torch.Tensor, number: int) -> torch.Tensor:
        low, high = torch.aminmax(values.detach())
        m.ranges[number] = torch.lerp(m.ranges[number], torch.maximum(-low, high), 1 - m.keep)
        return m.straight(values, m.ranges[number] / m.high)
    m.inner = inner


def many_at_once(s: Setup) -> None:
    m = s.model

    def learn(pictures: torch.Tensor, classes: torch.Tensor) -> None:
        m.zero_grad()
        m.error(pictures, classes).backward()
        with torch.no_grad():
            gradients = [p.grad for p in m.parameters()]
            m.kept = m.kept or [torch.zeros_like(g) for g in gradients]
            torch._foreach_mul_(m.kept, m.momentum)
            torch._foreach_add_(m.kept, gradients)
            torch._foreach_add_(list(m.parameters()), m.kept, alpha=-m.rate)
    m.learn = learn


def one_addmm(s: Setup) -> None:
    m = s.model.classify
    m.forward = lambda x: torch.addmm(m.bias, x, m.weight.t())


QUANT: list[Case] = [
    sixth("quant-step-of-input-channels", "Torch.amax.0", "argument structure",
          attribute("axes", (0, 2, 3))),
    sixth("quant-cut-off", "Torch.round.0 Torch.floor.0 Torch.clamp.0", "missing-call extra-call",
          cut_off),
    sixth("quant-gradient-lost", "__add__.5< __sub__.3< relu.0<",
          "structure extra-call zeroed-block", gradient_lost),
    sixth("quant-range-of-before", "__truediv__.0", "stale", range_of_before),
    sixth_noise("quant-rounding-of-library", library_rounding),
    sixth_noise("quant-own-function", own_function),
    sixth_noise("quant-factor", factor),
    sixth_noise("quant-slid-ranges", slid_ranges),
    sixth_noise("quant-many-at-once", many_at_once),
    sixth_noise("quant-products-off", own_products_off),
    sixth_noise("quant-added-products", one_addmm),
]


def detached(s: Setup) -> None:
    s.model.head = lambda values: functional.linear(values, s.model.embed.weight.detach())


def decays_last(s: Setup) -> None:
    m = s.model
    m.change = lambda p, moved: moved * m.ratio(p, moved) + p * m.decay


def counted_from_two(s: Setup) -> None:
    right = s.model.moved
    s.model.moved = lambda number, gradient, step: right(number, gradient, step + 1)


def averaged_before(s: Setup) -> None:
    m = s.model

    def learn(tokens: torch.Tensor, step: int) -> None:
        m.zero_grad()
        m.gathered(tokens)
        with torch.no_grad():
            for number, p in enumerate(m.parameters()):
                m.averaged(m.average[number], p)
                p.sub_(m.change(p, m.moved(number, p.grad, step)) * m.rate)
    m.learn = learn


def slid_moments(s: Setup) -> None:
    m = s.model

    def moved(number: int, gradient: torch.Tensor, step: int) -> torch.Tensor:
        mean, square = m.moments[number]
        mean.lerp_(gradient, 1 - m.first)
        square.mul_(m.second).addcmul_(gradient, gradient, value=1 - m.second)
        return (mean / (1 - m.first ** step)) / (square / (1 - m.second ** step)).sqrt().add_(
            m.eps)
    m.moved = moved


def corrected_at_once(s: Setup) -> None:
    """Both corrections in one factor, and the small addend with them."""
    m = s.model

    def moved(number: int, gradient: torch.Tensor, step: int) -> torch.Tensor:
        mean, square = m.moments[number]
        mean = mean * m.first + gradient * (1 - m.first)
        square = square * m.second + gradient ** 2 * (1 - m.second)
        m.moments[number] = (mean, square)
        root = (1 - m.second ** step) ** 0.5
        return mean * (root / (1 - m.first ** step)) / (torch.sqrt(square) + m.eps * root)
    m.moved = moved


def norms_by_sums(s: Setup) -> None:
    def ratio(p: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        own, other = (p * p).sum().sqrt(), (change * change).sum().sqrt()
        return torch.where(own > 0, own / other, torch.ones_like(own))
    s.model.ratio = ratio


def sums_once(s: Setup) -> None:
    m = s.model

    def entropy(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        sums = torch.logsumexp(scores, dim=-1)
        own = scores.gather(1, targets[:, None]).squeeze(1)
        return (sums - own + m.share * sums ** 2).mean()
    m.entropy = entropy


def twice_half(s: Setup) -> None:
    m = s.model

    def gathered(tokens: torch.Tensor) -> None:
        for part in tokens.chunk(2):
            (m.error(part) / 2).backward()
    m.gathered = gathered


def slid_average(s: Setup) -> None:
    s.model.averaged = lambda old, new: old.copy_(old + (new - old) * (1 - s.model.keep))


def words_in_two(s: Setup) -> None:
    s.model.head = lambda values: torch.cat(
        [torch.matmul(values, w.t()) for w in s.model.embed.weight.split(20)], dim=-1)


LAMB: list[Case] = [
    sixth("lamb-head-detached", "linear.3< __mul__.1", "structure missing-addend", detached),
    sixth("lamb-decays-last", "__mul__.4 __add__.5 Torch.linalg.vector_norm.1",
          "missing-call missing-addend", decays_last),
    sixth("lamb-counted-from-two", "__truediv__.0", "argument scale", counted_from_two),
    sixth("lamb-averaged-before", "add_.0", "stale extra-addend", averaged_before),
    sixth_noise("lamb-slid-moments", slid_moments),
    sixth_noise("lamb-corrected-at-once", corrected_at_once),
    sixth_noise("lamb-norms-by-sums", norms_by_sums),
    sixth_noise("lamb-sums-once", sums_once),
    sixth_noise("lamb-slid-average", slid_average),
    sixth_noise("lamb-words-in-two", words_in_two),
    sixth_noise("lamb-split-products", split_products),
    # Mathematically the same, but every shape differs: counted apart.
    noise("lamb-twice-half", twice_half, group="sixth, other shapes"),
]
