"""Training with the recorder is bit for bit the training without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import front_ends
import pytest
import torch
from ranks import PROLOGUE, run_ranks
from recording import config, run, run_script
from torch import nn

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


MODELS = ["gpt2", "llama", "conv", "lstm", "gan", "blocks"]


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Any, dict[str, Any]]]:
    """Where the front ends wrote; (model, front end) -> what its training gave."""
    pytest.importorskip("transformers")
    directory = tmp_path_factory.mktemp("trainings")
    script = Path(__file__).parent / "neutral_models.py"
    done = run_script(script, directory, *MODELS)
    for word in ("stops watching", "hooks_failed", "is left out", "is not recorded"):
        assert word not in done.stdout + done.stderr, word
    return directory, {(one.pop("model"), one.pop("front end")): one
                       for one in results_in(done.stdout)}


def results_in(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line[7:]) for line in printed.splitlines() if line.startswith("RESULT ")]


def expect_evidence(directory: Path, name: str, ranks: int = 1) -> None:
    """The front end did watch."""
    found = list((directory / "out").glob(front_ends.EVIDENCE[name]))
    assert len(found) >= ranks, (directory, name)
    if name in front_ends.RECORDERS and found[0].name == "dump.json":
        assert all("backward" in path.read_text() for path in found) or "overflow" in name
        assert not any((path.parent / "dump_error_info.log").exists() for path in found)


@pytest.mark.parametrize("model", MODELS)
def test_watched_trainings_are_the_same_bits(
    trainings: tuple[Path, dict[Any, dict[str, Any]]], model: str
) -> None:
    directory, found = trainings
    bare = found[model, "none"]
    assert set(bare) == {"changed", "losses", "gradients", "weights", "buffers", "optimizer",
                         "random"}
    assert bare["changed"] == []
    for name in front_ends.NAMES:
        assert found[model, name] == bare, name
        expect_evidence(directory / model / name, name)


RANKS = PROLOGUE + """
import functools, json
from pathlib import Path
from torch.nn.parallel import DistributedDataParallel
sys.path.insert(0, sys.argv[5])
import front_ends, neutral_models
join()
def make():
    training = neutral_models.convolutions(DistributedDataParallel)
    torch.manual_seed(rank)  # data of its own
    return training
for name in ("none", *front_ends.NAMES):
    found = front_ends.train(name, make, Path(sys.argv[4]) / name)
    print("RESULT " + json.dumps({"front end": name, **found}), flush=True)
leave()
"""


def test_watched_ranks_train_the_same_bits(tmp_path: Path) -> None:
    printed = run_ranks(tmp_path, RANKS, tmp_path, Path(__file__).parent)
    bares = []
    for rank, text in enumerate(printed):
        found = {one.pop("front end"): one for one in results_in(text)}
        bares.append(found["none"])
        assert all(" DistributedDataParallel." in one for one in found["none"]["changed"])
        for name in front_ends.NAMES:
            assert found[name] == found["none"], (rank, name)
    assert bares[0]["weights"] == bares[1]["weights"]
    assert bares[0]["losses"] != bares[1]["losses"]
    for name in front_ends.NAMES:
        expect_evidence(tmp_path / name, name, ranks=2)


def test_what_a_front_end_may_not_do_is_seen() -> None:
    def bit(model: nn.Module) -> None:
        with torch.no_grad():
            model[0].bias[0] = -model[0].bias[0]

    deeds: list[tuple[str, Any]] = [
        ("weights", bit), ("random", lambda model: torch.rand(1)),
        ("0 torch.relu", lambda model: setattr(torch, "relu", lambda x: x)),
        ("Linear.own", lambda model: setattr(model[0], "own", 1)),
        ("Linear._forward_hooks", lambda model: model[0].register_forward_hook(print)),
        ("hooks of parameter 1", lambda model: model[0].bias.register_hook(print)),
    ]
    for kind, deed in deeds:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 2))
        training = front_ends.Training([model], [], lambda trace: None)
        before, (trace, other) = front_ends.objects_of(training), [front_ends.Trace() for _ in "ab"]
        trace.end_step(training)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "relu", torch.relu)
            deed(model)
            seen = front_ends.changed(before, training)
        other.end_step(training)
        seen += [name for name, one in trace.result().items() if other.result()[name] != one]
        assert [name for name in seen if kind in name] == seen != [], (kind, seen)
