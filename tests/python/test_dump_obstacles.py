"""Device dumps behind links and pipes, and outputs that cannot be written."""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
from typing import Any

import device_dumps as dumps
import numpy as np
import pytest
from recording import PLUMB


def plumb(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PLUMB), *map(str, words)], capture_output=True, text=True,
                          check=False, **options)


def test_what_is_no_regular_file_stops_no_other(tmp_path: pathlib.Path) -> None:
    """A link to nothing and one to itself are failures; nobody waits for a pipe."""
    source = tmp_path / "in"
    array = np.arange(3, dtype=np.float32)
    dumps.Dump(outputs=[dumps.plain(array)]).write(source / "Add.a.1.2.3")
    (source / "Add.b.1.2.3").symlink_to("nowhere")
    (source / "Add.c.1.2.3").symlink_to("Add.c.1.2.3")
    os.mkfifo(source / "Add.d.1.2.3")
    done = plumb("convert", "-d", source, "-out", tmp_path / "out")
    assert done.returncode == 3, done.stderr
    assert f"{source}/Add.b.1.2.3: cannot open: No such file" in done.stderr
    assert f"{source}/Add.c.1.2.3: cannot " in done.stderr
    assert f"{source}/Add.d.1.2.3: no regular file; left out" in done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "Add.a.1.2.3.output.0.npy"), array)


@pytest.mark.parametrize(("verb", "limit"), [("convert", 600), ("compare", 600), ("overflow", 100)])
def test_files_that_may_not_grow(tmp_path: pathlib.Path, verb: str, limit: int) -> None:
    """The limit of a shell is one line and a status, as a full disk is, and not a signal."""
    source, out = tmp_path / "in", tmp_path / "out"
    for i in range(3):
        dumps.Dump(outputs=[dumps.plain(np.full((40, 40), i, np.float32))]).write(
            source / f"Add.a{i}.1.2.161243956300000{i}")
    dumps.record_file(dumps.old_record()).write(source / "Opdebug.Node_OpDebug.7.10.1")
    words = {"convert": ["convert", "-d", source, "-out", out],
             "compare": ["msaccucmp", "compare", "-m", source, "-g", source, "-out", out],
             "overflow": ["overflow", "-d", source, "-out", out]}[verb]
    done = plumb(*words, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 19, done.stderr
    assert "cannot write" in done.stderr and "File too large" in done.stderr
    left = [path.name for path in out.iterdir() if path.name != "convert_failed_file_list.txt"]
    assert [name for name in left if not name.startswith(".plumb_convert_journal")] == []
