"""A small Llama or Mixtral that several processes share in one of many ways, recorded.

    python parallel_llama.py DIRECTORY LAYOUT [LAYOUT ...]

Each process trains one step on its part of the model or of the batch and records it below
DIRECTORY/LAYOUT; the layouts are in LAYOUTS. All start from the weights and tokens of `single`
(those with experts: `mixtral`), so what they compute is the same. With LAYOUT-fault what layer 2's
up projections give on the last rank is a hundredth too large; with LAYOUT-other the weights are
others; with LAYOUT-equal all layers, and all experts, have the same weights; with LAYOUT-exchanged
two ranks hand each other what layer 2's gate and up projections give. With -tensor tensors are
recorded.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, HIDDEN, WORDS, LAYERS, EXPERTS = 32, 4, 48, 64, 4, 8
BATCH, LENGTH = 4, 16
# Layout -> processes, and how many share tensors, layers, experts, the sequence, the batch.
LAYOUTS: dict[str, dict[str, int]] = {
    "single": {}, "mixtral": {"moe": 1}, "packed": {"packed": 1},
    "tp2": {"world": 2, "tp": 2}, "tp4": {"world": 4, "tp": 4},
    "sp2": {"world": 2, "tp": 2, "sp": 1},
    "pp2": {"world": 2, "pp": 2}, "pp2_global": {"world": 2, "pp": 2, "global_names": 1},
    "ep2": {"world": 2, "ep": 2, "moe": 1}, "ep4": {"world": 4, "ep": 4, "moe": 1},
    "cp2": {"world": 2, "cp": 2}, "dp2": {"world": 2, "dp": 2},
    "fsdp2": {"world": 2, "dp": 2, "fsdp": 1},
    "pp4": {"world": 4, "pp": 4}, "pp2_ep2": {"world": 4, "pp": 2, "ep": 2, "moe": 1},
    "tp2_pp2": {"world": 4, "tp": 2, "pp": 2}, "tp2_dp2": {"world": 4, "tp": 2, "dp": 2},
}


class Plan:
    """One process's place in a layout."""

    def __init__(self, layout: str, rank: int, store: str) -> None:
        sizes = LAYOUTS[layout]
        self.size = {name: sizes.get(name, 1) for name in ("tp", "pp", "ep", "cp", "dp")}
        self.rank = rank
        self.world = sizes.get("world", 1)
        self.is_moe, self.is_packed = "moe" in sizes, "packed" in sizes
        self.has_sequence_parts, self.is_fully_sharded = "sp" in sizes, "fsdp" in sizes
        self.has_global_names = "global_names" in sizes
        place = self.rank
        self.index: dict[str, int] = {}
        for name in ("tp", "ep", "cp", "dp", "pp"):
            self.index[name] = place % self.size[name]
            place //= self.size[name]
        self.tensor_group: Any = None
        self.expert_group: Any = None
        if self.world > 1:
            dist.init_process_group("gloo", rank=self.rank, world_size=self.world,
                                    init_method=f"file://{store}")
            self.tensor_group = self._group("tp")
            self.expert_group = self._group("ep")

    def _group(self, name: str) -> Any:
        """Of ranks that follow each other."""
        own: Any = None
        for first in range(0, self.world, self.size[name]):
            ranks = list(range(first, first + self.size[name]))
            group = dist.new_group(ranks)
            if self.rank in ranks:
                own = group
        return own

    def part(self, whole: Tensor, name: str, dimension: int) -> Tensor:
        """This process's part of a tensor."""
        return whole.chunk(self.size[name], dimension)[self.index[name]].clone()


