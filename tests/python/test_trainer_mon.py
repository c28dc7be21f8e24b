"""TrainerMon: the files of small trainings against values by NumPy, and against bad input."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from monitor_training import (
    ALL_OPS,
    EVERYTHING,
    Truth,
    TwoLayers,
    cells,
    directory_of,
    expect_equal,
    names_in,
    out_of,
    rows_of,
    train,
    watched,
    write_config,
)
from torch import nn

from plumbline.pytorch import TrainerMon

ACTIVATION_HEADER = ["vpp_stage", "name", "step", "micro_step", *ALL_OPS]
HEADER = ["vpp_stage", "name", "step", *ALL_OPS]

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook")


@pytest.fixture(autouse=True)
def one_seed() -> None:
    """Every test begins at the same random numbers, on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)


def truth_of_two_layers(steps: int, micro_batches: int) -> Truth:
    """The values of the training of test_every_cell_of_two_layers()."""
    torch.manual_seed(0)
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    truth = Truth(model, optimizer)
    for _ in range(steps):
        for _ in range(micro_batches):
            model(torch.randn(5, 4)).square().sum().backward()
            truth.end_batch()
        optimizer.step()
        optimizer.zero_grad()
        truth.end_step()
    return truth


def grouped(values: dict[tuple[Any, ...], Any]) -> dict[tuple[Any, ...], Any]:
    """In the order of a file: steps, in them modules as they came first, in them micro-batches."""
    order = {name: at for at, name in enumerate(dict.fromkeys(
        key[0].rpartition(".")[0] for key in values))}
    return dict(sorted(values.items(), key=lambda item: (
        item[0][1], order[item[0][0].rpartition(".")[0]], item[0][2])))


