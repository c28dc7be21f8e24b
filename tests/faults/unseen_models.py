"""Models for the cases that were written without knowledge of the engine: other architectures."""

from __future__ import annotations

import math

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

WORDS = 80
WIDTH = 48
HEADS = 4


def bert() -> Subject:
    """A post-normalised encoder whose second sentence ends in padding."""
    model = BertForMaskedLM(BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
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
        vocab_size=WORDS, d_model=WIDTH, d_kv=12, d_ff=96, num_layers=2, num_heads=HEADS,
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
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(WIDTH))
        self.eps = 1e-6

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """In separate steps."""
        square = values.pow(2).mean(-1, keepdim=True)
        return values * torch.rsqrt(square + self.eps) * self.weight


class Expert(nn.Module):
    """A gated feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, 64, bias=False) for _ in range(2))
        self.down = nn.Linear(64, WIDTH, bias=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """down(silu(gate) * up)."""
        return self.down(functional.silu(self.gate(values)) * self.up(values))


class Experts(nn.Module):
    """The best two of four experts for every token."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 4, bias=False)
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
        flat = values.reshape(-1, WIDTH)
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
        self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, WIDTH // 2, bias=False) for _ in range(2))
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
        self.embed = nn.Embedding(WORDS, WIDTH)
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


class Recurrent(nn.Module):
    """A written-out LSTM cell, then a selective scan as in state space models."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.inner, self.outer = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(WIDTH, 4 * WIDTH)
        self.local = nn.Conv1d(WIDTH, WIDTH, 4, groups=WIDTH, padding=3)
        self.step = nn.Linear(WIDTH, WIDTH)
        self.read, self.write = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
        self.decay = nn.Parameter(torch.arange(1, 9).float().log().repeat(WIDTH, 1))
        self.skip = nn.Parameter(torch.randn(WIDTH))
        self.head = nn.Linear(WIDTH, WORDS)
        self.steepness = 1.0

    def cell(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """New h and c."""
        gates = self.inner(x) + self.outer(h)
        take, forget, fresh, give = gates.chunk(4, dim=-1)
        c = torch.sigmoid(forget) * c + torch.sigmoid(take) * torch.tanh(fresh)
        return torch.sigmoid(give) * torch.tanh(c), c

    def local_mix(self, values: torch.Tensor) -> torch.Tensor:
        """A causal convolution over time."""
        return self.local(values.transpose(1, 2))[..., :values.shape[1]].transpose(1, 2)

    def rates(self) -> torch.Tensor:
        """How fast each state fades."""
        return -torch.exp(self.decay)

    def faded(self, state: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        """What stays of a state."""
        return state * keep

    def scan(self, values: torch.Tensor) -> torch.Tensor:
        """A linear recurrence whose rates depend on the input."""
        step = functional.softplus(self.step(values), beta=self.steepness)
        write, read = self.write(values), self.read(values)
        rate = self.rates()
        state = torch.zeros(values.shape[0], WIDTH, 8)
        results = []
        for t in range(values.shape[1]):
            keep = torch.exp(step[:, t, :, None] * rate)
            fresh = (step[:, t] * values[:, t])[..., None] * write[:, t, None]
            state = self.faded(state, keep) + fresh
            results.append((state * read[:, t, None]).sum(-1))
        return torch.stack(results, dim=1) + values * self.skip

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits."""
        values = self.embed(tokens)
        h = c = torch.zeros(tokens.shape[0], WIDTH)
        seen = []
        for t in range(tokens.shape[1]):
            h, c = self.cell(values[:, t], h, c)
            seen.append(h)
        values = functional.silu(self.local_mix(torch.stack(seen, dim=1)))
        return self.head(self.scan(values))


def recurrent() -> Subject:
    """The recurrent model."""
    model = Recurrent().eval()
    tokens = torch.randint(0, WORDS, (2, 6))
    return Subject(model, lambda: functional.cross_entropy(
        model(tokens).reshape(-1, WORDS), tokens.roll(-1, 1).reshape(-1)))


