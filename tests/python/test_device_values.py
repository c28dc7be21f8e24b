"""Values of tensors on a device: the host waits for none of them, and they are those of the CPU."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from device_server import device_environment, on_device
from recording import PLUMB
from torch import nn

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
          torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16,
            torch.uint32, torch.uint64)
COMPLEX = (torch.complex64, torch.complex128)
SLICES = [{"dim": 1, "begin": 1, "end": -1}, {"size": 16, "begin": 3}]


def counters() -> dict[str, int]:
    import plumbline_test_device
    return plumbline_test_device.counters()


def debugger_of(folder: str, task: str, level: str = "L1", **options: Any) -> Any:
    from plumbline.pytorch import PrecisionDebugger
    path = Path(folder, "config.json")
    path.write_text(json.dumps(
        {"task": task, "level": level, "dump_path": folder + "/out", task: options}))
    return PrecisionDebugger(str(path))


def entries(folder: str, step: int) -> dict[str, Any]:
    return dict(json.loads(Path(folder, f"out/step{step}/rank/dump.json").read_text())["data"])


def train(where: str, debugger: Any) -> list[torch.Tensor]:
    """Two steps of recording; the parameters behind them. Counters are those of the steps."""
    import plumbline_test_device
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=False)
    inputs = torch.randn(4, 8).to(where)
    plumbline_test_device.reset_counters()
    for _ in range(2):
        if debugger is not None:
            debugger.start(model=model)
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return [parameter.detach() for parameter in model.parameters()]


def files_of(folder: str, step: int) -> dict[str, bytes]:
    rank = Path(folder, f"out/step{step}/rank")
    text = f"step{step}/"
    return {str(path.relative_to(rank)): path.read_bytes().replace(text.encode(), b"")
            for path in sorted(rank.rglob("*")) if path.is_file() and path.name != ".run"}


@pytest.mark.parametrize(("task", "options", "copies"), [
    ("statistics", {}, 2), ("statistics", {"summary_mode": "digest"}, 2),
    ("tensor", {"summary_mode": "digest"}, None), ("statistics", {"summary_mode": "md5"}, None),
    ("statistics", {"summary_mode": "xor"}, None), ("tensor", {}, None),
    ("tensor", {"summary_mode": "md5"}, None),
    ("statistics", {"slice": SLICES}, 2), ("tensor", {"slice": SLICES}, None)])
@on_device
def test_a_training_is_recorded_without_a_wait(
    task: str, options: dict[str, Any], copies: int | None
) -> None:
    import plumbline_test_device
    with tempfile.TemporaryDirectory() as folder:
        plumbline_test_device.set_deferred(True)
        untouched = train("testdev", None)
        debugger = debugger_of(folder, task, "mix", **options)
        watched, counted = [], []
        for where in ("testdev", "cpu"):
            watched.append(train(where, debugger))
            counted.append(counters())
        assert counted[0]["syncs"] == 0
        assert counted[0]["unordered_accesses"] == counted[0]["unordered_frees"] == 0
        # Statistics: one copy per step, deferred; nothing else comes to the host.
        assert counted[0]["d2h_copies"] == counted[0]["deferred_copies"] > 0
        assert copies is None or counted[0]["d2h_copies"] == copies
        debugger._close()
        assert not list(Path(folder).rglob("dump_error_info.log"))
        for step in range(2):
            assert files_of(folder, step) == files_of(folder, step + 2)
        for one, other in zip(watched[0], untouched, strict=True):
            assert torch.equal(one.cpu().view(torch.int32), other.cpu().view(torch.int32))


def samples(dtype: torch.dtype) -> list[torch.Tensor]:
    """Tensors of every kind that a reduction may meet."""
    generator = torch.Generator().manual_seed(5)
    if dtype in INTEGERS:
        information = torch.iinfo(dtype)
        whole = torch.randint(-100 if dtype.is_signed else 0, 100, (6, 7, 3), generator=generator)
        ends = torch.tensor([0, min(information.max, 2**63 - 1), information.min])
        made = [whole.to(dtype), ends.to(dtype), ends[1].to(dtype), whole[0, 0, 0].to(dtype)]
    elif dtype is torch.bool:
        made = [torch.tensor(row) for row in ([True, False], [True, True], [False], True, False)]
    else:
        drawn = torch.randn(6, 7, 3, generator=generator, dtype=torch.float64)
        lacks = dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
        infinite = math.nan if lacks else math.inf
        special = torch.tensor([1.0, -2.0, 0.0, -0.0, math.nan, infinite, -infinite],
                               dtype=torch.float64)
        made = [drawn.to(dtype), special.to(dtype), special[:4].to(dtype), special[4:].to(dtype),
                special[4].to(dtype), special[1].to(dtype), special[[0, 5, 6]].to(dtype)]
        if dtype in COMPLEX:
            made += [torch.complex(drawn, drawn.flip(0)).to(dtype),
                     torch.complex(special, special.flip(0)).to(dtype)]
    return [*made, made[0].transpose(0, -1), made[0][::2], made[0][:0]]


def is_close(one: Any, other: Any, dtype: torch.dtype) -> bool:
    """Within one rounding of what is printed."""
    if not isinstance(one, float) or not isinstance(other, float):
        return type(one) is type(other) and one == other
    step = {torch.float16: 2**-10, torch.bfloat16: 2**-7, torch.float32: 2**-23}.get(dtype, 2**-22)
    return one == other or (one != one and other != other) or (
        abs(one - other) <= step * max(abs(one), abs(other), 1e-3))


@on_device
def test_every_dtype_has_the_statistics_of_the_cpu() -> None:
    with tempfile.TemporaryDirectory() as folder:
        debugger = debugger_of(folder, "statistics", summary_mode="digest")
        dtypes = (*FLOATS, *INTEGERS, *COMPLEX, torch.bool)
        made = [(dtype, sample) for dtype in dtypes for sample in samples(dtype)]
        for where in ("testdev", "cpu"):
            placed = [sample.to(where) for _, sample in made]
            for (_, sample), copy in zip(made, placed, strict=True):
                assert sample.shape == copy.shape
            debugger.start()
            before = counters()["syncs"]
            for tensor in placed:
                torch.clone(tensor)
            assert counters()["syncs"] == before
            debugger.stop()
            debugger.step()
        debugger._close()
        on_the_device, on_the_host = entries(folder, 0), entries(folder, 1)
        assert len(on_the_device) == len(made) and on_the_device.keys() == on_the_host.keys()
        for (dtype, sample), name in zip(made, on_the_device, strict=True):
            one, other = (found[name]["output"][0] for found in (on_the_device, on_the_host))
            assert one.keys() == other.keys() and len(one["md5"]) == 32, (dtype, sample)
            for key, value in one.items():
                exact = key not in ("Mean", "Norm")
                same = value == other[key] or (value != value and other[key] != other[key])
                assert same if exact else is_close(value, other[key], dtype), (
                    dtype, sample, key, value, other[key])


@on_device
def test_large_tensors_are_reduced_in_pieces() -> None:
    from plumbline.pytorch.device import statistics
    statistics._PIECE = 1000
    values = torch.randn(37, 5, 211, dtype=torch.float32)
    values[3, 2, 5] = math.inf
    values[30, 1, 7] = math.nan
    values[0, 0, :7] = 0
    row = torch.empty(statistics.COLUMNS, dtype=torch.float64, device="testdev")
    statistics.reduce_into(values.to("testdev").transpose(0, 2), row)
    wide = values.numpy().astype(np.float64)
    finite = wide[np.isfinite(wide)]
    wanted = [wide.size, 1, 1, 7, math.inf, finite.min(), finite.max(), finite.min()]
    assert row[:8].tolist() == wanted
    assert all(number != number for number in row[8:].tolist())
    statistics.reduce_into(values.nan_to_num(0, 0).to("testdev"), row)
    clean = np.nan_to_num(wide, nan=0, posinf=0)
    assert np.allclose(row[8:].tolist(), [clean.sum(), np.square(clean).sum()], rtol=1e-13)


@on_device
def test_streams_of_the_user_keep_their_order() -> None:
    with tempfile.TemporaryDirectory() as folder:
        debugger = debugger_of(folder, "statistics")
        side = torch.testdev.Stream()
        x = torch.arange(8.0, device="testdev")
        debugger.start()
        torch.add(x, 1)
        side.wait_stream(torch.testdev.current_stream())
        with side:
            torch.mul(x, 2)
        torch.testdev.current_stream().wait_stream(side)
        debugger.stop()
        debugger.step()
        debugger._close()
        counted = counters()
        assert counted["unordered_accesses"] == counted["unordered_frees"] == 0
        assert entries(folder, 0)["Torch.mul.0.forward"]["output"][0]["Max"] == 14.0


@on_device
def test_more_rows_than_a_table_and_more_bytes_than_the_budget() -> None:
    from plumbline import deliveries
    from plumbline.pytorch.device import late_values
    late_values._ROWS = 8
    late_values._MOST_UNDER_WAY = 2
    deliveries._MOST_BYTES = 256
    for task in ("statistics", "tensor"):
        if os.fork() == 0:  # one debugger per process
            with tempfile.TemporaryDirectory() as folder:
                debugger = debugger_of(folder, task)
                x = torch.arange(16.0, device="testdev")
                debugger.start()
                for number in range(40):
                    x = torch.add(x, number)
                torch.sum(torch.ones(100, device="testdev"))  # beyond the budget alone
                debugger.stop()
                debugger.step()
                debugger._close()
                found = entries(folder, 0)
                assert [found[f"Torch.add.{number}.forward"]["output"][0]["Max"]
                        for number in range(40)] == [15.0 + sum(range(number + 1))
                                                     for number in range(40)]
                assert found["Torch.sum.0.forward"]["output"][0]["Max"] == 100.0
            os._exit(0)
        assert os.wait()[1] == 0, task


def values_missing(folder: str) -> tuple[Any, str]:
    """The statistics of the last output, and what the log of losses says."""
    rank = Path(folder, "out/step0/rank")
    found = json.loads((rank / "dump.json").read_text())["data"]
    return found["Torch.add.0.forward"]["output"][0], (rank / "dump_error_info.log").read_text()


@on_device
def test_what_a_device_does_not_give_is_counted() -> None:
    with tempfile.TemporaryDirectory() as folder:
        debugger = debugger_of(folder, "statistics")

        def fail(event: Any) -> bool:
            raise RuntimeError("device lost")
        torch.testdev.Event.query = fail
        debugger.start()
        torch.add(torch.ones(4, device="testdev"), 1)
        debugger.stop()
        debugger.step()
        debugger._close()
        output, log = values_missing(folder)
        assert [output[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
        assert output["shape"] == [4]
        assert "values_dropped: 2 (the device did not give them: RuntimeError: device lost)" in log


@on_device
def test_work_that_is_captured_is_left_alone() -> None:
    import plumbline_test_device
    for task in ("statistics", "tensor"):
        if os.fork() == 0:  # one debugger per process
            with tempfile.TemporaryDirectory() as folder:
                debugger = debugger_of(folder, task)
                x = torch.ones(4, device="testdev")
                torch.testdev.is_current_stream_capturing = lambda: True
                plumbline_test_device.reset_counters()
                torch.add(x, 1)
                alone = plumbline_test_device.op_counts()
                debugger.start()
                plumbline_test_device.reset_counters()
                torch.add(x, 1)
                assert plumbline_test_device.op_counts() == alone
                assert counters()["d2h_copies"] == 0
                debugger.stop()
                debugger.step()
                debugger._close()
                output, log = values_missing(folder)
                assert output["Max"] is None and output["shape"] == [4]
                assert "tensors_unreadable: 2" in log and "captured into a graph" in log
            os._exit(0)
        assert os.wait()[1] == 0, task


_KILLED = """
import json, os, signal, sys, torch
from plumbline.pytorch import PrecisionDebugger
torch.testdev.Event.query = lambda event: False  # never over
debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=sys.argv[1] + "/out")
debugger.start()
torch.add(torch.ones(4, device="testdev"), 1)
debugger.stop()
debugger.step()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_before_the_values_come_leaves_marks(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False,
                           env=device_environment(), capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    recovered = subprocess.run([PLUMB, "recover", str(tmp_path / "out")], check=False,
                               capture_output=True, text=True)
    assert recovered.returncode == 0, recovered.stderr
    output, log = values_missing(str(tmp_path))
    assert output["Max"] is None and output["shape"] == [4]
    assert "values_dropped: 2 (the process ended before" in log
    # A comparison with a run that has the values does not pass it over.
    compared = subprocess.run(
        [PLUMB, "compare", str(tmp_path / "out/step0/rank"), str(tmp_path / "out/step0/rank"),
         "-o", str(tmp_path / "result")], check=False, capture_output=True, text=True)
    assert compared.stdout.startswith("not judged completely"), compared.stdout
