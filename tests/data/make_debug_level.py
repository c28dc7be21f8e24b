"""Makes upstream_1.2.2/debug_level with the real tool; run it with upstream's interpreter.

    python make_debug_level.py OUTPUT_DIRECTORY [plumbline]

With `plumbline` the same script runs on plumbline: tests/python/test_debug_level.py compares.
"""

import json
import sys
from pathlib import Path

if len(sys.argv) < 3:
    import transformers  # noqa: F401  (upstream's import order)

    from msprobe.pytorch import PrecisionDebugger
else:
    from plumbline.pytorch import PrecisionDebugger
import torch

output = Path(sys.argv[1])
task = output.name  # "statistics" or "tensor"
output.mkdir(parents=True, exist_ok=True)
config = output / "config.json"
config.write_text(json.dumps(
    {"task": task, "level": "debug", "dump_path": str(output), task: {}}
))
debugger = PrecisionDebugger(str(config))

# Small integers and halves: every statistic is exact in float32, whatever the order of sums.
x = torch.arange(12, dtype=torch.float32).reshape(3, 4).requires_grad_()
w = torch.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
y = x * w
debugger.save(x, "x")
debugger.save({"y": y, "list": [y.detach(), w, 3], "text": "a", "tuple": (w, 1.5)}, "tree")
debugger.save(y, "x")
debugger.save(2.5, "number")
debugger.save(True, "truth")
debugger.save(y, "forward_only", save_backward=False)
debugger.save(y, 5)
debugger.save(y, "skipped", save_backward=1)
debugger.save(None, "none")
y.sum().backward()
(x * w).sum().backward()
config.unlink()
