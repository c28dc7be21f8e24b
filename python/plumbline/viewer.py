"""The page of `plumb view` in a notebook: `plumbline.view()`.

The program serves it; this starts the program and shows its address in a frame.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

from plumbline import arguments
from plumbline._core import CorruptDataError, InternalError, UnsupportedError

_MOST_PORT = 65535
_MOST_HEIGHT = 10_000  # pixels
_SECONDS_TO_END = 10
# Exception by exit status of the program, as the functions of this package raise them.
_ERRORS: dict[int, type[Exception]] = {
    2: ValueError, 3: FileNotFoundError, 4: UnsupportedError, 5: CorruptDataError, 6: OSError}


class View:
    """A page that is served until `close()`, the end of this process, or of a `with` block.

    A notebook shows it in a frame.

    Attributes:
        answer: what `plumb compare` says of the two recordings: "first wrong call: NAME", "no wrong
            call"; of one recording what it holds.
        url: the address of the page, with the token that lets in.
        ssh: the command that brings the page to another machine, from which this one is used over
            ssh; empty where it is not.
    """

    def __init__(self, process: subprocess.Popen[str], lines: list[str], height: int) -> None:
        """Of a program that has printed `lines`, its address among them."""
        addresses = [line.strip() for line in lines if line.startswith("  http://")]
        remote = [line.partition(": ssh ")[2] for line in lines if ": ssh " in line]
        self.answer = lines[0]
        self.url = addresses[0]
        self.ssh = f"ssh {remote[0]}" if remote else ""
        self._height = height
        self._process = process
        self._finish = weakref.finalize(self, _end, process)

    @property
    def is_running(self) -> bool:
        """Whether the page is still served."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the server; the page in a notebook no longer answers then."""
        self._finish()

    def __enter__(self) -> View:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the server."""
        self.close()

    def __repr__(self) -> str:
        """The answer, and where the page is."""
        where = self.url if self.is_running else "ended"
        return f"<plumbline.View: {self.answer}; {where}>"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        if not self.is_running:
            return f"<div>{html.escape(self.answer)} (the viewer has ended)</div>"
        remote = (f"<div>If this notebook runs on another machine, first run there where you sit: "
                  f"<code>{html.escape(self.ssh)}</code></div>" if self.ssh else "")
        return (f'{remote}<iframe src="{html.escape(self.url)}" width="100%" '
                f'height="{self._height}" style="border:0" title="plumb view"></iframe>')


def view(target: str | os.PathLike[str], golden: str | os.PathLike[str] | None = None, *,
         roots: Iterable[str | os.PathLike[str]] = (), port: int = 0, height: int = 720,
         frame: str = "", read_only: bool = False) -> View:
    """Shows a recording, two that are compared, or a result in a page; see `plumb view`.

    Args:
        target: the run under test, or a result such as a .vis.db.
        golden: the reference run; None: `target` alone.
        roots: directories that the page may open further recordings of.
        port: of this machine, on which the page is served; 0: one that is free.
        height: of the frame, in pixels.
        frame: the origin of the notebook, where it is not on this machine: "https://hub.example".
        read_only: nothing can be paired by hand.

    Returns:
        The page, once what is asked for was compared. Keep it: with it ends the server.

    Raises:
        ValueError, FileNotFoundError, UnsupportedError, CorruptDataError, OSError: what the program
            says of the paths.

    Example:
        >>> plumbline.view("runs/new", "runs/good")  # doctest: +SKIP
    """
    words = [_program(), "view", arguments.path("target", target)]
    if golden is not None:
        words.append(arguments.path("golden", golden))
    for root in roots:
        words += ["--root", arguments.path("roots", root)]
    words += ["--port", str(arguments.count("port", port, _MOST_PORT)), "--until-eof"]
    words.append(f"--frame={arguments.text('frame', frame)}" if frame else "--frame")
    if arguments.flag("read_only", read_only):
        words.append("--read-only")
    pixels = arguments.count("height", height, _MOST_HEIGHT, least=100)
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    said: list[str] = []
    _follow(process, said)
    lines = _lines_to_address(process)
    if not any(line.startswith("  http://") for line in lines):
        raise _error(process, said)
    return View(process, lines, pixels)


def _program() -> str:
    """The program `plumb` of this installation."""
    beside = Path(sys.executable).with_name("plumb")
    found = str(beside) if beside.exists() else shutil.which("plumb")
    if found is None:
        raise FileNotFoundError("plumb: the program is not installed beside this interpreter and "
                                "not on PATH. Install plumbline again")
    return found


def _lines_to_address(process: subprocess.Popen[str]) -> list[str]:
    """What it prints up to the line behind its address."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("  Ctrl-C"):
            break
    return lines


def _follow(process: subprocess.Popen[str], said: list[str]) -> None:
    """Collects the lines on stderr, of which a full pipe would stop the program."""
    stream = process.stderr
    assert stream is not None

    def read() -> None:
        for line in stream:
            said.append(line.rstrip("\n"))
            del said[:-100]

    threading.Thread(target=read, daemon=True, name="plumb view").start()


def _error(process: subprocess.Popen[str], said: list[str]) -> Exception:
    """What a program that printed no address ended with."""
    status = process.wait()
    _end(process)
    text = said[-1] if said else f"plumb view ended with status {status}"
    return _ERRORS.get(status, InternalError)(text.removeprefix("plumb view: "))


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
