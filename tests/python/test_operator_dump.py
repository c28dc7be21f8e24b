"""Operator dumps in HDF5: the interface of PyTorch 1.5's dumper, read by h5py and h5dump."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from torch import nn

from plumbline.pytorch import dumper

KINDS = {"tensor": 0, "list": 1, "integers": 2, "integer": 3, "bool": 4, "double": 5, "scalar": 7}


def calls_of(file: h5py.File) -> dict[int, str]:
    """Operators by sequence id."""
    return {int(call): name for name in file for call in file[name]}


def train(model: nn.Module, steps: int = 1) -> torch.Tensor:
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        data = torch.randn(2, 3, 8, 8, generator=generator)
        loss = nn.functional.cross_entropy(model(data), torch.tensor([1, 2]))
        loss.backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(),
        nn.Linear(4 * 36, 5),
    )


def test_layout_as_h5py_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    left, right = torch.randn(2, 3), torch.randn(3).half()
    with dumper(use_dump=True, dump_path=str(path)):
        total = torch.add(left, left.t().t(), alpha=2)
        torch.cat([left, total])
        torch.sum(left, dim=[1], keepdim=True)
        right.relu()
    with h5py.File(path) as file:
        names = list(calls_of(file).values())
        assert sorted(names) == sorted(["add_Tensor", "cat", "sum_dim_IntList", "relu"])  # no t
        call = next(iter(file["add_Tensor"]))
        add = file["add_Tensor"][call]
        assert np.array_equal(add["input/self"][()], left.numpy())
        assert np.array_equal(add["output/result"][()], total.numpy())
        attributes = dict(add["input/self"].attrs)
        assert (attributes["DeviceType"], attributes["DataType"], attributes["Type"]) == (0, 1, 0)
        assert attributes["FormatType"] == 0 and attributes["Stride"].tolist() == [3, 1]
        assert attributes["DataType"].dtype == np.int32 and attributes["Stride"].dtype == np.int64
        assert add["input/alpha"][()] == 2 and add["input/alpha"].attrs["Type"] == KINDS["scalar"]
        cat = next(iter(file["cat"].values()))
        assert np.array_equal(cat["input/tensors/tensors_1"][()], total.numpy())
        reduced = next(iter(file["sum_dim_IntList"].values()))["input"]
        assert reduced["dim"][()].tolist() == [1] and reduced["keepdim"][()] == 1
        half = next(iter(file["relu"].values()))["input/self"]
        assert half.dtype == np.float32 and half.attrs["DataType"] == 10
        assert np.array_equal(half[()], right.float().numpy())


def test_bytes_above_127_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with dumper(use_dump=True, dump_path=str(path)):
        torch.add(torch.tensor([200], dtype=torch.uint8), 0)
    with h5py.File(path) as file:
        call = next(iter(file["add_Tensor"]))
        assert file["add_Tensor"][call]["input/self"][()].tolist() == [200]
    listing = subprocess.run(
        ["h5dump", "-d", f"/add_Tensor/{call}/input/self", str(path)],
        capture_output=True, text=True, check=True,
    )
    assert "H5T_STD_U8LE" in listing.stdout and "(0): 200" in listing.stdout


def test_sequence_ids_go_on_in_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = 0
    for name in ("a.h5", "b.h5"):
        with dumper(use_dump=True, dump_path=str(tmp_path / name)):
            torch.ones(2).relu()
        with h5py.File(tmp_path / name) as file:
            calls = calls_of(file)
        assert min(calls) > last
        last = max(calls)
    lines = capsys.readouterr().out.splitlines()
    relu = [line for line in lines if "IR: relu" in line]
    assert re.fullmatch(r"IR: relu SeqId: \d+ dump inputs", relu[0])
    assert re.fullmatch(r"IR: relu SeqId: \d+ dump outputs", relu[1])


def test_training_does_not_change(tmp_path: Path) -> None:
    expected = train(make_model(), steps=3)
    model = make_model()
    with dumper(use_dump=True, dump_path=str(tmp_path / "a.h5")):
        got = train(model, steps=3)
    assert torch.equal(expected, got)
    after = torch.rand(3)
    train(make_model(), steps=3)
    assert torch.equal(after, torch.rand(3))  # the random numbers drawn are the same ones
    with h5py.File(tmp_path / "a.h5") as file:
        assert {"convolution", "ConvolutionBackward0", "AddmmBackward0"} <= set(file)
        backward = next(iter(file["ReluBackward0"].values()))
        assert backward["input/grad"].shape == backward["output/result"].shape == (2, 4, 6, 6)
        assert not any(name.startswith("convolution_backward") for name in file)  # not outermost


def test_replay_takes_recorded_inputs_in_their_order(tmp_path: Path) -> None:
    recorded, replayed = str(tmp_path / "a.h5"), str(tmp_path / "b.h5")
    with dumper(use_dump=True, dump_path=recorded):
        for number in range(12):
            torch.full((2,), float(number)).add(1, alpha=2)
    with h5py.File(recorded) as file:
        calls = sorted(int(call) for call in file["add_Tensor"])
    live = torch.zeros(2)
    version = live._version
    with dumper(use_load=True, load_file_path=recorded, dump_path=replayed):
        results = [live.add(1, alpha=5).tolist() for _ in range(13)]
        assert live.mul(3).tolist() == [33.0, 33.0]  # not recorded: with its own data
    assert results[:12] == [[number + 2.0] * 2 for number in range(12)]
    assert results[12] == [16.0, 16.0]  # all recorded calls are used up
    assert live._version == version
    with h5py.File(replayed) as file:
        assert sorted(int(call) for call in file["add_Tensor"]) == calls
        assert set(file) == {"add_Tensor"} and "input" not in file["add_Tensor"][str(calls[0])]


def test_replay_writes_through_expanded_arguments(tmp_path: Path) -> None:
    path = str(tmp_path / "a.h5")
    with dumper(use_dump=True, dump_path=path):
        torch.arange(3.0).expand(2, 3).relu()
    live = torch.full((3,), -1.0)
    with dumper(use_load=True, load_file_path=path, dump_path=str(tmp_path / "b.h5")):
        live.expand(2, 3).relu()
    assert live.tolist() == [0.0, 1.0, 2.0]


def test_overflow_is_named_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.h5"
    with dumper(check_overflow=True, dump_path=str(path), load_file_path="not looked at"):
        torch.ones(2).add_(1)
    assert not path.exists() and "overflow" not in capsys.readouterr().out
    value = torch.full((2,), 3e38)
    with dumper(check_overflow=True, dump_path=str(path)):
        value.mul_(10)
    assert re.search(r"^IR: mul__Tensor SeqId: \d+ is overflow!$", capsys.readouterr().out, re.M)
    with h5py.File(path) as file:
        (call,) = file["mul__Tensor"].values()
        assert call["input/self_copy"][()].tolist() == [np.float32(3e38)] * 2
        assert np.isinf(call["output/result"][()]).all()


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"use_dump": 1}, "use_dump/use_load/check_overflow/load_with_acl_dump should be set to True "
     "or False!"),
    ({"use_dump": True, "check_overflow": True},
     "dump mode, load mode and check overflow mode can not run together!"),
    ({"use_dump": True, "load_with_acl_dump": True},
     "check_overflow and load_with_acl_dump are only supported on NPU device, however there is no "
     "NPU available!"),
    ({"use_load": True, "load_file_path": "missing.h5"},
     "load_file_path error, please input a real h5 file path"),
    ({"use_load": True}, "load_file_path error, please input a real h5 file path"),
    ({"use_load": True, "load_file_path": "a.h5", "dump_path": "./a.h5"},
     "dump_path and load_file_path can not be same!"),
    ({"use_dump": True, "dump_path": "none/a.h5"},
     "dump_path error, the directory 'none' does not exist, please input a valid one"),
    ({"use_dump": True, "dump_path": "a.txt"},
     "dump_path error, filename 'a.txt' should be end with .h5"),
]


@pytest.mark.parametrize("arguments, message", ERRORS)
def test_errors(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.h5").write_bytes(b"")
    with pytest.raises(RuntimeError) as caught:
        dumper(**arguments)
    assert str(caught.value) == message


def test_entered_twice_and_not_enabled(tmp_path: Path) -> None:
    with dumper(use_dump=True, dump_path=str(tmp_path)):
        with pytest.raises(RuntimeError, match=r"^utils dumper are not reentrant$"):
            dumper(use_dump=True, dump_path=str(tmp_path)).__enter__()
        torch.ones(1).relu()
    (written,) = tmp_path.iterdir()
    assert re.fullmatch(r"\d{8}_\d{6}\.\d{6}\.h5", written.name)
    with dumper(enabled=False, use_dump=True, use_load=True):
        torch.ones(1).relu()
    assert len(list(tmp_path.iterdir())) == 1


def test_a_damaged_file_to_replay_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with pytest.raises(Exception, match=re.escape(f"{path}: is no readable HDF5 file")):
        dumper(use_load=True, load_file_path=str(path), dump_path=str(tmp_path)).__enter__()
    assert not dumper._entered


def test_a_full_disk_does_not_stop_the_training(capsys: pytest.CaptureFixture[str]) -> None:
    with dumper(use_dump=True, dump_path="/proc/a.h5"):  # where nothing can be made
        assert torch.ones(2).add(1).tolist() == [2.0, 2.0]
    error = capsys.readouterr().err
    assert error.startswith("plumbline: dumper: ") and "operator calls were not dumped" in error


def test_kernel_dump_around_replayed_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    class Npu:
        def is_available(self) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            return lambda *args: events.append(name + "".join(f" {arg}" for arg in args))

    path = str(tmp_path / "a.h5")
    with dumper(use_dump=True, dump_path=path):
        torch.ones(2).relu()
    monkeypatch.setitem(sys.modules, "torch_npu", types.SimpleNamespace(npu=Npu()))
    monkeypatch.setenv("ACL_DUMP_DATA", "1")  # as the founding document says; 0 is right
    with pytest.warns(UserWarning, match="ACL_DUMP_DATA is 1"):
        replay = dumper(use_load=True, load_file_path=path, dump_path=str(tmp_path / "b.h5"),
                        load_with_acl_dump=True)
    live = torch.zeros(2)
    with replay:
        live.relu()
        live.abs()
    bracket = ["synchronize", "init_dump", "set_dump acl.json", "synchronize",
               "synchronize", "finalize_dump", "synchronize"]
    assert events == bracket


def test_map_of_operators() -> None:
    operators, arguments = dumper.get_op_map()
    assert operators["NpuConvolutionBackward"] == [
        "CudnnConvolutionBackward", "ThnnConvDepthwise2DBackward",
    ]
    assert operators["CudnnBatchNormBackward"] == ["NativeBatchNormBackward"]
    assert arguments["input"] == ["self"] and arguments["epsilon"] == ["eps"]


KILLED = """
import sys, torch
from plumbline.pytorch import dumper
weight = torch.randn(64, 64)
with dumper(use_dump=True, dump_path=sys.argv[1]):
    while True:
        weight.matmul(weight).relu()
"""


def test_a_killed_process_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "SeqId: 40 dump outputs" in line:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with h5py.File(path) as file:
        calls = calls_of(file)
        assert set(range(1, 41)) <= set(calls)
        for number in range(1, 41):
            result = file[calls[number]][str(number)]["output/result"][()]
            assert result.shape == (64, 64) and np.isfinite(result).all() and result.any()
    subprocess.run(["h5dump", "-H", str(path)], check=True, capture_output=True)
