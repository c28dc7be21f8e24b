"""plumb precheck from a recording to its files, on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from precheck_dumps import (
    SECONDS,
    Dump,
    broken_python,
    integer,
    precheck,
    result_file,
    rows,
    small_model,
    statuses,
    tensor,
)
from recording import PLUMB
from warm_interpreter import warm_python

GOOD = ("pass", "pass")


def test_a_healthy_device_passes(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    done = precheck(dump, tmp_path / "out", "--sorted", fresh=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no wrong API in 5 calls ("), done.stdout
    assert statuses(tmp_path / "out") == {
        "Torch.add.0": GOOD, "Functional.linear.0": GOOD, "Functional.softmax.0": GOOD,
        "Torch.topk.0": GOOD, "Functional.dropout.0": GOOD}
    names = [row[0] for row in rows(tmp_path / "out", "details")]
    assert "Torch.add.0.forward.output.0" in names
    assert "Torch.topk.0.forward.output.1" in names
    # Both operands of add have a gradient; linear's keyword tensors come behind its input.
    assert "Torch.add.0.backward.output.1" in names
    assert "Functional.linear.0.backward.output.2" in names


def test_a_wrong_operator_is_named(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    python = broken_python(tmp_path, """
softmax = torch.nn.functional.softmax
def wrong(x, dim):
    return softmax(x, dim) * (1.02 if x.dtype == torch.float16 else 1)
torch.nn.functional.softmax = wrong""")
    done = precheck(dump, tmp_path / "out", "--fail-on", "error", "--python", python)
    assert done.returncode == 1, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("wrong: Functional.softmax.0 "), done.stdout
    assert "% of elements off by more than 1 %" in first
    assert statuses(tmp_path / "out")["Functional.softmax.0"][0] == "error"
    assert statuses(tmp_path / "out")["Functional.linear.0"] == GOOD


CRASH = "torch.nn.functional.celu = lambda *args, **kwargs: os.abort()"
HANG = "torch.nn.functional.celu = lambda *args, **kwargs: time.sleep(1000)"
# The device side has the recorded type.
CRASH_ON_DEVICE = """
celu = torch.nn.functional.celu
torch.nn.functional.celu = lambda x: os.abort() if x.dtype == torch.float32 else celu(x)"""
RAISE = """
def refuse(*args, **kwargs):
    raise RuntimeError("no kernel")
