"""plumb csv2tensorboard and plumbline.csv2tensorboard_by_step() on a small monitor directory."""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

import plumbline

ROWS = "vpp_stage,name,step,norm,max\n0,fc.weight,0,1.5,2\n0,fc.weight,1,2.5,nan\n"


def plumb(*words: Any) -> subprocess.CompletedProcess[str]:
    """A run of the command."""
    return subprocess.run([str(word) for word in (PLUMB, *words)], text=True, capture_output=True,
                          check=False)


@pytest.fixture
def monitored(tmp_path: Path) -> Path:
    """One rank with one csv file."""
    rank = tmp_path / "out" / "Dec03_21-34-40-rank0-3f9c1a2b"
    rank.mkdir(parents=True)
    (rank / "grad_reduced_0-1.csv").write_text(ROWS)
    return tmp_path / "out"


def test_the_command_says_what_it_wrote(monitored: Path) -> None:
    out = monitored.parent / "tb"
    done = plumb("csv2tensorboard", "--data", monitored, "-o", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (f"{out}: 1 event file, 4 scalars of 1 directory\n"
                           f"  show them: tensorboard --logdir {out}\n")
    [events] = (out / "rank0" / "grad_reduced").iterdir()
    assert re.fullmatch(r"events\.out\.tfevents\.\d+\..+\.\d+\.0", events.name)
    again = plumb("csv2tensorboard", "--data", monitored, "-o", out)
    assert again.returncode == 0
    assert "existing event files of these ranks and kinds were replaced" in again.stderr
    assert len(list((out / "rank0" / "grad_reduced").iterdir())) == 1


def test_python_writes_beside_the_ranks(monitored: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = Path(plumbline.csv2tensorboard_by_step(monitored, process_num=2))
    assert path.parent == monitored
    assert re.fullmatch(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d-csv2tensorboard_by_step", path.name)
    assert len(list(path.glob("rank0/grad_reduced/events*"))) == 1
    (monitored / "Dec03_21-34-40-rank0-3f9c1a2b" / "actv_0-0.csv").write_text(
        "vpp_stage,name,step,micro_step,norm\n0,fc.input,0,0,1\n0,fc.in")
    with pytest.warns(UserWarning, match="ends within a row"):
        plumbline.csv2tensorboard_by_step(monitored, output_dirpath=monitored / "tb")


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({"process_num": 0}, ValueError, r"process_num\(0\) is not a positive integer"),
    ({"process_num": "2"}, ValueError, r"process_num\(2\) is not a positive integer"),
    ({"data_type_list": "actv"}, ValueError, r"data_type_list\(actv\) is not a list"),
    ({"data_type_list": ["w"]}, ValueError, r"data type\(w\) is not supported"),
    ({"data_type_list": ["actv"]}, FileNotFoundError, "no csv file of actv"),
    ({"time_start": "Dec04_00-00-00"}, FileNotFoundError, "from Dec04_00-00-00 to the last"),
    ({"time_end": "now"}, ValueError, 'time_end: "now" is no time'),
])
def test_wrong_arguments(monitored: Path, arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        plumbline.csv2tensorboard_by_step(monitored, **arguments)
    assert [path.name for path in monitored.iterdir()] == ["Dec03_21-34-40-rank0-3f9c1a2b"]


@pytest.mark.parametrize(("words", "status", "message"), [
    (["--data_type", "weights"], 2, "--data_type"),
    (["--data_type", "param"], 3, "no csv file of param"),
    (["--time_start", "Dec05_00-00-00", "--time_end", "Dec04_00-00-00"], 2, "greater than"),
    (["--data", "missing"], 3, "missing: no such directory"),
])
def test_wrong_options(monitored: Path, words: list[str], status: int, message: str) -> None:
    data = [] if "--data" in words else ["--data", str(monitored)]
    done = plumb("csv2tensorboard", *data, *words)
    assert done.returncode == status and message in done.stderr, done.stderr
