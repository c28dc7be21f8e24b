"""plumb extract and op_generate: one recorded call as a program of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from precheck_dumps import Dump, integer, small_model, tensor
from recording import PLUMB, config, run


def plumb(*words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, timeout=300,
                          check=False, env=os.environ | {"PLUMBLINE_PYTHON": sys.executable})


def pytest_of(test: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the test where plumbline cannot be imported."""
    blocked = test.parent / "blocked"
    (blocked / "plumbline").mkdir(parents=True, exist_ok=True)
    (blocked / "plumbline" / "__init__.py").write_text("raise ImportError('not needed')\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        capture_output=True, text=True, timeout=300, check=False, cwd=test.parent,
        env=os.environ | {"PYTHONPATH": str(blocked)} | environment)


def extracted(done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0, done.stderr
    found = re.search(r"^test: (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return Path(found.group(1))


NORM = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(1)
x = torch.randn(4, 32, 16, requires_grad=True)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
variance = x.mul(0.02).pow(2).mean(-1, keepdim=True)
(x * torch.rsqrt(variance + float(sys.argv[2]))).sum().backward()
debugger.stop()
debugger.step()
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The comparison of a wrong epsilon with the right one."""
    place = tmp_path_factory.mktemp("extract")
    for name, epsilon in (("wrong", "1e-5"), ("good", "1e-6")):
        (place / name).mkdir()
        run(NORM, config(place / name, task="tensor"), epsilon)
    done = plumb("compare", place / "wrong/out/step0", place / "good/out/step0", "-o",
                 place / "result")
    assert done.stdout.startswith("first wrong call: Tensor.__add__.0.forward"), done.stdout
    return place / "result"


def test_the_named_call_fails_until_the_epsilon_is_right(result: Path, tmp_path: Path) -> None:
    done = plumb("extract", result, "-o", tmp_path)
    test = extracted(done)
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("Tensor.__add__.0: fails here on cpu: output.0 is off by 9"), first
    assert second == "  with the golden run's arguments it passes"
    assert pytest_of(test).returncode == 1
    assert pytest_of(test, SIDE="golden").returncode == 0


def test_the_command_that_compare_prints_works(result: Path, tmp_path: Path) -> None:
    root = result.parent
    done = plumb("compare", root / "wrong/out/step0", root / "good/out/step0", "-o", tmp_path)
    found = re.search(r"^  as a test: plumb (extract .*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    again = plumb(*found.group(1).split(), "-o", tmp_path / "tests")
    assert "fails here" in again.stdout, again.stderr
    (path,) = tmp_path.glob("compare_result_*.json")
    assert json.loads(path.read_text())["as_test"] == f"plumb {found.group(1)}"


def test_reduce_keeps_the_failure(result: Path, tmp_path: Path) -> None:
    done = plumb("extract", result, "-o", tmp_path, "--reduce", "--time_limit", "30", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    sizes = re.search(r"reduced: (\d+) bytes of tensors to (\d+); (\d+) smaller",
                      " ".join(answer["lines"]))
    assert sizes and int(sizes[2]) * 10 <= int(sizes[1]), answer
    assert answer["fails"] and answer["recorded_data"]
    test = Path(answer["test"])
    assert pytest_of(test).returncode == 1
    assert pytest_of(test, SIDE="golden").returncode == 0


def test_a_call_by_itself_passes_on_a_right_device(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    for call in ("Functional.linear.0", "Functional.softmax.0.forward", "Torch.topk.0"):
        done = plumb("extract", dump, call, "-o", tmp_path)
        test = extracted(done)
        assert "passes here on cpu" in done.stdout.splitlines()[0]
        assert "inputs: drawn from the recorded statistics" in done.stdout
        ran = pytest_of(test)
        assert ran.returncode == 0, ran.stdout
        assert "2 passed" in ran.stdout, ran.stdout  # forward and backward


@pytest.mark.parametrize(("words", "status", "message"), [
    (["missing.json", "Torch.add.0"], 3, "missing.json: cannot inspect: No such file"),
    (["DUMP", "Torch.adt.0"], 3, "did you mean Torch.add.0?"),
    (["DUMP"], 2, "say which call to extract"),
    (["DUMP", "Module.layer.Linear.forward.0"], 4, "is a module"),
    (["DUMP", "Torch.add.0", "--device", "nonsense"], 4, "nonsense"),
])
def test_wrong_use_is_one_line(tmp_path: Path, words: list[str], status: int,
                               message: str) -> None:
    dump = small_model().write(tmp_path)
    done = plumb("extract", *(dump if word == "DUMP" else word for word in words), "-o", tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def op_config(tmp_path: Path, dump: Path, **changes: Any) -> Path:
    values = {"dump_json_path": str(dump), "api_name": "Functional.softmax.0",
              "extract_api_path": str(tmp_path / "softmax.json"), "propagation": "forward",
              "data_mode": "random_data", "random_seed": 1234, "iter_times": 1} | changes
    path = tmp_path / "config_op.json"
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
    return path


@pytest.mark.parametrize("propagation", ["forward", "backward"])
def test_op_generate_writes_a_program_that_judges(tmp_path: Path, propagation: str) -> None:
    dump = small_model().write(tmp_path)
    done = plumb("op_generate", "-i", op_config(tmp_path, dump, propagation=propagation,
                                                iter_times=2), "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    script = tmp_path / f"Functional.softmax.0.{propagation}.py"
    ran = subprocess.run([sys.executable, str(script), "cpu"], capture_output=True, text=True,
                         timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("Verdict") == 2 and "pass" in ran.stdout
    assert "Compare Standard" in ran.stdout and "Maximum Relative Error" in ran.stdout


@pytest.mark.parametrize(("changes", "message"), [
    ({"random_seed": None}, '"random_seed"'), ({"propagation": "both"}, '"propagation"'),
    ({"iter_times": 0}, '"iter_times"'), ({"extract_api_path": None}, '"extract_api_path"'),
    ({"api_name": "Functional.none.0"}, "has no call Functional.none.0"),
])
def test_op_generate_says_what_is_wrong(tmp_path: Path, changes: dict[str, Any],
                                        message: str) -> None:
    dump = small_model().write(tmp_path)
    done = plumb("op_generate", "-i", op_config(tmp_path, dump, **changes), "-o", tmp_path)
    assert done.returncode != 0
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_op_generate_takes_one_call_per_file(tmp_path: Path) -> None:
    dump = Dump().call("Torch.add.0", [tensor([2]), integer(1)], [tensor([2])]).write(tmp_path)
    two = json.loads(dump.read_text())["data"] | {"Torch.add.1.forward": {}}
    (tmp_path / "softmax.json").write_text(json.dumps(two))
    path = op_config(tmp_path, dump, dump_json_path=None)
    done = plumb("op_generate", "-i", path, "-o", tmp_path)
    assert done.returncode == 2
    assert "one file holds one call" in done.stderr, done.stderr


def test_names_of_a_recording_are_no_code(tmp_path: Path) -> None:
    evil = {"dim=__import__('os').system('touch BROKEN'), b": integer(1)}
    dump = Dump().call("Functional.softmax.0", [tensor([2, 2])], [tensor([2, 2])], **evil)
    path = dump.write(tmp_path)
    done = plumb("extract", path, "Functional.softmax.0", "-o", tmp_path)
    assert done.returncode == 4 and "is no name of an argument" in done.stderr, done.stderr
    done = plumb("op_generate", "-i", op_config(tmp_path, path), "-o", tmp_path)
    assert done.returncode == 4 and "is no name of an argument" in done.stderr, done.stderr
    quotes = tmp_path / 'a"""\\N b'
    test = extracted(plumb("extract", small_model().write(quotes), "Torch.add.0", "-o", quotes))
    assert pytest_of(test).returncode == 0


def test_random_calls_give_what_was_expected(tmp_path: Path) -> None:
    done = plumb("extract", small_model().write(tmp_path), "Functional.dropout.0", "-o", tmp_path)
    assert pytest_of(extracted(done)).returncode == 0


def test_a_backward_that_cannot_run_is_said(tmp_path: Path) -> None:
    plain = tensor([2, 2], grad=False)
    dump = Dump().call("Functional.softmax.0", [plain], [plain], [plain], dim=integer(1))
    path = dump.write(tmp_path)
    done = plumb("extract", path, "Functional.softmax.0", "-o", tmp_path)
    assert "1 passed" in pytest_of(extracted(done)).stdout
    done = plumb("op_generate", "-i", op_config(tmp_path, path, propagation="backward"), "-o",
                 tmp_path)
    assert done.returncode == 4 and len(done.stderr.splitlines()) == 1, done.stderr


def test_another_type_is_judged_with_its_gradient(tmp_path: Path) -> None:
    for name, dtype in (("target", "bfloat16"), ("golden", "float32")):
        plain = tensor([4, 4], dtype, 0.5, 2.0)
        Dump().call("Functional.relu.0", [plain], [plain], [plain]).write(tmp_path / name)
    done = plumb("extract", tmp_path / "target/dump.json", "Functional.relu.0", "--golden",
                 tmp_path / "golden/dump.json", "-o", tmp_path)
    test = extracted(done)
    assert "missing" not in done.stdout
    assert pytest_of(test, SIDE="golden").returncode == 0, pytest_of(test, SIDE="golden").stdout
