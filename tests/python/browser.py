"""A report page as a real browser draws it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None,
                                   reason="no browser on this machine")


def drawn(page: str | Path, folder: Path) -> str:
    """The document after its scripts ran, which must not complain; `folder` for the profile."""
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=2000",
         "--enable-logging=stderr", "--dump-dom", f"file://{page}"],
        text=True, capture_output=True, check=False, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout
