"""Tensors of every dtype, layout and class: statistics, digests and files against NumPy."""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import Any

import pytest
from recording import config, run

SETUP = """
import json, sys
import numpy as np
import torch
from plumbline.pytorch import PrecisionDebugger

class Take(torch.nn.Module):
    def forward(self, value):
        return None

# name -> [tensor, the same values as a plain tensor or None, type text]
zoo = {}
def add(name, tensor, dense=None, type="torch.Tensor"):
    zoo[name] = [tensor, dense, type]

torch.manual_seed(0)
base = torch.randn(4, 6) * 3
"""

END = """
root = torch.nn.Sequential(Take())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
for tensor, _, _ in zoo.values():
    root[0](tensor)
debugger.stop(); debugger.step()

def numbers(x):  # in float64, by NumPy
    x = x.detach().resolve_conj().resolve_neg()
    x = x.to(torch.complex128).numpy() if x.is_complex() else x.to(torch.float64).numpy()
    x = np.abs(x) if np.iscomplexobj(x) else x
    return [float(x.max()), float(x.min()), float(x.mean()), float(np.sqrt((x * x).sum()))]

facts = {}
for name, (tensor, dense, kind) in zoo.items():
    fact = facts[name] = {"type": kind, "dtype": str(tensor.dtype),
                          "requires_grad": tensor.requires_grad}
    if dense is not None:
        fact["shape"] = list(dense.shape)
        fact["numbers"] = numbers(dense) if dense.numel() else [None] * 4
        torch.save(dense.detach().resolve_conj().resolve_neg().clone().contiguous(),
                   f"{sys.argv[2]}/{name}.pt")
json.dump(facts, open(f"{sys.argv[2]}/facts.json", "w"))
"""

PLAIN = """
for name in ("uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
             "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
             "float8_e5m2fnuz").split():
    x = base.abs().to(getattr(torch, name))
    add(name, x, x)
add("bool", base > 0, base > 0)
add("e8m0", base.abs().to(torch.float8_e8m0fnu), base.abs().to(torch.float8_e8m0fnu).float())
half = torch.randn(5, dtype=torch.complex64).to(torch.complex32)
add("complex32", half, half.to(torch.complex64))
codes = torch.arange(256, dtype=torch.uint8).reshape(4, 64)
add("float4", codes.view(torch.float4_e2m1fn_x2))
add("bits", codes.view(torch.bits8))
add("scalar", torch.tensor(-2.5), torch.tensor(-2.5))
add("empty", torch.ones(0, 3), torch.ones(0, 3))
add("one", torch.ones(1), torch.ones(1))
for name, view in {
    "transposed": base.t(), "expanded": base[:1].expand(5, 6), "sliced": base[::2, 1::2],
    "diagonal": base.diagonal(), "flipped": base.flip(0),
    "channels_last": torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    "overlapping": base.as_strided((3, 3), (2, 1), 1),
    "conj": torch.randn(3, dtype=torch.complex64).conj(),
    "negated": torch.randn(3, dtype=torch.complex64).conj().imag,
    "conj_t": torch.randn(3, 2, dtype=torch.complex128).mH,
}.items():
    add(name, view, view)
add("requires_grad", base.clone().requires_grad_(), base)
add("parameter", torch.nn.Parameter(base), base)
class Plain(torch.Tensor): pass
add("subclass", base.as_subclass(Plain), base)
with torch.inference_mode():
    x = torch.ones(3) * 2
    add("inference", x, torch.full((3,), 2.0))
"""

OTHER = """
add("per_tensor", torch.quantize_per_tensor(base, 0.1, 3, torch.qint8),
    torch.quantize_per_tensor(base, 0.1, 3, torch.qint8).dequantize())
channels = torch.quantize_per_channel(base, torch.full((4,), 0.1), torch.zeros(4), 0, torch.qint8)
add("per_channel", channels, channels.dequantize())
packed = torch.quantize_per_tensor(base, 0.5, 0, torch.quint4x2)
add("packed", packed, packed.dequantize())
sparse = torch.where(base > 1, base, 0.0)
for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.bool,
              torch.complex64):
    x = sparse.to(dtype)
    add(f"coo_{dtype}".replace("torch.", ""), x.to_sparse(), x)
add("coo_negative", (-sparse).to_sparse(), (-sparse).to_sparse().to_dense())
add("coo_full", (base.abs() + 1).to_sparse(), base.abs() + 1)
twice = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, -3.0], (4,))
add("coo_uncoalesced", twice, twice.to_dense())
hybrid = torch.sparse_coo_tensor([[0, 2]], torch.randn(2, 3), (4, 3))
add("coo_hybrid", hybrid, hybrid.to_dense())
add("coo_without_values", torch.sparse_coo_tensor(size=(2, 3)), torch.zeros(2, 3))
add("csr", sparse.to_sparse_csr(), sparse)
add("csc", sparse.to_sparse_csc(), sparse)
add("bsr", sparse.to_sparse_bsr((2, 2)), sparse)
add("bsc", sparse.to_sparse_bsc((2, 3)), sparse)
add("mkldnn", base.to_mkldnn(), base)
parts = [torch.arange(3.0), torch.arange(5.0)]
add("nested", torch.nested.nested_tensor(parts), torch.cat(parts))
add("jagged", torch.nested.nested_tensor(parts, layout=torch.jagged), torch.cat(parts),
    "torch.nested._internal.nested_tensor.NestedTensor")
holes = torch.nested.nested_tensor_from_jagged(
    torch.arange(8.0), torch.tensor([0, 3, 8]), torch.tensor([2, 4]))
add("jagged_with_holes", holes, torch.tensor([0.0, 1, 3, 4, 5, 6]),
    "torch.nested._internal.nested_tensor.NestedTensor")
add("zero_tensor", torch._efficientzerotensor((2, 3)), torch.zeros(2, 3))
class Wrap(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        self = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        self.inner = inner
        return self
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = lambda x: x.inner if isinstance(x, Wrap) else x
        return func(*map(inner, args), **(kwargs or {}))
add("wrapper", Wrap(base), base, "__main__.Wrap")
"""

NOTHING = """
add("meta", torch.empty(2, 3, device="meta"))
from torch._subclasses import FakeTensorMode
with FakeTensorMode():
    add("fake", torch.ones(2, 3), None, "torch._subclasses.fake_tensor.FakeTensor")
x = torch.ones(4); x.untyped_storage().resize_(0)
add("emptied", x)
x = torch.ones(40)[3:7]; x.untyped_storage().resize_(0)
add("emptied_behind_an_offset", x)
class RaisingDispatch(torch.Tensor):
    @staticmethod
    def __new__(cls, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)
    @classmethod
    def __torch_dispatch__(cls, *args, **kwargs): raise RuntimeError("hands off")
add("raising_dispatch", RaisingDispatch(base), None, "__main__.RaisingDispatch")
class RaisingFunction(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs): raise RuntimeError("hands off")
    @property
    def sealed(self): raise RuntimeError("hands off")
    shape = dtype = device = layout = is_quantized = requires_grad = sealed
raising = torch.ones(2).as_subclass(RaisingFunction)
"""

# Relative error of one rounding to the dtype in which a statistic is printed.
TOLERANCE = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 1e-14, "int": 1e-14}


def record(tmp_path: Path, body: str, task: str, end: str = END) -> dict[str, Any]:
    run(SETUP + body + end, config(tmp_path, task=task, level="L0", summary_mode="md5"), tmp_path)
    text = (tmp_path / "out" / "step0" / "rank" / "dump.json").read_text()
    return {name: entry["input_args"][0] for name, entry in json.loads(text)["data"].items()}


def tolerance(dtype: str) -> float:
    for name, limit in TOLERANCE.items():
        if dtype.removeprefix("torch.").removeprefix("u").startswith(name):
            return limit
    return 2.0**-24


def check_numbers(name: str, found: dict[str, Any], fact: dict[str, Any]) -> None:
    keys = ("Max", "Min", "Mean", "Norm")
    expected = dict(zip(keys, fact["numbers"], strict=True))
    if fact["dtype"] == "torch.bool":
        expected = {"Max": bool(expected["Max"]), "Min": bool(expected["Min"])}
    elif fact["shape"] == [] and "complex" not in fact["dtype"]:
        expected["Norm"] = expected["Max"]  # the value itself, as upstream prints it
    elif "complex" in fact["dtype"]:
        del expected["Norm"]
    for key in keys:
        if expected.get(key) is None:
            assert found[key] is None, (name, key)
            continue
        scale = fact["numbers"][3] if key == "Mean" else abs(expected[key])
        limit = 1.01 * tolerance(fact["dtype"]) * scale + 1e-30
        assert math.isclose(found[key], expected[key], abs_tol=limit, rel_tol=0), (name, key)


