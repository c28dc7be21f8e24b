"""Language models: encoders, decoders, a mixture of experts."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    DebertaV2Config,
    DebertaV2ForMaskedLM,
    FalconConfig,
    FalconForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

HEADS = 4
WIDE = 48
WIDTH = 32
WORDS = 80


def _labelled(model: nn.Module, vocabulary: int, length: int = 18) -> Subject:
    model.eval()
    tokens = torch.randint(3, vocabulary, (2, length))
    return Subject(model, lambda: model(input_ids=tokens, labels=tokens).loss)


def _text(model: nn.Module) -> Subject:
    tokens = torch.randint(0, WORDS, (2, 20))
    subject = Subject(model, lambda: model(input_ids=tokens, labels=tokens, use_cache=False).loss)
    model.tokens = tokens
    return subject


def bert() -> Subject:
    """A post-normalised encoder whose second sentence ends in padding."""
    model = BertForMaskedLM(BertConfig(
        vocab_size=WORDS, hidden_size=WIDE, num_hidden_layers=2, num_attention_heads=HEADS,
        intermediate_size=96, max_position_embeddings=32, attn_implementation="eager"))
    model.eval()
    tokens = torch.randint(1, WORDS, (2, 20))
    seen = torch.ones(2, 20, dtype=torch.long)
    seen[1, 14:] = 0
    labels = torch.where(torch.rand(2, 20) < 0.3, tokens, -100)
    labels[0, 0] = tokens[0, 0]
    inputs = {"input_ids": tokens, "attention_mask": seen, "labels": labels}
    model.inputs = inputs
    return Subject(model, lambda: model(**inputs).loss)


def t5() -> Subject:
    """An encoder and a decoder with relative positions and cross attention."""
    model = T5ForConditionalGeneration(T5Config(
        vocab_size=WORDS, d_model=WIDE, d_kv=12, d_ff=96, num_layers=2, num_heads=HEADS,
        dropout_rate=0.1, relative_attention_num_buckets=8, decoder_start_token_id=0,
        pad_token_id=0, attn_implementation="eager"))
    model.eval()
    inputs = {"input_ids": torch.randint(1, WORDS, (2, 16)),
              "attention_mask": torch.ones(2, 16, dtype=torch.long),
              "labels": torch.randint(1, WORDS, (2, 10)), "use_cache": False}
    inputs["attention_mask"][0, 11:] = 0
    model.inputs = inputs
    return Subject(model, lambda: model(**inputs).loss)


class Root(nn.Module):
    """Normalisation by the root of the mean square, written out."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(WIDE))
        self.eps = 1e-6

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """In separate steps."""
        square = values.pow(2).mean(-1, keepdim=True)
        return values * torch.rsqrt(square + self.eps) * self.weight


