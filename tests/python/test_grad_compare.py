"""plumb grad-compare and plumbline.GradComparator on directories of gradient probes."""

from __future__ import annotations

import csv
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import PLUMB, config, run

from plumbline import GradComparator

Arrays = dict[str, Any]


def probe(directory: Path, steps: dict[int, Arrays], header: str = "param_name") -> Path:
    """The files of one rank, as upstream writes them."""
    for step, arrays in steps.items():
        folder = directory / f"step{step}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        with (directory / f"grad_summary_{step}.csv").open("w", encoding="utf-8-sig",
                                                           newline="") as file:
            csv.writer(file).writerows([[header, "max"], *[[name, 1.0] for name in arrays]])
    return directory


def compare(*words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "grad-compare", *map(str, words)], text=True,
                          capture_output=True, check=False, timeout=120)


def table(path: Path) -> list[list[str]]:
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\n") == data.count(b"\r\n")
    return list(csv.reader(data.decode("utf-8-sig").splitlines()))


ONES = np.ones((10, 10), bool)
HALF = np.arange(100).reshape(10, 10) % 2 == 0


def test_similarities(tmp_path: Path) -> None:
    """Equal, inverted, half inverted, weighted by elements; steps in order of their numbers."""
    same = {"big": ONES, "small": np.array([True])}
    a = probe(tmp_path / "a", {step: same for step in (0, 2, 10)})
    b = probe(tmp_path / "b", {0: same, 2: {"big": ~ONES, "small": np.array([True])},
                               10: {"big": HALF, "small": np.array([False])}}, "Param_name")
    done = compare("-tp", a, "-gp", b, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        "first suspect: big at step 2: 0 % of its signs agree, more than 0.03 below step 0",
        "  2 suspect parameters in all"]
    assert table(tmp_path / "out/similarities.csv") == [
        ["step", "0", "2", "10"], ["big", "1.0", "0.0", "0.5"], ["small", "1.0", "1.0", "0.0"],
        ["summary", "1.0", repr(1 / 101), repr(50 / 101)]]
    assert table(tmp_path / "out/first_suspect.csv") == [
        ["parameter", "step", "value", "rule"],
        ["big", "2", "0.0", "more than 0.03 below step 0"],
        ["small", "10", "0.0", "more than 0.03 below step 2"]]
    pictures = sorted(one.name for one in (tmp_path / "out/similarities_picture").iterdir())
    assert pictures == [f"{name}_similarities.png" for name in ("big", "small", "summary")]
    page = (tmp_path / "out/grad_compare.html").read_text()
    assert '"remark": "step 2: 0, more than 0.03 below step 0"' in page
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+|http-equiv", "", page)


def test_first_step_and_small_changes(tmp_path: Path) -> None:
    rows = {0: 97, 1: 94, 2: 91, 3: 96, 4: 92}  # percent that agree
    b = probe(tmp_path / "b", {step: {"w": np.ones(100, bool)} for step in rows})
    steps = {step: {"w": np.arange(100) < share} for step, share in rows.items()}
    a = probe(tmp_path / "a", steps)
    assert "first suspect: w at step 4: 92 %" in compare("-tp", a, "-gp", b, "-o",
                                                         tmp_path / "out").stdout
    del steps[0]
    a = probe(tmp_path / "c", steps)
    done = compare("-tp", a, "-gp", b, "-o", tmp_path / "out", "--plot", "svg", "--fail-on",
                   "suspect")
    assert "w at step 1: 94 % of its signs agree, below 0.97 at the first step" in done.stdout
    assert "1 step that the other side has not, from step0 on" in done.stderr
    assert done.returncode == 1 and (
        tmp_path / "out/similarities_picture/w_similarities.svg").exists()


def test_missing_and_empty_parameters(tmp_path: Path) -> None:
    full: Arrays = {"a": ONES, "b": ONES, "empty": np.ones((0, 3), bool)}
    a = probe(tmp_path / "a", {0: full, 1: full})
    b = probe(tmp_path / "b", {0: full, 1: {"a": ONES, "empty": full["empty"], "new": ONES}})
    done = compare("-tp", a, "-gp", b, "-o", tmp_path / "out", "--plot", "none")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        "not certain: no suspect in what both sides have; not compared: 2 gradients")
    assert "2 gradients not compared" in done.stdout
    assert "b: no signs on the side of golden in 1 step, first in step 1" in done.stderr
    assert "new: no signs on the side of target in 1 step, first in step 1" in done.stderr
    assert table(tmp_path / "out/similarities.csv")[1:] == [
        ["a", "1.0", "1.0"], ["b", "1.0", ""], ["empty", "0", "0"], ["new", "", ""],
        ["summary", "1.0", "1.0"]]
    assert not (tmp_path / "out/similarities_picture").exists()
    # What could not be compared does not pass.
    done = compare("-tp", a, "-gp", b, "-o", tmp_path / "out", "--fail-on", "suspect")
    assert done.returncode == 1


def test_nan_of_a_gradient_is_said(tmp_path: Path) -> None:
    both: Arrays = {"v": ONES, "w": ONES}
    a, b = (probe(tmp_path / side, {0: both, 1: both}) for side in "ab")
    words = ("-tp", a, "-gp", b, "-o", tmp_path / "out", "--plot", "none", "--fail-on", "suspect")
    clean = compare(*words)
    assert (clean.returncode, clean.stdout.split(":")[0]) == (0, "no suspect")
    (a / "grad_summary_1.csv").write_text("param_name,max,min,norm\nv,1,1,1\nw,1,1,nan\n")
    done = compare(*words)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        "first NaN or infinity of 1 gradient: w at step 1, in target",
        "  no suspect: signs agree in every step as the rules ask"]
    assert '"state": "bad"' in (tmp_path / "out/grad_compare.html").read_text()
    # A suspect of an earlier step comes first.
    probe(b, {0: {"v": ~ONES, "w": ONES}})
    lines = compare(*words).stdout.splitlines()
    assert lines[0].startswith("first suspect: v at step 0")
    assert lines[1].startswith("  first NaN or infinity of 1 gradient: w at step 1")
    # A step that one side alone has.
    probe(b, {0: both, 2: both})
    probe(a, {1: both})
    assert compare(*words).stdout.startswith(
        "not certain: no suspect in what both sides have; not compared: 1 step\n")


