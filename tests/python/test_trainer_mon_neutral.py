"""A monitor holds nothing after its end, and its errors stay inside (bits: test_neutrality.py)."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from front_ends import Trace
from monitor_training import EVERYTHING, directory_of, names_in, watched
from neutral_models import accumulated
from torch import nn


def test_nothing_holds_a_model_after_stop(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    training = accumulated()
    with watched(tmp_path, **EVERYTHING) as monitor:
        for model, optimizer in zip(training.models, training.optimizers, strict=True):
            monitor.set_monitor(model, grad_acc_steps=2, optimizer=optimizer)
        for _ in range(4):
            training.step(Trace())
    held = [weakref.ref(one) for one in [*training.models, *training.optimizers]]
    del training, model, optimizer
    gc.collect()
    assert [one() for one in held] == [None] * 4
    assert len(names_in(directory_of(tmp_path))) == 4 * 8 - 2  # no moments at the first step
    text = "".join(capfd.readouterr())
    assert "stops watching" not in text and "hooks_failed" not in text, text
    assert text.count("grad is None: unused") == 1


class Hostile(nn.Module):
    """Raises wherever somebody looks closer."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> Any:
        class Strange(torch.Tensor):
            @classmethod
            def __torch_function__(cls, *_: Any, **__: Any) -> Any:
                raise RuntimeError("do not look")
        strange = torch.ones(2).as_subclass(Strange)
        return {"sum": (x * self.w).sum(), "strange": strange}


class NoHooks:
    """An optimizer that is no torch.optim.Optimizer, as wrappers of frameworks are."""

    def __init__(self, parameters: Any) -> None:
        self.optimizer = torch.optim.Adam(parameters)

    def step(self) -> str:
        self.optimizer.step()
        return "stepped"


def test_errors_stay_inside(tmp_path: Path) -> None:
    model = Hostile()
    optimizer = NoHooks(model.parameters())
    with watched(tmp_path, **EVERYTHING, all_elements=True) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        assert "step" in vars(optimizer)
        for _ in range(3):
            model(torch.ones(2))["sum"].backward()
            assert optimizer.step() == "stepped"
    assert "step" not in vars(optimizer) and not model._forward_hooks
    assert {"exp_avg_1-1.csv", "actv_2-2.csv"} <= set(
        names_in(directory_of(tmp_path)))
    # A directory that is gone: the training goes on.
    with watched(tmp_path / "gone", **EVERYTHING) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        path = directory_of(tmp_path / "gone")
        for one in path.iterdir():
            one.unlink()
        path.rmdir()
        for _ in range(2):
            model(torch.ones(2))["sum"].backward()
            assert optimizer.step() == "stepped"
