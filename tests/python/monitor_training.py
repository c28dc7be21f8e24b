"""Small trainings under TrainerMon, the values they must have, and readers of the files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from plumbline.pytorch import TrainerMon

ALL_OPS = ["norm", "min", "max", "mean", "nans", "zeros"]
EVERYTHING = {
    "targets": {}, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
    "param_distribution": True, "mg_direction": True, "ops": ALL_OPS}


class TwoLayers(nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


def write_config(directory: Path, **options: Any) -> Path:
    """monitor_config.json with these keys."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "monitor_config.json"
    path.write_text(json.dumps(options))
    return path


def out_of(directory: Path) -> Path:
    """Where a training whose configuration lies in `directory` writes."""
    return directory / "out"


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """These variables while the block runs; None: not set."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            if value is None:
                patch.delenv(name, raising=False)
            else:
                patch.setenv(name, value)
        yield


@contextmanager
def watched(directory: Path, dynamic: bool = False, **options: Any) -> Iterator[TrainerMon]:
    """A monitor of this configuration, which writes into out_of(directory); stopped at the end."""
    path = directory / "monitor_config.json"
    if options or not path.exists():
        path = write_config(directory, **options)
    with environment(MONITOR_OUTPUT_DIR=str(out_of(directory)),
                     DYNAMIC_MONITOR="True" if dynamic else None):
        monitor = TrainerMon(str(path), params_have_main_grad=False)
    try:
        yield monitor
    finally:
        monitor.stop()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3,
          micro_batches: int = 1, at_step: Callable[[int], None] | None = None) -> None:
    """Steps of squared sums; `at_step` is called behind each."""
    for step in range(steps):
        for _ in range(micro_batches):
            model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if at_step is not None:
            at_step(step)


def directory_of(directory: Path, rank: int = 0) -> Path:
    """The only directory of a rank."""
    [found] = out_of(directory).glob(f"*-rank{rank}-*")
    return found


def names_in(path: Path) -> list[str]:
    """Its csv files but for the tables of names, sorted."""
    return sorted(one.name for one in path.glob("*.csv") if one.name != "stack_info.csv")


def cells(path: Path) -> list[list[str]]:
    """All rows of a csv file, with its header."""
    with path.open(newline="") as file:
        return list(csv.reader(file))


def rows_of(path: Path, kind: str) -> dict[tuple[Any, ...], dict[str, float]]:
    """(name, step[, micro step]) -> op -> number, of all files of this kind."""
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for one in sorted(path.glob(f"{kind}_[0-9]*.csv")):
        header, *rows = cells(one)
        first = header.index("step") + 1 + ("micro_step" in header)
        for row in rows:
            assert len(row) == len(header), f"{one}: {row}"
            key = (row[1], *map(int, row[2:first]))
            assert key not in found, f"{one}: {key} twice"
            found[key] = {op: float(value)
                          for op, value in zip(header[first:], row[first:], strict=True)
                          if op not in ("shape", "dtype")}
    return found


def statistics(value: Any, eps: float = 1e-8) -> dict[str, float]:
    """What the ops say, by NumPy in float64; NaN for no tensor."""
    if value is None:
        return dict.fromkeys(ALL_OPS, math.nan)
    wide = np.asarray(value.detach().to(torch.float64))
    return {"norm": float(np.sqrt(np.square(wide).sum())), "min": float(wide.min()),
            "max": float(wide.max()), "mean": float(wide.mean()),
            "nans": float(np.isnan(wide).sum()), "zeros": float((np.abs(wide) < eps).mean())}


def expect_equal(found: dict[Any, dict[str, float]], values: dict[Any, Any],
                 eps: float = 1e-8) -> None:
    """The rows say of the values what NumPy says of them."""
    assert list(found) == list(values)
    for key, value in values.items():
        for op, number in statistics(value, eps).items():
            assert found[key][op] == pytest.approx(number, rel=1e-6, abs=1e-9, nan_ok=True), \
                f"{key} {op}"


class Truth:
    """The values of a training of its own, which nobody watches but PyTorch's own hooks."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.kinds: dict[str, dict[tuple[Any, ...], Any]] = {}
        self._step = self._micro = 0
        self._optimizer = optimizer
        self._parameters = dict(model.named_parameters())
        for name, module in model.named_modules():
            module.register_forward_hook(self._forward(name))
            module.register_full_backward_hook(self._backward(name))
        optimizer.register_step_pre_hook(lambda *_: self._take())

    def end_batch(self) -> None:
        """The next calls belong to the next micro-batch."""
        self._micro += 1

    def end_step(self) -> None:
        """The next calls belong to the next step."""
        self._step, self._micro = self._step + 1, 0

    def _put(self, kind: str, key: tuple[Any, ...], value: Any) -> None:
        copy = value.detach().clone() if isinstance(value, torch.Tensor) else None
        self.kinds.setdefault(kind, {})[key] = copy

    def _forward(self, name: str) -> Callable[..., None]:
        def hook(_: Any, inputs: Any, output: Any) -> None:
            self._put("actv", (f"{name}.input", self._step, self._micro), inputs[0])
            self._put("actv", (f"{name}.output", self._step, self._micro), output)
        return hook

    def _backward(self, name: str) -> Callable[..., None]:
        def hook(_: Any, inputs: Any, outputs: Any) -> None:
            self._put("actv_grad", (f"{name}.input", self._step, self._micro), inputs[0])
            self._put("actv_grad", (f"{name}.output", self._step, self._micro), outputs[0])
        return hook

    def _take(self) -> None:
        for name, parameter in self._parameters.items():
            key = (name, self._step)
            self._put("grad_unreduced", key, parameter.grad)
            self._put("grad_reduced", key, parameter.grad)
            self._put("param", key, parameter)
            state = self._optimizer.state.get(parameter, {})
            for kind in ("exp_avg", "exp_avg_sq"):
                if kind in state:
                    self._put(kind, key, state[kind])
            agreement = torch.tensor(1.0)
            if self._step > 0:
                signs = np.sign(parameter.grad.numpy()) * np.sign(state["exp_avg"].numpy())
                agreement = torch.tensor((signs.sum() / signs.size + 1) / 2)
            self._put("other", key, agreement)
