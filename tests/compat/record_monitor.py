"""Trains two layers under the TrainerMon of upstream or plumbline, whose Python runs this.

record_monitor.py CONFIG OUTPUT: three optimizer steps of two micro-batches.
"""

import os
import sys

import torch

os.environ["MONITOR_OUTPUT_DIR"] = sys.argv[2]  # read when the module is loaded
try:  # upstream's environments hold plumbline too
    from msprobe.pytorch import TrainerMon
except ImportError:
    from plumbline.pytorch import TrainerMon

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(torch.relu(self.fc1(x)))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
TrainerMon(sys.argv[1], params_have_main_grad=False).set_monitor(
    model, grad_acc_steps=2, optimizer=optimizer)
for _ in range(3):
    for _ in range(2):
        model(torch.randn(5, 4)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
