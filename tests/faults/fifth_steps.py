"""Trainings for the fifth hold-out: optimisers, mixed precision, a moving average."""

from __future__ import annotations

import copy
from typing import Any

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

WORDS, WIDTH = 60, 32


class Reader(nn.Module):
    """Words to one of six classes, with the attention of the library."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)
        self.classify = nn.Linear(WIDTH, 6)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores."""
        values = self.embed(tokens)
        inner = self.norm1(values)
        values = values + self.attention(inner, inner, inner, need_weights=False)[0]
        values = values + self.down(functional.relu(self.up(self.norm2(values))))
        return self.classify(values.mean(1))


class Tuning(nn.Module):
    """AdamW of the library with clipped gradients and a warm start."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = Reader()
        self.options: dict[str, Any] = {"lr": 2e-3, "betas": (0.9, 0.98), "eps": 1e-6,
                                        "foreach": False}
        self.clip_options: dict[str, Any] = {"max_norm": 0.7, "foreach": False}
        self.decay, self.warm = 0.1, 4
        self.optimizer: Any = None

    def groups(self) -> list[dict[str, Any]]:
        """Biases and norms do not decay."""
        wide = [p for p in self.reader.parameters() if p.dim() > 1]
        thin = [p for p in self.reader.parameters() if p.dim() == 1]
        return [{"params": wide, "weight_decay": self.decay},
                {"params": thin, "weight_decay": 0.0}]

    def prepared(self) -> None:
        """The optimiser."""
        self.optimizer = torch.optim.AdamW(self.groups(), **self.options)

    def rate(self, step: int) -> float:
        """Grows over the first steps."""
        return self.options["lr"] * min(1.0, (step + 1) / self.warm)

    def error(self, tokens: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return functional.cross_entropy(self.reader(tokens), classes)

    def stepped(self) -> None:
        """Parameters move."""
        self.optimizer.step()

    def learn(self, step: int, tokens: torch.Tensor, classes: torch.Tensor) -> None:
        """One step."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.zero_grad()
        self.error(tokens, classes).backward()
        torch.nn.utils.clip_grad_norm_(self.reader.parameters(), **self.clip_options)
        self.stepped()


def tune() -> Subject:
    """Two steps, then the loss."""
    model = Tuning().train()
    tokens, classes = torch.randint(0, WORDS, (3, 8, 10)), torch.randint(0, 6, (3, 8))

    def loss() -> torch.Tensor:
        model.prepared()
        for step in range(2):
            model.learn(step, tokens[step], classes[step])
        model.optimizer.zero_grad()
        return model.error(tokens[2], classes[2])

    return Subject(model, loss)


class Scaled(nn.Module):
    """Autocast, a scaled loss, gradients of several parts of the batch, clipped, momentum."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((nn.Linear(20, 48), nn.Linear(48, 48), nn.Linear(48, 7)))
        self.norm = nn.LayerNorm(48)
        self.scale, self.parts, self.limit, self.rate, self.momentum = 1024.0, 4, 0.5, 0.1, 0.9
        self.kept: list[torch.Tensor] = []
        self.kind = torch.bfloat16

    def scores(self, values: torch.Tensor) -> torch.Tensor:
        """Of seven classes."""
        values = functional.gelu(self.layers[0](values))
        values = values + functional.gelu(self.layers[1](self.norm(values)))
        return self.layers[2](values)

    def error(self, values: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss, always in full precision."""
        with torch.autocast("cpu", self.kind, enabled=self.kind != torch.float32):
            scores = self.scores(values)
        return functional.cross_entropy(scores.float(), classes)

    def gathered(self, values: torch.Tensor, classes: torch.Tensor) -> None:
        """Gradients of the whole batch, part by part."""
        for x, y in zip(values.chunk(self.parts), classes.chunk(self.parts), strict=True):
            (self.error(x, y) * (self.scale / self.parts)).backward()

    def unscaled(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """As if the loss had not been scaled."""
        return [torch.div(g, self.scale) for g in gradients]

    def clipped(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Their common norm is at most the limit."""
        norm = torch.linalg.vector_norm(torch.stack(
            [torch.linalg.vector_norm(g) for g in gradients]))
        factor = torch.clamp(self.limit / (norm + 1e-6), max=1.0)
        return [torch.mul(g, factor) for g in gradients]

    def ready(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """First unscaled, then clipped."""
        return self.clipped(self.unscaled(gradients))

    def learn(self, values: torch.Tensor, classes: torch.Tensor) -> None:
        """One step with momentum."""
        self.zero_grad()
        self.gathered(values, classes)
        with torch.no_grad():
            gradients = self.ready([p.grad for p in self.parameters() if p.grad is not None])
            if not self.kept:
                self.kept = [torch.zeros_like(g) for g in gradients]
            self.kept = [torch.add(torch.mul(old, self.momentum), g)
                         for old, g in zip(self.kept, gradients, strict=True)]
            for p, change in zip(self.parameters(), self.kept, strict=True):
                p.sub_(torch.mul(change, self.rate))


def scaled() -> Subject:
    """Two steps, then the loss."""
    model = Scaled().train()
    values, classes = torch.randn(3, 16, 20), torch.randint(0, 7, (3, 16))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(values[step], classes[step])
        model.zero_grad()
        return model.error(values[2], classes[2])

    return Subject(model, loss)


class Twins(nn.Module):
    """Two views of a picture; the teacher is the moving average of the student."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(),
                                     nn.Linear(48, 16))
        self.guess = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.keep = 0.95
        self.options: dict[str, Any] = {"lr": 0.05, "momentum": 0.9, "nesterov": True,
                                        "weight_decay": 1e-2, "foreach": False}
        self.optimizer: Any = None

    def distance(self, guess: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Between the directions."""
        return 2 - 2 * functional.cosine_similarity(guess, truth, dim=-1).mean()

    def aim(self, view: torch.Tensor) -> torch.Tensor:
        """What the teacher says; it does not learn from it."""
        with torch.no_grad():
            return self.teacher(view)

    def error(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Both ways."""
        return self.distance(self.guess(self.student(one)), self.aim(other)) \
            + self.distance(self.guess(self.student(other)), self.aim(one))

    def averaged(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """The teacher follows slowly."""
        old.mul_(self.keep).add_(new, alpha=1 - self.keep)

    def follow(self) -> None:
        """All parameters of the teacher."""
        with torch.no_grad():
            for old, new in zip(self.teacher.parameters(), self.student.parameters(),
                                strict=True):
                self.averaged(old, new)

    def learn(self, one: torch.Tensor, other: torch.Tensor) -> None:
        """One step."""
        self.optimizer.zero_grad()
        self.error(one, other).backward()
        self.optimizer.step()
        self.follow()


def twins() -> Subject:
    """Two steps, then the loss."""
    model = Twins().train()
    views = torch.randn(3, 2, 12, 24)

    def loss() -> torch.Tensor:
        model.optimizer = torch.optim.SGD(
            [*model.student.parameters(), *model.guess.parameters()], **model.options)
        for step in range(2):
            model.learn(*views[step])
        model.optimizer.zero_grad()
        return model.error(*views[2])

    return Subject(model, loss)
