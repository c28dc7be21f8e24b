"""Models and trainings for the sixth hold-out: a selective scan, shared layers, two trainings."""

from __future__ import annotations

import copy

import torch
from sixth_text import WIDTH, TextModel
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import AlbertConfig, AlbertForMaskedLM


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


class Quant(nn.Module):
    """Training for whole numbers of eight bits: rounded forward, straight through backward."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 12, 3, padding=1), nn.Conv2d(12, 12, 3, padding=1)
        self.classify = nn.Linear(12, 6)
        self.low, self.high, self.axes = -127, 127, (1, 2, 3)
        self.ranges = [torch.tensor(1.5), torch.tensor(1.5)]
        self.keep, self.rate, self.momentum = 0.9, 0.05, 0.9
        self.kept: list[torch.Tensor] = []

    def whole(self, values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """Multiples of a step."""
        return torch.clamp(torch.round(values / scale), self.low, self.high) * scale

    def straight(self, values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """The same, but its gradient is that of the values."""
        return values + (self.whole(values, scale) - values).detach()

    def weight(self, weight: torch.Tensor) -> torch.Tensor:
        """One step for each output channel."""
        scale = torch.amax(torch.abs(weight.detach()), self.axes, keepdim=True) / self.high
        return self.straight(weight, scale)

    def inner(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """One step for all, which follows the largest value."""
        largest = torch.max(torch.abs(values.detach()))
        self.ranges[number] = self.ranges[number] * self.keep + largest * (1 - self.keep)
        return self.straight(values, self.ranges[number] / self.high)

    def error(self, pictures: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """The loss."""
        values = functional.conv2d(self.inner(pictures, 0), self.weight(self.conv1.weight),
                                   self.conv1.bias, padding=1)
        values = self.inner(functional.relu(values), 1)
        values = functional.conv2d(values, self.weight(self.conv2.weight), self.conv2.bias,
                                   padding=1)
        scores = self.classify(functional.relu(values).mean((2, 3)))
        return functional.cross_entropy(scores, classes)

    def learn(self, pictures: torch.Tensor, classes: torch.Tensor) -> None:
        """One step with momentum."""
        self.zero_grad()
        self.error(pictures, classes).backward()
        with torch.no_grad():
            gradients = [p.grad for p in self.parameters()]
            self.kept = [old * self.momentum + g for old, g in zip(
                self.kept or [torch.zeros_like(g) for g in gradients], gradients, strict=True)]
            for p, change in zip(self.parameters(), self.kept, strict=True):
                p.sub_(change * self.rate)


def quant() -> Subject:
    """Two steps, then the loss."""
    model = Quant().train()
    pictures, classes = torch.randn(3, 6, 3, 8, 8), torch.randint(0, 6, (3, 6))

    def loss() -> torch.Tensor:
        for step in range(2):
            model.learn(pictures[step], classes[step])
        model.zero_grad()
        return model.error(pictures[2], classes[2])

    return Subject(model, loss)


class Lamb(nn.Module):
    """Tied embeddings, an additional loss on the sums, LAMB and an average of the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(40, WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)
        self.first, self.second, self.eps, self.decay, self.rate = 0.9, 0.98, 1e-6, 0.1, 0.02
        self.keep, self.share = 0.8, 1e-2
        self.moments: list[tuple[torch.Tensor, torch.Tensor]] = []
        self.average: list[torch.Tensor] = []

    def head(self, values: torch.Tensor) -> torch.Tensor:
        """By the embeddings themselves."""
        return functional.linear(values, self.embed.weight)

    def entropy(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The loss, and a share of the squared logarithm of the sums."""
        sums = torch.logsumexp(scores, dim=-1)
        return functional.cross_entropy(scores, targets) + self.share * torch.square(sums).mean()

    def error(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of the next word, from the last two."""
        values = self.embed(tokens)
        values = self.mix(torch.cat((values[:, 1:-1], values[:, :-2]), dim=-1)).flatten(0, 1)
        values = values + self.down(functional.gelu(self.up(self.norm(values))))
        return self.entropy(self.head(values), tokens[:, 2:].flatten())

    def gathered(self, tokens: torch.Tensor) -> None:
        """Gradients of a batch."""
        self.error(tokens).backward()

    def moved(self, number: int, gradient: torch.Tensor, step: int) -> torch.Tensor:
        """The direction of Adam; `step` counts from one."""
        old, old_square = self.moments[number]
        mean = old * self.first + gradient * (1 - self.first)
        square = old_square * self.second + torch.square(gradient) * (1 - self.second)
        self.moments[number] = (mean, square)
        mean, square = mean / (1 - self.first ** step), square / (1 - self.second ** step)
        return mean / (torch.sqrt(square) + self.eps)

    def ratio(self, p: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The norm of the parameter over that of its change; one for a parameter of zeros."""
        own = torch.linalg.vector_norm(p)
        return torch.where(own > 0, own / torch.linalg.vector_norm(change), 1.0)

    def change(self, p: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
        """With decay, as long as the parameter."""
        whole = moved + p * self.decay
        return whole * self.ratio(p, whole)

    def averaged(self, old: torch.Tensor, new: torch.Tensor) -> None:
        """Follows slowly."""
        old.mul_(self.keep).add_(new, alpha=1 - self.keep)

    def learn(self, tokens: torch.Tensor, step: int) -> None:
        """One step."""
        self.zero_grad()
        self.gathered(tokens)
        with torch.no_grad():
            for number, p in enumerate(self.parameters()):
                p.sub_(self.change(p, self.moved(number, p.grad, step)) * self.rate)
                self.averaged(self.average[number], p)


def lamb() -> Subject:
    """Two steps, then the loss with the averaged weights."""
    model = Lamb().train()
    tokens = torch.randint(0, 40, (3, 6, 10))
    with torch.no_grad():
        model.embed.weight.mul_(0.3)

    def loss() -> torch.Tensor:
        model.moments = [(torch.zeros_like(p.data), torch.zeros_like(p.data))
                         for p in model.parameters()]
        model.average = [copy.deepcopy(p.data) for p in model.parameters()]
        for step in range(2):
            model.learn(tokens[step], step + 1)
        model.zero_grad()
        with torch.no_grad():
            for p, average in zip(model.parameters(), model.average, strict=True):
                p.copy_(average)
        return model.error(tokens[2])

    return Subject(model, loss)
