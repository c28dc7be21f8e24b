"""Damaged operator dumps end with a status, never with a crash of the HDF5 library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from recording import PLUMB

DATA = Path(__file__).resolve().parents[1] / "data" / "hdf5_dump"


# found_heap.h5 has the length of a heap flipped: mutation found that the library crashes on it.
@pytest.mark.parametrize("name", ["found_heap", "cut", "wide", "signature"])
def test_damage_is_an_error(name: str, tmp_path: Path) -> None:
    done = subprocess.run([PLUMB, "compare", DATA / f"{name}.h5", DATA / "old.h5", "-o", tmp_path],
                          capture_output=True, text=True)
    assert done.returncode == 5, done.stderr
    assert f"{name}.h5: " in done.stderr
    assert not list(tmp_path.iterdir())


# Mutation found that the library crashes on it in some runs, and reads the same values in others.
def test_a_crash_of_the_library_ends_nothing_else(tmp_path: Path) -> None:
    command = [PLUMB, "compare", DATA / "found_crash.h5", DATA / "old.h5", "-o", tmp_path / "out"]
    for _ in range(5):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 5), done.stderr
        if done.returncode == 5:
            assert "found_crash.h5" in done.stderr and "signal 11" in done.stderr
            assert done.stdout == ""
        else:
            assert done.stdout.startswith("no wrong call")


# One damaged tensor is a row that says so.
@pytest.mark.parametrize("name", ["flipped", "short_chunk", "odd"])
def test_damaged_values_are_rows(name: str, tmp_path: Path) -> None:
    path = DATA / f"{name}.h5"
    done = subprocess.run([PLUMB, "compare", path, path, "-o", tmp_path], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("not judged")
    assert "unreadable files: " in done.stdout


REPLAY = """
import sys
from plumbline import CorruptDataError, _hdf5
for _ in range(5):
    try:
        replay = _hdf5.OperatorReplay(sys.argv[1])
        for operation in ("add", "relu", "mul"):
            replay.match(operation, _hdf5.Arguments())
    except CorruptDataError as error:
        assert sys.argv[1] in str(error), error
print("goes on")
"""


# The library crashed in the training that replayed such a file.
@pytest.mark.parametrize("name", ["found_crash", "found_heap", "cut", "wide", "signature", "odd"])
def test_a_replay_of_damage_ends_nothing(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", REPLAY, str(DATA / f"{name}.h5")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "goes on\n"
