"""`plumb dump-config` on terminals and on what is no configuration."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import subprocess

import pytest
from recording import PLUMB


def on_terminal(answers: list[str], *words: object) -> tuple[int, str]:
    """Runs `plumb dump-config` with a terminal for input and output."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PLUMB, "dump-config", *map(str, words)], stdin=slave,
                               stdout=slave, stderr=slave)
    os.close(slave)
    os.write(master, "".join(answer + "\n" for answer in answers).encode())
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return process.wait(60), shown.decode()


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "dump-config", *map(str, words)], text=True, timeout=60,
                          capture_output=True, check=False, stdin=subprocess.DEVNULL)


def test_questions_make_a_valid_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "dump.json"
    status, shown = on_terminal(
        ["/data/dump", "Tiny", "0|5-8", "", "relu,name-regex(Default/.+)"], "new", path)
    assert status == 0, shown
    common = json.loads(path.read_text())["common_dump_settings"]
    assert common["path"] == "/data/dump" and common["net_name"] == "Tiny"
    assert common["iteration"] == "0|5-8" and common["saved_data"] == "tensor"
    assert common["dump_mode"] == 1 and common["kernels"] == ["relu", "name-regex(Default/.+)"]
    assert plumb("check", path, "--device", "cpu").returncode == 0


def test_a_wrong_answer_writes_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "dump.json"
    status, shown = on_terminal(["data", "", "", "", ""], "new", path)
    assert status == 2 and "common_dump_settings.path" in shown
    assert not path.exists()


def test_without_a_terminal_nothing_is_asked(tmp_path: pathlib.Path) -> None:
    done = plumb("new", tmp_path / "dump.json")
    assert done.returncode == 2 and "--path" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("content, message", [
    (b"", "not valid JSON at byte 0"), (b"\xef\xbb\xbf{}", "byte order mark"),
    (b"\xff\xfe\x00", "not valid JSON"), (b"[]", "an object"), (b"{}", "1 error")])
def test_other_files_are_one_line(tmp_path: pathlib.Path, content: bytes, message: str) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(content)
    done = plumb("check", path)
    assert done.returncode == 2
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_directories_and_missing_places(tmp_path: pathlib.Path) -> None:
    directory = plumb("check", tmp_path)
    assert directory.returncode == 2 and "is a directory" in directory.stderr
    missing = plumb("new", tmp_path / "none/dump.json", "--path", "/data/dump")
    assert missing.returncode == 3 and missing.stderr.count("\n") == 1
