"""Small trainings on several ranks, each a class whose steps a case may replace on a rank."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy
import torch
import torch.distributed as dist
from below_calls import Change, Kernels
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

SEED = 31
VOCABULARY = 48
WIDTH = 32
TOKENS = (4, 12)
ITERATIONS = 2
RATE = 0.05

GroupChange = Callable[..., Any]  # (original method, group, tensors, what else was given)


class Groups:
    """Replaces chosen uses of methods of process groups, below the calls that a recorder sees.

    `changes` maps "allreduce:3", the method and its use on this rank, to a function.
    """

    def __init__(self, changes: dict[str, GroupChange]):
        self._changes = changes
        self._originals: dict[str, Any] = {}
        self.unused = set(changes)

    def __enter__(self) -> Groups:
        for method in {key.split(":")[0] for key in self._changes}:
            self._originals[method] = vars(dist.ProcessGroup)[method]
            setattr(dist.ProcessGroup, method, self._replaced(method))
        return self

    def __exit__(self, *_: object) -> None:
        for method, original in self._originals.items():
            setattr(dist.ProcessGroup, method, original)

    def _replaced(self, method: str) -> Any:
        original, uses = getattr(dist.ProcessGroup, method), []

        def call(group: Any, *args: Any) -> Any:
            key = f"{method}:{len(uses)}"
            uses.append(key)
            if key not in self._changes:
                return original(group, *args)
            self.unused.discard(key)
            return self._changes[key](original, group, *args)
        return call


class Net(nn.Module):
    """An embedding, a norm with running statistics and two linear layers around a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH).eval()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits, one row per token."""
        values = self.embed(tokens).reshape(-1, WIDTH)
        values = values + self.down(functional.gelu(self.up(self.norm(values))))
        return self.head(values)


class Training:
    """What all trainings have: this rank, its data, and what a case changed."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world
        self.stack = ExitStack()
        self.kernels: dict[str, Change] = {}
        self.groups: dict[str, GroupChange] = {}
        torch.manual_seed(SEED)
        self.build()
        torch.manual_seed(SEED + 1)

    def build(self) -> None:
        """Makes self.net, the same on all ranks."""
        self.net: Any = Net()

    def batch(self, iteration: int, owner: int, start: int = 0) -> torch.Tensor:
        """The tokens that rank `owner` reads; `start`: how many of its stream it leaves out."""
        # NumPy: a recorder sees calls of torch.
        count = TOKENS[0] * TOKENS[1]
        stream = numpy.random.default_rng(10 * owner + iteration).integers(
            0, VOCABULARY, 2 * count)
        return torch.from_numpy(stream[start:start + count].reshape(TOKENS))

    def tokens(self, iteration: int) -> torch.Tensor:
        """The tokens of this rank."""
        return self.batch(iteration, self.rank)

    def backward(self, iteration: int) -> None:
        """The loss of a batch and its gradients."""
        tokens = self.tokens(iteration)
        logits = self.net(tokens)
        functional.cross_entropy(logits, tokens.roll(1, 1).reshape(-1)).backward()

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """In the order in which they are reduced."""
        return list(self.net.named_parameters())

    def begin(self) -> None:
        """What comes before the first iteration, recorded."""

    def reduce(self) -> None:
        """Makes the gradients of all ranks equal."""

    @torch.no_grad()
    def update(self, iteration: int) -> None:
        """One step of gradient descent."""
        for name, parameter in self.parameters():
            if parameter.grad is not None:
                self.updated(iteration, name, parameter)
                parameter.grad = None

    def updated(self, iteration: int, name: str, parameter: nn.Parameter) -> None:
        """The step of one parameter."""
        parameter.add_(parameter.grad, alpha=-RATE)

    def run(self) -> None:
        """Everything that is recorded."""
        groups = Groups(self.groups)
        kernels = Kernels(self.kernels)
        with groups, self.stack, kernels if self.kernels else ExitStack():
            self.begin()
            for iteration in range(ITERATIONS):
                self.backward(iteration)
                self.reduce()
                self.update(iteration)
        left = [key for key in self.kernels if ":" in key and kernels.applied[key] == 0]
        if groups.unused or left:
            raise SystemExit(f"never used: {groups.unused} {left}")


