"""plumb extract and op_generate: one recorded call as a program of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from device_server import device_environment
from precheck_dumps import Dump, integer, rows, small_model, tensor
from recording import PLUMB, config, run
from warm_interpreter import spoiled_python, warm_python


def plumb(*words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PLUMBLINE_PYTHON": warm_python(), **options.pop("env", {})}
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, timeout=300,
                          check=False, env=environment, **options)


# Where plumbline cannot be imported.
PYTEST = """
import os, sys
import torch
sys.modules["plumbline"] = None
import pytest
os.environ.update(pair.split("=") for pair in sys.argv[2:])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""


def pytest_of(test: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(PYTEST, test, *map("=".join, environment.items()), check=False)


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


# Numbers of the printed table and where they stand in a row of the details.
NUMBERS = {"Error Rate": 9, "Error Balance": 10, "Root Mean Squared Error": 11,
           "Small Value Error Proportion": 12, "Maximum Relative Error": 13,
           "Mean Relative Error": 14, "Relative Error Ratio": 16, "Absolute Error Ratio": 17,
           "Maximum ULP Error": 18, "Mean ULP Error": 19, "ULP Error Proportion": 20,
           "Thousandth ratio": 7}


# Runs a program where PyTorch is imported already.
PROGRAM = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def expect_numbers_of_the_precheck(place: Path, dump: Path, call: str, **changes: Any) -> None:
    """What the program prints of each result stands in the details of the pre-check too."""
    details = {row[0]: row for row in rows(place / "out", "details")}
    for propagation in ("forward", "backward"):
        path = op_config(place, dump, api_name=call, propagation=propagation, **changes)
        done = plumb("op_generate", "-i", path, "-o", place)
        assert done.returncode == 0, done.stderr
        ran = subprocess.run([warm_python(), "-c", PROGRAM,
                              str(place / f"{call}.{propagation}.py"), "cpu"],
                             capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        tables = re.split(rf"^{re.escape(call)}\.\w+\.output\.(\d+) on cpu\n", ran.stdout,
                          flags=re.MULTILINE)[1:]
        assert tables, ran.stdout
        for number, table in zip(tables[::2], tables[1::2], strict=True):
            row = details[f"{call}.{propagation}.output.{number}"]
            printed = dict(re.findall(r"^  (\S.*?)  +(.*)$", table, re.MULTILINE))
            numbers = {name: float(printed[name]) for name in NUMBERS.keys() & printed.keys()}
            assert numbers == pytest.approx(
                {name: float(row[NUMBERS[name]]) for name in numbers}, rel=1e-5, abs=1e-13), row
            assert numbers and printed["Verdict"] == row[21], row


def test_op_generate_prints_the_numbers_of_the_pre_check(tmp_path: Path) -> None:
    half, plain, image = tensor([64, 600], "float16"), tensor([40, 50]), tensor([2, 3, 9, 9])
    calls: dict[str, tuple[list[Any], Any, dict[str, Any]]] = {
        "Functional.softmax.0": ([half], half, {"dim": integer(-1)}),
        "Functional.gelu.0": ([tensor([40, 50], "bfloat16")], tensor([40, 50], "bfloat16"), {}),
        "Torch.tanh.0": ([plain], plain, {}),
        "Torch.mul.0": ([half, half], half, {}),
        "Functional.relu.0": ([plain], plain, {}),
        "Functional.linear.0": ([plain], tensor([40, 7]), {"weight": tensor([7, 50])}),
        "Functional.conv2d.0": ([image, tensor([4, 3, 2, 2])], tensor([2, 4, 8, 8]), {})}
    dump = Dump()
    for name, (args, output, kwargs) in calls.items():
        dump.call(name, args, [output], [output], **kwargs)
    path = dump.write(tmp_path)
    done = plumb("precheck", path, "-o", tmp_path / "out", "--device_type", "cpu")
    assert done.returncode == 0, done.stderr
    for name in calls:
        expect_numbers_of_the_precheck(tmp_path, path, name)


def test_op_generate_takes_recorded_tensors(result: Path, tmp_path: Path) -> None:
    dump = result.parent / "good/out/step0/rank/dump.json"
    done = plumb("precheck", dump, "-o", tmp_path / "out", "--device_type", "cpu")
    assert done.returncode == 0, done.stderr
    for name in ("Tensor.pow.0", "Tensor.mean.0"):
        expect_numbers_of_the_precheck(tmp_path, dump, name, data_mode="real_data")
    without = op_config(tmp_path, small_model().write(tmp_path), data_mode="real_data")
    done = plumb("op_generate", "-i", without, "-o", tmp_path)
    assert done.returncode == 2 and "was recorded without tensors" in done.stderr, done.stderr


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


def test_random_calls_are_refused(tmp_path: Path) -> None:
    plain = tensor([4, 8], low=0.0)
    dump = small_model().call("Torch.bernoulli.0", [plain], [plain])
    dump.call("Functional.dropout.1", [plain], [plain], training={"type": "bool", "value": False})
    path = dump.write(tmp_path)
    for call in ("Torch.bernoulli.0", "Functional.dropout.0"):
        done = plumb("extract", path, call, "-o", tmp_path)
        assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr
        assert f"{call}: " in done.stderr and "draws random numbers" in done.stderr
    assert pytest_of(extracted(plumb("extract", path, "Functional.dropout.1", "-o",
                                     tmp_path))).returncode == 0


def test_what_a_call_changes_is_what_it_gives(tmp_path: Path) -> None:
    whole, part = tensor([4, 5]), tensor([2, 5])
    index = [{"type": "slice", "value": [0, 2, None]}, {"type": "slice", "value": [None] * 3}]
    dump = Dump().call("Tensor.__setitem__.0", [whole, index, part], [])
    test = extracted(plumb("extract", dump.write(tmp_path), "Tensor.__setitem__.0", "-o", tmp_path))
    assert pytest_of(test).returncode == 0
    text = test.read_text()
    assert "slice(0, 2, None)" in text
    test.write_text(text.replace("slice(0, 2, None)", "slice(1, 3, None)"))
    assert pytest_of(test).returncode == 1


def test_a_recording_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    small_model().write(tmp_path).rename(path)
    assert "passes here" in plumb("extract", path, "Torch.add.0", "-o", tmp_path).stdout
    path.write_text('{"format": "something else"}')
    done = plumb("extract", path, "Torch.add.0", "-o", tmp_path)
    assert done.returncode == 2 and "is neither a recording nor" in done.stderr


# ---- Paths of a comparison


def test_a_comparison_may_have_been_made_elsewhere(result: Path, tmp_path: Path) -> None:
    root = result.parent
    done = plumb("compare", "wrong/out/step0", "good/out/step0", "-o", "relative", cwd=root)
    assert done.returncode == 0, done.stderr
    (path,) = (root / "relative").glob("compare_result_*.json")
    assert json.loads(path.read_text())["target"] == "wrong/out/step0/rank/dump.json"
    done = plumb("extract", root / "relative", "-o", tmp_path, cwd=tmp_path)
    assert "fails here on cpu" in done.stdout, done.stderr
    # Of two that it may be none is taken.
    os.symlink(root / "good", tmp_path / "wrong")
    done = plumb("extract", root / "relative", "-o", tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and "which may be" in done.stderr, done.stderr
    path.rename(tmp_path / path.name)
    (tmp_path / "wrong").unlink()
    done = plumb("extract", tmp_path / path.name, "-o", tmp_path, cwd=tmp_path)
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    assert f"{path.name}: wrong/out/step0/rank/dump.json: no such file" in done.stderr, done.stderr


# ---- Calls that crash or hang, and disks that are full


def on_device(kind: str, *words: Any, seconds: float = 5) -> dict[str, Any]:
    """Arguments of Popen for a call of the test device that is wrong."""
    defect = json.dumps([{"op": "silu", "kind": kind}])
    environment = device_environment(PLUMBLINE_TEST_DEVICE_DEFECTS=defect)
    environment["PLUMBLINE_PYTHON"] = warm_python(path=environment["PYTHONPATH"])
    words = (PLUMB, "extract", *words, "Functional.silu.0", "--device", "testdev", "--api_timeout",
             seconds)
    return {"args": [str(word) for word in words], "env": environment, "text": True,
            "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def silu(directory: Path) -> Path:
    plain = tensor([8, 16])
    return Dump().call("Functional.silu.0", [plain], [plain]).write(directory)


@pytest.mark.parametrize(("kind", "said"), [
    ("abort", "crashes: signal 6 (Aborted)"), ("hang", "does not come back within 5 s")])
def test_a_call_that_does_not_return_is_told(tmp_path: Path, kind: str, said: str) -> None:
    done = subprocess.run(**on_device(kind, silu(tmp_path), "-o", tmp_path), check=False)
    text = extracted(done).read_text()
    assert done.stdout.startswith(f"Functional.silu.0: fails here on testdev: {said}\n"), done
    assert ("dump_traceback_later(5" in text) == (kind == "hang")
    assert pytest_of(tmp_path / "Functional.silu.0/test_Functional_silu_0.py",
                     DEVICE="cpu").returncode == 0


def test_a_crash_is_made_smaller(tmp_path: Path) -> None:
    done = subprocess.run(**on_device("abort", silu(tmp_path), "-o", tmp_path, "--reduce"),
                          check=False)
    assert re.search(r"reduced: 512 bytes of tensors to 4;", done.stdout), done
    assert sorted(path.name for path in (tmp_path / "Functional.silu.0").iterdir()) == [
        "reduced.pt", "test_Functional_silu_0.py"]


def test_the_whole_test_outlives_an_interrupt(tmp_path: Path) -> None:
    with subprocess.Popen(**on_device("hang", silu(tmp_path), "-o", tmp_path, "--reduce",
                                      "--time_limit", 100)) as process:
        assert process.stderr is not None
        note = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    test = tmp_path / "Functional.silu.0/test_Functional_silu_0.py"
    assert f"note: written: {test}; " in note
    assert sorted(path.name for path in test.parent.iterdir()) == ["data.pt", test.name]
    assert pytest_of(test, DEVICE="cpu").returncode == 0


def test_a_call_that_no_cpu_can_make_is_refused(tmp_path: Path) -> None:
    dump = silu(tmp_path)
    for code, said in (("os.abort()", "crashes: signal 6 (Aborted) there"),
                       ("time.sleep(100)", "does not come back within 5 s there"),
                       ("1 / 0", "raises there: ZeroDivisionError")):
        python = spoiled_python(tmp_path / "python", "import os, time, torch\n"
                                f"torch.nn.functional.silu = lambda *x, **y: {code}")
        done = plumb("extract", dump, "Functional.silu.0", "-o", tmp_path / "out", "--api_timeout",
                     5, env={"PLUMBLINE_PYTHON": str(python)})
        assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr
        assert said in done.stderr and not (tmp_path / "out").exists(), done.stderr


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    # The limit acts as a full disk does, with EFBIG instead of ENOSPC.
    python = spoiled_python(tmp_path / "python", "import resource\n"
                            "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, -1))")
    done = plumb("extract", small_model().write(tmp_path), "Torch.add.0", "-o",
                 tmp_path / "some/where", env={"PLUMBLINE_PYTHON": str(python)})
    assert done.returncode == 6 and done.stderr.count("\n") == 1, done.stderr
    assert "some/where/Torch.add.0/data.pt: cannot be written: File too large" in done.stderr
    assert not (tmp_path / "some").exists()


# ---- The rest


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
