"""More models for the unseen cases: whole training steps, mixed precision, a cache of keys."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WIDTH = 32


class Learner(nn.Module):
    """A small network and everything that one step of its training does."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, WIDTH), nn.Tanh(), nn.LayerNorm(WIDTH),
                                    nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 5))
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.parameters()]
        self.parts, self.limit, self.rate, self.decay = 2, 0.5, 1e-2, 0.1
        self.betas, self.eps, self.smoothing = (0.9, 0.99), 1e-8, 0.1

    def error(self, part: int, values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss of one part of the batch."""
        wrong = functional.cross_entropy(self.layers(values), classes,
                                         label_smoothing=self.smoothing)
        return wrong / self.parts

    def clipped(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients whose common norm is at most the limit."""
        norm = torch.stack([g.pow(2).sum() for g in gradients]).sum().sqrt()
        factor = torch.clamp(self.limit / (norm + 1e-6), max=1.0)
        return [g * factor for g in gradients]

    def stepped(self, number: int, place: int, old: torch.Tensor, gradient: torch.Tensor
                ) -> torch.Tensor:
        """The parameter after one AdamW step."""
        first, second = self.moments[place]
        first = first * self.betas[0] + gradient * (1 - self.betas[0])
        second = second * self.betas[1] + gradient * gradient * (1 - self.betas[1])
        self.moments[place] = first, second
        size = self.rate / (1 - self.betas[0] ** number)
        root = second.sqrt() / (1 - self.betas[1] ** number) ** 0.5 + self.eps
        return old * (1 - self.rate * self.decay) - size * first / root

    def forgotten(self, number: int) -> None:
        """Gradients of the step before are dropped."""
        for p in self.parameters():
            p.grad = None

    def taken(self, place: int, p: torch.Tensor, value: torch.Tensor) -> None:
        """The parameter gets its new value."""
        p.copy_(value)

    def learn(self, number: int, values: torch.Tensor, classes: torch.Tensor) -> None:
        """One whole step over all parts."""
        self.forgotten(number)
        for part, (x, y) in enumerate(zip(values.chunk(self.parts), classes.chunk(self.parts),
                                          strict=True)):
            self.error(part, x, y).backward()
        with torch.no_grad():
            gradients = self.clipped([p.grad for p in self.parameters() if p.grad is not None])
            for place, (p, gradient) in enumerate(zip(self.parameters(), gradients, strict=True)):
                self.taken(place, p, self.stepped(number, place, p, gradient))


def train() -> Subject:
    """Two steps, then the loss."""
    model = Learner().train()
    values, classes = torch.randn(3, 16, 12), torch.randint(0, 5, (3, 16))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(step + 1, values[step], classes[step])
        Learner.forgotten(model, 3)
        return functional.cross_entropy(model.layers(values[2]), classes[2])

    return Subject(model, loss)


class Mixed(nn.Module):
    """Blocks under autocast that are computed again in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(10, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.joint = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(3))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.leave = nn.Linear(WIDTH, 6)
        self.dropout = nn.Dropout(0.0)

    def split(self, joint: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Query, key and value of every head."""
        return joint.view(*joint.shape[:2], 3, 4, -1).permute(2, 0, 3, 1, 4).unbind(0)

    def merged(self, mixed: torch.Tensor) -> torch.Tensor:
        """Heads side by side."""
        return mixed.transpose(1, 2).reshape(mixed.shape[0], mixed.shape[2], -1)

    def shares(self, scores: torch.Tensor) -> torch.Tensor:
        """Softmax, which autocast keeps wide."""
        return functional.softmax(scores, dim=-1)

    def block(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """Attention with a residual connection."""
        query, key, value = self.split(self.joint[number](self.norms[number](values)))
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return values + self.dropout(self.out[number](self.merged(self.shares(scores) @ value)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores."""
        with torch.autocast("cpu", torch.bfloat16):
            values = self.enter(values)
            for number in range(3):
                values = checkpoint(self.block, values, number, use_reentrant=False)
            return self.leave(values.mean(1))


def mixed() -> Subject:
    """Mixed precision with recomputation."""
    model = Mixed().train()
    values, classes = torch.randn(4, 12, 10), torch.randint(0, 6, (4,))
    return Subject(model, lambda: functional.cross_entropy(model(values).float(), classes))


class Cached(nn.Module):
    """Decoding with a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(60, WIDTH), nn.Embedding(24, WIDTH)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm": nn.LayerNorm(WIDTH), "joint": nn.Linear(WIDTH, 3 * WIDTH),
            "out": nn.Linear(WIDTH, WIDTH)}) for _ in range(2))
        self.head = nn.Linear(WIDTH, 60)

    def position(self, start: int, count: int) -> torch.Tensor:
        """The places of new tokens."""
        return torch.arange(start, start + count)

    def stored(self, cache: torch.Tensor, start: int, fresh: torch.Tensor) -> torch.Tensor:
        """The cache with new keys or values."""
        rows = torch.arange(start, start + fresh.shape[2])
        return torch.index_copy(cache, 2, rows, fresh)

    def allowed(self, start: int, count: int) -> torch.Tensor:
        """True where a new token may look."""
        return torch.arange(16)[None, :] <= torch.arange(start, start + count)[:, None]

    def attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 allowed: torch.Tensor) -> torch.Tensor:
        """Over the whole cache, with a mask."""
        scores = torch.matmul(query, key.transpose(-2, -1)) * query.shape[-1] ** -0.5
        scores = scores.masked_fill(~allowed, float("-inf"))
        return torch.matmul(torch.softmax(scores, dim=-1), value)

    def part(self, tokens: torch.Tensor, start: int, caches: list[list[torch.Tensor]]
             ) -> torch.Tensor:
        """Logits of new tokens; the caches are renewed."""
        count = tokens.shape[1]
        values = self.embed(tokens) + self.places(self.position(start, count))
        for number, layer in enumerate(self.layers):
            joint = layer["joint"](layer["norm"](values)).view(2, count, 3, 4, -1)
            query, key, value = joint.permute(2, 0, 3, 1, 4)
            caches[number] = [self.stored(caches[number][0], start, key),
                              self.stored(caches[number][1], start, value)]
            mixed = self.attended(query, *caches[number], self.allowed(start, count))
            values = values + layer["out"](mixed.transpose(1, 2).reshape(2, count, WIDTH))
        return self.head(values)


def cached() -> Subject:
    """A prompt of ten tokens and three more, one by one."""
    model = Cached().eval()
    tokens = torch.randint(0, 60, (2, 14))

    def loss() -> torch.Tensor:
        caches = [[torch.zeros(2, 4, 16, WIDTH // 4) for _ in range(2)] for _ in range(2)]
        results, start = [], 0
        for count in (10, 1, 1, 1):
            results.append(model.part(tokens[:, start:start + count], start, caches))
            start += count
        logits = torch.cat(results, dim=1)
        return functional.cross_entropy(logits.reshape(-1, 60), tokens[:, 1:].reshape(-1))

    return Subject(model, loss)