def test_errors(tmp_path: Path) -> None:
    a = probe(tmp_path / "a", {0: {"w": ONES}})
    integers = probe(tmp_path / "b", {0: {"w": ONES.astype(np.int32)}})
    other = probe(tmp_path / "c", {0: {"w": ONES[:5]}})
    later = probe(tmp_path / "d", {7: {"w": ONES}})
    cut = probe(tmp_path / "e", {0: {"w": ONES}})
    (cut / "step0/w.npy").write_bytes((cut / "step0/w.npy").read_bytes()[:-1])
    bare = probe(tmp_path / "f", {0: {"w": ONES}})
    (bare / "grad_summary_0.csv").unlink()
    for golden, status, text, error in [
            (integers, 2, "w.npy: its elements are int32 (expected bool", TypeError),
            (other, 4, "w, step 0: shapes differ, [10, 10] and [5, 10]", RuntimeError),
            (later, 3, "no directory", RuntimeError),
            (bare, 3, "no grad_summary_{step}.csv in both", RuntimeError),
            (cut, 5, "the data ends early", RuntimeError),
            (tmp_path / "none", 3, "none", FileNotFoundError)]:
        done = compare("-tp", a, "-gp", golden, "-o", tmp_path / "out")
        assert done.returncode == status and text in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
        with pytest.raises(error):
            GradComparator.compare(str(a), str(golden), str(tmp_path / "out"))
    with pytest.raises(RuntimeError, match=r"no directory rank\{R\}"):
        GradComparator.compare_distributed(str(a), str(a), str(tmp_path / "out"))
    with pytest.raises(ValueError, match="plot is 'jpg'"):
        GradComparator.compare(str(a), str(a), str(tmp_path / "out"), plot="jpg")


def test_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (0, 1, 10):
        probe(tmp_path / f"a/rank{rank}", {0: {"w": ONES}, 1: {"w": ONES}})
        probe(tmp_path / f"b/rank{rank}", {0: {"w": ONES}, 1: {"w": HALF if rank else ONES}})
    probe(tmp_path / "a/rank2", {0: {"w": ONES}})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = GradComparator.compare_distributed(str(tmp_path / "a"), str(tmp_path / "b"),
                                                  str(tmp_path / "out"), plot="none")
    assert [str(one.message).split(": ", 1)[1] for one in caught] == [
        "1 rank that the other side has not, from rank2 on"]
    assert text == capsys.readouterr().out
    assert text.startswith("first suspect: w of rank 1 at step 1: 50 % of its signs agree, ")
    assert table(tmp_path / "out/first_suspect.csv")[1:] == [
        ["w", "1", "0.5", "more than 0.03 below step 0", rank] for rank in ("1", "10")]
    for rank in (0, 1, 10):
        assert len(table(tmp_path / f"out/rank{rank}/similarities.csv")) == 3


TWICE = """
import sys, torch
from plumbline.debugger import DebuggerBase
from plumbline.pytorch import PrecisionDebugger
for path in sys.argv[1:]:
    torch.manual_seed(0)
    net = torch.nn.Module()
    for name in ("a/b", "a_b", "\\u00e9"):  # names that are no names of files
        net.register_parameter(name, torch.nn.Parameter(torch.randn(3, 11)))
    debugger = PrecisionDebugger(path)
    debugger.monitor(net)
    for parameter in net.parameters():
        parameter.grad = torch.randn(3, 11)
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    debugger.stop()
    debugger._close()
    DebuggerBase._instance = None
"""


def test_packed_signs_and_odd_names(tmp_path: Path) -> None:
    """Packed against packed, packed against npy: the same."""
    paths = []
    for name, packed in (("plain", False), ("packed", True)):
        (tmp_path / name).mkdir()
        paths.append(config(tmp_path / name, task="grad_probe", packed=packed))
    run(TWICE, *paths)
    plain, packed = (tmp_path / name / "out" for name in ("plain", "packed"))
    for target, golden in ((plain, packed), (packed, plain), (packed, packed)):
        done = compare("-tp", target, "-gp", golden, "-o", tmp_path / "diff", "--plot", "svg",
                       "--fail-on", "suspect")
        assert done.returncode == 0, done.stdout + done.stderr
        rows = table(tmp_path / "diff/rank0/similarities.csv")
        assert rows[1:] == [["a/b", "1.0"], ["a_b", "1.0"], ["\u00e9", "1.0"], ["summary", "1.0"]]
    done = subprocess.run([PLUMB, "grad-unpack", packed], text=True, capture_output=True,
                          check=True)
    assert done.stdout == f"{packed}: 3 files of 1 step\n"
    for one in (plain / "rank0/step0").iterdir():
        assert (packed / "rank0/step0" / one.name).read_bytes() == one.read_bytes()
    data = (packed / "rank0/step0/signs.plumb").read_bytes()
    bits = np.unpackbits(np.frombuffer(data[-5:], np.uint8), count=33, bitorder="little")
    stored = sorted((plain / "rank0/step0").iterdir())
    assert any((np.load(one).ravel() == bits).all() for one in stored) and len(stored) == 3
