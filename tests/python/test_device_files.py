"""Single dump files of devices, and files of one tensor: `plumb inspect` and `plumb compare`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from device_dumps import FORMATS, Dump, Tensor, plain
from recording import PLUMB

NAME = "Conv2D.net_conv1.2.7.1612439563338020"


def plumb(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *arguments], text=True, capture_output=True, check=False,
                          timeout=60)


def dump(factor: float = 1.0, name: str = "net/conv1") -> Dump:
    """An input, a blocked result and a second one, which is multiplied by `factor`."""
    values = np.random.default_rng(1).standard_normal((2, 3, 4)).astype("f4")
    blocked = np.zeros((1, 1, 1, 2, 16), "f2")
    blocked[..., :3] = values[0, :, :2].T
    return Dump([plain(values)],
                [Tensor(blocked.tobytes(), 2, blocked.shape, FORMATS["NC1HWC0"], (1, 3, 1, 2)),
                 plain(values * np.float32(factor))], buffers=[b"1234"], op_name=name)


# ---- inspect


def test_inspect_shows_what_a_dump_holds(tmp_path: Path) -> None:
    path = dump().write(tmp_path / NAME)
    done = plumb("inspect", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(path),
        "  operator net/conv1, type Conv2D, version 2, time stamp 1612439563338020 "
        "(2021-02-04 11:52:43 UTC)",
        "  input 0: float32 [2, 3, 4], ND, 96 bytes",
        "  output 0: float16 [1, 1, 1, 2, 16] of [1, 3, 1, 2], NC1HWC0, 64 bytes",
        "  output 1: float32 [2, 3, 4], ND, 96 bytes",
        "  1 buffer, 0 workspaces, 4 bytes"]
    [facts] = json.loads(plumb("inspect", "--json", path).stdout)["device_dumps"]
    assert facts["op_name"] == "net/conv1" and facts["op_type"] == "Conv2D"
    assert facts["problem"] == "" and facts["time"] == "2021-02-04 11:52:43 UTC"
    assert [one["place"] for one in facts["tensors"]] == ["input 0", "output 0", "output 1"]
    assert facts["tensors"][1]["shape"] == [1, 1, 1, 2, 16]
    assert facts["tensors"][1]["original_shape"] == [1, 3, 1, 2]


def test_inspect_knows_a_dump_by_its_contents(tmp_path: Path) -> None:
    done = plumb("inspect", dump().write(tmp_path / "a file"))
    assert done.returncode == 0 and "  operator net/conv1, version 2\n" in done.stdout
    (tmp_path / "long").mkdir()
    number = dump().write(tmp_path / "long" / "17")
    (tmp_path / "long" / "mapping.csv").write_text(f"17,{NAME}\n")
    assert ", type Conv2D, version 2, time stamp" in plumb("inspect", number).stdout
    (tmp_path / "text").write_text("Nothing that anybody dumped.\n" * 9)
    assert plumb("inspect", tmp_path / "text").returncode == 4


def test_inspect_shows_a_directory_and_what_is_damaged(tmp_path: Path) -> None:
    root = tmp_path / "20240101000000" / "0"
    whole = dump().bytes()
    dump().write(root / NAME)
    relu = root / "Relu.net_relu1.3.7.1612439563338030"
    add = root / "Add.net_add1.4.7.1612439563338040"
    relu.write_bytes(whole[:-60])
    (root / "notes.txt").write_text("no dump")
    done = plumb("inspect", tmp_path)
    assert done.returncode == 5
    assert done.stderr == (f"plumb inspect: {relu}: the file is cut: output 1 is not all there. "
                           "Say --salvage to accept that.\n")
    add.write_bytes(b"")
    done = plumb("inspect", tmp_path)
    assert done.returncode == 5
    assert done.stderr.startswith("plumb inspect: 2 of 3 device dumps cannot be read completely")
    assert done.stdout.count("  damaged: ") == 2
    assert "  output 1: float32 [2, 3, 4], ND, 96 bytes, cut\n" in done.stdout
    assert f"{add}\n  operator net_add1, type Add, time stamp" in done.stdout
    assert "\n  damaged: the file is empty\n" in done.stdout
    assert plumb("inspect", tmp_path, "--salvage").returncode == 0


# ---- compare


def test_two_dump_files_are_compared(tmp_path: Path) -> None:
    golden = dump().write(tmp_path / "golden" / NAME)
    same, wrong = dump().write(tmp_path / "target" / NAME), dump(1.5).write(tmp_path / "renamed")
    done = plumb("compare", same, golden, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no wrong call\nrows: 3 same, ")
    assert "\n  net_conv1:output:0 [1,3,1,2] FLOAT16: same\n" in done.stdout
    done = plumb("compare", wrong, golden, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stdout.startswith("first wrong call: net/conv1\n  net/conv1:output:1: "
                                  "exceeds-rounding, relative error 0.5")
    assert "\n  net/conv1:output:1 [2,3,4] FLOAT: broken, relative error 0.5" in done.stdout
    assert "\n  net/conv1:input:0 [2,3,4] FLOAT: same\n" in done.stdout
    assert len(list((tmp_path / "out").glob("result_*.csv"))) == 2


def test_dump_files_of_two_operators_are_told(tmp_path: Path) -> None:
    golden = dump().write(tmp_path / NAME)
    other = dump(name="net/conv2").write(tmp_path / "Conv2D.net_conv2.2.7.1612439563338021")
    done = plumb("compare", other, golden, "-o", tmp_path / "out")
    assert ("note: the files are of two operators: net/conv2 (Conv2D) and net/conv1 (Conv2D)\n"
            in done.stdout)


def test_cut_dump_file_is_no_pass(tmp_path: Path) -> None:
    golden = dump().write(tmp_path / "golden" / NAME)
    cut = tmp_path / NAME
    cut.write_bytes(golden.read_bytes()[:-20])
    done = plumb("compare", cut, golden, "-o", tmp_path / "out")
    assert done.returncode == 1 and done.stdout.startswith("not judged completely: ")
    assert f"unreadable: {cut}: the file is cut: 80 bytes of elements" in done.stdout
    cut.write_bytes(golden.read_bytes()[:40])
    done = plumb("compare", cut, golden, "-o", tmp_path / "out")
    assert done.returncode == 5 and done.stderr.startswith(f"plumb compare: {cut}: ")


@pytest.mark.parametrize("other", ["missing", "a.npy", "directory"])
def test_dump_file_and_something_else(other: str, tmp_path: Path) -> None:
    golden = dump().write(tmp_path / "golden" / NAME)
    np.save(tmp_path / "a.npy", np.zeros(3))
    (tmp_path / "directory").mkdir()
    for sides in ((tmp_path / other, golden), (golden, tmp_path / other)):
        done = plumb("compare", *sides, "-o", tmp_path / "out")
        assert done.returncode == (3 if other == "missing" else 2)
        assert done.stderr.startswith(f"plumb compare: {tmp_path / other}: no ")


def test_plain_files_of_elements(tmp_path: Path) -> None:
    """As `plumb convert -t bin` writes them."""
    dump().write(tmp_path / "golden" / NAME)
    dump(1.5).write(tmp_path / "target" / NAME)
    for side in ("golden", "target"):
        done = plumb("convert", "-d", tmp_path / side, "-out", tmp_path / f"{side}_bin",
                     "-t", "bin")
        assert done.returncode == 0, done.stderr
    name = f"{NAME}.output.1.2_3_4.float32.ND.bin"
    golden, target = tmp_path / "golden_bin" / name, tmp_path / "target_bin" / name
    done = plumb("compare", golden, golden)
    assert done.returncode == 0 and done.stdout.startswith("same: the arrays are equal\n"), done
    assert "dtype: float32, float32; shape: [2, 3, 4]\n" in done.stdout
    done = plumb("compare", target, golden)
    assert done.returncode == 1 and done.stdout.startswith("broken: relative error 0.5")
    target.write_bytes(golden.read_bytes()[:-4])
    done = plumb("compare", target, golden)
    assert done.returncode == 5 and "92 bytes of elements (expected 96 " in done.stderr


def test_tensor_files_of_atb(tmp_path: Path) -> None:
    values = np.arange(6, dtype="f4")
    sides = []
    for name, factor in (("target", 1.0), ("golden", 1.0), ("wrong", 2.0)):
        path = tmp_path / f"{name}.bin"
        path.write_bytes(b"format=2\ndtype=0\ndims=2,3\n$Version=1.0\n$End=1\n"
                         + (values * np.float32(factor)).tobytes())
        sides.append(path)
    done = plumb("compare", sides[0], sides[1])
    assert done.returncode == 0 and "shape: [2, 3]\n" in done.stdout, done
    assert plumb("compare", sides[2], sides[1]).returncode == 1


def array_file(path: Path, values: np.ndarray, name: str = "x", **options: object) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=values, **options)
    return path


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "u1", "?", "c8"])
def test_hdf5_files_of_one_array(dtype: str, tmp_path: Path) -> None:
    values = (np.arange(24).reshape(4, 6) % 7 + 1).astype(dtype)
    golden = array_file(tmp_path / "golden.h5", values, chunks=(2, 3), compression="gzip")
    done = plumb("compare", array_file(tmp_path / "a.h5", values, "another name"), golden,
                 "-o", tmp_path / "out", "--fail-on", "any")
    assert done.returncode == 0 and done.stdout.startswith("no wrong call\nrows: 1 same, "), done
    if dtype != "?":
        wrong = values.copy()
        wrong[3, 5] *= 2
        done = plumb("compare", array_file(tmp_path / "b.h5", wrong), golden,
                     "-o", tmp_path / "out", "--fail-on", "any")
        assert done.returncode == 1 and done.stdout.startswith("first wrong call: /x\n"), done


def test_hdf5_files_that_do_not_fit(tmp_path: Path) -> None:
    values = np.arange(6, dtype="f4") + 1
    golden = array_file(tmp_path / "golden.h5", values)
    for other, reason in ((values[:5], "shape-differs"), (values.astype("i4"), "type-differs")):
        done = plumb("compare", array_file(tmp_path / "other.h5", other), golden,
                     "-o", tmp_path / "out", "--fail-on", "any")
        assert done.returncode == 1 and reason in done.stdout, done
    text = array_file(tmp_path / "text.h5", np.array([b"abc"]))
    done = plumb("compare", text, golden, "-o", tmp_path / "out")
    assert done.returncode == 4 and f"{text}: /x holds no plain numbers" in done.stderr
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["x"] = file["y"] = values
    done = plumb("compare", tmp_path / "two.h5", golden, "-o", tmp_path / "out")
    assert done.returncode == 2 and f"{golden}: holds one array, but" in done.stderr
    whole = golden.read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / "cut.h5").write_bytes(whole[:size])
        done = plumb("compare", tmp_path / "cut.h5", golden, "-o", tmp_path / "out")
        assert done.returncode == 5 or "HDF5" in done.stderr, (size, done)
