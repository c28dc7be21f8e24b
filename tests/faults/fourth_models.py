"""Models for the fourth hold-out: bodies, a filter, capsules, transport, an inner step, texts."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import CLIPConfig, CLIPModel, Qwen2Config, Qwen2ForCausalLM


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


class Capsules(nn.Module):
    """Capsules that vote in rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(20, 6 * 8)
        self.votes = nn.Parameter(torch.randn(6, 4, 8, 8) / 8 ** 0.5)

    def squashed(self, values: torch.Tensor) -> torch.Tensor:
        """Shorter than one."""
        square = values.square().sum(-1, keepdim=True)
        return square / (1 + square) * values / torch.sqrt(square + 1e-8)

    def shares(self, logits: torch.Tensor) -> torch.Tensor:
        """How each capsule divides its vote."""
        return functional.softmax(logits, dim=2)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The length of each class."""
        inner = self.squashed(self.enter(values).view(-1, 6, 8))
        votes = torch.einsum("bid,icde->bice", inner, self.votes)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(3):
            found = self.squashed((self.shares(logits)[..., None] * votes).sum(1))
            logits = logits + (votes * found[:, None]).sum(-1)
        return found.norm(dim=-1)


def capsules() -> Subject:
    """Seven values of four classes, with a margin."""
    model = Capsules().train()
    values, classes = torch.randn(7, 20), torch.randint(0, 4, (7,))

    def loss() -> torch.Tensor:
        lengths, own = model(values), functional.one_hot(classes, 4).float()
        return (own * functional.relu(0.9 - lengths).square()
                + 0.5 * (1 - own) * functional.relu(lengths - 0.1).square()).sum(1).mean()
    return Subject(model, loss)


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


class Inner(nn.Module):
    """A network judged after an inner step of learning, and ranked by angles."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 20), nn.Linear(20, 6)
        self.rate, self.warmth = 0.3, 0.2

    def angles(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Cosines of all pairs."""
        return functional.normalize(a, dim=-1) @ functional.normalize(b, dim=-1).t()

    def forward(self, near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        """The loss with improved weights."""
        weight = self.second.weight
        scores = self.angles(functional.linear(functional.silu(self.first(near)), weight), far)
        error = functional.kl_div(functional.log_softmax(scores / self.warmth, -1),
                                  torch.full(scores.shape, 1 / scores.shape[1]),
                                  reduction="batchmean")
        slope, = torch.autograd.grad(error, weight, create_graph=True)
        scores = self.angles(functional.linear(functional.silu(self.first(near)),
                                               weight - self.rate * slope, self.second.bias), far)
        return functional.cross_entropy(scores / self.warmth, torch.arange(len(near)))


def inner() -> Subject:
    """Ten pairs."""
    model = Inner().train()
    near, far = torch.randn(10, 8), torch.randn(10, 6)
    return Subject(model, lambda: model(near, far))


def qwen() -> Subject:
    """Query, key and value with biases."""
    model = Qwen2ForCausalLM(Qwen2Config(
        vocab_size=80, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
        attn_implementation="eager", use_cache=False))
    model.eval()
    tokens = torch.randint(0, 80, (2, 16))
    return Subject(model, lambda: model(input_ids=tokens, labels=tokens).loss)


def clip() -> Subject:
    """Text and pictures."""
    config = CLIPConfig(
        text_config={"vocab_size": 60, "hidden_size": 32, "intermediate_size": 64,
                     "num_hidden_layers": 2, "num_attention_heads": 4,
                     "max_position_embeddings": 16, "eos_token_id": 2},
        vision_config={"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
                       "num_attention_heads": 4, "image_size": 16, "patch_size": 4},
        projection_dim=16, initializer_factor=5.0, attn_implementation="eager")
    model = CLIPModel(config)
    model.eval()
    words, seen = torch.randint(3, 60, (4, 10)), torch.randn(4, 3, 16, 16)
    return Subject(model, lambda: model(input_ids=words, pixel_values=seen, return_loss=True).loss)
