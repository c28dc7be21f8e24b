"""Trains a small model under TrainerMonitorV2: upstream's where it is installed, else ours.

    python record_monitor_v2.py DIRECTORY one|list
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import torch
from torch import nn

if importlib.util.find_spec("msprobe"):
    from msprobe.core.monitor_v2.trainer import TrainerMonitorV2
else:
    from plumbline import TrainerMonitorV2


class Net(nn.Module):
    """A tuple as output, an argument by keyword, a frozen part."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.ln, self.fc2 = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.relu(self.ln(self.fc1(x))) * scale
        return self.frozen(self.fc2(hidden)), hidden


def main() -> None:
    output, form = Path(sys.argv[1]), sys.argv[2]
    output.mkdir(parents=True)
    config = output.with_suffix(".json")
    parts = ("module", "weight_grad", "optimizer", "param")
    config.write_text(json.dumps({
        "output_dir": str(output), "step_count_per_record": 2, "start_step": 1,
        "collect_times": 4, "monitors": {part: {"enabled": True} for part in parts}}))
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    monitor = TrainerMonitorV2(str(config), fr="pytorch")
    monitor.start(model=[model] if form == "list" else model, optimizer=optimizer)
    for _ in range(6):
        optimizer.zero_grad()
        y, hidden = model(torch.randn(3, 4), scale=torch.ones(1))
        (y.square().mean() + hidden.mean()).backward()
        optimizer.step()
    monitor.stop()


main()
