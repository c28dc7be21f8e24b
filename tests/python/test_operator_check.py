"""`plumbline.check_operators()`: what it finds, that it changes nothing, what it writes."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from device_server import on_device
from small_disk import run_on_small_disk

import plumbline
from plumbline import _compare

ROOT = Path(__file__).resolve().parents[2]
RUN = Path(__file__).with_name("operator_check_run.py")
UPSTREAM = ROOT / "build/upstream/1.2.2/bin/python"
ERROR = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-14, "float64": 2.0**-14}
BALANCE = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-14, "float64": 2.0**-14}


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def llama(device: str, dtype: torch.dtype, **optimizer: Any) -> tuple[Any, Any, Any]:
    """A model of two layers, its optimiser and its texts."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        attention_dropout=0.1, attn_implementation="eager")
    model = LlamaForCausalLM(config).to(device=device, dtype=dtype)
    texts = torch.randint(2, 64, (4, 16)).to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, eps=1e-3, **optimizer), texts


def trained(device: str, dtype: torch.dtype, check: dict[str, Any] | None,
            **optimizer: Any) -> tuple[list[bytes], Any]:
    """Every bit of two steps: losses, weights, moments, random state; and the check."""
    model, adam, texts = llama(device, dtype, **optimizer)
    bits: list[torch.Tensor] = []

    def steps() -> None:
        for _ in range(2):
            loss = model(input_ids=texts, labels=texts).loss
            loss.backward()
            bits.append(loss.detach())
            adam.step()
            adam.zero_grad()

    found = None
    if check is None:
        steps()
    else:
        with plumbline.check_operators(device=device, **check) as found:
            steps()
    states = [value for state in adam.state.values() for value in state.values()]
    bits += [*model.parameters(), *states, torch.get_rng_state()]
    if device == "testdev":
        bits.append(torch.testdev.get_rng_state())
    return [value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            for value in bits], found


@on_device
def test_training_on_a_device_is_the_same_bit_for_bit() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        for more in ({"foreach": False}, {"foreach": True}):
            plain, _ = trained("testdev", dtype, None, **more)
            for workers in (0, 2):
                checked, found = trained("testdev", dtype, {"workers": workers}, **more)
                assert checked == plain, (dtype, more)
                assert found.ok and found.counts["passed"] > 300, found
                assert "random numbers" in found.reasons, "dropout is not checked"


def test_training_on_the_cpu_is_the_same_bit_for_bit() -> None:
    plain, _ = trained("cpu", torch.float32, None, foreach=True)
    checked, found = trained("cpu", torch.float32, {"workers": 1}, foreach=True)
    assert checked == plain
    assert found.ok and found.counts["passed"] > 300, found


DEFECTS = [("mm", "scale", 1.01), ("_softmax", "scale", 1.001), ("silu_backward", "scale", 1.01),
           ("rsqrt", "lost_carry", 0), ("embedding_dense_backward", "nan", 0),
           ("addcdiv_", "scale", 1.02), ("mul", "nan", 0)]


@on_device
def test_each_defect_of_a_device_is_named() -> None:
    import plumbline_test_device as device
    for op, kind, value in DEFECTS:
        model, adam, texts = llama("testdev", torch.float32, foreach=False)
        with device.inject(op, kind, value, times=1) as defect, \
                plumbline.check_operators(device="testdev") as found:
            # Gradients that are not too small for the limits of the rule.
            (model(input_ids=texts, labels=texts).loss * 1000).backward()
            adam.step()
        assert defect.hits == 1, op
        assert found.failed, op
        assert found.failed[0].name.rpartition("_")[0].rstrip("_") == op.rstrip("_"), found.failed
        assert found.answer.startswith(f"wrong: {found.failed[0].name}"), found.answer
        assert len(found.failed) == 1, f"what comes after {op} is right for what it gets"


