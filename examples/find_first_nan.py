"""Finds the call that makes the first Inf of a small transformer in half precision.

The scale of one attention layer is wrong, so that its scores leave the range of float16.

python examples/find_first_nan.py [DIRECTORY]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn

from plumbline.pytorch import PrecisionDebugger

WIDTH, WORDS = 64, 12


class Attention(nn.Module):
    """One head over the whole sequence."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.scale = scale

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Adds what each word sees in the others."""
        query, key, value = self.qkv(words).chunk(3, dim=-1)
        scores = torch.matmul(query * self.scale, key.transpose(-1, -2))
        return words + torch.matmul(torch.softmax(scores, dim=-1), value)


out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/first_nan").resolve()
settings = {
    "task": "overflow_check",
    "level": "mix",
    "dump_path": str(out),
    "overflow_check": {"overflow_nums": 1},
}
out.mkdir(parents=True, exist_ok=True)
config = out / "config.json"
config.write_text(json.dumps(settings))

torch.manual_seed(0)
model = nn.Sequential(Attention(0.125), Attention(20000.0), Attention(0.125)).half()
words = torch.randn(1, WORDS, WIDTH).half()
debugger = PrecisionDebugger(str(config))
for _ in range(3):
    debugger.start(model)
    model(words)
    debugger.stop()
    debugger.step()

rank = out / "step0" / "rank"
entries = json.loads((rank / "dump.json").read_text())["data"]
parents = json.loads((rank / "construct.json").read_text())
for name, entry in entries.items():
    if "overflow_origin" not in entry:
        continue  # the place of a parameter's gradient
    tensor = entry["output"][0]
    inputs = [item.get("Max", item.get("value")) for item in entry["input_args"]]
    print(f"{name} in {parents[name]}: {tensor['overflow_reason']} of finite inputs up to {inputs}")
    saved = torch.load(rank / "dump_tensor_data" / tensor["data_name"])
    print(f"{int((~torch.isfinite(saved)).sum())} of {saved.numel()} elements are not finite")