def test_every_cell_of_two_layers(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with watched(tmp_path, **EVERYTHING, step_count_per_record=2, ndigits=15, eps=0.05) as monitor:
        monitor.set_monitor(model, grad_acc_steps=2, optimizer=optimizer)
        train(model, optimizer, micro_batches=2)
    path = directory_of(tmp_path)
    kinds = ["actv", "actv_grad", "grad_unreduced", "grad_reduced", "param", "other", "exp_avg",
             "exp_avg_sq"]
    assert names_in(path) == sorted(f"{kind}_{block}.csv" for kind in kinds
                                    for block in ("0-1", "2-3"))
    for kind in kinds:
        is_activation = kind.startswith("actv")
        assert cells(path / f"{kind}_0-1.csv")[0] == (
            ACTIVATION_HEADER if is_activation else HEADER)
    assert {key[1] for key in rows_of(path, "exp_avg")} == {1, 2}  # no state before the first
    truth = truth_of_two_layers(3, 2)
    for kind in kinds:
        found, expected = rows_of(path, kind), truth.kinds[kind]
        if kind in ("grad_unreduced", "actv_grad"):  # as the gradients became ready
            assert sorted(found) == sorted(expected)
            expected = {key: expected[key] for key in found}
        expect_equal(found, grouped(expected) if kind == "actv" else expected, eps=0.05)
    names = json.loads((path / "names.json").read_text())
    assert names["module"] == {"0:": "", "0:fc1": "fc1", "0:fc2": "fc2"}
    assert set(names["parameter"].items()) == {
        (f"0:{name}", name) for name, _ in model.named_parameters()}


class Give(nn.Module):
    """Returns the same thing at every call."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def forward(self, x: torch.Tensor) -> Any:
        return self.value


TENSORS: dict[str, tuple[Any, str]] = {
    # norm, min, max, zeros, nans, id, mean, infs, shape, dtype
    "empty": (torch.zeros(0, 3), "0.0,nan,nan,nan,0.0,nan,nan,0.0,[0, 3],torch.float32"),
    "point": (torch.tensor(-2.5), "2.5,-2.5,-2.5,0.0,0.0,-2.5,-2.5,0.0,[],torch.float32"),
    "bool": (torch.tensor([True, False, False, True]),
             "1.414214,0.0,1.0,nan,0.0,nan,0.5,0.0,[4],torch.bool"),
    "int64": (torch.tensor([[3, -4], [0, 0]]),
              "5.0,-4.0,3.0,0.5,0.0,nan,-0.25,0.0,[2, 2],torch.int64"),
    "complex64": (torch.tensor([3 + 4j, 0j]),
                  "5.0,nan,nan,0.5,0.0,nan,nan,0.0,[2],torch.complex64"),
    "bf16": (torch.tensor([1.5, -2, 0, 0], dtype=torch.bfloat16),
             "2.5,-2.0,1.5,0.5,0.0,nan,-0.125,0.0,[4],torch.bfloat16"),
    "fp16": (torch.tensor([65504, -1], dtype=torch.float16),
             "65504.000008,-1.0,65504.0,0.0,0.0,nan,32751.5,0.0,[2],torch.float16"),
    "nan": (torch.tensor([1, math.nan, 0]), f"nan,nan,nan,{1 / 3:.6f},1.0,nan,nan,0.0,[3],"
                                            "torch.float32"),
    "inf": (torch.tensor([1, math.inf]), "inf,1.0,inf,0.0,0.0,nan,inf,1.0,[2],torch.float32"),
    "both": (torch.tensor([math.inf, -math.inf]), "inf,-inf,inf,0.0,0.0,nan,nan,2.0,[2],"
                                                  "torch.float32"),
    "strided": (torch.arange(6.0).reshape(2, 3).T[::2], "6.164414,0.0,5.0,0.25,0.0,nan,2.5,0.0,"
                                                        "[2, 2],torch.float32"),
    "none": (None, ",".join(["nan"] * 10)),
    "words": ("words", ",".join(["nan"] * 10)),
    "pair": ((torch.ones(4), torch.zeros(2)), ",".join(["nan"] * 10)),
}


def test_one_row_for_every_kind_of_value(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    model = nn.ModuleDict({name: Give(value) for name, (value, _) in TENSORS.items()})
    model.register_parameter("w", nn.Parameter(torch.ones(1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ops = ["norm", "min", "max", "zeros", "nans", "id", "mean", "infs", "shape", "dtype"]
    targets = {name: {"output": "tensor"} if name == "pair" else {} for name in TENSORS}
    with watched(tmp_path, targets=targets, xy_distribution=True, ops=ops) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        for name in TENSORS:
            model[name](torch.ones(1))
        model["pair"](torch.ones(1))
        optimizer.step()
    found = {row[1].removesuffix(".output"): ",".join(row[4:])
             for row in cells(directory_of(tmp_path) / "actv_0-0.csv")[1:]
             if row[1].endswith(".output") and row[3] == "0"}
    assert found == {name: expected for name, (_, expected) in TENSORS.items()}
    text = "".join(capfd.readouterr())
    assert text.count("config spec validate failed: output of pair is tuple[2]") == 1


class Layers(nn.Module):
    """`layers.0` to `layers.11`, each of which returns a tuple of one tensor."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (x * self.w,)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(self.Layer() for _ in range(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            (x,) = layer(x)
        return x


def test_a_target_is_one_layer(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    model = Layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    targets = {"layers.1": {"output": "tuple[2]:0", "input": "tuple[1]:0"}, "0:layers.7": {},
               "1:layers.8": {}, "layers.3*": {}}
    with watched(tmp_path, **{**EVERYTHING, "targets": targets, "squash_name": False}) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer)
    path = directory_of(tmp_path)
    assert {key[0] for key in rows_of(path, "param")} == {
        "layers.1.w", "layers.7.w", "layers.3.w"}
    found = rows_of(path, "actv")
    assert {key[0] for key in found} == {f"layers.{layer}.{side}" for layer in (1, 7)
                                         for side in ("input", "output")}
    assert all(math.isnan(found["layers.1.output", step, 0]["norm"]) for step in range(3))
    assert found["layers.1.input", 0, 0]["norm"] > 0
    # SGD has no moments: no row, one warning for each parameter, and the training goes on.
    assert set(rows_of(path, "other")) == {(f"layers.{n}.w", 0) for n in (1, 3, 7)}
    text = "".join(capfd.readouterr())
    assert text.count("output of layers.1 is tuple[1] (expected tuple[2]") == 1
    assert text.count("mg_direction: layers.1.w has no first moment") == 1


def test_two_optimizers_count_for_themselves(tmp_path: Path) -> None:
    generator, judge = TwoLayers(), nn.Linear(2, 1)
    optimizers = [torch.optim.Adam(one.parameters(), lr=1e-3) for one in (generator, judge)]
    with watched(tmp_path, wg_distribution=True, mv_distribution=True, ops=["norm"]) as monitor:
        monitor.set_monitor(generator, optimizer=optimizers[0])
        monitor.set_monitor(judge, optimizer=optimizers[1])
        assert len(set(monitor.directories)) == 1
        for step in range(4):
            judge(generator(torch.randn(5, 4))).sum().backward()
            optimizers[0].step()
            if step % 2 == 0:
                optimizers[1].step()
    assert not optimizers[0]._optimizer_step_pre_hooks
    found = rows_of(directory_of(tmp_path), "grad_reduced")
    assert {key[1] for key in found if key[0] == "fc1.weight"} == {0, 1, 2, 3}
    assert {key[1] for key in found if key[0] == "weight"} == {0, 1}
    moments = rows_of(directory_of(tmp_path), "exp_avg")
    assert {key[1] for key in moments if key[0] == "weight"} == {1}


def test_seven_faults_are_one_message(tmp_path: Path) -> None:
    path = write_config(tmp_path, eps=1, ops="norm", module_ranks="0", targets=[],
                        alert={"rules": [{"rule_name": "Loud"}]}, step_interval=0,
                        cc_distribution={"foo": 1})
    with pytest.raises(ValueError) as raised:
        TrainerMon(str(path))
    first, *faults = str(raised.value).splitlines()
    assert first == f"{path}: 7 faults"
    assert [fault.split(":")[0].strip() for fault in faults] == [
        "targets", "ops", "step_interval", "eps", "module_ranks", "cc_distribution.foo",
        "alert.rules[0].rule_name"]
    assert all("expected" in fault or "no such key" in fault for fault in faults)
    with pytest.raises(FileNotFoundError, match="no_such_file"):
        TrainerMon(str(tmp_path / "no_such_file.json"))
    for text, message in (("{", "is no JSON"), ("[1]", "expected an object")):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            TrainerMon(str(path))
    assert not out_of(tmp_path).exists()


def test_alerts_while_training(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    rules = [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}},
             {"rule_name": "AnomalyNan"}]
    values = [1.0, 1.49, 1.9, -1.0, math.nan, math.nan, 5.0]
    with watched(tmp_path, param_distribution=True, ops=["max", "mean"],
                 alert={"rules": rules, "dump": True}) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        for value in values:
            model.weight.data.fill_(value)
            optimizer.step()
    found = json.loads((out_of(tmp_path) / "anomaly_detected/rank0/anomaly.json").read_text())
    # 1.49 is no more than 1.5; 1.9 is more than 1.5 times 1.245; the second NaN is no news.
    assert [(one["step"], one["ops"]) for one in found.values()] == [
        (2, ["max", "mean"]), (4, ["max", "mean"]), (6, ["max", "mean"])]
    first = next(iter(found.values()))
    assert first["values"] == [str(torch.tensor(1.9).item())] * 2
    assert first["tag_name"] == "0:weight/rank0/param" and first["vpp_stage"] == 0
    text = "".join(capfd.readouterr())
    assert text.count("Rule AnomalyTurbulence reports anomaly signal") == 4
    assert text.count("Rule AnomalyNan reports anomaly signal") == 2


