"""plumb code_mapping on a graph and a dump that MindSpore itself has just written."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

if importlib.util.find_spec("mindspore") is None:
    pytest.skip("needs MindSpore: run it in that environment", allow_module_level=True)

HERE = pathlib.Path(__file__).resolve().parent
PLUMB = os.environ.get("PLUMB") or str(HERE.parents[1] / ".venv/bin/plumb")


def test_every_kernel_has_its_lines(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L2", "dump_path":
                                  str(tmp_path / "dump"), "tensor": {}}))
    config.chmod(0o640)
    graphs = tmp_path / "graphs"
    done = subprocess.run(
        [sys.executable, HERE / "graph_training.py", config, "1.0", "1"], text=True,
        capture_output=True, timeout=300, check=False,
        env=os.environ | {"MS_DEV_SAVE_GRAPHS": "1", "MS_DEV_SAVE_GRAPHS_PATH": str(graphs)})
    assert done.returncode == 0, done.stderr
    texts = sorted(graphs.glob("graph_build_*.ir"))
    assert texts, list(graphs.iterdir())
    step = tmp_path / "dump/rank_0/Net/0/0"
    done = subprocess.run([PLUMB, "code_mapping", "--ir", *texts, "--dump_data", step, "-o",
                           tmp_path / "out"], text=True, capture_output=True, timeout=60,
                          check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    (table,) = (tmp_path / "out").iterdir()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list(step.glob("*.npy"))) > 50
    for row in rows:
        is_parameter = pathlib.Path(row["File Path"]).name.startswith("Parameter.")
        assert row["Match"] == ("none" if is_parameter else "exact"), row
    products = [row for row in rows if row["Scope Name"].startswith("Default/")
                and "MatMul.Default" in row["File Path"]]
    assert products and all("graph_training.py" in row["Code Stack"] and
                            "self.fc2(ops.mul(self.cube(self.relu(self.fc1(x))" in row["Code Stack"]
                            for row in products)
