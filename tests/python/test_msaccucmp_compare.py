"""msaccucmp compare and file_compare: recordings of operators against an independent truth."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import Dump
from operator_dumps import dump_name, pack, write_dump

PLUMB = os.environ.get("PLUMB", "plumb")
ALGORITHMS = ["CosineSimilarity", "MaxAbsoluteError", "AccumulatedRelativeError",
              "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "StandardDeviation",
              "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError", "MeanRelativeError"]
VERDICT = ["CompareFailReason", "Verdict", "Reason", "RelativeError"]

Array = np.ndarray[Any, Any]


def run(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs plumb msaccucmp and checks the exit status."""
    done = subprocess.run([PLUMB, "msaccucmp", *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == code, done.stderr
    return done


def rows_of(directory: Path, pattern: str = "result_*.csv") -> list[dict[str, str]]:
    """The rows of the only result; each has as many cells as the header."""
    (path,) = directory.glob(pattern)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(rows[0])}
    names = [f"{name}.2" if name in rows[0][:i] else name for i, name in enumerate(rows[0])]
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def normal(shape: tuple[int, ...], seed: int = 1) -> Array:
    """Halves that differ from each other."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float16)


def expected_values(x: Array, y: Array) -> dict[str, str]:
    """The measures by NumPy, in double."""
    x, y = x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    relative = np.where(np.abs(y) > 2.220446e-16, np.abs(x / y - 1), 0)
    p, q = ((v - v.min()) / (v.max() - v.min()) for v in (x, y))
    p, q = (np.maximum(v, np.finfo(np.float32).eps) for v in (p, q))
    p, q = p / p.sum(), q / q.sum()
    numbers = [x @ y / np.linalg.norm(x) / np.linalg.norm(y), np.abs(x - y).max(), relative.sum(),
               np.sqrt(((x - y) ** 2).sum() / (y ** 2).sum()), (p * np.log(p / q)).sum(), None,
               np.abs(x - y).mean(), np.sqrt(((x - y) ** 2).mean()), relative.max(),
               relative.mean()]
    texts = [f"({x.mean():.3f};{x.std():.3f}),({y.mean():.3f};{y.std():.3f})" if number is None
             else f"{number:.6f}" for number in numbers]
    return dict(zip(ALGORITHMS, texts, strict=True))


LAYOUTS = [("NC1HWC0", (2, 19, 5, 3)), ("FRACTAL_Z", (17, 33, 3, 2)), ("FRACTAL_NZ", (3, 20, 35)),
           ("NDC1HWC0", (2, 17, 2, 3, 4)), ("FRACTAL_Z_3D", (18, 5, 2, 3, 2)), ("ND", (4, 7))]


@pytest.mark.parametrize(("layout", "shape"), LAYOUTS)
def test_two_devices(tmp_path: Path, layout: str, shape: tuple[int, ...]) -> None:
    """Values are those of the host arrays: padding is no data, the values are NumPy's."""
    mine, golden = tmp_path / "mine", tmp_path / "golden"
    x, y = normal(shape), normal(shape, 2)
    for directory, array in ((mine, x), (golden, y)):
        directory.mkdir()
        write_dump(directory / dump_name("Conv2D", "conv1", 1), [(y, layout)], [(array, layout)])
    if layout != "ND":
        garbage = mine / dump_name("Conv2D", "conv1", 1)
        packed = pack(np.full(shape, 1, np.float16), layout)
        data = bytearray(garbage.read_bytes())
        hole = int(np.flatnonzero(packed.ravel() == 0)[0])
        start = len(data) - packed.nbytes + 2 * hole
        data[start:start + 2] = np.float16(1000).tobytes()
        garbage.write_bytes(bytes(data))
    run("compare", "-m", mine, "-g", golden, "-out", tmp_path)
    given, result = rows_of(tmp_path)
    assert given["Verdict"] == "same"
    assert given["TensorIndex"] == "conv1:input:0"
    assert {name: result[name] for name in ALGORITHMS} == expected_values(x, y)
    assert result["Shape"] == "[" + ",".join(map(str, shape)) + "]"
    assert result["Verdict"] == "broken"
    assert result["DataType"] == "FLOAT16"


def chain(directory: Path, wrong_from: int | None = None, missing: int | None = None,
          nan: int | None = None) -> None:
    """Five operators, each fed by the one before; from `wrong_from` on, numbers are others."""
    directory.mkdir()
    for i in range(5):
        is_wrong = wrong_from is not None and i >= wrong_from
        fed_wrongly = wrong_from is not None and i > wrong_from
        value = normal((2, 3, 4, 5), 10 + i + (100 if is_wrong else 0))
        given = normal((2, 3, 4, 5), 9 + i + (100 if fed_wrongly else 0))
        if i == nan:
            value.flat[3] = np.nan
        if i != missing:
            write_dump(directory / dump_name("Relu", f"op{i}", i), [(given, "NC1HWC0")],
                       [(value, "NC1HWC0")])


def first_line(*words: str | Path) -> str:
    """What the answer says first."""
    return run("compare", *words).stdout.splitlines()[0]


def test_the_first_wrong_operator_is_named(tmp_path: Path) -> None:
    """The first whose inputs agree and whose outputs do not."""
    chain(tmp_path / "golden")
    chain(tmp_path / "good")
    chain(tmp_path / "bad", wrong_from=2)
    sides = ("-g", tmp_path / "golden", "-out", tmp_path)
    assert first_line("-m", tmp_path / "good", *sides) == "no wrong call"
    assert first_line("-m", tmp_path / "bad", *sides) == "first wrong call: op2"


@pytest.mark.parametrize("damage", ["missing", "nan", "cut", "extra"])
def test_never_a_pass_where_something_is_not_known(tmp_path: Path, damage: str) -> None:
    """Missing operators, NaN on both sides and damaged files leave the answer open."""
    number = {"missing": 1, "nan": 3}.get(damage)
    chain(tmp_path / "golden", nan=3 if damage == "nan" else None,
          missing=1 if damage == "extra" else None)
    chain(tmp_path / "mine", **({damage: number} if number else {}))
    if damage == "cut":
        file = tmp_path / "mine" / dump_name("Relu", "op4", 4)
        file.write_bytes(file.read_bytes()[:-10])
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    assert answer.startswith("not judged completely")
    rows = rows_of(tmp_path)
    assert sum(row["Verdict"] == "not comparable" for row in rows) == 1
    if damage in ("missing", "extra"):
        (row,) = [row for row in rows if "*" in (row["NPUDump"], row["GroundTruth"])]
        assert "dump file for the op op1" in row["CompareFailReason"]


def test_columns(tmp_path: Path) -> None:
    """Upstream's header, the verdict behind it; overflow and chosen algorithms on request."""
    chain(tmp_path / "mine")
    big = np.full((2, 3), 65504, np.float16)
    write_dump(tmp_path / "mine" / dump_name("Add", "-conv", 9), [], [(big, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "mine", "-out", tmp_path,
        "-overflow_detection", "-alg", "1,CosineSimilarity")
    rows = rows_of(tmp_path)
    assert list(rows[0]) == ["Index", "OpType", "NPUDump", "DataType", "Address", "GroundTruth",
                             "DataType.2", "Address.2", "TensorIndex", "Shape", "OverFlow",
                             "MaxAbsoluteError", "CosineSimilarity", *VERDICT]
    assert [row["OverFlow"] for row in rows].count("YES") == 1
    assert rows[-1]["NPUDump"].strip() == "-conv"


def rule_operator(name: str, inputs: list[str], originals: list[str] | None = None,
                  output: tuple[str, int, tuple[int, ...]] | None = None) -> dict[str, Any]:
    """One operator of a rule file; "Conv2D conv1" is type and name."""
    attributes: list[dict[str, Any]] = []
    if originals is not None:
        attributes.append({"key": "_datadump_original_op_names",
                           "value": {"list": {"s": originals}}})
    described = []
    if output:
        origin, index, shape = output
        described.append({"dtype": "DT_FLOAT16", "attr": [
            {"key": "_datadump_origin_name", "value": {"s": origin}},
            {"key": "_datadump_origin_output_index", "value": {"i": index}},
            {"key": "_datadump_origin_format", "value": {"s": "NCHW"}},
            {"key": "origin_shape", "value": {"list": {"i": list(shape)}}}]})
    op_type, name = name.split()
    return {"name": name, "type": op_type, "input": inputs, "attr": attributes,
            "output_desc": described}


SHAPE = (1, 17, 4, 6)


def fused_model(directory: Path, *, nhwc: bool = False, wrong: bool = False) -> Path:
    """A model whose conv and relu became one operator, fed through a TransData."""
    mine, golden = directory / "mine", directory / "golden"
    mine.mkdir()
    golden.mkdir()
    data, relu, add = normal(SHAPE, 1), normal(SHAPE, 2), normal(SHAPE, 3)
    shown = normal(SHAPE, 8) if wrong else relu
    write_dump(mine / dump_name("TransData", "trans", 1), [(data, "NCHW")], [(data, "NC1HWC0")])
    write_dump(mine / dump_name("Conv2D", "net_conv_relu", 2), [(data, "NC1HWC0")],
               [(shown, "NC1HWC0")])
    write_dump(mine / dump_name("Add", "net_add", 3), [(shown, "NC1HWC0")], [(add, "NC1HWC0")])
    for name, array in (("input", data), ("net_relu", relu), ("net_add", add)):
        stored = array.transpose(0, 2, 3, 1) if nhwc else array
        np.save(golden / f"{name}.0.1612439563338020.npy", stored.astype(np.float32))
    operators = [
        rule_operator("Data input", []),
        rule_operator("TransData trans", ["input:0"], []),
        rule_operator("Conv2D net/conv_relu", ["trans:0"], ["net/conv", "net/relu"],
                      ("net/relu", 0, SHAPE)),
        rule_operator("Add net/add", ["net/conv_relu:0"], ["net/add"], ("net/add", 0, SHAPE)),
    ]
    operators[1]["attr"] = [{"key": "_datadump_original_op_names", "value": {"list": {}}}]
    rule = directory / "rule.json"
    rule.write_text(json.dumps({"graph": [{"name": "g", "op": operators}]}))
    return rule


@pytest.mark.parametrize("nhwc", [False, True])
def test_against_a_framework(tmp_path: Path, nhwc: bool) -> None:
    """Fused operators meet the arrays of what they stand for, in either order of the axes."""
    rule = fused_model(tmp_path, nhwc=nhwc)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out", tmp_path)
    rows = {row["TensorIndex"]: row for row in rows_of(tmp_path)}
    names = ["net/conv_relu:input:0", "net/conv_relu:output:0", "net/add:input:0",
             "net/add:output:0", "trans:input:0"]
    assert [rows[name]["Verdict"] for name in names] == ["same"] * 5
    assert rows["trans:output:0"]["Reason"] == "no-original"
    assert rows["net/conv_relu:input:0"]["GroundTruth"] == "input"
    assert rows["net/conv_relu:output:0"]["GroundTruth"] == "net/relu"
    assert rows["net/conv_relu:output:0"]["DataType.2"] == "float32"
    assert "Address" in rows["net/add:input:0"]
    assert "Address.2" not in rows["net/add:input:0"]


def test_against_a_framework_the_culprit_is_named(tmp_path: Path) -> None:
    """The operator whose input agrees with the framework and whose output does not."""
    rule = fused_model(tmp_path, wrong=True)
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out",
                        tmp_path)
    assert answer == "first wrong call: net/conv_relu"


def test_a_smaller_golden_array_is_no_counterpart(tmp_path: Path) -> None:
    """Only padding is cropped; data is not cut until the sizes fit."""
    rule = fused_model(tmp_path)
    path = tmp_path / "golden" / "net_add.0.1612439563338020.npy"
    np.save(path, np.load(path)[:, :, :3, :5])
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out",
                        tmp_path)
    assert answer.startswith("not judged completely")
    (row,) = [row for row in rows_of(tmp_path) if row["TensorIndex"] == "net/add:output:0"]
    assert row["Reason"] == "shape-differs"
    assert "(1,17,4,6)" in row["CompareFailReason"]


def test_part_of_a_network_and_mapping(tmp_path: Path) -> None:
    """-r and -s choose by execution number and add it as a column; -map measures nothing."""
    rule = fused_model(tmp_path)
    sides = ("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out")
    run("compare", *sides, tmp_path / "r", "-r", "3,,")
    assert [row["OpSequence"] for row in rows_of(tmp_path / "r")] == ["3", "3", "4", "4"]
    run("compare", *sides, tmp_path / "s", "-s", "4,4,99")
    assert {row["OpSequence"] for row in rows_of(tmp_path / "s")} == {"4"}
    run("compare", *sides, tmp_path / "map", "-map")
    rows = rows_of(tmp_path / "map", "mapping_*.csv")
    assert {row["GroundTruthPath"] for row in rows if row["TensorIndex"] == "net/add:input:0"} == {
        str(tmp_path / "golden" / "net_relu.0.1612439563338020.npy")}
    for span in ("0,,", "5,,", ",9,", ",,0", "3,2,"):
        run("compare", *sides, tmp_path, "-r", span, code=6)
    run("compare", *sides, tmp_path, "-s", "99", code=6)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    """Upstream's codes."""
    chain(tmp_path / "a")
    (tmp_path / "b").mkdir()
    np.save(tmp_path / "b" / "op0.0.1612439563338020.npy", np.ones(3))
    rule = tmp_path / "rule.json"
    rule.write_text('{"graph": [{"op": [{"name": "x"}]}]}')
    both = ("-m", tmp_path / "a", "-g", tmp_path / "a")
    run("compare", *both, "-q", rule, code=6)
    run("compare", *both, "-f", rule, code=6)
    run("compare", *both, "-map", code=6)
    run("compare", *both, "-max", "-1", code=6)
    run("compare", *both, "-alg", "nothing", code=31)
    run("compare", *both, "-unknown", code=2)
    run("compare", "-m", tmp_path / "a", code=2)
    run("compare", "-m", tmp_path / "a", "-g", tmp_path / "b", code=6)
    run("compare", "-m", tmp_path / "a", "-g", tmp_path / "none", code=3)
    done = run("compare", "-m", tmp_path / "a", "-g", tmp_path / "b", "-f", rule, code=29)
    assert '"type" is missing' in done.stderr


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


def test_plumb_compare_finds_the_dumps(tmp_path: Path) -> None:
    """Trees of any depth; the times in their paths differ between runs."""
    golden = tmp_path / "golden" / "20260101000000" / "0"
    mine = tmp_path / "mine" / "20260202000000" / "0"
    for side in (golden, mine):
        side.mkdir(parents=True)
    chain(golden / "a")
    chain(golden / "b")
    chain(mine / "a")
    chain(mine / "b", wrong_from=3)
    done = subprocess.run([PLUMB, "compare", tmp_path / "mine", tmp_path / "golden", "-o",
                           tmp_path / "out", "--fail-on", "broken"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["0/a:", "no wrong call"]
    assert lines[lines.index("0/b:") + 1] == "first wrong call: op3"
    assert len(list((tmp_path / "out").glob("result_0_?_*.csv"))) == 2


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


def test_a_directory_of_rule_files(tmp_path: Path) -> None:
    """One result per device and model; of the steps 9 and 10 it is 10."""
    rule = fused_model(tmp_path)
    rules = tmp_path / "rules"
    rules.mkdir()
    text = json.loads(rule.read_text())
    text["graph"][0]["name"] = "resnet"
    (rules / "a.json").write_text(json.dumps(text))
    top = tmp_path / "20260101000000"
    for device in ("0", "1"):
        for step in ("9", "10"):
            place = top / device / "resnet" / "1" / step
            place.mkdir(parents=True)
            for file in (tmp_path / "mine").iterdir():
                (place / file.name).write_bytes(file.read_bytes())
    done = run("compare", "-m", top, "-g", tmp_path / "golden", "-f", rules, "-out",
               tmp_path / "out")
    assert [path.name[:18] for path in sorted((tmp_path / "out").iterdir())] == [
        "0_resnet_10_result", "1_resnet_10_result"]
    assert done.stdout.count("no wrong call") == 2
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rules, code=6)


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


def test_damaged_files_are_rows_and_nothing_else(tmp_path: Path) -> None:
    """Flipped bits and cuts in headers: no crash, no row lost, the sound operators stay same."""
    random = np.random.default_rng(20260102)
    for side in ("mine", "golden"):
        (tmp_path / side).mkdir()
    for i in range(300):
        shape, layout = ((1, 5, 3, 2), "NC1HWC0") if i % 2 else ((17, 3, 2, 2), "FRACTAL_Z")
        name = dump_name("Op", f"op{i}", i)
        array = normal(shape, i)
        for side in ("mine", "golden"):
            write_dump(tmp_path / side / name, [(array, layout)], [(array, layout)])
        if i % 3 == 0:
            continue
        path = tmp_path / "mine" / name
        data = bytearray(path.read_bytes())
        if i % 3 == 1:
            data[random.integers(0, 90)] ^= 1 << random.integers(0, 8)
        else:
            del data[random.integers(0, len(data)):]
        path.write_bytes(bytes(data))
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    assert answer != "no wrong call"
    rows = rows_of(tmp_path)
    assert {row["Index"] for row in rows} == {str(i) for i in range(300)}
    for row in rows:
        if int(row["Index"]) % 3 == 0:
            assert row["Verdict"] == "same", row
        elif int(row["Index"]) % 3 == 2 and row["Verdict"] != "same":
            assert row["CompareFailReason"], row


def test_msprobe_in_mode_offline_data(tmp_path: Path) -> None:
    """The newest msprobe spells the same comparison with options of its own."""
    rule = fused_model(tmp_path)
    done = subprocess.run([PLUMB, "msprobe", "compare", "-m", "offline_data", "-tp",
                           tmp_path / "mine", "-gp", tmp_path / "golden", "-fr", rule, "-o",
                           tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no wrong call")
    assert rows_of(tmp_path / "out")
