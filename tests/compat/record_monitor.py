"""Trains two layers under the TrainerMon of upstream or plumbline, whose Python runs this.

record_monitor.py CONFIG OUTPUT: three optimizer steps of two micro-batches. Prints upstream's
matrices of Adam's updates and ratios by tag.
"""

import json
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
monitor = TrainerMon(sys.argv[1], params_have_main_grad=False)
monitor.set_monitor(model, grad_acc_steps=2, optimizer=optimizer)
for _ in range(3):
    for _ in range(2):
        model(torch.randn(5, 4)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("matrices " + json.dumps({
    f"{name}/{kind}": one.histogram_sum_data_np.tolist()
    for kind, maps in (("adam_update", "update_heatmap_visualizer"),
                       ("adam_ratio", "ratio_heatmap_visualizer"))
    for name, one in getattr(monitor, maps, {}).items()}))