class CopyIn(torch.autograd.Function):
    """The same in all ranks; gradients are summed."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return whole.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class SumOut(torch.autograd.Function):
    """The sum over the ranks."""

    @staticmethod
    def forward(ctx: Any, summand: Tensor, group: Any) -> Tensor:
        summand = summand.contiguous().clone()
        dist.all_reduce(summand, group=group)
        return summand

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class Gather(torch.autograd.Function):
    """All ranks' parts of the sequence (dimension 1); gradients are taken apart, and summed before
    where each rank has a summand.
    """

    @staticmethod
    def forward(ctx: Any, part: Tensor, plan: Plan, name: str, sums: bool = True) -> Tensor:
        ctx.plan, ctx.name, ctx.sums = plan, name, sums
        parts = [torch.empty_like(part) for _ in range(plan.world)]
        dist.all_gather(parts, part.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        gradient = gradient.contiguous().clone()
        if ctx.sums:
            dist.all_reduce(gradient)
        return ctx.plan.part(gradient, ctx.name, 1), None, None, None


class SumApart(torch.autograd.Function):
    """The sum over the ranks, of which each keeps its part of the sequence."""

    @staticmethod
    def forward(ctx: Any, summand: Tensor, plan: Plan) -> Tensor:
        summand = summand.contiguous().clone()
        dist.all_reduce(summand)
        return plan.part(summand, "tp", 1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        parts = [torch.empty_like(gradient) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, gradient.contiguous())
        return torch.cat(parts, 1), None


class Exchange(torch.autograd.Function):
    """What the other one of two ranks has."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        parts = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(parts, mine.contiguous())
        return parts[1 - dist.get_rank()]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Norm(nn.Module):
    """Root mean square norm."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, hidden: Tensor) -> Tensor:
        variance = hidden.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(variance + 1e-6))


class Linear(nn.Module):
    """A projection, or a rank's part of it."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.factor = 1.0
        self.is_exchanged = False

    def forward(self, hidden: Tensor) -> Tensor:
        out = functional.linear(hidden, self.weight)
        return (Exchange.apply(out) if self.is_exchanged else out) * self.factor


class Weights:
    """The weights of the whole model, the same everywhere."""

    def __init__(self, plan: Plan, seed: int, are_equal: bool) -> None:
        self.plan = plan
        self.seed, self.are_equal = seed, are_equal
        self.generator = torch.Generator().manual_seed(seed)

    def begin_copy(self, of: int) -> None:
        """A layer, or an expert, which may be the same as those before it."""
        if self.are_equal:
            self.generator.manual_seed(self.seed + of)

    def _make(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator) * 0.1

    def whole(self, rows: int, columns: int) -> Linear:
        return Linear(self._make(rows, columns))

    def column(self, rows: int, columns: int) -> Linear:
        """Of which tensor parallel ranks have rows."""
        return Linear(self.plan.part(self._make(rows, columns), "tp", 0))

    def row(self, rows: int, columns: int) -> Linear:
        """Of which tensor parallel ranks have columns."""
        return Linear(self.plan.part(self._make(rows, columns), "tp", 1))

    def norm(self) -> Norm:
        return Norm(1 + self._make(WIDTH))

    def embedding(self) -> nn.Embedding:
        return nn.Embedding(WORDS, WIDTH, _weight=self._make(WORDS, WIDTH))


class Attention(nn.Module):
    """Causal attention; positions say which words may look at which."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.plan = weights.plan
        self.q_proj = weights.column(WIDTH, WIDTH)
        self.k_proj = weights.column(WIDTH, WIDTH)
        self.v_proj = weights.column(WIDTH, WIDTH)
        self.o_proj = weights.row(WIDTH, WIDTH)

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        def heads(values: Tensor) -> Tensor:
            return values.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

        query, key, value = self.q_proj(hidden), self.k_proj(hidden), self.v_proj(hidden)
        key_positions = positions
        if self.plan.size["cp"] > 1:
            key, value = (Gather.apply(each, self.plan, "cp") for each in (key, value))
            parts = [torch.empty_like(positions) for _ in range(self.plan.world)]
            dist.all_gather(parts, positions)
            key_positions = torch.cat(parts)
        query, key, value = heads(query), heads(key), heads(value)
        scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        # Positions count on over the sequences of a packed batch, in steps of 1000.
        mine, theirs = positions[:, None], key_positions[None, :]
        allowed = (theirs <= mine) & (theirs // 1000 == mine // 1000)
        weights = functional.softmax(scores.masked_fill(~allowed, -1e9), dim=-1)
        return self.o_proj((weights @ value).transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    """A gated linear unit."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.gate_proj = weights.column(HIDDEN, WIDTH)
        self.up_proj = weights.column(HIDDEN, WIDTH)
        self.down_proj = weights.row(WIDTH, HIDDEN)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


