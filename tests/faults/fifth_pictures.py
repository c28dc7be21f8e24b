"""Models of pictures for the fifth hold-out."""

from __future__ import annotations

import math

import torch
from small_models import Subject
from torch import nn
from torch.nn import functional
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    SwinConfig,
    SwinForImageClassification,
)

WIDTH = 32


class Basic(nn.Module):
    """Two convolutions with batch norm and a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.around = None
        if before != after:
            self.around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False),
                                        nn.BatchNorm2d(after))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """One block."""
        inner = functional.relu(self.norm1(self.conv1(values)))
        beside = values if self.around is None else self.around(values)
        return functional.relu(self.norm2(self.conv2(inner)) + beside)


class Resnet(nn.Module):
    """Three blocks, for pictures that were normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Basic(16, 16, 1), Basic(16, 32, 2), Basic(32, 48, 2))
        self.classify = nn.Linear(48, 10)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.spread = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def prepared(self, pictures: torch.Tensor) -> torch.Tensor:
        """Mean nought, spread one."""
        return (pictures - self.mean) / self.spread

    def smaller(self, values: torch.Tensor) -> torch.Tensor:
        """Half the size."""
        return functional.max_pool2d(values, 3, 2, 1)

    def pooled(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of each channel."""
        return functional.adaptive_avg_pool2d(values, (1, 1)).flatten(1)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Scores."""
        values = self.smaller(functional.relu(self.norm(self.stem(self.prepared(pictures)))))
        return self.classify(self.pooled(self.blocks(values)))


def resnet() -> Subject:
    """Fine-tuned with frozen statistics."""
    model = Resnet().eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.3, 1.5)
                module.weight.uniform_(0.6, 1.4)
                module.bias.normal_(0, 0.2)
    model.pictures, classes = torch.rand(4, 3, 48, 48), torch.randint(0, 10, (4,))
    return Subject(model, lambda: functional.cross_entropy(model(model.pictures), classes))


def swin() -> Subject:
    """Windows that move."""
    model = SwinForImageClassification(SwinConfig(
        image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4,
        num_labels=9, drop_path_rate=0.0, initializer_range=0.15,
        attn_implementation="eager")).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "relative_position_bias" in name:
                p.normal_(0, 0.5)
    pictures, labels = torch.randn(2, 3, 32, 32), torch.randint(0, 9, (2,))
    return Subject(model, lambda: model(pixel_values=pictures, labels=labels).loss)


def convnext() -> Subject:
    """Convolutions of single channels, scaled layers."""
    model = ConvNextForImageClassification(ConvNextConfig(
        hidden_sizes=[16, 32], depths=[1, 2], num_stages=2, num_labels=8, image_size=32,
        initializer_range=0.1, layer_scale_init_value=0.5)).train()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "layer_scale" in name:
                p += 0.2 * torch.randn_like(p)
    model.pictures, labels = torch.randn(3, 3, 32, 32), torch.randint(0, 8, (3,))
    return Subject(model, lambda: model(pixel_values=model.pictures, labels=labels).loss)


