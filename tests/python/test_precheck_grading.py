"""What `plumb precheck` says of a device that is right, and of effects on arguments."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
from device_server import device_environment
from precheck_dumps import SECONDS, Dump, broken_python, integer, precheck, rows, statuses, tensor
from recording import PLUMB

TYPES = ["float32", "float16", "bfloat16"]
MASK = {"float32": -3.4028234663852886e38, "float16": -65504.0, "bfloat16": -3.3895313892515355e38}


def ones(*shape: int, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    """A tensor of ones, as a sum gives back."""
    return tensor(shape, dtype, 1.0, 1.0, **more)


def special(shape: list[int], high: float) -> dict[str, Any]:
    """A tensor with a NaN or an infinity."""
    return {**tensor(shape, grad=False), "Max": high, "Min": high if math.isnan(high) else -1.0,
            "Max_except_inf_nan": 1.0, "Min_except_inf_nan": -1.0}


def layer_norm(dump: Dump, number: int, dtype: str) -> None:
    x, weight = tensor([16, 32], dtype), ones(32, dtype=dtype)
    dump.call(f"Functional.layer_norm.{number}",
              [x, [integer(32)], weight, tensor([32], dtype, 0.0, 0.0)], [x],
              [ones(16, 32, dtype=dtype)])


def batch_norm(dump: Dump, name: str, dtype: str = "float32") -> Dump:
    x, plain = tensor([16, 8, 5], dtype), {"type": "float", "value": 0.1}
    statistics = [tensor([8], dtype, 0.5, 1.5, grad=False) for _ in range(2)]
    return dump.call(name, [x, *statistics, ones(8, dtype=dtype), tensor([8], dtype, 0.0, 0.0),
                            {"type": "bool", "value": True}, plain, plain], [x],
                     [ones(16, 8, 5, dtype=dtype)])


def healthy() -> Dump:
    """Calls that a right device may compute with nothing but rounding left."""
    dump = Dump()
    for number, dtype in enumerate(TYPES):
        x = tensor([16, 33], dtype, -8.0, 8.0)
        dump.call(f"Functional.softmax.{number}", [x], [x], [ones(16, 33, dtype=dtype)],
                  dim=integer(-1))
        layer_norm(dump, number, dtype)
        batch_norm(dump, f"Functional.batch_norm.{number}", dtype)
        y = tensor([16], dtype, 8.0, 60.0)
        dump.call(f"Torch.logsumexp.{number}", [tensor([16, 33], dtype, -8.0, 60.0), integer(-1)],
                  [y], [tensor([16], dtype, 0.5, 1.0)])
        scores = tensor([16, 33], dtype, MASK[dtype], 8.0)
        dump.call(f"Functional.softmax.{number + 3}", [scores], [scores],
                  [tensor([16, 33], dtype)], dim=integer(-1))
    narrow = tensor([64, 24], "bfloat16")
    dump.call("Functional.linear.0", [tensor([64, 48])], [narrow], [narrow],
              weight=tensor([24, 48]), bias=tensor([24]))
    for number, high in enumerate([math.nan, math.inf]):
        dump.call(f"Torch.mul.{number}", [special([8], high), tensor([8], grad=False)],
                  [tensor([8])])
    dump.call("Torch.max.0", [special([8], math.inf)], [tensor([])])
    dump.call("Torch.neg.0", [{**tensor([4]), "Max": math.nan, "Min": math.nan}], [tensor([4])])
    dump.call("Torch.mul.9", [tensor([4], low=0.0, high=0.0), tensor([4])], [tensor([4])])
    return dump


@pytest.fixture(scope="module")
def healthy_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory of a run over healthy() on the CPU, and what it said."""
    directory = tmp_path_factory.mktemp("healthy")
    done = precheck(healthy().write(directory), directory / "out")
    assert done.returncode == 0, done.stderr
    return directory / "out", done.stdout


def details_of(output: Path) -> dict[str, list[str]]:
    return {row[0]: row for row in rows(output, "details")}


def test_a_right_device_is_not_wrong(healthy_run: tuple[Path, str]) -> None:
    output, said = healthy_run
    wrong = [row for row in rows(output, "details") if row[21] == "error"]
    assert not wrong, wrong
    assert said.startswith("no wrong API in "), said


@pytest.mark.parametrize("number", range(3), ids=TYPES)
@pytest.mark.parametrize("api", ["softmax", "layer_norm", "batch_norm"])
def test_what_cancels_is_no_silent_pass(healthy_run: tuple[Path, str], api: str,
                                        number: int) -> None:
    row = details_of(healthy_run[0])[f"Functional.{api}.{number}.backward.output.0"]
    told = "Nothing but rounding is left" in row[22] and row[21] == "Warning"
    assert told or "which proves little" in row[22], row


