"""plumb precheck of MindSpore recordings: from a recording to its files, on the CPU."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import warm_interpreter

ROOT = Path(__file__).resolve().parents[2]
PLUMB = os.environ.get("PLUMB") or str(ROOT / ".venv/bin/plumb")
NETWORK = Path(__file__).with_name("ms_mint_network.py")
# What the interpreters of most tests have imported already.
MODULES = ("mindspore", "plumbline.precheck_run.mindspore", "plumbline.precheck_run.pytorch")
QUICK_START = {
    "task": "statistics", "level": "L1", "dump_data_dir": None, "framework": "mindspore",
    "data": {"Mint.where.0.forward": {
        "input_args": [
            {"type": "mindspore.Tensor", "dtype": "Bool", "shape": [1, 4096], "Max": False,
             "Min": False, "Mean": None, "Norm": None},
            {"type": "int", "value": 0}, {"type": "int", "value": 1}],
        "input_kwargs": {},
        "output": [{"type": "mindspore.Tensor", "dtype": "Int64", "shape": [1, 4096], "Max": 1.0,
                    "Min": 1.0, "Mean": 1.0, "Norm": 64.0}]}},
}
QUICK_RESULT = (b"\xef\xbb\xbfAPI Name,Forward Test Success,Backward Test Success,Message\r\n"
                b"Mint.where.0,pass,,\r\n")
QUICK_DETAILS = (b"\xef\xbb\xbfAPI Name,Bench Dtype,Tested Dtype,Shape,Cosine,MaxAbsErr,"
                 b"MaxRelativeErr,Status,Message\r\n"
                 b'Mint.where.0.forward.output.0,Int64,Int64,"(1, 4096)",1.0,0.0,0.0,pass,\r\n')


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs plumb; its executors are of this interpreter."""
    python = warm_interpreter.warm_python(MODULES)
    return subprocess.run(
        [PLUMB, *map(str, words)], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PLUMBLINE_PYTHON": python})


def file_in(directory: Path, kind: str) -> Path:
    """The one result or details file there."""
    (path,) = directory.glob(f"accuracy_checking_{kind}_*.csv")
    return path


def rows(directory: Path, kind: str) -> dict[str, list[str]]:
    """Rows of a file by their names."""
    with file_in(directory, kind).open(encoding="utf-8-sig", newline="") as file:
        return {row[0]: row[1:] for row in list(csv.reader(file))[1:]}


def write_dump(directory: Path, **data: Any) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "dump.json"
    path.write_text(json.dumps({**QUICK_START, "data": data}))
    return path


def tensor(*shape: int, dtype: str = "Float32", low: float = -1.0, high: float = 1.0) -> Any:
    return {"type": "mindspore.Tensor", "dtype": dtype, "shape": list(shape), "Max": high,
            "Min": low, "Mean": 0.0, "Norm": 1.0}


def call(*args: Any, **kwargs: Any) -> Any:
    return {"input_args": list(args), "input_kwargs": kwargs, "output": []}


def spoiled_python(directory: Path, code: str) -> Path:
    """An interpreter whose executors run `code`, which spoils something, before anything else."""
    return warm_interpreter.spoiled_python(directory / "spoiled_python", code, MODULES)


def record(directory: Path, task: str) -> Path:
    """The network's recording by plumbline."""
    directory.mkdir()
    subprocess.run([sys.executable, NETWORK, "plumbline.mindspore", task, directory], check=True,
                   capture_output=True, timeout=300)
    return directory / "dump/step0/rank/dump.json"


@pytest.fixture(scope="module")
def statistics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("ms") / "statistics", "statistics")


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("ms") / "tensor", "tensor")


