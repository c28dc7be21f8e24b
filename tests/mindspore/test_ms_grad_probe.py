"""Task grad_probe in PyNative mode and in a graph; their files compared with PyTorch's."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from ms_recording import new_debugger


class Loss(nn.Cell):
    def __init__(self, first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> None:
        super().__init__()
        self.first = ms.Parameter(Tensor(first), name="first")
        self.second = ms.Parameter(Tensor(second), name="second")

    def construct(self, x: Tensor) -> Tensor:
        return (ops.matmul(ops.tanh(ops.matmul(x, self.first)), self.second) ** 2).sum()


class Step(nn.Cell):
    def __init__(self, loss: Loss, optimizer: nn.Optimizer) -> None:
        super().__init__()
        self.gradients = ms.value_and_grad(loss, None, optimizer.parameters)
        self.optimizer = optimizer

    def construct(self, x: Tensor) -> Any:
        _, gradients = self.gradients(x)
        self.optimizer(gradients)
        return gradients


def train(directory: Path | None, is_graph: bool) -> tuple[list[Any], list[Any]]:
    """Gradients of each step, and the parameters at the end."""
    ms.set_context(mode=ms.GRAPH_MODE if is_graph else ms.PYNATIVE_MODE)
    try:
        return _train(directory)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def _train(directory: Path | None) -> tuple[list[Any], list[Any]]:
    random = np.random.default_rng(0)
    first, second, *inputs = (random.standard_normal(shape).astype(np.float32) for shape in
                              ((4, 6), (6, 2), (5, 4), (5, 4), (5, 4)))
    loss = Loss(first, second)
    optimizer = nn.SGD(loss.trainable_params(), learning_rate=0.01)
    debugger = None
    if directory is not None:
        directory.mkdir(exist_ok=True)
        debugger = new_debugger(directory, task="grad_probe", grad_level="L2", bounds=[-1, 0, 1])
        debugger.monitor(optimizer)
        original = vars(optimizer).get("construct")
    step = Step(loss, optimizer)
    gradients = [[one.asnumpy() for one in step(Tensor(x))] for x in inputs]
    parameters = [one.asnumpy() for one in (loss.first, loss.second)]
    if debugger is not None:
        debugger.stop()
        debugger._close()
        assert original is None or "construct" not in vars(optimizer)
    return gradients, parameters


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("is_graph", [False, True])
def test_files_say_what_the_gradients_are(tmp_path: Path, is_graph: bool) -> None:
    bare, bare_end = train(None, is_graph)
    gradients, end = train(tmp_path / "probed", is_graph)
    assert all((a == b).all() for a, b in zip(end, bare_end, strict=True))
    rank = tmp_path / "probed" / "out" / "rank0"
    for step, (arrays, bare_arrays) in enumerate(zip(gradients, bare, strict=True)):
        rows = rows_of(rank / f"grad_summary_{step}.csv")
        assert [row["param_name"] for row in rows] == ["first", "second"]
        for row, array, bare_array in zip(rows, arrays, bare_arrays, strict=True):
            assert (array == bare_array).all()
            assert list(row)[1:6] == ["(-inf, -1]", "(-1, 0]", "(0, 1]", "(1, inf)", "=0"]
            assert float(row["(0, 1]"]) == ((array > 0) & (array <= 1)).mean()
            assert float(row["max"]) == array.max() and float(row["min"]) == array.min()
            assert row["shape"] == str(list(array.shape))
            signs = np.load(rank / f"step{step}" / f"{row['param_name']}.npy")
            assert (signs == (array > 0)).all() and signs.shape == array.shape


def test_both_modes_agree(tmp_path: Path) -> None:
    for name, is_graph in (("native", False), ("graph", True)):
        train(tmp_path / name, is_graph)
    code = "import sys; from plumbline import GradComparator; " \
           "print(GradComparator.compare_distributed(*sys.argv[1:4], plot='none'))"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "graph/out", tmp_path / "native/out",
         tmp_path / "diff"], text=True, capture_output=True, check=True)
    assert done.stdout.startswith("no suspect: signs agree in every step")


def test_what_is_no_optimizer(tmp_path: Path) -> None:
    debugger = new_debugger(tmp_path, task="grad_probe")
    with pytest.raises(ValueError, match=r"monitor\(\): an optimizer is expected"):
        debugger.monitor(nn.Dense(2, 2))
    debugger._close()