class Experts(nn.Module):
    """Two of the experts for each word; a rank has some of them."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.plan = weights.plan
        self.router = weights.whole(EXPERTS, WIDTH)
        all_experts = []
        for _ in range(EXPERTS):
            weights.begin_copy(2)
            all_experts.append(Mlp(weights))
        own = EXPERTS // self.plan.size["ep"]
        self.first = own * self.plan.index["ep"]
        self.experts = nn.ModuleList(all_experts[self.first:self.first + own])

    def forward(self, hidden: Tensor) -> Tensor:
        words = hidden.flatten(0, 1)
        if self.plan.size["ep"] > 1:
            words = CopyIn.apply(words, self.plan.expert_group)
        shares, chosen = functional.softmax(self.router(words), dim=-1).topk(2, dim=-1)
        out = torch.zeros_like(words)
        for index, expert in enumerate(self.experts):
            word, place = (chosen == self.first + index).nonzero(as_tuple=True)
            out = out.index_add(0, word, expert(words[word]) * shares[word, place, None])
        if self.plan.size["ep"] > 1:
            out = SumOut.apply(out, self.plan.expert_group)
        return out.view_as(hidden)


class Block(nn.Module):
    """Attention and what is behind it, each with its norm and what the layout needs around it."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        weights.begin_copy(1)
        self.plan = weights.plan
        self.input_norm = weights.norm()
        self.attention = Attention(weights)
        self.post_norm = weights.norm()
        self.mlp = Experts(weights) if self.plan.is_moe else Mlp(weights)

    def _into(self, hidden: Tensor) -> Tensor:
        if self.plan.has_sequence_parts:
            return Gather.apply(hidden, self.plan, "tp")
        return CopyIn.apply(hidden, self.plan.tensor_group) if self.plan.size["tp"] > 1 else hidden

    def _out(self, hidden: Tensor) -> Tensor:
        if self.plan.has_sequence_parts:
            return SumApart.apply(hidden, self.plan)
        return SumOut.apply(hidden, self.plan.tensor_group) if self.plan.size["tp"] > 1 else hidden

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        hidden = hidden + self._out(self.attention(self._into(self.input_norm(hidden)), positions))
        return hidden + self._out(self.mlp(self._into(self.post_norm(hidden))))


class Llama(nn.Module):
    """The layers that this process has; the first ones begin with words, the last end with them."""

    def __init__(self, plan: Plan, seed: int, are_equal: bool = False) -> None:
        super().__init__()
        weights = Weights(plan, seed, are_equal)
        self.plan = plan
        embedding, blocks = weights.embedding(), [Block(weights) for _ in range(LAYERS)]
        norm, head = weights.norm(), weights.whole(WORDS, WIDTH)
        own = LAYERS // plan.size["pp"]
        first = own * plan.index["pp"]
        self.is_first, self.is_last = first == 0, first + own == LAYERS
        names = range(first, first + own) if plan.has_global_names else range(own)
        self.layers = nn.ModuleDict({str(name): blocks[first + place]
                                     for place, name in enumerate(names)})
        if self.is_first:
            self.embedding = embedding
        if self.is_last:
            self.norm, self.head = norm, head
        self.numbers = {str(name): first + place for place, name in enumerate(names)}

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        if self.is_first:
            hidden = self.embedding(hidden)
            if self.plan.has_sequence_parts:
                hidden = self.plan.part(hidden, "tp", 1)
        for block in self.layers.values():
            hidden = block(hidden, positions)
        if not self.is_last:
            return hidden
        hidden = self.norm(hidden)
        if self.plan.has_sequence_parts:
            hidden = Gather.apply(hidden, self.plan, "tp", False)
        return self.head(hidden)