class Modulated(nn.Module):
    """A layer whose norms are moved by the time."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, 1e-6, False) for _ in range(2))
        self.joint, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.control = nn.Linear(WIDTH, 6 * WIDTH)

    def controls(self, time: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Shift, scale and gate of both parts."""
        return self.control(functional.silu(time))[:, None].chunk(6, dim=-1)

    def moved(self, values: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor
              ) -> torch.Tensor:
        """The modulation."""
        return values * (1 + scale) + shift

    def attended(self, values: torch.Tensor) -> torch.Tensor:
        """Every patch looks at all."""
        batch, count, _ = values.shape
        query, key, value = self.joint(values).view(batch, count, 3, 4, -1).permute(2, 0, 3, 1, 4)
        shares = torch.softmax(torch.matmul(query * 8 ** -0.5, key.transpose(-2, -1)), dim=-1)
        return self.out(torch.matmul(shares, value).transpose(1, 2).reshape(batch, count, -1))

    def fed(self, values: torch.Tensor) -> torch.Tensor:
        """The feed-forward part."""
        return self.down(functional.gelu(self.up(values), approximate="tanh"))

    def forward(self, values: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Both parts."""
        shift1, scale1, gate1, shift2, scale2, gate2 = self.controls(time)
        values = values + gate1 * self.attended(self.moved(self.norm1(values), shift1, scale1))
        return values + gate2 * self.fed(self.moved(self.norm2(values), shift2, scale2))


class Dit(nn.Module):
    """A transformer that takes noise out of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, WIDTH, 2, 2)
        self.place = nn.Parameter(0.5 * torch.randn(36, WIDTH))
        self.time = nn.Sequential(nn.Linear(16, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.layers = nn.ModuleList(Modulated() for _ in range(2))
        self.norm, self.leave = nn.LayerNorm(WIDTH, 1e-6, False), nn.Linear(WIDTH, 16)

    def clock(self, times: torch.Tensor) -> torch.Tensor:
        """Waves of the time."""
        angles = times[:, None] * torch.exp(torch.arange(8) * (-math.log(10000) / 8))
        return torch.cat((torch.cos(angles), torch.sin(angles)), dim=-1)

    def patched(self, pictures: torch.Tensor) -> torch.Tensor:
        """A row for each patch."""
        return self.enter(pictures).flatten(2).transpose(1, 2)

    def whole(self, rows: torch.Tensor) -> torch.Tensor:
        """The picture of all patches."""
        parts = rows.view(-1, 6, 6, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", parts).reshape(-1, 4, 12, 12)

    def forward(self, pictures: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """The noise."""
        values, time = self.patched(pictures) + self.place, self.time(self.clock(times))
        for layer in self.layers:
            values = layer(values, time)
        return self.whole(self.leave(self.norm(values)))


def dit() -> Subject:
    """Three latent pictures."""
    model = Dit().train()
    pictures, noise = torch.randn(3, 4, 12, 12), torch.randn(3, 4, 12, 12)
    times = torch.rand(3) * 1000
    return Subject(model, lambda: functional.mse_loss(model(pictures + noise, times), noise))


class Segment(nn.Module):
    """A class for each pixel; batch norm learns."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32)
        self.conv3, self.norm3 = nn.Conv2d(32, 32, 3, 1, 2, dilation=2), nn.BatchNorm2d(32)
        self.up, self.classify = nn.ConvTranspose2d(32, 16, 2, 2), nn.Conv2d(16, 5, 1)
        self.aside, self.ignored = nn.Conv2d(32, 5, 1), 255

    def larger(self, values: torch.Tensor) -> torch.Tensor:
        """Twice the size."""
        return functional.interpolate(values, scale_factor=2, mode="bilinear",
                                      align_corners=False)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores, and those from halfway."""
        first = functional.relu(self.norm1(self.conv1(pictures)))
        inner = functional.relu(self.norm2(self.conv2(first)))
        inner = functional.relu(self.norm3(self.conv3(inner)))
        return self.classify(self.up(inner) + first), self.larger(self.aside(inner))

    def entropy(self, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """Per pixel that counts."""
        return functional.cross_entropy(scores, classes, ignore_index=self.ignored)

    def overlap(self, scores: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        """One less the Dice coefficient."""
        chances = torch.softmax(scores, dim=1)
        counted = (classes != self.ignored)[:, None]
        marks = functional.one_hot(classes.clamp(max=4), 5).permute(0, 3, 1, 2) * counted
        chances = chances * counted
        common = (chances * marks).sum((0, 2, 3))
        both = chances.sum((0, 2, 3)) + marks.sum((0, 2, 3))
        return 1 - ((2 * common + 1) / (both + 1)).mean()


def segment() -> Subject:
    """Two pictures, some pixels without a class."""
    model = Segment().train()
    model.pictures, classes = torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2, 16, 16))
    classes[:, :2] = 255

    def loss() -> torch.Tensor:
        scores, aside = model(model.pictures)
        return model.entropy(scores, classes) + model.overlap(scores, classes) \
            + 0.4 * model.entropy(aside, classes)

    return Subject(model, loss)


class Detect(nn.Module):
    """Boxes and classes at every place of a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 24, 4, 4), nn.Conv2d(24, 24, 3, 1, 1)
        self.norm = nn.GroupNorm(4, 24)
        self.boxes, self.classes = nn.Conv2d(24, 4, 1), nn.Conv2d(24, 3, 1)
        self.alpha, self.gamma = 0.25, 2.0

    def centres(self) -> torch.Tensor:
        """The middle of every cell."""
        line = (torch.arange(8) + 0.5) * 4
        rows, columns = torch.meshgrid(line, line, indexing="ij")
        return torch.stack((columns, rows), dim=-1).reshape(-1, 2)

    def corners(self, moves: torch.Tensor) -> torch.Tensor:
        """Moves and logarithms of sizes to corners."""
        middle = self.centres() + moves[..., :2] * 4
        size = torch.exp(moves[..., 2:].clamp(max=4)) * 8
        return torch.cat((middle - size / 2, middle + size / 2), dim=-1)

    def areas(self, boxes: torch.Tensor) -> torch.Tensor:
        """Of each box."""
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])

    def apart(self, boxes: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """One less the generalised overlap."""
        low = torch.maximum(boxes[..., :2], truth[..., :2])
        high = torch.minimum(boxes[..., 2:], truth[..., 2:])
        common = (high - low).clamp(min=0).prod(-1)
        union = self.areas(boxes) + self.areas(truth) - common
        hull = torch.maximum(boxes[..., 2:], truth[..., 2:]) - torch.minimum(
            boxes[..., :2], truth[..., :2])
        around = hull.prod(-1)
        return 1 - common / union + (around - union) / around

    def focal(self, scores: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Easy places count less."""
        chances = torch.sigmoid(scores)
        entropy = functional.binary_cross_entropy_with_logits(scores, truth, reduction="none")
        right = chances * truth + (1 - chances) * (1 - truth)
        weight = self.alpha * truth + (1 - self.alpha) * (1 - truth)
        return (weight * (1 - right) ** self.gamma * entropy).sum()

    def forward(self, pictures: torch.Tensor, boxes: torch.Tensor, classes: torch.Tensor
                ) -> torch.Tensor:
        """The loss; places without a class have no box."""
        values = functional.silu(self.norm(self.conv2(functional.silu(self.conv1(pictures)))))
        moves = self.boxes(values).flatten(2).transpose(1, 2)
        scores = self.classes(values).flatten(2).transpose(1, 2)
        found = classes.sum(-1) > 0
        away = torch.masked_select(self.apart(self.corners(moves), boxes), found).sum()
        return (self.focal(scores, classes) + 2 * away) / found.sum()


def detect() -> Subject:
    """Two pictures with a dozen boxes."""
    model = Detect().train()
    pictures, middle = torch.randn(2, 3, 32, 32), torch.rand(2, 64, 2) * 32
    size = torch.rand(2, 64, 2) * 10 + 4
    boxes = torch.cat((middle - size / 2, middle + size / 2), dim=-1)
    classes = functional.one_hot(torch.randint(0, 3, (2, 64)), 3).float()
    classes = classes * (torch.rand(2, 64, 1) < 0.1)
    return Subject(model, lambda: model(pictures, boxes, classes))
