"""The command `msprobe`: upstream's command lines, run by `plumb msprobe`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> int:
    """Replaces this process by `plumb msprobe ARGUMENTS`."""
    beside = Path(sys.argv[0]).resolve().with_name("plumb")
    plumb = str(beside) if beside.exists() else shutil.which("plumb")
    if plumb is None:
        print("msprobe: the program plumb is not on PATH. Install plumbline.", file=sys.stderr)
        return 3
    sys.stdout.flush()
    os.execv(plumb, [plumb, "msprobe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