def test_without_a_process_group_there_is_no_communication(
        tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched(tmp_path, cc_distribution={"enable": True}, param_distribution=True) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer)
    assert names_in(directory_of(tmp_path)) == [f"param_{n}-{n}.csv" for n in range(3)]
    text = "".join(capfd.readouterr())
    assert text.count("cc_distribution: ignored, there is no process group") == 1
    write_config(tmp_path, cc_distribution={"enable": True, "cc_codeline": ["train.py["]})
    with pytest.raises(ValueError, match=r"cc_codeline: is 'train.py\['"), watched(tmp_path):
        pass


def test_stacks_of_all_modules(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched(tmp_path, stack_info=True, targets={"fc1": {}}, param_distribution=True,
                 start_step=1) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer)
    header, *rows = cells(directory_of(tmp_path) / "stack_info.csv")
    assert header == ["module_name", "stack_info"]
    assert [name for name, _ in rows] == ["", "fc1", "fc2"]
    stack = dict(rows)["fc1"]
    assert re.search(r"File .*monitor_training\.py, line \d+, in forward, \n "
                     r"return self\.fc2\(torch\.relu\(self\.fc1\(x\)\)\) \n", stack), stack
    assert "/plumbline/" not in stack and "test_stacks_of_all_modules" in stack


