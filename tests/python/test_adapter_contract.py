"""The adapter contract, against a fake framework under each name and against PyTorch."""

from __future__ import annotations

import random
from typing import Any

import fake_framework
import pytest
import torch
from adapter_contract import AdapterContract, Framework

import plumbline.pytorch


def _fake(name: str, prefix: str, tensor_type: str, dtype: str) -> Framework:
    inner = fake_framework.Inner()
    net = fake_framework.Module(first=fake_framework.Layer(inner=inner))
    return Framework(
        fake_framework.FakeAdapter(name, prefix), net, fake_framework.Tensor,
        lambda tensor: list(tensor.array),
        ("Fake.double", lambda x: fake_framework.functions.double(x)),
        random.random, tensor_type, dtype,
    )


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.abs(x)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x)
        return result


def _pytorch() -> Framework:
    return Framework(
        plumbline.pytorch._adapter, torch.nn.Sequential(), torch.tensor, torch.Tensor.tolist,
        ("Torch.abs", lambda x: torch.abs(x)), lambda: torch.rand(1).item(),
        "torch.Tensor", "torch.float32",
    )


@pytest.fixture(params=["fake", "mindspore", "mindtorch", "pytorch"])
def framework(request: pytest.FixtureRequest) -> Any:
    if request.param == "pytorch":
        made = _pytorch()
        made.net.add_module("first", Layer())
        return made
    # Names and spellings are those of the framework's name, whatever stands behind it.
    if request.param == "fake":
        return _fake("fake", "Module", "torch.Tensor", "torch.float32")
    prefix = "Cell" if request.param == "mindspore" else "Module"
    return _fake(request.param, prefix, "mindspore.Tensor", "Float32")


class TestAdapterContract(AdapterContract):
    pass
