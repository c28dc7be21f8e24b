"""plumbline.view(): the page in a notebook."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from view_client import write_rank

import plumbline

NAMES = ["Functional.linear.0.forward", "Module.top.Net.forward.0"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    return write_rank(tmp_path / "new", NAMES, 1.5), write_rank(tmp_path / "good", NAMES)


def status_of(url: str) -> int | None:
    """None: nobody answers. 503: an answer of a program that was built without the page."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    try:
        return int(opener.open(url, timeout=10).status)
    except urllib.error.HTTPError as problem:
        return problem.code
    except OSError:
        return None


def test_a_notebook_shows_the_page_in_a_frame(runs: tuple[Path, Path]) -> None:
    with plumbline.view(*runs, height=500) as shown:
        assert shown.answer == "first wrong call: Functional.linear.0.forward" and not shown.ssh
        page = shown._repr_html_()
        (source,) = re.findall(r'<iframe src="([^"]+)"', page)
        assert source == shown.url and 'height="500"' in page
        assert shown.url in repr(shown) and shown.is_running
        # Cookies of frames go over https alone, or to this machine: a browser's exception.
        assert status_of(shown.url) in (200, 401, 503)
    assert not shown.is_running and status_of(shown.url) is None
    assert "<iframe" not in shown._repr_html_() and "ended" in repr(shown)
    shown.close()


def test_the_page_ends_with_what_stands_for_it(runs: tuple[Path, Path]) -> None:
    url = plumbline.view(runs[0]).url
    gc.collect()
    assert status_of(url) is None


def test_the_page_ends_with_a_killed_notebook(runs: tuple[Path, Path]) -> None:
    code = f"import plumbline, time; v = plumbline.view({str(runs[0])!r}); print(v.url, flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code + "; time.sleep(60)"], text=True,
                               stdout=subprocess.PIPE)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if status_of(url) is None:
            return
        time.sleep(0.05)
    raise AssertionError("it is still served")


def test_another_machine_needs_a_line(runs: tuple[Path, Path],
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.9 5000 10.0.0.5 22")
    with plumbline.view(runs[0]) as shown:
        assert re.fullmatch(r"ssh -L (\d+):127\.0\.0\.1:\1 (\w+@)?10\.0\.0\.5", shown.ssh)
        assert f"<code>{shown.ssh}</code>" in shown._repr_html_()


def test_errors_are_those_of_the_package(runs: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        plumbline.view(tmp_path / "none")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(plumbline.UnsupportedError, match=r"a\.txt"):
        plumbline.view(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="port"):
        plumbline.view(runs[0], port=70000)
    with pytest.raises(TypeError, match="target"):
        plumbline.view(3)  # type: ignore[arg-type]
