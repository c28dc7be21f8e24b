"""Records the tensors themselves of every call below one module, as .pt files.

python examples/record_tensors.py [DIRECTORY]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import small_model
import torch

from plumbline.pytorch import PrecisionDebugger, seed_all

out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/tensors").resolve()
out.mkdir(parents=True, exist_ok=True)
config = {"task": "tensor", "level": "L1", "dump_path": str(out),
          "tensor": {"list": ["linear", "layer_norm"], "data_mode": ["forward"]}}
(out / "config.json").write_text(json.dumps(config))
seed_all(1234)
debugger = PrecisionDebugger(config_path=str(out / "config.json"))
model, inputs, target = small_model.make()
debugger.start(model)
torch.nn.functional.mse_loss(model(inputs), target).backward()
debugger.stop()
debugger.step()
for path in sorted(out.glob("step0/*/dump_tensor_data/*.pt")):
    print(path.name, tuple(torch.load(path, weights_only=True).shape))
