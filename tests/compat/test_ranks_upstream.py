"""Several ranks against the real upstream on the same dumps: merge_result of release 1.2.2 and the
search for the first difference of 26.2.0.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import HERE, ROOT, run, upstream_python

sys.path.insert(0, str(ROOT / "tests" / "python"))

from rank_dumps import Entry, forward, tensor, write_step

pytestmark = pytest.mark.upstream

RANKS = 4
WORLD = {"type": "torch.ProcessGroup", "group_ranks": list(range(RANKS)), "group_id": "a"}


def all_reduce(count: int, given: float, result: float) -> Entry:
    """A collective call of all ranks."""
    return forward(f"Distributed.all_reduce.{count}.forward", [tensor(given)],
                   [tensor(result), WORLD], group=WORLD)


def entries(rank: int, fault: str = "") -> list[Entry]:
    """Rank 2 triples a result where `fault` says."""
    def wrong(place: str) -> float:
        return 3.0 if fault == place and rank == 2 else 1.0
    after = 2.5 if fault == "before" else 1.0
    later = 2.5 if fault in ("before", "between") else 1.0
    own = 1.0 + rank / 8
    return [forward("Torch.add.0.forward", [tensor(own)], [tensor(own * wrong("before"))]),
            all_reduce(0, own * wrong("before"), 4.5 * after),
            forward("Torch.mul.0.forward", [tensor(4.5 * after)],
                    [tensor(9.0 * after * wrong("between"))]),
            all_reduce(1, 9.0 * after * wrong("between"), 36.0 * later),
            forward("Torch.mul.1.forward", [tensor(36.0 * later)],
                    [tensor(72.0 * later * wrong("after"))])]


FAULTS = {"before": "Torch.add.0.forward", "between": "Torch.mul.0.forward",
          "after": "Torch.mul.1.forward"}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A step without fault ("good") and one for each fault."""
    root = tmp_path_factory.mktemp("ranks")
    for fault in ("", *FAULTS):
        write_step(root / (fault or "good"),
                   {f"rank{rank}": entries(rank, fault) for rank in range(RANKS)})
    return root


def plumb(request: pytest.FixtureRequest, *words: object) -> None:
    """Runs the program, which must succeed."""
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    done = subprocess.run([program, *map(str, words)], capture_output=True, timeout=60, text=True,
                          check=False)
    assert done.returncode == 0, done


def run_upstream(version: str, folder: Path, commands: list[list[Any]]) -> None:
    """Runs command lines of a release, which must succeed; requests and logs go to `folder`."""
    requests = folder / "requests.json"
    requests.write_text(json.dumps([{"words": [str(word) for word in words],
                                     "log": str(folder / f"log{number}")}
                                    for number, words in enumerate(commands)]))
    done = run([upstream_python(version), HERE / "run_upstream_commands.py", requests], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    for number, words in enumerate(commands):
        log = folder / f"log{number}"
        assert Path(f"{log}.status").read_text() == "0", (words, log.read_text()[-3000:])


def merged(directory: Path) -> dict[str, list[list[Any]]]:
    """The sheets of the only merged workbook."""
    [path] = directory.glob("multi_ranks_compare_merge_*.xlsx")
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)]
            for sheet in openpyxl.load_workbook(path)}


def test_merge_result(steps, tmp_path, request):
    """Upstream's workbooks, merged by both; and plumbline's own, merged by plumbline."""
    compare = tmp_path / "compare.json"
    compare.write_text(json.dumps({"npu_path": str(steps / "between"),
                                   "bench_path": str(steps / "good")}))
    config = tmp_path / "merge.yaml"
    config.write_text("api:\n- Distributed.all_reduce\n- Torch.mul.0\n")
    theirs, own = tmp_path / "theirs", tmp_path / "own"
    commands = [["-f", "pytorch", "compare", "-i", compare, "-o", theirs],
                ["-f", "pytorch", "merge_result", "-i", theirs, "-o", tmp_path / "m0", "-config",
                 config]]
    run_upstream("1.2.2", tmp_path, commands)
    expected = merged(tmp_path / "m0")
    assert len(expected) == 8 and len(expected["Max diff"]) == 11
    plumb(request, "msprobe", "-f", "pytorch", "merge_result", "-i", theirs, "-o", tmp_path / "m1",
          "-config", config)
    assert merged(tmp_path / "m1") == expected
    plumb(request, "msprobe", "-f", "pytorch", "compare", "-i", compare, "-o", own)
    names = sorted(path.name[:-len("_20260131120000.xlsx")] for path in own.glob("*.xlsx"))
    assert names == sorted(path.name[:-len("_20260131120000.xlsx")]
                           for path in theirs.glob("*.xlsx"))
    plumb(request, "msprobe", "merge_result", "-i", own, "-o", tmp_path / "m2", "-config", config)
    assert merged(tmp_path / "m2") == expected


def test_first_difference(steps, tmp_path, request):
    """Where upstream finds the fault, the file is the same."""
    run_upstream("26.2.0", tmp_path, [
        ["compare", "-tp", steps / fault, "-gp", steps / "good", "-o", tmp_path / f"theirs_{fault}",
         "-da"] for fault in FAULTS])
    for fault, name in FAULTS.items():
        theirs, own = tmp_path / f"theirs_{fault}", tmp_path / f"own_{fault}"
        plumb(request, "msprobe", "compare", "-tp", steps / fault, "-gp", steps / "good", "-o", own,
              "-da")
        [path] = own.glob("diff_analyze_*.json")
        found = json.loads(path.read_text())
        assert [(rank, [node["op_name"] for node in nodes])
                for rank, nodes in found.items()] == [("rank_2", [name])]
        [expected] = theirs.glob("diff_analyze_*.json")
        assert found == json.loads(expected.read_text())
