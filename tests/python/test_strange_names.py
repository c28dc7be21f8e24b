"""Names and paths that are no plain text: every result file stays readable by stock readers, and
comparisons that run at once do not disturb each other.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import page_data
import pytest
from recording import PLUMB

import plumbline
from plumbline import _hdf5

FORMATS = ("xlsx", "csv", "json", "jsonl", "html", "sqlite", "junit", "sarif")
# What JSON can name and other files cannot hold.
NAMES = {
    "controls": "Torch.a\x00b\x01c\x1b\x7fd\te\nf\rg.0.forward",
    "surrogates": "Torch.a\ud800b\udc80.0.forward",
    "no characters": "Torch.a\ufffe\uffff\u2028\u0085.0.forward",
    "markup": "Torch.</script><!--]]>&\"'=1+1,;.0.forward",
    "wide": "Torch.\u00e9\u4e2d\U0001f600.0.forward",
}


def write_dump(directory: Path, value: float) -> None:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
              "Min": value, "Mean": value, "Norm": 2 * value, "requires_grad": False}
    directory.mkdir(parents=True)
    (directory / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": {name: {"input_args": [], "input_kwargs": {"k\x02\udfff": tensor},
                         "output": [tensor]} for name in NAMES.values()}}))
    (directory / "stack.json").write_text(json.dumps(
        {name: [f"File {name}, line 3, in f, \n x"] for name in NAMES.values()}))


def compare(tmp_path: Path, *words: Any) -> dict[str, Path]:
    """Result files by ending, of two dumps below a directory whose name is not UTF-8."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff\x01"))
    write_dump(root / "a", 1.0)
    write_dump(root / "b", 2.0)
    done = subprocess.run([PLUMB, "compare", root / "a", root / "b", "-o", tmp_path / "out", *words,
                           *(word for name in FORMATS for word in ("--format", name))],
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return {re.sub(r"^.*?\.", "", path.name): path for path in (tmp_path / "out").iterdir()}


def test_python_takes_and_gives_names_that_are_not_utf8(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    write_dump(root / "a", 1.0)
    write_dump(root / "b", 2.0)
    result = plumbline.compare(root / "a", root / "b", root / "out", formats="csv")
    assert result.files == [str(path) for path in (root / "out").iterdir()]
    assert str(root / "out") in result.summary
    result.to_csv(root / "again.csv")
    assert (root / "again.csv").read_bytes() == Path(result.files[0]).read_bytes()
    (root / "rules.yaml").write_text("Torch.no.0.forward.input.0: Torch.none.0.forward.input.0")
    mapped = plumbline.compare(root / "a", root / "b", mappings={"data": root / "rules.yaml"})
    assert mapped.counts["paired calls"] == result.counts["paired calls"]
    with pytest.raises(FileNotFoundError, match="run\udcff/nowhere"):
        plumbline.compare(root / "nowhere", root / "b")


def test_ranks_are_compared_below_such_a_name(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    for side, value in (("a", 1.0), ("b", 2.0)):
        for rank in ("rank0", "rank1"):
            write_dump(root / side / rank, value)
    result = plumbline.compare_ranks(root / "a", root / "b", root / "out", formats="csv")
    assert len(result.ranks) == 2
    assert all(Path(path).exists() for rank in result.ranks for path in rank["files"])


def test_operator_dumps_below_such_a_name(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/run\xff"))
    root.mkdir()
    arguments = _hdf5.Arguments()
    arguments.real("eps", 5, 0.5)
    for path in (root / "a.h5", str(root / "b.h5"), os.fsencode(root / "c.h5")):
        writer = _hdf5.DumpWriter(path)
        writer.write("Add", 1, False, arguments)
        writer.commit()
        match = _hdf5.OperatorReplay(path).match("Add", arguments)
        assert match is not None and (match.operation, match.call) == ("Add", 1)
    assert {"a.h5", "b.h5", "c.h5"} <= {path.name for path in root.iterdir()}
    with pytest.raises(FileNotFoundError, match="run\udcff/none"):
        _hdf5.OperatorReplay(root / "none.h5")


@pytest.mark.parametrize("schema", ["1.2.2", "newest"])
def test_every_file_can_be_read(schema: str, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    files = compare(tmp_path, *(("--schema", "newest") if schema == "newest" else ()))
    rows = 2 * len(NAMES)
    sheet = openpyxl.load_workbook(files["xlsx"]).active
    assert sheet.max_row == rows + 1
    [table] = [path for ending, path in files.items() if ending.endswith("csv")]
    with table.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, strict=True))
    assert len(lines) == rows + 1 and {len(line) for line in lines} == {len(lines[0])}
    names = {row["call"] for row in json.loads(files["json"].read_text("utf-8"))["rows"]}
    assert names == set(NAMES.values())
    assert len([json.loads(line) for line in files["jsonl"].read_text("utf-8").splitlines()]) == (
        rows + 1)
    with sqlite3.connect(files["db"]) as database:
        tables = [name for (name,) in
                  database.execute("select name from sqlite_master where type = 'table'")]
        counts = [len(database.execute(f"select * from {name}").fetchall()) for name in tables]
    assert rows in counts
    cases = ET.parse(files["junit.xml"]).getroot().findall(".//testcase")
    assert len(cases) == len(NAMES) + 2
    assert len(json.loads(files["sarif"].read_text("utf-8"))["runs"][0]["results"]) >= 1
    [part] = page_data.read(files["html"])["parts"]
    assert {target for target, _ in page_data.call_names(part)} == names


def test_advice_and_trend_database(tmp_path: Path) -> None:
    write_dump(tmp_path / "step0" / "rank0", 1.0)
    write_dump(tmp_path / "other" / "rank0", 2.0)
    names = {name: None for name in NAMES.values()}
    for folder in ("step0", "other"):
        (tmp_path / folder / "rank0" / "construct.json").write_text(json.dumps(names))
    request = tmp_path / "compare.json"
    request.write_text(json.dumps({"npu_path": f"{tmp_path}/step0/rank0/dump.json",
                                   "bench_path": f"{tmp_path}/other/rank0/dump.json"}))
    subprocess.run([PLUMB, "compare", "-i", request, "-o", tmp_path / "out"], check=True,
                   capture_output=True, timeout=60)
    [advice] = (tmp_path / "out").glob("advisor*.txt")
    assert "Suspect Nodes" in advice.read_text("utf-8")
    shutil.rmtree(tmp_path / "other")
    subprocess.run([PLUMB, "data2db", "--db", tmp_path / "db", "--data", tmp_path], check=True,
                   capture_output=True, timeout=60)
    [path] = (tmp_path / "db").iterdir()
    with sqlite3.connect(path) as database:
        for (table,) in database.execute("select name from sqlite_master where type = 'table'"
                                         ).fetchall():
            database.execute(f"select * from {table}").fetchall()


def test_comparisons_at_once_have_files_of_their_own(tmp_path: Path) -> None:
    """Started within one second, into one directory."""
    write_dump(tmp_path / "a", 1.0)
    write_dump(tmp_path / "b", 2.0)
    processes = [subprocess.Popen([PLUMB, "compare", tmp_path / "a", tmp_path / "b", "--json",
                                   "-o", tmp_path / "out", "--format", "xlsx", "--format", "json",
                                   "--format", "sqlite", "--format", "html"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for _ in range(12)]
    named: list[str] = []
    for process in processes:
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        named += json.loads(out)["files"]
    assert len(named) == len(set(named)) and len(named) % 12 == 0
    there = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert there == sorted(Path(name).name for name in named)  # and no temporary


def test_what_a_killed_comparison_left_is_no_obstacle(tmp_path: Path) -> None:
    write_dump(tmp_path / "a", 1.0)
    write_dump(tmp_path / "b", 2.0)
    out = tmp_path / "out"
    out.mkdir()
    done = subprocess.run([PLUMB, "compare", tmp_path / "a", tmp_path / "b", "-o", out, "--json"],
                          capture_output=True, text=True, check=True, timeout=60)
    for name in json.loads(done.stdout)["files"]:
        shutil.copy(name, out / f".{Path(name).name}.1-0.tmp")
        Path(name).unlink()
    (out / f".{Path(name).stem}.tmp").touch()  # the hold on the stamp
    again = subprocess.run([PLUMB, "compare", tmp_path / "a", tmp_path / "b", "-o", out, "--json"],
                           capture_output=True, text=True, check=True, timeout=60)
    assert all(Path(name).stat().st_size > 0 for name in json.loads(again.stdout)["files"])
