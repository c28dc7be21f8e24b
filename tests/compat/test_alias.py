"""Scripts written for upstream run unmodified on the alias package and leave the same files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, ROOT, run, upstream_python

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

ALIAS = ROOT / "python" / "msprobe_alias"
RECORDING = ("config_file", "constructor", "one_module", "saved_values")
JSON_FILES = ("dump.json", "stack.json", "construct.json", "debug.json")
# Entries and files that only upstream has (differences.md): views that its own hooks make.
ONLY_UPSTREAM = ("Tensor.view_as.",)
# And only plumbline: an optimizer's step as a whole.
ONLY_OURS = ("Optimizer.",)
ONLY_ONE = (*ONLY_UPSTREAM, *ONLY_OURS)


@dataclass(frozen=True)
class Folders:
    """Where each tool's scripts ran: one folder per script."""

    upstream: Path
    alias: Path


def run_all(python: Any, out: Path, **environment: str) -> Path:
    """Runs every script with the `msprobe` of this interpreter and environment."""
    scripts = sorted((HERE / "scripts").glob("*.py"))
    done = run([python, "-W", "ignore", HERE / "run_scripts.py", out, *scripts], environment,
               fresh=True, timeout=400)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return out


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Folders:
    """Both tools' results."""
    root = tmp_path_factory.mktemp("alias")
    return Folders(run_all(upstream_python(), root / "upstream"),
                   run_all(sys.executable, root / "alias", PYTHONPATH=str(ALIAS)))


def tree(directory: Path) -> set[str]:
    """Relative paths of all files; what is hidden and what one tool alone has left out."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*")
            if path.is_file() and not path.name.startswith((".", *ONLY_ONE))}


def structure(value: Any) -> Any:
    """Types and keys of a JSON value, without its numbers and texts."""
    if isinstance(value, dict):
        return {key: structure(item) for key, item in value.items()
                if not key.startswith(ONLY_ONE)}
    if isinstance(value, list):
        return [structure(item) for item in value]
    return type(value).__name__


def read(path: Path) -> Any:
    """One JSON file; stacks keep only their names, because their frames are the tools' own."""
    content = json.loads(path.read_text())
    if path.name == "stack.json":
        return {key: None for key in content if not key.startswith(ONLY_ONE)}
    return structure(content)


@pytest.mark.parametrize("name", RECORDING)
def test_same_files_with_the_same_content(folders, name):
    theirs, ours = tree(folders.upstream / name), tree(folders.alias / name)
    assert len(theirs) >= 2
    assert ours == theirs
    for path in sorted(theirs):
        if path.endswith(JSON_FILES):
            found, wanted = read(folders.alias / name / path), read(folders.upstream / name / path)
            if path.endswith("construct.json"):
                found, wanted = comparable(found, wanted)
            assert found == wanted, path


def comparable(ours: dict, theirs: dict) -> tuple[dict, dict]:
    """construct.json without its backward entries (differences.md, module-backward)."""
    both = [{key: value for key, value in tree.items() if ".backward" not in key}
            for tree in (ours, theirs)]
    return both[0], both[1]


def test_same_exceptions(folders):
    def seen(folder: Path) -> list[str]:
        return [line for line in (folder / "wrong_settings" / "stdout").read_text().splitlines()
                if "Exception" in line.split(" ")[0] or line.startswith(("no error", "other"))]

    theirs = seen(folders.upstream)
    assert len(theirs) == 10
    assert seen(folders.alias) == theirs
