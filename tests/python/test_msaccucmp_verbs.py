"""msaccucmp beside compare: single operators, arrays, advice, helpers, names."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import numpy as np
from device_dumps import Dump
from msaccucmp_cases import PLUMB, chain, expected_values, normal, rows_of, run
from operator_dumps import dump_name, write_dump


def test_two_arrays(tmp_path: Path) -> None:
    """file_compare writes what compare prints, without two of the measures."""
    x, y = normal((3, 40)), normal((3, 40), 2)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "z.npy", y[:2])
    run("file_compare", "-m", tmp_path / "x.npy", "-g", tmp_path / "y.npy", "-out", tmp_path)
    (path,) = tmp_path.glob("file_result_*.txt")
    expected = expected_values(x, y)
    for name in ("KullbackLeiblerDivergence", "StandardDeviation"):
        del expected[name]
    lines = [line.split(": ") for line in path.read_text().splitlines()]
    assert lines == [*map(list, expected.items()), ["Verdict", "broken, exceeds-rounding"]]
    run("file_compare", "-m", tmp_path / "x.npy", "-g", tmp_path / "z.npy", "-out", tmp_path,
        code=23)
    run("file_compare", "-m", tmp_path / "x.txt", "-g", tmp_path / "y.npy", "-out", tmp_path,
        code=24)


def test_under_its_own_name(tmp_path: Path) -> None:
    """A link called msaccucmp takes the old command line."""
    link = Path(PLUMB).with_name("msaccucmp")
    if not link.exists():
        link = tmp_path / "msaccucmp.py"
        link.symlink_to(PLUMB)
    done = subprocess.run([link, "compare", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "--fusion_rule_file" in done.stdout


def advice_on(directory: Path, rows: list[tuple[str, str, str]], *words: str) -> list[str]:
    """The three lines for rows of name, overflow and cosine similarity."""
    path = directory / "result.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Index", "NPUDump", "OverFlow", "CosineSimilarity"])
        writer.writerows([i, *row] for i, row in enumerate(rows))
    run("advisor", "-i", path, "-o", directory, *words)
    lines = (directory / "advisor_summary.txt").read_text().splitlines()
    return [line.split(": ", 1)[1] for line in lines]


def test_advice(tmp_path: Path) -> None:
    """The first of overflow, inputs and similarity; what could not be compared is no success."""
    good, low, none = ("a", "NO", "0.995"), ("b", "NO", "0.98"), ("c", "NaN", "NaN")
    assert advice_on(tmp_path, [good, ("x", "YES", "1.0"), low])[:2] == ["FP16 Overflow", "1"]
    assert advice_on(tmp_path, [good, low], "-input_nodes", "b")[:2] == ["Input Inconsistent", "1"]
    assert advice_on(tmp_path, [good, good])[:2] == ["Global Consistency", "NA"]
    problem, deviation = advice_on(tmp_path, [good, low, none]), advice_on(tmp_path, [low, good])
    assert problem[:2] == ["Global Consistency", "1"]
    assert deviation[:2] == ["Global Consistency", "0"]
    assert "calibrate" in problem[2]
    assert "optimisation" in deviation[2]
    assert "1 tensor could not be compared" in advice_on(tmp_path, [good, none])[2]
    assert advice_on(tmp_path, [none])[2].startswith("No tensor could be compared")


def test_advice_with_a_comparison(tmp_path: Path) -> None:
    """-advisor adds the overflow column and writes the summary."""
    chain(tmp_path / "mine")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "mine", "-out", tmp_path, "-advisor")
    assert "OverFlow" in rows_of(tmp_path)[0]
    assert "NA" in (tmp_path / "advisor_summary.txt").read_text()


def test_advice_on_numbers_of_another_size(tmp_path: Path) -> None:
    """Twice the golden tensor has its direction."""
    x = normal((4, 5))
    for side, factor in (("mine", 2), ("golden", 1)):
        write_dump(tmp_path / side / dump_name("Add", "a", 1), [], [(x * factor, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-advisor")
    lines = (tmp_path / "advisor_summary.txt").read_text().splitlines()
    assert lines[1] == "Operator Index: 0"
    assert "broken by its Verdict" in lines[2]


def test_convert_and_overflow_are_verbs(tmp_path: Path) -> None:
    """The old command lines reach plumb's own commands."""
    chain(tmp_path / "mine")
    run("convert", "-d", tmp_path / "mine", "-out", tmp_path / "npy", "-f", "NCHW", "-t", "npy")
    name = dump_name("Relu", "op0", 0)
    array = np.load(tmp_path / "npy" / f"{name}.output.0.2x3x4x5.npy")
    assert np.array_equal(array, normal((2, 3, 4, 5), 10))
    done = run("overflow", "-d", tmp_path / "mine", "-out", tmp_path / "of", "-n", "3")
    assert "Find [0] overflow node" in done.stderr
    run("nonsense", code=2)
    run(code=6)


