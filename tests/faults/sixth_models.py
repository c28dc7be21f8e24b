"""Models for the sixth hold-out: latents, a transducer, masked pictures, retention."""

from __future__ import annotations

import math

import torch
from sixth_text import WIDTH, TextModel
from small_models import Subject
from torch import nn
from torch.nn import functional

HEADS = 4


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


class Transduce(nn.Module):
    """Sound to labels by a lattice of blanks and labels."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(10, WIDTH, 3, stride=2, padding=1)
        self.norm, self.wide = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.deep = nn.Conv1d(WIDTH, WIDTH, 5, padding=2, groups=WIDTH)
        self.norm_deep, self.narrow = nn.GroupNorm(4, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.embed = nn.Embedding(12, WIDTH)
        self.last, self.before = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.of_sound = nn.Linear(WIDTH, 40)
        self.of_labels = nn.Linear(WIDTH, 40, bias=False)
        self.out = nn.Linear(40, 12)
        self.blank = 0

    def heard(self, sound: torch.Tensor) -> torch.Tensor:
        """Convolutions along time."""
        values = functional.relu(self.enter(sound)).transpose(1, 2)
        inner = functional.glu(self.wide(self.norm(values)), dim=-1).transpose(1, 2)
        inner = functional.silu(self.norm_deep(self.deep(inner))).transpose(1, 2)
        return values + self.narrow(inner)

    def history(self, labels: torch.Tensor) -> torch.Tensor:
        """The labels before each place."""
        return functional.pad(labels, (1, 0), value=self.blank)

    def said(self, labels: torch.Tensor) -> torch.Tensor:
        """From the last label and the one before it."""
        values = self.embed(self.history(labels))
        return torch.tanh(self.last(values) + self.before(functional.pad(
            values, (0, 0, 1, 0))[:, :-1]))

    def together(self, sound: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Every frame with every history."""
        return torch.tanh(self.of_sound(sound)[:, :, None] + self.of_labels(labels)[:, None])

    def logs(self, scores: torch.Tensor) -> torch.Tensor:
        """Logarithms of chances."""
        return functional.log_softmax(scores, dim=-1)

    def either(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Two ways to the same place."""
        return torch.logaddexp(one, other)

    def sideways(self, label: torch.Tensor, frame: int, place: int) -> torch.Tensor:
        """The label before a place, said in a frame."""
        return label[:, frame, place - 1]

    def ended(self, ways: torch.Tensor, blank: torch.Tensor) -> torch.Tensor:
        """Every way ends with a blank."""
        return ways + blank[:, -1, -1]

    def total(self, blank: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """The logarithm of the chance of all ways through the lattice."""
        frames, places = blank.shape[1:]
        before: list[torch.Tensor] = []
        for frame in range(frames):
            row: list[torch.Tensor] = []
            for place in range(places):
                ways = []
                if frame:
                    ways.append(before[place] + blank[:, frame - 1, place])
                if place:
                    ways.append(row[-1] + self.sideways(label, frame, place))
                row.append(self.either(*ways) if len(ways) == 2 else
                           ways[0] if ways else torch.zeros_like(blank[:, 0, 0]))
            before = row
        return self.ended(before[-1], blank)

    def forward(self, sound: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss."""
        logs = self.logs(self.out(self.together(self.heard(sound), self.said(labels))))
        label = torch.gather(logs[:, :, :-1], 3, labels[:, None, :, None].expand(
            -1, logs.shape[1], -1, -1)).squeeze(-1)
        return -self.total(logs[..., self.blank], label).mean()


def transduce() -> Subject:
    """Four sounds of six frames, three labels each."""
    model = Transduce().train()
    sound, labels = torch.randn(4, 10, 12), torch.randint(1, 12, (4, 3))
    return Subject(model, lambda: model(sound, labels))


class Seen(nn.Module):
    """A layer without a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def attended(self, values: torch.Tensor) -> torch.Tensor:
        """By the fused kernel."""
        query, key, value = self.joint(values).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Attention, then feed-forward."""
        values = values + self.attended(self.norm1(values))
        return values + self.down(functional.gelu(self.up(self.norm2(values))))


class Masked(nn.Module):
    """Pictures of which six patches of sixteen are seen; the others are foretold."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(48, WIDTH), nn.Linear(WIDTH, 48)
        self.place = nn.Parameter(0.3 * torch.randn(1, 16, WIDTH))
        self.place_after = nn.Parameter(0.3 * torch.randn(1, 16, WIDTH))
        self.mark = nn.Parameter(0.3 * torch.randn(1, 1, WIDTH))
        self.layers, self.after = nn.ModuleList((Seen(), Seen())), Seen()
        self.norm, self.norm_after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.pictures, self.keys = torch.randn(4, 3, 16, 16), torch.rand(4, 16)
        self.keep = 6

    def patches(self, pictures: torch.Tensor) -> torch.Tensor:
        """[batch, patch, row and column and channel]."""
        return pictures.unflatten(3, (4, 4)).unflatten(2, (4, 4)).permute(
            0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)

    def embedded(self, pictures: torch.Tensor) -> torch.Tensor:
        """A linear map of each patch."""
        return self.enter(self.patches(pictures))

    def chosen(self, values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """Patches at other places."""
        return torch.gather(values, 1, index[..., None].expand(-1, -1, values.shape[-1]))

    def placed(self, values: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Those that are seen, each with its place."""
        return self.chosen(values + self.place, seen)

    def restored(self, values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        """Seen patches and marks at their own places."""
        marks = self.mark.expand(len(values), 16 - self.keep, -1)
        return self.chosen(torch.cat((values, marks), dim=1), torch.argsort(order, dim=1))

    def truth(self, patches: torch.Tensor) -> torch.Tensor:
        """Each patch on its own scale."""
        mean, spread = patches.mean(-1, keepdim=True), patches.var(-1, keepdim=True)
        return (patches - mean) / torch.sqrt(spread + 1e-6)

    def hidden(self, order: torch.Tensor) -> torch.Tensor:
        """One where a patch was not seen."""
        return (torch.argsort(order, dim=1) >= self.keep).to(self.place.dtype)

    def lost(self, error: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """The mean over the patches that were not seen."""
        return (error * hidden).sum() / hidden.sum()

    def forward(self) -> torch.Tensor:
        """The loss."""
        order = torch.argsort(self.keys, dim=1)
        values = self.placed(self.embedded(self.pictures), order[:, :self.keep])
        for layer in self.layers:
            values = layer(values)
        values = self.after(self.restored(self.norm(values), order) + self.place_after)
        result = self.leave(self.norm_after(values))
        error = torch.square(result - self.truth(self.patches(self.pictures))).mean(-1)
        return self.lost(error, self.hidden(order))


def masked() -> Subject:
    """Four pictures."""
    model = Masked().train()
    return Subject(model, model)


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
