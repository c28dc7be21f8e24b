"""TrainerMon of MindSpore: the files of a small training against its values by NumPy."""

from __future__ import annotations

import csv
import json
import math
import sqlite3
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from plumbline.mindspore import TrainerMon

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from heat_pictures import expect_counts, histogram, pictures_of

OPS = ["norm", "min", "max", "mean"]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = nn.Dense(4, 3), nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x))


def rows_of(directory: Path, kind: str) -> dict[tuple[Any, ...], list[float]]:
    found = {}
    for path in sorted(directory.glob(f"{kind}_[0-9]*.csv")):
        with path.open(newline="") as file:
            header, *rows = list(csv.reader(file))
        first = header.index("norm")
        for row in rows:
            found[(row[1], *map(int, row[2:first]))] = list(map(float, row[first:]))
    return found


def statistics(value: Any) -> list[float]:
    if value is None:
        return [math.nan] * 4
    wide = value.asnumpy().astype(np.float64)
    return [np.sqrt(np.square(wide).sum()), wide.min(), wide.max(), wide.mean()]


def trained(watch: Any) -> tuple[list[bytes], dict[tuple[str, int], Any]]:
    """Parameters at the end, and (kind name, step) -> value."""
    ms.set_seed(1)
    np.random.seed(1)
    net = Net()
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(np.random.randn(*parameter.shape).astype(np.float32)))
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    watch(net, optimizer)
    gradient = ms.value_and_grad(lambda x: net(x).square().sum(), None, net.trainable_params())
    truth: dict[tuple[str, int], Any] = {}
    for step in range(3):
        x = Tensor(np.random.randn(5, 4).astype(np.float32))
        _, gradients = gradient(x)
        for parameter, one in zip(net.trainable_params(), gradients, strict=True):
            truth[f"grad {parameter.name}", step] = one
            truth[f"param {parameter.name}", step] = Tensor(parameter.asnumpy().copy())
        for moments in (optimizer.moment1, optimizer.moment2):
            for moment in moments:
                truth[moment.name, step] = Tensor(moment.asnumpy().copy())
        truth["fc.input", step] = x
        optimizer(gradients)
    return [parameter.asnumpy().tobytes() for parameter in net.get_parameters()], truth


def test_a_training_of_adam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "monitor_config.json"
    config.write_text(json.dumps({
        "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
        "param_distribution": True, "mg_direction": True, "ops": OPS, "ndigits": 12}))
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    bare, _ = trained(lambda net, optimizer: None)
    monitor = TrainerMon(str(config))
    watched, truth = trained(
        lambda net, optimizer: monitor.set_monitor(net, optimizer=optimizer))
    monitor.stop()
    assert watched == bare
    [directory] = (tmp_path / "out").glob("*-rank0-*")
    names = {"grad_reduced": "grad ", "grad_unreduced": "grad ", "param": "param ",
             "exp_avg": "moment1.", "exp_avg_sq": "moment2."}
    for kind, prefix in names.items():
        found = rows_of(directory, kind)
        assert set(found) == {(name, step) for name in ("fc.weight", "fc.bias")
                              for step in range(3)}, kind
        for (name, step), values in found.items():
            expected = statistics(truth[prefix + name, step])
            assert values == pytest.approx(expected, rel=1e-6, abs=1e-9), (kind, name, step)
    activations = rows_of(directory, "actv")
    assert {key[0] for key in activations} == {
        f"{name}.{side}" for name in ("", "fc", "act") for side in ("input", "output")}
    for step in range(3):
        assert activations["fc.input", step, 0] == pytest.approx(
            statistics(truth["fc.input", step]), rel=1e-6)
    gradients = {key[0] for key in rows_of(directory, "actv_grad")}
    assert {"fc.output", "act.input", "act.output"} <= gradients
    assert len(rows_of(directory, "other")) == 6


def test_pictures_of_adam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "monitor_config.json"
    config.write_text(json.dumps({"ur_distribution": True, "format": "tensorboard"}))
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    monitor = TrainerMon(str(config))
    _, truth = trained(lambda net, optimizer: monitor.set_monitor(net, optimizer=optimizer))
    monitor.stop()
    [directory] = (tmp_path / "out").iterdir()
    found = pictures_of(directory)
    assert len(found) == 4
    for tag, pictures in found.items():
        assert sorted(pictures) == [1, 2]
        name, kind = tag[2:].partition("/")[0], tag.rpartition("_")[2]
        rule = tuple(float(np.float32(one)) for one in (0.9, 0.999, 1e-8))
        expect_counts(pictures[2], [
            histogram(truth[f"moment1.{name}", step].asnumpy(),
                      truth[f"moment2.{name}", step].asnumpy(), (*rule, step), kind)
            for step in (1, 2)])


def test_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "monitor_config.json"
    config.write_text(json.dumps({"param_distribution": True, "format": "sqlite"}))
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    monitor = TrainerMon(str(config))
    _, truth = trained(lambda net, optimizer: monitor.set_monitor(net, optimizer=optimizer))
    monitor.stop()
    [path] = (tmp_path / "out").glob("*/monitor_data.trend.db")
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT target_name, step, norm FROM trend_data JOIN "
                                "monitoring_targets USING (target_id)").fetchall()
    assert len(rows) == 6
    for name, step, norm in rows:
        assert norm == pytest.approx(statistics(truth[f"param {name}", step])[0], rel=1e-12)
