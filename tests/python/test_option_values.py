"""Values of options that are empty or doubled: one line, and nothing is written."""

from __future__ import annotations

import pathlib
import subprocess

import device_dumps as dumps
import numpy as np
import pytest
from recording import PLUMB
from test_convert import CONV, convert, names


@pytest.mark.parametrize("option", ["-d", "-out", "-f", "-s", "-o", "-i", "-c"])
def test_an_empty_value_does_not_leave_an_option_out(tmp_path: pathlib.Path, option: str) -> None:
    path = dumps.Dump([dumps.plain(np.ones(2))]).write(tmp_path / CONV)
    given = {"-d": path, "-out": tmp_path / "out"} | {option: ""}
    done = convert(*(word for pair in given.items() for word in pair))
    shown = "--output" if option == "-out" else option
    assert done.returncode == 6
    assert done.stderr == f"plumb convert: {shown}: is empty (expected a value) (error 6)\n"
    assert names(tmp_path) == [CONV]


@pytest.mark.parametrize(("words", "shown"), [
    (("-d", "-out", "out"), '--dump_file: expected a path (got "--output")'),
    (("-d", CONV, "-out", "-t", "npy"), '--output: expected a path (got "-t")')])
def test_an_option_in_place_of_a_path(tmp_path: pathlib.Path, words: tuple[str, ...],
                                      shown: str) -> None:
    dumps.Dump([dumps.plain(np.ones(2))]).write(tmp_path / CONV)
    done = subprocess.run([PLUMB, "convert", *words], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"plumb convert: {shown}"), done.stderr
    assert names(tmp_path) == [CONV]


def test_lists_with_an_empty_or_a_doubled_name(tmp_path: pathlib.Path) -> None:
    path = dumps.Dump([dumps.plain(np.ones(2))]).write(tmp_path / CONV)
    for wanted in (f"{path},,", f",{path}", f"{path},", ",", ",,", f"{path},,{path}"):
        done = convert("-d", wanted, "-out", tmp_path / "out")
        assert done.returncode == 6, done.stderr
        assert done.stderr == (f'plumb convert: "{wanted}": an empty name (expected a path, or '
                               "paths between single commas) (error 6)\n")
        assert names(tmp_path) == [CONV]
    done = convert("-d", f"{path},{path}", "-out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stderr == f"plumb convert: {path}: named more than once; converted once\n"
    assert names(tmp_path / "out") == [f"{CONV}.input.0.npy"]


@pytest.mark.parametrize(("verb", "given", "option"), [
    ("overflow", ["-d", "here", "-out", ""], "-o"), ("overflow", ["-d", ""], "-d"),
    ("overflow", ["-i", ""], "-i"), ("h5copy", ["-i", "", "-o", "b.h5", "--list", "x"], "-i"),
    ("h5copy", ["-i", "a.h5", "-o", "", "--list", "x"], "-o"),
    ("h5copy", ["-i", "a.h5", "-o", "b.h5", "-s", "", "-d", ""], "-s")])
def test_an_empty_value_of_other_verbs(tmp_path: pathlib.Path, verb: str, given: list[str],
                                       option: str) -> None:
    (tmp_path / "here").mkdir()
    done = subprocess.run([PLUMB, verb, *given], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"plumb {verb}: {option}: is empty (expected a value)\n"
    assert names(tmp_path) == ["here"]