torch.nn.functional.celu = refuse"""


@pytest.mark.parametrize(("code", "cause"), [
    (CRASH, "crashed: the executor ended with signal 6 (Aborted)"),
    (HANG, "timeout: no answer within 15 s"),
    (RAISE, "cpu-failed: RuntimeError: no kernel")])
def test_a_bad_call_costs_one_row(tmp_path: Path, code: str, cause: str) -> None:
    dump = small_model().call("Functional.celu.0", [tensor([3])], [tensor([3])],
                              [tensor([3])]).write(tmp_path)
    done = precheck(dump, tmp_path / "out", "--api_timeout", "15", "--python",
                    broken_python(tmp_path, code))
    assert done.returncode == 0, done.stderr
    found = {row[0]: row[1:] for row in rows(tmp_path / "out")}
    assert found.pop("Functional.celu.0") == ["SKIP", "SKIP", cause]
    assert len(found) == 5 and all(tuple(row[:2]) == GOOD for row in found.values())
    assert f"skipped, {cause}".split(":")[0] in done.stdout


def test_a_call_that_only_the_device_cannot_run_is_in_the_first_line(tmp_path: Path) -> None:
    dump = small_model().call("Functional.celu.0", [tensor([3])], [tensor([3])]).write(tmp_path)
    done = precheck(dump, tmp_path / "out", "--fail-on", "skip", "--python",
                    broken_python(tmp_path, CRASH_ON_DEVICE))
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("failed on the device: 1; no wrong API in 5 of 6 calls (")
    assert lines[0].endswith(": 1 not judged (1 crashed)")
    assert lines[1].startswith("  as a test: plumb extract ")
    found = {row[0]: row[-1] for row in rows(tmp_path / "out")}
    assert found["Functional.celu.0"].startswith("crashed: on the device: the executor ended")
    # It is as bad as a wrong number.
    done = precheck(dump, tmp_path / "again", "--fail-on", "error", "--python",
                    broken_python(tmp_path, CRASH_ON_DEVICE))
    assert done.returncode == 1, done.stderr


def test_what_cannot_be_run_has_a_row_with_its_cause(tmp_path: Path) -> None:
    dump = small_model()
    dump.call("Distributed.all_reduce.0", [tensor([3])], [tensor([3])])
    dump.call("Torch.bernoulli.0", [tensor([3], low=0.0)], [tensor([3])])
    done = precheck(dump.write(tmp_path), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = {row[0]: row for row in rows(tmp_path / "out")}
    assert found["Distributed.all_reduce.0"][1:3] == ["SKIP", "SKIP"]
    assert found["Torch.bernoulli.0"][1:3] == ["SKIP", "SKIP"]
    assert found["Torch.bernoulli.0"][3].startswith("random:")
    assert precheck(dump.write(tmp_path), tmp_path / "two", "--fail-on",
                    "skip").returncode == 1


@pytest.mark.parametrize("command", [("precheck",), ("msprobe", "acc_check", "-api_info")])
def test_a_damaged_entry_costs_its_call(tmp_path: Path, command: tuple[str, ...]) -> None:
    dump = small_model(2)
    data = dump.document["data"] = json.loads(json.dumps(dump.document["data"]))  # shares nothing
    data["Torch.add.0.forward"]["input_args"][0]["shape"] = "[4, 8]"
    data["Functional.linear.0.forward"]["input_args"] = 7
    del data["Functional.softmax.0.forward"]["input_args"][0]["dtype"]
    data["Torch.topk.0.forward"]["input_args"][0]["shape"] = [-4, 8]
    data["Functional.dropout.0.backward"] = None
    text = dump.write(tmp_path).read_text()
    # And one that stands twice.
    (tmp_path / "dump.json").write_text(
        text.replace('"data": {', '"data": {"Torch.add.1.forward": {"input_args": []}, '))
    done = upstream(*command, tmp_path / "dump.json", "-o", tmp_path / "out", "--device_type",
                    "cpu", "--fail-on", "skip")
    assert done.returncode == (1 if command == ("precheck",) else 3), done.stderr
    found = {row[0]: row[1:] for row in rows(tmp_path / "out")}
    damaged = {name: row for name, row in found.items() if name.endswith(".0")}
    assert len(damaged) == 5 == len(found) - len(damaged)
    for row in damaged.values():
        assert "SKIP" in row[:2] and row[2].startswith("bad-argument: "), row
    assert "shape has the wrong type (expected a list, got a text)" in damaged["Torch.add.0"][2]
    assert damaged["Functional.dropout.0"][:2] == ["pass", "SKIP"]
    assert all(tuple(row) == GOOD for name, row in found.items() if name not in damaged)
    assert done.stderr.count("\n") == 1, done.stderr
    assert "1 entry has a name that the file had before, such as Torch.add.1.forward" in done.stderr


def test_files_have_upstreams_form(tmp_path: Path) -> None:
    half, plain, image = tensor([4, 8], "float16"), tensor([4, 8]), tensor([1, 3, 4, 4])
    dump = Dump().call("Functional.relu.0", [half], [half], [half])
    dump.call("Torch.add.0", [plain, plain], [plain], [plain])
    dump.call("Torch.matmul.0", [plain, tensor([8, 3])], [tensor([4, 3])], [tensor([4, 3])])
    dump.call("Functional.conv2d.0", [tensor([1, 2, 6, 6]), tensor([3, 2, 3, 3])], [image], [image])
    dump.call("Tensor.__getitem__.0", [plain, integer(1)], [tensor([8])], [tensor([8])])
    dump.call("Functional.dropout.0", [plain], [plain], [plain])
    dump.call("Torch.topk.0", [plain, integer(2)],
              [tensor([4, 2]), tensor([4, 2], "int64", 0, 7, grad=False)], [tensor([4, 2])])
    dump.call("Distributed.all_reduce.0", [plain], [plain])
    path, output = dump.write(tmp_path / "run"), tmp_path / "out"
    done = precheck(path, output, "--sorted", "--format", "csv")
    assert done.returncode == 0, done.stderr
    for kind in ("result", "details"):
        data, lines = result_file(output, kind).read_bytes(), rows(output, kind)
        assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\xef\xbb\xbf") == 1
        # Line breaks within a cell are bare.
        assert data.endswith(b"\r\n") and data.count(b"\r\n") == len(lines) + 1
        assert result_file(output, kind).stat().st_mode & 0o777 == 0o640
    assert {len(row) for row in rows(output, "details")} == {23}
    *judged, skipped = rows(output)
    assert [tuple(row[1:]) for row in judged] == [GOOD] * 7  # without a message
    assert skipped[:3] == ["Distributed.all_reduce.0", "SKIP", "SKIP"] and len(skipped) == 4
    assert [file.name for file in path.parent.iterdir()] == ["dump.json"]


def test_each_backward_is_judged_or_says_why(tmp_path: Path) -> None:
    plain, fixed = tensor([4, 8]), tensor([4, 8], grad=False)
    dump = Dump().call("Torch.max.0", [plain, integer(1)],
                       [tensor([4]), tensor([4], "int64", 0, 7, grad=False)], [tensor([4])])
    dump.call("Functional.linear.0", [fixed], [tensor([4, 3])], [tensor([4, 3])],
              weight=tensor([3, 8]))
    dump.call("Tensor.add_.0", [plain, plain], [plain], [plain])
    dump.call("Torch.mul.0", [fixed, fixed], [fixed], [plain])
    dump.call("Torch.add.0", [plain, plain], [plain], [plain], out=fixed)
    dump.call("Torch.exp.0", [plain], [plain], [plain])
    python = broken_python(tmp_path, """
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.exp()
    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("no gradient here")