def check(tmp_path: Path, recorded: dict[str, Any], task: str) -> None:
    torch = pytest.importorskip("torch")
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert len(recorded) == len(facts)
    for (name, fact), found in zip(facts.items(), recorded.values(), strict=True):
        for key in ("type", "dtype", "requires_grad"):
            assert found[key] == fact[key], name
        if "numbers" not in fact:
            continue
        assert found["shape"] == fact["shape"], name
        check_numbers(name, found, fact)
        dense = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        if task == "tensor":
            path = tmp_path / "out" / "step0" / "rank" / "dump_tensor_data" / found["data_name"]
            ours = torch.load(path, weights_only=True)
            assert ours.dtype == dense.dtype and ours.shape == dense.shape, name
            assert not ours.requires_grad and ours.is_contiguous(), name
            assert bytes_of(torch, ours) == bytes_of(torch, dense), name
        digest = dense.float() if dense.dtype is torch.bfloat16 else dense
        assert found["md5"] == f"{zlib.crc32(bytes_of(torch, digest)):08x}", name


def bytes_of(torch: Any, tensor: Any) -> bytes:
    if tensor.numel() == 0:
        return b""
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("body", [PLAIN, OTHER], ids=["plain", "other"])
def test_values_digests_and_files_are_those_of_the_tensor(
    tmp_path: Path, body: str, task: str
) -> None:
    recorded = record(tmp_path, body, task)
    check(tmp_path, recorded, task)
    if body is PLAIN:
        names = json.loads((tmp_path / "facts.json").read_text())
        found = dict(zip(names, recorded.values(), strict=True))
        assert found["float4"]["Max"] == 6.0 and found["float4"]["Min"] == -6.0
        assert found["float4"]["Mean"] == 0.0
        assert found["bits"]["Max"] is None
        assert found["empty"]["md5"] == "00000000"


