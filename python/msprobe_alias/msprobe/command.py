"""Upstream's command lines, run by `plumb`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find_plumb() -> str | None:
    """The program beside this one, on PATH, or beside the interpreter."""
    beside = Path(sys.argv[0]).resolve().with_name("plumb")
    # The interpreter of a virtual environment is a link to one elsewhere: not resolved.
    installed = Path(sys.executable).with_name("plumb")
    if beside.exists():
        return str(beside)
    return shutil.which("plumb") or (str(installed) if installed.exists() else None)


def run(command: str) -> int:
    """Replaces this process by `plumb COMMAND ARGUMENTS`."""
    plumb = find_plumb()
    if plumb is None:
        print(f"{command}: the program plumb is not on PATH. Install plumbline.", file=sys.stderr)
        return 3
    sys.stdout.flush()
    os.execv(plumb, [plumb, command, *sys.argv[1:]])


def main() -> int:
    """The command `msprobe`."""
    return run("msprobe")


if __name__ == "__main__":
    sys.exit(main())