torch.exp = Broken.apply""")
    done = precheck(dump.write(tmp_path), tmp_path / "out", "--sorted", "--python", python)
    assert done.returncode == 0, done.stderr
    found = {row[0]: row[1:] for row in rows(tmp_path / "out")}
    for name in ("Torch.max.0", "Functional.linear.0", "Tensor.add_.0"):
        assert found.pop(name) == ["pass", "pass"]
    assert {name: (row[0], row[1]) for name, row in found.items()} == dict.fromkeys(
        ("Torch.mul.0", "Torch.add.0", "Torch.exp.0"), ("pass", "SKIP"))
    assert found["Torch.mul.0"][2] == "backward-skipped: no input requires a gradient"
    assert found["Torch.add.0"][2].startswith("backward-skipped: the call writes into the argument")
    assert found["Torch.exp.0"][2] == "cpu-failed: RuntimeError: no gradient here"
    details = {row[0]: row[21] for row in rows(tmp_path / "out", "details")}
    assert details["Functional.linear.0.backward.output.0"] == "SKIP"  # needs no gradient
    assert details["Functional.linear.0.backward.output.1"] == "pass"
    assert details["Tensor.add_.0.backward.output.1"] == "pass"
    assert details["Torch.exp.0.forward.output.0"] == "pass"
    assert details["Torch.exp.0.backward.output.0"] == "SKIP"


def test_what_a_reference_function_refuses_is_a_row_that_names_it(tmp_path: Path) -> None:
    def text(value: str) -> dict[str, Any]:
        return {"type": "str", "value": value}

    heads = tensor([1, 2, 3, 4])
    calls: dict[str, tuple[list[Any], str]] = {
        "NPU.npu_swiglu.0": ([tensor([2, 3])], "x: dimension 1 of shape (2, 3)"),
        "NPU.npu_confusion_transpose.0": (
            [tensor([2, 2]), [integer(0), integer(2)], [integer(4)],
             {"type": "bool", "value": True}], "perm: 2"),
        "NPU.npu_fusion_attention.0": (
            [heads, heads, heads, integer(2), text("XYZ")], 'input_layout: "XYZ"'),
        "NPU.npu_fusion_attention.1": (
            [tensor([3, 2, 4])] * 3 + [integer(2), text("TND")], "actual_seq_qlen: is missing"),
        "NPU.npu_fusion_attention.2": (
            [tensor([1, 6, 3, 4]), *[tensor([1, 4, 3, 4])] * 2, integer(6), text("BNSD")],
            "head_num: 6 heads")}
    dump = Dump()
    for name, (args, _) in calls.items():
        dump.call(name, args, [tensor([2])])
    dump.call("NPU.npu_swiglu.1", [tensor([2, 4])], [tensor([2, 2])], axis=integer(1))
    dump.call("NPU.npu_swiglu.2", [tensor([2, 4])], [tensor([2, 2])])
    done = precheck(dump.write(tmp_path), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = {row[0]: row[1:] for row in rows(tmp_path / "out")}
    assert found["NPU.npu_swiglu.2"] == ["pass", " "]
    said = {name: part for name, (_, part) in calls.items()} | {
        "NPU.npu_swiglu.1": "unknown keyword axis"}
    for name, part in said.items():
        assert found[name][:2] == ["SKIP", "SKIP"] and part in found[name][2], found[name]


def sorted_files(output: Path) -> tuple[bytes, bytes]:
    """Both files, byte by byte."""
    return result_file(output).read_bytes(), result_file(output, "details").read_bytes()


def test_any_number_of_workers_gives_the_same_files(tmp_path: Path) -> None:
    dump = small_model(8).write(tmp_path)
    found = set()
    for workers in (1, 7, 64):
        output = tmp_path / str(workers)
        done = precheck(dump, output, "--sorted", "-n", workers, "-j", min(workers, 3))
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr  # of executors whose run is over
        found.add(sorted_files(output))
    assert len(found) == 1


def test_an_interrupt_ends_with_what_was_judged(tmp_path: Path) -> None:
    dump = small_model().call("Functional.celu.0", [tensor([3])], [tensor([3])]).write(tmp_path)
    output = tmp_path / "out"
    with subprocess.Popen(
            [PLUMB, "precheck", dump, "-o", output, "--device_type", "cpu", "--python",
             broken_python(tmp_path, HANG)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + SECONDS
        # On either side one call may wait behind the one that hangs.
        while not list(output.glob("*result*")) or len(rows(output)) < 3:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"--csv_path {result_file(output)} --device_type cpu " in errors
    # Verdicts of a broken interpreter go on with one of the same version.
    done = precheck(dump, output, "--csv_path", result_file(output), device="auto")
    assert done.returncode == 0, done.stderr
    assert len(rows(output)) == 6
    assert statuses(output)["Functional.celu.0"][0] == "pass"


def test_skipped_calls_are_run_again_if_asked_for(tmp_path: Path) -> None:
    dump = small_model().call("Functional.celu.0", [tensor([3])], [tensor([3])]).write(tmp_path)
    output = tmp_path / "out"
    precheck(dump, output, "--python", broken_python(tmp_path, RAISE))
    assert statuses(output)["Functional.celu.0"][0] == "SKIP"
    precheck(dump, output, "--csv_path", result_file(output))
    assert statuses(output)["Functional.celu.0"][0] == "SKIP"
    done = precheck(dump, output, "--csv_path", result_file(output), "--retry_skip")
    assert done.returncode == 0, done.stderr
    assert statuses(output)["Functional.celu.0"][0] == "pass"
    assert len(rows(output)) == 6


WRONG_LINEAR = """
linear = torch.nn.functional.linear
def wrong(x, weight, bias):
    return linear(x, weight, bias) + (0.5 if x.dtype == torch.float32 else 0)