def test_a_gradient_of_an_autocast_region_has_its_limits(healthy_run: tuple[Path, str]) -> None:
    row = details_of(healthy_run[0])["Functional.linear.0.backward.output.1"]
    assert row[2] == "torch.float32"
    assert "In a region of torch.bfloat16" in row[22], row


def test_a_region_of_float16_runs_in_it(tmp_path: Path) -> None:
    half = tensor([64, 24], "float16")
    dump = Dump().call("Functional.linear.0", [tensor([64, 48])], [half], [half],
                       weight=tensor([24, 48]))
    done = precheck(dump.write(tmp_path), tmp_path / "out", "--fail-on", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    row = details_of(tmp_path / "out")["Functional.linear.0.forward.output.0"]
    assert row[1:4] == ["torch.float64", "torch.float16", "(64, 24)"]
    assert float(row[18]) > 0, row  # in units of float16


def test_what_is_not_finite_is_said(healthy_run: tuple[Path, str]) -> None:
    found = details_of(healthy_run[0])
    row = found["Torch.mul.0.forward.output.0"]
    assert row[21] == "Warning" and "NaN on both sides at the same places" in row[22], row
    assert found["Torch.mul.1.forward.output.0"][21] == "pass"
    assert found["Torch.max.0.forward.output.0"][21] == "pass"  # one element, infinite
    row = found["Torch.neg.0.forward.output.0"]
    assert row[21] == "SKIP" and "All elements are NaN on both sides" in row[22], row
    assert statuses(healthy_run[0])["Torch.neg.0"][0] == "SKIP"


def test_zeros_are_counted(healthy_run: tuple[Path, str]) -> None:
    output, said = healthy_run
    row = details_of(output)["Torch.mul.9.forward.output.0"]
    assert row[21] == "pass" and "which proves little" in row[22], row
    assert "all zero on both sides, which proves little, such as " in said


# ---- Effects on arguments

def in_place() -> Dump:
    dump = batch_norm(Dump(), "Functional.batch_norm.0")
    plain = tensor([6, 4], grad=False)
    index = tensor([3], "int64", 0, 5, grad=False)
    dump.call("Tensor.add_.0", [plain, plain], [plain])
    dump.call("Tensor.__setitem__.0", [plain, index, tensor([3, 4], grad=False)], [])
    dump.call("Torch.add.0", [plain, plain], [plain], out=plain)
    return dump


def test_arguments_changed_in_place_are_compared(tmp_path: Path) -> None:
    done = precheck(in_place().write(tmp_path), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = details_of(tmp_path / "out")
    places = {name for name in found if ".forward.input." in name}
    assert places == {"Functional.batch_norm.0.forward.input.1",
                      "Functional.batch_norm.0.forward.input.2",
                      "Tensor.__setitem__.0.forward.input.0"}  # others are what is returned
    for name in places:
        assert found[name][21] == "pass" and found[name][22].startswith("Changed in place. ")
    assert statuses(tmp_path / "out")["Tensor.__setitem__.0"] == ("pass", " ")


def test_a_wrong_effect_on_an_argument_is_named(tmp_path: Path) -> None:
    python = broken_python(tmp_path, """
batch_norm, setitem = torch.nn.functional.batch_norm, torch.Tensor.__setitem__
def wrong(x, mean, variance, *rest):
    y = batch_norm(x, mean, variance, *rest)
    if x.dtype == torch.float32:
        variance *= 1.05
    return y
def forget(x, index, value):
    if x.dtype != torch.float32:
        setitem(x, index, value)
torch.nn.functional.batch_norm, torch.Tensor.__setitem__ = wrong, forget""")
    done = precheck(in_place().write(tmp_path), tmp_path / "out", "--python", python)
    assert done.returncode == 0, done.stderr
    found = details_of(tmp_path / "out")
    wrong = {name for name, row in found.items() if row[21] == "error"}
    assert wrong == {"Functional.batch_norm.0.forward.input.2",
                     "Tensor.__setitem__.0.forward.input.0"}
    row = found["Tensor.__setitem__.0.forward.input.0"]
    assert "Only the benchmark changed this argument in place." in row[22], row


def test_a_wrong_assignment_of_a_device_is_named(tmp_path: Path) -> None:
    defect = json.dumps([{"op": "_index_put_impl", "kind": "scale", "value": 1.05}])
    done = subprocess.run(
        [PLUMB, "precheck", in_place().write(tmp_path), "-o", tmp_path / "out", "--device_type",
         "testdev"], capture_output=True, text=True, timeout=SECONDS, check=False,
        env=device_environment(PLUMBLINE_TEST_DEVICE_DEFECTS=defect))
    assert done.stdout.startswith("wrong: Tensor.__setitem__.0 forward input.0: "), done.stdout
    assert {name for name, row in statuses(tmp_path / "out").items() if "error" in row} \
        == {"Tensor.__setitem__.0"}
