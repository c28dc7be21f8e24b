"""Trains a small Llama with random weights for two steps and records every call.

    python train.py DIRECTORY [EPSILON]

The recording goes to DIRECTORY. EPSILON (default: the right one, 1e-06) is that of one norm.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

from plumbline.pytorch import PrecisionDebugger, seed_all

WIDTH, HEADS, BLOCKS, WORDS = 64, 4, 4, 500
EPSILON = 1e-6
WRONG_NORM = "blocks.2.post_attention_norm"


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.epsilon = EPSILON

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        variance = hidden.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden * torch.rsqrt(variance + self.epsilon))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, _ = hidden.shape
        query, key, value = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                             for part in self.qkv(hidden).chunk(3, dim=-1))
        scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        later = torch.ones(length, length).triu(1).bool()
        weights = functional.softmax(scores.masked_fill(later, -1e9), dim=-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_norm, self.attention = RMSNorm(), Attention()
        self.post_attention_norm = RMSNorm()
        self.gate = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        hidden = hidden + self.attention(self.input_norm(hidden))
        normed = self.post_attention_norm(hidden)
        return hidden + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = RMSNorm(), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(words)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.norm(hidden))


def main(directory: str, epsilon: float) -> None:
    torch.set_num_threads(1)  # sums in the same order in every run
    seed_all(1234)
    model = Llama()
    model.get_submodule(WRONG_NORM).epsilon = epsilon
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = torch.randint(0, WORDS, (2, 33))
    debugger = PrecisionDebugger(dump_path=directory, task="statistics", level="mix")
    for step in range(2):
        debugger.start(model)
        scores = model(words[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        debugger.step()
        print(f"  step {step}: loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else EPSILON)