def test_print_struct(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters())
    message = "^exit after first monitor step when print model struct$"
    with watched(tmp_path, print_struct=True, ops=["norm"]) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        with pytest.raises(Exception, match=message):
            train(model, optimizer)
    found = json.loads((out_of(tmp_path) / "module_struct.json").read_text())
    assert list(found) == ["0:fc1", "0:fc2", "0:"]
    size = "size=(5, 4), dtype=torch.float32"
    assert found["0:fc1"] == {
        "input": {"config": "tuple[1]", "0": size},
        "output": {"config": "tensor", "tensor": "size=(5, 8), dtype=torch.float32"},
        "input_grad": {"config": "tuple[1]", "0": "<class 'NoneType'>"},
        "output_grad": {"config": "tuple[1]", "0": "size=(5, 8), dtype=torch.float32"}}
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
    assert (out_of(tmp_path) / "module_struct.json").read_text().startswith('{\n  "0:fc1"')


def test_the_latest_profile_has_a_structure_of_each_rank(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters())
    with watched(tmp_path, print_struct=True, profile="latest") as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        with pytest.raises(Exception, match="print model struct"):
            train(model, optimizer)
    path = out_of(tmp_path) / "module_struct" / "rank0" / "module_struct.json"
    assert list(json.loads(path.read_text())) == ["0:fc1", "0:fc2", "0:"]


