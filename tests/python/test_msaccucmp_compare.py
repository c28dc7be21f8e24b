"""msaccucmp compare: recordings of operators against an independent truth."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import FORMATS, Dump, Tensor, nano
from msaccucmp_cases import ALGORITHMS, PLUMB, chain, expected_values, normal, rows_of, run
from operator_dumps import dump_name, pack, write_dump

VERDICT = ["CompareFailReason", "Verdict", "Reason", "RelativeError"]


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


@pytest.mark.parametrize("nhwc", [False, True])
@pytest.mark.parametrize("has_format", [False, True])
def test_a_rule_file_without_sizes(tmp_path: Path, nhwc: bool, has_format: bool) -> None:
    """The sizes of my tensor stand for them; an array that fits in no order is no counterpart."""
    rule = fused_model(tmp_path, nhwc=nhwc)
    content = json.loads(rule.read_text())
    left_out = ["origin_shape"] if has_format else ["origin_shape", "_datadump_origin_format"]
    for operator in content["graph"][0]["op"]:
        for output in operator["output_desc"]:
            output["attr"] = [one for one in output["attr"] if one["key"] not in left_out]
    rule.write_text(json.dumps(content))
    words = ("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out")
    run(*words, tmp_path)
    rows = [row for row in rows_of(tmp_path) if row["Reason"] != "no-original"]
    assert [row["Verdict"] for row in rows] == ["same"] * 5
    path = tmp_path / "golden" / "net_add.0.1612439563338020.npy"
    np.save(path, np.load(path).transpose(0, 3, 2, 1).copy())
    assert first_line(*words[1:], tmp_path / "turned").startswith("not judged completely")
    (row,) = [row for row in rows_of(tmp_path / "turned")
              if row["TensorIndex"] == "net/add:output:0"]
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "shape-differs")
    assert row["MaxAbsoluteError"] == "NaN"


def test_against_a_framework_the_culprit_is_named(tmp_path: Path) -> None:
    """The operator whose input agrees with the framework and whose output does not."""
    rule = fused_model(tmp_path, wrong=True)
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out",
                        tmp_path)
    assert answer == "first wrong call: net/conv_relu"


@pytest.mark.parametrize(("gap", "reason"), [
    ("operator", "The rule file has no operator net_add."),
    ("output", "The rule file does not name this output."),
    ("dump", "The dump file has only 0 of them."),
])
def test_what_the_rule_file_or_the_dump_lacks_is_no_pass(tmp_path: Path, gap: str,
                                                         reason: str) -> None:
    """A wrong output that meets nothing, and an output that was not dumped."""
    rule = fused_model(tmp_path)
    wrong = [(normal(SHAPE, 9), "NC1HWC0")]
    outputs = {"operator": wrong, "output": [(normal(SHAPE, 3), "NC1HWC0"), *wrong], "dump": []}
    write_dump(tmp_path / "mine" / dump_name("Add", "net_add", 3),
               [(normal(SHAPE, 2), "NC1HWC0")], outputs[gap])
    if gap == "operator":
        content = json.loads(rule.read_text())
        content["graph"][0]["op"].pop()
        rule.write_text(json.dumps(content))
    answer = first_line("-m", tmp_path / "mine", "-g", tmp_path / "golden", "-f", rule, "-out",
                        tmp_path)
    assert answer.startswith("not judged completely")
    assert [row["CompareFailReason"] for row in rows_of(tmp_path)
            if row["Reason"].startswith("only-")] == [reason]


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


def test_an_original_shape_in_two_orders_hides_nothing(tmp_path: Path) -> None:
    """The blocks of (8, 8, 8, 1) as NHWC and as HWCN are the same, and not what is padding."""
    for side, wrong in (("mine", 50), ("golden", 0)):
        weight = np.zeros((64, 1, 16, 16), np.float16)
        weight[:, 0, 0, :8] = normal((64, 8))  # one filter of 8 channels, 8 x 8
        weight[13, 0, 0, 5] += wrong
        (tmp_path / side).mkdir()
        Dump(outputs=[Tensor(weight.tobytes(), 2, weight.shape, FORMATS["FRACTAL_Z"],
                             (8, 8, 8, 1))]).write(tmp_path / side / dump_name("A", "a", 1))
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert row["Verdict"] == "broken" and float(row["MaxAbsoluteError"]) > 49


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


def test_odd_values_of_options(tmp_path: Path) -> None:
    """One line each; the empty text is the default of the options that upstream has it for."""
    write_dump(tmp_path / "mine" / dump_name("Mul", "mul", 1), [], [(normal((4, 5)), "ND")])
    sides = {"-m": tmp_path / "mine", "-g": tmp_path / "mine", "-out": tmp_path / "out"}
    for option, value, code in (
            ("-m", "", 6), ("-g", "", 6), ("-out", "", 6), ("-op", "", 6), ("-v", "3", 2),
            ("-v", "", 2), ("-max", "-1", 6), ("-max", "9" * 30, 6), ("-alg", ",", 31)):
        words = [word for pair in (sides | {option: value}).items() for word in pair]
        done = run("compare", *words, code=code)
        assert done.stderr.startswith("msaccucmp compare: -") and done.stderr.count("\n") == 1
    for more in (("-f", ""), ("-q", ""), ("-cf", ""), ("-a", ""), ("-alg", "all,0"), ("-v", "1")):
        done = run("compare", *(word for pair in sides.items() for word in pair), *more)
        assert "warning" not in done.stderr, (more, done.stderr)


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


def test_nano_dumps_behind_digits(tmp_path: Path) -> None:
    """Operator and time are in the name that mapping.csv has."""
    values = np.array([[3, -1, 7]], np.int32)
    for side, array in (("mine", values + 1), ("golden", values)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "12345").write_bytes(nano(array))
        name = dump_name("MatMul", "op1", 1)
        (tmp_path / side / "mapping.csv").write_text(f"12345,{name}\n")
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert (row["TensorIndex"], row["Verdict"]) == ("op1:output:0", "broken")
    assert float(row["MaxAbsoluteError"]) == 1


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


@pytest.mark.parametrize("name", ["Mul.my mul.2.7.1600000000000001", "12345678901234567890"])
def test_a_dump_without_a_name_is_no_pass(tmp_path: Path, name: str) -> None:
    """Another character in the operator's name, and a number that no mapping.csv has."""
    for side, factor in (("mine", -5), ("golden", 1)):
        write_dump(tmp_path / side / dump_name("Add", "ok", 1), [], [(normal((3, 4)), "ND")])
        write_dump(tmp_path / side / name, [], [(factor * normal((3, 4)), "ND")])
    done = run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    assert done.stdout.startswith("not judged completely")
    assert f"{tmp_path / 'mine' / name}: a dump without a name" in done.stdout


