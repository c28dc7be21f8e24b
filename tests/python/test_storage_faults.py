"""Whatever happens to the directory or the disk while a training is recorded: the training goes on
with the same numbers, one line says what happened, and what is lost is counted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB, config, run
from small_disk import run_on_small_disk

import plumbline

# Three steps; `fault`, Python source that knows `out`, runs in the middle of the second.
TRAIN = """
import json, os, shutil, sys, time, resource
from pathlib import Path
settings, out, fault, uid = sys.argv[1:]
out = Path(out)
import torch
from plumbline.pytorch import PrecisionDebugger
torch.set_num_threads(1)
torch.manual_seed(0)
def remove(folder):  # files may appear in it meanwhile
    while folder.exists(): shutil.rmtree(folder, ignore_errors=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(32, 64)
if int(uid):
    os.setgroups([]), os.setgid(int(uid)), os.setuid(int(uid))
debugger = PrecisionDebugger(settings) if settings else None
losses = []
for step in range(3):
    if debugger: debugger.start(model)
    loss = model(data).square().mean()
    if step == 1 and debugger: exec(fault)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if debugger: debugger.stop()
    if debugger: debugger.step()
    losses.append(loss.item())
print(json.dumps(losses))
"""
NOBODY = 65534


def last_line(output: str) -> str:
    return output.strip().splitlines()[-1]


def troubles(result: subprocess.CompletedProcess[str]) -> list[str]:
    """Warnings and errors of the recorder.

    The complete files of step 0 are made durable in the background. A fault that removes them may
    come first, which is said and is no trouble of these tests.
    """
    lines = (result.stdout + result.stderr).splitlines()
    return [line for line in lines if re.search(r"\[(WARNING|ERROR)\]", line)
            and not re.search(r"/step0/rank/\w+\.json: .* may not survive a power failure", line)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings without any fault, by task; "loss": a file of what the training prints."""
    root = tmp_path_factory.mktemp("sound")
    recordings = {}
    for task in ("statistics", "tensor"):
        (root / task).mkdir()
        settings = config(root / task, task=task, level="mix")
        result = run(TRAIN, settings, root / task / "out", "pass", 0)
        assert not troubles(result)
        recordings[task] = root / task / "out"
    (root / "loss").write_text(last_line(run(TRAIN, "", root, "pass", 0).stdout))
    assert last_line(result.stdout) == (root / "loss").read_text()
    recordings["loss"] = root / "loss"
    return recordings


def rank(out: Path, step: int) -> Path:
    return out / f"step{step}" / "rank"


def answer(target: Path, golden: Path) -> str:
    return plumbline.compare(target, golden).answer


def lost_tensors(directory: Path) -> int:
    """As dump_error_info.log counts them."""
    log = directory / "dump_error_info.log"
    found = re.search(r"tensors_dropped: (\d+)", log.read_text()) if log.exists() else None
    return int(found[1]) if found else 0


def named_files(directory: Path) -> list[str]:
    text = (directory / "dump.json").read_text()
    return re.findall(r'"data_name": "([^"]+)"', text)


def check_whole(directory: Path, golden: Path) -> None:
    """Nothing of this step is missing."""
    assert answer(directory, golden).startswith("no wrong call"), answer(directory, golden)
    assert not (directory / "dump_error_info.log").exists()
    for name in named_files(directory):
        assert (directory / "dump_tensor_data" / name).is_file()


REMOVALS = {
    "step": "remove(out / 'step1')",
    "tensors": "remove(out / 'step1/rank/dump_tensor_data')",
    "everything": "remove(out)",
}


@pytest.mark.parametrize(
    ("task", "what"), [("statistics", "step"), ("tensor", "tensors"), ("tensor", "everything")]
)
def test_directory_removed(
    tmp_path: Path, sound: dict[str, Path], task: str, what: str
) -> None:
    out = tmp_path / "out"
    result = run(TRAIN, config(tmp_path, task=task, level="mix"), out, REMOVALS[what], 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    assert len(troubles(result)) == 1, troubles(result)
    assert "was removed" in troubles(result)[0]
    # The statistics are all there again; the tensors are counted and not named.
    directory, golden = rank(out, 1), rank(sound[task], 1)
    entries = json.loads((directory / "dump.json").read_text())["data"]
    assert list(entries) == list(json.loads((golden / "dump.json").read_text())["data"])
    if task == "statistics":
        check_whole(directory, golden)
    else:
        assert lost_tensors(directory) == len(named_files(golden))
        assert not named_files(directory)
        assert not answer(directory, golden).startswith("no wrong call")
    check_whole(rank(out, 2), rank(sound[task], 2))
    if what != "everything":
        check_whole(rank(out, 0), rank(sound[task], 0))


LINKS = {
    "step": ("step1", "shutil.move(out / 'step1', out.parent / 'moved')"),
    "tensors": (
        "step1/rank/dump_tensor_data",
        "remove(out / 'step1/rank/dump_tensor_data')",
    ),
    "removed step": ("step1", "remove(out / 'step1')"),
}


@pytest.mark.parametrize("what", LINKS)
def test_directory_replaced_by_a_link(
    tmp_path: Path, sound: dict[str, Path], what: str
) -> None:
    out = tmp_path / "out"
    foreign = tmp_path / "foreign"
    (foreign / "rank" / "dump_tensor_data").mkdir(parents=True)
    path, remove = LINKS[what]
    fault = f"{remove}; os.symlink({str(foreign)!r}, out / {path!r})"
    result = run(TRAIN, config(tmp_path, task="tensor", level="mix"), out, fault, 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    # What was removed and cannot be made again is lost: a second line says so.
    says = ["symbolic link", "statistics of this step are lost"] if what == "removed step" else []
    assert len(troubles(result)) == (2 if says else 1), troubles(result)
    assert all(text in troubles(result)[-1] for text in says)
    # Nothing went through the link.
    assert [path.name for path in foreign.rglob("*")] == ["rank", "dump_tensor_data"]
    for step in (0, 2):
        check_whole(rank(out, step), rank(sound["tensor"], step))
    golden = rank(sound["tensor"], 1)
    if what == "step":  # the directory is elsewhere now, and has the rest
        directory = tmp_path / "moved" / "rank"
        named = named_files(directory)
        assert lost_tensors(directory) == len(named_files(golden)) - len(named) > 0
        for name in named:
            assert (directory / "dump_tensor_data" / name).is_file()
    elif what == "tensors":
        assert lost_tensors(rank(out, 1)) == len(named_files(golden))


@pytest.mark.parametrize("was_removed", [False, True])
def test_dump_path_replaced_by_a_link(
    tmp_path: Path, sound: dict[str, Path], was_removed: bool
) -> None:
    """Steps after it are not recorded: they would land behind the link."""
    out = tmp_path / "out"
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    move = "remove(out)" if was_removed else "os.rename(out, out.parent / 'moved')"
    fault = f"{move}; os.symlink({str(foreign)!r}, out)"
    result = run(TRAIN, config(tmp_path, task="tensor", level="mix"), out, fault, 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    assert not list(foreign.iterdir())
    first, second = troubles(result)
    assert ("was removed" if was_removed else "was moved away") in first
    assert f"{out}: is a symbolic link" in second
    if was_removed:
        assert "statistics of this step are lost" in second
        return
    assert "Step 2 is not recorded" in second
    check_whole(rank(tmp_path / "moved", 0), rank(sound["tensor"], 0))
    directory, golden = rank(tmp_path / "moved", 1), rank(sound["tensor"], 1)
    entries = json.loads((directory / "dump.json").read_text())["data"]
    assert list(entries) == list(json.loads((golden / "dump.json").read_text())["data"])
    assert lost_tensors(directory) == len(named_files(golden)) - len(named_files(directory)) > 0
    assert not rank(tmp_path / "moved", 2).exists()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_dump_path_replaced_by_a_file(tmp_path: Path, sound: dict[str, Path], task: str) -> None:
    out = tmp_path / "out"
    fault = "remove(out); out.write_text('foreign')"
    result = run(TRAIN, config(tmp_path, task=task, level="mix"), out, fault, 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    first, second = troubles(result)
    assert "was removed" in first
    assert re.search(rf"{out}: [^:]*create directory[^:]*: File exists", second)
    assert "statistics of this step are lost" in second
    assert out.read_text() == "foreign"


def test_permission_removed(tmp_path: Path, sound: dict[str, Path]) -> None:
    """As a user without rights: root may write anywhere."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        if os.getuid() == 0 and parent != Path("/tmp"):
            parent.chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    uid = NOBODY if os.getuid() == 0 else 0
    if uid:
        os.chown(out, uid, uid)
    fault = "for name in ('dump_tensor_data', ''): os.chmod(out / 'step1/rank' / name, 0o500)"
    settings = config(tmp_path, task="tensor", level="mix")
    if uid:
        os.chown(settings, uid, uid)
    result = run(TRAIN, settings, out, fault, uid)
    assert last_line(result.stdout) == sound["loss"].read_text()
    # The tensor files, and then the final files of the step.
    assert len(troubles(result)) == 2, troubles(result)
    assert all("Permission denied" in line for line in troubles(result))
    assert "plumb recover" in troubles(result)[1]
    directory, golden = rank(out, 1), rank(sound["tensor"], 1)
    check_whole(rank(out, 0), rank(sound["tensor"], 0))
    # Nothing could be put there: the journal has it, and until it is recovered no answer is whole.
    assert not answer(directory, golden).startswith("no wrong call")
    for path in (directory / "dump_tensor_data", directory):
        path.chmod(0o750)
    subprocess.run([PLUMB, "recover", out], check=True, capture_output=True, timeout=60)
    entries = json.loads((directory / "dump.json").read_text())["data"]
    assert list(entries) == list(json.loads((golden / "dump.json").read_text())["data"])
    assert lost_tensors(directory) > 0
    # Writing tensors was switched off for good, and the next step says what it lacks.
    assert lost_tensors(rank(out, 2)) == len(named_files(rank(sound["tensor"], 2)))


@pytest.mark.parametrize(
    ("limits", "says"),
    [({"max_bytes": 150_000}, "max_bytes = 150000"), ({"min_free_bytes": 2**60}, "are free")],
)
def test_limits(
    tmp_path: Path, sound: dict[str, Path], limits: dict[str, int], says: str
) -> None:
    out = tmp_path / "out"
    settings = config(tmp_path, task="tensor", level="mix")
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **limits}))
    result = run(TRAIN, settings, out, "pass", 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    assert len(troubles(result)) == 1, troubles(result)
    assert says in troubles(result)[0]
    files: dict[int, int] = {}
    for path in out.rglob("*.pt"):
        files[path.stat().st_ino] = path.stat().st_size
    assert sum(files.values()) <= limits.get("max_bytes", 0)
    lost = []
    for step in range(3):
        directory, golden = rank(out, step), rank(sound["tensor"], step)
        named = named_files(directory)
        assert {path.name for path in (directory / "dump_tensor_data").iterdir()} >= set(named)
        lost.append(lost_tensors(directory))
        assert lost[-1] == len(named_files(golden)) - len(named)
        # The statistics go on.
        entries = json.loads((directory / "dump.json").read_text())["data"]
        assert list(entries) == list(json.loads((golden / "dump.json").read_text())["data"])
    assert lost[2] == len(named_files(rank(sound["tensor"], 2)))
    assert not answer(rank(out, 2), rank(sound["tensor"], 2)).startswith("no wrong call")


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_full_disk(tmp_path: Path, sound: dict[str, Path], task: str) -> None:
    """A real one: a file system of 3 MB in a namespace of its own, filled in the second step."""
    out = tmp_path / "out"
    settings = config(tmp_path, task=task, level="mix")
    options = {**json.loads(settings.read_text()), "min_free_bytes": 0}
    settings.write_text(json.dumps(options))
    script = tmp_path / "train.py"
    script.write_text(TRAIN + f"shutil.copytree(out, {str(tmp_path / 'kept')!r})\n")
    # What the step before let go of may come free a little later.
    fill = """
ballast = os.open(out / 'ballast', os.O_WRONLY | os.O_CREAT)
for _ in range(5):
    try:
        while True: os.write(ballast, bytes(4096))
    except OSError: time.sleep(0.2)
"""
    result = run_on_small_disk(script, out, "3m", settings, out, fill, 0)
    assert last_line(result.stdout) == sound["loss"].read_text()
    # What it costs is said as it comes: tensors, the journal, the files of a step, later steps.
    says = ["No more tensor files"] if task == "tensor" else []
    says += ["journal is switched off", "What this step recorded", "Step 2 is not recorded"]
    lines = troubles(result)
    assert all("No space left" in line for line in lines), lines
    assert all(text in "".join(lines) for text in says), lines
    assert len(lines) == len(says), lines
    kept = tmp_path / "kept"
    check_whole(rank(kept, 0), rank(sound[task], 0))
    # Whatever still stands of the full steps is valid and does not pass for whole.
    for path in kept.rglob("*.json"):
        json.loads(path.read_text())
    assert not answer(rank(kept, 1), rank(sound[task], 1)).startswith("no wrong call")
    assert not list(kept.rglob("*.tmp"))


CALLS = """
import sys, torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
for value in sys.argv[2].split():
    torch.neg(torch.full((4,), float(value)))
debugger.stop()
debugger.step()
"""


def test_files_of_an_earlier_run(tmp_path: Path) -> None:
    """A second run with fewer tensors: what is left over is listed, and never compared."""
    settings = config(tmp_path, task="tensor", list=["neg"])
    assert not troubles(run(CALLS, settings, "1 2 3"))
    result = run(CALLS, settings, "5")
    left = [f"Torch.neg.{n}.forward.{part}.0.pt" for n in (1, 2) for part in ("input", "output")]
    (line,) = troubles(result)
    assert f"4 files of an earlier run were left, which dump.json does not name: {left[0]}" in line
    assert ", ".join(left) + ". " in line
    directory = rank(tmp_path / "out", 0)
    assert sorted(named_files(directory)) == [
        f"Torch.neg.0.forward.{part}.0.pt" for part in ("input", "output")
    ]
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    run(CALLS, config(fresh, task="tensor", list=["neg"]), "5")
    comparison = plumbline.compare(directory, rank(fresh / "out", 0))
    assert comparison.answer.startswith("no wrong call")
    assert "neg.1" not in comparison.summary
    longer = tmp_path / "longer"
    longer.mkdir()
    run(CALLS, config(longer, task="tensor", list=["neg"]), "5 2")
    assert not plumbline.compare(directory, rank(longer / "out", 0)).answer.startswith(
        "no wrong call"
    )
