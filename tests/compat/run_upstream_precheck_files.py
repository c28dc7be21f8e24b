"""Upstream's own writers of details files and its api_precision_compare on files of anyone.

    python run_upstream_precheck_files.py REQUESTS.json

REQUESTS is a list of {"make": directory} (details of a worse and of a better device, npu.csv and
gpu.csv) and {"npu": file, "gpu": file, "out": directory}.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import torch

import msprobe.pytorch.api_accuracy_checker.compare.api_precision_compare as two_sided
from msprobe.pytorch.api_accuracy_checker.compare.compare import Comparator

try:
    from msprobe.pytorch.api_accuracy_checker.run_ut.run_ut_utils import UtDataInfo
except ImportError:  # the newest release
    from msprobe.pytorch.api_accuracy_checker.acc_check.acc_check_utils import UtDataInfo

APIS = ("add", "relu", "matmul", "conv2d", "sum", "topk", "layer_norm", "mul", "linalg.inv")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
RAISED = {torch.float16: torch.float32, torch.bfloat16: torch.float32,
          torch.float32: torch.float64, torch.float64: torch.float64}


def float_pair(dtype: torch.dtype, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    bench = torch.randn(64, 8, dtype=torch.float64)
    bench[0, :4] = torch.tensor([0.0, 1e-7, 1e-4, 1000.0])
    device = bench * (1 + noise * torch.randn_like(bench))
    return bench.to(dtype).to(RAISED[dtype]), device.to(dtype)


def other_pairs(noise: float) -> list[tuple[str, Any, Any]]:
    """Outputs that are no floats of one shape; `noise` above 0.1 is the device with defects."""
    bad = noise > 0.1
    whole = torch.arange(10)
    inf = torch.tensor([1.0, float("inf")])
    nan = torch.tensor([1.0, float("nan")])
    return [
        ("Torch.argsort.0", whole, whole + int(bad)),
        ("Torch.eq.0", whole > 3, whole > (4 if bad else 3)),
        ("Tensor.item.0", 3, 4 if bad else 3),
        ("Tensor.tolist.0", "a", "a"),
        ("Torch.cat.0", torch.ones(2, 3), torch.ones(3, 2) if bad else torch.ones(2, 3)),
        ("Torch.empty.0", torch.ones(0), torch.ones(0)),
        ("Torch.empty.1", torch.ones(2, 0), torch.ones(2, 0)),
        ("Torch.none.0", None, None),
        ("Torch.exp.0", inf.double(), inf),
        ("Torch.exp.1", inf.double(), nan if bad else inf),
        ("Torch.add.7", inf.double(), nan if bad else inf),
        ("Torch.matmul.7", inf.double(), nan if bad else inf),
        ("Torch.relu.7", nan, nan),
        ("Torch.view_as_complex.0", torch.ones(3, dtype=torch.complex64),
         torch.ones(3, dtype=torch.complex64)),
        ("Torch.max.0", [torch.ones(3).double(), whole], [torch.ones(3), whole + int(bad)]),
        ("Functional.dropout.0", torch.ones(200), torch.ones(200)),
    ]


class Side:
    """The details file of one device."""

    def __init__(self, directory: Path, name: str):
        self.comparator = Comparator(str(directory / f"{name}_result.csv"),
                                     str(directory / f"{name}.csv"), False)

    def add(self, call: str, outputs: tuple[Any, Any],
            grads: tuple[Any, Any] = (None, None)) -> None:
        message = "no gradient" if "cat" in call else ""
        try:
            self.comparator.compare_output(
                call, UtDataInfo(*grads, outputs[1], outputs[0], None, None, message))
        except Exception as error:  # as run_ut does with whatever a call raises
            print(call, error)


def make(directory: Path) -> None:
    directory.mkdir(parents=True)
    for name, noise in (("npu", 0.2), ("gpu", 1e-3)):
        torch.manual_seed(1)
        side = Side(directory, name)
        for (api, (number, dtype)), (step, factor) in itertools.product(
                itertools.product(APIS, enumerate(FLOATS)), enumerate((1e-4, 1, 1e-6))):
            bench, device = float_pair(dtype, noise * factor)
            side.add(f"Torch.{api}.{10 * number + step}", (bench, device),
                     ([bench, bench], [device, bench.to(dtype)]))
        for call, bench, device in other_pairs(noise):
            side.add(call, (bench, device))


def compare_sides(npu: str, gpu: str, out: str) -> None:
    folder = Path(out)
    folder.mkdir(parents=True)
    two_sided.api_precision_compare(two_sided.CompareConfig(
        npu, gpu, str(folder / "result.csv"), str(folder / "details.csv")))


def main() -> None:
    for request in json.loads(Path(sys.argv[1]).read_text()):
        if "make" in request:
            make(Path(request["make"]))
        else:
            compare_sides(**request)


if __name__ == "__main__":
    main()
