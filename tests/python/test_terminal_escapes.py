"""Names of a dump reach a terminal without anything that it acts on, on every stream."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

import plumbline

# ESC, C1 as a character, marks of the writing direction, line separators, a line of its own.
EVIL = "a\x1b[31mb\x9b2Jc\u202ed\u2066e\u200ff\u2028g\nno wrong call\rh\x07"
NAME = f"Torch.{EVIL}.0.forward"
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def write_dump(directory: Path, value: float) -> Path:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
              "Min": value, "Mean": value, "Norm": 2 * value, "requires_grad": False}
    call = {"input_args": [], "input_kwargs": {EVIL: tensor}, "output": [tensor]}
    directory.mkdir(parents=True)
    (directory / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": {NAME: call, f"Torch.only{value}{EVIL}.0.forward": call}}))
    (directory / "stack.json").write_text(json.dumps({NAME: [f"File {EVIL}, line 3, in f, x"]}))
    (directory / "construct.json").write_text(json.dumps({NAME: f"Module.{EVIL}.0.forward"}))
    return directory


def lines_of(*words: Any) -> list[str]:
    """What the program says on both streams, once nothing in it acts on a terminal."""
    done = subprocess.run([PLUMB, *words], capture_output=True, check=False, timeout=60)
    for stream in (done.stdout, done.stderr):
        text = stream.decode("utf-8", "surrogateescape")
        assert not ACTS.search(text), text
    lines = (done.stdout + done.stderr).decode("utf-8", "surrogateescape").split("\n")
    assert "no wrong call" not in lines
    return lines


@pytest.mark.parametrize("words", [
    ("--format", "csv"), ("--format", "csv", "--is_print_compare_log"), ("--json",), ("-s",),
    ("--data_mapping", "rules.yaml"), ("--rank", "0")])
def test_compare(tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text(json.dumps({f"{NAME}.output.0": f"Torch.{EVIL}"}))
    write_dump(Path("a/rank0"), 1.0)
    write_dump(Path("b/rank0"), 2.0)
    paths = ("a", "b") if "--rank" in words else ("a/rank0", "b/rank0")
    said = lines_of("compare", *paths, "-o", "out", *words)
    assert any("a_[31mb_2Jc_d_e_f_g_no wrong call_h_" in line for line in said) or "--json" in words


def test_other_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dump = write_dump(Path("run/step0/rank0"), float("nan"))
    for words in (("inspect", dump), ("overflow", "run/step0", "-o", "out"),
                  ("parse", "pk", "-f", dump / "dump.json", "-n", "Torch"),
                  ("inspect", f"run/{EVIL}"), ("compare", f"run/{EVIL}", dump), (EVIL,),
                  ("compare", f"--{EVIL}"), ("msprobe", EVIL), ("msaccucmp", EVIL),
                  ("convert", "-d", EVIL, "-out", "out"), ("parse", EVIL),
                  ("msaccucmp", "compare", f"-{EVIL}"), ("export", f"run/{EVIL}", "-o", "x"),
                  ("recover", f"run/{EVIL}"), ("check", EVIL, dump, dump),
                  ("compare", dump, dump, EVIL)):
        lines_of(*words)


def test_python_texts(tmp_path: Path) -> None:
    target, golden = write_dump(tmp_path / "a", 1.0), write_dump(tmp_path / "b", 2.0)
    result = plumbline.compare(target, golden)
    assert not ACTS.search(result.summary.replace("\n", ""))
    assert result.first_wrong_call == NAME
    with pytest.raises(FileNotFoundError) as raised:
        plumbline.compare(target, tmp_path / EVIL.replace("\n", ""))
    assert not ACTS.search(str(raised.value))


def test_cells_behind_tabs_and_line_breaks(tmp_path: Path) -> None:
    for side, value in (("a", 1.0), ("b", 2.0)):
        dump = write_dump(tmp_path / side, value) / "dump.json"
        dump.write_text(dump.read_text().replace(json.dumps(NAME)[1:-1], "\\t=1+1.0.forward"))
    subprocess.run([PLUMB, "compare", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out",
                    "--format", "csv"], capture_output=True, check=True, timeout=60)
    [table] = (tmp_path / "out").glob("*.csv")
    with table.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if "=1+1" in cell]
    assert cells and all(cell.startswith(" \t=1+1") for cell in cells)
