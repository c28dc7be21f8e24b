"""`plumb compare --unshard`: runs of two and four gloo processes against the run on one, the layout
found without a hint.

The runs are those of parallel_llama.py, which share a small Llama (or Mixtral) in every way that
the planner knows. What they compute is the same, so nothing may be named; with a fault the layer
with the fault must be.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

HERE = Path(__file__).resolve().parent
LAYOUTS = {
    "tp2": "tensor parallel 2",
    "tp4": "tensor parallel 4",
    "sp2": "tensor parallel 2, sequence parallel 2",
    "pp2": "pipeline parallel 2",
    "pp2_global": "pipeline parallel 2",
    "ep2": "expert parallel 2",
    "ep4": "expert parallel 4",
    "cp2": "context parallel 2",
    "dp2": "data parallel 2",
    "tp2_pp2": "tensor parallel 2, pipeline parallel 2",
    "tp2_dp2": "tensor parallel 2, data parallel 2",
    "packed": "other dimensions of one batch",
}
FAULTS = ("tp2", "sp2", "pp2", "ep4", "cp2", "dp2", "tp2_dp2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recordings."""
    out = tmp_path_factory.mktemp("runs")
    names = ["single", "mixtral", *LAYOUTS, *(f"{name}-fault" for name in FAULTS), "tp2-other"]
    done = subprocess.run([sys.executable, HERE / "parallel_llama.py", out, *names], text=True,
                          capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return out


def golden_of(runs: Path, name: str) -> Path:
    return runs / ("mixtral" if name.startswith("ep") else "single") / "step0"


def unsharded(runs: Path, name: str, out: Path) -> list[str]:
    """The lines that are printed."""
    done = subprocess.run(
        [PLUMB, "compare", runs / name / "step0", golden_of(runs, name), "--unshard", "-o", out,
         "--format", "json"], text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def line_with(lines: list[str], beginning: str) -> str:
    [line] = [line.strip() for line in lines if line.strip().startswith(beginning)]
    return line


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_is_found_and_nothing_is_named(runs: Path, tmp_path: Path, name: str) -> None:
    lines = unsharded(runs, name, tmp_path)
    assert re.match("no wrong call$|not judged completely: ", lines[0]), lines
    layout = line_with(lines, "layout: ")
    assert layout.partition("golden's one: ")[2] == LAYOUTS[name]
    proven, of = re.match(r"proof: (\d+) of (\d+) parameters", line_with(lines, "proof:")).groups()
    assert proven == of == ("127" if name.startswith("ep") else "39")
    # Whether there is something that could not be judged is said in both places.
    told = any(line.strip().startswith("not judged: ") for line in lines)
    assert told == lines[0].startswith("not judged completely")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_rank_is_named(runs: Path, tmp_path: Path, name: str) -> None:
    lines = unsharded(runs, f"{name}-fault", tmp_path)
    assert lines[0].startswith("first wrong call: Tensor.__mul__."), lines
    inside = line_with(lines, "inside: ")
    assert re.match(r"inside: Module\.layers\.2\.mlp\.(experts\.\d\.)?up_proj\.", inside)


@pytest.mark.parametrize("name", ["tp2", "cp2", "ep4"])
def test_folded_statistics_are_those_of_all_parts(runs: Path, tmp_path: Path, name: str) -> None:
    """By arithmetic over the ranks' own files."""
    unsharded(runs, name, tmp_path)
    folded = json.loads((tmp_path / "unsharded/target/dump.json").read_text())["data"]
    ranks = [json.loads(path.read_text())["data"]
             for path in sorted((runs / name / "step0").glob("rank*/dump.json"))]
    call = "Module.layers.1.attention.q_proj.Linear.forward.0"
    parts = [rank[call]["output"][0] for rank in ranks]
    found = folded[call]["output"][0]
    if name == "ep4":  # all ranks do the same
        assert {key: found[key] for key in ("Max", "Min", "Mean", "Norm")} == {
            key: parts[0][key] for key in ("Max", "Min", "Mean", "Norm")}
        return
    assert found["Max"] == max(part["Max"] for part in parts)
    assert found["Min"] == min(part["Min"] for part in parts)
    assert found["Mean"] == pytest.approx(sum(part["Mean"] for part in parts) / 2, rel=1e-12)
    norm = sum(part["Norm"] ** 2 for part in parts) ** 0.5
    assert found["Norm"] == pytest.approx(norm, rel=1e-12)
    whole = json.loads((golden_of(runs, name) / "rank/dump.json").read_text())["data"]
    assert found["shape"] == whole[call]["output"][0]["shape"]


def test_other_weights_are_no_proof(runs: Path, tmp_path: Path) -> None:
    lines = unsharded(runs, "tp2-other", tmp_path)
    assert lines[0].startswith("first wrong call: ")
    assert line_with(lines, "proof: ").startswith("proof: 0 of 39 parameters")
    assert "the others differ" in line_with(lines, "proof: ")


@pytest.mark.parametrize("name, rank", [("tp2", 1), ("tp4", 2), ("pp2", 1), ("ep4", 2), ("dp2", 1)])
def test_a_missing_rank_is_told_and_nothing_is_named(runs: Path, tmp_path: Path, name: str,
                                                     rank: int) -> None:
    shutil.copytree(runs / name, tmp_path / "run")
    shutil.rmtree(tmp_path / f"run/step0/rank{rank}")
    line = refused(tmp_path / "run/step0", golden_of(runs, name), tmp_path / "out")
    told = "does not come together" if name == "dp2" else f"rank {rank} is missing"
    assert told in line


def test_an_empty_rank_is_told(runs: Path, tmp_path: Path) -> None:
    place = edited(runs, "pp2", tmp_path, lambda data: data.clear())
    assert "is on no rank" in refused(place, golden_of(runs, "pp2"), tmp_path / "out")


def refused(target: Path, golden: Path, out: Path) -> str:
    """The line on standard error; there is no answer."""
    done = subprocess.run([PLUMB, "compare", target, golden, "--unshard", "-o", out], text=True,
                          capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def edited(runs: Path, name: str, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a run whose rank 1 recorded something else."""
    shutil.copytree(runs / name, tmp_path / "run")
    path = tmp_path / "run/step0/rank1/dump.json"
    content = json.loads(path.read_text())
    change(content["data"])
    path.write_text(json.dumps(content))
    return tmp_path / "run/step0"


def spoil_epsilon(data: dict[str, Any]) -> None:
    data["Tensor.__add__.0.forward"]["input_args"][1]["value"] = 1e-2


def spoil_type(data: dict[str, Any]) -> None:
    data["Tensor.__add__.0.forward"]["output"][0]["dtype"] = "torch.bfloat16"


def lose_loss(data: dict[str, Any]) -> None:
    loss = data["Functional.cross_entropy.0.forward"]["output"][0]
    loss |= {"Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}


def lose_weight(data: dict[str, Any]) -> None:
    weight = data["Module.norm.Norm.forward.0"]["parameters"]["weight"]
    weight |= {"Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}


@pytest.mark.parametrize("change", [spoil_epsilon, spoil_type, lose_loss, lose_weight])
def test_what_one_rank_alone_has_otherwise_is_named(
    runs: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    place = edited(runs, "tp2", tmp_path, change)
    done = subprocess.run(
        [PLUMB, "compare", place, golden_of(runs, "tp2"), "--unshard", "-o", tmp_path / "out",
         "--fail-on", "broken,unmatched,suspicious"], text=True, capture_output=True, timeout=60,
        check=False)
    assert done.returncode == 1, done.stdout


def test_a_call_that_one_rank_lacks_is_not_judged(runs: Path, tmp_path: Path) -> None:
    place = edited(runs, "tp2", tmp_path, lambda data: data.pop("Functional.linear.5.forward"))
    done = subprocess.run(
        [PLUMB, "compare", place, golden_of(runs, "tp2"), "--unshard", "-o", tmp_path / "out"],
        text=True, capture_output=True, timeout=60, check=False)
    assert not done.stdout.startswith("no wrong call")
    assert "calls that only some of their ranks made: Functional.linear." in done.stdout


def test_a_second_time_has_recordings_of_its_own(runs: Path, tmp_path: Path) -> None:
    unsharded(runs, "pp2", tmp_path)
    lines = unsharded(runs, "pp2", tmp_path)
    assert f"{tmp_path}/unsharded_2 " in line_with(lines, "recordings: ")
    assert (tmp_path / "unsharded/golden/dump.json").exists()


@pytest.mark.parametrize("words, told", [
    (["{tp2}", "{tp4}"], "{tp4}: holds 4 ranks (expected the run on one rank, to which those of "
                         "{tp2} are brought together)"),
    (["{tp2}", "{single}", "--rank", "0"], "--unshard: is about all ranks of one step"),
    (["{tp2}/..", "{single}"], "{tp2}/..: holds steps (expected one of them"),
    (["{tp2}", "{single}/nothing"], "{single}/nothing: "),
])
def test_what_cannot_be_brought_together_is_told(runs: Path, tmp_path: Path, words: list[str],
                                                told: str) -> None:
    places = {name: f"{runs}/{name}/step0" for name in ("tp2", "tp4", "single")}
    done = subprocess.run([PLUMB, "compare", "--unshard", "-o", tmp_path / "out",
                           *(word.format(**places) for word in words)], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode in (2, 3) and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("plumb compare: " + told.format(**places)), line
