"""Recurrent layers, scans, chains, a cache, latents that look at series."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

HEADS = 4
WIDE = 48
WIDTH = 32
WORDS = 80


class Recurrent(nn.Module):
    """A written-out LSTM cell, then a selective scan as in state space models."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDE)
        self.inner, self.outer = nn.Linear(WIDE, 4 * WIDE), nn.Linear(WIDE, 4 * WIDE)
        self.local = nn.Conv1d(WIDE, WIDE, 4, groups=WIDE, padding=3)
        self.step = nn.Linear(WIDE, WIDE)
        self.read, self.write = nn.Linear(WIDE, 8), nn.Linear(WIDE, 8)
        self.decay = nn.Parameter(torch.arange(1, 9).float().log().repeat(WIDE, 1))
        self.skip = nn.Parameter(torch.randn(WIDE))
        self.head = nn.Linear(WIDE, WORDS)
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
        state = torch.zeros(values.shape[0], WIDE, 8)
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
        h = c = torch.zeros(tokens.shape[0], WIDE)
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


class Chain(nn.Module):
    """Tags of a sentence whose neighbours agree: sums over all paths, in logarithms."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.leave = nn.Embedding(50, WIDTH), nn.Linear(WIDTH, 6)
        self.pairs = nn.Parameter(torch.randn(6, 6))

    def summed(self, scores: torch.Tensor) -> torch.Tensor:
        """Over the tag before."""
        return torch.logsumexp(scores, dim=1)

    def all_paths(self, scores: torch.Tensor) -> torch.Tensor:
        """The logarithm of the sum over all paths."""
        total = scores[:, 0]
        for step in range(1, scores.shape[1]):
            total = self.summed(total[:, :, None] + self.pairs[None] + scores[:, step][:, None])
        return self.summed(total[:, :, None])[:, 0]

    def own_path(self, scores: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """The score of the true tags."""
        own = torch.gather(scores, 2, tags[:, :, None])[..., 0].sum(1)
        return own + self.pairs[tags[:, :-1], tags[:, 1:]].sum(1)

    def forward(self, words: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """The loss."""
        scores = self.leave(functional.gelu(self.words(words)))
        return (self.all_paths(scores) - self.own_path(scores, tags)).mean()


def chain() -> Subject:
    """Five sentences of nine words."""
    model = Chain().train()
    words, tags = torch.randint(0, 50, (5, 9)), torch.randint(0, 6, (5, 9))
    return Subject(model, lambda: model(words, tags))


class Listener(nn.Module):
    """Gated recurrent units that read, and others that write with additive attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 24)
        self.read = nn.ModuleList((nn.Linear(24, 3 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)))
        self.write = nn.ModuleList((nn.Linear(24 + WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3 * WIDTH)))
        self.look, self.ask, self.score = (nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH),
                                           nn.Linear(WIDTH, 1))
        self.leave = nn.Linear(WIDTH, 40)

    def unit(self, layers: nn.ModuleList, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """One step of a gated recurrent unit."""
        a, b = layers[0](x).chunk(3, -1), layers[1](h).chunk(3, -1)
        reset, update = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        return self.mixed(update, h, torch.tanh(a[2] + reset * b[2]))

    def mixed(self, update: torch.Tensor, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Between the old state and the new one."""
        return (1 - update) * new + update * old

    def glance(self, state: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """The weighted mean of what was read."""
        scores = self.score(torch.tanh(self.look(seen) + self.ask(state)[:, None]))
        return (torch.softmax(scores, dim=1) * seen).sum(1)

    def forward(self, heard: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
        """Scores of the next words."""
        state, seen = torch.zeros(len(heard), WIDTH), []
        for word in self.words(heard).unbind(1):
            state = self.unit(self.read, word, state)
            seen.append(state)
        memory, scores = torch.stack(seen, 1), []
        for word in self.words(said).unbind(1):
            state = self.unit(self.write, torch.cat((word, self.glance(state, memory)), -1), state)
            scores.append(self.leave(state))
        return torch.stack(scores, 1)


def listener() -> Subject:
    """Four pairs of six and five words."""
    model = Listener().train()
    heard, said = torch.randint(0, 40, (4, 6)), torch.randint(0, 40, (4, 5))
    return Subject(model, lambda: functional.cross_entropy(
        model(heard, said)[:, :-1].flatten(0, 1), said[:, 1:].flatten()))


class Long(nn.Module):
    """Sums over tens of thousands of values."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(3, 1))
        self.read = nn.Linear(65536, 6)
        self.chart = nn.Conv1d(3, 4, 9, stride=4)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """The root of the mean square."""
        return values.pow(2).mean(-1, keepdim=True).sqrt()

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """The sum over all places."""
        return values.sum(-1)

    def likely(self, values: torch.Tensor) -> torch.Tensor:
        """The logarithm of the sum of exponentials."""
        return torch.logsumexp(values, dim=-1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """One number."""
        values = values / self.spread(values) * self.gain
        chart = torch.tanh(self.chart(values[None]))[0]
        scores = self.read(torch.sin(values))
        return (self.likely(values).mean() + self.total(torch.tanh(values)).mean() / 256
                + functional.log_softmax(scores, -1)[:, 2].mean() + chart.mean()
                + torch.var(chart, dim=-1).sum())


def long() -> Subject:
    """Three rows of 65536."""
    model = Long().train()
    values = torch.randn(3, 65536) + 0.1
    return Subject(model, lambda: model(values))


class Scan(nn.Module):
    """Linear attention whose state is a running sum with a fading weight."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.joint = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.leave = nn.Linear(WIDTH, 50)

    def positive(self, values: torch.Tensor) -> torch.Tensor:
        """A feature map above zero."""
        return functional.elu(values) + 1

    def mixed(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Running sums of products, divided by running sums of keys."""
        state = torch.cumsum(key[..., :, None] * value[..., None, :], dim=1)
        total = torch.cumsum(key, dim=1)
        above = torch.einsum("btk,btkv->btv", query, state)
        return above / (query * total).sum(-1, keepdim=True)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores of the next word."""
        values = self.words(words)
        for joint, out, norm in zip(self.joint, self.out, self.norms, strict=True):
            query, key, value = joint(norm(values)).chunk(3, dim=-1)
            values = values + out(self.mixed(self.positive(query), self.positive(key), value))
        return self.leave(values)


def scan() -> Subject:
    """Three sentences of twenty words."""
    model = Scan().train()
    words = torch.randint(0, 50, (3, 20))
    return Subject(model, lambda: functional.cross_entropy(model(words)[:, :-1].flatten(0, 1),
                                                           words[:, 1:].flatten()))


class Forecast(nn.Module):
    """Series to quantiles of their future, each series on its own scale."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, WIDE)
        self.place = nn.Parameter(0.3 * torch.randn(11, WIDE))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(
            WIDE, HEADS, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(2))
        self.leave = nn.Linear(11 * WIDE, 6 * 3)
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


class Looking(nn.Module):
    """One set looks at another; every product is an einsum."""

    def __init__(self, other: int) -> None:
        super().__init__()
        self.norm_own, self.norm_other = nn.LayerNorm(WIDTH), nn.LayerNorm(other)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.both = nn.Linear(other, 2 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5

    def mixed(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
              hidden: torch.Tensor | None) -> torch.Tensor:
        """Values by their shares, each [batch, places, head, width of a head]."""
        scores = torch.einsum("nqhd,nkhd->nhqk", query, key) * self.scale
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
        return torch.einsum("nhqk,nkhd->nqhd", torch.softmax(scores, dim=-1), value)

    def forward(self, own: torch.Tensor, other: torch.Tensor,
                hidden: torch.Tensor | None = None) -> torch.Tensor:
        """What is added to the first set."""
        query = self.query(self.norm_own(own)).unflatten(-1, (HEADS, -1))
        key, value = self.both(self.norm_other(other)).unflatten(-1, (2, HEADS, -1)).unbind(2)
        return self.out(self.mixed(query, key, value, hidden).flatten(2))


class Feeding(nn.Module):
    """A gated feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def gated(self, both: torch.Tensor) -> torch.Tensor:
        """The second half opens and closes the first."""
        values, gate = both.chunk(2, dim=-1)
        return values * functional.gelu(gate)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """What is added."""
        return self.down(self.gated(self.up(self.norm(values))))


class Perceive(nn.Module):
    """Few latents look at a long input, then at themselves twice through the same layers."""

    def __init__(self) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(6, WIDTH))
        self.enter, self.enter_feed = Looking(21), Feeding()
        self.inner, self.inner_feed = Looking(WIDTH), Feeding()
        self.norm, self.classify = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 9)
        self.smoothing = 0.1

    def angles(self, places: torch.Tensor) -> torch.Tensor:
        """Half turns of four frequencies."""
        return places[:, None] * torch.linspace(1, 10, 4) * math.pi

    def features(self, places: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of places, and the places."""
        angles = self.angles(places)
        return torch.cat((torch.sin(angles), torch.cos(angles), places[:, None]), dim=-1)

    def beyond(self, count: int, lengths: torch.Tensor) -> torch.Tensor:
        """Places behind the end of each series."""
        return torch.arange(count) >= lengths[:, None]

    def entropy(self, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """With smoothed labels."""
        return functional.cross_entropy(scores, classes, label_smoothing=self.smoothing)

    def forward(self, values: torch.Tensor, lengths: torch.Tensor, classes: torch.Tensor
                ) -> torch.Tensor:
        """The loss."""
        count, length = values.shape[:2]
        places = self.features(torch.linspace(-1, 1, length)).expand(count, -1, -1)
        other = torch.cat((values, places), dim=-1)
        own = self.latents.expand(count, -1, -1)
        own = own + self.enter(own, other, self.beyond(length, lengths))
        own = own + self.enter_feed(own)
        for _ in range(2):
            own = own + self.inner(own, own)
            own = own + self.inner_feed(own)
        return self.entropy(self.classify(self.norm(own.mean(1))), classes)


def perceive() -> Subject:
    """Five series of different lengths."""
    model = Perceive().train()
    values, classes = torch.randn(5, 30, 12), torch.randint(0, 9, (5,))
    lengths = torch.tensor([30, 22, 27, 15, 29])
    return Subject(model, lambda: model(values, lengths, classes))


class Retention(nn.Module):
    """Attention without softmax: shares decay with distance, at its own rate in each head."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.gate, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(5))
        self.norm = nn.GroupNorm(HEADS, WIDTH)
        self.rates = 1 - 2.0 ** (-2 - torch.arange(HEADS).to(self.norm.weight.dtype))
        self.scale = (WIDTH // HEADS) ** -0.5

    def heads(self, values: torch.Tensor) -> torch.Tensor:
        """[batch, head, places, width of a head]."""
        return values.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def turned(self, values: torch.Tensor) -> torch.Tensor:
        """Pairs of neighbours turned by their place."""
        speeds = 10.0 ** -torch.linspace(0, 2, values.shape[-1] // 2)
        angles = torch.arange(values.shape[-2])[:, None] * speeds
        sine, cosine = torch.sin(angles), torch.cos(angles)
        even, odd = values[..., ::2], values[..., 1::2]
        return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine),
                           dim=-1).flatten(-2)

    def decays(self, count: int) -> torch.Tensor:
        """[head, place, place before]."""
        places = torch.arange(count)
        distance = places[:, None] - places
        return torch.where(distance >= 0, torch.pow(self.rates[:, None, None], distance), 0.0)

    def retained(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
                 ) -> torch.Tensor:
        """All places at once."""
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        return torch.matmul(scores * self.decays(scores.shape[-1]), value)

    def normal(self, values: torch.Tensor) -> torch.Tensor:
        """Each head of each place for itself; [rows, width]."""
        return self.norm(values)

    def opened(self, gate: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Through the gate."""
        return functional.silu(gate) * values

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """What is added."""
        query, key = (self.turned(self.heads(p(values))) for p in (self.query, self.key))
        mixed = self.retained(query, key, self.heads(self.value(values)))
        mixed = self.normal(mixed.transpose(1, 2).flatten(2).flatten(0, 1))
        return self.out(self.opened(self.gate(values), mixed.unflatten(0, values.shape[:2])))


def retain() -> Subject:
    """Three texts of twelve words."""
    model = TextModel(50, Retention, lambda: nn.LayerNorm(WIDTH), has_bias=True).train()
    tokens = torch.randint(0, 50, (3, 12))
    return Subject(model, lambda: model(tokens))


class Selective(nn.Module):
    """A state whose memory depends on what is read."""

    def __init__(self, states: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.near = nn.Conv1d(WIDTH, WIDTH, 4, padding=3, groups=WIDTH)
        self.read = nn.Linear(WIDTH, 2 + 2 * states, bias=False)
        self.time, self.out = nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.rates = nn.Parameter(torch.log(torch.arange(1, states + 1) * torch.ones(WIDTH, 1)))
        self.past = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.states = states

    def neighbours(self, values: torch.Tensor) -> torch.Tensor:
        """The convolution sees this place and three before it; [batch, channel, place]."""
        return self.near(values)[..., :values.shape[-1]]

    def steps(self, values: torch.Tensor) -> torch.Tensor:
        """How long each place lasts."""
        return functional.softplus(self.time(values))

    def fading(self) -> torch.Tensor:
        """The rate at which states fade."""
        return -torch.exp(self.rates)

    def scanned(self, logs: torch.Tensor, added: torch.Tensor, shown: torch.Tensor
                ) -> torch.Tensor:
        """Place by place; logs and added are [batch, place, channel, state]."""
        state, results = torch.zeros_like(added[:, 0]), []
        keep = torch.exp(logs)
        for place in range(added.shape[1]):
            state = keep[:, place] * state + added[:, place]
            results.append((state * shown[:, place, None]).sum(-1))
        return torch.stack(results, dim=1)

    def through(self, result: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """What was read goes past the states, too."""
        return result + values * self.past

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """What is added."""
        inner, gate = self.enter(values).chunk(2, dim=-1)
        inner = functional.silu(self.neighbours(inner.transpose(1, 2))).transpose(1, 2)
        time, taken, shown = self.read(inner).split([2, self.states, self.states], dim=-1)
        steps = self.steps(time)
        logs = steps[..., None] * self.fading()
        added = (steps * inner)[..., None] * taken[:, :, None]
        result = self.through(self.scanned(logs, added, shown), inner)
        return self.out(result * functional.silu(gate))


class Root(nn.Module):
    """A norm without mean."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.rand(WIDTH) + 0.5), 1e-5

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Of the last axis."""
        return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def select() -> Subject:
    """Three texts of ten words."""
    model = TextModel(40, Selective, Root, has_bias=False).train()
    tokens = torch.randint(0, 40, (3, 10))
    return Subject(model, lambda: model(tokens))
