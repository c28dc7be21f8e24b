"""plumb convert: values of options that are empty, doubled or too large."""

from __future__ import annotations

import pathlib

import device_dumps as dumps
import numpy as np
import pytest
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
