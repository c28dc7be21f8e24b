"""plumb overflow against the overflow_check of upstream 26.2.0 on the same dumps.

Compared where upstream's answer does not depend on the order of a set: not for a collective call
that produces NaN itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run, upstream_python

sys.path.insert(0, str(ROOT / "tests" / "python"))

from rank_dumps import scenarios, tensor, write_step

pytestmark = pytest.mark.upstream

COMPARED = [name for name in scenarios() if name != "communication_produces"]
OWN_KEYS = {"kind", "phase", "layer", "sub_layer", "index", "reason", "minor", "evidence",
            "argument", "operands", "previous"}


def findings(directory: Path) -> dict:
    """The only anomaly_analyze file in `directory`; empty when there is none."""
    files = list(directory.glob("anomaly_analyze_*.json")) if directory.exists() else []
    assert len(files) <= 1
    return json.loads(files[0].read_text()) if files else {}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every scenario with upstream's result beside it."""
    python = upstream_python("26.2.0")
    root = tmp_path_factory.mktemp("overflow")
    for name in COMPARED:
        ranks = scenarios()[name][0]
        for entries in ranks.values():
            for _, entry in entries:  # upstream fails on the null of a receive buffer
                values = entry.get("input_args", [])
                values[:] = [tensor() if value is None else value for value in values]
        write_step(root / name / "step0", ranks)
    done = run([python, Path(__file__).with_name("run_upstream_overflow_check.py"), root],
               timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return root


@pytest.mark.parametrize("name", COMPARED)
def test_same_nodes_as_upstream(checked, request, name):
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    own = checked / name / "own"
    subprocess.run([program, "overflow", checked / name / "step0", "-o", own], check=True,
                   capture_output=True, timeout=60)
    nodes = findings(own)
    for found in nodes.values():
        for node in found:
            for key in OWN_KEYS & set(node):
                del node[key]
    # json: NaN is not equal to itself, its text is.
    assert json.dumps(nodes) == json.dumps(findings(checked / name / "upstream"))
