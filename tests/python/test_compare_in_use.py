"""The example that compares from Python, and what `plumb compare` says to dumps of searches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rank_dumps import fine, write_step
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("given", [True, False])
def test_example_writes_only_where_it_may(tmp_path: Path, given: bool) -> None:
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    here, output = tmp_path / "here", tmp_path / "tables"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, ROOT / "examples/compare_from_python.py", step, step,
         *([output] if given else [])],
        cwd=here, text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert list(here.iterdir()) == []
    assert "written: ['" in done.stdout
    assert output.is_dir() == given


@pytest.mark.parametrize(("task", "advice"), [
    ("overflow_check", "plumb overflow"), ("nan_check", "plumb overflow"),
    ("diff_check", "plumb inspect")])
def test_dumps_of_searches_say_what_to_do(tmp_path: Path, task: str, advice: str) -> None:
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    path = step / "rank0" / "dump.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task": task}))
    done = subprocess.run([str(PLUMB), "compare", step, step, "-o", tmp_path / "out"], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"plumb compare: {path}: was recorded with task {task}")
    assert f"`{advice} {step / 'rank0'}`" in line and "task statistics" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [
    ["--fail-on", "any"], ["--fail-on", "broken,unmatched", "--fail-on", "suspicious"],
    ["--format", "json"], ["--format", "csv,json"], ["--rank", "0"], ["--rank", "0,3"]])
def test_options_with_lists_may_stand_before_the_paths(tmp_path: Path, words: list[str]) -> None:
    step = write_step(tmp_path / "step0", {f"rank{rank}": [fine(0)] for rank in (0, 3)})
    answers = []
    for order in ([*words, step, step], [step, step, *words]):
        done = subprocess.run([str(PLUMB), "compare", "-o", tmp_path / "out", *order], text=True,
                              capture_output=True, check=False, timeout=60, cwd=tmp_path)
        assert done.returncode == 0 and done.stderr == "", done
        answers.append(done.stdout.splitlines()[0])
    assert answers[0] == answers[1] and answers[0].startswith("no wrong call")


def test_an_empty_path_is_named(tmp_path: Path) -> None:
    for words, side in ((["", "b"], "TARGET"), (["a", ""], "GOLDEN"), (["-gp", "b"], "TARGET")):
        done = subprocess.run([str(PLUMB), "compare", *words], text=True, capture_output=True,
                              check=False, timeout=60, cwd=tmp_path)
        assert done.returncode == 2 and f"{side} (-" in done.stderr, done
        assert list(tmp_path.iterdir()) == []