class Expert(nn.Module):
    """A gated feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDE, 64, bias=False) for _ in range(2))
        self.down = nn.Linear(64, WIDE, bias=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """down(silu(gate) * up)."""
        return self.down(functional.silu(self.gate(values)) * self.up(values))


class Experts(nn.Module):
    """The best two of four experts for every token."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDE, 4, bias=False)
        self.experts = nn.ModuleList(Expert() for _ in range(4))

    def routed(self, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Shares and numbers of the best two."""
        shares, chosen = torch.topk(functional.softmax(scores, dim=-1), 2, dim=-1)
        return shares / shares.sum(-1, keepdim=True), chosen

    def added(self, total: torch.Tensor, rows: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        """One expert's part added at its tokens."""
        return torch.index_add(total, 0, rows, part)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of the chosen experts, weighted."""
        flat = values.reshape(-1, WIDE)
        shares, chosen = self.routed(self.router(flat))
        total = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == number)
            part = expert(flat[rows]) * shares[rows, slot].unsqueeze(-1)
            total = self.added(total, rows, part)
        return total.view(values.shape)


class Grouped(nn.Module):
    """Attention with rotary positions and shared keys, by the fused call."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = (nn.Linear(WIDE, WIDE, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDE, WIDE // 2, bias=False) for _ in range(2))
        self.base, self.first = 10000.0, 0
        self.options = {"is_causal": True}

    def turned(self, values: torch.Tensor) -> torch.Tensor:
        """Rotary positions."""
        half = values.shape[-1] // 2
        steps = self.base ** (-torch.arange(half) / half)
        angles = torch.outer(torch.arange(values.shape[-2]) + self.first, steps)
        one, two = values[..., :half], values[..., half:]
        return torch.cat((one * angles.cos() - two * angles.sin(),
                          two * angles.cos() + one * angles.sin()), dim=-1)

    def heads(self, values: torch.Tensor, count: int) -> torch.Tensor:
        """[batch, tokens, width] to [batch, head, tokens, width of a head]."""
        return values.view(*values.shape[:2], count, -1).transpose(1, 2)

    def repeated(self, values: torch.Tensor) -> torch.Tensor:
        """Each shared head for its group of queries."""
        return values.repeat_interleave(2, dim=1)

    def attended(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """The fused call."""
        return functional.scaled_dot_product_attention(query, key, value, **self.options)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """All steps."""
        query = self.turned(self.heads(self.query(values), HEADS))
        key = self.turned(self.heads(self.key(values), HEADS // 2))
        value = self.heads(self.value(values), HEADS // 2)
        mixed = self.attended(query, self.repeated(key), self.repeated(value))
        return self.out(mixed.transpose(1, 2).reshape(values.shape))


class Mixture(nn.Module):
    """A decoder with experts."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDE)
        self.norms = nn.ModuleList(Root() for _ in range(4))
        self.attention = nn.ModuleList(Grouped() for _ in range(2))
        self.experts = nn.ModuleList(Experts() for _ in range(2))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits; the embedding is also the head."""
        values = self.embed(tokens)
        for number in range(2):
            values = values + self.attention[number](self.norms[2 * number](values))
            values = values + self.experts[number](self.norms[2 * number + 1](values))
        return functional.linear(values, self.embed.weight)


def experts() -> Subject:
    """The mixture of experts."""
    model = Mixture().eval()
    tokens = torch.randint(0, WORDS, (2, 18))
    return Subject(model, lambda: functional.cross_entropy(
        model(tokens)[:, :-1].reshape(-1, WORDS), tokens[:, 1:].reshape(-1)))


def gemma() -> Subject:
    """Scores bounded by tanh, windows, norms with one added to the weight."""
    model = Gemma2ForCausalLM(Gemma2Config(
        vocab_size=80, hidden_size=WIDTH, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, sliding_window=6,
        query_pre_attn_scalar=8, initializer_range=0.2,
        attn_implementation="eager", pad_token_id=0, use_cache=False))
    return _labelled(model, 80)


def falcon() -> Subject:
    """Scores with a bias by distance, blocks in parallel."""
    model = FalconForCausalLM(FalconConfig(
        vocab_size=80, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, alibi=True,
        new_decoder_architecture=False, parallel_attn=True, multi_query=True, bias=True,
        initializer_range=0.2, attn_implementation="eager", use_cache=False))
    return _labelled(model, 80)


def deberta() -> Subject:
    """Attention to content and place apart."""
    model = DebertaV2ForMaskedLM(DebertaV2Config(
        vocab_size=80, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, relative_attention=True, pos_att_type=["p2c", "c2p"],
        max_position_embeddings=32, position_biased_input=False, type_vocab_size=0,
        initializer_range=0.2))
    return _labelled(model, 80)


def qwen() -> Subject:
    """Query, key and value with biases."""
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=80, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
        attn_implementation="eager", use_cache=False))
    model.eval()
    tokens = torch.randint(0, 80, (2, 16))
    return Subject(model, lambda: model(input_ids=tokens, labels=tokens).loss)


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


def albert() -> Subject:
    """One layer of the library used three times, factored embeddings, two segments, padding."""
    model = AlbertForMaskedLM(AlbertConfig(
        vocab_size=70, embedding_size=16, hidden_size=48, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=96, max_position_embeddings=32,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1,
        attn_implementation="eager")).train()
    tokens = torch.randint(5, 70, (3, 14))
    labels = torch.where(torch.rand(3, 14) < 0.3, tokens, -100)
    labels[:, 3] = tokens[:, 3]
    places = torch.arange(14)
    model.inputs = {"input_ids": torch.where(labels == -100, tokens, 4),
                    "token_type_ids": (places >= 7).long().expand(3, -1),
                    "attention_mask": (places < torch.tensor([14, 11, 13])[:, None]).long()}
    model.wanted = labels
    return Subject(model, lambda: model(**model.inputs, labels=labels).loss)
