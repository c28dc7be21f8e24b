"""A report page as a real browser draws it."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

needs_browser = pytest.mark.skipif(shutil.which("chromium") is None,
                                   reason="no browser on this machine")


def drawn(page: str | Path, folder: Path, width: int = 1280) -> str:
    """The document after its scripts ran, which must not complain; `folder` for the profile."""
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=2000",
         f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", f"file://{page}"],
        text=True, capture_output=True, check=False, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def measured(page: str | Path, folder: Path, width: int, expression: str) -> Any:
    """What an expression of the page's own language gives when the page is that wide."""
    text = Path(page).read_text(encoding="ascii")
    script = ("<script>document.body.append(make('pre', {id: 'measured'}, "
              f"JSON.stringify({expression})))</script>")
    copy = folder / "measured.html"
    copy.write_text(text.replace("</body>", f"{script}</body>"), encoding="ascii")
    shown = re.search(r'<pre id="measured">(.*?)</pre>', drawn(copy, folder, width), re.DOTALL)
    assert shown is not None
    return json.loads(html.unescape(shown.group(1)))
