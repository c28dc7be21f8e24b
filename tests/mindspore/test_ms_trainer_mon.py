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
from mindspore import Tensor, mint, nn
from mindspore.communication import comm_func

from plumbline import TrainerMonitorV2
from plumbline.mindspore import TrainerMon
from plumbline.mindspore.adapter import MindSporeAdapter

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


def test_the_second_form(tmp_path: Path) -> None:
    parts = ("module", "weight_grad", "optimizer", "param")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "framework": "ms", "output_dir": str(tmp_path),
        "monitors": {part: {"enabled": True, "ops": OPS} for part in parts}}))
    bare, _ = trained(lambda net, optimizer: None)
    monitor = TrainerMonitorV2(str(config))
    watched, truth = trained(lambda net, optimizer: monitor.start(net, optimizer))
    monitor.stop()
    assert watched == bare
    rows = {}
    for path in (tmp_path / "rank_0").glob("*_step*.csv"):
        for row in csv.DictReader(path.read_text().splitlines()):
            key = row["module_name"], row["scope"], int(row["step"])
            rows[key] = [float(row[op]) for op in OPS]
    assert {key[0] for key in rows if key[1] == "forward"} == {
        f"{name}.{side}.0" for name in ("", "fc", "act") for side in ("input", "output")}
    # Behind the step the moments are what the next one begins with.
    for name in ("fc.weight", "fc.bias"):
        for step in range(3):
            for row, wanted in (
                    ((name, "reduced", step), truth[f"grad {name}", step]),
                    ((name, "param_origin", step), truth[f"param {name}", step])):
                assert rows[row] == pytest.approx(statistics(wanted), rel=1e-6, abs=1e-9), row
        for step in range(2):
            assert rows[name, "param_updated", step] == rows[name, "param_origin", step + 1]
            for scope, prefix in (("exp_avg", "moment1"), ("exp_avg_sq", "moment2")):
                assert rows[f"{name}.{scope}", scope, step] == pytest.approx(
                    statistics(truth[f"{prefix}.{name}", step + 1]), rel=1e-6, abs=1e-9)


class Later(comm_func.CommHandle):  # type: ignore[misc]
    """The values are there when somebody has waited."""

    def __init__(self, action: Any) -> None:
        super().__init__()
        self.action = action

    def wait(self) -> None:
        self.action()


def in_place(tensor: Tensor, op: str = "sum", async_op: bool = False) -> Any:
    def double() -> None:
        tensor.copy_(tensor * 2)
    return Later(double) if async_op else double()


def out_of_place(tensor: Tensor, async_op: bool = False) -> Any:
    result = tensor * 1 if async_op else tensor * 2
    return (result, Later(lambda: result.copy_(result * 2))) if async_op else (result, None)


def test_rows_of_communication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fakes: this build of MindSpore has kernels of no function of comm_func but broadcast."""
    monkeypatch.setattr(mint.distributed, "all_reduce", in_place)
    monkeypatch.setattr(comm_func, "reduce_scatter_tensor", out_of_place)
    monkeypatch.setattr(comm_func, "recv", lambda tensor, src=0: tensor + 5)
    monkeypatch.setattr(MindSporeAdapter, "rank", lambda _: 0)
    before = {(owner, name): getattr(owner, name) for owner, names in (
        (mint.distributed, dir(mint.distributed)), (comm_func, dir(comm_func)))
        for name in names}
    waits = (Later.wait, comm_func.CommHandle.wait)
    config = tmp_path / "monitor_config.json"
    config.write_text(json.dumps({
        "cc_distribution": {"enable": True, "cc_pre_hook": True}, "ops": OPS, "ndigits": 12}))
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    monitor = TrainerMon(str(config))
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    monitor.set_monitor(net, optimizer=optimizer)
    x = np.array([3.0, -4.0], np.float32)
    for _ in range(2):
        mint.distributed.all_reduce(Tensor(x))
        comm_func.reduce_scatter_tensor(Tensor(x))
        assert comm_func.recv(Tensor(x)).asnumpy().tolist() == [8.0, 1.0]
        optimizer(tuple(ms.ops.zeros_like(one) for one in net.trainable_params()))
    monitor.stop()
    assert {key: getattr(*key) for key in before} == before
    assert (Later.wait, comm_func.CommHandle.wait) == waits
    [directory] = (tmp_path / "out").glob("*-rank0-*")
    expected = {"all_reduce.pre_0": x, "all_reduce.post_0": 2 * x,
                "reduce_scatter_tensor.pre_0": x, "reduce_scatter_tensor.post_0": 2 * x,
                "recv.post_0": x + 5}
    found = rows_of(directory, "other")
    assert set(found) == {(name, step) for name in expected for step in (0, 1)}
    for (name, _), values in found.items():
        assert values == pytest.approx(statistics(Tensor(expected[name]))), name


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
