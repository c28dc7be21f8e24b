"""Level debug: values that the script names itself."""

import torch

from msprobe.pytorch import PrecisionDebugger

torch.manual_seed(5)
debugger = PrecisionDebugger(dump_path="./dump", task="tensor", level="debug")
values = torch.randn(3, requires_grad=True)
debugger.save({"values": values, "pair": [values * 2, 1.5]}, "state")
values.pow(2).sum().backward()
debugger.save(values, "again", save_backward=False)
debugger.step()