def test_micro_batches_and_both_parameters(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched(tmp_path, wg_distribution=True, param_distribution=True, param_updated=True,
                 monitor_mbs_grad=True, ops=["norm"], start_step=1, step_interval=2,
                 collect_times=2, ndigits="auto") as monitor:
        monitor.set_monitor(model, 2, optimizer)
        train(model, optimizer, steps=8, micro_batches=2)
    path = directory_of(tmp_path)
    assert {key[1] for key in rows_of(path, "grad_reduced")} == {1, 3}
    gradients = rows_of(path, "grad_unreduced")
    assert {key[1:] for key in gradients} == {(step, micro) for step in (1, 3) for micro in (0, 1)}
    reduced = rows_of(path, "grad_reduced")
    for name, step in reduced:
        assert gradients[name, step, 1] == reduced[name, step]
    updated = rows_of(path, "param_updated")
    assert updated.keys() == rows_of(path, "param_origin").keys() and not rows_of(path, "param")
    assert updated != rows_of(path, "param_origin")


class Shared(nn.Module):
    """One layer twice in a call, one left out at odd calls, keywords, names that collide."""

    def __init__(self) -> None:
        super().__init__()
        self.output_layer, self.norm_layer = nn.Linear(4, 4), nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.output_layer(self.output_layer(input=x))
        return self.norm_layer(x) if self.calls % 2 else x


def test_shared_layers_stale_rows_and_names(tmp_path: Path) -> None:
    model = Shared()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with watched(tmp_path, **{**EVERYTHING, "mg_direction": False}) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer, steps=2)
    path = directory_of(tmp_path)
    step0, step1 = ({key[0] for key in rows_of(path, "actv") if key[1] == step}
                    for step in (0, 1))
    twice = {f"output_layer{call}.{side}" for call in ("", "#1") for side in ("input", "output")}
    assert step0 == {*twice, "norm_layer.input", "norm_layer.output", ".input", ".output"}
    assert step1 == {*twice, ".input", ".output"}
    weights = {key[0] for key in rows_of(path, "param")}
    assert weights == {"weight", "bias", "norm_layer.weight", "norm_layer.bias"}
    stale = {key for key in rows_of(path, "grad_reduced") if key[1] == 1}
    assert {name for name, _ in stale} == {"weight", "bias"}


def test_api_and_own_tensors(tmp_path: Path) -> None:
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watched(tmp_path, **EVERYTHING, format="api") as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        expected = model(torch.randn(5, 4))
        expected.sum().backward()
        activations, gradients = monitor.generate_xy_metrics()
        assert set(activations) == {f"0:{name}.{side}:0/rank0/actv" for name in ("", "fc1", "fc2")
                                    for side in ("input", "output")}
        assert activations["0:.output:0/rank0/actv"]["norm"].item() == pytest.approx(
            expected.norm().item())
        assert all(tag.endswith("/actv_grad") for tag in gradients)
        optimizer.step()
        reduced, unreduced = monitor.generate_wgrad_metrics()
        weight = model.fc2.weight.grad
        assert reduced["0:fc2.weight/rank0/post_grad"]["max"].item() == weight.max().item()
        assert unreduced["0:fc2.weight/rank0/acc_grad"]["max"].item() == weight.max().item()
        assert monitor.directories == []
    assert not list(out_of(tmp_path).glob("*"))
    with watched(tmp_path / "own", ops=["norm"]) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        monitor.adhoc_check(torch.full((4,), 2.0), "fc1", "mask", [0], ["norm"])
        monitor.adhoc_check(torch.ones(4), "fc1", "elsewhere", [7], ["norm"])
        optimizer.step()
    assert rows_of(directory_of(tmp_path / "own"), "other") == {("fc1.mask", 0): {"norm": 4.0}}


def test_a_resumed_training_goes_on_in_its_directory(tmp_path: Path,
                                                     capfd: pytest.CaptureFixture) -> None:
    model = TwoLayers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"param_distribution": True, "ops": ["norm"], "step_count_per_record": 4}
    with watched(tmp_path, **options) as monitor:
        monitor.set_monitor(model, optimizer=optimizer)
        train(model, optimizer, steps=6)
    path = directory_of(tmp_path)
    time = path.name.partition("-rank")[0]
    with watched(tmp_path, **options, append_output=[time, time]) as monitor:
        monitor.set_monitor(model, optimizer=optimizer, start_iteration=3)
        train(model, optimizer, steps=4)
    assert [key[1] for key in rows_of(path, "param")] == [
        step for step in range(7) for _ in range(4)]
    assert directory_of(tmp_path) == path
    with watched(tmp_path, **options, append_output=["Jan01_00-00-00", "Jan01_00-00-01"]) as other:
        other.set_monitor(model, optimizer=optimizer)
        train(model, optimizer, steps=1)
        assert other.directories != [str(path)]
    assert "append_output: no directory of rank 0 between" in "".join(capfd.readouterr())
