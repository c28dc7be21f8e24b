"""Graphs, densities, fields and bodies."""

from __future__ import annotations

import math

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional

WIDTH = 32


class Messages(nn.Module):
    """Attention over the edges of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, WIDTH, bias=False)
        self.from_, self.to_ = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)
        self.power = -0.5

    def shares(self, scores: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
        """Softmax over the edges that end in one node."""
        weights = torch.exp(scores - scores.max())
        total = torch.zeros(count).index_add(0, targets, weights)
        return weights / torch.index_select(total, 0, targets)

    def forward(self, nodes: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor
                ) -> torch.Tensor:
        """What each node gets from its neighbours."""
        values = self.project(nodes)
        scores = functional.leaky_relu(
            torch.index_select(self.from_(values), 0, sources)
            + torch.index_select(self.to_(values), 0, targets), 0.2).squeeze(-1)
        messages = torch.index_select(values, 0, sources)
        messages = messages * self.shares(scores, targets, len(nodes)).unsqueeze(-1)
        degree = torch.zeros(len(nodes)).index_add(0, targets, torch.ones(len(targets)))
        result = torch.zeros_like(values).index_add(0, targets, messages)
        return result * torch.pow(degree + 1, self.power).unsqueeze(-1)


class Graph(nn.Module):
    """Two rounds of messages."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(9, WIDTH), nn.Linear(WIDTH, 4)
        self.rounds = nn.ModuleList(Messages() for _ in range(2))

    def forward(self, nodes: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor
                ) -> torch.Tensor:
        """A class for each node."""
        values = torch.tanh(self.enter(nodes))
        for messages in self.rounds:
            values = values + functional.elu(messages(values, sources, targets))
        return functional.log_softmax(self.leave(values), dim=-1)


def graph() -> Subject:
    """Twenty nodes, ninety edges."""
    model = Graph().train()
    nodes, sources, targets = torch.randn(20, 9), *torch.randint(0, 20, (2, 90))
    classes = torch.randint(0, 4, (20,))
    return Subject(model, lambda: functional.nll_loss(model(nodes, sources, targets), classes))


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


class Waves(nn.Module):
    """Layers that multiply frequencies by complex weights, beside a convolution of one."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(2, 16, 1), nn.Conv1d(16, 1, 1)
        self.weights = nn.ParameterList(nn.Parameter(torch.randn(16, 16, 8, 2) / 16)
                                        for _ in range(2))
        self.beside = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(2))

    def multiplied(self, waves: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The low frequencies through their weights, the others dropped."""
        return torch.einsum("bcf,cdf->bdf", waves[..., :8], torch.view_as_complex(weight))

    def layer(self, values: torch.Tensor, number: int) -> torch.Tensor:
        """There, multiplied, back."""
        waves = torch.fft.rfft(values)
        return torch.fft.irfft(self.multiplied(waves, self.weights[number]), n=values.shape[-1])

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """A field of the same length."""
        values = self.enter(values)
        for number in range(2):
            values = functional.gelu(self.layer(values, number) + self.beside[number](values))
        return self.leave(values)


def waves() -> Subject:
    """Five fields of forty-eight places; the loss is relative."""
    model = Waves().train()
    values, wanted = torch.randn(5, 2, 48), torch.randn(5, 1, 48)

    def loss() -> torch.Tensor:
        found = model(values)
        return (torch.norm((found - wanted).flatten(1), dim=1)
                / torch.norm(wanted.flatten(1), dim=1)).mean()
    return Subject(model, loss)


class Bodies(nn.Module):
    """Bodies that attract each other, moved in small steps."""

    def __init__(self) -> None:
        super().__init__()
        self.masses = nn.Parameter(torch.rand(9) + 0.5)
        self.step, self.soft = 0.05, 0.1

    def pull(self, places: torch.Tensor) -> torch.Tensor:
        """The acceleration of each body."""
        gaps = places[None] - places[:, None]
        near = torch.rsqrt(gaps.square().sum(-1) + self.soft)
        return (gaps * (self.masses * near ** 3)[..., None]).sum(1)

    def energy(self, places: torch.Tensor, speeds: torch.Tensor) -> torch.Tensor:
        """Of motion and of place."""
        gaps = places[None] - places[:, None]
        near = torch.rsqrt(gaps.square().sum(-1) + self.soft)
        moving = 0.5 * (self.masses * speeds.square().sum(-1)).sum()
        return moving - 0.5 * (self.masses[:, None] * self.masses * near).sum()

    def forward(self, places: torch.Tensor, speeds: torch.Tensor) -> torch.Tensor:
        """The change of energy and the distance gone."""
        first, before = places, self.energy(places, speeds)
        for _ in range(4):
            speeds = speeds + self.step * self.pull(places)
            places = places + self.step * speeds
        return (self.energy(places, speeds) - before).abs() + (places - first).square().mean()


def bodies() -> Subject:
    """Nine bodies."""
    model = Bodies().train()
    places, speeds = torch.randn(9, 3), torch.randn(9, 3) * 0.1
    return Subject(model, lambda: model(places, speeds))


class Filter(nn.Module):
    """A Kalman filter with learned matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.move = nn.Parameter(torch.eye(4) + 0.1 * torch.randn(4, 4))
        self.see = nn.Parameter(torch.randn(2, 4))
        self.noise, self.blur = 0.1, 0.3

    def gain(self, spread: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """How much a measurement counts."""
        return spread @ self.see.t() @ torch.linalg.inv(seen)

    def corrected(self, spread: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        """The spread after a measurement."""
        return spread - gain @ self.see @ spread

    def forward(self, measured: torch.Tensor) -> torch.Tensor:
        """The likelihood of all measurements."""
        state, spread, total = torch.zeros(4), torch.eye(4), torch.zeros(())
        for value in measured.unbind(0):
            state = self.move @ state
            spread = self.move @ spread @ self.move.t() + self.noise * torch.eye(4)
            seen = self.see @ spread @ self.see.t() + self.blur * torch.eye(2)
            off = value - self.see @ state
            total = total + off @ torch.linalg.solve(seen, off) + torch.logdet(seen)
            gain = self.gain(spread, seen)
            state, spread = state + gain @ off, self.corrected(spread, gain)
        return total


def filtered() -> Subject:
    """Six measurements of two numbers."""
    model = Filter().train()
    measured = torch.randn(6, 2)
    return Subject(model, lambda: model(measured))


class Transport(nn.Module):
    """The cheapest way from one cloud to another, smoothed."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 3))
        self.smooth, self.rounds = 0.2, 5

    def costs(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Squared distances."""
        return (left[:, None] - right[None]).square().sum(-1)

    def balanced(self, costs: torch.Tensor, other: torch.Tensor, dim: int) -> torch.Tensor:
        """The potential of one side from that of the other."""
        return -self.smooth * torch.logsumexp((other - costs) / self.smooth, dim=dim)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """The cost."""
        costs = self.costs(self.map(left), right)
        f, g = torch.zeros(len(left), 1), torch.zeros(1, len(right))
        for _ in range(self.rounds):
            f = self.balanced(costs, g, 1)[:, None]
            g = self.balanced(costs, f, 0)[None]
        plan = torch.exp((f + g - costs) / self.smooth)
        return (plan * costs).sum() / plan.sum()


def transport() -> Subject:
    """Eleven and thirteen points."""
    model = Transport().train()
    left, right = torch.randn(11, 3), torch.randn(13, 3)
    return Subject(model, lambda: model(left, right))
