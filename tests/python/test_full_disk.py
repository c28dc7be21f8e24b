"""A disk that fills up, or a dump_path that cannot be written, is never the training's trouble."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run
from small_disk import run_on_small_disk

import plumbline

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


# Steps with more and more in their journal, so that the disk fills up in the middle of one.
SMALL = """
import atexit, os, shutil, sys, time
settings, out, kept = sys.argv[1:]
atexit.register(shutil.copytree, out, kept)  # behind the recorder's own end, which comes later
import torch
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
data = torch.randn(4, 8)
debugger = PrecisionDebugger(settings)
for step in range(8):
    debugger.start(model)
    value = data
    for turn in range(20):
        value = torch.tanh(value) + turn
    model(value).square().mean().backward()
    debugger.stop()
    debugger.step()
    # fault
"""


def full_recording(directory: Path, task: str) -> tuple[Path, str]:
    """The dump of a run whose disk of 300 KB fills up, and what the recorder said of it."""
    directory.mkdir()
    settings = config(directory, task=task, level="mix")
    options = json.loads(settings.read_text())
    settings.write_text(json.dumps({**options, "min_free_bytes": 0}))
    script = directory / "train.py"
    script.write_text(SMALL)
    out, kept = directory / "out", directory / "kept"
    return kept, run_on_small_disk(script, out, "300k", settings, out, kept).stderr


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_recording_that_a_full_disk_cut_is_never_judged_completely(
    tmp_path: Path, task: str
) -> None:
    sides = []
    for name in ("target", "golden"):
        kept, said = full_recording(tmp_path / name, task)
        assert "No space left" in said
        assert "statistics continue" not in said
        assert "not recorded" in said or "What this step recorded" in said
        done = subprocess.run([PLUMB, "recover", kept], capture_output=True, text=True, check=True)
        assert "killed" not in done.stdout
        if "recovered" in done.stdout and "journal is switched off" in said:
            assert "not cut by a kill" in done.stdout
        sides.append(kept)
    # What is missing is counted in the last step that has a directory, or before it.
    logs = sorted(sides[0].rglob("dump_error_info.log"))
    assert logs
    assert any("No space left" in log.read_text() for log in logs)
    done = subprocess.run(
        [PLUMB, "compare", *sides, "-o", tmp_path / "result", "--fail-on", "any"],
        capture_output=True, text=True, check=False,
    )
    # Steps without a dump.json have failed; where all have one, --fail-on finds what is missing.
    assert done.returncode in (1, 3), done.stdout
    assert done.stdout.startswith("not judged completely"), done.stdout
    # Each of the steps that a log stands in, alone.
    for log in logs:
        step = log.parent.relative_to(sides[0])
        if not (sides[1] / step / "dump.json").exists():  # this disk was full a step earlier
            with pytest.raises(FileNotFoundError):
                plumbline.compare(sides[0] / step, sides[1] / step)
            continue
        alone = plumbline.compare(sides[0] / step, sides[1] / step)
        assert not alone.complete
        assert alone.answer.startswith("not judged"), alone.answer


def test_losses_are_counted_by_a_reserve_where_a_step_cannot_begin(tmp_path: Path) -> None:
    """Nothing can be made any more when the second step begins: the first one says so."""
    settings = config(tmp_path, level="mix")
    out, kept = tmp_path / "out", tmp_path / "kept"
    script = tmp_path / "train.py"
    fill = """    if step == 0:
        while os.path.exists(out + "/step0/rank/.dump.journal"): time.sleep(0.01)
        with open(out + "/ballast", "wb", buffering=0) as ballast:
            try:
                while True: ballast.write(bytes(4096))
            except OSError: pass
"""
    script.write_text(SMALL.replace("    # fault\n", fill))
    result = run_on_small_disk(script, out, "3m", settings, out, kept)
    assert "Step 1 is not recorded" in result.stderr
    assert "7 steps were not recorded" in result.stderr
    log = kept / "step0" / "rank" / "dump_error_info.log"
    assert "steps_dropped: 7 (step 7: " in log.read_text()
    assert "Module.2.Linear.parameters_grad" in (log.parent / "dump.json").read_text()