def zigzag(whole: Tensor, plan: Plan, dimension: int) -> Tensor:
    """Of twice as many chunks as ranks, one from the front and one from the back."""
    chunks = whole.chunk(2 * plan.size["cp"], dimension)
    mine = plan.index["cp"]
    return torch.cat([chunks[mine], chunks[-1 - mine]], dimension)


def data(plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Words, what comes next, and positions, of this process."""
    generator = torch.Generator().manual_seed(11)
    text = torch.randint(0, WORDS, (BATCH, LENGTH + 1), generator=generator)
    words, target, positions = text[:, :-1], text[:, 1:], torch.arange(LENGTH)
    if plan.size["dp"] > 1:
        words, target = plan.part(words, "dp", 0), plan.part(target, "dp", 0)
    if plan.size["cp"] > 1:
        words, target = zigzag(words, plan, 1), zigzag(target, plan, 1)
        positions = zigzag(positions, plan, 0)
    if plan.is_packed:
        positions = torch.cat([positions + 1000 * place for place in range(BATCH)])
        words, target = words.reshape(1, -1), target.reshape(1, -1)
    return words, target, positions


def step(model: Llama, plan: Plan) -> None:
    """One step, over the pipeline's stages if there are some."""
    words, target, positions = data(plan)
    behind = plan.rank + plan.world // plan.size["pp"]
    before = plan.rank - plan.world // plan.size["pp"]
    hidden = words
    if not model.is_first:
        hidden = torch.empty(*words.shape, WIDTH)
        dist.recv(hidden, before)
        hidden.requires_grad_()
    out = model(hidden, positions)
    if model.is_last:
        functional.cross_entropy(out.flatten(0, 1), target.flatten()).backward()
    else:
        dist.send(out.detach().contiguous(), behind)
        gradient = torch.empty_like(out)
        dist.recv(gradient, behind)
        out.backward(gradient)
    if not model.is_first:
        dist.send(hidden.grad.contiguous(), before)


def add_fault(model: Llama, plan: Plan) -> None:
    """On the last rank, if it has that layer."""
    for name, block in model.layers.items():
        if model.numbers[name] != 2 or plan.rank != plan.world - 1:
            continue
        for mlp in block.mlp.experts if plan.is_moe else [block.mlp]:
            mlp.up_proj.factor = 1.01


def add_exchange(model: Llama) -> None:
    for name, block in model.layers.items():
        if model.numbers[name] == 2:
            block.mlp.gate_proj.is_exchanged = block.mlp.up_proj.is_exchanged = True


def shard(model: Llama, plan: Plan) -> None:
    """PyTorch's fully sharded data parallelism."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (plan.world,))
    for part in [*model.layers.values(), model]:
        fully_shard(part, mesh=mesh)


def record(layout: str, rank: int, directory: str) -> None:
    """What one process does."""
    from plumbline.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    name, *variants = layout.split("-")
    plan = Plan(name, rank, f"{directory}.store")
    model = Llama(plan, seed=8 if "other" in variants else 7, are_equal="equal" in variants)
    if "fault" in variants:
        add_fault(model, plan)
    if "exchanged" in variants:
        add_exchange(model)
    if plan.is_fully_sharded:
        shard(model, plan)
    debugger = PrecisionDebugger(dump_path=directory, level="mix",
                                 task="tensor" if "tensor" in variants else "statistics")
    debugger.start(model)
    step(model, plan)
    debugger.stop()
    debugger.step()
    if plan.world > 1:
        dist.barrier()
        dist.destroy_process_group()


def main() -> None:
    directory, *layouts = sys.argv[1:]
    import plumbline.pytorch  # once, for all processes  # noqa: F401

    for layout in layouts:
        world = LAYOUTS[layout.partition("-")[0]].get("world", 1)
        place = os.path.join(directory, layout)
        children = [forked(layout, rank, place) for rank in range(world)]
        failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
        if failed:
            raise SystemExit(f"{layout}: {len(failed)} processes failed")


def forked(layout: str, rank: int, directory: str) -> int:
    """A process that records; its number."""
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        record(layout, rank, directory)
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
