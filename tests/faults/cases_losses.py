"""Cases of losses over several parts: preferences, a teacher, rewards, rivals, pairs, clicks."""

from __future__ import annotations

from typing import Any

import torch
from below_calls import afterwards, all_products, in_parts, through
from cases_plain import both, everything_wide, put, split_products, tf32_products, unfused_linear
from changes import PRODUCTS, at_uses, attribute, kernel, method, threads, wide
from fault_cases import Case, Setup, noise
from groups import (
    fifth,
    fifth_noise,
    second,
    second_noise,
    third,
    third_noise,
    unseen,
    unseen_noise,
)
from other_ways import by_heads, each, in_two, math_attention, under_autocast
from torch import nn
from torch.nn import functional

# A recorder may have put its own functions in place of Tensor's.
_MUL = torch.ops.aten.mul.Tensor


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


def not_on_sphere(s: Setup) -> None:
    at_uses(s.model, "sphere", (1,), lambda values: values)


def plain_factor(s: Setup) -> None:
    s.model.factor = lambda: s.model.scale


def next_labels(s: Setup) -> None:
    s.model.labels = lambda count: torch.arange(count).roll(-1)


def entropy_by_hand(s: Setup) -> None:
    model = s.model

    def forward(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        a, b = model.sphere(model.left(left)), model.sphere(model.right(right))
        scores = model.factor() * torch.matmul(a, b.t())
        own = torch.diagonal(scores)
        return ((torch.logsumexp(scores, 1) - own).mean()
                + (torch.logsumexp(scores.t(), 1) - own).mean()) / 2
    model.forward = forward


TOWERS: list[Case] = [
    second("towers-not-on-sphere", "Functional.normalize.1 t.0", "missing-call scale",
           not_on_sphere),
    second("towers-factor-not-raised", "Torch.exp.0 __mul__.0", "missing-call scale",
           plain_factor),
    second("towers-next-labels", "Tensor.roll.0 cross_entropy.0", "extra-call shifted permuted",
           next_labels),
    second("towers-gradient-twice", "linear.2<", "scale",
           both(tf32_products, kernel("mm:5", lambda kernel_of, args, kwargs: _MUL(
               kernel_of(*args), 2)))),
    second_noise("towers-entropy-by-hand", entropy_by_hand),
    second_noise("towers-three-parts", lambda s: s.changes.update(all_products(in_parts(3)))),
]


def by_matrix(model: Any, rewards: torch.Tensor) -> torch.Tensor:
    """The discounted sums as one product."""
    place = torch.arange(rewards.shape[1])
    gap = place[:, None] - place[None]
    return rewards @ torch.where(gap >= 0, model.fade ** gap.clamp(min=0).float(), 0.0)


POLICY: list[Case] = [
    third("policy-fade", "__rmul__.0 __rmul__.1", "argument scale", attribute("fade", 0.99)),
    third("policy-not-standard", "mean.0 __sub__.1 std.0 __mul__.1", "missing-call",
          method("standard", lambda m, values: values)),
    third("policy-one-step-late", "Torch.stack.0", "shifted permuted", kernel(
        "stack:0", lambda kernel_of, args, kwargs: kernel_of(
            [args[0][-1], *args[0][:-1]], *args[1:]))),
    third_noise("policy-by-matrix", method("returns", by_matrix)),
    third_noise("policy-wide", wide(*PRODUCTS, "exp", "tanh", "_log_softmax", "std", "mean",
                                    "sum")),
    third_noise("policy-layer-norm", method("standard", lambda m, values: functional.layer_norm(
        values, values.shape, eps=0.0) * (1 - 1 / values.numel()) ** 0.5)),
]


def judged_after(model: Any, values: torch.Tensor) -> torch.Tensor:
    """The product is divided, not the weight."""
    hidden = functional.linear(values, model.judge1.weight) / model.strength(model.judge1.weight)
    return model.judge2(functional.leaky_relu(hidden + model.judge1.bias, 0.2))


RIVALS: list[Case] = [
    third("rivals-climbing", "__rmul__.0", "argument sign", attribute("rate", -0.1)),
    third("rivals-gradient-scale", "Functional.leaky_relu.1<", "scale", kernel(
        "leaky_relu_backward:1", afterwards(lambda y: _MUL(y, 1.5)))),
    third_noise("rivals-after", method("judged", judged_after)),
    third_noise("rivals-wide", wide(*PRODUCTS, "mv", "dot", "tanh", "softplus")),
    third_noise("rivals-unfused-linear", unfused_linear),
]


def dpo_order(s: Setup) -> None:
    def better(policy: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        good, bad = torch.sub(policy, reference).chunk(2)
        return torch.sub(bad, good)
    s.model.better = better


def dpo_prompt(s: Setup) -> None:
    s.model.shifted = lambda tokens, answer: (tokens[:, 1:], answer[:, :-1])


def dpo_mean(s: Setup) -> None:
    s.model.total = lambda logs, answer: (logs * answer).sum(-1) / answer.sum(-1)


def dpo_mask(s: Setup) -> None:
    at_uses(s.model.policy.layers[1], "attended", (0,), lambda q, k, v:
            functional.scaled_dot_product_attention(q, k, v))


def dpo_by_sums(s: Setup) -> None:
    s.model.logs = lambda logits, targets: torch.sub(
        torch.gather(logits, 2, targets[..., None]).squeeze(-1), torch.logsumexp(logits, -1))


def dpo_entropy(s: Setup) -> None:
    s.model.logs = lambda logits, targets: -functional.cross_entropy(
        logits.transpose(1, 2), targets, reduction="none")


def dpo_wide(s: Setup) -> None:
    right = s.model.logs
    s.model.logs = lambda logits, targets: right(logits.double(), targets).float()


def steps_of_attention(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "attended"):
            module.attended = by_heads


def dpo_two_forwards(s: Setup) -> None:
    right = s.model.chances
    s.model.chances = lambda model, tokens, answer: torch.cat(
        [right(model, *half) for half in zip(tokens.chunk(2), answer.chunk(2), strict=True)])


DPO: list[Case] = [
    fifth("dpo-order", "Torch.sub.1", "sign stale", dpo_order),
    fifth("dpo-prompt-one-off", "__getitem__.1", "shifted argument", dpo_prompt),
    fifth("dpo-mean", "sum.1 __truediv__.0 Torch.sub.0", "extra-call scale", dpo_mean),
    fifth("dpo-no-mask", "scaled_dot_product_attention.3", "argument structure", dpo_mask),
    fifth_noise("dpo-by-sums", dpo_by_sums),
    fifth_noise("dpo-entropy", dpo_entropy),
    fifth_noise("dpo-wide-loss", dpo_wide),
    fifth_noise("dpo-steps-of-attention", steps_of_attention),
    # Mathematically the same, but every shape differs: counted apart.
    noise("dpo-two-forwards", dpo_two_forwards, group="fifth, other shapes"),
    fifth_noise("dpo-rows-parallel", each(nn.Linear, in_two)),
]


def no_square(s: Setup) -> None:
    model = s.model
    model.both = lambda soft, hard: soft * (1 - model.share) + hard * model.share


def sharp_student(s: Setup) -> None:
    at_uses(s.model, "softened", (0,), lambda logits: logits.flatten(0, 1))


def by_hand(s: Setup) -> None:
    def soft(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        logs = functional.log_softmax(s.model.softened(student), dim=-1)
        truth = functional.log_softmax(s.model.softened(teacher), dim=-1)
        return (truth.exp() * (truth - logs)).sum(-1).mean()
    s.model.soft = soft


def log_target(s: Setup) -> None:
    s.model.soft = lambda student, teacher: functional.kl_div(
        functional.log_softmax(s.model.softened(student), dim=-1),
        functional.log_softmax(s.model.softened(teacher), dim=-1),
        reduction="batchmean", log_target=True)


def three_products(s: Setup) -> None:
    for module in s.model.modules():
        if hasattr(module, "parts"):
            module.parts = lambda x, m=module.joint: tuple(
                functional.linear(x, w, b)
                for w, b in zip(m.weight.chunk(3), m.bias.chunk(3), strict=True))


def hot_labels(s: Setup) -> None:
    s.model.hard = lambda logits, tokens: -(
        functional.one_hot(tokens[:, 1:], logits.shape[-1])
        * functional.log_softmax(logits[:, :-1], dim=-1)).sum(-1).mean()


DISTILL: list[Case] = [
    fifth("distill-square-forgotten", "__mul__.0 __mul__.1", "missing-call scale argument",
           no_square),
    fifth("distill-mean-of-all", "Functional.kl_div.0", "argument scale",
           attribute("reduction", "mean")),
    fifth("distill-sharp-student", "__truediv__.0 flatten.3", "missing-call scale",
           sharp_student),
    fifth("distill-half-of-teacher", "linear.6", "narrowed",
           kernel("addmm:6", through(torch.float16))),
    fifth("distill-gradient-negative", "cross_entropy.0< flatten.5<", "sign", kernel(
        "_log_softmax_backward_data:0", afterwards(torch.ops.aten.neg.default))),
    fifth_noise("distill-by-hand", by_hand),
    fifth_noise("distill-log-target", log_target),
    fifth_noise("distill-three-products", three_products),
    fifth_noise("distill-hot-labels", hot_labels),
    fifth_noise("distill-math-attention", math_attention),
    fifth_noise("distill-everything-wide", everything_wide),
    fifth_noise("distill-autocast", under_autocast),
    fifth_noise("distill-threads", threads),
    fifth_noise("distill-split-products", split_products),
]
