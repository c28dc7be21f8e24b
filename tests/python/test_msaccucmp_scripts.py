"""Scripts beside upstream's program: compare_vector and dump_data_conversion."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from device_dumps import Dump, plain
from msaccucmp_cases import ALGORITHMS, chain, expected_values, normal, run
from test_msaccucmp_compare import fused_model

TIME = 1_612_439_563_000_000
ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False]),
          np.asfortranarray(normal((3, 4))), np.zeros((0, 2), np.int64), np.array(7, np.int8),
          np.array([1 + 2j], np.complex64)]


def test_compare_vector(tmp_path: Path) -> None:
    """The older command line: a csv file, or cells between blanks, at the path that is named."""
    chain(tmp_path / "golden")
    chain(tmp_path / "mine", wrong_from=2)
    words = ["compare_vector", "-l", tmp_path / "mine", "-r", tmp_path / "golden"]
    done = run(*words, "-o", tmp_path / "out.csv", "-csv")
    assert done.stdout.splitlines()[0] == "first wrong call: op2"
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    x, y = normal((2, 3, 4, 5), 112), normal((2, 3, 4, 5), 12)
    assert {name: rows[5][name] for name in ALGORITHMS} == expected_values(x, y)
    run(*words, "-o", tmp_path / "out.txt")
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines[0].startswith("Index OpType NPUDump DataType Address GroundTruth")
    assert [line.split()[2] for line in lines[1:]] == [row["NPUDump"] for row in rows]
    run(*words, "-o", tmp_path / "detail", "-d", "op1", "-t", "input", "-i", "0")
    assert (tmp_path / "detail" / "op1_input_0_summary.txt").exists()
    run(*words, "-o", tmp_path / "detail", "-d", "op1", "-t", "both", code=6)
    run("compare_vector", "-l", tmp_path / "mine", code=2)
    run("compare_vector", "-l", tmp_path / "no", "-r", tmp_path / "mine", "-o", "x", code=3)


@pytest.mark.parametrize(("kind", "suffix"), [("tf", ".pb"), ("caffe", ".pb"), ("quant", ".quant")])
def test_arrays_of_frameworks_there_and_back(tmp_path: Path, kind: str, suffix: str) -> None:
    """Every array is the same when it comes back, and its dump has what the array says."""
    for i, array in enumerate(ARRAYS):
        (tmp_path / "npy").mkdir(exist_ok=True)
        np.save(tmp_path / "npy" / f"net.conv{i}.0.{TIME}.npy", array)
    (tmp_path / "npy" / "other.npy").write_bytes(b"")
    words = ["dump_data_conversion", "-type", kind]
    done = run(*words, "-target", "dump", "-i", tmp_path / "npy", "-o", tmp_path / "dump")
    assert "other.npy: left out" in done.stderr
    dumps = sorted((tmp_path / "dump").iterdir())
    assert [path.name for path in dumps] == [f"net.conv{i}.0.{TIME}{suffix}"
                                             for i in range(len(ARRAYS))]
    assert dumps[0].read_bytes().endswith(ARRAYS[0].tobytes())
    run(*words, "-target", "numpy", "-i", tmp_path / "dump", "-o", tmp_path / "back")
    for i, array in enumerate(ARRAYS):
        back = np.load(tmp_path / "back" / f"net.conv{i}.0.{TIME}.npy")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)


def test_arrays_of_a_device_there_and_back(tmp_path: Path) -> None:
    """All arrays of an operator are one dump, byte for byte as one written by its description."""
    x, y = normal((2, 3)), normal((4,), 2)
    dump = Dump(inputs=[plain(x), plain(y)], outputs=[plain(y)])
    name = f"Add.net_add.3.7.{TIME}"
    dump.write(tmp_path / "first" / name)
    words = ["dump_data_conversion", "-type", "offline"]
    run(*words, "-target", "numpy", "-i", tmp_path / "first", "-o", tmp_path / "npy")
    assert sorted(path.name for path in (tmp_path / "npy").glob("*.npy")) == [
        f"{name}.input.0.npy", f"{name}.input.1.npy", f"{name}.output.0.npy"]
    run(*words, "-target", "dump", "-i", tmp_path / "npy", "-o", tmp_path / "dump")
    (path,) = (tmp_path / "dump").iterdir()
    assert path.name == name
    assert path.read_bytes().endswith(x.tobytes() + y.tobytes() + y.tobytes())
    run("compare", "-m", tmp_path / "dump", "-g", tmp_path / "first", "-out", tmp_path)
    (result,) = tmp_path.glob("result_*.csv")
    with result.open(newline="") as file:
        assert [row["Verdict"] for row in csv.DictReader(file)] == ["same"] * 3
    # Upstream's form of names: an output without a word for it; and shapes of `convert -f`.
    np.save(tmp_path / f"{name}.0.npy", x)
    run(*words, "-target", "dump", "-i", tmp_path / f"{name}.0.npy", "-o", tmp_path / "one")
    assert (tmp_path / "one" / name).read_bytes().endswith(x.tobytes())
    np.save(tmp_path / f"{name}.output.0.2x3.npy", x)
    run(*words, "-target", "dump", "-i", tmp_path / f"{name}.output.0.2x3.npy", "-o",
        tmp_path / "two")
    assert (tmp_path / "two" / name).exists()


def test_conversion_of_bad_files(tmp_path: Path) -> None:
    """Each bad file is one line; the others are converted; wrong words have upstream's numbers."""
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / f"good.0.{TIME}.npy", np.arange(3))
    (tmp_path / "npy" / f"cut.0.{TIME}.npy").write_bytes(b"\x93NUMPY\x01\x00")
    np.save(tmp_path / "npy" / f"text.0.{TIME}.npy", np.array(["a"]))
    words = ["dump_data_conversion", "-i", tmp_path / "npy", "-o", tmp_path / "out"]
    done = run(*words, "-target", "dump", "-type", "tf", code=11)
    assert len([line for line in done.stderr.splitlines() if "cut.0" in line]) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"good.0.{TIME}.pb"]
    (tmp_path / "out" / f"cut.0.{TIME}.pb").write_bytes(
        (tmp_path / "out" / f"good.0.{TIME}.pb").read_bytes()[:-3])
    back = ["dump_data_conversion", "-i", tmp_path / "out", "-o", tmp_path / "back", "-target",
            "numpy", "-type", "tf"]
    assert "cut" in run(*back, code=11).stderr
    assert [path.name for path in (tmp_path / "back").iterdir()] == [f"good.0.{TIME}.npy"]
    run(*words, "-target", "dump", "-type", "mine", code=24)
    run(*words, "-target", "text", "-type", "tf", code=25)
    run(*words, "-target", "dump", "-type", "offline", code=18)
    run(*words, "-target", "dump", code=2)
    run("dump_data_conversion", "-i", tmp_path / "no", "-o", tmp_path, "-target", "dump", "-type",
        "tf", code=3)
    hole = tmp_path / "hole"
    hole.mkdir()
    np.save(hole / f"Add.a.1.2.{TIME}.output.1.npy", np.arange(2))
    done = run("dump_data_conversion", "-i", hole, "-o", tmp_path / "holes", "-target", "dump",
               "-type", "offline", code=18)
    assert "output 0 is missing" in done.stderr
    assert not list((tmp_path / "holes").iterdir())


