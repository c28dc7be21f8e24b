"""Records max, min, mean and norm of every call of one training step.

python examples/record_statistics.py [DIRECTORY]
"""

from __future__ import annotations

import sys
from pathlib import Path

import small_model
import torch

from plumbline.pytorch import PrecisionDebugger, seed_all

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/statistics").resolve()
seed_all(1234)
debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=str(out))
model, inputs, target = small_model.make()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    debugger.start(model)
    loss = torch.nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    debugger.stop()
    optimizer.step()
    optimizer.zero_grad()
    debugger.step()
print(f"recorded: {', '.join(sorted(str(p.relative_to(out)) for p in out.glob('step*/*/*.json')))}")
