"""`run_overflow_check`: recorded calls again, on both sides. PyTorch is the truth."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from device_server import device_environment
from precheck_dumps import SECONDS, Dump, integer, tensor
from rank_dumps import INF, NAN, forward, write_step
from recording import PLUMB
from warm_interpreter import warm_python

HEADER = ["API Name", "Input Overflow", "CPU Overflow", "Device Overflow", "Result", "Message"]


def plumb(*words: Any) -> subprocess.CompletedProcess[str]:
    """Runs the program with the interpreter of the tests."""
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=SECONDS, env={**os.environ, "PLUMBLINE_PYTHON": warm_python()})


def check(dump: Path, output: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """Runs `run_overflow_check` on the CPU."""
    return plumb("msprobe", "-f", "pytorch", "run_overflow_check", "-api_info", dump, "-o", output,
                 "--device_type", "cpu", *words)


def rows(output: Path) -> dict[str, list[str]]:
    """The only result file, by call."""
    [path] = output.glob("overflow_check_result_*.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *found = csv.reader(file)
    assert header == HEADER
    return {row[0]: row[1:] for row in found}


def constant(value: float, dtype: str) -> dict[str, Any]:
    """A tensor whose elements all have one value, whatever is drawn."""
    return tensor([4], dtype, value, value, grad=False)


def test_an_overflow_of_the_numbers_is_normal(tmp_path: Path) -> None:
    dump = Dump()
    for i, dtype in enumerate(("float16", "bfloat16", "float32")):
        dump.call(f"Torch.exp.{i}", [constant(100.0, dtype)], [constant(INF, dtype)])
    done = check(dump.write(tmp_path), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path / "out")
    for i, dtype in enumerate((torch.float16, torch.bfloat16, torch.float32)):
        overflows = not torch.exp(torch.tensor(100.0).to(dtype)).isfinite().item()
        assert found[f"Torch.exp.{i}"][1:4] == [str(overflows)] * 2 + [
            "normal" if overflows else "not_reproduced"]
    assert done.stdout.startswith("no abnormal overflow in 3 calls (3 judged); normal: Torch.exp.0")


def test_an_overflow_on_the_way_is_abnormal(tmp_path: Path) -> None:
    """Squares of 1e20 leave float32 inside the call alone; their root is in range."""
    x = tensor([64], "float32", 1e20, 1e20, grad=False)
    dump = Dump().call("Torch.linalg.norm.0", [x], [constant(8e20, "float32")])
    dump.call("Torch.cumprod.0", [tensor([3], "float32", 1e20, 1e20, grad=False), integer(0)],
              [constant(INF, "float32")])
    dump.call("Torch.mul.0", [constant(1e30, "float32"), constant(1e30, "float32")],
              [constant(INF, "float32")])
    done = check(dump.write(tmp_path), tmp_path / "out", "--fail-on", "abnormal")
    found = rows(tmp_path / "out")
    on_device = not torch.linalg.norm(torch.full((64,), 1e20)).isfinite().item()
    assert found["Torch.linalg.norm.0"][2] == str(on_device)
    assert found["Torch.linalg.norm.0"][1] == "False"  # 8e20 fits float32
    assert found["Torch.linalg.norm.0"][3] == ("abnormal" if on_device else "not_reproduced")
    assert found["Torch.mul.0"][3] == found["Torch.cumprod.0"][3] == "normal"
    assert done.returncode == (1 if on_device else 0), done.stderr


@pytest.mark.parametrize("words", [["-j"], ["-j", "False"], ["-j", "true"], []])
def test_each_spelling_of_the_switch(tmp_path: Path, words: Sequence[str]) -> None:
    dump = Dump().call("Torch.exp.0", [constant(1.0, "float32")], [constant(3.0, "float32")])
    done = check(dump.write(tmp_path), tmp_path / "out", *words)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "out")["Torch.exp.0"][:4] == ["False"] * 3 + ["not_reproduced"]


def test_what_cannot_be_judged_is_never_good(tmp_path: Path) -> None:
    plain = constant(1.0, "float32")
    dump = Dump().call("Distributed.all_reduce.0", [plain], [plain])
    dump.call("NPU.npu_rms_norm.0", [plain, plain], [plain])
    dump.call("Torch.is_floating_point.0", [plain], [{"type": "bool", "value": True}])
    dump.call("Torch.matmul.0", [plain, tensor([3])], [plain])
    done = check(dump.write(tmp_path), tmp_path / "out")
    results = {name: row[3] for name, row in rows(tmp_path / "out").items()}
    assert results == {"Distributed.all_reduce.0": "skip", "NPU.npu_rms_norm.0": "skip",
                       "Torch.is_floating_point.0": "skip", "Torch.matmul.0": "error"}
    assert done.stdout.startswith("nothing judged: of 4 calls 3 skipped, 1 failed\n")


def test_inputs_that_overflow_already_are_said(tmp_path: Path) -> None:
    dump = Dump().call("Torch.neg.0", [constant(INF, "float32")], [constant(-INF, "float32")])
    done = check(dump.write(tmp_path), tmp_path / "out", "--json")
    [call] = json.loads(done.stdout)["calls"]
    assert call["input_overflow"] and call["result"] == "normal"
    assert "input_args.0 holds NaN or Inf" in call["message"]


def test_broken_dumps_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text('{"task": "statistics", "level": "L1"}')
    done = check(tmp_path / "dump.json", tmp_path / "out")
    assert done.returncode != 0 and done.stderr.count("\n") == 1
    assert check(tmp_path / "none.json", tmp_path / "out").returncode != 0
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "dump.json")
    assert "symbolic link" in check(link, tmp_path / "out").stderr
    empty = Dump().write(tmp_path / "empty")
    done = check(empty, tmp_path / "out2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nothing judged")
    assert rows(tmp_path / "out2") == {}


# ---- On a device

def check_on_device(dump: Path, output: Path, **environment: str) -> dict[str, list[str]]:
    """The rows of a run on the test device."""
    settings = device_environment(**environment)
    settings["PLUMBLINE_PYTHON"] = warm_python(path=settings["PYTHONPATH"])
    done = subprocess.run(
        [PLUMB, "run_overflow_check", dump, "-o", output, "--device_type", "testdev"],
        capture_output=True, text=True, check=False, timeout=SECONDS, env=settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return rows(output)


def test_a_nan_of_the_device_alone_is_abnormal(tmp_path: Path) -> None:
    one = constant(1.0, "float16")
    both = Dump().call("Torch.exp.0", [one], [one]).call("Torch.neg.0", [one], [one])
    defect = json.dumps([{"op": "exp", "kind": "nan"}])
    found = check_on_device(both.write(tmp_path), tmp_path / "out",
                            PLUMBLINE_TEST_DEVICE_DEFECTS=defect)
    assert found["Torch.exp.0"][1:] == ["False", "True", "abnormal",
                                        "output overflows on the device and not on the CPU"]
    assert found["Torch.neg.0"][1:4] == ["False", "False", "not_reproduced"]


def test_what_the_cpu_cannot_run_in_its_types_runs_in_float32(tmp_path: Path) -> None:
    """A call that was recorded under autocast has mixed types, which no kernel takes."""
    x, weight = tensor([2, 4], "float32", 300.0, 300.0), tensor([3, 4], "float16", 300.0, 300.0)
    dump = Dump().call("Functional.linear.0", [x, weight], [tensor([2, 3], "float16", INF, INF)])
    found = check_on_device(dump.write(tmp_path), tmp_path / "out")["Functional.linear.0"]
    assert found[:4] == ["False", "True", "True", "normal"], found  # 4 * 300 * 300 > 65504
    assert "rounded to that of the device" in found[4]


# ---- Hints of `plumb overflow`

def test_the_answer_says_how_near_overflow_was(tmp_path: Path) -> None:
    near = {**tensor([4], "float16", -1.0, 32752.0, grad=False)}
    step = write_step(tmp_path / "step0", {"rank0": [
        forward(f"Torch.add.{i}.forward", [near], [near]) for i in range(4)
    ] + [forward("Torch.mul.0.forward", [near, near], [tensor([4], "float16", INF, INF)])]})
    done = plumb("overflow", step, "-o", tmp_path / "out")
    lines = done.stdout.splitlines()
    assert "  operand: input_args.0: float16 in [-1, 32752], 2^1 below the largest, 65504" in lines
    assert ("  before it: Torch.add.1.forward, Torch.add.2.forward, Torch.add.3.forward") in lines
    first = json.loads(plumb("overflow", step, "-o", tmp_path / "out", "--json").stdout)["first"]
    assert [operand["log2_to_overflow"] for operand in first["operands"]] == [1.0, 1.0]
    assert first["previous"] == [f"Torch.add.{i}.forward" for i in (1, 2, 3)]


def test_a_replay_without_tensors_says_so(tmp_path: Path) -> None:
    step = write_step(tmp_path / "step0", {"rank0": [
        forward("Torch.log.0.forward", [tensor([4])], [tensor([4], "float32", NAN, NAN)])]})
    done = plumb("overflow", step, "-o", tmp_path / "out", "--replay")
    assert done.returncode == 0, done.stderr
    assert "not run again: " in done.stdout and "no tensors were saved" in done.stdout


def test_a_replay_in_a_wider_type(tmp_path: Path) -> None:
    """60000 + 60000 leaves float16, and neither bfloat16 nor float32."""
    near = {**tensor([4], "float16", 60000.0, 60000.0, grad=False),
            "data_name": "Torch.add.0.forward.input.0.pt"}
    step = write_step(tmp_path / "step0", {"rank0": [
        forward("Torch.add.0.forward", [near, near], [tensor([4], "float16", INF, INF)])]})
    path = step / "rank0" / "dump.json"
    document = json.loads(path.read_text())
    data = step / "rank0" / "dump_tensor_data"
    data.mkdir()
    path.write_text(json.dumps({**document, "task": "tensor", "dump_data_dir": str(data)}))
    torch.save(torch.full((4,), 60000.0, dtype=torch.float16), data / near["data_name"])
    done = plumb("overflow", step, "-o", tmp_path / "out", "--replay")
    assert "  in bfloat16: stays finite" in done.stdout.splitlines(), done.stdout + done.stderr
    assert "  in float32: stays finite" in done.stdout.splitlines()