torch.nn.functional.linear = wrong"""


def test_data_that_cannot_be_kept_costs_no_row(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    dump = small_model().write(tmp_path)
    python = broken_python(tmp_path, WRONG_LINEAR)
    monkeypatch.chdir("/proc")  # where nobody can make a directory
    done = precheck(dump, tmp_path / "out", "--save_error_data", "--python", python)
    assert done.returncode == 0, done.stderr
    assert "error data is incomplete: " in done.stdout + done.stderr
    names = [row[0] for row in rows(tmp_path / "out")]
    assert len(names) == len(set(names)) == 5
    assert statuses(tmp_path / "out")["Functional.linear.0"][0] == "error"


def test_data_of_a_wrong_call_can_be_loaded(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    dump = small_model().write(tmp_path)
    python = broken_python(tmp_path, WRONG_LINEAR)
    monkeypatch.chdir(tmp_path)
    done = precheck(dump, tmp_path / "out", "--save_error_data", "--python", python)
    assert done.returncode == 0, done.stderr
    stamp = result_file(tmp_path / "out").stem.rpartition("_")[2]
    saved = tmp_path / f"ut_error_data{stamp}"
    load = {path.name.removeprefix("Functional.linear.0."): torch.load(path, weights_only=True)
            for path in saved.glob("*.pt")}
    assert {path.name.split(".")[1] for path in saved.iterdir()} == {"linear"}
    given = load["forward.input.0.pt"], load["forward.input.weight.0.pt"], \
        load["forward.input.bias.0.pt"]
    device = torch.nn.functional.linear(*given) + 0.5
    torch.testing.assert_close(load["forward.output.device.0.pt"], device)
    bench = torch.nn.functional.linear(*(one.double() for one in given))
    torch.testing.assert_close(load["forward.output.bench.0.pt"], bench)
    # What the kept arguments give has the numbers of the row.
    numbers = next(row for row in rows(tmp_path / "out", "details")
                   if row[0] == "Functional.linear.0.forward.output.0")
    units = (device.double() - bench).abs() * 2.0 ** (23 - bench.abs().log2().floor())
    cosine = torch.nn.functional.cosine_similarity(device.double().flatten(), bench.flatten(), 0)
    assert [float(cell) for cell in (numbers[4], *numbers[18:20])] == pytest.approx(
        [float(cosine), float(units.max()), float(units.mean())], rel=1e-9)
    assert load["backward.input.0.pt"].dtype == torch.float64
    described = json.loads((saved / "Functional.linear.0.json").read_text())
    assert described["seed"] == 1234
    assert described["forward"]["status"] == "error"


UPSTREAM = ("msprobe", "-f", "pytorch")


def upstream(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          timeout=SECONDS, env={**os.environ, "PLUMBLINE_PYTHON": warm_python()})


@pytest.mark.parametrize("command", [
    (*UPSTREAM, "run_ut"), (*UPSTREAM, "multi_run_ut", "-n", "2"), ("msprobe", "acc_check"),
    ("msprobe", "multi_acc_check", "--num_splits=3", "-d", "0")])
def test_upstreams_commands_run(tmp_path: Path, command: tuple[str, ...]) -> None:
    dump = small_model().write(tmp_path)
    done = upstream(*command, "-api_info", dump, "-o", tmp_path / "out", "--device_type=cpu")
    assert done.returncode == 0, done.stderr
    assert set(statuses(tmp_path / "out").values()) == {GOOD}
    again = upstream(*command, f"--api_info_file={dump}", "-csv_path",
                     result_file(tmp_path / "out"), "--device_type", "cpu")
    assert again.returncode == 0, again.stderr
    assert len(rows(tmp_path / "out")) == 5


def test_upstreams_exit_statuses(tmp_path: Path) -> None:
    dump = small_model().write(tmp_path)
    link = tmp_path / "link.json"
    link.symlink_to(dump)
    run_ut, multi = (*UPSTREAM, "run_ut"), (*UPSTREAM, "multi_run_ut")
    assert upstream(*run_ut).returncode == 2
    assert upstream(*run_ut, "-api_info", dump, "-d", "0", "0").returncode == 2
    assert upstream(*run_ut, "-api_info", dump, "-d", "-1").returncode == 2
    done = upstream(*run_ut, "-api_info", dump, "--device_type", "cpu", "-d", "5")
    assert done.returncode == 2 and done.stderr == (
        "plumb precheck: -d: 5 with --device_type cpu (expected 0: the CPU is one device). Leave "
        "-d out; -n gives the number of processes\n"), done.stderr
    assert upstream(*multi, "-api_info", dump, "-n", "65").returncode == 2
    assert upstream(*run_ut, "-api_info", link).returncode == 1
    assert upstream(*run_ut, "-api_info", tmp_path / "none.json").returncode == 1
    assert upstream("msprobe", "-f", "mindspore", "run_ut", "-api_info", dump).returncode == 1
    done = upstream(*run_ut, "-api_info", dump, "-o", tmp_path / "out", "--device_type", "cpu",
                    "--fail_on", "error", "--python", broken_python(tmp_path, """
