"""The models of the fault suite: tiny, random weights, fixed seeds, one loss each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

VOCABULARY = 96
WIDTH = 64
HEADS = 4
LAYERS = 3
TOKENS = (2, 24)


@dataclass
class Subject:
    """A model with the computation of its loss; what a case may change before the recording."""

    model: nn.Module
    loss: Callable[[], torch.Tensor]


class Attention(nn.Module):
    """Causal attention in separate steps, so that each can be replaced on one instance."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.scale = (WIDTH // HEADS) ** -0.5

    def heads(self, values: torch.Tensor) -> torch.Tensor:
        """[batch, tokens, width] to [batch, head, tokens, width of a head]."""
        return values.view(*values.shape[:2], HEADS, -1).transpose(1, 2)

    def scaled(self, scores: torch.Tensor) -> torch.Tensor:
        """Scores over the root of the width of a head."""
        return scores * self.scale

    def masked(self, scores: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Infinity where a token may not look."""
        return scores.masked_fill(hidden, float("-inf"))

    def weights(self, scores: torch.Tensor) -> torch.Tensor:
        """How much each token takes from each."""
        return functional.softmax(scores, dim=-1)

    def mixed(self, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The weighted values of all heads, side by side."""
        return torch.matmul(weights, values).transpose(1, 2).reshape(*TOKENS, WIDTH)

    def forward(self, values: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """All steps."""
        query, key = self.heads(self.query(values)), self.heads(self.key(values))
        scores = self.scaled(torch.matmul(query, key.transpose(-2, -1)))
        weights = self.weights(self.masked(scores, hidden))
        return self.out(self.mixed(weights, self.heads(self.value(values))))


class Block(nn.Module):
    """A layer of a transformer, normalised first."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def activated(self, values: torch.Tensor) -> torch.Tensor:
        """The non-linear step."""
        return functional.gelu(values)

    def joined(self, values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The residual connection."""
        return values + change

    def forward(self, values: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Attention, then the two linear layers."""
        values = self.joined(values, self.dropout(self.attention(self.norm1(values), hidden)))
        return self.joined(values, self.down(self.activated(self.up(self.norm2(values)))))


class Plain(nn.Module):
    """A transformer written with nothing but torch."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Parameter(torch.randn(TOKENS[1], WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def mask(self) -> torch.Tensor:
        """True where a token may not look."""
        return torch.triu(torch.ones(TOKENS[1], TOKENS[1], dtype=torch.bool), diagonal=1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        values, hidden = self.embed(tokens) + self.place, self.mask()
        for block in self.blocks:
            values = block(values, hidden)
        return self.head(self.norm(values))


def plain() -> Subject:
    """The plain transformer."""
    model = Plain().eval()
    tokens = torch.randint(0, VOCABULARY, TOKENS)

    def loss() -> torch.Tensor:
        logits = model(tokens)[:, :-1]
        return functional.cross_entropy(logits.reshape(-1, VOCABULARY).float(),
                                        tokens[:, 1:].reshape(-1))

    return Subject(model, loss)


def plain_half() -> Subject:
    """The plain transformer in bfloat16."""
    subject = plain()
    subject.model.bfloat16()
    return subject


def gpt2() -> Subject:
    """GPT-2 of the transformers library."""
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=WIDTH, n_layer=LAYERS,
                        n_head=HEADS, attn_implementation="eager", bos_token_id=0, eos_token_id=0)
    return _language_model(GPT2LMHeadModel(config))


def llama() -> Subject:
    """Llama of the transformers library."""
    config = LlamaConfig(hidden_size=WIDTH, intermediate_size=160, num_hidden_layers=LAYERS,
                         num_attention_heads=HEADS, num_key_value_heads=2, vocab_size=VOCABULARY,
                         attn_implementation="eager")
    return _language_model(LlamaForCausalLM(config))


def llama_half() -> Subject:
    """Llama in bfloat16."""
    subject = llama()
    subject.model.bfloat16()
    return subject


def _language_model(model: nn.Module) -> Subject:
    model.eval()
    tokens = torch.randint(0, VOCABULARY, TOKENS)
    return Subject(model, lambda: model(input_ids=tokens, labels=tokens, use_cache=False).loss)


class Stage(nn.Module):
    """Two convolutions with batch norm around a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def joined(self, values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The shortcut."""
        return values + change

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """One residual stage."""
        inner = functional.relu(self.norm1(self.conv1(values)))
        return functional.relu(self.joined(values, self.norm2(self.conv2(inner))))


class Conv(nn.Module):
    """A small residual network for pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.stages = nn.ModuleList(Stage(16) for _ in range(LAYERS))
        self.classify = nn.Linear(16, 10)

    def pooled(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of each channel."""
        return functional.adaptive_avg_pool2d(values, 1).flatten(1)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Scores of ten classes."""
        values = self.stem(pictures)
        for stage in self.stages:
            values = stage(values)
        return self.classify(self.pooled(values))


def conv() -> Subject:
    """The network for pictures, in training mode: batch norm uses the batch."""
    model = Conv().train()
    pictures, classes = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
    return Subject(model, lambda: functional.cross_entropy(model(pictures), classes))


MODELS: dict[str, Callable[[], Subject]] = {
    "plain": plain, "plain_half": plain_half, "gpt2": gpt2, "llama": llama,
    "llama_half": llama_half, "conv": conv,
}
