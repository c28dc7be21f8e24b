"""ConfigChecker on MindSpore: the pack says what a cell was called with, and the training is the
same with it as without, whichever part of it MindSpore compiles.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import zipfile
import zlib

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: run it in that environment", allow_module_level=True)

import mindspore as ms
import numpy
from mindspore import nn

from plumbline import ConfigChecker
from plumbline.config_check import on_mindspore

HERE = pathlib.Path(__file__).resolve().parent
PLUMB = os.environ.get("PLUMB") or str(HERE.parents[1] / ".venv/bin/plumb")

TRAINING = """
import random, sys
import numpy
import mindspore as ms
from mindspore import nn, ops
from plumbline import ConfigChecker
used, mode, compiled = sys.argv[1:4]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
if used != "none":
    ConfigChecker.apply_patches("mindspore")
ms.set_seed(3)
random.seed(2)
numpy.random.seed(1)
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.out = nn.Dense(3, 2)
    def construct(self, x):
        return self.out(ops.relu(self.fc(x))) + ops.randn(2)
net = Net()
if used != "none":
    ConfigChecker([net], output_zip_path=used, fmk="mindspore", max_steps=2)
if mode == "late":  # compiled from now on
    ms.set_context(mode=ms.GRAPH_MODE)
weights = net.trainable_params()
def forward(x):
    return net(x).pow(2).sum()
step = ms.value_and_grad(forward, None, weights)
if compiled == "jit":
    step = ms.jit(step)
total = 0
for _ in range(3):
    x = ops.randn(5, 4) * random.random() + float(numpy.random.rand())
    if mode == "pynative":
        loss, gradients = step(x)
        for weight, gradient in zip(weights, gradients):
            weight.set_data(weight - 0.1 * gradient)
    else:
        loss = net(x).asnumpy().sum()
    total += float(loss)
assert ops.randn.__module__.startswith("mindspore"), ops.randn
assert nn.Cell.__call__.__module__.startswith("mindspore")
print(total, weights[0].asnumpy().sum(), ops.randn(1), random.random())
"""


def trained(directory: pathlib.Path, *words: object) -> subprocess.CompletedProcess[str]:
    script = directory / "training.py"
    script.write_text(TRAINING)
    done = subprocess.run([sys.executable, script, *map(str, words)], text=True, cwd=directory,
                          capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def members(pack: pathlib.Path) -> dict[str, bytes]:
    with zipfile.ZipFile(pack) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("mode, compiled", [
    ("pynative", ""), ("pynative", "jit"), ("graph", ""), ("late", "")])
def test_training_is_the_same(tmp_path: pathlib.Path, mode: str, compiled: str) -> None:
    without = trained(tmp_path, "none", mode, compiled).stdout.splitlines()[-1]
    done = trained(tmp_path, tmp_path / "pack.zip", mode, compiled)
    assert done.stdout.splitlines()[-1] == without
    assert "is not recorded" not in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("GRAPH_MODE: calls of the model") == (mode == "graph")
    found = members(tmp_path / "pack.zip")
    if compiled:  # the model is called by the compiled function alone
        assert set(found) == {"env", "pip"}
        return
    for step in (0, 1):
        assert f"dataset/step{step}/rank0/dataset.json" in found
    assert "weights/step2/rank0/weight.json" not in found
    counts = {name: sum(call["count"] for call in calls)
              for name, calls in json.loads(found["random/rank0.json"]).items()}
    assert counts["mindspore.set_seed"] == counts["random.random"] == 1
    assert counts["mindspore.ops.randn"] == counts["np.random.rand"] == 1


def test_packs_are_compared(tmp_path: pathlib.Path) -> None:
    for name, scale in (("a", 1.0), ("b", 1.5)):
        net = nn.Dense(2, 3)
        net.weight.set_data(ms.Tensor(numpy.arange(6, dtype=numpy.float32).reshape(3, 2) * scale))
        ConfigChecker(net, output_zip_path=str(tmp_path / f"{name}.zip"), fmk="mindspore")
        net(ms.Tensor(numpy.ones((1, 2), numpy.float32)))
    done = subprocess.run([PLUMB, "config_check", "-c", tmp_path / "a.zip", tmp_path / "b.zip",
                           "-o", tmp_path / "out", "--fail-on", "error"], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode == 1 and "weights" in done.stdout, done
    weights = json.loads(members(tmp_path / "a.zip")["weights/step0/rank0/weight.json"])
    assert weights["weight"] == {"max": 5.0, "min": 0.0, "mean": 2.5,
                                 "norm": float(numpy.float32(numpy.sqrt(55)))}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "bool_"])
def test_statistics_and_checksums_are_those_of_numpy(dtype: str) -> None:
    values = numpy.random.RandomState(4).randn(3 << 19).astype(numpy.float32) * 100
    tensor = ms.Tensor(values).astype(getattr(ms, dtype))
    wide = tensor.astype(ms.float32).asnumpy().astype(numpy.float64)
    found = on_mindspore.statistics(tensor)
    assert found == {
        "max": wide.max(), "min": wide.min(), "mean": float(numpy.float32(wide.mean())),
        "norm": float(numpy.float32(numpy.linalg.norm(wide)))}
    host = tensor.asnumpy()
    assert on_mindspore.digest(tensor) == (
        f"{host.dtype.name}[{values.size}]:{zlib.crc32(host.tobytes()):08x}")


def test_what_has_no_statistics() -> None:
    assert on_mindspore.statistics(3) == on_mindspore.digest(3) == ""
    assert on_mindspore.statistics(ms.Tensor(numpy.zeros((0, 2)))) == ""
    assert on_mindspore.statistics(ms.Tensor(numpy.ones(2, numpy.complex64))) == ""
    found = on_mindspore.statistics(ms.Tensor(numpy.array([1, numpy.nan, 3], numpy.float32)))
    assert all(value != value for value in found.values()), found
    found = on_mindspore.statistics(ms.Tensor(numpy.array([numpy.inf, -numpy.inf], numpy.float32)))
    assert (found["max"], found["min"], found["norm"]) == (numpy.inf, -numpy.inf, numpy.inf)


def test_a_model_of_another_framework_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"expected a mindspore\.nn\.Cell"):
        ConfigChecker(3, output_zip_path=str(tmp_path / "p.zip"), fmk="mindspore")
