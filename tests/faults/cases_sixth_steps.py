"""The sixth hold-out, the other part: a selective scan, shared layers, two trainings."""

from __future__ import annotations

from typing import Any

import torch
from cases_plain import everything_wide, split_products, unfused_norm
from cases_second import attribute
from cases_sixth import sixth, sixth_noise
from fault_cases import Case, Setup, noise
from fifth_changes import by_one_hot, each, in_two, joined, own_products_off
from sixth_steps import Root
from torch import nn
from torch.nn import functional
from transformers.activations import NewGELUActivation


def next_seen(s: Setup) -> None:
    m = s.model.layers[1]
    m.neighbours = lambda values: m.near(values)[..., 1:values.shape[-1] + 1]


def past_forgotten(s: Setup) -> None:
    s.model.layers[1].through = lambda result, values: result


def growing(s: Setup) -> None:
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
    sixth("select-growing", "__mul__.2", "sign", growing),
    sixth("select-rounded-states", "__mul__.32 __mul__.33", "narrowed dtype", rounded_states),
    sixth_noise("select-by-matrix", by_matrix),
    sixth_noise("select-by-doubling", by_doubling),
    sixth_noise("select-added-products", added_products),
    sixth_noise("select-four-shifts", four_shifts),
    sixth_noise("select-steps-by-logarithms", steps_by_logs),
    sixth_noise("select-norm-of-library", each(Root, root_of_library)),
    sixth_noise("select-wide", everything_wide),
]


def padding_seen(s: Setup) -> None:
    mask = s.model.inputs["attention_mask"]
    s.model.inputs["attention_mask"] = torch.ones_like(mask)


def segments_exchanged(s: Setup) -> None:
    s.model.inputs["token_type_ids"] = 1 - s.model.inputs["token_type_ids"]


def shared(s: Setup) -> Any:
    """The only layer."""
    return s.model.albert.encoder.albert_layer_groups[0].albert_layers[0]


def quick(s: Setup) -> None:
    shared(s).activation.forward = lambda x: x * torch.sigmoid(1.702 * x)


def second_without_way_around(s: Setup) -> None:
    layer, count = shared(s), [0]

    def forward(values: torch.Tensor, mask: Any = None, **more: Any) -> torch.Tensor:
        count[0] += 1
        inner, _ = layer.attention(values, mask, **more)
        outer = layer.ff_chunk(inner)
        return layer.full_layer_layer_norm(outer if count[0] == 2 else outer + inner)
    layer.forward = forward


def fused_attention(s: Setup) -> None:
    s.model.set_attn_implementation("sdpa")


def by_tangents(_: Any, x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def one_product(s: Setup) -> None:
    attention = shared(s).attention
    joined([attention.query, attention.key, attention.value])


def chosen_words(s: Setup) -> None:
    model = s.model

    def loss() -> torch.Tensor:
        scores, chosen = model(**model.inputs).logits, model.wanted != -100
        return functional.cross_entropy(scores[chosen], model.wanted[chosen])
    s.subject.loss = loss


def in_places(s: Setup) -> None:
    shared(s).chunk_size_feed_forward = 7


ALBERT: list[Case] = [
    sixth("albert-padding-seen", "all.0 __bool__.0 Torch.arange.0", "", padding_seen),
    sixth("albert-segments-exchanged", "embedding.1", "", segments_exchanged),
    sixth("albert-quick-activation", "__rmul__.0 Torch.pow.0 Torch.sigmoid.0 linear.6",
          "argument scale missing-call extra-call", quick),
    sixth("albert-no-way-around", "__add__.11 layer_norm.4", "missing-call missing-addend",
          second_without_way_around),
    sixth_noise("albert-fused", fused_attention),
    sixth_noise("albert-by-tangents", each(NewGELUActivation, by_tangents)),
    sixth_noise("albert-one-product", one_product),
    sixth_noise("albert-chosen-words", chosen_words),
    sixth_noise("albert-one-hot", each(nn.Embedding, by_one_hot)),
    sixth_noise("albert-rows-parallel", each(nn.Linear, in_two)),
    sixth_noise("albert-norm-by-formula", unfused_norm),
    # Mathematically the same, but the shapes differ: counted apart.
    noise("albert-words-in-two-parts", in_places, group="sixth, other shapes"),
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

CASES = [*SELECT, *ALBERT, *QUANT, *LAMB]
