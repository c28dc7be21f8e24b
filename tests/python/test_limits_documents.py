"""What the documents call missing is refused by name, and what is refused stands in them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

from recording import PLUMB

import plumbline.pytorch

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "python" / "msprobe_alias" / "msprobe" / "missing.py"
# Every task of upstream's two releases that configures the recorder.
TASKS = ("statistics", "tensor", "structure", "overflow_check", "nan_check", "free_benchmark",
         "grad_probe", "diff_check", "exception_dump")
ASK = """
import sys, plumbline
from plumbline.debugger import DebuggerBase
from plumbline.pytorch import PrecisionDebugger
for task in sys.argv[1:]:
    try:
        PrecisionDebugger(task=task, dump_path="never_written")
    except plumbline.UnsupportedError as error:
        assert f'"{task}" is not built yet' in str(error), error
        print(task)
    DebuggerBase._instance = None
"""
# Said to be called otherwise, or not needed: nothing is missing.
OTHERWISE = {"config_checking", "install_deps"}


def listed(kind: str) -> set[str]:
    """The names of one line of the table in docs/how-to/moving-from-msprobe.md."""
    text = (ROOT / "docs/how-to/moving-from-msprobe.md").read_text()
    section = text.split("## What is not there yet")[1].split("\n## ")[0]
    [line] = [line for line in section.splitlines() if line.startswith(f"| {kind} |")]
    return set(re.findall(r"`(\w+)`", line.split(";")[0]))


def test_tasks(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ASK, *TASKS], cwd=tmp_path, text=True,
                          capture_output=True, check=True, timeout=120)
    refused = {line for line in done.stdout.splitlines() if line in TASKS}
    assert refused == listed("tasks")


def test_commands() -> None:
    page = subprocess.run([PLUMB, "msprobe", "--help"], text=True, capture_output=True, check=True,
                          timeout=60).stdout
    later = page.split("Not in plumb yet")[1].split("\n\n")[0]
    missing = set(re.findall(r"^  (\w+)", later, re.MULTILINE))
    assert listed("commands") == missing - OTHERWISE
    for command in missing:
        done = subprocess.run([PLUMB, "msprobe", command], text=True, capture_output=True,
                              check=False, timeout=60)
        assert done.returncode == 4 and f"{command}: " in done.stderr, done


def test_names() -> None:
    """Each has its own words in the alias package, and none is there in plumbline."""
    known = runpy.run_path(str(ALIAS))["_NOT_BUILT"]
    for name in listed("names in `msprobe.pytorch`"):
        assert f"msprobe.pytorch.{name}" in known, name
        assert not hasattr(plumbline.pytorch, name), name


def test_readme_names_what_the_list_has() -> None:
    limits = (ROOT / "README.md").read_text().split("## Limits")[1].split("\n## ")[0]
    assert "docs/how-to/moving-from-msprobe.md#what-is-not-there-yet" in limits
    assert set(re.findall(r"`([a-z_]+)`", limits)) <= listed("tasks")