@pytest.mark.parametrize("words", [
    ["msprobe", "-f", "mindspore", "run_ut", "-api_info"],
    ["msprobe", "acc_check", "-api_info"],
    ["msprobe", "-f", "mindspore", "multi_run_ut", "-d", "0", "1", "-api_info"],
    ["precheck"],
])
def test_the_quick_start_gives_the_two_rows(tmp_path: Path, words: list[str]) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps(QUICK_START))
    done = plumb(*words, dump, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert file_in(tmp_path / "out", "result").read_bytes() == QUICK_RESULT
    assert file_in(tmp_path / "out", "details").read_bytes() == QUICK_DETAILS


@pytest.mark.parametrize("framework", [{"framework": "MS"}, {}, {"framework": "paddle"}])
def test_the_framework_may_stand_behind_the_calls(tmp_path: Path, framework: Any) -> None:
    document = {key: value for key, value in QUICK_START.items() if key != "framework"}
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({**document, **framework}))
    done = plumb("precheck", dump, "-o", tmp_path / "out")
    if framework.get("framework") == "paddle":
        assert done.returncode == 2 and "paddle" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert file_in(tmp_path / "out", "result").read_bytes() == QUICK_RESULT


def test_a_trained_network_passes(statistics: Path, tmp_path: Path) -> None:
    done = plumb("precheck", statistics, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    result = rows(tmp_path / "out", "result")
    assert len(result) == 16
    assert {row[0] for row in result.values()} == {"pass"}, result
    assert {row[1] for row in result.values()} == {"pass"}, result
    details = rows(tmp_path / "out", "details")
    # The gradients of a list of tensors, which msprobe does not compute.
    assert details["Mint.cat.0.backward.output.1"][6] == "pass"
    assert details["Mint.matmul.0.backward.output.1"][2] == "(8, 6)"


def test_recorded_outputs_are_judged_without_mindspore(tensors: Path, tmp_path: Path) -> None:
    python = tmp_path / "python_without_mindspore"
    python.write_text(f"#!{sys.executable}\nimport runpy, sys\nsys.modules['mindspore'] = None\n"
                      "sys.argv = ['server']\n"
                      "runpy.run_module('plumbline.precheck_run.server', run_name='__main__')\n")
    python.chmod(0o755)
    done = plumb("precheck", tensors, "-o", tmp_path / "out", "--python", python)
    assert done.returncode == 0, done.stderr
    result = rows(tmp_path / "out", "result")
    assert len(result) == 16
    assert {tuple(row[:2]) for row in result.values()} == {("pass", "pass")}, result


def test_a_wrong_recorded_output_is_named(tensors: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tensors.parent, copy)
    path = copy / "dump_tensor_data/Mint.exp.0.forward.output.0.npy"
    np.save(path, np.load(path) * np.float32(1.001))
    (copy / "dump_tensor_data/Mint.mul.0.forward.input.0.npy").unlink()
    done = plumb("precheck", copy, "-o", tmp_path / "out", "--fail-on", "error")
    assert done.returncode == 1, done.stderr
    assert "Mint.exp.0" in done.stdout.splitlines()[0]
    result = rows(tmp_path / "out", "result")
    assert [name for name, row in result.items() if "error" in row[:2]] == ["Mint.exp.0"]
    assert result["Mint.mul.0"][:2] == ["SKIP", "SKIP"]
    assert "missing-data" in result["Mint.mul.0"][2]


def test_a_wrong_operator_of_mindspore_is_named(statistics: Path, tmp_path: Path) -> None:
    python = spoiled_python(tmp_path, """from mindspore import mint
right = mint.nn.functional.relu
mint.nn.functional.relu = lambda x: right(x) * 1.01
""")
    done = plumb("precheck", statistics, "-o", tmp_path / "out", "--python", python)
    assert "MintFunctional.relu.0" in done.stdout.splitlines()[0], done.stdout
    result = rows(tmp_path / "out", "result")
    wrong = {name: row for name, row in result.items() if "error" in row[:2]}
    assert list(wrong) == ["MintFunctional.relu.0"]
    assert "is not below 0.0001" in wrong["MintFunctional.relu.0"][2]


def test_a_call_that_aborts_costs_itself(statistics: Path, tmp_path: Path) -> None:
    python = spoiled_python(tmp_path, "import os\nfrom mindspore import mint\n"
                                      "mint.exp = lambda x: os.abort()")
    done = plumb("precheck", statistics, "-o", tmp_path / "out", "--python", python)
    assert done.returncode == 0, done.stderr
    result = rows(tmp_path / "out", "result")
    assert len(result) == 16
    skipped = {name: row for name, row in result.items() if "SKIP" in row[:2]}
    assert list(skipped) == ["Mint.exp.0"]
    assert "crashed" in skipped["Mint.exp.0"][2]


def test_what_cannot_be_checked_has_a_row_with_its_cause(tmp_path: Path) -> None:
    dump = write_dump(
        tmp_path, **{
            "Mint.add.0.forward": call(tensor(3, dtype="UInt16"), {"type": "int", "value": 1}),
            "Mint.no_such_api.0.forward": call(tensor(3)),
            "Mint.no_such_api.0.backward": {"input": [tensor(3)], "output": []},
            "Mint.linalg.inv.0.forward": call(tensor(3, 3)),
            "Tensor.size.0.forward": call(tensor(3)),
            "Tensor.abs.0.forward": call(tensor(3)),
            "Cell.net.Net.forward.0": call(tensor(3)),
            "Mint.add.1.forward": call(tensor(3), {"type": "int", "value": 1})})
    done = plumb("precheck", dump, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    result = rows(tmp_path / "out", "result")
    assert set(result) == {"Mint.add.0", "Mint.no_such_api.0", "Mint.linalg.inv.0",
                           "Tensor.size.0", "Mint.add.1"}
    assert result["Mint.add.1"] == ["pass", "", ""]
    assert result["Mint.add.0"][:2] == ["SKIP", ""] and "UInt16" in result["Mint.add.0"][2]
    assert result["Mint.no_such_api.0"][:2] == ["SKIP", "SKIP"]
    assert "not-in-inventory" in result["Mint.no_such_api.0"][2]
    assert all(row[0] == "SKIP" for name, row in result.items() if name != "Mint.add.1")
    done = plumb("msprobe", "-f", "mindspore", "multi_run_ut", "-api_info", dump, "-d", "0", "1",
                 "2", "-o", tmp_path / "three")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path / "three", "result") == result


def test_inputs_differ_by_argument_and_not_by_device(statistics: Path, tmp_path: Path) -> None:
    assert plumb("precheck", statistics, "-o", tmp_path / "one").returncode == 0
    done = plumb("msprobe", "-f", "mindspore", "multi_run_ut", "-api_info", statistics, "-d", "0",
                 "1", "2", "-o", tmp_path / "three")
    assert done.returncode == 0, done.stderr
    for kind in ("result", "details"):
        assert rows(tmp_path / "one", kind) == rows(tmp_path / "three", kind)


def test_a_run_goes_on_where_it_ended(statistics: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert plumb("precheck", statistics, "-o", whole).returncode == 0
    shutil.copytree(whole, cut)
    path = file_in(cut, "result")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:6]) + b"Mint.s")
    done = plumb("msprobe", "-f", "mindspore", "run_ut", "-api_info", statistics, "-csv_path", path)
    assert done.returncode == 0, done.stderr
    for kind in ("result", "details"):
        assert rows(cut, kind) == rows(whole, kind)
        with file_in(cut, kind).open(encoding="utf-8-sig") as file:
            assert file.read().count("API Name") == 1


