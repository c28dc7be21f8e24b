"""Models for the second hold-out: patches, a graph, two towers, sound, adapters."""

from __future__ import annotations

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import ViTConfig, ViTForImageClassification

WIDTH = 32


def vit() -> Subject:
    """A vision transformer of the library."""
    model = ViTForImageClassification(ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        image_size=16, patch_size=4, num_labels=7, attn_implementation="eager"))
    model.eval()
    with torch.no_grad():
        model.vit.embeddings.position_embeddings.normal_()
        model.vit.embeddings.cls_token.normal_()
    pictures, labels = torch.randn(3, 3, 16, 16), torch.randint(0, 7, (3,))
    return Subject(model, lambda: model(pixel_values=pictures, labels=labels).loss)


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


class Towers(nn.Module):
    """Two encoders whose results meet on a sphere."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(20, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 24))
        self.right = nn.Sequential(nn.Linear(14, WIDTH), nn.Mish(), nn.Linear(WIDTH, 24))
        self.scale = nn.Parameter(torch.tensor(2.6593))

    def sphere(self, values: torch.Tensor) -> torch.Tensor:
        """Of length one."""
        return functional.normalize(values, dim=-1)

    def factor(self) -> torch.Tensor:
        """The inverse temperature."""
        return torch.exp(self.scale)

    def labels(self, count: int) -> torch.Tensor:
        """Each belongs to its like."""
        return torch.arange(count)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """The loss, both ways."""
        a, b = self.sphere(self.left(left)), self.sphere(self.right(right))
        scores = self.factor() * torch.matmul(a, b.t())
        labels = self.labels(len(scores))
        return (functional.cross_entropy(scores, labels)
                + functional.cross_entropy(scores.t(), labels)) / 2


def towers() -> Subject:
    """Twelve pairs."""
    model = Towers().train()
    left, right = torch.randn(12, 20), torch.randn(12, 14)
    return Subject(model, lambda: model(left, right))


class Sound(nn.Module):
    """Gated dilated convolutions, halved and made longer again."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, 16, 7, padding=3)
        self.gated = nn.ModuleList(nn.Conv1d(16, 32, 3, padding=2 ** i, dilation=2 ** i)
                                   for i in range(3))
        self.norm = nn.InstanceNorm1d(16, affine=True)
        self.longer = nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1)
        self.leave = nn.Conv1d(8, 1, 5, padding=2)

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        """tanh of one half, sigmoid of the other."""
        value, gate = both.chunk(2, dim=1)
        return torch.tanh(value) * torch.sigmoid(gate)

    def halved(self, values: torch.Tensor) -> torch.Tensor:
        """The larger of two neighbours."""
        return functional.max_pool1d(values, 2)

    def joined(self, values: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """The residual connection."""
        return values + change

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        """Sound of the same length."""
        values = self.enter(sound)
        for layer in self.gated:
            values = self.joined(values, self.gate(layer(values)))
        return self.leave(functional.relu(self.longer(self.halved(self.norm(values)))))


def sound() -> Subject:
    """Four pieces of sound and a loss that spares small errors."""
    model = Sound().train()
    pieces, wanted = torch.randn(4, 1, 64), torch.randn(4, 1, 64)
    return Subject(model, lambda: functional.smooth_l1_loss(model(pieces), wanted, beta=0.3))


class Adapted(nn.Module):
    """A layer of 8-bit integers with a scale per row, and a narrow adapter beside it."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        weight = torch.randn(after, before) / before ** 0.5
        rows = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("integers", (weight / rows).round().to(torch.int8))
        self.register_buffer("rows", rows)
        self.narrow = nn.Parameter(torch.randn(4, before) / before ** 0.5)
        self.wide = nn.Parameter(torch.randn(after, 4) / 2)
        self.factor = 2.0

    def weight(self, dtype: torch.dtype) -> torch.Tensor:
        """The base weight, widened."""
        return torch.mul(self.integers.to(dtype), self.rows.to(dtype))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Base and adapter."""
        base = functional.linear(values, self.weight(values.dtype))
        inner = functional.linear(values, self.narrow)
        return base + functional.linear(inner, self.wide) * self.factor


class Adapters(nn.Module):
    """Three such layers around root mean square norms."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList((Adapted(16, 40), Adapted(40, 40), Adapted(40, 11)))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Scores."""
        for layer in self.layers[:-1]:
            values = functional.rms_norm(functional.relu(layer(values)), (40,))
        return self.layers[-1](values)


def adapters() -> Subject:
    """In bfloat16."""
    model = Adapters().bfloat16().train()
    values, classes = torch.randn(30, 16).bfloat16(), torch.randint(0, 11, (30,))
    return Subject(model, lambda: functional.cross_entropy(model(values).float(), classes))