def test_plumb_compare_finds_dumps_by_mapping_csv_alone(tmp_path: Path) -> None:
    """Every name was too long and is a number, in directories some levels below."""
    for side, factor in (("mine", 3), ("golden", 1)):
        directory = tmp_path / side / "20260101000000" / "0"
        write_dump(directory / ("1" * 32), [], [(normal((3, 4)), "ND")])
        write_dump(directory / ("2" * 32), [], [(factor * normal((3, 4), 2), "ND")])
        (directory / "mapping.csv").write_text("".join(
            f"{str(i) * 32},{dump_name('Add', f'net_{i}' + 'x' * 300, i)}\n" for i in (1, 2)))
    done = subprocess.run([PLUMB, "compare", tmp_path / "mine", tmp_path / "golden", "-o",
                           tmp_path / "out", "--fail-on", "any"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("first wrong call: net_2xxx")
    assert [row["Verdict"] for row in rows_of(tmp_path / "out")] == ["same", "broken"]


@pytest.mark.parametrize("mine_has_dumps", [True, False])
def test_the_side_without_dumps_is_named(tmp_path: Path, mine_has_dumps: bool) -> None:
    dumps, other = tmp_path / "dumps", tmp_path / "other"
    write_dump(dumps / dump_name("Add", "a", 1), [], [(normal((3, 4)), "ND")])

    def compare() -> tuple[int, str]:
        sides = (dumps, other) if mine_has_dumps else (other, dumps)
        done = subprocess.run([PLUMB, "compare", *sides, "-o", tmp_path / "out"],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr.removeprefix("plumb compare: ")

    assert compare() == (3, f"{other}: no such file or directory\n")
    expected = (f"{other}: holds no device dumps that can be read (expected some, as {dumps} "
                "does)\n")
    write_dump(other / "12345", [], [(normal((3, 4)), "ND")])
    assert compare() == (2, expected)
    (other / "mapping.csv").write_bytes(b"\x80\xff,\x01\n,,,")
    assert compare() == (2, expected)
    (other / "mapping.csv").write_text(f"12345,{dump_name('Add', 'a', 1)}\n")
    assert compare() == (0, "")


@pytest.mark.parametrize("words", [("0", "1"), ("0 1",), ("0,1",), ("0, MaxAbsoluteError",)])
def test_algorithms_between_commas_or_blanks(tmp_path: Path, words: tuple[str, ...]) -> None:
    chain(tmp_path / "mine")
    both = ("-m", tmp_path / "mine", "-g", tmp_path / "mine", "-out", tmp_path)
    assert run("compare", *both, "-alg", *words).stderr.count("warning") == 0
    (row, *_) = rows_of(tmp_path)
    assert [name for name in ALGORITHMS if name in row] == ALGORITHMS[:2]
    run("compare", *both, "-alg", ",", code=31)


@pytest.mark.parametrize("side", [0, 1])
def test_nan_of_either_side_is_in_every_measure(tmp_path: Path, side: int) -> None:
    """Relative errors leave no element out that has no number."""
    pair = [normal((4, 5)), normal((4, 5), 2)]
    pair[side][2, 2] = np.nan
    for name, array in zip(("mine", "golden"), pair, strict=True):
        write_dump(tmp_path / name / dump_name("Add", "a", 1), [], [(array, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    assert all("nan" in row[name] for name in ALGORITHMS), row
    assert (row["Verdict"], row["Reason"]) == ("broken", "nonfinite-position")


@pytest.mark.parametrize("plain", ["NHWC", "NCHW", "ND"])
def test_equal_sizes_in_another_order_are_no_counterpart(tmp_path: Path, plain: str) -> None:
    """A blocked image against a plain one whose order of axes its sizes do not tell."""
    x = normal((4, 4, 4, 4))
    stored = x.transpose(0, 2, 3, 1).copy() if plain == "NHWC" else x
    write_dump(tmp_path / "mine" / dump_name("Relu", "a", 1), [], [(x, "NC1HWC0")])
    write_dump(tmp_path / "golden" / dump_name("Relu", "a", 1), [], [(stored, plain)])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path)
    (row,) = rows_of(tmp_path)
    if plain != "NHWC":
        assert row["Verdict"] == "same"
        return
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "shape-differs")
    assert "The format does not match (NCHW vs NHWC)" in row["CompareFailReason"]
