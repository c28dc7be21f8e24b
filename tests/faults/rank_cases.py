"""Cases on several ranks: which call of which rank is truly wrong first, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from below_calls import afterwards, all_products, in_parts, rounded_to, through, with_inputs
from cases_plain import put
from fault_cases import full_name
from rank_training import RATE, WIDTH, Training

Apply = Callable[[Any], None]
# As they are before a recorder puts its own functions in their places.
CLONE, ZERO, COPY = (getattr(torch.ops.aten, name).default for name in ("clone", "zero_", "copy_"))
EMPTY, ADD, TO = (torch.ops.aten.empty_like.default, torch.ops.aten.add.Tensor,
                  torch.ops.aten._to_copy.default)


@dataclass(frozen=True)
class RankCase:
    """The golden run of `training` on `world` ranks, and the same after `change` on each rank."""

    name: str
    world: int
    change: Apply
    # (rank, call) pairs that may be named, rank None: any; empty: the pair is noise.
    culprits: tuple[tuple[int | None, str], ...] = ()
    causes: tuple[str, ...] = ()  # classes that are right; empty: the tool has no fitting one
    held_out: bool = False  # written after the rules were fixed, counted apart

    @property
    def training(self) -> str:
        """The key of TRAININGS."""
        return self.name.split("-")[0].rstrip("0123456789")

    @property
    def is_fault(self) -> bool:
        """Whether a call must be named."""
        return bool(self.culprits)


def fault(name: str, culprits: str, causes: str, change: Apply, world: int = 2) -> RankCase:
    """`culprits`: words like "1:Distributed.all_reduce.2" or "*:linear.3<" (any rank, backward)."""
    pairs = (word.split(":") for word in culprits.split())
    return RankCase(name, world, change, tuple(
        (None if rank == "*" else int(rank), full_name(call)) for rank, call in pairs),
        tuple(causes.split()))


def noise(name: str, change: Apply, world: int = 2) -> RankCase:
    """A pair that differs in rounding only."""
    return RankCase(name, world, change)


def on(rank: int, change: Apply) -> Apply:
    """On one rank only."""
    return lambda t: change(t) if t.rank == rank else None


def both(*changes: Apply) -> Apply:
    """One after the other."""
    def apply(t: Any) -> None:
        for change in changes:
            change(t)
    return apply


def below(use: str, change: Callable[..., Any]) -> Apply:
    """Changes one use of a method of the process group."""
    return lambda t: t.groups.update({use: change})


def kernel(use: str, change: Any) -> Apply:
    """Changes a kernel."""
    return lambda t: t.kernels.update({use: change})


def set_to(name: str, value: Callable[[Any], Any]) -> Apply:
    """Replaces an attribute, given the training."""
    return lambda t: setattr(t, name, value(t))


def not_delivered(original: Any, group: Any, tensors: Any, *rest: Any) -> Any:
    """Takes part, and keeps what it had."""
    return original(group, [CLONE(each) for each in tensors], *rest)


def without_share(original: Any, group: Any, tensors: Any, *rest: Any) -> Any:
    """Contributes nothing, and receives the sum of the others."""
    for each in tensors:
        ZERO(each.detach())
    return original(group, tensors, *rest)


def in_bfloat16(original: Any, group: Any, tensors: Any, *rest: Any) -> Any:
    """The values travel in fewer bits."""
    narrow = [TO(each.detach(), dtype=torch.bfloat16) for each in tensors]
    work = original(group, narrow, *rest)
    work.wait()
    for each, value in zip(tensors, narrow, strict=True):
        COPY(each.detach(), value)
    return work


def summed_backwards(original: Any, group: Any, tensors: Any, *rest: Any) -> Any:
    """Every rank adds up what all have, the last one first."""
    for each in tensors:
        parts = [EMPTY(each) for _ in range(group.size())]
        group.allgather([parts], [each.detach()]).wait()
        total = parts[-1]
        for part in parts[-2::-1]:
            total = ADD(total, part)
        COPY(each.detach(), total)
    return original(group, [ZERO(CLONE(each)) for each in tensors], *rest)


def every_use(method: str, count: int, change: Callable[..., Any]) -> Apply:
    """Changes the first uses of a method."""
    return lambda t: t.groups.update({f"{method}:{use}": change for use in range(count)})


# --- data parallel, all_reduce of each gradient ---


def reduced_copy(t: Any) -> None:
    summed = t.summed
    t.summed = lambda name, gradient: summed(
        name, gradient.clone() if name == "up.weight" else gradient)


def old_buffer(t: Any) -> None:
    shared = t.net.norm.running_mean.numpy()
    old, begin = shared.copy(), t.begin

    def begun() -> None:
        begin()
        shared[...] = old
    t.begin = begun


def maximum(t: Any) -> None:
    t.summed = lambda name, gradient: dist.all_reduce(gradient, op=dist.ReduceOp.MAX)


def empty_gradient(t: Any) -> None:
    def summed(name: str, gradient: Any) -> None:
        if name == "up.weight":
            ZERO(gradient)
        dist.all_reduce(gradient)
    t.summed = summed


def one_not_updated(t: Any) -> None:
    updated = t.updated

    def skipped(iteration: int, name: str, parameter: Any) -> None:
        if name != "up.weight" or iteration != 0:
            updated(iteration, name, parameter)
    t.updated = skipped


def threads(t: Any) -> None:
    torch.set_num_threads(4)
    t.stack.callback(torch.set_num_threads, 1)


def reversed_parameters(t: Any) -> None:
    """The gradients are reduced in another order; the update keeps its own."""
    parameters, reduce = t.parameters, t.reduce

    def reduced() -> None:
        t.parameters = lambda: parameters()[::-1]
        reduce()
        t.parameters = parameters
    t.reduce = reduced


def one_bucket(t: Any) -> None:
    """All gradients in one all_reduce."""
    def reduced() -> None:
        gradients = [parameter.grad for _, parameter in t.parameters()]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        flat.div_(t.world)
        start = 0
        for gradient in gradients:
            gradient.copy_(flat[start:start + gradient.numel()].view_as(gradient))
            start += gradient.numel()
    t.reduce = torch.no_grad()(reduced)


def split_products(t: Any) -> None:
    t.kernels.update(all_products(in_parts(2)))


def tf32_products(t: Any) -> None:
    t.kernels.update(all_products(with_inputs(rounded_to(10))))


# --- PyTorch's wrapper ---


def own_bucket(t: Any) -> None:
    """Takes part with a copy and returns its own values."""
    def reduced(bucket: Any) -> Any:
        own, values = bucket.buffer(), bucket.buffer().clone()
        work = dist.all_reduce(values, async_op=True)
        return work.get_future().then(lambda done: own)
    t.bucket_reduced = reduced


def sum_of_bucket(t: Any) -> None:
    def reduced(bucket: Any) -> Any:
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])
    t.bucket_reduced = reduced


def no_sync(t: Any) -> None:
    backward = t.backward

    def alone(iteration: int) -> None:
        if iteration > 0:
            backward(iteration)
            return
        with t.net.no_sync():
            backward(iteration)
    t.backward = alone


# --- tensor parallel and pipeline ---


def layer_not_summed(t: Any) -> None:
    summed = t.summed
    t.summed = lambda layer, values: None if layer == 1 else summed(layer, values)


def pairs_of_ranks(t: Any) -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine, summed = groups[t.rank // 2], t.summed
    t.summed = lambda layer, values: (
        dist.all_reduce(values, group=mine) if layer == 1 else summed(layer, values))


def other_shard(t: Any) -> None:
    part, other = 2 * WIDTH // t.world, (t.rank + 1) % t.world
    t.down[1].data.copy_(t.whole_down[1][:, other * part:(other + 1) * part])


def bias_of_every_rank(t: Any) -> None:
    joined = t.joined

    def added(layer: int, partial: torch.Tensor) -> torch.Tensor:
        if layer == 0:
            return joined(layer, partial)
        return joined(layer, partial + t.bias[layer]) - t.bias[layer]
    t.joined = added


def nothing(t: Training) -> None:
    """The same again."""


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


def sharded_maximum(t: Any) -> None:
    t.scattered = lambda mine, whole: dist.reduce_scatter_tensor(mine, whole, op=dist.ReduceOp.MAX)


def tail_not_sent(t: Any) -> None:
    """A rank hands out half of its share, and zeros."""
    gathered = t.gathered

    def half(whole: torch.Tensor, mine: torch.Tensor) -> None:
        mine[t.share // 2:] = 0
        gathered(whole, mine)
    t.gathered = half


CASES: list[RankCase] = [
    fault("dp-gradient-not-reduced", "1:Distributed.all_reduce.1", "not-reduced",
          on(1, below("allreduce:1", not_delivered))),
    fault("dp-nothing-reduced", "*:Distributed.all_reduce.3", "not-reduced",
          below("allreduce:3", not_delivered)),
    fault("dp-copy-reduced", "1:Tensor.div_.3", "not-reduced", on(1, reduced_copy)),
    fault("dp-batch-shifted", "1:embedding.0", "shifted",
          on(1, set_to("tokens", lambda t: lambda i: t.batch(i, t.rank, start=1)))),
    fault("dp-batch-of-another", "1:embedding.0", "other-rank",
          on(1, set_to("tokens", lambda t: lambda i: t.batch(i, 0)))),
    fault("dp-batch-late", "1:embedding.1", "stale",
          on(1, set_to("tokens", lambda t: lambda i: t.batch(0, t.rank)))),
    fault("dp-buffer-not-received", "1:Distributed.broadcast.0", "not-applied",
          on(1, below("broadcast:0", not_delivered))),
    fault("dp-buffer-stale", "1:batch_norm.0", "stale", on(1, old_buffer)),
    fault("dp-not-divided", "*:Tensor.div_.0 *:Tensor.add_.0", "scale missing-call",
          set_to("divided", lambda t: lambda gradient: None)),
    fault("dp-divided-by-one", "*:Tensor.div_.0", "argument scale",
          set_to("divided", lambda t: lambda gradient: gradient.div_(1))),
    fault("dp-divided-on-one", "1:Tensor.div_.0", "argument scale",
          on(1, set_to("divided", lambda t: lambda gradient: gradient.div_(4)))),
    fault("dp-parameter-without-gradient", "1:Distributed.all_reduce.3", "zeroed-block",
          on(1, empty_gradient)),
    fault("dp-parameter-not-updated", "1:Tensor.add_.3 1:linear.3",
          "stale missing-call missing-addend",
          on(1, one_not_updated)),
    fault("dp-wrong-source", "*:Distributed.broadcast.0", "argument",
          set_to("source", lambda t: lambda: 1)),
    fault("dp-maximum", "*:Distributed.all_reduce.0", "argument structure", maximum),
    fault("dp-scaled-on-one", "1:linear.1", "scale",
          on(1, kernel("addmm:1", afterwards(lambda y: y * 1.02)))),
    fault("dp-scaled-amid-noise", "1:linear.4", "scale",
          both(split_products, on(1, kernel("addmm:4", afterwards(lambda y: y * 1.02))))),
    fault("dp-nan-backward-on-one", "1:gelu.0<", "nonfinite",
          on(1, kernel("gelu_backward:0", afterwards(lambda y: put(y, (3, 5), torch.nan))))),
    fault("dp-narrow-reduction", "*:Distributed.all_reduce.5", "narrowed",
          below("allreduce:5", in_bfloat16)),
    fault("dp4-gradient-not-reduced", "2:Distributed.all_reduce.4", "not-reduced",
          on(2, below("allreduce:4", not_delivered)), world=4),
    fault("ddp-bucket-not-reduced", "1:Tensor.add_.0", "not-reduced", on(1, own_bucket)),
    fault("ddp-batch-shifted", "1:embedding.0", "shifted",
          on(1, set_to("tokens", lambda t: lambda i: t.batch(i, t.rank, start=1)))),
    fault("ddp-buffers-not-shared", "1:batch_norm.0", "offset",
          set_to("share_buffers", lambda t: False)),
    fault("ddp-not-divided", "*:Tensor.div_.0 *:Tensor.add_.0", "scale missing-call",
          sum_of_bucket),
    fault("ddp-no-sync", "*:Distributed.all_reduce.0 *:Tensor.add_.0", "not-reduced missing-call",
          no_sync),
    fault("ddp-half-on-one", "1:linear.2", "narrowed",
          on(1, kernel("addmm:2", through(torch.bfloat16)))),
    fault("tp-partial-not-reduced", "1:Distributed.all_reduce.1", "not-reduced",
          on(1, below("allreduce:1", not_delivered))),
    fault("tp-no-partial-reduced", "*:Distributed.all_reduce.0", "not-reduced",
          below("allreduce:0", not_delivered)),
    fault("tp-layer-not-summed", "*:Distributed.all_reduce.1 *:Tensor.__add__.2",
          "not-reduced missing-call", layer_not_summed),
    fault("tp-backward-not-reduced", "*:Distributed.all_reduce.2", "not-reduced",
          below("allreduce:2", not_delivered)),
    fault("tp-other-shard", "*:linear.3", "other-rank", other_shard),
    fault("tp-bias-of-every-rank", "*:Tensor.__add__.2 *:Distributed.all_reduce.1",
          "extra-call extra-addend offset", bias_of_every_rank),
    fault("tp4-share-missing", "*:Distributed.all_reduce.1", "",
          on(3, below("allreduce:1", without_share)), world=4),
    fault("tp4-pairs-of-ranks", "*:Distributed.all_reduce.1", "argument structure",
          pairs_of_ranks, world=4),
    fault("pp-sent-in-other-order", "0:Distributed.send.0", "",
          on(0, set_to("order", lambda t: lambda: [1, 0]))),
    fault("pp-not-received", "1:Distributed.recv.1", "",
          on(1, below("recv:1", not_delivered))),
    fault("pp-gradient-scaled", "1:gelu.1<", "scale",
          on(1, kernel("gelu_backward:1", afterwards(lambda y: y * 0.5)))),
    noise("dp-repeat", nothing),
    noise("dp-threads", threads),
    noise("dp-split-products", split_products),
    noise("dp-split-products-on-one", on(1, split_products)),
    noise("dp-tf32", tf32_products),
    noise("dp-reversed-parameters", reversed_parameters),
    noise("dp-one-bucket", one_bucket),
    noise("dp4-summed-backwards", every_use("allreduce", 16, summed_backwards), world=4),
    noise("ddp-repeat", nothing),
    noise("ddp-small-buckets", set_to("bucket_mb", lambda t: 0.002)),
    noise("ddp-no-hook", set_to("has_hook", lambda t: False)),
    noise("ddp-split-products", split_products),
    noise("tp-repeat", nothing),
    noise("tp-split-products", split_products),
    noise("tp4-summed-backwards", every_use("allreduce", 8, summed_backwards), world=4),
    noise("pp-repeat", nothing),
    noise("pp-split-products", split_products),
]
# Written after the rules were fixed: docs/design/verdict.md says what their first evaluation found.
CASES += [replace(case, held_out=True) for case in (
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
    fault("zero-maximum", "*:Distributed.reduce_scatter_tensor.0", "argument structure",
          sharded_maximum),
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