torch.add = lambda a, b: a - b if a.dtype == torch.float32 else a + b"""))
    assert done.returncode == 3, done.stdout + done.stderr


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    for text, said in (("{}", "data"), ("not JSON", "dump.json"),
                       (json.dumps({"framework": "pytorch", "level": "L1", "task": "statistics",
                                    "data": {"Foo.bar.0.sideways": {}}}), "Foo.bar.0.sideways")):
        (tmp_path / "dump.json").write_text(text)
        done = precheck(tmp_path / "dump.json", tmp_path / "out")
        assert done.returncode not in (0, 1), text
        assert said in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_an_empty_recording_gives_two_headers(tmp_path: Path) -> None:
    done = precheck(Dump().write(tmp_path), tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nothing judged")
    assert rows(tmp_path / "out") == [] == rows(tmp_path / "out", "details")
    assert result_file(tmp_path / "out").read_bytes().startswith(b"\xef\xbb\xbfAPI name,")


def test_an_absent_device_is_said(tmp_path: Path) -> None:
    # With a call that has its row before any device is asked.
    dump = small_model().call("Distributed.all_reduce.0", [tensor([3])], []).write(tmp_path)
    done = precheck(dump, tmp_path / "out", device="nonesuch")
    assert done.returncode == 4, done.stderr
    assert "nonesuch" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert list((tmp_path / "out").iterdir()) == []
    done = precheck(dump, tmp_path / "out", "--python", "/no/such/python")
    assert done.returncode == 3
    assert "/no/such/python" in done.stderr
    without = tmp_path / "without"
    without.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    without.chmod(0o755)
    done = precheck(dump, tmp_path / "out", "--python", without)
    assert done.returncode == 4, done.stderr
    assert "No module named 'plumbline'" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_the_json_answer(tmp_path: Path) -> None:
    done = precheck(small_model().write(tmp_path), tmp_path / "out", "--json")
    answer = json.loads(done.stdout)
    assert answer["calls"]["pass"] == 5
    assert answer["device"] == "cpu"
    assert answer["result_path"] == str(result_file(tmp_path / "out"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a dump.json and, in `out`, the files of its run on the CPU."""
    root = tmp_path_factory.mktemp("finished")
    done = precheck(small_model().write(root), root / "out", "--format", "csv")
    assert done.returncode == 0, done.stderr
    return root


