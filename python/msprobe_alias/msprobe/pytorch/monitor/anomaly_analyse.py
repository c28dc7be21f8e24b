"""`python3 -m msprobe.pytorch.monitor.anomaly_analyse -d DIR ...`, run by `plumb`."""

from __future__ import annotations

import sys

from msprobe.command import run

if __name__ == "__main__":
    sys.exit(run("anomaly_analyse"))
