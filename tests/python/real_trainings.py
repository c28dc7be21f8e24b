"""Healthy trainings as people run them: BERT, a vision transformer, a diffusion UNet."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch import nn
from torch.nn import functional

# Model, optimizer, schedule of the learning rate, and the loss of the next batch.
Parts = tuple[nn.Module, Any, Any, Callable[[], torch.Tensor]]


def masked_language_model(steps: int) -> Parts:
    """BERT with dropout: warm-up, linear decay, no weight decay of biases and norms."""
    import transformers

    model = transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=32))
    model.train()
    bare = [one for name, one in model.named_parameters() if one.ndim < 2]
    decayed = [one for name, one in model.named_parameters() if one.ndim >= 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": bare, "weight_decay": 0.0}], lr=1e-3)
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, steps // 10, steps)

    def loss() -> torch.Tensor:
        # Words of a language: each follows from the one before, lengths differ.
        ids = torch.randint(0, 100, (8, 1)) + torch.arange(24) * 7
        ids = ids % 100 + 10
        mask = (torch.arange(24) < torch.randint(12, 25, (8, 1))).long()
        hidden = torch.rand(8, 24) < 0.2
        labels = torch.where(hidden & (mask > 0), ids, -100)
        labels[0, 0] = ids[0, 0]
        result = model(input_ids=torch.where(hidden, 5, ids), attention_mask=mask, labels=labels)
        return result.loss

    return model, optimizer, schedule, loss


def vision_transformer(steps: int) -> Parts:
    """ViT: warm-up of a tenth, then a cosine to nothing; labels are smoothed."""
    import transformers

    model = transformers.ViTForImageClassification(transformers.ViTConfig(
        image_size=16, patch_size=4, num_channels=3, hidden_size=32, num_hidden_layers=3,
        num_attention_heads=4, intermediate_size=64, num_labels=5, hidden_dropout_prob=0.1))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        1.0, (step + 1) / (steps / 10)) * (1 + math.cos(math.pi * step / steps)) / 2)
    patterns = torch.randn(5, 3, 16, 16)

    def loss() -> torch.Tensor:
        kinds = torch.randint(0, 5, (16,))
        images = patterns[kinds] + torch.randn(16, 3, 16, 16)
        logits = model(pixel_values=images).logits
        return functional.cross_entropy(logits, kinds, label_smoothing=0.1)

    return model, optimizer, schedule, loss


class Residual(nn.Module):
    """GroupNorm, SiLU, an embedded time added; the last layer begins at 0, as is usual."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, before), nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(32, after)
        self.norm2, self.conv2 = nn.GroupNorm(4, after), nn.Conv2d(after, after, 3, padding=1)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.conv2(functional.silu(self.norm2(y)))


class UNet(nn.Module):
    """Down, middle and up with a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first, self.down = nn.Conv2d(1, 8, 3, padding=1), Residual(8, 16)
        self.middle, self.up = Residual(16, 16), Residual(32, 8)
        self.norm, self.last = nn.GroupNorm(4, 8), nn.Conv2d(8, 1, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        angles = at[:, None] * 1000 ** (-torch.arange(8) / 8)
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        fine = self.down(self.first(x), time)
        coarse = self.middle(functional.avg_pool2d(fine, 2), time)
        y = self.up(torch.cat([fine, functional.interpolate(coarse, scale_factor=2)], 1), time)
        return self.last(functional.silu(self.norm(y)))


def diffusion(steps: int) -> Parts:
    """Noise of a random time is to be guessed; losses differ much from batch to batch."""
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    kept = torch.cos(torch.linspace(0, math.pi / 2 * 0.999, 1000)) ** 2

    def loss() -> torch.Tensor:
        places = torch.rand(8, 2, 1, 1, 1) * 16
        grid = torch.arange(16.0)
        clean = torch.exp(-((grid[:, None] - places[:, 0]) ** 2
                            + (grid[None, :] - places[:, 1]) ** 2) / 8) * 2 - 1
        at, noise = torch.randint(0, 1000, (8,)), torch.randn(8, 1, 16, 16)
        share = kept[at][:, None, None, None]
        mixed = share.sqrt() * clean + (1 - share).sqrt() * noise
        return functional.mse_loss(model(mixed, at.float()), noise)

    return model, optimizer, schedule, loss


REAL: dict[str, Callable[[int], Parts]] = {
    function.__name__: function
    for function in (masked_language_model, vision_transformer, diffusion)
}
