"""Models for the fifth hold-out: the library's language models, preferences, a teacher, series."""

from __future__ import annotations

import copy

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

WORDS, WIDTH, HEADS = 80, 48, 4


def qwen3() -> Subject:
    """Grouped heads, norms of queries and keys, tied embeddings."""
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=WORDS, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=64,
        tie_word_embeddings=True, initializer_range=0.1, attn_implementation="eager")).train()
    return _text(model)


def neox() -> Subject:
    """Attention and feed-forward beside one another, a quarter of each head turned."""
    model = GPTNeoXForCausalLM(GPTNeoXConfig(
        vocab_size=WORDS, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=64, initializer_range=0.1,
        attn_implementation="sdpa")).train()
    return _text(model)


def mistral() -> Subject:
    """A sliding window, everything in bfloat16."""
    model = MistralForCausalLM(MistralConfig(
        vocab_size=WORDS, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        sliding_window=8, initializer_range=0.1, attn_implementation="eager")).train()
    return _text(model.to(torch.bfloat16))


def _text(model: nn.Module) -> Subject:
    tokens = torch.randint(0, WORDS, (2, 20))
    subject = Subject(model, lambda: model(input_ids=tokens, labels=tokens, use_cache=False).loss)
    model.tokens = tokens
    return subject


def whisper() -> Subject:
    """Sound to text: convolutions, an encoder, a decoder that looks at it."""
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=WORDS, num_mel_bins=12, encoder_layers=2, decoder_layers=2, d_model=WIDTH,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=96,
        decoder_ffn_dim=96, max_source_positions=16, max_target_positions=24, init_std=0.1,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        attn_implementation="eager")).eval()
    sound, tokens = torch.randn(2, 12, 32), torch.randint(3, WORDS, (2, 10))
    return Subject(model, lambda: model(input_features=sound, labels=tokens, use_cache=False).loss)


class Layer(nn.Module):
    """One layer with causal attention by the fused kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def parts(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Query, key and value."""
        return self.joint(values).chunk(3, dim=-1)

    def heads(self, values: torch.Tensor) -> torch.Tensor:
        """[batch, head, tokens, width of a head]."""
        return values.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
                 ) -> torch.Tensor:
        """Each token looks at those before it."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def active(self, values: torch.Tensor) -> torch.Tensor:
        """Of the feed-forward part."""
        return functional.gelu(values)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attention, then feed-forward."""
        mixed = self.attended(*(self.heads(part) for part in self.parts(self.norm1(values))))
        values = values + self.out(mixed.transpose(1, 2).flatten(2))
        return values + self.down(self.active(self.up(self.norm2(values))))


