"""Recordings for the pre-check, written as a recorder writes them, and runs of the program."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recording import PLUMB
from warm_interpreter import spoiled_python, warm_python

SECONDS = 300


def tensor(shape: Sequence[int], dtype: str = "float32", low: float = -1.0, high: float = 1.0,
           *, grad: bool = True) -> dict[str, Any]:
    """A tensor with the range of its values."""
    return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": list(shape), "Max": high,
            "Min": low, "Mean": (low + high) / 2, "Norm": 1.0, "requires_grad": grad}


def integer(value: int) -> dict[str, Any]:
    """An argument that is an int."""
    return {"type": "int", "value": value}


class Dump:
    """A dump.json that is filled call by call."""

    def __init__(self, framework: str = "pytorch") -> None:
        self.document: dict[str, Any] = {"task": "statistics", "level": "L1",
                                         "framework": framework, "dump_data_dir": None, "data": {}}

    def call(self, name: str, args: Sequence[Any], output: Sequence[Any],
             grads: Sequence[Any] | None = None, **kwargs: Any) -> Dump:
        """One call; with `grads`, its backward too."""
        self.document["data"][f"{name}.forward"] = {
            "input_args": list(args), "input_kwargs": kwargs, "output": list(output)}
        if grads is not None:
            self.document["data"][f"{name}.backward"] = {"input": list(grads), "output": []}
        return self

    def write(self, directory: Path) -> Path:
        """The path of the file."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "dump.json"
        path.write_text(json.dumps(self.document))
        return path


def small_model(count: int = 1) -> Dump:
    """Calls of several kinds, `count` times."""
    dump = Dump()
    plain, matrix = tensor([4, 8]), tensor([3, 8])
    for i in range(count):
        dump.call(f"Torch.add.{i}", [plain, plain], [plain], [plain])
        dump.call(f"Functional.linear.{i}", [plain], [tensor([4, 3])], [tensor([4, 3])],
                  weight=matrix, bias=tensor([3]))
        dump.call(f"Functional.softmax.{i}", [tensor([4, 8], "float16")],
                  [tensor([4, 8], "float16")], [tensor([4, 8], "float16")], dim=integer(-1))
        dump.call(f"Torch.topk.{i}", [plain, integer(2)],
                  [tensor([4, 2]), tensor([4, 2], "int64", 0, 7, grad=False)], [tensor([4, 2])])
        dump.call(f"Functional.dropout.{i}", [tensor([20, 20])], [tensor([20, 20])],
                  [tensor([20, 20])], p={"type": "float", "value": 0.5},
                  training={"type": "bool", "value": True})
    return dump


def precheck(dump: Path, output: Path, *words: Any,
             device: str = "cpu", fresh: bool = False) -> subprocess.CompletedProcess[str]:
    """Runs `plumb precheck`. `fresh`: its interpreter has to import PyTorch."""
    return subprocess.run(
        [PLUMB, "precheck", dump, "-o", output, "--device_type", device, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=SECONDS,
        env={**os.environ, "PLUMBLINE_PYTHON": sys.executable if fresh else warm_python()})


def result_file(output: Path, kind: str = "result") -> Path:
    """The only result or details file of a run."""
    (path,) = output.glob(f"accuracy_checking_{kind}_*.csv")
    return path


def rows(output: Path, kind: str = "result") -> list[list[str]]:
    """Its rows behind the header."""
    with result_file(output, kind).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))[1:]


def statuses(output: Path) -> dict[str, tuple[str, str]]:
    """Forward and backward of each call."""
    return {row[0]: (row[1], row[2]) for row in rows(output)}


def broken_python(directory: Path, code: str, *, fresh: bool = False) -> Path:
    """An interpreter whose executors run `code`, which spoils some API, before anything else."""
    path = directory / "broken_python"
    code = f"import os, time\nimport torch\n{code}\n"
    if not fresh:
        return spoiled_python(path, code)
    path.write_text(f"#!{sys.executable}\n{code}import runpy, sys\nsys.argv = ['server']\n"
                    "runpy.run_module('plumbline.precheck_run.server', run_name='__main__')\n")
    path.chmod(0o755)
    return path