def files_of(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output.iterdir()}


@pytest.mark.parametrize(("words", "said"), [
    (("--seed", "7"), "of inputs drawn otherwise (expected seed 1234, got 7). Go on with --seed "
                      "1234, or start anew"),
    (("npu",), "of another device (expected device cpu, got npu). Go on with --device_type cpu, or "
               "start anew"),
    (("--worker_threads", "2"), "expected worker_threads 1, got 2"),
    (("-f",), "of other calls (expected dedupe false, got true)")])
def test_results_of_another_run_are_not_continued(finished: Path, words: tuple[str, ...],
                                                  said: str) -> None:
    before = files_of(finished / "out")
    path = result_file(finished / "out")
    is_device = words == ("npu",)
    done = precheck(finished / "dump.json", finished / "out", "--csv_path", path,
                    *(() if is_device else words), device="npu" if is_device else "cpu")
    assert done.returncode == 2, done.stderr
    assert f"{path}: holds results " in done.stderr and said in done.stderr
    assert done.stderr.count("\n") == 1 and done.stdout == ""
    assert files_of(finished / "out") == before


def test_results_of_another_recording_are_not_continued(finished: Path, tmp_path: Path) -> None:
    # The same names of calls, other ranges.
    text = (finished / "dump.json").read_text().replace('"Max": 1.0', '"Max": 2.0')
    (tmp_path / "dump.json").write_text(text)
    before = files_of(finished / "out")
    done = precheck(tmp_path / "dump.json", tmp_path / "out", "--csv_path",
                    result_file(finished / "out"))
    assert done.returncode == 2, done.stderr
    assert f"of {finished / 'dump.json'}, got " in done.stderr, done.stderr
    assert f"of {tmp_path / 'dump.json'}). Name the dump.json of that run" in done.stderr
    assert files_of(finished / "out") == before


