"""Level L2 with an API in `list`: a stand-in for the device's library hears when it is to dump."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor
from ms_recording import new_debugger

from plumbline.mindspore.graph_window import GraphWindow

OPEN = ["synchronize", "init", "set", "synchronize"]
CLOSE = ["synchronize", "end", "synchronize"]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    gelu = ms.ops.gelu
    library = types.SimpleNamespace(
        init_dump=lambda: said.append("init"), finalize_dump=lambda: said.append("end"),
        set_dump=lambda path: said.append("set") if json.loads(Path(path).read_text()) == {
            "dump": {"dump_list": [], "dump_path": str(Path(path).parent), "dump_mode": "all",
                     "dump_op_switch": "on"}} else said.append(path))
    monkeypatch.setitem(sys.modules, "msprobe.lib._msprobe_c", library)  # type: ignore[arg-type]
    monkeypatch.setattr(ms.runtime, "synchronize", lambda: said.append("synchronize"))

    def watched(x: Tensor) -> Tensor:
        said.append("call")
        x.register_hook(lambda grad: said.append("gradient of the input"))
        result = gelu(x)
        result.register_hook(lambda grad: said.append("gradient of the output"))
        return result

    monkeypatch.setattr(ms.ops, "gelu", watched)
    return said


def train(debugger: Any, steps: int = 1) -> list[list[float]]:
    way_back = ms.value_and_grad(lambda x: ms.ops.gelu(ms.ops.gelu(x * 2) * 3).sum())
    gradients = []
    for _ in range(steps):
        if debugger is not None:
            debugger.start()
        gradients.append(way_back(Tensor(np.ones(3, np.float32)))[1].asnumpy().tolist())
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return gradients


def test_the_device_dumps_while_that_call_runs(
    tmp_path: Path, log: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    plain = train(None)
    del log[:]
    gradients = train(new_debugger(tmp_path, task="tensor", level="L2",
                                   list=["Functional.gelu.1.forward"]), steps=2)
    assert gradients == plain * 2
    backward = ["gradient of the output", "gradient of the input"] * 2
    assert log == ["call", *OPEN, "call", *CLOSE, *backward] * 2
    assert (tmp_path / "out/step1/kernel_config.json").is_file()
    said = capfd.readouterr().out
    assert said.count("The kernel data of Functional.gelu.1.forward is dumped successfully.") == 2


def test_the_device_dumps_while_the_way_back_of_that_call_runs(
    tmp_path: Path, log: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    plain = train(None)
    del log[:]
    assert train(new_debugger(tmp_path, task="tensor", level="L2",
                              list=["Functional.gelu.0.backward"])) == plain
    nodes = log.count("init")  # gelu() is made of several operators here
    assert nodes > 0
    assert log == ["call", "call", "gradient of the output", "gradient of the input",
                   "gradient of the output", *[*OPEN, *CLOSE] * nodes, "gradient of the input"]
    assert capfd.readouterr().out.count("dumped successfully") == 1


def test_a_call_that_the_device_refuses_goes_on(
    tmp_path: Path, log: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(path: str) -> None:
        raise RuntimeError("no such operator")

    plain = train(None)
    sys.modules["msprobe.lib._msprobe_c"].set_dump = fails  # type: ignore[attr-defined]
    assert train(new_debugger(tmp_path, task="tensor", level="L2",
                              list=["Functional.gelu.1.forward"])) == plain
    said = capfd.readouterr().out
    assert ("The kernel dump does not support the Functional.gelu.1.forward API: RuntimeError: "
            "no such operator") in said
    assert "end" not in log and "dumped successfully" not in said


def test_what_is_wrong_is_refused_and_without_the_library_a_warning_says_so(
    tmp_path: Path, log: list[str], monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ValueError, match="the task must be set to tensor"):
        new_debugger(tmp_path, level="L2", list=["Functional.gelu.0.forward"])
    plain = train(None)
    del log[:]
    monkeypatch.setitem(sys.modules, "msprobe.lib._msprobe_c", None)
    debugger = new_debugger(tmp_path, task="tensor", level="L2",
                            list=["Functional.gelu.0.forward"])
    assert isinstance(debugger._window, GraphWindow) and train(debugger) == plain
    assert capfd.readouterr().out.count("kernel dump cannot be used") == 1
    assert "init" not in log
