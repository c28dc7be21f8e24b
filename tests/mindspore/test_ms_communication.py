"""Communication and MindTorch: fakes stand in for what a CPU alone does not have."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint
from mindspore._c_expression import CommHandle
from mindspore.communication import comm_func
from ms_recording import entries, new_debugger, read

from plumbline.debugger import DebuggerBase
from plumbline.mindspore.adapter import MindSporeAdapter


class Handle(comm_func.CommHandle):  # type: ignore[misc]
    """The sum is there when somebody has waited."""

    def __init__(self, tensor: Tensor) -> None:
        super().__init__()
        self.tensor, self.handle = tensor, self

    def wait(self) -> None:
        self.tensor.copy_(self.tensor * 2)


def in_place(tensor: Tensor, op: str = "sum", group: Any = None, async_op: bool = False) -> Any:
    if async_op:
        handle = comm_func.CommHandle()
        handle.handle = Handle(tensor)
        return handle
    tensor.copy_(tensor * 2)
    return None


def out_of_place(tensor: Tensor, async_op: bool = False) -> Any:
    if async_op:
        result = tensor.copy()
        return result, comm_func.CommHandle(Handle(result))
    return tensor + tensor, None


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(mint.distributed, "all_reduce", in_place)
    monkeypatch.setattr(mint.distributed, "recv", in_place)
    monkeypatch.setattr(comm_func, "all_reduce", out_of_place)
    monkeypatch.setattr(comm_func, "isend", lambda x: comm_func.CommHandle(Handle(x)))
    monkeypatch.setattr(comm_func, "reduce_scatter_tensor",
                        lambda x, async_op=False: (x + x, comm_func.default_handle))
    debugger = new_debugger(tmp_path, level="L1")
    debugger._adapter._apis._recorder = None  # the probes of the fakes
    debugger.start()
    yield debugger
    debugger.stop()


def ones() -> Tensor:
    return Tensor(np.ones(3, np.float32))


def test_output_is_what_the_arguments_hold_afterwards(window: Any, tmp_path: Path) -> None:
    mint.distributed.all_reduce(ones(), "sum")
    mint.distributed.recv(ones())
    handle = mint.distributed.all_reduce(ones(), async_op=True)
    assert isinstance(handle, CommHandle)
    handle.wait()
    window.stop()
    window.step()
    data = entries(tmp_path)
    first = data["MintDistributed.all_reduce.0.forward"]
    assert first["input_args"][0]["Max"] == 1 and first["output"][0]["Max"] == 2
    assert first["output"][1] == {"type": "str", "value": "sum"}
    assert data["MintDistributed.recv.0.forward"]["input_args"][0] is None
    assert data["MintDistributed.all_reduce.1.forward"]["output"][0]["Max"] == 2


def test_results_of_comm_func(window: Any, tmp_path: Path) -> None:
    comm_func.all_reduce(ones())
    result, handle = comm_func.all_reduce(ones(), async_op=True)
    assert result.asnumpy().max() == 1, "not yet: nobody has waited"
    handle.wait()
    assert result.asnumpy().max() == 2
    comm_func.all_reduce(ones() * 3, async_op=True)  # nobody waits
    assert comm_func.isend(ones()).handle is not None
    window.stop()
    window.step()
    data = entries(tmp_path)
    assert [name for name in data if name.startswith("Distributed.")] == [
        "Distributed.all_reduce.0.forward", "Distributed.all_reduce.1.forward",
        "Distributed.all_reduce.2.forward", "Distributed.isend.0.forward"]
    for number in (0, 1):
        value, none = data[f"Distributed.all_reduce.{number}.forward"]["output"]
        assert value["Max"] == 2 and none is None
    for name in ("all_reduce.2", "isend.0"):
        lost = data[f"Distributed.{name}.forward"]
        assert lost["incomplete"] is True and "output" not in lost


def test_calls_that_are_complete_have_one_handle(window: Any, tmp_path: Path) -> None:
    for factor in (1, 2):
        _, handle = comm_func.reduce_scatter_tensor(ones() * factor, async_op=True)
        assert handle is comm_func.default_handle
    window.stop()
    window.step()
    data = entries(tmp_path)
    outputs = [data[f"Distributed.reduce_scatter_tensor.{n}.forward"]["output"] for n in (0, 1)]
    assert [value["Max"] for value, _ in outputs] == [2, 4]
    assert all("waited" not in entry and "incomplete" not in entry for entry in data.values())


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for MindTorch, whose functions are MindSpore's."""
    fake: Any = types.ModuleType("torch")
    functional = types.SimpleNamespace(relu=ms.ops.relu)
    fake.nn = types.SimpleNamespace(functional=functional)
    fake.abs, fake.Tensor, fake.norm = ms.ops.abs, ms.Tensor, ms.ops.norm
    fake.linalg = types.SimpleNamespace(norm=ms.ops.norm)
    fake.distributed = types.SimpleNamespace(Work=Work, all_reduce=work_in_place)
    npu = types.ModuleType("torch_npu")
    npu.npu_swiglu = lambda x: x * 2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setitem(sys.modules, "torch_npu", npu)
    return fake


class Work:
    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def wait(self) -> None:
        self.tensor.copy_(Tensor(self.tensor.asnumpy() * 2))


def work_in_place(tensor: Tensor, op: str = "sum", async_op: bool = False) -> Any:
    return Work(tensor) if async_op else tensor.copy_(tensor * 2)


def test_mindtorch_has_the_names_of_pytorch(torch: Any, tmp_path: Path) -> None:
    class Layer(ms.nn.Cell):  # type: ignore[misc]
        def construct(self, x: Tensor) -> Tensor:
            return torch.nn.functional.relu(torch.abs(x)).reshape(3, 1)

    net = ms.nn.SequentialCell(Layer())
    debugger = new_debugger(tmp_path, level="mix")
    debugger._adapter._apis._recorder = None  # the probes of the fake
    debugger.start(net)
    net(ones())
    torch.linalg.norm(ones())
    sys.modules["torch_npu"].npu_swiglu(ones())
    torch.distributed.all_reduce(ones())
    torch.distributed.all_reduce(ones(), async_op=True).wait()
    ms.mint.abs(ones())  # no name of PyTorch
    debugger.stop()
    debugger.step()
    dump = read(tmp_path)
    assert dump["framework"] == "mindtorch"
    assert list(dump["data"]) == [
        "Torch.abs.0.forward", "Functional.relu.0.forward", "Tensor.reshape.0.forward",
        "Module.0.Layer.forward.0", "Torch.linalg.norm.0.forward", "NPU.npu_swiglu.0.forward",
        "Distributed.all_reduce.0.forward", "Distributed.all_reduce.1.forward"]
    assert read(tmp_path, "construct")["Torch.abs.0.forward"] == "Module.0.Layer.forward.0"
    for number in (0, 1):
        entry = dump["data"][f"Distributed.all_reduce.{number}.forward"]
        assert entry["input_args"][0]["Max"] == 1 and entry["output"][0]["Max"] == 2


def test_mindtorch_is_told_by_its_tensors(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its class may be one of its own, of which MindSpore's tensors only say that they are."""
    torch.Tensor = type("Tensor", (), {"abs": ms.Tensor.abs})
    assert MindSporeAdapter().name == "mindspore"  # no tensor() yet
    torch.tensor = lambda value: ms.Tensor(value)
    adapter = MindSporeAdapter()
    assert (adapter.name, adapter.module_prefix) == ("mindtorch", "Module")
    monkeypatch.setattr(torch, "tensor", lambda value: value)
    assert (adapter.name, adapter.module_prefix) == ("mindspore", "Cell")


def test_mindtorch_may_be_imported_late(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = MindSporeAdapter()
    assert (adapter.name, adapter.module_prefix) == ("mindtorch", "Module")
    names = {f"{prefix}.{name}" for prefix, name, _, _ in adapter.apis()}
    assert {"Functional.relu", "Torch.abs", "Tensor.reshape", "NPU.npu_swiglu"} <= names
    assert not any(name.startswith("Mint") for name in names)
    monkeypatch.delitem(sys.modules, "torch")
    assert (adapter.name, adapter.module_prefix) == ("mindspore", "Cell")
    assert any(prefix == "Mint" for prefix, _, _, _ in adapter.apis())


def test_alias_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "python/msprobe_alias"
    monkeypatch.syspath_prepend(str(folder))
    import msprobe.mindspore as alias
    import plumbline.mindspore as own
    from msprobe.core.common.exceptions import MsprobeException
    from msprobe.mindspore.common.utils import MsprobeStep

    assert issubclass(alias.PrecisionDebugger, own.PrecisionDebugger)
    assert alias.MsprobeStep is MsprobeStep is own.MsprobeStep
    with pytest.raises(MsprobeException):
        alias.seed_all(-1)
    assert alias.TrainerMon is own.TrainerMon
    monkeypatch.setattr(DebuggerBase, "_instance", None)
    alias.PrecisionDebugger(dump_path=str(tmp_path))
    for action in (alias.PrecisionDebugger.register_custom_api,
                   alias.PrecisionDebugger.restore_custom_api):
        with pytest.raises(MsprobeException, match="no_such"):
            action(sys, "no_such")