def test_one_operator_in_detail(tmp_path: Path) -> None:
    """Every element, the largest differences and a summary, without the padding."""
    x, y = normal((1, 3, 50, 100)), normal((1, 3, 50, 100), 2)
    y.flat[7] = 0
    for side, array in (("mine", x), ("golden", y)):
        (tmp_path / side).mkdir()
        write_dump(tmp_path / side / dump_name("Conv2D", "conv1", 1), [], [(array, "NC1HWC0")])
    out = tmp_path / "out"
    words = ("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", out, "-op",
             "conv1")
    (tmp_path / "out").mkdir()
    (out / "conv1_output_0_77.csv").write_text("old")
    done = run(*words, "-n", "3", "-ml", "10000")
    assert done.stdout.startswith("conv1:output:0: broken")
    assert sorted(path.name for path in out.iterdir()) == [
        "conv1_output_0.npy", "conv1_output_0_0.csv", "conv1_output_0_10000.csv",
        "conv1_output_0_absolute_error_topn.csv", "conv1_output_0_relative_error_topn.csv",
        "conv1_output_0_summary.txt"]
    assert np.array_equal(np.load(out / "conv1_output_0.npy"), x)
    lines = (out / "conv1_output_0_0.csv").read_text().splitlines()
    assert lines[0] == "Index,N C H W,NPUDump,GroundTruth,AbsoluteError,RelativeError"
    difference = np.abs(x.astype("f8") - y.astype("f8")).ravel()
    assert len(lines) == 10001
    assert lines[102] == (f"101,0 0 1 1,{x.flat[101]:.6f}\t,{y.flat[101]:.6f}\t,"
                          f"{difference[101]:.6f}\t,"
                          f"{difference[101] / abs(float(y.flat[101])):.6f}\t")
    assert lines[8].endswith(",-")
    top = (out / "conv1_output_0_absolute_error_topn.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in top] == list(np.argsort(-difference)[:3])
    summary = dict(line.split(":", 1)
                   for line in (out / "conv1_output_0_summary.txt").read_text().splitlines())
    assert summary["TotalCount"] == "15000"
    assert summary["Format"] == "NCHW"
    assert summary["MaxAbsoluteError"] == f"{difference.max():.6f}"
    run(*words, "-o", "1", code=2)
    run(*words, "-o", "0", "-i", "0", code=6)
    run(*words, "-n", "0", code=6)
    run(*words, "-ml", "9999", code=6)


def test_helpers(tmp_path: Path) -> None:
    """Texts of workspaces, and one tensor in another layout."""
    name = dump_name("Custom", "op", 1)
    Dump(spaces=[b"first\0line\n\0\0", b"second"]).write(tmp_path / name)
    run("save_log", "-d", tmp_path / name, "-out", tmp_path / "log")
    assert (tmp_path / "log" / f"{name}.0.log").read_text() == "firstline\n"
    assert (tmp_path / "log" / f"{name}.1.log").read_text() == "second"
    chain(tmp_path / "mine")
    dump = tmp_path / "mine" / dump_name("Relu", "op0", 0)
    run("save_log", "-d", dump, "-out", tmp_path / "log", code=35)
    run("shape_conversion", "-i", dump, "-format", "NHWC", "-o", tmp_path / "npy", "-tensor",
        "input", "-index", "0", "-shape", "2,4,5,3")
    array = np.load(tmp_path / "npy" / f"{dump.name}.input.0.2x4x5x3.npy")
    assert np.array_equal(array, normal((2, 3, 4, 5), 9).transpose(0, 2, 3, 1))
