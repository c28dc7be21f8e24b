"""Arguments of the constructor win; class methods; the deprecated names of older scripts."""

import torch

from msprobe.pytorch import PrecisionDebugger

torch.manual_seed(3)
PrecisionDebugger(dump_path="./dump", task="statistics", level="L1", step=[0, "2-3"])
weight = torch.randn(4, 4, requires_grad=True)
for _ in range(5):
    PrecisionDebugger.start()
    torch.matmul(torch.ones(2, 4), weight).tanh().sum().backward()
    PrecisionDebugger.forward_backward_dump_end()
    PrecisionDebugger.step()
