"""Values and tensors of every kind become valid JSON and never an exception."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recording import config, dump, run

ZOO = """
import sys, dataclasses, collections, json
import numpy as np
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
@dataclasses.dataclass
class Data:
    a: object
    b: object = 2
Pair = collections.namedtuple("Pair", "x y")
class Odd(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return kwargs.get("give")
class Root(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.odd = Odd()
root = Root()
t = torch.arange(6.0).reshape(2, 3)
deep = [1]
for _ in range(500): deep = [deep]
class Hostile:
    def __getattr__(self, name): raise RuntimeError("hands off")
debugger.start(model=root)
root.odd(None, {"a": [t, (t, None)]}, Pair(t, 1), Data(t), ..., slice(1, torch.tensor(3), None),
         np.float32(1.5), np.int64(3), np.arange(3), np.array([]), np.array(2.5), np.array(["x"]),
         3 + 4j, b"bytes", {1, 2}, float("nan"), float("inf"), 10**30, "text \\u00e9\\U0001f600",
         torch.float16, torch.device("cpu"), torch.channels_last, torch.Size([2, 3]),
         {1: 2, (1, 2): 3}, deep, Hostile(), range(3), True, -0.0,
         dtype=torch.bfloat16, device="cuda:0", give=Pair(t, 2))
debugger.stop(); debugger.step()
"""


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_value_zoo(tmp_path: Path, task: str) -> None:
    run(ZOO, config(tmp_path, task=task, level="L0", summary_mode="md5"))
    entry = dump(tmp_path)["Module.odd.Odd.forward.0"]
    args, kwargs = entry["input_args"], entry["input_kwargs"]
    assert args[0] is None
    assert args[1]["a"][1][1] is None
    assert set(args[2]) == {"x", "y"}
    assert args[3]["b"] == {"type": "int", "value": 2}
    assert args[4] == {"type": "ellipsis", "value": "..."}
    assert args[5] == {"type": "slice", "value": [1, 3, None]}
    assert args[6] == {"type": "float32", "value": 1.5}
    assert args[7] == {"type": "int64", "value": 3}
    assert args[8]["type"] == "numpy.ndarray" and args[8]["Max"] == 2.0
    assert args[9]["Max"] is None
    assert args[17] == {"type": "int", "value": 10**30}
    assert args[18]["value"] == "text \u00e9\U0001f600"
    assert args[19] == {"type": "torch.dtype", "value": "torch.float16"}
    assert args[20] == {"type": "torch.device", "value": "cpu:None"}
    assert args[21] == {"type": "torch.memory_format", "format": "channels_last"}
    assert args[22] == {"type": "torch.Size", "value": [2, 3]}
    assert set(args[23]) == {"1", "(1, 2)"}
    assert kwargs["dtype"] == {"type": "torch.dtype", "value": "torch.bfloat16"}
    assert kwargs["device"] == {"type": "torch.device", "value": "cuda:0"}
    assert set(entry["output"]) == {"x", "y"}


TENSORS = """
import sys, json
import torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
debugger = PrecisionDebugger(sys.argv[1])
base = torch.randn(4, 6) * 3
names = ("bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
         "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz").split()
zoo = {name: base.abs().to(getattr(torch, name)) for name in names}
zoo["scalar"] = torch.tensor(-2.5)
zoo["int_scalar"] = torch.tensor(2**53 + 1)
zoo["empty"] = torch.ones(0, 3)
zoo["transposed"] = base.t()
zoo["expanded"] = base[:1].expand(5, 6)
zoo["sliced"] = base[::2, 1::2]
zoo["channels_last"] = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
zoo["nan"] = torch.tensor([1.0, float("nan"), -2.0])
zoo["all_nan"] = torch.full((3,), float("nan"))
zoo["inf"] = torch.tensor([1.0, float("inf"), -3.0])
zoo["all_inf"] = torch.full((2,), float("inf"))
zoo["mixed"] = torch.tensor([float("nan"), float("-inf")])
zoo["vector_float32"] = torch.arange(6.0).reshape(2, 3)
zoo["vector_bfloat16"] = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
zoo["one"] = torch.tensor(1.0)
zoo["true"] = torch.tensor([True])
zoo["vector_int64"] = torch.tensor([1, 2])
zoo["vector_float16"] = torch.tensor([1.0, 2.0], dtype=torch.float16)
zoo["conj"] = torch.randn(3, dtype=torch.complex64).conj()
zoo["neg_view"] = torch.randn(3, dtype=torch.complex64).conj().imag
zoo["sparse"] = torch.eye(3).to_sparse()
zoo["quantised"] = torch.quantize_per_tensor(base, 0.1, 0, torch.qint8)
zoo["meta"] = torch.empty(2, 3, device="meta")
zoo["huge"] = torch.full((3,), 1e300, dtype=torch.float64)
class Id(torch.nn.Module):
    def forward(self, zoo): return None
root = torch.nn.Sequential(Id())
debugger.start(model=root)
root(zoo)
debugger.stop(); debugger.step()
reference = {}
for name, value in zoo.items():
    try:
        x = value.dequantize() if value.is_quantized else value.to_dense()
        x = x.resolve_conj().resolve_neg()
        x = x.abs().double() if x.is_complex() else x.double()
        x = x.flatten()
        reference[name] = [x.max().item(), x.min().item(), x.mean().item(), x.norm().item()]
    except Exception:
        reference[name] = None
json.dump(reference, open(sys.argv[2], "w"))
"""


def test_tensor_zoo(tmp_path: Path) -> None:
    run(TENSORS, config(tmp_path, level="L0", summary_mode="md5"), tmp_path / "reference.json")
    recorded = dump(tmp_path)["Module.0.Id.forward.0"]["input_args"][0]
    reference = json.loads((tmp_path / "reference.json").read_text())
    relative = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-14, "huge": 1e-14}
    exact = {"vector_bfloat16", "vector_float16"}
    exact |= {"bool", "true", "empty", "meta", "all_nan", "all_inf", "mixed", "nan", "inf"}
    for name in set(recorded) - exact:
        numbers = [recorded[name][key] for key in ("Max", "Min", "Mean", "Norm")]
        is_complex = name.startswith(("complex", "conj"))
        if is_complex:
            assert numbers.pop() is None, name
        expected = reference[name][: len(numbers)]
        if name == "scalar":
            expected[3] = -2.5  # upstream prints the value itself
        assert numbers == pytest.approx(expected, rel=relative.get(name, 1e-6)), name
    assert recorded["int_scalar"]["Max"] == 2**53 + 1
    assert recorded["bool"]["Max"] is True and recorded["bool"]["Mean"] is None
    assert recorded["empty"]["Max"] is None and recorded["empty"]["md5"] == "00000000"
    assert recorded["nan"]["Max"] != recorded["nan"]["Max"]
    assert recorded["nan"]["Max_except_inf_nan"] == 1.0
    assert recorded["inf"]["Max"] == float("inf")
    assert recorded["inf"]["Max_except_inf_nan"] == 1.0
    keys = ("Max", "Min", "Max_except_inf_nan", "Min_except_inf_nan")
    infinity = float("inf")
    assert [recorded["all_inf"][key] for key in keys] == [infinity] * 4
    assert all(recorded["mixed"][key] != recorded["mixed"][key] for key in keys[:2])
    assert [recorded["mixed"][key] for key in keys[2:]] == [-infinity, -infinity]
    assert all(recorded["all_nan"][key] != recorded["all_nan"][key] for key in keys)
    vectors = {"vector_float32": "91e79017", "vector_bfloat16": "91e79017", "one": "aca16a6a",
               "true": "a505df1b", "vector_int64": "00f6ddb9", "vector_float16": "7ae98278"}
    assert {name: recorded[name]["md5"] for name in vectors} == vectors
    assert recorded["meta"]["Max"] is None
    assert recorded["meta"]["shape"] == [2, 3]
