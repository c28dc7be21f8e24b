"""A disk that fills up, or a dump_path that cannot be written, is never the training's trouble."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recording import config, run

# Losses of three steps, the same with and without a recorder. The file size limit makes every
# write beyond it fail as a full disk does (EFBIG instead of ENOSPC), also for root.
TRAIN = """
import json, resource, sys
import torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(32, 64)
record = sys.argv[1] != "none"
if record:
    debugger = PrecisionDebugger(sys.argv[1])
limit = int(sys.argv[2])
losses = []
for step in range(3):
    if record:
        debugger.start(model)
    if step == 1 and limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if record:
        debugger.stop()
        debugger.step()
    if step == 1 and limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    losses.append(loss.item())
print(json.dumps(losses))
"""


def losses_of(output: str) -> str:
    """The last line of the program's own output."""
    return output.strip().splitlines()[-1]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("limit", [1, 3000, 40000])
def test_training_goes_on_when_the_disk_is_full(tmp_path: Path, task: str, limit: int) -> None:
    plain = run(TRAIN, "none", 0)
    recorded = run(TRAIN, config(tmp_path, task=task, level="mix"), limit)
    assert losses_of(recorded.stdout) == losses_of(plain.stdout)
    lines = [line for line in (recorded.stdout + recorded.stderr).splitlines() if "[ERROR]" in line]
    hit = task == "tensor" or limit < 40000
    # One message per thing that fails: the journal, the tensor files, the step's final files.
    texts = [line.split("[ERROR]")[1] for line in lines]
    assert len(set(texts)) == len(texts)
    assert (1 <= len(texts) <= 3) == hit, texts
    assert all(str(tmp_path) in text and "File too large" in text for text in texts)
    # The steps before and after are complete; that one is valid or absent, never half a file.
    for step in range(3):
        path = tmp_path / "out" / f"step{step}" / "rank" / "dump.json"
        if step != 1 or path.exists():
            entries = json.loads(path.read_text())["data"]
            if step == 0 or not hit:
                assert "Module.2.Linear.parameters_grad" in entries
    assert not list(tmp_path.rglob("*.tmp"))


def test_tensors_that_were_lost_are_not_named_and_counted(tmp_path: Path) -> None:
    run(TRAIN, config(tmp_path, task="tensor", level="mix"), 40000)
    folder = tmp_path / "out" / "step1" / "rank"
    text = (folder / "dump.json").read_text()
    named = [part.split('"')[1] for part in text.split('"data_name": ')[1:] if part[0] == '"']
    present = {path.name for path in (folder / "dump_tensor_data").iterdir()}
    assert set(named) <= present
    log = (folder / "dump_error_info.log").read_text()
    assert "tensors" in log


def test_a_dump_path_that_cannot_be_made_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = config(tmp_path, dump_path=str(tmp_path / "file" / "out"), level="mix")
    plain = run(TRAIN, "none", 0)
    recorded = run(TRAIN, settings, 0)
    assert losses_of(recorded.stdout) == losses_of(plain.stdout)
    text = recorded.stdout + recorded.stderr
    assert "is not recorded" in text
    assert str(tmp_path / "file") in text
