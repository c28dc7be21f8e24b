"""The model that the short examples train: two linear layers and a norm, fixed seeds."""

from __future__ import annotations

import torch
from torch import nn


def make() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A model, an input and a target."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return model, torch.randn(8, 16), torch.randn(8, 4)