def other_names(directory: Path, file: Path) -> list[Path]:
    """The file itself, and two links to it in a directory of their own."""
    directory.mkdir()
    hard, soft = directory / "hard", directory / "soft"
    hard.hardlink_to(file)
    soft.symlink_to(file)
    return [file, hard, soft]


def contents(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_no_output_takes_the_place_of_an_input(tmp_path: Path) -> None:
    """compare_vector, also by other names of the input; nothing is written."""
    for side in ("mine", "golden"):
        chain(tmp_path / side)
    words = ["compare_vector", "-l", tmp_path / "mine", "-r", tmp_path / "golden"]
    for side in ("mine", "golden"):
        for path in other_names(tmp_path / f"links_{side}", next((tmp_path / side).iterdir())):
            before = contents(tmp_path)
            done = run(*words, "-o", path, "-csv", code=6)
            (line,) = done.stderr.splitlines()
            assert f"{path}: is one of the inputs" in line and done.stdout == ""
            assert contents(tmp_path) == before
    new = tmp_path / "mine" / "new.csv"
    run(*words, "-o", new, "-csv")
    run(*words, "-o", tmp_path / "new.csv", "-csv")
    run(*words, "-o", tmp_path / "new.csv", "-csv")  # its own result it replaces


def test_conversion_spares_its_directory(tmp_path: Path) -> None:
    """Arrays do not replace the dump that they are of, nor dumps the arrays beside them."""
    name = f"Add.net_add.3.7.{TIME}"
    Dump(outputs=[plain(normal((2, 3)))]).write(tmp_path / "both" / name)
    words = ["dump_data_conversion", "-type", "offline", "-i", tmp_path / "both", "-o",
             tmp_path / "both"]
    run(*words, "-target", "numpy")
    before = contents(tmp_path)
    done = run(*words, "-target", "dump", code=6)
    assert f"{name}: is one of the inputs" in done.stderr
    assert contents(tmp_path) == before
    stem = f"net.conv.0.{TIME}"
    array = tmp_path / "tf" / f"{stem}.npy"
    array.parent.mkdir()
    np.save(array, np.arange(3.0))
    words = ["dump_data_conversion", "-type", "tf", "-i", tmp_path / "tf"]
    run(*words, "-target", "dump", "-o", tmp_path / "tf")
    before = contents(tmp_path)
    assert "is one of" in run(*words, "-target", "numpy", "-o", tmp_path / "tf", code=6).stderr
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / f"{stem}.npy").symlink_to(tmp_path / "tf" / f"{stem}.pb")
    run(*words, "-target", "numpy", "-o", tmp_path / "links", code=6)
    assert contents(tmp_path) == {**before, **contents(tmp_path / "links")}


