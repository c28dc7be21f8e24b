"""module_dump around one sub-module."""

import torch

from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end, seed_all

seed_all(11)
# Upstream hooks no model at level L1; module_dump adds the one module.
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
debugger = PrecisionDebugger(dump_path="./dump", task="statistics", level="L1", step=[0])
debugger.start()
module_dump(model[2], "head")
model(torch.randn(2, 4)).sum().backward()
module_dump_end()
debugger.stop()
debugger.step()
