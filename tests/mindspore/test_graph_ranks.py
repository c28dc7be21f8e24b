"""Static graphs of several processes on CPU."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: run it in that environment", allow_module_level=True)

HERE = pathlib.Path(__file__).resolve().parent
PLUMB = os.environ.get("PLUMB") or str(HERE.parents[1] / ".venv/bin/plumb")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def run_ranks(directory: pathlib.Path, **entries: object) -> pathlib.Path:
    """Two ranks; returns their dump."""
    root = directory / "dump"
    config = directory / "config.json"
    config.write_text(json.dumps({"task": "statistics", "level": "L2", "dump_path": str(root),
                                  **entries}))
    config.chmod(0o640)
    msrun = pathlib.Path(sys.executable).parent / "msrun"
    path = os.pathsep.join([str(msrun.parent), os.environ["PATH"]])
    packages = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [msrun, "--worker_num=2", "--local_worker_num=2", "--master_addr=127.0.0.1",
         f"--master_port={free_port()}", f"--log_dir={directory / 'log'}", "--join=True",
         HERE / "graph_ranks.py", config], text=True, capture_output=True, timeout=300,
        check=False, cwd=directory, env={**os.environ, "PATH": path, "PYTHONPATH": packages})
    logs = "".join(path.read_text() for path in (directory / "log").glob("worker_*.log"))
    assert done.returncode == 0, done.stderr + logs
    return root


def largest(root: pathlib.Path, rank: int, step: int) -> dict[tuple[str, str], float]:
    """The maximum of every tensor by kernel type and what it is of it."""
    with (root / f"rank_{rank}/Net/0/{step}/statistic.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    table = [dict(zip(header, row, strict=False)) for row in rows]
    return {(row["Op Type"], row["IO"] + row["Slot"]): float(row["Max Value"]) for row in table}


def test_every_rank_has_its_own_complete_tree(tmp_path: pathlib.Path) -> None:
    root = run_ranks(tmp_path)
    assert sorted(path.name for path in root.iterdir()) == ["kernel_kbyk_dump.json", "rank_0",
                                                            "rank_1"]
    for step in (0, 1):
        first, second = largest(root, 0, step), largest(root, 1, step)
        assert first.keys() == second.keys()
        assert first["MatMul", "input0"] == 1 and second["MatMul", "input0"] == 2
        assert first["AllReduce", "output0"] == second["AllReduce", "output0"]
    assert not list(root.rglob("*.npy"))
    for rank in (0, 1):
        # Every process of MindSpore writes that of rank 0; readers leave out ranks without it.
        metadata = root / f"rank_{rank}/.dump_metadata"
        assert json.loads((metadata / "config.json").read_text())["device_target"] == "CPU"
    shutil.copytree(root, tmp_path / "other")
    done = subprocess.run([PLUMB, "compare", root, tmp_path / "other", "-o", tmp_path / "result"],
                          text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 compared" in done.stdout and "no wrong call" in done.stdout


def test_only_the_ranks_that_were_asked_for_dump(tmp_path: pathlib.Path) -> None:
    root = run_ranks(tmp_path, rank=[1])
    assert largest(root, 1, 0)["MatMul", "input0"] == 2
    assert not (root / "rank_0/Net").exists()
