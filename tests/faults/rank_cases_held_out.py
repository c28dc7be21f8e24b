"""Cases of several ranks that were written after the rules were fixed.

docs/design/verdict.md says what their first evaluation found.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from below_calls import afterwards, through
from cases_plain import put
from rank_cases import (
    RankCase,
    below,
    both,
    fault,
    kernel,
    noise,
    not_delivered,
    nothing,
    on,
    split_products,
    tf32_products,
)
from rank_training import RATE


def gradient_twice(t: Any) -> None:
    """One gradient is summed over the ranks a second time."""
    summed = t.summed

    def twice(name: str, gradient: torch.Tensor) -> None:
        summed(name, gradient)
        if name == "down.weight":
            summed(name, gradient)
    t.summed = twice


def larger_rate(t: Any) -> None:
    def updated(iteration: int, name: str, parameter: Any) -> None:
        parameter.add_(parameter.grad, alpha=-RATE * (10 if name == "head.bias" else 1))
    t.updated = updated


def other_order(t: Any) -> None:
    gathered = t.gathered

    def exchanged(whole: torch.Tensor, mine: torch.Tensor) -> None:
        gathered(whole, mine)
        whole.copy_(whole.roll(t.share))
    t.gathered = exchanged


def maximum(t: Any) -> None:
    t.scattered = lambda mine, whole: dist.reduce_scatter_tensor(mine, whole, op=dist.ReduceOp.MAX)


def tail_not_sent(t: Any) -> None:
    """A rank hands out half of its share, and zeros."""
    gathered = t.gathered

    def half(whole: torch.Tensor, mine: torch.Tensor) -> None:
        mine[t.share // 2:] = 0
        gathered(whole, mine)
    t.gathered = half


CASES: list[RankCase] = [dataclasses.replace(case, held_out=True) for case in (
    fault("dp-summed-twice", "*:Tensor.div_.5 *:Distributed.all_reduce.6", "", gradient_twice),
    fault("dp-larger-rate-on-one", "1:Tensor.add_.8", "argument scale", on(1, larger_rate)),
    fault("dp-zeroed-lane-on-one", "1:embedding.1<", "zeroed-block", on(1, kernel(
        "embedding_dense_backward:1", afterwards(lambda y: put(y, (slice(None), 3), 0.0))))),
    fault("ddp-half-norm-on-one", "0:batch_norm.1", "narrowed",
          on(0, kernel("native_batch_norm:1", through(torch.bfloat16)))),
    fault("tp-sign-on-one", "1:linear.1", "sign", both(split_products, on(1, kernel(
        "mm:1", afterwards(torch.neg))))),
    fault("tp4-backward-not-reduced-on-one", "3:Distributed.all_reduce.3", "not-reduced",
          on(3, below("allreduce:3", not_delivered)), world=4),
    fault("zero-other-order", "1:Tensor.roll.1 1:Tensor.copy_.0 1:Tensor.__getitem__.1", "",
          on(1, other_order)),
    fault("zero-maximum", "*:Distributed.reduce_scatter_tensor.0", "argument structure", maximum),
    fault("zero-tail-not-sent", "1:Distributed.all_gather_into_tensor.0 1:Tensor.__setitem__.0",
          "", on(1, tail_not_sent)),
    fault("zero-scaled-gelu-on-one", "0:gelu.1", "scale",
          on(0, kernel("gelu:1", afterwards(lambda y: y * 1.01)))),
    noise("zero-repeat", nothing),
    noise("zero-split-products", split_products),
    noise("zero-tf32", tf32_products),
    noise("tp-tf32", tf32_products),
    noise("pp-tf32", tf32_products),
)]