class Decoder(nn.Module):
    """A small language model."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(32, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        values = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            values = layer(values)
        return self.head(self.norm(values))


class Preference(nn.Module):
    """Direct preference optimisation against a frozen reference."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = Decoder(2)
        self.reference = copy.deepcopy(self.policy).requires_grad_(False)
        with torch.no_grad():
            for p in self.policy.parameters():
                p += 0.02 * torch.randn_like(p)
        self.beta = 0.3

    def logs(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The logarithm of the chance of each target."""
        return torch.gather(functional.log_softmax(logits, dim=-1), 2,
                            targets[..., None]).squeeze(-1)

    def shifted(self, tokens: torch.Tensor, answer: torch.Tensor
                ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each place must foretell, and whether it counts."""
        return tokens[:, 1:], answer[:, 1:]

    def total(self, logs: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """Of the words of the answer."""
        return (logs * answer).sum(-1)

    def chances(self, model: nn.Module, tokens: torch.Tensor, answer: torch.Tensor
                ) -> torch.Tensor:
        """Of whole answers."""
        targets, counted = self.shifted(tokens, answer)
        return self.total(self.logs(model(tokens)[:, :-1], targets), counted)

    def better(self, policy: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
        """How much more the first half gained than the second."""
        good, bad = torch.sub(policy, reference).chunk(2)
        return torch.sub(good, bad)

    def forward(self, tokens: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        """The loss; the first half of the batch is preferred."""
        with torch.no_grad():
            reference = self.chances(self.reference, tokens, answer)
        policy = self.chances(self.policy, tokens, answer)
        return -functional.logsigmoid(self.beta * self.better(policy, reference)).mean()


def dpo() -> Subject:
    """Three pairs of answers."""
    model = Preference().train()
    tokens = torch.randint(0, WORDS, (6, 18))
    tokens[3:, :6] = tokens[:3, :6]
    lengths = torch.tensor([18, 14, 16, 13, 18, 15])
    places = torch.arange(18)
    answer = ((places >= 6) & (places < lengths[:, None])).float()
    return Subject(model, lambda: model(tokens, answer))


class Distill(nn.Module):
    """A small student of a larger teacher."""

    def __init__(self) -> None:
        super().__init__()
        self.student = Decoder(1)
        self.teacher = Decoder(2).requires_grad_(False)
        self.temperature, self.share, self.reduction = 3.0, 0.3, "batchmean"

    def softened(self, logits: torch.Tensor) -> torch.Tensor:
        """Over the temperature, one row for each word."""
        return (logits / self.temperature).flatten(0, 1)

    def soft(self, student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        """How far the student is from the teacher."""
        return functional.kl_div(functional.log_softmax(self.softened(student), dim=-1),
                                 functional.softmax(self.softened(teacher), dim=-1),
                                 reduction=self.reduction)

    def hard(self, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """How far the student is from the text."""
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def both(self, soft: torch.Tensor, hard: torch.Tensor) -> torch.Tensor:
        """The weighted sum."""
        return soft * (self.temperature ** 2) * (1 - self.share) + hard * self.share

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """The loss."""
        with torch.no_grad():
            teacher = self.teacher(tokens)
        student = self.student(tokens)
        return self.both(self.soft(student, teacher), self.hard(student, tokens))


def distill() -> Subject:
    """Three texts of sixteen words."""
    model = Distill().train()
    tokens = torch.randint(0, WORDS, (3, 16))
    return Subject(model, lambda: model(tokens))


class Forecast(nn.Module):
    """Series to quantiles of their future, each series on its own scale."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, WIDTH)
        self.place = nn.Parameter(0.3 * torch.randn(11, WIDTH))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            WIDTH, HEADS, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(2))
        self.leave = nn.Linear(11 * WIDTH, 6 * 3)
        self.levels = torch.tensor([0.1, 0.5, 0.9])

    def scales(self, series: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and spread of each series."""
        mean = torch.mean(series, dim=1, keepdim=True)
        return mean, torch.sqrt(torch.var(series, dim=1, keepdim=True, unbiased=False) + 1e-5)

    def patches(self, series: torch.Tensor) -> torch.Tensor:
        """Windows of eight values, every fourth."""
        return series.unfold(1, 8, 4)

    def back(self, values: torch.Tensor, mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        """On the scale of the series."""
        return values * spread[..., None] + mean[..., None]

    def lost(self, result: torch.Tensor, future: torch.Tensor) -> torch.Tensor:
        """The loss of quantiles."""
        error = future[..., None] - result
        return torch.maximum(self.levels * error, (self.levels - 1) * error).mean()

    def forward(self, series: torch.Tensor, future: torch.Tensor) -> torch.Tensor:
        """The loss."""
        mean, spread = self.scales(series)
        values = self.enter(self.patches((series - mean) / spread)) + self.place
        for layer in self.layers:
            values = layer(values)
        result = self.leave(values.flatten(1)).unflatten(1, (6, 3))
        return self.lost(self.back(result, mean, spread), future)


def forecast() -> Subject:
    """Ten walks of forty-eight steps."""
    model = Forecast().train()
    walk = torch.randn(10, 54).cumsum(1) * torch.rand(10, 1).exp() + 20
    return Subject(model, lambda: model(walk[:, :48], walk[:, 48:]))