@on_device
def test_operators_of_all_forms_are_checked() -> None:
    import plumbline_test_device as device
    x = torch.rand(8, 8, device="testdev")
    with device.inject("addmm", "scale", 1.1), device.inject("mul", "scale", 1.1), \
            device.inject("var_mean", "scale", 1.1), \
            plumbline.check_operators(device="testdev") as found:
        torch.addmm(x, x, x, out=torch.empty_like(x))
        x.mul_(x)  # one tensor, twice, and written
        torch._foreach_mul_([x, x.clone()], 2.0)
        torch.var_mean(x, dim=0)
        torch.mul(x.t(), x[0])
        x.t()
        torch.rand_like(x)
        torch.arange(5, device="testdev")
    names = [one.name for one in found.failed]
    assert {"addmm_1", "mul__1", "mul_1"} <= set(names), names
    assert any(name.startswith(("_foreach_mul_", "mul__2")) for name in names), names
    assert all(one.where.startswith("test_operator_check.py:") for one in found.failed)


def test_files_and_arrays(tmp_path: Path) -> None:
    a, b = torch.rand(3, 4), torch.rand(4, 5)
    with plumbline.check_operators(tmp_path / "out", device="cpu", dump="list", operators=["mm"],
                                   tag="t-1") as found:
        for _ in range(2):
            torch.mm(a, b)
        torch.topk(a, 2)
        torch.arange(4) + 1
    folder = Path(found.directory)
    assert folder.name.startswith("msprobe_t-1_rank0_")
    assert sorted(path.name for path in (folder / "npu").iterdir()) == [
        f"mm_{n}_{part}.npy" for n in (1, 2) for part in ("input.0", "input.1", "output")]
    assert sorted(path.name for path in (folder / "cpu").iterdir()) == [
        "mm_1_output.npy", "mm_2_output.npy"]
    assert numpy.array_equal(numpy.load(folder / "npu/mm_1_output.npy"), (a @ b).numpy())
    assert numpy.load(folder / "cpu/mm_1_output.npy").dtype == numpy.float64
    result, details = (rows_of(path) for path in found.files)
    assert list(result[0]) == ["API name", "Forward Test Success", "Backward Test Success",
                               "Message"]
    assert list(details[0]) == [
        "Npu Name", "Bench Dtype", "NPU Dtype", "Shape", "error_balance", "max_abs_diff",
        "max_abs_idx", "max_rel_diff", "max_rel_idx", "eb_thd", "error_thd", "Status", "Message"]
    by_name = {row["API name"]: row for row in result}
    assert by_name["mm_2_output"]["Forward Test Success"] == "True"
    assert by_name["mm_2_output"]["Backward Test Success"] == "Nan"
    assert by_name["add_1_output"]["Forward Test Success"] == "SKIP", "integers on the CPU"
    assert "no higher precision" in by_name["add_1_output"]["Message"]
    names = [row["Npu Name"] for row in details]
    assert "topk_1_output.forward.output.1" in names
    first = details[0]
    assert (first["NPU Dtype"], first["Bench Dtype"], first["Shape"]) == (
        "torch.float32", "torch.float64", "(3, 5)")
    assert len(first["error_balance"].partition(".")[2]) == 14


def test_workers_write_what_one_thread_writes(tmp_path: Path) -> None:
    texts = []
    for workers in (0, 1, 3):
        torch.manual_seed(1)
        with plumbline.check_operators(tmp_path, device="cpu", workers=workers,
                                       dump="all") as found:
            layer = torch.nn.Linear(16, 16)
            for _ in range(20):
                layer(torch.rand(4, 16)).relu_().sum().backward()
                layer.weight.data.mul_(0.5)  # what workers look at later has its values of now
        arrays = sorted(path.relative_to(found.directory) for path in
                        Path(found.directory).rglob("*.npy"))
        texts.append(([Path(path).read_text() for path in found.files], arrays,
                      [Path(found.directory, path).read_bytes() for path in arrays]))
    assert texts[0] == texts[1] == texts[2]


def pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Outputs of a device and of the CPU: right, off a little, off a lot, odd."""
    generator = torch.Generator().manual_seed(5)
    found = []
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for scale in (0.01, 1.0, 300.0):
            bench = torch.randn(7, 31, generator=generator, dtype=torch.float64) * scale
            for error in (0.0, 1e-6, 1e-3, 0.1):
                device = (bench * (1 + error)).to(dtype)
                found.append((device, bench.float() if dtype != torch.float64 else bench))
    whole = torch.arange(6)
    return [*found, (whole, whole), (whole, whole.flip(0)), (whole > 2, whole > 2),
            (whole > 2, whole > 3), (torch.rand(2, 3), torch.rand(3, 2)),
            (torch.rand(0, 3), torch.rand(0, 3)), (torch.tensor([1.0, torch.nan]), torch.ones(2))]


def by_numpy(device: torch.Tensor, bench: torch.Tensor) -> dict[str, Any]:
    """The rule for finite floats, in float64."""
    d, b = device.double().numpy().ravel(), bench.double().numpy().ravel()
    small = abs(b) < 1
    relative = (d - b) / (abs(b) + 2.0**-23)
    kind = str(device.dtype).removeprefix("torch.")
    found = {"error_balance": abs(numpy.where(small, d - b, relative).mean()),
             "max_abs_diff": max(abs(d - b)[small], default=0.0),
             "max_rel_diff": max(abs(relative)[~small], default=0.0)}
    found["Status"] = str(found["error_balance"] <= BALANCE[kind] and
                          max(found["max_abs_diff"], found["max_rel_diff"]) <= ERROR[kind])
    return found


UPSTREAM_PROGRAM = """
import json, sys, types, numpy, torch
sys.modules["prettytable"] = types.SimpleNamespace(PrettyTable=None)  # prints nothing here
from msprobe.pytorch.online_dispatch.single_compare import single_benchmark_compare_wrap
loaded = numpy.load(sys.argv[1])
found = []
for place in range(len(loaded.files) // 2):
    device, bench = (torch.from_numpy(loaded[f"{side}{place}"]) for side in "db")
    status, details = single_benchmark_compare_wrap(device, bench)
    found.append([bool(status), details])
print("ANSWER" + json.dumps(found, default=str))
"""


def judged(given: list[tuple[torch.Tensor, torch.Tensor]], folder: Path) -> list[dict[str, str]]:
    """The row of each output, natively."""
    native = _compare.OperatorCheck(str(folder), "", 0, ("OFF", []), 0)
    for pair in given:
        leaves = [[("", (t, str(t.dtype), list(t.shape), t.data_ptr()))] for t in pair]
        native.add(("mm", ""), [], *leaves)
    return rows_of(native.finish(0)["files"][1])


def test_the_rule_against_numpy(tmp_path: Path) -> None:
    given = pairs()
    rows = judged(given, tmp_path)
    for (device, bench), row in zip(given[:-7], rows[:-7], strict=True):
        expected = by_numpy(device, bench)
        assert row["Status"] == expected.pop("Status"), (row, expected)
        for key, value in expected.items():
            assert float(row[key]) == pytest.approx(value, rel=1e-9, abs=1e-13), key
    assert {row["Status"] for row in rows[:-7]} == {"True", "False"}
    assert [row["Status"] for row in rows[-7:]] == ["True", "False", "True", "False", "False",
                                                    "True", "False"]


def by_upstream(given: list[tuple[torch.Tensor, torch.Tensor]], folder: Path) -> list[Any]:
    """Status and details of each output, as release 1.2.2 has them."""
    path = folder / "pairs.npz"
    numpy.savez(path, **{f"{side}{place}": tensor.numpy() for place, pair in enumerate(given)
                         for side, tensor in zip("db", pair, strict=True)})
    done = subprocess.run([UPSTREAM, "-c", UPSTREAM_PROGRAM, path], capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("ANSWER"))
    found: list[Any] = json.loads(line.removeprefix("ANSWER"))
    return found


@pytest.mark.skipif(not UPSTREAM.is_file(), reason="upstream 1.2.2 is not installed")
def test_the_rule_against_upstream(tmp_path: Path) -> None:
    # Of 16 bits upstream takes the limits of float32, as it has raised them before; shapes it
    # flattens first.
    given = [(device, bench) for device, bench in pairs() if device.shape == bench.shape
             and device.numel() and device.dtype not in (torch.float16, torch.bfloat16)]
    limit, same = ERROR["float32"], 0
    upstream = by_upstream(given, tmp_path)
    for row, (status, details) in zip(judged(given, tmp_path), upstream, strict=True):
        assert [row["Bench Dtype"], row["NPU Dtype"]] == details[:2]
        same += row["Status"] == str(status)
        # It takes the absolute error from 1 on instead of below, and the sign of its balance.
        if row["Status"] == "True" and not status:
            assert details[4] > limit, (row, details)
        if row["Status"] == "False" and status:
            assert float(row["max_abs_diff"]) > limit or details[3] < 0, (row, details)
        if details[3]:
            assert float(row["error_balance"]) == pytest.approx(abs(details[3]), rel=2e-3, abs=1e-6)
        if details[6]:
            assert float(row["max_rel_diff"]) == pytest.approx(details[6], rel=2e-3, abs=1e-6)
    assert same > len(given) // 2, same


@pytest.mark.parametrize(("arguments", "text"), [
    ({"dump": "some"}, "dump: 'some' is unknown"),
    ({"dump": "all"}, "needs output="),
    ({"operators": ["mm"]}, "operators: needed with dump="),
    ({"output": "x", "dump": "list"}, "operators: needed with dump="),
    ({"device": "abacus"}, "device: 'abacus' is unknown"),
    ({"device": "meta"}, "device: 'meta' computes no values"),
    ({"device": "xpu"}, "device: 'xpu' is not to be had here"),
    ({"tag": "a/b"}, "tag: 'a/b'"),
    ({"workers": -1}, "workers: -1"),
    ({"workers": "two"}, "workers: 'two'"),
    ({"output": 5}, "output: 5"),
    ({"operators": 7, "output": "x", "dump": "list"}, "operators: 7"),
])
def test_wrong_arguments_are_one_line(arguments: dict[str, Any], text: str,
                                      tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError)) as error:
        plumbline.check_operators(**arguments)
    assert text in str(error.value) and "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_checked_is_no_pass_and_never_raises() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the program must not see an exception even so
        with plumbline.check_operators(device="cpu") as found:
            sparse = torch.eye(3).to_sparse()
            torch.sparse.mm(sparse, torch.rand(3, 2))
            torch.full((3,), torch.nan) * 2
            torch.rand(3).double() * 2
    assert found.counts["failed"] == 0
    assert found.counts["not checked"] >= 3, found.counts
    assert "every element is NaN on both sides" in found.reasons
    assert "the CPU has no higher precision for it" in found.reasons
    with plumbline.check_operators(device="cpu") as nothing:
        torch.rand(2)
    assert nothing.answer.startswith("nothing checked") and not nothing.ok
    with pytest.raises(RuntimeError, match="was used already"):
        nothing.__enter__()


def test_zeros_without_memory_are_not_checked() -> None:
    zeros = torch._efficientzerotensor((3,))  # what forward-mode derivatives are made of
    with plumbline.check_operators(device="cpu") as check:
        zeros * 2
        torch.func.jvp(lambda x: x / x.sum(), (torch.ones(3),), (torch.ones(3),))
    assert any("without memory" in reason for reason in check.reasons) and not check.failed


def test_numbers_and_vectors_that_differ_rightly_are_not_judged() -> None:
    with plumbline.check_operators(device="cpu") as check:
        assert (torch.full((4,), 0.3) == 0.3).all() and (torch.full((4,), 0.5) == 0.5).all()
        torch.linalg.eigh(torch.eye(3) + torch.ones(3, 3))
    assert not check.failed and "with any sign" in str(check.reasons), check.reasons
    assert "rounds decides" in str(check.reasons)
    assert check.counts["passed"] >= 1, "0.5 is the same number in float32"


FORKING = """
import os, sys, torch, plumbline
with plumbline.check_operators(sys.argv[1], device="cpu", workers=int(sys.argv[2])) as check:
    torch.ones(4) @ torch.ones(4)
    child = os.fork()
    if child == 0:
        for _ in range(50): torch.ones(4) @ torch.ones(4)
        os._exit(check._mode.left_alone == 0)
    assert os.waitpid(child, 0)[1] == 0
    torch.ones(4) @ torch.ones(4)
if os.fork() == 0: sys.exit(0)  # its objects go
os.wait()
print(check.counts["passed"], len(open(check.files[0]).readlines()))
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_forked_processes_go_on_unchecked(tmp_path: Path, workers: int) -> None:
    done = subprocess.run([sys.executable, "-c", FORKING, tmp_path, str(workers)], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 3", done.stdout


def test_a_closed_output_is_no_error_of_the_program(tmp_path: Path) -> None:
    code = ("import sys, torch, plumbline\nsys.stdout.close()\n"
            "with plumbline.check_operators(device='cpu'): torch.ones(4) @ torch.ones(4)\n"
            "open(sys.argv[1], 'w').close()")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "through"], text=True,
                          capture_output=True, check=False, timeout=60)
    assert (tmp_path / "through").exists(), done.stderr