def test_convert_leaves_what_links_lead_to(tmp_path: Path) -> None:
    """Outputs take the place of links, never of the dump; the list of failures is no input."""
    name = f"Add.net_add.3.7.{TIME}"
    dump = tmp_path / "dump" / name
    Dump(outputs=[plain(normal((2, 3))), plain(normal((2,)))]).write(dump)
    before = dump.read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    (out / f"{name}.output.0.npy").symlink_to(dump)
    (out / f"{name}.output.1.npy").hardlink_to(dump)
    run("convert", "-d", dump, "-out", out)
    assert dump.read_bytes() == before
    np.testing.assert_array_equal(np.load(out / f"{name}.output.0.npy"), normal((2, 3)))
    np.testing.assert_array_equal(np.load(out / f"{name}.output.1.npy"), normal((2,)))
    listed = dump.with_name("convert_failed_file_list.txt")
    dump.rename(listed)
    done = run("convert", "-d", listed, "-out", dump.parent, code=6)
    assert "is one of the inputs" in done.stderr
    assert listed.read_bytes() == before


def test_detail_and_advice_spare_their_inputs(tmp_path: Path) -> None:
    """Files of one operator, and the advice on a result that has its name."""
    for side in ("mine", "golden"):
        chain(tmp_path / side)
    taken = tmp_path / "mine" / "op1_output_0.npy"
    np.save(taken, np.arange(3))
    before = contents(tmp_path)
    words = ["compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden"]
    done = run(*words, "-op", "op1", "-out", tmp_path / "mine", code=19)
    assert f"{taken}: is one of the inputs" in done.stderr
    assert contents(tmp_path) == before
    run(*words, "-out", tmp_path / "out")
    (result,) = (tmp_path / "out").glob("result_*.csv")
    advice = result.rename(result.with_name("advisor_summary.txt"))
    before = contents(tmp_path)
    assert "is one of" in run("advisor", "-i", advice, "-o", tmp_path / "out", code=6).stderr
    assert contents(tmp_path) == before


def test_compare_reads_converted_arrays(tmp_path: Path) -> None:
    """Dumps of arrays stand for the arrays, as upstream has it."""
    rule = fused_model(tmp_path, wrong=True)
    golden = tmp_path / "golden"
    results = []
    words = ["compare", "-m", tmp_path / "mine", "-f", rule]
    for kind, end in (("", ""), ("tf", ".pb"), ("quant", ".quant")):
        side = tmp_path / f"golden{end}"
        if kind:
            run("dump_data_conversion", "-type", kind, "-target", "dump", "-i", golden, "-o", side)
        if kind == "quant":  # not for a model that is none of that kind
            done = run(*words, "-g", side, code=6)
            assert "the right side is Quant" in done.stderr
            continue
        run(*words, "-g", side, "-out", tmp_path / f"out{end}")
        (path,) = (tmp_path / f"out{end}").glob("result_*.csv")
        results.append(path.read_text())
    assert results[0] == results[1]
    assert "broken" in results[1] and "same" in results[1]
    np.save(tmp_path / "golden.pb" / f"other.0.{TIME}.npy", np.zeros(2))
    done = run(*words, "-g", tmp_path / "golden.pb", code=6)
    assert "are of the same type (" in done.stderr
    assert ".pb" in done.stderr and ".npy" in done.stderr
