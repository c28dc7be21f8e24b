"""Trains a small network with and without the perturbation check, in one process.

    python perturbed_training.py DIRECTORY [CASE ...]

A case is a JSON object for section free_benchmark, with "dtype" and "autocast" of its own. Prints
one JSON object per case: whether losses, parameters, buffers, gradients and the random state are
the same bits as without, and how many calls were compared.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from plumbline.debugger import DebuggerBase
from plumbline.pytorch import PrecisionDebugger

STEPS = 20


class Net(nn.Module):
    """Dropout, batch norm, in-place ReLU, views, an embedding that renormalises, mul_."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.embedding = nn.Embedding(10, 8, max_norm=1.0)
        self.head = nn.Linear(8, 5)

    def forward(self, images: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.norm(self.conv(images)))
        hidden = torch.nn.functional.max_pool2d(hidden, 2).flatten(2).mean(dim=2)
        hidden = hidden.mul_(2.0) + self.embedding(words)
        hidden[:, 0] = hidden[:, 1] * 0.5
        hidden = torch.add(hidden, hidden.t().contiguous().t(), alpha=0.1)
        return self.head(self.drop(hidden))


def train(case: dict[str, Any], debugger: Any) -> dict[str, Any]:
    """The bits that a training leaves."""
    torch.manual_seed(7)
    dtype = getattr(torch, case.get("dtype", "float32"))
    model = Net().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, words = torch.randn(STEPS, 4, 3, 8, 8).to(dtype), torch.randint(0, 10, (STEPS, 4))
    losses = []
    for step in range(STEPS):
        if debugger is not None:
            debugger.start()
        with torch.autocast("cpu", torch.bfloat16, enabled=case.get("autocast", False)):
            output = model(images[step], words[step])
            loss = nn.functional.cross_entropy(output.float(), words[step] % 5)
        loss.backward()
        if debugger is not None:
            debugger.stop()
        optimizer.step()
        losses.append(loss.detach().clone())
        if debugger is not None:
            debugger.step()
        if step + 1 < STEPS:
            optimizer.zero_grad()
    state = {f"state {name}": value.clone() for name, value in model.state_dict().items()}
    grads = {f"gradient {name}": one.grad for name, one in model.named_parameters()}
    return {"loss": torch.stack(losses), "random": torch.get_rng_state(), **state, **grads}


def different(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names of what has not the same bits."""
    return [name for name in one if not torch.equal(one[name].view(torch.uint8).flatten()
            if one[name].dim() else one[name], other[name].view(torch.uint8).flatten()
            if other[name].dim() else other[name])]


def summary_of(directory: Path) -> list[dict[str, str]]:
    """Rows of the summary."""
    [path] = directory.glob("rank*/free_benchmark_summary.csv")
    with path.open(newline="") as table:
        return list(csv.DictReader(table))


def run(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    """One case."""
    directory.mkdir(parents=True)
    section = {key: value for key, value in case.items() if key not in ("dtype", "autocast")}
    config = directory / "config.json"
    config.write_text(json.dumps({"task": "free_benchmark", "dump_path": str(directory / "out"),
                                  "free_benchmark": section}))
    before = {name: getattr(torch.Tensor, name) for name in ("mul_", "__add__", "mean")}
    bare = train(case, None)
    DebuggerBase._instance = None
    checked = train(case, PrecisionDebugger(str(config)))
    DebuggerBase._instance._close()
    rows = summary_of(directory / "out")
    return {"different": different(bare, checked),
            "patched": [name for name in before if getattr(torch.Tensor, name) is not before[name]],
            "calls": sum(int(row["calls"]) for row in rows),
            "reasons": sorted({row["reason"] for row in rows if row["reason"]}),
            "unexplained": [row["api"] for row in rows if row["unexplained"] != "0"]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for index, text in enumerate(sys.argv[2:]):
        print("RESULT " + json.dumps(run(json.loads(text), Path(sys.argv[1]) / str(index))))
