"""A real file system of a few kilobytes, for recordings that fill it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MOUNT = 'mount -t tmpfs -o size="$2" none "$1" || exit 77; shift 2; exec "$@"'


def run_on_small_disk(
    script: Path, out: Path, size: str, *arguments: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program with a file system of that size on `out`, in a namespace of its own: nobody
    else sees it, and it is gone with the program, which copies what is to be looked at."""
    out.mkdir(exist_ok=True)
    words = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(out), size, sys.executable, str(script)]
    result = subprocess.run(
        [*words, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
        env=dict(os.environ, PLUMBLINE_LOG_LEVEL="2"),
    )
    output = result.stderr + result.stdout
    if result.returncode == 77 or (result.returncode == 1 and "unshare" in output):
        pytest.skip("no file system can be mounted here; test_full_disk.py limits the file size")
    assert result.returncode == 0, output
    return result
