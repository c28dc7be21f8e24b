"""Task nan_check: a flag per call in place of statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from recording import config, dump, run

CALLS = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
x = torch.tensor([1.0, -1.0], requires_grad=True)
clean = torch.abs(x)
log = torch.log(x)
log.sum().backward()
torch.add(torch.tensor([3]), 2, alpha=1)
torch.mul(torch.ones(2, dtype=torch.bool), torch.full((2,), 1e300, dtype=torch.float64))
torch.neg(torch.ones(2, device="meta"))
torch.relu(torch.tensor([[float("-inf")]]).to_sparse())
torch.exp(torch.full((70000,), 100.0))
torch.tensor([float("nan")]).fill_(1)
debugger.stop()
debugger.step()
"""
WANTED = {
    "Torch.abs.0.forward": 0, "Torch.log.0.forward": 1, "Tensor.sum.0.forward": 1,
    "Torch.log.0.backward": 0, "Torch.add.0.forward": 0, "Torch.mul.0.forward": 0,
    "Torch.neg.0.forward": None, "Torch.relu.0.forward": 1, "Torch.exp.0.forward": 1,
    "Tensor.fill_.0.forward": 0,
}


def tensors_in(value: Any) -> list[dict[str, Any]]:
    """Every tensor object below `value`."""
    if isinstance(value, list):
        return [tensor for item in value for tensor in tensors_in(item)]
    if not isinstance(value, dict):
        return []
    if "shape" in value:
        return [value]
    return [tensor for item in value.values() for tensor in tensors_in(item)]


def test_every_entry_has_the_flag_and_no_statistics(tmp_path: Path) -> None:
    run(CALLS, config(tmp_path, task="nan_check"))
    entries = dump(tmp_path)
    assert {name: entries[name]["is_nan"] for name in WANTED} == WANTED
    for name, entry in entries.items():
        assert list(entry)[-1] == "is_nan", name
        for tensor in tensors_in(entry):
            assert list(tensor) == ["type", "dtype", "shape", "requires_grad"], name
    log = entries["Torch.log.0.forward"]["input_args"][0]
    assert log == {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],
                   "requires_grad": True}
    assert not (tmp_path / "out" / "step0" / "rank" / "dump_tensor_data").exists()


def test_hits_of_listed_names_are_stored(tmp_path: Path) -> None:
    run(CALLS, config(tmp_path, task="nan_check", tensor_list=["log", "abs", "exp"]))
    data = tmp_path / "out" / "step0" / "rank" / "dump_tensor_data"
    assert sorted(path.name for path in data.iterdir()) == [
        f"Torch.{api}.0.forward.{part}.0.pt" for api in ("exp", "log") for part in
        ("input", "output")]
    assert torch.load(data / "Torch.log.0.forward.input.0.pt").tolist() == [1, -1]
    entries = dump(tmp_path)
    assert entries["Torch.log.0.forward"]["output"][0]["data_name"]
    assert entries["Torch.log.0.forward"]["is_nan"] == 1
    assert list(tensors_in(entries["Torch.abs.0.forward"])[0]) == [
        "type", "dtype", "shape", "requires_grad"], "no hit: not stored"


def test_what_cannot_be_read_is_not_called_clean(tmp_path: Path) -> None:
    run("""
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
tensor = torch.ones(4)
# Keeps its shape and loses its memory, as in sharding libraries.
tensor.untyped_storage().resize_(0)
debugger.start()
torch.ones_like(tensor)
torch.ones(1).add(1)
debugger.stop()
debugger.step()
""", config(tmp_path, task="nan_check"))
    entries = dump(tmp_path)
    assert entries["Torch.ones_like.0.forward"]["is_nan"] is None
    assert entries["Tensor.add.0.forward"]["is_nan"] == 0