def test_a_file_of_another_form_is_refused(statistics: Path, tmp_path: Path) -> None:
    assert plumb("precheck", statistics, "-o", tmp_path).returncode == 0
    path = file_in(tmp_path, "result")
    path.write_text(path.read_text(encoding="utf-8").replace("Backward Test Success", "Backward"))
    done = plumb("precheck", statistics, "--csv_path", path)
    assert done.returncode == 2
    assert "Backward Test Success" in done.stderr


def test_kept_calls_are_a_recording_that_fails_again(statistics: Path, tmp_path: Path) -> None:
    done = plumb("precheck", statistics, "-o", tmp_path / "out", "--save_error_data",
                 "--max_abs_err", "1e-12")
    assert done.returncode == 0, done.stderr
    errors = {name for name, row in rows(tmp_path / "out", "result").items() if "error" in row[:2]}
    assert "Mint.exp.0" in errors and "Mint.mul.0" not in errors
    kept = tmp_path / "out/dump.json"
    document = json.loads(kept.read_text())
    assert document["task"] == "tensor" and document["framework"] == "mindspore"
    assert {name.rpartition(".")[0] for name in document["data"]} == errors
    assert (tmp_path / "out/stack.json").exists()
    entry = document["data"]["Mint.matmul.0.forward"]["input_args"][0]
    assert np.load(tmp_path / "out/error_data" / entry["data_name"]).shape == (4, 8)
    again = plumb("precheck", kept, "-o", tmp_path / "again", "--max_abs_err", "1e-12")
    assert again.returncode == 0, again.stderr
    details = rows(tmp_path / "out", "details")
    for name, row in rows(tmp_path / "again", "details").items():
        assert row[:7] == details[name][:7], name