def test_an_exception_of_the_program_goes_through() -> None:
    check = plumbline.check_operators(device="cpu")
    with pytest.raises(RuntimeError, match="mat1 and mat2"), check:
        torch.rand(3, 3) @ torch.rand(3, 3)
        torch.rand(3, 3) @ torch.rand(4, 4)
    assert check.counts["passed"] == 1


def test_killed_in_the_middle(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, RUN, "forever", tmp_path], text=True,
                               stdout=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline() == "running\n"
    (result,) = tmp_path.glob("*/accuracy_checking_result_*.csv")
    while result.stat().st_size < 4000 + random.randrange(2000):
        assert program.poll() is None
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    assert result.read_bytes().endswith(b"\r\n")
    rows = rows_of(str(result))
    assert len(rows) > 50 and {row["Forward Test Success"] for row in rows} <= {"True", "SKIP"}
    (details,) = tmp_path.glob("*/accuracy_checking_details_*.csv")
    judged = {row["Npu Name"].partition(".")[0] for row in rows_of(str(details))}
    assert judged >= {row["API name"] for row in rows if row["Forward Test Success"] == "True"}


def test_a_full_disk_costs_rows_and_not_the_training(tmp_path: Path) -> None:
    done = run_on_small_disk(RUN, tmp_path / "out", "256k", "full_disk", tmp_path / "out")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["gradient"] and found["whole"]
    assert found["counts"]["passed"] >= 80 and found["answer"].startswith("no wrong operator")
    assert found["warnings"] and "No space left" in found["warnings"][0], found["warnings"]


