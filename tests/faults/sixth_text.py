"""What the language models of the sixth hold-out have in common."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

WIDTH = 32


class TextModel(nn.Module):
    """Two layers, each of which adds to what it reads through a norm."""

    def __init__(self, words: int, layer: Callable[[], nn.Module], norm: Callable[[], nn.Module],
                 has_bias: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH)
        self.head = nn.Linear(WIDTH, words, bias=has_bias)
        self.layers = nn.ModuleList((layer(), layer()))
        self.norms = nn.ModuleList(norm() for _ in range(3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The loss of the next word."""
        values = self.embed(tokens)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            values = values + layer(norm(values))
        scores = self.head(self.norms[-1](values))
        return functional.cross_entropy(scores[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
