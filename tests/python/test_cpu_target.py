"""PLUMBLINE_CPU_TARGET with a name that this machine does not know: an error of every command."""

from __future__ import annotations

import os
import subprocess

import pytest
from recording import PLUMB

COMMANDS = [("compare", "a", "b"), ("convert", "-d", "a"), ("overflow", "-d", "a", "-out", "b"),
            ("msaccucmp", "compare", "-m", "a", "-g", "b"), ("inspect", "a"), ("export", "a"),
            ("msprobe", "-f", "pytorch", "compare", "-i", "a"), ("merge", "a"),
            ("check", "a", "b")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_unknown_target_is_an_error(words: tuple[str, ...]) -> None:
    done = subprocess.run([PLUMB, *words], capture_output=True, text=True, check=False,
                          env=os.environ | {"PLUMBLINE_CPU_TARGET": "sse9"})
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("plumb: PLUMBLINE_CPU_TARGET: unknown target (expected one of ")
    assert "got sse9" in line