def taken(done: subprocess.CompletedProcess[str], out: Path) -> tuple[int, str, dict[str, bytes]]:
    """All that a run gives, without the time; its files are taken away."""
    def blank(text: bytes) -> bytes:
        return re.sub(rb"[\d.]+ s, [\d.]+ calls/s|(?<=_)\d{14}", b"T", text)

    files = {blank(str(path.relative_to(out)).encode()).decode(): blank(path.read_bytes())
             for path in out.rglob("*") if path.is_file() and path.suffix != ".shard"}
    assert not list(out.glob("error_data_*")), "of a part"
    shutil.rmtree(out)
    return done.returncode, blank(done.stdout.encode()).decode() + done.stderr, files


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_parts_together_are_the_one_run(request: pytest.FixtureRequest, tmp_path: Path,
                                        task: str) -> None:
    """Kept calls and their recording included; of a recording with tensors no device is used."""
    recorded = request.getfixturevalue("tensors" if task == "tensor" else task)
    out = tmp_path / "out"
    words = ["precheck", recorded, "-o", out, "--save_error_data", "--max_abs_err", "1e-12",
             "--fail-on", "error", "--sorted"]
    whole = taken(plumb(*words), out)
    assert whole[0] == 1 and whole[1].startswith("wrong: ")
    assert {"dump.json", "stack.json"} < set(whole[2])
    assert len([name for name in whole[2] if name.startswith("error_data/")]) > 5
    for index in (1, 0):
        done = plumb(*words, "--shard", f"{index}/2")
        assert done.returncode == 0 and done.stdout.startswith(f"shard {index} of 2: "), done.stderr
    assert taken(plumb("merge", out), out) == whole


def test_kept_calls_do_not_replace_the_recording(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, **{"Mint.exp.0.forward": call(tensor(50))})
    before = dump.read_bytes()
    done = plumb("precheck", dump, "-o", tmp_path, "--save_error_data", "--max_abs_err", "1e-12")
    assert done.returncode == 0, done.stderr
    assert dump.read_bytes() == before
    assert (tmp_path / "error_data/dump.json").exists()


