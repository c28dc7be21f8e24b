"""Scripts written for upstream run unmodified on the alias package and leave the same files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, ROOT, upstream_python

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

ALIAS = ROOT / "python" / "msprobe_alias"
RECORDING = ("config_file", "constructor", "one_module", "saved_values")
JSON_FILES = ("dump.json", "stack.json", "construct.json", "debug.json")
# Entries and files that only upstream has (differences.md): views that its own hooks make.
ONLY_UPSTREAM = ("Tensor.view_as.",)


def run_script(python: Any, name: str, directory: Path, **environment: str) -> str:
    """Runs a script in `directory` and returns what it printed itself."""
    directory.mkdir()
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), "-W", "ignore", str(HERE / "scripts" / f"{name}.py")], cwd=directory,
        env=plain | environment, text=True, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def alias_path() -> dict[str, str]:
    """Environment in which `import msprobe` is the alias."""
    return {"PYTHONPATH": str(ALIAS)}


def tree(directory: Path) -> set[str]:
    """Relative paths of all files; what is hidden and what only upstream has left out."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*")
            if path.is_file() and not path.name.startswith((".", *ONLY_UPSTREAM))}


def structure(value: Any) -> Any:
    """Types and keys of a JSON value, without its numbers and texts."""
    if isinstance(value, dict):
        return {key: structure(item) for key, item in value.items()
                if not key.startswith(ONLY_UPSTREAM)}
    if isinstance(value, list):
        return [structure(item) for item in value]
    return type(value).__name__


def read(path: Path) -> Any:
    """One JSON file; stacks keep only their names, because their frames are the tools' own."""
    content = json.loads(path.read_text())
    if path.name == "stack.json":
        return {key: None for key in content if not key.startswith(ONLY_UPSTREAM)}
    return structure(content)


@pytest.mark.parametrize("name", RECORDING)
def test_same_files_with_the_same_content(tmp_path, name):
    run_script(upstream_python(), name, tmp_path / "upstream")
    run_script(sys.executable, name, tmp_path / "alias", **alias_path())
    theirs, ours = tree(tmp_path / "upstream"), tree(tmp_path / "alias")
    assert len(theirs) >= 2
    assert ours == theirs
    for path in sorted(theirs):
        if path.endswith(JSON_FILES):
            assert read(tmp_path / "alias" / path) == read(tmp_path / "upstream" / path), path


def test_same_exceptions(tmp_path):
    theirs = run_script(upstream_python(), "wrong_settings", tmp_path / "upstream")
    ours = run_script(sys.executable, "wrong_settings", tmp_path / "alias", **alias_path())

    def seen(text: str) -> list[str]:
        return [line for line in text.splitlines() if "Exception" in line.split(" ")[0]
                or line == "no error"]

    assert len(seen(theirs)) == 10
    assert seen(ours) == seen(theirs)
