"""A training whose calls are checked by another process while it runs.

    python online_training.py CONFIG_JSON STEPS DEVICE [PAUSE]

Prints a digest of all parameters at the end: the same with and without a check. CONFIG_JSON "-"
trains without one. PAUSE seconds lie between steps.
"""

from __future__ import annotations

import hashlib
import sys
import time

import torch
from torch import nn

CALLS = ["mm", "addmm", "gelu", "tanh", "native_layer_norm", "_softmax", "exp", "sqrt", "mul",
         "sigmoid"]


class Model(nn.Module):
    """Every operator of CALLS by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 24)
        self.norm = nn.LayerNorm(24)
        self.last = nn.Linear(24, 8)
        self.matrix = nn.Parameter(torch.randn(8, 12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.gelu(self.first(x))
        x = torch.tanh(self.norm(x))
        x = torch.softmax(self.last(x), -1)
        y = torch.mm(x, self.matrix)
        y = torch.sqrt(torch.exp(y)) * torch.sigmoid(y)
        return torch.mul(y, y).mean()


def main() -> None:
    config, steps, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = Model()
    batches = [torch.randn(10, 16) for _ in range(steps)]
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = None
    if config != "-":
        from plumbline.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(config_path=config)
    for batch in batches:
        if debugger is not None:
            debugger.start(model)
        optimizer.zero_grad()
        model(batch.to(device)).backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        optimizer.step()
        time.sleep(pause)
        print("step", flush=True)
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    print(digest.hexdigest(), flush=True)


if __name__ == "__main__":
    main()
