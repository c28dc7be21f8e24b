"""`plumbline.compare()` on arrays and checkpoints: the answer of the program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recording import PLUMB

import plumbline


def program(*words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PLUMB), *map(str, words)], text=True, capture_output=True,
                          check=False, timeout=60)


def save(path: Path, value: float, **more: Any) -> Path:
    torch.save({"a": torch.ones(4), "b": torch.full((2, 3), value), **more}, path)
    return path


def test_checkpoints_give_the_answer_of_the_program(tmp_path: Path) -> None:
    a, b = save(tmp_path / "a.pt", 1, lr=0.1, x=b""), save(tmp_path / "b.pt", 2, lr=0.2)
    result = plumbline.compare(a, b, tmp_path / "out")
    done = program("compare", a, b, "-o", tmp_path / "other")
    assert done.stdout.startswith(result.summary) and done.returncode == result.exit_code == 1
    assert isinstance(result, plumbline.CheckpointResult) and not result.ok
    assert result.answer.startswith("differs: 1 of 2 parameters, most b ")
    assert [(row["name"], row["verdict"]) for row in result.rows] == [("a", "same"),
                                                                      ("b", "broken")]
    assert result.differing_values == {"lr": [0.1, 0.2]}
    assert result.counts["broken"] == 1 and result.counts["other values in target"] == 1
    assert result.complete and result.first_wrong_call is None and result.mode == "checkpoint"
    assert result.files == [str(tmp_path / "out" / "ckpt_similarity.json")]
    assert Path(result.files[0]).read_text() == (
        tmp_path / "other" / "ckpt_similarity.json").read_text()
    assert plumbline.compare(a, b, fail_on="unmatched").ok
    same = plumbline.compare(a, a)
    assert same.ok and same.files == [] and same.answer.startswith("no difference: 2 parameters")


def test_arrays_give_the_answer_of_the_program(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6.0))
    np.save(tmp_path / "b.npy", np.arange(6.0)[::-1])
    result = plumbline.compare(tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "out")
    done = program("compare", tmp_path / "a.npy", tmp_path / "b.npy")
    assert done.stdout == result.summary and result.exit_code == done.returncode == 1
    assert result.files == [] and [row["verdict"] for row in result.rows] == ["broken"]


def test_what_checkpoints_do_not_have_is_refused(tmp_path: Path) -> None:
    a = save(tmp_path / "a.pt", 1)
    result = plumbline.compare(a, a)
    result.to_json(tmp_path / "a.json")
    assert list(json.loads((tmp_path / "a.json").read_text())["parameters"]) == ["a", "b"]
    with pytest.raises(ValueError, match="to_xlsx: not of checkpoints"):
        result.to_xlsx(tmp_path / "a.xlsx")
    with pytest.raises(ValueError, match="columns: not of checkpoints"):
        _ = result.columns
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.pt"]


def test_one_checkpoint_is_named_as_what_it_is(tmp_path: Path) -> None:
    a = save(tmp_path / "a.pt", 1)
    text = f"{a}: an array or a checkpoint by its name (expected a dump.json or debug.json)"
    (tmp_path / "run").mkdir()
    with pytest.raises(ValueError) as refused:
        plumbline.compare(a, tmp_path / "run")
    assert str(refused.value).startswith(text)
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{name: '*', metric: max_diff, limit: 1}]")
    done = program("check", rules, a, a)
    assert done.returncode == 2 and text in done.stderr
    with pytest.raises(FileNotFoundError, match=r"none\.pt: no such file"):
        plumbline.compare(a, tmp_path / "none.pt")
