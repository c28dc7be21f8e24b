"""NaN and Inf on a device: how often it is waited for, and that the same is found as on the CPU."""

from __future__ import annotations

import io
import json
import math
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch
from device_server import on_device
from torch import nn

WAITS = ("scalar_reads", "shape_reads", "copy_syncs", "stream_syncs", "event_syncs", "device_syncs")


def waits() -> int:
    """How often the host has waited for the device."""
    import plumbline_test_device
    counters = plumbline_test_device.counters()
    return sum(counters[name] for name in WAITS)


def recorded(folder: str, task: str, **options: Any) -> Any:
    """A debugger that records into `folder`; one per process."""
    from plumbline.pytorch import PrecisionDebugger
    path = Path(folder, "config.json")
    path.write_text(json.dumps({"task": task, "dump_path": folder + "/out", task: options}))
    return PrecisionDebugger(str(path))


@on_device
def test_a_search_waits_once_per_call() -> None:
    with tempfile.TemporaryDirectory() as folder:
        debugger = recorded(folder, "overflow_check", overflow_nums=-1)
        a, b = (torch.full((8,), value, device="testdev") for value in (2.0, 3.0))
        infinite = torch.full((8,), math.inf, device="testdev")
        debugger.start()
        before = waits()
        torch.addcmul(a, a, b)
        assert waits() - before == 1, "three inputs and an output"
        for _ in range(5):
            torch.mul(a, b)
        assert waits() - before == 6
        torch.div(a, torch.sub(b, b))
        a.mul_(infinite)
        torch.relu(a)
        debugger.stop()
        debugger.step()
        entries = json.loads(Path(folder, "out/step0/rank/dump.json").read_text())["data"]
        assert {name: entry["overflow_origin"] for name, entry in entries.items()} == {
            "Torch.div.0.forward": "origin", "Tensor.mul_.0.forward": "propagated",
            "Torch.relu.0.forward": "propagated"}
        data = Path(folder, "out/step0/rank/dump_tensor_data")
        before_call = torch.load(data / "Tensor.mul_.0.forward.input.0.pt")
        assert before_call.tolist() == [2.0] * 8 and before_call.device.type == "cpu"


@on_device
def test_flags_of_calls_and_gradients() -> None:
    with tempfile.TemporaryDirectory() as folder:
        debugger = recorded(folder, "nan_check")
        x = torch.tensor([0.0, 4.0], device="testdev", requires_grad=True)
        debugger.start()
        torch.sqrt(x).sum().backward()
        torch.ones(2, device="testdev").fill_(math.nan).add(torch.tensor([1, 2], device="testdev"))
        debugger.stop()
        debugger.step()
        entries = json.loads(Path(folder, "out/step0/rank/dump.json").read_text())["data"]
        flags = {name: entry["is_nan"] for name, entry in entries.items()}
        assert flags["Torch.sqrt.0.forward"] == 0 and flags["Torch.sqrt.0.backward"] == 1
        assert flags["Tensor.fill_.0.forward"] == 1 and flags["Tensor.add.0.forward"] == 1


class Deep(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> Any:
        for layer in self.layers:
            x = layer(x) * self.scale
        return x, torch.ones(0, device=x.device), x.new_ones(2, dtype=torch.int64)


def traced(folder: str, device: str, dtype: torch.dtype, scale: float) -> tuple[str, str, int]:
    """What a tracer prints and raises, and how often two forwards wait."""
    from plumbline.pytorch import OverflowTracer
    torch.manual_seed(0)
    model = Deep(scale).to(dtype).to(device)
    x = torch.ones(2, 4, dtype=dtype).to(device)
    OverflowTracer(model, max_frames_to_save=4, dump_path=folder)
    before, error = waits(), ""
    with redirect_stdout(io.StringIO()) as out:
        try:
            model(x)
            model(x)
        except ValueError as raised:
            error = str(raised)
    return out.getvalue(), error, waits() - before


@on_device
def test_a_tracer_waits_once_per_forward() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for dtype in (torch.float32, torch.float16):
            text, error, count = traced(folder, "testdev", dtype, 1.0)
            assert (text, error, count) == ("", "", 2), (text, error, count)
        for dtype, scale in ((torch.float32, 1e9), (torch.float16, 3e2), (torch.bfloat16, 1e9)):
            text, error, count = traced(folder, "testdev", dtype, scale)
            assert (text, error) == traced(folder, "cpu", dtype, scale)[:2]
            assert "Last 4 forward frames" in text and "has infs" in error and count == 1
