"""Files of any size beside a recording, or in its place: bounded memory, one line, no wrong pass.

They are made of holes, so that gigabytes take no space; what the program may take is limited.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from compare_cases import Dump
from recording import PLUMB

SIZE = 3 << 30
NAME = "Torch.tanh.0.forward"
LOSS = "[2026-01-01 12:00:00 +0000] [ERROR] tensors_dropped: 9 (disk full)\n"


def dump(directory: Path) -> Path:
    """A small tensor recording with its side files."""
    side = Dump(task="tensor")
    x = torch.arange(1.0, 9.0)
    side.forward(NAME, [x], [x / 2])
    side.write(directory)
    return directory


def enlarge(path: Path, start: bytes) -> None:
    path.write_bytes(start)
    os.truncate(path, SIZE)


def compare(target: Path, golden: Path, kind: int, limit: int) -> subprocess.CompletedProcess[str]:
    """`kind` of memory is limited: RLIMIT_AS counts maps of files, RLIMIT_DATA does not."""
    return subprocess.run(
        [PLUMB, "compare", target, golden, "-o", target.parent / "result", "--threads", "1"],
        capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )


# What stands before the hole: of every kind of text that a reader may wait for the end of.
SIDE_STARTS = {
    "nothing": b"",
    "start": b'{"' + NAME.encode() + b'": ["File',
    "whole": b"{}",
}
LIMITS = pytest.mark.parametrize(
    ("kind", "limit"), [(resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_DATA, 512 << 20)],
    ids=["address space", "data"],
)


@LIMITS
@pytest.mark.parametrize("start", SIDE_STARTS)
@pytest.mark.parametrize("name", ["stack.json", "construct.json"])
def test_side_files(tmp_path: Path, name: str, start: str, kind: int, limit: int) -> None:
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    enlarge(target / name, SIDE_STARTS[start])
    done = compare(target, golden, kind, limit)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no wrong call"), done.stdout
    head = done.stdout.splitlines()[:3]
    assert any(f"damaged: {target / name}" in line for line in head), done.stdout
    assert done.stdout.count(str(target / name)) == 1


@LIMITS
@pytest.mark.parametrize("start", ["", LOSS])
def test_loss_log(tmp_path: Path, start: str, kind: int, limit: int) -> None:
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    enlarge(target / "dump_error_info.log", start.encode())
    done = compare(target, golden, kind, limit)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not judged completely: "), done.stdout
    assert "counted by the target's recorder" in done.stdout


def test_loss_log_that_cannot_be_read(tmp_path: Path) -> None:
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    (target / "dump_error_info.log").mkdir()
    done = compare(target, golden, resource.RLIMIT_DATA, 512 << 20)
    assert done.stdout.startswith("not judged completely: 1 loss"), done.stdout
    assert f"damaged: {target / 'dump_error_info.log'}" in done.stdout


@LIMITS
@pytest.mark.parametrize("start", [b"", b"PK\x03\x04", b"\x80\x02", "whole"])
def test_tensor_file(tmp_path: Path, start: bytes | str, kind: int, limit: int) -> None:
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    path = next((target / "dump_tensor_data").glob("*output*"))
    enlarge(path, path.read_bytes() if isinstance(start, str) else start)
    done = compare(target, golden, kind, limit)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not judged completely: 1 unreadable tensor file"), done.stdout


@LIMITS
@pytest.mark.parametrize("what", ["nothing", "whole", "in data"])
def test_dump_json(tmp_path: Path, what: str, kind: int, limit: int) -> None:
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    text = (target / "dump.json").read_bytes()
    starts = {"nothing": b"", "whole": text, "in data": text[: text.index(b"Max")]}
    enlarge(target / "dump.json", starts[what])
    done = compare(target, golden, kind, limit)
    assert done.returncode == 5, done.stderr + done.stdout
    assert f"{target / 'dump.json'}: " in done.stderr
    assert "byte " in done.stderr


def test_data_twice_is_damaged(tmp_path: Path) -> None:
    """The last of two keys counts for Python, the first for others: no recorder writes two."""
    golden = dump(tmp_path / "golden")
    target = Path(shutil.copytree(golden, tmp_path / "target"))
    path = target / "dump.json"
    path.write_text(path.read_text().rstrip().removesuffix("}") + ', "data": {}}')
    done = compare(target, golden, resource.RLIMIT_DATA, 512 << 20)
    assert done.returncode == 5
    assert 'a second "data"' in done.stderr