class Residual(nn.Module):
    """Two convolutions with group norm, and the time in between."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, before), nn.GroupNorm(4, after)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(32, after)
        self.skip = nn.Conv2d(before, after, 1)

    def forward(self, values: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """One block."""
        inner = self.conv1(functional.silu(self.norm1(values)))
        inner = inner + self.time(functional.silu(time))[:, :, None, None]
        inner = self.conv2(functional.silu(self.norm2(inner)))
        return self.skip(values) + inner


class Unet(nn.Module):
    """Down and up again, as in diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.down1, self.down2 = Residual(16, 16), Residual(16, 32)
        self.smaller = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.middle = Residual(32, 32)
        self.up = Residual(48, 16)
        self.result = nn.Conv2d(16, 3, 3, padding=1)

    def clock(self, times: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of the time."""
        angles = times[:, None] * torch.exp(-math.log(10000) * torch.arange(16) / 16)
        return torch.cat((angles.sin(), angles.cos()), dim=-1)

    def larger(self, values: torch.Tensor) -> torch.Tensor:
        """Twice the size."""
        return functional.interpolate(values, scale_factor=2, mode="bilinear", align_corners=False)

    def joined(self, values: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
        """What came up beside what was kept on the way down."""
        return torch.cat((values, side), dim=1)

    def forward(self, pictures: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """The noise in the picture."""
        time = self.clock(times)
        side = self.down1(self.stem(pictures), time)
        values = self.middle(self.down2(self.smaller(side), time), time)
        return self.result(functional.silu(self.up(self.joined(self.larger(values), side), time)))


def unet() -> Subject:
    """The U-Net, with the mean square of the error."""
    model = Unet().train()
    pictures, noise, times = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.rand(2)
    times = times * 900
    model.reduction = "mean"
    return Subject(model, lambda: functional.mse_loss(model(pictures + noise, times), noise,
                                                      reduction=model.reduction))


class Recommend(nn.Module):
    """Ids and numbers to the chance of a click."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(50, 16, mode="mean") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(),
                                    nn.Linear(32, 16))
        self.top = nn.Sequential(nn.Linear(22, 32), nn.LeakyReLU(0.01), nn.Dropout(0.0),
                                 nn.Linear(32, 1))

    def places(self) -> torch.Tensor:
        """Row and column of each pair."""
        return torch.tril_indices(4, 4, offset=-1)

    def pairs(self, parts: list[torch.Tensor]) -> torch.Tensor:
        """The products of every two parts."""
        stacked = torch.stack(parts, dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, columns = self.places()
        return products[:, rows, columns]

    def totals(self, scores: torch.Tensor, users: torch.Tensor) -> torch.Tensor:
        """The sum of the scores of each user; users come more than once."""
        return torch.zeros(7).scatter_add(0, users, scores)

    def forward(self, numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """One score each."""
        dense = self.bottom(numbers)
        parts = [dense, *(bag(ids[:, i]) for i, bag in enumerate(self.bags))]
        return self.top(torch.cat((dense, self.pairs(parts)), dim=1)).squeeze(-1)


def recommend() -> Subject:
    """The recommender in training, with a loss per click and one per user."""
    model = Recommend().train()
    numbers, ids = torch.randn(24, 6).exp(), torch.randint(0, 50, (24, 3, 5))
    clicks, users = (torch.rand(24) < 0.3).float(), torch.randint(0, 7, (24,))
    model.weight = torch.tensor(2.0)
    model.loss = lambda scores: functional.binary_cross_entropy_with_logits(
        scores, clicks, pos_weight=model.weight)

    def loss() -> torch.Tensor:
        scores = model(numbers, ids)
        return model.loss(scores) + 0.1 * model.totals(torch.sigmoid(scores), users).pow(2).mean()

    return Subject(model, loss)
