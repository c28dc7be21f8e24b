"""TrainerMon's pictures of Adam: the counts in them against histograms by NumPy in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from heat_pictures import MOST_COLUMNS, expect_counts, histogram, pictures_of
from monitor_training import TwoLayers, directory_of, train, watched
from torch import nn

HEAT = {"ur_distribution": True, "format": "tensorboard"}


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """Every test begins at the same random numbers, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


class AdamTruth:
    """Histograms of update and ratio before each step, by NumPy in float64."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.columns: dict[str, list[np.ndarray]] = {}
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        optimizer.register_step_pre_hook(self._take)

    def _take(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state.get(parameter)
                if state:
                    self._add(self._names[parameter], state, group)

    def _add(self, name: str, state: dict[str, Any], group: dict[str, Any]) -> None:
        rule = (*group["betas"], group["eps"], float(state["step"]))
        for kind in ("update", "ratio"):
            counts = histogram(state["exp_avg"].numpy(), state["exp_avg_sq"].numpy(), rule, kind)
            self.columns.setdefault(f"0:{name}/rank0/adam_{kind}", []).append(counts)


def trained(tmp_path: Path, steps: int, **options: Any) -> tuple[AdamTruth, list[float]]:
    """A training of two layers in two groups; what it must show, and its last weights."""
    model = TwoLayers()
    optimizer = torch.optim.Adam([
        {"params": model.fc1.parameters(), "betas": (0.8, 0.95)},
        {"params": model.fc2.parameters(), "eps": 1e-2}], lr=0.01)
    truth = AdamTruth(model, optimizer)
    if options:
        with watched(tmp_path, **options) as monitor:
            monitor.set_monitor(model, optimizer=optimizer)
            train(model, optimizer, steps)
    else:
        train(model, optimizer, steps)
    return truth, [one for value in model.parameters() for one in value.flatten().tolist()]


def test_every_count_is_numpys(tmp_path: Path) -> None:
    truth, weights = trained(tmp_path, 5, **HEAT, ops=["norm"])
    found = pictures_of(directory_of(tmp_path))
    assert set(found) == set(truth.columns) and len(found) == 8
    for tag, columns in truth.columns.items():
        assert sorted(found[tag]) == [1, 2, 3, 4]  # no moments before the first step
        for step, picture in found[tag].items():
            expect_counts(picture, columns[:step])
    torch.manual_seed(0)
    assert trained(tmp_path, 5)[1] == weights  # bit for bit what nobody watches


def test_old_steps_leave_the_picture(tmp_path: Path) -> None:
    steps = MOST_COLUMNS + 4
    truth, _ = trained(tmp_path, steps, **HEAT, targets={"fc2.bias": {}})
    found = pictures_of(directory_of(tmp_path))
    assert sorted(found) == ["0:fc2.bias/rank0/adam_ratio", "0:fc2.bias/rank0/adam_update"]
    for tag, pictures in found.items():
        expect_counts(pictures[steps - 1], truth.columns[tag][-MOST_COLUMNS:])


def test_other_formats_have_no_pictures(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    trained(tmp_path, 2, **{**HEAT, "format": "csv"}, param_distribution=True)
    assert "ur_distribution: ignored, pictures are written with" in "".join(capfd.readouterr())
    assert not list(directory_of(tmp_path).glob("events*"))


@pytest.mark.parametrize("broken", ["sgd", "no moment", "no step"])
def test_what_is_missing_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture,
                                      broken: str) -> None:
    model = TwoLayers()
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer = torch.optim.SGD(model.parameters(), 0.1) if broken == "sgd" else adam
    hidden: dict[str, Any] = {}

    def hide(*_: Any) -> None:
        state = optimizer.state.get(model.fc1.bias)
        if broken != "sgd" and state:
            key = "exp_avg_sq" if broken == "no moment" else "step"
            hidden[key] = state.pop(key)

    optimizer.register_step_pre_hook(hide)
    with watched(tmp_path, **HEAT) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)  # looks behind hide() and before the next
        optimizer.register_step_pre_hook(lambda *_: optimizer.state[model.fc1.bias].update(hidden))
        train(model, optimizer, 4)
    text = "".join(capfd.readouterr())
    assert text.count("ur_distribution: no picture of ") == 1, text
    found = pictures_of(directory_of(tmp_path))
    assert len(found) == (0 if broken == "sgd" else 6)
    assert not any("fc1.bias" in tag for tag in found)