def test_fused_attention_is_held_against_the_reference_function(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    query, key, value = draw.standard_normal((3, 1, 6, 8)).astype(np.float32)
    heads = [array.reshape(6, 2, 4).transpose(1, 0, 2) for array in (query[0], key[0], value[0])]
    scores = np.exp(heads[0] @ heads[1].transpose(0, 2, 1) * 0.5)
    attention = (scores / scores.sum(-1, keepdims=True)) @ heads[2]
    outputs = {"right": attention.transpose(1, 0, 2).reshape(1, 6, 8)}
    outputs["wrong"] = outputs["right"] * np.float32(1.01)
    (tmp_path / "dump_tensor_data").mkdir()

    def recorded(name: str, array: Any) -> Any:
        np.save(tmp_path / f"dump_tensor_data/{name}.npy", array)
        return {**tensor(*array.shape), "data_name": f"{name}.npy"}

    inputs = [recorded(name, array) for name, array in
              (("query", query), ("key", key), ("value", value))]
    data = {}
    for number, (name, array) in enumerate(outputs.items()):
        entry = call(*inputs, head_num={"type": "int", "value": 2},
                     scalar_value={"type": "float", "value": 0.5})
        entry["output"] = [recorded(name, array)]
        data[f"Functional.flash_attention_score.{number}.forward"] = entry
    dump = write_dump(tmp_path, **data)
    document = {**json.loads(dump.read_text()), "task": "tensor"}
    dump.write_text(json.dumps(document))
    done = plumb("precheck", dump, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    result = rows(tmp_path / "out", "result")
    assert result["Functional.flash_attention_score.0"][0] == "pass", result
    assert result["Functional.flash_attention_score.1"][0] == "error", result


def test_wrong_usage_is_one_line(statistics: Path, tmp_path: Path) -> None:
    other = plumb("msprobe", "-f", "pytorch", "run_ut", "-api_info", statistics, "-o", tmp_path)
    assert other.returncode == 1
    assert "mindspore" in other.stderr and other.stderr.count("\n") == 1
    devices = plumb("msprobe", "-f", "mindspore", "multi_run_ut", "-api_info", statistics, "-d",
                    "5000", "-o", tmp_path)
    assert devices.returncode == 2
    assert re.search(r"4095", devices.stderr)
    document = {**QUICK_START, "task": "structure"}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(document))
    task = plumb("precheck", path, "-o", tmp_path)
    assert task.returncode == 2
    assert "structure" in task.stderr
    absent = plumb("precheck", statistics, "--device_type", "npu", "-o", tmp_path)
    assert absent.returncode == 4
    assert "Ascend" in absent.stderr


def upstream(version: str, *jobs: list[object]) -> None:
    """Runs the real upstream tool in this interpreter; skips the test where it is missing."""
    found = list((ROOT / "build/upstream" / version).glob("lib/python*/site-packages"))
    if not found:
        pytest.skip(f"no upstream {version}; run tools/bootstrap.sh upstream")
    script = Path(__file__).with_name("run_upstream_precheck.py")
    texts = json.dumps([[str(word) for word in job] for job in jobs])
    done = subprocess.run([sys.executable, script, found[0], texts], check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", params=["1.2.2", "26.2.0"])
def upstreams(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """<task>/run is a recording by upstream, <task>/theirs what it says of it."""
    root = tmp_path_factory.mktemp("upstream")
    words = ["-f", "mindspore", "run_ut"] if request.param == "1.2.2" else ["acc_check"]
    jobs: list[list[object]] = []
    for task in ("statistics", "tensor"):
        (root / task / "run").mkdir(parents=True)
        jobs.append(["record", task, root / task / "run"])
        jobs.append([*words, "-api_info", root / task / "run/dump/step0/*/dump.json", "-o",
                     root / task / "theirs"])
    upstream(request.param, *jobs)
    return root


@pytest.mark.upstream
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_upstreams_recordings_and_verdicts(upstreams: Path, tmp_path: Path, task: str) -> None:
    (dump,) = (upstreams / task).glob("run/dump/step0/*/dump.json")
    assert plumb("precheck", dump, "-o", tmp_path / "ours").returncode == 0
    ours, theirs = rows(tmp_path / "ours", "result"), rows(upstreams / task / "theirs", "result")
    assert set(ours) == set(theirs)
    for name, row in theirs.items():
        # Upstream asks no gradient of the tensors in a list, and records none.
        in_list = name == "Mint.cat.0" and task == "statistics"
        expected = ["pass", "pass"] if in_list else row[:2]
        assert ours[name][:2] == expected, name
    details = rows(tmp_path / "ours", "details")
    for name, row in rows(upstreams / task / "theirs", "details").items():
        assert details[name][:3] == row[:3], name
        assert details[name][6] == row[6], name
        if task == "tensor":  # the same inputs: the same numbers
            for ours_text, theirs_text in zip(details[name][3:6], row[3:6], strict=True):
                assert float(ours_text) == pytest.approx(float(theirs_text), rel=1e-9, abs=1e-12)


@pytest.mark.upstream
def test_upstream_goes_on_with_our_files(statistics: Path, tmp_path: Path) -> None:
    assert plumb("precheck", statistics, "-o", tmp_path).returncode == 0
    path = file_in(tmp_path, "result")
    before = path.read_bytes()
    upstream("26.2.0", ["acc_check", "-api_info", statistics, "-csv_path", path])
    assert path.read_bytes() == before