def test_a_finished_run_is_told_again(finished: Path) -> None:
    done = precheck(finished / "dump.json", finished / "out", "--csv_path",
                    result_file(finished / "out"), "--format", "csv", device="auto")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no wrong API in 5 calls (14 outputs judged; 5 calls by an "
                                  "earlier run)\n"), done.stdout


@pytest.mark.parametrize(("kind", "cut", "again"), [
    ("details", "Functional.dropout.0.", 2), ("details", "Torch.topk.0.backward", 2),
    ("result", "Torch.add.0,", 1), ("result", "Functional.dropout.0,", 1)])
def test_rows_cut_by_hand_are_told_and_written_again(finished: Path, tmp_path: Path, kind: str,
                                                     cut: str, again: int) -> None:
    for path in (finished / "out").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    first = precheck(finished / "dump.json", tmp_path, "--csv_path", result_file(tmp_path),
                     "--sorted", "--format", "csv")
    assert (first.returncode, first.stderr) == (0, "")
    whole = {kind: result_file(tmp_path, kind).read_bytes() for kind in ("result", "details")}
    left = [line for line in whole[kind].splitlines(keepends=True)
            if not line.startswith(cut.encode())]
    result_file(tmp_path, kind).write_bytes(b"".join(left))
    done = precheck(finished / "dump.json", tmp_path, "--csv_path", result_file(tmp_path),
                    "--sorted", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1 and "run again" in done.stderr, done.stderr
    assert f"{cut.split('.0')[0]}.0" in done.stderr
    assert f"; {5 - again} calls by an earlier run)" in done.stdout, done.stdout
    assert {kind: result_file(tmp_path, kind).read_bytes() for kind in whole} == whole


def test_results_without_their_run_are_taken_with_a_warning(finished: Path,
                                                            tmp_path: Path) -> None:
    for kind in ("result", "details"):
        path = result_file(finished / "out", kind)
        (tmp_path / path.name).write_bytes(path.read_bytes())
    done = precheck(finished / "dump.json", tmp_path, "--csv_path", result_file(tmp_path),
                    "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert "nobody can check that its results are of this recording" in done.stderr
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("words", [
    ("extract", "dump.json", "--time_limit"), ("precheck", "dump.json", "--api_timeout"),
    ("precheck", "dump.json", "--max_abs_err"), ("run_overflow_check", "dump.json",
                                                 "--api_timeout")])
@pytest.mark.parametrize("value", ["0", "nan", "inf", "-1", "1e999", "soon"])
def test_a_limit_is_a_number_above_0(words: tuple[str, ...], value: str) -> None:
    done = upstream(*words, value)
    assert done.returncode == 2
    assert words[2] in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert len(done.stderr) < 200, done.stderr
