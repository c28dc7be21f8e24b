"""plumb convert never writes over a dump that it is to read."""

from __future__ import annotations

import pathlib
import shutil

import device_dumps as dumps
import numpy as np
import pytest
from test_convert import CONV, convert, names

NAMED = "Default/net/Conv2D-op12"


def two(directory: pathlib.Path, end: str, name: str = CONV) -> tuple[pathlib.Path, pathlib.Path]:
    """A dump, and an array that has the name of one of its outputs."""
    tensor = dumps.plain(np.arange(6, dtype=np.float32))
    dump = dumps.Dump(outputs=[tensor], buffers=[b"buffer"], op_name=NAMED).write(directory / name)
    array = directory / (name + end)
    with array.open("wb") as file:
        np.save(file, np.full(4, 7, np.float32))
    return dump, array


def content(directory: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize(("end", "options"), [
    (".output.0.npy", ()), (".output.0.2x3.npy", ("-f", "ND")), (".output.0.txt", ("-t", "txt")),
    (".output.0.pt", ("-t", "pt")), (".l1buffer.0.bin", ()),
    (".output.0.6.float32.ND.bin", ("-t", "bin"))])
@pytest.mark.parametrize("order", [1, -1])
def test_an_input_with_the_name_of_an_output(tmp_path: pathlib.Path, end: str,
                                             options: tuple[str, ...], order: int) -> None:
    directory = tmp_path / "both"
    paths = two(directory, end)[::order]
    before = content(directory)
    done = convert("-d", ",".join(map(str, paths)), "-out", directory, *options)
    assert done.returncode == 6
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"{directory / (CONV + end)}: is one of the inputs" in line
    assert content(directory) == before
    done = convert("-d", ",".join(map(str, paths)), "-out", tmp_path / "out", *options)
    assert "is one of the inputs" not in done.stderr
    assert content(directory) == before


def test_the_name_of_mindspore(tmp_path: pathlib.Path) -> None:
    """It has the operator's full name in it, which only the dump knows."""
    parts = CONV.split(".")
    stem = ".".join([parts[0], NAMED.rsplit("/", 1)[1], *parts[2:]])
    dump, _ = two(tmp_path, ".elsewhere")
    array = tmp_path / f"{stem}.output.0.ND.npy"
    np.save(array, np.ones(3))
    before = content(tmp_path)
    done = convert("-d", f"{dump},{array}", "-out", tmp_path, "-t", "msnpy")
    assert done.returncode == 6 and "is one of the inputs" in done.stderr, done.stderr
    assert content(tmp_path) == before


def test_by_another_name(tmp_path: pathlib.Path) -> None:
    """A link leads to what would be replaced; one in the place of an output may go."""
    dump, array = two(tmp_path / "out", ".output.0.npy")
    link = tmp_path / "Add.a.1.2.1612439563338021"
    link.symlink_to(array)
    before = content(tmp_path / "out")
    done = convert("-d", f"{dump},{link}", "-out", tmp_path / "out")
    assert done.returncode == 6 and f"{link}: is one of the inputs" in done.stderr, done.stderr
    assert content(tmp_path / "out") == before
    kept = tmp_path / "kept.npy"
    shutil.move(array, kept)
    array.symlink_to(kept)
    done = convert("-d", f"{dump},{kept}", "-out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(array), np.arange(6)) and not array.is_symlink()
    assert np.array_equal(np.load(kept), np.full(4, 7))


def test_outputs_of_an_earlier_run_are_no_inputs(tmp_path: pathlib.Path) -> None:
    two(tmp_path, ".output.0.npy")
    for _ in range(2):
        done = convert("-d", tmp_path, "-out", tmp_path)
        assert done.returncode == 0, done.stderr
    assert names(tmp_path) == [CONV, f"{CONV}.l1buffer.0.bin", f"{CONV}.output.0.npy"]
