"""`plumb demo` where it cannot run; where it can, tests/wheel/check_wheel.py runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from recording import PLUMB


def refusal(*words: str | Path, status: int = 2) -> str:
    """The one line with which `plumb demo` refuses."""
    done = subprocess.run([PLUMB, "demo", *words], text=True, capture_output=True, check=False,
                          timeout=60)
    assert (done.returncode, done.stdout) == (status, "")
    [line] = done.stderr.splitlines()
    return line


def test_what_is_in_the_directory_stays(tmp_path: Path) -> None:
    """A directory of somebody else's is not taken."""
    kept = tmp_path / "work" / "train.py"
    kept.parent.mkdir()
    kept.write_text("years")
    line = refusal(kept.parent, "--python", sys.executable)
    assert line == (f"plumb demo: {kept.parent}: is not empty (expected a new directory; name "
                    "another one, or remove it)")
    assert kept.read_text() == "years"
    assert refusal(kept, "--python", sys.executable) == (
        f"plumb demo: {kept}: is a file (expected a new directory)")


def test_a_path_that_no_recording_can_have_is_named(tmp_path: Path) -> None:
    line = refusal(tmp_path / "my démo", "--python", sys.executable)
    assert line.startswith(f"plumb demo: {tmp_path}/my démo: recordings need a path of letters")
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = refusal(tmp_path / "file" / "demo", "--python", sys.executable)
    assert line.startswith(f"plumb demo: {tmp_path}/file/demo: ")


def test_an_interpreter_without_plumbline_or_pytorch_is_named(tmp_path: Path) -> None:
    """The line says what to install, or which option names another interpreter."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    line = refusal(tmp_path / "demo", "--python", bare)
    assert "No module named 'plumbline'" in line and "--python" in line
    line = refusal(tmp_path / "demo", "--python", "/no/such/python", status=3)
    assert line.startswith("plumb demo: /no/such/python: cannot be run")
    assert not (tmp_path / "demo").exists()
