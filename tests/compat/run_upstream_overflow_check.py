"""Runs upstream 26.2.0's own overflow_check over several step directories in one process.

    python run_upstream_overflow_check.py DIRECTORY

For every DIRECTORY/{name}/step0 the result goes to DIRECTORY/{name}/upstream.
"""

from __future__ import annotations

import sys
from pathlib import Path

from msprobe.overflow_check.analyzer import OverFlowCheck


def main() -> int:
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        OverFlowCheck(str(folder / "step0"), str(folder / "upstream")).analyze()
    return 0


if __name__ == "__main__":
    sys.exit(main())
