"""`plumb compare` on what checkpoints hold beside their tensors: numbers, texts, truth values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recording import PLUMB


def compare(*words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PLUMB), "compare", *map(str, words)], text=True,
                          capture_output=True, check=False, timeout=60)


def training(step: int = 3, lr: float = 1e-3, **more: Any) -> dict[str, Any]:
    return {"model": {"w": torch.ones(4)}, "step": step, "name": "run", "done": False,
            "opt": {"param_groups": [{"lr": lr, "betas": (0.9, 0.99), "dtype": torch.float32}]},
            **more}


@pytest.mark.parametrize("is_zip", [True, False])
def test_plain_values_are_compared(tmp_path: Path, is_zip: bool) -> None:
    a, b = tmp_path / "a.pt", tmp_path / "b.pt"
    torch.save(training(), a, _use_new_zipfile_serialization=is_zip)
    torch.save(training(4, 1e-2), b, _use_new_zipfile_serialization=is_zip)
    done = compare(a, b, "-o", tmp_path / "o")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:3] == [
        "differs: opt.param_groups.0.lr is 0.001 (golden 0.01); 1 parameter (1 equal); "
        "2 of 7 plain values differ",
        "  value differs: opt.param_groups.0.lr: 0.001 (golden 0.01)",
        "  value differs: step: 3 (golden 4)"]
    assert compare(a, b, "-o", tmp_path / "o", "--fail-on", "broken,unmatched").returncode == 0
    facts = json.loads(compare(a, b, "-o", tmp_path / "o", "--json").stdout)
    assert facts["differing values"] == {"opt.param_groups.0.lr": [0.001, 0.01], "step": [3, 4]}
    assert not facts["good"] and facts["counts"]["plain values"] == 7
    assert facts["counts"]["differing values"] == 2 and list(facts["parameters"]) == ["model.w"]
    same = compare(a, a, "-o", tmp_path / "o")
    assert same.returncode == 0
    assert same.stdout.startswith("no difference: 1 parameter (1 equal); 7 plain values equal\n")


def test_every_kind_of_plain_value(tmp_path: Path) -> None:
    values = [1, -1, 2**40, 2**70, True, None, "text", 0.1, float("inf"), float("-inf"), -0.5,
              torch.float16, "x" * 300, ""]
    pairs = {f"{i} {k}": (a, b) for i, a in enumerate(values) for k, b in enumerate(values)}
    for side in (0, 1):
        torch.save({"w": torch.ones(2), **{key: pair[side] for key, pair in pairs.items()}},
                   tmp_path / f"{side}.pt")
    done = compare(tmp_path / "0.pt", tmp_path / "1.pt", "-o", tmp_path / "o", "--json")
    differing = json.loads(done.stdout)["differing values"]
    assert set(differing) == {key for key, (a, b) in pairs.items() if a != b}
    shown = {2**70: "0x400000000000000000", torch.float16: "torch.float16",
             float("inf"): "inf", float("-inf"): "-inf"}
    for key, sides in differing.items():
        assert sides == [shown.get(value, value) for value in pairs[key]]


def test_what_is_not_compared_is_counted(tmp_path: Path) -> None:
    a, b = tmp_path / "a.pt", tmp_path / "b.pt"
    torch.save(training(raw=b"1", scalar=np.float64(1.5), extra=1), a)
    torch.save(training(raw=b"2", scalar=np.float64(2.5)), b)
    done = compare(a, b, "-o", tmp_path / "o")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == (
        "no difference: 1 parameter (1 equal); 7 plain values equal, 1 plain value only in the "
        "target not compared, 2 other values not compared")


def test_sets_have_no_order(tmp_path: Path) -> None:
    """Texts of a set come in another order in every process."""
    code = ("import sys, torch\n"
            "words = {f'word{i}' for i in range(20)}\n"
            "torch.save({'w': torch.ones(2), 's': words, 'f': frozenset(words)}, sys.argv[1])")
    for name, seed in (("a.pt", "1"), ("b.pt", "2")):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed})
    done = compare(tmp_path / "a.pt", tmp_path / "b.pt", "-o", tmp_path / "o")
    assert done.returncode == 0 and "40 plain values equal" in done.stdout, done
