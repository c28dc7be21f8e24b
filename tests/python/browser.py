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
needs_page = pytest.mark.skipif(
    not (Path(__file__).resolve().parents[2] / "build" / "web" / "dist" / "page.js").exists(),
    reason="the page was not built (tools/bootstrap.sh web)")
# A page with a policy runs no script that a test adds to it.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


def drawn(page: str | Path, folder: Path, width: int = 1280) -> str:
    """The document after its scripts ran, which must not complain; `folder` for the profile."""
    done = subprocess.run(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=4000",
         f"--window-size={width},900", "--enable-logging=stderr", "--dump-dom", f"file://{page}"],
        text=True, capture_output=True, check=False, timeout=120)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def measured(page: str | Path, folder: Path, width: int, expression: str) -> Any:
    """What an expression of the page's own language gives, once the page, that wide, is drawn.
    It may be a promise."""
    text = POLICY.sub("", Path(page).read_text("utf-8"))
    script = ("<script>setTimeout(async () => { const pre = document.createElement('pre'); "
              f"pre.id = 'measured'; pre.textContent = JSON.stringify(await {expression}); "
              "document.body.append(pre); }, 2000)</script>")
    copy = folder / "measured.html"
    copy.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    shown = re.search(r'<pre id="measured">(.*?)</pre>', drawn(copy, folder, width), re.DOTALL)
    assert shown is not None
    return json.loads(html.unescape(shown.group(1)))


def text_of(document: str) -> str:
    """What of a document people read, blanks as one."""
    document = re.sub(r"<(script|style|noscript|title).*?</\1>", "", document, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", document)).split())
