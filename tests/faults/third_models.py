"""Models for the third hold-out: densities, fields, chains, scans, a policy, a conversation."""

from __future__ import annotations

import math

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

WIDTH = 32


class Vae(nn.Module):
    """An encoder of mean and spread, a draw, a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.mean, self.spread = nn.Linear(40, 48), nn.Linear(48, 8), nn.Linear(48, 8)
        self.inner, self.leave = nn.Linear(8, 48), nn.Linear(48, 40)
        self.weight = 0.5

    def drawn(self, mean: torch.Tensor, spread: torch.Tensor, draw: torch.Tensor) -> torch.Tensor:
        """A sample from the mean and the logarithm of the variance."""
        return mean + torch.exp(0.5 * spread) * draw

    def distance(self, mean: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        """From the standard normal distribution."""
        return -0.5 * torch.mean(1 + spread - mean.pow(2) - torch.exp(spread))

    def forward(self, values: torch.Tensor, draw: torch.Tensor) -> torch.Tensor:
        """The loss."""
        hidden = torch.tanh(self.enter(values))
        mean, spread = self.mean(hidden), self.spread(hidden)
        hidden = functional.softplus(self.inner(self.drawn(mean, spread, draw)))
        error = functional.binary_cross_entropy_with_logits(self.leave(hidden),
                                                            torch.sigmoid(values))
        return error + self.weight * self.distance(mean, spread)


def vae() -> Subject:
    """Sixteen values of forty places."""
    model = Vae().train()
    values, draw = torch.randn(16, 40), torch.randn(16, 8)
    return Subject(model, lambda: model(values, draw))


class Coupling(nn.Module):
    """One half scales and moves the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, WIDTH), nn.Linear(WIDTH, 12)

    def bounded(self, values: torch.Tensor) -> torch.Tensor:
        """A logarithm of a scale that cannot grow without end."""
        return 2.0 * torch.tanh(values / 2.0)

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The new values and the logarithm of the determinant."""
        kept, moved = values.chunk(2, dim=-1)
        scale, shift = self.second(functional.relu(self.first(kept))).chunk(2, dim=-1)
        scale = self.bounded(scale)
        return torch.cat((moved * torch.exp(scale) + shift, kept), dim=-1), scale.sum(-1)


class Flow(nn.Module):
    """Couplings, and the likelihood of what comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Coupling() for _ in range(4))

    def likelihood(self, values: torch.Tensor) -> torch.Tensor:
        """Of a standard normal distribution."""
        return -0.5 * (values.pow(2) + math.log(2 * math.pi)).sum(-1)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of the negative logarithm."""
        total = torch.zeros(len(values), dtype=values.dtype)
        for step in self.steps:
            values, part = step(values)
            total = total + part
        return -(self.likelihood(values) + total).mean()


def flow() -> Subject:
    """Twenty points in twelve dimensions."""
    model = Flow().train()
    points = torch.randn(20, 12)
    return Subject(model, lambda: model(points))


class Physics(nn.Module):
    """A field whose second derivatives are part of the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((nn.Linear(2, WIDTH), nn.Linear(WIDTH, WIDTH),
                                     nn.Linear(WIDTH, 1)))
        self.viscosity = 0.05

    def field(self, places: torch.Tensor) -> torch.Tensor:
        """The value at each place."""
        for layer in self.layers[:-1]:
            places = torch.tanh(layer(places))
        return self.layers[-1](places)

    def residual(self, value: torch.Tensor, slope: torch.Tensor, curve: torch.Tensor
                 ) -> torch.Tensor:
        """What Burgers' equation leaves over."""
        return slope[:, 1:] + value * slope[:, :1] - self.viscosity * curve[:, :1]

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        """The mean square of the residual."""
        places = places.clone().requires_grad_()
        value = self.field(places)
        slope, = torch.autograd.grad(value.sum(), places, create_graph=True)
        curve, = torch.autograd.grad(slope[:, 0].sum(), places, create_graph=True)
        return self.residual(value, slope, curve).square().mean()


def physics() -> Subject:
    """Thirty places."""
    model = Physics().train()
    places = torch.rand(30, 2) * 2 - 1
    return Subject(model, lambda: model(places))