def test_sparse_statistics_without_a_dense_copy(tmp_path: Path) -> None:
    body = """
add("huge", torch.sparse_coo_tensor([[5, 6], [7, 7]], [2.0, -4.0], (10**7, 10**7)))
add("positive", torch.sparse_csr_tensor([0, 1, 2], [3, 3], [2.0, 5.0], (2, 10**9)))
add("nan", torch.sparse_coo_tensor([[0]], [float("nan")], (10**10,)))
add("inf", torch.sparse_coo_tensor([[0]], [float("-inf")], (10**10,)))
"""
    recorded = list(record(tmp_path, body, "tensor", END).values())
    huge, positive, nan, inf = recorded
    assert huge["shape"] == [10**7, 10**7]
    assert [huge[key] for key in ("Max", "Min")] == [2.0, -4.0]
    assert huge["Norm"] == pytest.approx(20**0.5, rel=1e-7)
    assert huge["Mean"] == pytest.approx(-2e-14, rel=1e-6)
    assert [positive[key] for key in ("Max", "Min")] == [5.0, 0.0]
    assert nan["Max"] != nan["Max"] and nan["Max_except_inf_nan"] == 0.0
    assert inf["Min"] == -math.inf and inf["Min_except_inf_nan"] == 0.0
    for found in recorded:
        assert "data_name" not in found and "md5" not in found
    log = (tmp_path / "out" / "step0" / "rank" / "dump_error_info.log").read_text()
    assert "tensors_unreadable: 4 " in log and "too large" in log


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_without_values_there_are_no_statistics_and_no_file(tmp_path: Path, task: str) -> None:
    end = 'add("raising_function", raising, None)\n' + END.replace("facts = {}", "facts = {}\n"
        'zoo.pop("raising_function")')
    recorded = record(tmp_path, NOTHING, task, end)
    found = recorded.pop("Module.0.Take.forward.5")
    check(tmp_path, recorded, task)
    assert found["Max"] == 1.0 and found["shape"] == [2]  # its memory is read, its code is not run
    for value in recorded.values():
        assert [value[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
        assert "data_name" not in value and "md5" not in value
    log = (tmp_path / "out" / "step0" / "rank" / "dump_error_info.log").read_text()
    assert "tensors_unreadable: 1 " in log  # the others have no values to lose


def test_inside_function_transforms(tmp_path: Path) -> None:
    body = """
from torch.func import functionalize, grad, jvp, vmap
x = torch.arange(6.0).reshape(3, 2)
"""
    end = """
root = torch.nn.Sequential(Take())
def take(value):
    root[0](value)
    return (value * value).sum()
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
assert torch.equal(vmap(take)(x), (x * x).sum(1))
assert torch.equal(grad(take)(x), 2 * x)
assert torch.equal(vmap(grad(take))(x), 2 * x)
assert torch.equal(vmap(vmap(take))(x.reshape(3, 2, 1)), x * x)
functionalize(take)(x)
jvp(take, (x,), (x,))
grad(lambda value: (root[0](value.to_sparse()), value.sum())[1])(x)
z = torch.complex(x, torch.zeros(3, 2))
vmap(grad(lambda value: (root[0](value.conj()), value.abs().sum())[1]))(z)
debugger.stop(); debugger.step()
"""
    recorded = list(record(tmp_path, body, "tensor", end).values())
    kinds = ["BatchedTensor", "GradTrackingTensor", "GradTrackingTensor", "BatchedTensor",
             "FunctionalTensor", "GradTrackingTensor", "GradTrackingTensor", "GradTrackingTensor"]
    assert [value["type"] for value in recorded] == kinds
    for value in recorded:
        assert value["Max"] == 5.0 and math.prod(value["shape"]) == 6 and "data_name" in value


DISTRIBUTED = """
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", rank=0, world_size=4, store=FakeStore())
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed._functional_collectives import all_reduce
mesh = init_device_mesh("cpu", (2, 2))
local = torch.arange(8.0).reshape(4, 2)
add("shard", DTensor.from_local(local, mesh, [Shard(0), Replicate()]))
add("partial", torch.nn.Parameter(DTensor.from_local(local, mesh, [Partial("max"), Shard(1)])))
add("async", all_reduce(local, "sum", init_device_mesh("cpu", (4,))))
del zoo["async"][1:]; zoo["async"] += [None, ""]
"""


def test_sharded_and_unfinished_tensors(tmp_path: Path) -> None:
    end = END[: END.index("def numbers")].replace("rank", "rank0") + "dist.destroy_process_group()"
    run(SETUP + DISTRIBUTED + end, config(tmp_path, task="tensor", level="L0", summary_mode="md5"))
    rank = tmp_path / "out" / "step0" / "rank0"
    entries = json.loads((rank / "dump.json").read_text())["data"]
    shard, partial, waiting = (entry["input_args"][0] for entry in entries.values())
    assert shard["type"] == partial["type"] == "torch.distributed.tensor.DTensor"
    assert shard["shape"] == [4, 2] and shard["Max"] == 7.0
    assert shard["device_mesh"] == [[0, 1], [2, 3]]
    assert shard["placements"] == [{"Shard": {"dim": 0}}, {"Replicate": {}}]
    assert partial["placements"] == [{"Partial": {"reduce_op": "max"}}, {"Shard": {"dim": 1}}]
    assert partial["requires_grad"] is True
    assert list(shard) == ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad",
                           "device_mesh", "placements", "full_shape", "md5", "data_name"]
    assert (rank / "dump_tensor_data" / shard["data_name"]).is_file()
    kind = "torch.distributed._functional_collectives.AsyncCollectiveTensor"
    assert waiting["type"] == kind and waiting["Max"] is None and "data_name" not in waiting


def test_modes_of_the_user_see_nothing_of_it(tmp_path: Path) -> None:
    body = """
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))
values = [base.to_sparse(), torch.quantize_per_tensor(base, 0.1, 3, torch.qint8),
          torch.randn(3, dtype=torch.complex64).conj(), base.to_mkldnn()]
"""
    end = """
root = torch.nn.Sequential(Take())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
with Watch():
    for value in values: root[0](value)
debugger.stop(); debugger.step()
assert seen == [], seen
"""
    assert len(record(tmp_path, body, "tensor", end)) == 4