class DataParallel(Training):
    """Buffers from rank 0, one all_reduce and one division for each gradient."""

    def build(self) -> None:
        super().build()
        numbers = torch.Generator().manual_seed(self.rank)
        self.net.norm.running_mean.copy_(torch.randn(WIDTH, generator=numbers) * 0.1)

    def source(self) -> int:
        """The rank that has the buffers."""
        return 0

    def begin(self) -> None:
        for buffer in (self.net.norm.running_mean, self.net.norm.running_var):
            dist.broadcast(buffer, src=self.source())

    @torch.no_grad()
    def reduce(self) -> None:
        for name, parameter in self.parameters():
            self.reduced(name, parameter.grad)

    def reduced(self, name: str, gradient: Any) -> None:
        """The mean of one gradient over the ranks, in place."""
        self.summed(name, gradient)
        self.divided(gradient)

    def summed(self, name: str, gradient: torch.Tensor) -> None:
        """The sum over the ranks, in place."""
        dist.all_reduce(gradient)

    def divided(self, gradient: torch.Tensor) -> None:
        """From sum to mean."""
        gradient.div_(self.world)


class Ddp(Training):
    """PyTorch's own data parallel wrapper; a communication hook that a recorder sees."""

    bucket_mb = 25.0
    share_buffers = True
    has_hook = True

    def build(self) -> None:
        super().build()
        if self.rank != 0:
            self.net.norm.running_mean.add_(0.25)

    def begin(self) -> None:
        """Not recorded: DDP's own broadcasts are below Python."""
        self.net = DistributedDataParallel(self.net, bucket_cap_mb=self.bucket_mb,
                                           broadcast_buffers=self.share_buffers)
        self.net.module.norm.eval()
        if self.has_hook:
            self.net.register_comm_hook(self, lambda _, bucket: self.bucket_reduced(bucket))

    def bucket_reduced(self, bucket: Any) -> Any:
        """The mean of a bucket over the ranks, later."""
        values = bucket.buffer()
        work = dist.all_reduce(values, async_op=True)
        return work.get_future().then(lambda done: done.value()[0].div_(self.world))