class Process(nn.Module):
    """The likelihood of a Gaussian process."""

    def __init__(self) -> None:
        super().__init__()
        self.length, self.height = nn.Parameter(torch.tensor(0.3)), nn.Parameter(torch.tensor(0.1))
        self.noise = 0.05
        self.features = nn.Linear(3, 5)

    def squares(self, points: torch.Tensor) -> torch.Tensor:
        """Squared distances of all pairs."""
        return (points[:, None] - points[None]).square().sum(-1)

    def solved(self, root: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The inverse matrix times the values."""
        return torch.cholesky_solve(values[:, None], root)[:, 0]

    def forward(self, points: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The negative logarithm of the likelihood."""
        features = torch.tanh(self.features(points))
        kernel = torch.exp(self.height) * torch.exp(
            -0.5 * self.squares(features) / torch.exp(self.length))
        matrix = kernel + self.noise * torch.eye(len(points), dtype=kernel.dtype)
        root = torch.linalg.cholesky(matrix)
        fit = torch.dot(values, self.solved(root, values))
        return 0.5 * fit + torch.log(torch.diagonal(root)).sum()


def process() -> Subject:
    """Forty points."""
    model = Process().train()
    points = torch.rand(40, 3)
    values = torch.sin(6 * points.sum(-1)) + 0.1 * torch.randn(40)
    return Subject(model, lambda: model(points, values))


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


class Field(nn.Module):
    """Colours along rays: waves of the place, densities, what is left of the light."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.inner = nn.Linear(3 * 2 * 6, 48), nn.Linear(48, 48)
        self.density, self.colour = nn.Linear(48, 1), nn.Linear(48, 3)

    def waves(self, places: torch.Tensor) -> torch.Tensor:
        """Sines and cosines of growing frequency."""
        angles = places[..., None] * (2.0 ** torch.arange(6) * math.pi).to(places.dtype)
        return torch.cat((torch.sin(angles), torch.cos(angles)), dim=-1).flatten(-2)

    def left(self, opaque: torch.Tensor) -> torch.Tensor:
        """The light that reaches each place."""
        clear = torch.cumprod(1 - opaque + 1e-6, dim=-1)
        return torch.cat((torch.ones_like(clear[:, :1]), clear[:, :-1]), dim=-1)

    def forward(self, places: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """A colour for each ray."""
        hidden = functional.relu(self.enter(self.waves(places)))
        hidden = functional.relu(self.inner(hidden))
        density = functional.softplus(self.density(hidden)[..., 0] * 4)
        opaque = 1 - torch.exp(-density * steps)
        weights = opaque * self.left(opaque)
        return (weights[..., None] * torch.sigmoid(self.colour(hidden))).sum(-2)


def field() -> Subject:
    """Twelve rays of sixteen places."""
    model = Field().train()
    places, steps = torch.rand(12, 16, 3) * 2 - 1, torch.full((12, 16), 0.15)
    wanted = torch.rand(12, 3)
    return Subject(model, lambda: functional.mse_loss(model(places, steps), wanted))


class Policy(nn.Module):
    """A clipped step of a policy with its value, over discounted rewards."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.act, self.worth = nn.Linear(10, WIDTH), nn.Linear(WIDTH, 5), nn.Linear(
            WIDTH, 1)
        self.fade, self.clip = 0.9, 0.2

    def returns(self, rewards: torch.Tensor) -> torch.Tensor:
        """Discounted sums from the end."""
        total, found = torch.zeros(len(rewards)), []
        for step in reversed(range(rewards.shape[1])):
            total = rewards[:, step] + self.fade * total
            found.insert(0, total)
        return torch.stack(found, 1)

    def standard(self, values: torch.Tensor) -> torch.Tensor:
        """Mean zero, spread one."""
        return (values - values.mean()) / (values.std() + 1e-8)

    def surrogate(self, ratio: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        """The smaller of both bounds."""
        return -torch.min(ratio * gain, ratio.clamp(1 - self.clip, 1 + self.clip) * gain).mean()

    def forward(self, states: torch.Tensor, acts: torch.Tensor, rewards: torch.Tensor
                ) -> torch.Tensor:
        """The loss."""
        hidden = torch.tanh(self.body(states))
        chances = functional.log_softmax(self.act(hidden), dim=-1)
        worth, returns = self.worth(hidden)[..., 0], self.returns(rewards)
        own = torch.gather(chances, 2, acts[..., None])[..., 0]
        gain = self.standard(returns - worth.detach())
        # The first step after a draw: the ratio is one, its derivative is not zero.
        ratio = torch.exp(own - own.detach())
        spread = -(chances.exp() * chances).sum(-1).mean()
        return (self.surrogate(ratio, gain) + 0.5 * functional.huber_loss(worth, returns, delta=0.7)
                - 0.01 * spread)


def policy() -> Subject:
    """Six games of eight steps."""
    model = Policy().train()
    states, acts, rewards = (torch.randn(6, 8, 10), torch.randint(0, 5, (6, 8)),
                             torch.randn(6, 8))
    return Subject(model, lambda: model(states, acts, rewards))


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
