"""`plumb compare` on dumps of torchair: answers, the report against NumPy, and damaged input."""

from __future__ import annotations

import csv
import math
import pathlib
import subprocess

import numpy as np
import pytest
from recording import PLUMB
from torchair_dumps import CULPRIT, ge_bytes, run, write_fx, write_ge

METRICS = ["cosine_similarity", "max_relative_error", "mean_relative_error", "max_absolute_error",
           "mean_absolute_error", "kl_divergence", "relative_euclidean_distance"]
SIDE = ["data_path", "op_type", "dtype", "shape", "max_value", "min_value", "mean_value"]
COLUMNS = ["token_id", "data_id", *(f"golden_{name}" for name in SIDE),
           *(f"my_{name}" for name in SIDE), *METRICS, "cmp_fail_reason", "verdict", "reason"]


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60)


def report(directory: pathlib.Path, name: str = "msprobe_cmp_report_*.csv") -> list[dict[str, str]]:
    [path] = directory.glob(name)
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
        assert reader.fieldnames == COLUMNS
    return rows


def expected(golden: np.ndarray, mine: np.ndarray) -> list[float]:
    """The formulas of the chapter in float64."""
    g, m = golden.astype("f4").astype("f8").ravel(), mine.astype("f4").astype("f8").ravel()
    counts = abs(g) > np.finfo("f4").eps
    absolute = np.where(counts, abs(m - g), 0)
    relative = np.where(counts, abs(m / np.where(counts, g, 1) - 1), 0)
    p, q = np.exp(g - g.max()), np.exp(m - m.max())
    p, q = p / p.sum(), q / q.sum()
    return [float(g @ m / np.linalg.norm(g) / np.linalg.norm(m)), relative.max(), relative.mean(),
            absolute.max(), absolute.mean(), max(float((p * np.log(p / q)).sum()), 0),
            float(np.linalg.norm(m - g) / np.linalg.norm(g))]


def place_of(root: pathlib.Path, token: int = 0) -> pathlib.Path:
    return root / "20240101000000/0/graph_1_0/1" / str(token)


def only(root: pathlib.Path, pattern: str) -> pathlib.Path:
    [path] = root.glob(pattern)
    return path


def test_compiled_against_uncompiled(tmp_path: pathlib.Path) -> None:
    target, golden = write_ge(tmp_path / "t", True), write_fx(tmp_path / "g")
    done = plumb("msprobe", "compare", "-m", "torchair", "-tp", target, "-gp", golden, "-o",
                 tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"first wrong call: {CULPRIT}\n")
    assert "operators that the compiler added: 2" in done.stdout
    rows = report(tmp_path / "out")
    # 7 inputs, 4 outputs and the cast, of two tokens, in the order of the run.
    assert len(rows) == 24 and [row["token_id"] for row in rows] == ["0"] * 12 + ["1"] * 12
    assert [row["data_id"] for row in rows] == [str(i) for i in range(24)]
    row = next(row for row in rows if "MatMulV2" in row["my_data_path"]
               and row["my_data_path"].endswith(",outputs,0"))
    good, bad = run(False)[CULPRIT][1][0], run(True)[CULPRIT][1][0]
    for name, value in zip(METRICS, expected(good, bad), strict=True):
        assert math.isclose(float(row[name]), value, rel_tol=1e-6, abs_tol=1e-9), name
    assert float(row["my_max_value"]) == bad.max() and float(row["golden_min_value"]) == good.min()
    assert math.isclose(float(row["my_mean_value"]), bad.mean(), rel_tol=1e-5)
    assert (row["my_dtype"], row["my_shape"]) == ("torch.float32", "[4, 4]")
    assert row["golden_data_path"].endswith("mm-aten.mm.default.OUTPUT.0.202401010000000.npy")
    assert (row["verdict"], row["reason"], row["cmp_fail_reason"]) == ("broken",
                                                                       "exceeds-rounding", "")
    assert rows[11]["my_dtype"] == "torch.float16" and rows[11]["verdict"] == "within noise"


@pytest.mark.parametrize("mode", [[], ["-m", "torchair"]])
def test_equal_runs_are_found_out_by_themselves(tmp_path: pathlib.Path, mode: list[str]) -> None:
    target, golden = write_ge(tmp_path / "t", False), write_fx(tmp_path / "g")
    done = plumb("compare", *mode, target, golden, "-o", tmp_path / "out", "--fail-on", "any")
    assert done.returncode == 0 and done.stdout.startswith("no wrong call\n"), done.stdout


@pytest.mark.parametrize("faulty", [False, True])
def test_fused_against_unfused(tmp_path: pathlib.Path, faulty: bool) -> None:
    target = write_ge(tmp_path / "t", faulty, fused=True)
    golden = write_ge(tmp_path / "g", False)
    done = plumb("compare", target, golden, "-o", tmp_path / "out", "--fail-on", "broken")
    assert done.returncode == int(faulty), done.stdout
    first = "first wrong call: MatMul_1Relu_2" if faulty else "no wrong call"
    assert done.stdout.startswith(first + "\n")
    rows = [row for row in report(tmp_path / "out") if "MatMul_1Relu_2" in row["my_data_path"]]
    names = [row["golden_data_path"].rsplit("/", 1)[1] for row in rows[:3]]
    assert [name.split(".")[0] + name[name.index(","):] for name in names] == [
        "MatMulV2,inputs,0", "MatMulV2,inputs,1", "Relu,outputs,0"]


