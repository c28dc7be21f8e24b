"""`plumb config_check`: packs of release 26.2.0 are read and compared cell by cell with what that
release says of them; packs of ours hold what they must; bad packs and files are one line.
"""

from __future__ import annotations

import difflib
import json
import os
import pathlib
import subprocess
import zipfile

import openpyxl
import pytest
from recording import PLUMB

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "config_packs"
Rows = dict[str, list[tuple[str, ...]]]


def plumb(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60, env={**os.environ, **environment})


def sheets(path: pathlib.Path) -> Rows:
    book = openpyxl.load_workbook(path)

    def text(cell: object) -> str:
        if isinstance(cell, float):
            return f"{cell:.12g}"
        return "" if cell is None else str(cell)

    return {sheet.title: [tuple(map(text, row)) for row in sheet.iter_rows(values_only=True)]
            for sheet in book}


def pack(path: pathlib.Path, **members: object) -> pathlib.Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            text = content if isinstance(content, str) else json.dumps(content)
            archive.writestr(name.replace("__", "/"), text)
    return path


def hyperparameters(path: pathlib.Path, values: dict[str, object]) -> pathlib.Path:
    return pack(path, **{"hyperparameters__hyperparameters_static.json": values})


def compared(bench: pathlib.Path, cmp: pathlib.Path, out: pathlib.Path) -> Rows:
    done = plumb("config_check", "-c", bench, cmp, "-o", out)
    assert done.returncode == 0, done.stderr
    return sheets(out / "result.xlsx")


def test_as_the_newest_release(tmp_path: pathlib.Path) -> None:
    ours = compared(DATA / "bench.zip", DATA / "cmp.zip", tmp_path)
    theirs = sheets(DATA / "result.xlsx")
    assert list(ours) == list(theirs)
    assert ours["summary"] == theirs["summary"]
    for name in ("pip", "dataset", "weights", "hyperparameters", "random"):
        assert ours[name][0] == theirs[name][0]
        assert sorted(ours[name]) == sorted(theirs[name]), name
    # Repaired: upstream has the two sides of this sheet the wrong way round, and takes the text
    # "0" for another value than the default 0.
    assert ours["env"] == [theirs["env"][0],
                           ("NCCL_DETERMINISTIC", "NCCL_DETERMINISTIC", "False", "True", "error"),
                           ("NCCL_ALGO", "NCCL_ALGO", "ring", "None", "error")]


def test_collected_as_upstream_does(tmp_path: pathlib.Path) -> None:
    ours = tmp_path / "ours.zip"
    done = plumb("msprobe", "config_check", "-d", DATA / "train.sh", DATA / "train.yaml", "-o",
                 ours, NCCL_ALGO="ring", API_TOKEN="not to be stored")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(ours) as mine, zipfile.ZipFile(DATA / "static.zip") as theirs:
        name = "hyperparameters/hyperparameters_static.json"
        assert json.loads(mine.read(name)) == json.loads(theirs.read(name))
        assert json.loads(mine.read("env"))["NCCL_ALGO"] == "ring"
        assert b"API_TOKEN" not in mine.read("env")
        assert all("=" in line for line in mine.read("pip").decode().splitlines())
    everything = plumb("config_check", "-d", "-o", tmp_path / "all.zip", "--all-env", API_TOKEN="x")
    assert everything.returncode == 0
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert json.loads(archive.read("env"))["API_TOKEN"] == "x"
        assert "hyperparameters/hyperparameters_static.json" not in archive.namelist()


def test_packages_are_those_of_the_python_on_path(tmp_path: pathlib.Path) -> None:
    site = tmp_path / "prefix" / "lib" / "python3.11" / "site-packages"
    for name, end in (("unix", "\n"), ("windows", "\r\n")):
        (site / f"{name}-1.5.dist-info").mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.5", "", "Name: no"]
        (site / f"{name}-1.5.dist-info" / "METADATA").write_bytes(end.join(lines).encode())
    program = tmp_path / "prefix" / "bin" / "python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    done = plumb("config_check", "-d", "-o", tmp_path / "all.zip", PATH=str(program.parent),
                 VIRTUAL_ENV="")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.read("pip").decode() == "unix=1.5\nwindows=1.5\n"


