"""Imports the recorder on whatever PyTorch the interpreter has and says what works, as JSON.

    python record_on_old_torch.py OUT
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

before = {name: getattr(torch, name) for name in ("add", "matmul", "relu")}
import plumbline.pytorch as recorder  # noqa: E402

out = Path(sys.argv[1])
recorder.seed_all(3, rm_dropout=False)
debugger = recorder.PrecisionDebugger(dump_path=str(out), level="L1")


def train() -> list[float]:
    """Three steps of a small net with a fixed seed."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        loss = model(torch.randn(5, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def modules_work() -> bool:
    """Whether another process can make a debugger at level mix (it is one per process)."""
    code = (
        "import sys, plumbline, plumbline.pytorch as recorder\n"
        "try: recorder.PrecisionDebugger(dump_path=sys.argv[1], level='mix')\n"
        "except plumbline.UnsupportedError as error:\n"
        "    sys.exit(4 if 'needs pytorch 2.2' in str(error) else 5)\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, f"{out}.mix"], timeout=120,
                          check=False)
    assert done.returncode in (0, 4), done.returncode
    return done.returncode == 0


answer: dict[str, Any] = {"torch": torch.__version__, "python": list(sys.version_info[:2])}
answer["modules"] = modules_work()
closed = train()
answer["untouched while closed"] = all(getattr(torch, k) is v for k, v in before.items())
try:
    debugger.start()
    recorded = train()
    debugger.stop()
    debugger.step()
    answer["same losses"] = recorded == closed
    dump = json.loads((out / "step0" / "rank" / "dump.json").read_text())
    answer["entries"] = list(dump["data"])
    linear = dump["data"]["Functional.linear.0.forward"]
    answer["statistics"] = linear["output"][0]["Max"]
except Exception as error:
    answer["recording"] = repr(error)
answer["untouched at the end"] = all(getattr(torch, k) is v for k, v in before.items())
print("ANSWER", json.dumps(answer))