class Sharded(Training):
    """Every rank sums, updates and hands out one share of all parameters."""

    def build(self) -> None:
        super().build()
        self.count = sum(parameter.numel() for parameter in self.net.parameters())
        self.share = -(-self.count // self.world)

    def flat(self, gradients: bool) -> torch.Tensor:
        """All parameters or all gradients, filled up to a whole number of shares."""
        values: Any = [p.grad if gradients else p for p in self.net.parameters()]
        whole = torch.cat([value.reshape(-1) for value in values])
        return functional.pad(whole, (0, self.share * self.world - self.count))

    def scattered(self, mine: torch.Tensor, whole: torch.Tensor) -> None:
        """The sum over the ranks of this rank's share."""
        dist.reduce_scatter_tensor(mine, whole)

    def gathered(self, whole: torch.Tensor, mine: torch.Tensor) -> None:
        """The shares of all ranks."""
        dist.all_gather_into_tensor(whole, mine)

    @torch.no_grad()
    def update(self, iteration: int) -> None:
        begin = self.rank * self.share
        gradient, whole = torch.empty(self.share), self.flat(gradients=False)
        self.scattered(gradient, self.flat(gradients=True))
        mine = whole[begin:begin + self.share] - RATE * gradient / self.world
        self.gathered(whole, mine)
        start = 0
        for parameter in self.net.parameters():
            end = start + parameter.numel()
            parameter.copy_(whole[start:end].view_as(parameter))
            parameter.grad, start = None, end


class TensorParallel(Training):
    """Two blocks whose inner linear layers are cut over the ranks; activations are summed."""

    def build(self) -> None:
        part = 2 * WIDTH // self.world
        mine = slice(self.rank * part, (self.rank + 1) * part)
        self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        up = [torch.randn(2 * WIDTH, WIDTH) * 0.2 for _ in range(2)]
        down = [torch.randn(WIDTH, 2 * WIDTH) * 0.2 for _ in range(2)]
        self.whole_down = down
        self.up = [nn.Parameter(whole[mine].clone()) for whole in up]
        self.down = [nn.Parameter(whole[:, mine].clone()) for whole in down]
        self.bias = [nn.Parameter(torch.randn(WIDTH) * 0.2) for _ in range(2)]
        self.net = nn.Module()
        self.net.embed, self.net.head = self.embed, self.head
        for name, group in (("up", self.up), ("down", self.down), ("bias", self.bias)):
            setattr(self.net, name, nn.ParameterList(group))

    def tokens(self, iteration: int) -> torch.Tensor:
        """The same on all ranks."""
        return self.batch(iteration, 0)

    def summed(self, layer: int, values: torch.Tensor) -> None:
        """The sum of a layer's partial results over the ranks, in place."""
        dist.all_reduce(values)

    def joined(self, layer: int, partial: torch.Tensor) -> torch.Tensor:
        """The result of a layer from this rank's part of it."""
        return _Summed.apply(partial, self, layer) + self.bias[layer]

    def backward(self, iteration: int) -> None:
        tokens = self.tokens(iteration)
        values = self.embed(tokens)
        for layer in range(2):
            inner = functional.gelu(functional.linear(_Copied.apply(values), self.up[layer]))
            values = values + self.joined(layer, functional.linear(inner, self.down[layer]))
        logits = self.head(values).reshape(-1, VOCABULARY)
        functional.cross_entropy(logits, tokens.roll(1, 1).reshape(-1)).backward()


class _Summed(torch.autograd.Function):
    """The sum over the ranks; its gradient is everybody's."""

    @staticmethod
    def forward(ctx: Any, partial: torch.Tensor, training: Any, layer: int) -> torch.Tensor:
        values = partial.clone()
        training.summed(layer, values)
        return values

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None, None


class _Copied(torch.autograd.Function):
    """The same on all ranks; the gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = grads[0].clone()
        dist.all_reduce(total)
        return total


class Pipeline(Training):
    """Rank 0 holds the first half, rank 1 the second; two micro-batches an iteration."""

    def tokens(self, iteration: int) -> torch.Tensor:
        return self.batch(iteration, 0)

    def order(self) -> list[int]:
        """In which the micro-batches are sent."""
        return [0, 1]

    def backward(self, iteration: int) -> None:
        (self._first if self.rank == 0 else self._second)(self.tokens(iteration).chunk(2))

    def _first(self, parts: Any) -> None:
        net = self.net
        values = [net.norm(net.embed(part).reshape(-1, WIDTH)) for part in parts]
        for each in self.order():
            dist.send(values[each].detach(), 1)
        for each in values:
            gradient = torch.empty_like(each)
            dist.recv(gradient, 1)
            each.backward(gradient)

    def _second(self, parts: Any) -> None:
        net = self.net
        inputs = [torch.empty(parts[0].numel(), WIDTH) for _ in parts]
        for each in inputs:
            dist.recv(each, 0)
            each.requires_grad_()
        for part, values in zip(parts, inputs, strict=True):
            logits = net.head(values + net.down(functional.gelu(net.up(values))))
            functional.cross_entropy(logits, part.roll(1, 1).reshape(-1)).backward()
            dist.send(values.grad, 0)


TRAININGS: dict[str, type[Training]] = {
    "dp": DataParallel, "ddp": Ddp, "tp": TensorParallel, "pp": Pipeline, "zero": Sharded,
}