def test_the_example(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "examples/check_operators.py", tmp_path],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "plumbline: wrong: gelu_1 at check_operators.py:" in done.stdout


def test_upstreams_name() -> None:
    program = """
import sys, torch
from msprobe.pytorch.online_dispatch import PtdbgDispatch
for arguments, text in (({"dump_mode": "some"}, "dump_mode"), ({"api_list": "mm"}, "api_list"),
                        ({"tag": "a/b"}, "tag"), ({"process_num": -1}, "process_num"),
                        ({"debug": 1}, "debug"), ({"dump_path": None}, "dump_path")):
    try:
        PtdbgDispatch(**{"dump_path": sys.argv[1], **arguments})
        raise SystemExit(f"{arguments} was taken")
    except Exception as error:
        assert type(error).__name__ == "DispatchException", error
        assert text in str(error) and chr(10) not in str(error), error
with PtdbgDispatch(dump_mode="auto", dump_path=sys.argv[1], tag="t", api_list=None, debug=True,
                   process_num=2) as check:
    torch.nn.Linear(4, 4)(torch.rand(2, 4)).sum().backward()
assert check.counts["passed"] > 1 and check.files, check.counts
"""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(ROOT / "python/msprobe_alias"), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run([sys.executable, "-c", program, folder], check=False, timeout=120,
                              capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "addmm" in done.stdout and "msprobe_t_rank" in os.listdir(folder)[0]
