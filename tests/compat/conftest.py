"""Recordings of the same steps by plumbline and by the real upstream tool, made once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python")]

from warm_python import OPTIMIZER, server  # noqa: E402

MODELS = ("mixed", "llama")
LEVELS = ("L0", "L1", "mix")
MODES = ("statistics", "md5", "tensor")
RECORDINGS = [f"{model}/{level}/{mode}" for model in MODELS for level in LEVELS for mode in MODES]
# For the dumps only: upstream's compare does not pair the call whose argument it lost.
DUMPED_ONLY = ["positional/L1/statistics"]
# For the commands that read structure and debug.json (test_interchange.py).
OTHER_TASKS = ["mixed/mix/structure", "mixed/L0/structure", "mixed/debug/statistics",
               "mixed/debug/tensor"]
STEPS = (0, 1)


def upstream_python(version: str = "1.2.2") -> Path:
    """The interpreter that has the real upstream tool; skips the test where it is missing."""
    path = ROOT / "build" / "upstream" / version / "bin" / "python"
    if not path.exists():
        pytest.skip(f"{path} is missing; run tools/bootstrap.sh upstream")
    return path


# Before any recorder: upstream patches functions that transformers inspects while it is imported.
_UPSTREAM = f"{OPTIMIZER}\nimport transformers\nimport msprobe.pytorch, msprobe.msprobe"
LIMIT_S = 900
_MODULE = "import runpy, sys; runpy.run_module(sys.argv.pop(1), {}, '__main__', True)"


def run(command: list[Any], environment: dict[str, str] | None = None, fresh: bool = False,
        **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command without this session's Python settings and returns its output. Where it is a
    program in Python, the process begins with torch, and upstream's with upstream, imported.

    `fresh`: it does not. For recorders: upstream's searches all modules at each call for the source
    of a frame below the program.
    """
    words = [str(part) for part in command]
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    settings |= environment or {}
    is_upstream = Path(words[0]).is_relative_to(ROOT / "build" / "upstream")
    if fresh or (not is_upstream and words[0] != sys.executable):
        return subprocess.run(words, text=True, capture_output=True, env=settings, check=False,
                              **options)
    if Path(words[0]).name.startswith("python"):
        python = words.pop(0)
    else:
        python = str(Path(words[0]).with_name("python"))
    if "-m" in words[:3]:
        words[words.index("-m"):words.index("-m") + 1] = ["-c", _MODULE]
    options = {"timeout": LIMIT_S} | options
    return server(_UPSTREAM if is_upstream else OPTIMIZER, python).run(words, settings, **options)


@dataclass(frozen=True)
class Rank:
    """The directory of one step and rank."""

    path: Path

    def read(self, name: str) -> Any:
        """One of its JSON files; duplicate keys are an error."""
        def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            keys = [key for key, _ in pairs]
            assert len(keys) == len(set(keys)), f"{self.path / name}: duplicate keys"
            return dict(pairs)

        return json.loads((self.path / name).read_text(), object_pairs_hook=no_duplicates)

    @property
    def data(self) -> dict[str, Any]:
        """The entries of dump.json."""
        return self.read("dump.json")["data"]


class Runs:
    """Where the recordings of one tool are."""

    def __init__(self, root: Path):
        self.root = root

    def rank(self, recording: str, step: int) -> Rank:
        """One step of one recording."""
        folder = self.root / recording / f"step{step}"
        found = [path.parent for path in folder.glob("*/dump.json")]
        assert len(found) == 1, f"{folder}: {len(found)} dump.json (expected 1)"
        return Rank(found[0])


def rank_of_debug(runs: Runs, recording: str) -> Path:
    """The debug.json of a recording at level debug."""
    [path] = (runs.root / recording).rglob("debug.json")
    return path


def record(python: Path | str, tool: str, root: Path, recordings: list[str]) -> Runs:
    """Makes `recordings` with `tool` under `root`."""
    done = run([python, "-W", "ignore", HERE / "record_runs.py", tool, root, *recordings],
               fresh=True)
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    return Runs(root)


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Everything recorded by upstream 1.2.2."""
    return record(upstream_python(), "upstream", tmp_path_factory.mktemp("up122"),
                  RECORDINGS + DUMPED_ONLY + OTHER_TASKS)


@pytest.fixture(scope="session")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The small model at every level and one recording of the other per mode, by 26.2.0."""
    wanted = ["llama/mix/statistics", "llama/mix/md5", "llama/mix/tensor", *OTHER_TASKS]
    wanted += [name for name in RECORDINGS if name.startswith("mixed/")]
    return record(upstream_python("26.2.0"), "upstream", tmp_path_factory.mktemp("up26"), wanted)


@pytest.fixture(scope="session")
def plumbline(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Everything recorded by plumbline."""
    return record(sys.executable, "plumbline", tmp_path_factory.mktemp("own"),
                  RECORDINGS + DUMPED_ONLY + OTHER_TASKS)


@pytest.fixture(scope="session")
def plumb() -> Path:
    """The installed program."""
    path = Path(os.environ.get("PLUMB") or Path(sys.executable).with_name("plumb"))
    assert path.exists(), f"{path} is missing; run tools/bootstrap.sh native"
    return path