@pytest.mark.parametrize("script, expected", [
    ("python3 train.py --lr=0.1 --steps 5 --fp16\n", {"lr": "0.1", "steps": "5", "fp16": True}),
    ("A=3\nB=${A}0\ntorchrun x.py --size ${B} --word '$UNKNOWN' # --no 1\n",
     {"size": "30", "word": "$UNKNOWN"}),
    ("msrun --workers 8 train.py --offset -1 --flag --same 1 --same 2 | tee --log x\n",
     {"workers": "8", "offset": "-1", "flag": True,
      "same": {"description": "duplicate_value", "values": ["1", "2"]}}),
])
def test_launch_scripts(tmp_path: pathlib.Path, script: str, expected: dict) -> None:
    (tmp_path / "run.sh").write_text(script)
    assert plumb("config_check", "-d", tmp_path / "run.sh", "-o",
                 tmp_path / "p.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        assert json.loads(archive.read("hyperparameters/hyperparameters_static.json")) == expected


def test_parameters_of_one_last_name_are_all_compared(tmp_path: pathlib.Path) -> None:
    """Two of a kind collapse into one at upstream, and a name taken twice is a KeyError there."""
    bench = hyperparameters(tmp_path / "a.zip", {"lr": "1", "model.lr": "2", "num_layers": "4",
                                                 "alone": "x", "list": [1, 2]})
    cmp = hyperparameters(tmp_path / "b.zip", {"learning-rate": "1", "model.lr": "3",
                                               "num_layer": "5", "list": [1, 2], "other": "y"})
    rows = compared(bench, cmp, tmp_path / "out")["hyperparameters"][1:]
    ratio = difflib.SequenceMatcher(None, "num_layers", "num_layer").ratio()
    file = "hyperparameters_static.json"
    assert sorted(rows) == sorted([
        (file, "Only in comparison", "other", "", "y", "", "warning"),
        (file, "alone", "Only in benchmark", "x", "", "", "warning"),
        (file, "model.lr", "model.lr", "2", "3", "pure name", "error"),
        (file, "num_layers", "num_layer", "4", "5", f"similarity:{ratio!r}", "error")])


def test_never_a_wrong_pass(tmp_path: pathlib.Path) -> None:
    place = "weights__step0__rank0__weight.json"

    def weights(name: str, **values: object) -> pathlib.Path:
        return pack(tmp_path / name, **{place: json.dumps(values)})

    one = {"max": 1, "min": 1, "mean": 1, "norm": 1}
    nan = {"max": float("nan"), "min": 1, "mean": 1, "norm": 1}
    for i, (bench, cmp, level) in enumerate((
            ({"w": nan}, {"w": nan}, "error"), ({"w": one}, {"v": one}, "warning"),
            ({"w": one}, {"w": {"max": 1}}, "error"), ({"w": one}, {"w": one}, "pass"))):
        rows = compared(weights("a.zip", **bench), weights("b.zip", **cmp), tmp_path / f"o{i}")
        assert rows["summary"][1:] == [("weights", level)], (bench, cmp)
    other = pack(tmp_path / "c.zip", env={})
    done = plumb("config_check", "-c", tmp_path / "a.zip", other, "-o", tmp_path / "o", "--fail-on",
                 "error")
    assert done.returncode == 1
    assert done.stdout.startswith("not judged: the packs have no item in common")


def test_kinds_of_devices(tmp_path: pathlib.Path) -> None:
    npu = pack(tmp_path / "npu.zip", env={"ASCEND_RT_VISIBLE_DEVICES": "0", "HCCL_ALGO": "ring",
                                          "HCCL_INTRA_ROCE_ENABLE": "1"})
    gpu = pack(tmp_path / "gpu.zip", env={"CUDA_VISIBLE_DEVICES": "0", "NCCL_ALGO": "tree"})
    assert compared(npu, gpu, tmp_path / "out")["env"][1:] == [
        ("HCCL_ALGO", "NCCL_ALGO", "ring", "tree", "error"),
        ("HCCL_INTRA_ROCE_ENABLE", "only bench has this env", "1", "", "warning")]


def test_bad_input_is_one_line(tmp_path: pathlib.Path) -> None:
    good = DATA / "bench.zip"
    (tmp_path / "empty.zip").write_bytes(b"")
    (tmp_path / "cut.zip").write_bytes(good.read_bytes()[:-40])
    data = bytearray(good.read_bytes())
    data[80] ^= 0xFF
    (tmp_path / "damaged.zip").write_bytes(data)
    pack(tmp_path / "other.zip", something="x")
    pack(tmp_path / "json.zip", env="{\"A\": ")
    (tmp_path / "nothing.sh").write_text("echo --lr 1\n")
    (tmp_path / "bad.yaml").write_text("a: [1\n")
    (tmp_path / "x.txt").write_text("")
    cases = [(("-c", good, tmp_path / name), status) for name, status in
             (("empty.zip", 5), ("cut.zip", 5), ("damaged.zip", 5), ("other.zip", 2),
              ("json.zip", 5), ("missing.zip", 3))]
    cases += [(("-d", tmp_path / "nothing.sh"), 2), (("-d", tmp_path / "bad.yaml"), 5),
              (("-d", tmp_path / "x.txt"), 2), (("-d", tmp_path / "missing.sh"), 3), ((), 2)]
    for words, status in cases:
        out = tmp_path / "out.zip"
        done = plumb("config_check", *words, *(["-o", out] if words else []))
        assert done.returncode == status, (words, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
        assert not out.exists()
    wrong = plumb("config_check", "-d", "-o", tmp_path / "pack.tar")
    assert wrong.returncode == 2 and "expected a .zip file" in wrong.stderr