def test_ranks(tmp_path: pathlib.Path) -> None:
    for rank in (0, 1):
        write_ge(tmp_path / "t", rank == 1, rank=rank)
        write_fx(tmp_path / "g", rank=rank)
    write_fx(tmp_path / "g", rank=2)
    done = plumb("compare", tmp_path / "t", tmp_path / "g", "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "rank 0\nno wrong call\n" in done.stdout
    assert f"rank 1\nfirst wrong call: {CULPRIT}\n" in done.stdout
    assert "rank 2\nnot judged" in done.stdout
    assert len(report(tmp_path / "out", "msprobe_cmp_report_rank0_*.csv")) == 24
    one = plumb("compare", tmp_path / "t", tmp_path / "g", "-o", tmp_path / "one", "--rank", 0,
                "--fail-on", "any")
    assert one.returncode == 0 and "rank 1" not in one.stdout
    assert plumb("compare", tmp_path / "t", tmp_path / "g", "--rank", 7).returncode == 3


def test_what_is_missing_or_damaged_is_no_pass(tmp_path: pathlib.Path) -> None:
    target, golden = write_ge(tmp_path / "t", False), write_fx(tmp_path / "g")
    cut = only(place_of(target), "MatMulV2.*")
    cut.write_bytes(cut.read_bytes()[:-4])
    only(place_of(target), "Relu.*").write_bytes(b"")
    for path in golden.glob("1/gm_1/add-*"):
        path.unlink()
    only(golden, "2/gm_1/mul-*.OUTPUT.*").write_bytes(b"\x93NUMPY")
    (place_of(target) / "notes").write_text("another name")
    done = plumb("compare", target, golden, "-o", tmp_path / "out", "--fail-on", "unmatched")
    assert done.returncode == 1
    assert done.stdout.startswith("not judged completely")
    assert "without counterpart: 1\nunreadable files: 3\nfiles left out: 1\n" in done.stdout
    reasons = {(row["token_id"], row["my_op_type"]): (row["reason"], row["cmp_fail_reason"])
               for row in report(tmp_path / "out")}
    assert reasons["0", "Add"] == ("only-target", "golden data is missing.")
    assert "the file is cut" in reasons["0", "MatMulV2"][1]
    assert reasons["0", "Relu"][0] == reasons["1", "Mul"][0] == "unreadable"


def test_a_token_of_one_side(tmp_path: pathlib.Path) -> None:
    target, golden = write_ge(tmp_path / "t", False, tokens=1), write_fx(tmp_path / "g")
    done = plumb("compare", target, golden, "-o", tmp_path / "out", "--fail-on", "unmatched")
    assert done.returncode == 1 and done.stdout.startswith("not judged completely")
    assert report(tmp_path / "out")[-1]["reason"] == "only-golden"


@pytest.mark.parametrize(("golden", "mine", "verdict", "reason", "failure"), [
    ([1, math.nan], [1, 2], "broken", "nonfinite-position", "golden_data includes NAN or inf."),
    ([1, 2], [1, math.inf], "broken", "nonfinite-position", "my_data includes NAN or inf."),
    ([0, 0], [0, 0], "not comparable", "zero-both", ""),
    ([], [], "not comparable", "empty", ""),
    ([1, 2, 3], [1, 2], "not comparable", "shape-differs", "data shape doesn't match."),
    (np.array([1, 2], "i1"), [1, 2], "not comparable", "dtype-differs",
     "one side is quantised (int8)."),
])
def test_values_that_prove_nothing(tmp_path: pathlib.Path, golden: list[float], mine: list[float],
                                   verdict: str, reason: str, failure: str) -> None:
    target, fx = write_ge(tmp_path / "t", False, tokens=1), write_fx(tmp_path / "g", tokens=1)
    result = golden if isinstance(golden, np.ndarray) else np.array(golden, "f4")
    np.save(only(fx, "1/gm_1/mul-*.OUTPUT.*"), result)
    only(place_of(target), "Mul.*").write_bytes(ge_bytes([], [np.array(mine, "f4")]))
    done = plumb("compare", target, fx, "-o", tmp_path / "out", "--fail-on", "any")
    row = next(row for row in report(tmp_path / "out") if "/Mul.Mul.x_3" in row["my_data_path"])
    assert (row["verdict"], row["reason"], row["cmp_fail_reason"]) == (verdict, reason, failure)
    assert (row["cosine_similarity"] == "") == ((failure != "" and "int8" not in failure)
                                                or reason == "empty")
    unfit = reason in ("shape-differs", "dtype-differs")
    assert done.returncode == int(verdict == "broken" or unfit)
    assert done.stdout.startswith("not judged completely") == unfit


def test_bad_input_is_one_line(tmp_path: pathlib.Path) -> None:
    target, golden = write_ge(tmp_path / "t", False), write_fx(tmp_path / "g")
    text = only(target, "*.txt").read_text()
    (tmp_path / "empty").mkdir()
    cases = [(tmp_path / "missing", golden, 3), (tmp_path / "empty", golden, 3),
             (target, tmp_path / "empty", 3), (target, tmp_path / "missing", 3)]
    for name, content in (("cut", text[:200]), ("closed", "}\n"), ("none", ""), ("other", "a\n")):
        bad = write_ge(tmp_path / name, False)
        only(bad, "*.txt").write_text(content)
        cases.append((bad, golden, 5))
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/dynamo_original_graph_1.txt").write_text(text)
    cases.append((tmp_path / "alone", golden, 3))
    for mine, theirs, status in cases:
        done = plumb("compare", "-m", "torchair", mine, theirs, "-o", tmp_path / "out")
        assert done.returncode == status, (mine, done.stderr)
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()
    assert plumb("compare", target, golden, "--rank", 0).returncode == 2
    assert plumb("compare", target, golden, "--json").returncode == 2
