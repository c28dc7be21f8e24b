"""Trainings that take one batch in one piece, for cases that cut it into micro batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

WORDS, TOKENS, WIDTH = 50, 12, 24


class Layer(nn.Module):
    """A norm by formula, a mix over places, a gated feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(WIDTH))
        self.mix = nn.Linear(TOKENS, TOKENS)
        self.up, self.gate = (nn.Linear(WIDTH, 64, bias=False) for _ in range(2))
        self.down = nn.Linear(64, WIDTH, bias=False)
        self.small = 1e-6

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        root = torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + self.small)
        mixed = self.mix((values * root * self.weight).transpose(1, 2)).transpose(1, 2)
        values = values + mixed
        return values + self.down(self.gated(values))

    def gated(self, values: torch.Tensor) -> torch.Tensor:
        """What the second half of the layer makes of its input."""
        return functional.silu(self.gate(values)) * self.up(values)


class Cut(nn.Module):
    """A language model of tied words, trained for a step on a batch of eight."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(0.1 * torch.randn(TOKENS, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.idle = nn.Parameter(torch.randn(3))
        self.sizes = [8]
        self.kind = torch.float32
        self.left_out: tuple[str, ...] = ()
        self.starts: Callable[[int], None] = lambda number: None

    def scores(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of every word at every place."""
        values = self.words(tokens) + self.places
        for layer in self.layers:
            values = layer(values)
        return functional.linear(values, self.words.weight)

    def error(self, tokens: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """The sum over all places, in full precision."""
        with torch.autocast("cpu", self.kind, enabled=self.kind != torch.float32):
            scores = self.scores(tokens)
        return functional.cross_entropy(scores.float().reshape(-1, WORDS), wanted.reshape(-1),
                                        reduction="sum")

    def weight(self, number: int) -> float:
        """Of the loss of a part."""
        return 1 / (sum(self.sizes) * TOKENS)

    def labels(self, number: int, wanted: torch.Tensor) -> torch.Tensor:
        """Those of a part."""
        return wanted

    def losses(self, tokens: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
        """Of the parts, all but the last one derived."""
        found = []
        pieces = zip(tokens.split(self.sizes), wanted.split(self.sizes), strict=True)
        for number, (x, y) in enumerate(pieces):
            self.starts(number)
            if found:
                found[-1].backward()
                self.derived(number - 1)
            found.append(self.error(x.clone(), self.labels(number, y.clone()))
                         * self.weight(number))
        return found

    def derived(self, number: int) -> None:
        """After the gradients of a part."""

    def update(self) -> None:
        """One step of momentum, written out."""
        with torch.no_grad():
            for name, p in self.named_parameters():
                if p.grad is None or name in self.left_out:
                    continue
                kept = torch.zeros_like(p).lerp_(p.grad, 0.1)
                p.add_(kept, alpha=-0.1)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """Words, and those that follow them."""
    tokens = torch.randint(0, WORDS, (8, TOKENS + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def cut(kind: torch.dtype = torch.float32) -> Subject:
    """A step with an optimizer."""
    model = Cut().train()
    model.kind = kind
    tokens, wanted = data()

    def loss() -> torch.Tensor:
        model.losses(tokens, wanted)[-1].backward()
        model.update()
        return model.idle.sum()

    return Subject(model, loss)


def half() -> Subject:
    """The same under autocast."""
    return cut(torch.bfloat16)


def bare() -> Subject:
    """It ends with the gradients."""
    model = Cut().train()
    tokens, wanted = data()
    return Subject(model, lambda: model.losses(tokens, wanted)[-1])
