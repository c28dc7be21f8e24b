"""Training with the recorder is bit for bit the training without it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from recording import config, run

TRAINING = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16) for _ in range(3))
        self.drop = nn.Dropout(0.2)

    def forward(self, x, scale=1.0):
        # q, k and v send three gradients to x: their order of addition must not change.
        weights = torch.softmax(self.q(x) @ self.k(x).transpose(-1, -2) * scale, -1)
        return self.drop(weights) @ self.v(x)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 16))

    def forward(self, x):
        x = x + self.attention(self.norm(x), scale=0.25)
        y = self.mlp(x)
        y += x
        y.mul_(0.5)
        return y, {"aux": y.mean()}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, 32, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x, extra = block(x)
        return self.head(F.dropout(x, 0.1, self.training))

torch.manual_seed(7)
torch.set_num_threads(1)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
debugger = None
if sys.argv[1] != "none":
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(sys.argv[1])
for step in range(20):
    ids = torch.randint(0, 32, (2, 8))
    if debugger:
        debugger.start(model=net)
    loss = F.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if debugger:
        debugger.stop()
        debugger.step()
    print(loss.item().hex(), norm.item().hex())
print(torch.cat([p.detach().flatten() for p in net.parameters()]).numpy().tobytes().hex())
"""


@pytest.fixture(scope="module")
def reference() -> str:
    return run(TRAINING, "none").stdout


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor", "overflow_check"])
def test_losses_norms_and_weights_are_equal(
    tmp_path: Path, reference: str, level: str, task: str
) -> None:
    options = {"overflow_nums": -1} if task == "overflow_check" else {"summary_mode": "md5"}
    path = config(tmp_path, task=task, level=level, **options)
    recorded = run(TRAINING, path).stdout
    assert [line for line in recorded.splitlines() if not line.startswith("20")] == (
        reference.splitlines()
    )
    assert (tmp_path / "out/step19/rank/dump.json").exists()


MODELS = ["gpt2", "llama", "conv", "checkpoint"]
SETTINGS = [
    {"level": "L0", "task": "statistics"},
    {"level": "L1", "task": "statistics", "summary_mode": "md5"},
    {"level": "mix", "task": "statistics"},
    {"level": "mix", "task": "tensor"},
]


def weights_of(name: str, arguments: list[str]) -> list[str]:
    script = Path(__file__).parent / "neutral_models.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), name, *arguments],
        capture_output=True, text=True, timeout=400, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("result ")]


@pytest.mark.parametrize("name", MODELS)
def test_models_end_with_the_same_bits(tmp_path: Path, name: str) -> None:
    if name in ("gpt2", "llama"):
        pytest.importorskip("transformers")
    paths = []
    for number, settings in enumerate(SETTINGS):
        (tmp_path / str(number)).mkdir()
        paths.append(str(config(tmp_path / str(number), **settings)))
    watched = tmp_path / "monitor.json"
    watched.write_text(json.dumps({
        "targets": {}, "ops": ["norm", "max", "zeros"], "xy_distribution": True,
        "wg_distribution": True, "mv_distribution": True, "param_distribution": True,
        "mg_direction": True}))
    others = [f"black_box:{tmp_path / 'box'}", f"monitor:{watched}"]
    reference, *recorded = weights_of(name, ["none", *paths, *others])
    assert recorded == [reference] * (len(SETTINGS) + len(others))
    assert list((tmp_path / "box").glob("*/actv_0-63.csv"))
    assert list(tmp_path.glob("monitor.json.out/*/actv_grad_19-19.csv"))
    for number in range(len(SETTINGS)):
        rank = tmp_path / str(number) / "out/step19/rank"
        assert "backward" in (rank / "dump.json").read_text()
        assert not (rank / "dump_error_info.log").exists()
