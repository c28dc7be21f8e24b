"""TrainerMonitorV2: every cell against values by NumPy, the training unchanged, bad input."""

from __future__ import annotations

import copy
import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from monitor_training import TwoLayers
from recording import PLUMB
from torch import nn

from plumbline import TrainerMonitorV2

OPS = ["min", "max", "mean", "norm", "nans"]
ALL = {part: {"enabled": True} for part in ("module", "weight_grad", "optimizer", "param")}
Rows = dict[tuple[str, ...], dict[str, float]]

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """Every test begins at the same random numbers, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


def config_of(tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"output_dir": str(tmp_path / "out"), **options}))
    return path


def rows_in(directory: Path, part: str) -> Rows:
    """(step, name, scope, micro step, how many such rows before) -> statistic -> value."""
    rows: Rows = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for path in sorted(directory.glob(f"{part}_step*.csv")):
        for row in csv.DictReader(path.read_text().splitlines()):
            key = (row.pop("step"), row.pop("module_name"), row.pop("scope"),
                   row.pop("micro_step", ""))
            row.pop("vpp_stage")
            rows[(*key, str(seen[key]))] = {op: float(value) for op, value in row.items()}
            seen[key] += 1
    return rows


def statistics(tensor: torch.Tensor) -> dict[str, float]:
    values = tensor.detach().numpy().astype(np.float64)
    return {"min": values.min(), "max": values.max(), "mean": values.mean(),
            "norm": math.sqrt((values ** 2).sum()), "nans": float(np.isnan(values).sum())}


class Truth:
    """The same values by hooks of PyTorch alone."""

    def __init__(self, model: nn.Module) -> None:
        self.rows: Rows = {}
        self.step, self.micro = 0, 1
        for name, module in model.named_modules():
            module.register_forward_hook(self._forward(name))
            module.register_full_backward_hook(self._backward(name))

    def add(self, name: str, scope: str, value: torch.Tensor, micro: str = "") -> None:
        self.rows[str(self.step), name, scope, micro, "0"] = statistics(value)

    def _forward(self, name: str) -> Any:
        def hook(_: Any, inputs: Any, output: Any) -> None:
            self.add(f"{name}.input.0", "forward", inputs[0], str(self.micro))
            self.add(f"{name}.output.0", "forward", output, str(self.micro))
        return hook

    def _backward(self, name: str) -> Any:
        def hook(_: Any, grad_inputs: Any, grad_outputs: Any) -> None:
            if grad_inputs[0] is not None:
                self.add(f"{name}.grad_input.0", "backward", grad_inputs[0], str(self.micro))
            self.add(f"{name}.grad_output.0", "backward", grad_outputs[0], str(self.micro))
        return hook


def train(model: nn.Module, optimizer: torch.optim.Optimizer, truth: Truth | None = None,
          steps: int = 3) -> list[torch.Tensor]:
    """Two micro-batches per step; what it ends with."""
    generator = torch.Generator().manual_seed(7)
    for step in range(steps):
        for micro in (1, 2):
            if truth is not None:
                truth.step, truth.micro = step, micro
            model(torch.randn(5, 4, generator=generator)).square().sum().backward()
        named = list(model.named_parameters())
        for name, one in named if truth is not None else []:
            truth.add(name, "unreduced", one.grad, "2")
            truth.add(name, "reduced", one.grad, "2")
            truth.add(name, "param_origin", one)
        optimizer.step()
        for name, one in named if truth is not None else []:
            truth.add(name, "param_updated", one)
            for moment in ("exp_avg", "exp_avg_sq"):
                truth.add(f"{name}.{moment}", moment, optimizer.state[one][moment])
        optimizer.zero_grad()
    return [*model.state_dict().values(),
            *(value for state in optimizer.state.values() for value in state.values())]


def test_every_cell(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    other, other_optimizer = copy.deepcopy((model, optimizer))
    monitor = TrainerMonitorV2(config_of(tmp_path, monitors=ALL, step_count_per_record=2))
    monitor.start(model=model, optimizer=optimizer, grad_acc_steps=2)
    train(model, optimizer)
    monitor.stop()
    truth = Truth(other)
    train(other, other_optimizer, truth)
    directory = tmp_path / "out" / "rank_0"
    assert monitor.directory == str(directory) and monitor.current_step == 3
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        f"{part}_step{block}.csv" for part in ALL for block in ("0-1", "2-3"))
    found = {key: row for part in ALL for key, row in rows_in(directory, part).items()}
    assert found.keys() == truth.rows.keys()
    for key, row in found.items():
        assert list(row) == OPS
        for op, value in row.items():
            assert value == pytest.approx(truth.rows[key][op], rel=1e-12, abs=1e-12), (key, op)
    text = (directory / "param_step0-1.csv").read_bytes()
    assert text.startswith(b"vpp_stage,step,module_name,scope,min,max,mean,norm,nans\r\n-1,0,fc1.")


def test_the_training_stays_as_it_is(tmp_path: Path) -> None:
    model = nn.Sequential(TwoLayers(), nn.Dropout(0.5), nn.ReLU(inplace=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    plain, plain_optimizer = copy.deepcopy((model, optimizer))
    torch.manual_seed(3)
    expected = train(plain, plain_optimizer, steps=6)
    before = [(dict(vars(module)), dict(module._forward_hooks)) for module in model.modules()]
    before_optimizer = dict(vars(optimizer))
    monitor = TrainerMonitorV2(config_of(tmp_path, monitors=ALL, step_interval=2))
    monitor.start(model=model, optimizer=optimizer)
    monitor.start(model=model, optimizer=optimizer)  # changes nothing
    torch.manual_seed(3)
    watched = train(model, optimizer, steps=6)
    monitor.stop()
    monitor.stop()
    assert all(torch.equal(a, b) for a, b in zip(expected, watched, strict=True))
    for module, (attributes, hooks) in zip(model.modules(), before, strict=True):
        assert vars(module).keys() == attributes.keys() and module._forward_hooks == hooks
        assert not module._backward_hooks and not module._forward_pre_hooks
    assert vars(optimizer).keys() == before_optimizer.keys()
    rows = rows_in(tmp_path / "out" / "rank_0", "param")
    assert {key[0] for key in rows} == {"0", "2", "4"}


def test_steps_by_hand_without_a_training(tmp_path: Path) -> None:
    model = TwoLayers().eval()
    monitor = TrainerMonitorV2(
        config_of(tmp_path, stop_step=3, start_step=1,
                  monitors={"module": {"targets": ["fc"], "ops": "norm"}}), fr="torch")
    monitor.start(model=[model, None, TwoLayers()])
    with torch.no_grad():
        for step in range(5):
            model(torch.full((1, 4), float(step)))
            monitor.step()
    monitor.stop()
    rows = rows_in(tmp_path / "out" / "rank_0", "module")
    assert {key[0] for key in rows} == {"1", "2"}
    assert {key[1] for key in rows} == {f"0:{layer}.{side}.0" for layer in ("fc1", "fc2")
                                        for side in ("input", "output")}
    assert rows["2", "0:fc1.input.0", "forward", "", "0"] == {"norm": 4.0}


def test_the_callers_step_counts_where_it_should(tmp_path: Path,
                                                  capfd: pytest.CaptureFixture[str]) -> None:
    for name, follows, steps in (("own", False, {"0", "1"}), ("theirs", None, {"0", "1", "2"})):
        model = TwoLayers()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        options = {} if follows is None else {"patch_optimizer_step": follows}
        root = tmp_path / name
        root.mkdir()
        parts = {part: ALL[part] for part in ("param", "weight_grad")}
        monitor = TrainerMonitorV2(config_of(root, monitors=parts, **options))
        monitor.start(model=model, optimizer=optimizer)
        train(model, optimizer, steps=1)
        monitor.step()
        train(model, optimizer, steps=2)
        monitor.step()
        monitor.stop()
        assert {key[0] for key in rows_in(root / "out" / "rank_0", "param")} == steps
    assert capfd.readouterr().out.count("this call changes nothing") == 1


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, pair: Any, scale: torch.Tensor) -> torch.Tensor:
        return x * pair[0] + pair[1] * scale


def test_what_is_nested_has_the_last_numbers(tmp_path: Path) -> None:
    monitor = TrainerMonitorV2(config_of(tmp_path, monitors={"module": {"ops": "max"}}))
    model = Nested()
    monitor.start(model=model)
    one = torch.ones(2)
    model(one, (one * 2, one * 3), scale=one * 4)
    monitor.step()
    monitor.stop()
    rows = rows_in(tmp_path / "out" / "rank_0", "module")
    assert [rows["0", f".input.{i}", "forward", "", "0"]["max"] for i in range(4)] == [1, 4, 2, 3]


def test_frozen_parameters_and_gradients_of_each_micro_batch(tmp_path: Path) -> None:
    model = TwoLayers()
    model.fc1.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = TrainerMonitorV2(config_of(tmp_path, monitors={
        "param": {"enabled": True},
        "weight_grad": {"enabled": True, "monitor_mbs_grad": True, "grad_acc_steps": 2}}))
    monitor.start(model=model, optimizer=optimizer)
    train(model, optimizer, steps=1)
    monitor.stop()
    directory = tmp_path / "out" / "rank_0"
    assert {key[1] for key in rows_in(directory, "param")} == {
        name for name, _ in model.named_parameters()}
    gradients = rows_in(directory, "weight_grad")
    assert {key[1:4] for key in gradients} == {
        (f"fc2.{name}", scope, micro) for name in ("weight", "bias")
        for scope, micro in (("unreduced", "1"), ("unreduced", "2"), ("reduced", "2"))}
    last, reduced = (gradients["0", "fc2.bias", scope, "2", "0"]
                     for scope in ("unreduced", "reduced"))
    assert last == reduced != gradients["0", "fc2.bias", "unreduced", "1", "0"]


def test_gradients_without_a_model_and_communication(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)
    all_reduce = torch.distributed.all_reduce
    try:
        monitor = TrainerMonitorV2(config_of(tmp_path, monitors={
            "weight_grad": {"enabled": True}, "cc": {"enabled": True, "cc_pre_hook": True}}))
        monitor.start(optimizer=optimizer)
        for _ in range(2):
            (weight * 2).sum().backward()
            torch.distributed.all_reduce(weight.grad)
            optimizer.step()
            optimizer.zero_grad()
        monitor.stop()
    finally:
        torch.distributed.destroy_process_group()
    assert torch.distributed.all_reduce is all_reduce
    directory = tmp_path / "out" / "rank_0"
    assert {key[1] for key in rows_in(directory, "weight_grad")} == {"param_0"}
    rows = rows_in(directory, "cc")
    assert {key[:3] for key in rows} == {
        (step, f"all_reduce/rank0/{when}_0", "comm") for step in "01" for when in ("pre", "post")}
    assert rows["1", "all_reduce/rank0/post_0", "comm", "", "0"]["norm"] == math.sqrt(12)
    assert (directory / "cc_step0-0.csv").read_text().splitlines()[1].startswith(",0,all_reduce/")


def test_bad_input_is_told_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"2 faults\n  framework: is \"jax\".*\n  format: is"):
        TrainerMonitorV2(config_of(tmp_path, framework="jax", format="tensorboard"))
    with pytest.raises(ValueError, match="cc_codeline"):
        TrainerMonitorV2(config_of(tmp_path, monitors={"cc": {"enabled": True,
                                                              "cc_codeline": ["("]}}))
    with pytest.raises(FileNotFoundError):
        TrainerMonitorV2(str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match=r"model is None \(monitors.module, monitors.opti"
                                         r"mizer, monitors.param need it\); optimizer is None"):
        TrainerMonitorV2(config_of(tmp_path, monitors=ALL)).start()
    for wrong, part in (({"model": 3}, "model is of type int"), ({"model": []}, "model is None"),
                        ({"model": TwoLayers(), "optimizer": 3}, "optimizer is of type int")):
        with pytest.raises(ValueError, match=part):
            TrainerMonitorV2(config_of(tmp_path, monitors={"module": {}})).start(**wrong)
    capfd.readouterr()
    TrainerMonitorV2(config_of(tmp_path, start_step=-3, monitors={"modul": {}})).start()
    lines = capfd.readouterr().out
    for part in ("start_step: is -3 (expected an integer from 0", "0 is taken",
                 'Did you mean "module"?', "none is enabled, nothing is watched"):
        assert part in lines
    assert not list((tmp_path / "out").rglob("*.csv"))


def test_a_second_run_does_not_mix_with_the_first(tmp_path: Path,
                                                  capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        model = TwoLayers()
        optimizer = torch.optim.Adam(model.parameters())
        monitor = TrainerMonitorV2(config_of(tmp_path, monitors=ALL))
        for _ in range(2):  # stopped and begun again, a run goes on
            monitor.start(model=model, optimizer=optimizer)
            train(model, optimizer, steps=1)
            monitor.stop()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["rank_0", "rank_0_2"]
    assert "holds the files of another run" in capfd.readouterr().out
    for directory in ("rank_0", "rank_0_2"):
        assert {key[0] for key in rows_in(tmp_path / "out" / directory, "param")} == {"0", "1"}
    done = subprocess.run([PLUMB, "trend", tmp_path / "out", "-o", tmp_path / "page.html"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.startswith("no NaN or infinity") and "2 steps (0 to 1)" in done.stdout
    subprocess.run([PLUMB, "data2db", "--data", tmp_path / "out", "--db", tmp_path / "db",
                    "--format", "monitor"], check=True, capture_output=True)


KILLED = """
import sys, torch
from plumbline import TrainerMonitorV2
torch.set_num_threads(1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
TrainerMonitorV2(sys.argv[1]).start(model=model, optimizer=optimizer)
while True:
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def test_a_killed_training_leaves_whole_steps(tmp_path: Path) -> None:
    config = config_of(tmp_path, step_count_per_record=1000, monitors=ALL)
    process = subprocess.Popen([sys.executable, "-c", KILLED, config])
    directory = tmp_path / "out" / "rank_0"
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 5000 for path in directory.glob("param*")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    text = (directory / "param_step0-999.csv").read_bytes().decode()
    lines = text[:text.rindex("\r\n")].split("\r\n")[1:]
    assert all(line.count(",") == 8 for line in lines)
    steps = Counter(int(line.split(",")[1]) for line in lines)
    assert list(steps) == list(range(len(steps))) and len(steps) > 5
    assert set(list(steps.values())[:-1]) == {4}  # two parameters, before and after


def test_upstreams_place(tmp_path: Path) -> None:
    alias = Path(__file__).parents[2] / "python" / "msprobe_alias"
    code = "from msprobe.core.monitor_v2.trainer import TrainerMonitorV2 as T; print(T.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(alias)})
    assert done.stdout.strip() == "plumbline.watch.trainer_monitor_v2"
