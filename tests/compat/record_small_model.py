"""Records one training step of a small model with an installed upstream release.

Run by the Python of the upstream environment: record_small_model.py [OUT TASK LEVEL SUMMARY EPS]...
A recorder is one per process: each recording is made by a child, forked after the slow imports.
"""

import gc
import json
import os
import sys

import torch

try:  # upstream patches functions that transformers inspects while it is imported
    import transformers  # noqa: F401
except ImportError:
    pass
from msprobe.pytorch import PrecisionDebugger

F = torch.nn.functional


class Norm(torch.nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        variance = torch.mean(torch.pow(x, 2), -1, keepdim=True)
        return torch.mul(x, torch.rsqrt(torch.add(variance, self.eps))) * self.weight


class Block(torch.nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.norm = Norm(width, eps)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.silu(self.up(self.norm(x))))


class Model(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 16)
        self.layers = torch.nn.ModuleList([Block(16, 1e-6), Block(16, eps), Block(16, 1e-6)])
        self.head = torch.nn.Linear(16, 50)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def odd_values():
    """Calls whose values and types are the hard cases of a comparison."""
    halves = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float16)
    torch.add(halves, 0.5)
    torch.add(torch.tensor([1, 2, 3]), 2)
    torch.add(torch.tensor([1.0, float("inf"), float("nan")]), 1.0)
    torch.add(torch.tensor(1.5), 2.5)
    torch.mul(torch.ones(4, dtype=torch.bfloat16), 3)
    torch.abs(torch.tensor([1 + 2j, -3j]))
    torch.logical_not(torch.tensor([True, False]))
    torch.sum(torch.zeros(0))
    torch.mul(torch.full((3,), -5.0), 1.0)


def record(out, task, level, summary, eps):
    os.makedirs(out, exist_ok=True)
    config = {
        "task": task, "dump_path": out, "rank": [], "step": [0], "level": level,
        "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": summary},
        "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
    }
    config_path = os.path.join(out, "config.json")
    with open(config_path, "w", encoding="ascii") as file:
        json.dump(config, file)
    torch.manual_seed(0)
    model = Model(float(eps))
    ids = torch.randint(0, 50, (2, 8))
    debugger = PrecisionDebugger(config_path=config_path)
    debugger.start(model=model)
    odd_values()
    logits = model(ids)
    F.cross_entropy(logits.flatten(0, 1), ids.flatten()).backward()
    debugger.stop()
    debugger.step()


def main():
    words = sys.argv[1:]
    failures = 0
    gc.freeze()  # the children's last collections leave alone what is imported
    for at in range(0, len(words), 5):
        child = os.fork()
        if child == 0:
            record(*words[at:at + 5])
            return 0
        failures += os.waitpid(child, 0)[1] != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
