"""`python3 msaccucmp.py VERB ...`: upstream's program for dump files of devices, run by `plumb`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Wherever the script is started: the package it lies in, not the folder it lies in.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from msprobe.command import run

    sys.exit(run("msaccucmp"))
