"""`plumb api_precision_compare` and upstream's decide alike, on upstream's details files and on
ours; where they do not, one of upstream's lost verdicts is the reason.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import HERE, run, upstream_python

sys.path.insert(0, str(HERE.parent / "python"))
from precheck_files import DETAILS, read_csv, write_details
from recording import PLUMB

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

Rows = dict[str, list[str]]
OUTPUT = re.compile(r"\.(forward|backward)\..*")
NUMBERS = (0.0, 1e-16, 0.0004, 0.02, 0.5, 3.0, 70.0, math.inf, -math.inf, math.nan)
APIS = ("add", "relu", "matmul", "conv2d", "sum", "topk", "linalg.inv")
TYPES = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64", "torch.int64",
         "<class 'int'>")


def own_pairs(folder: Path) -> tuple[Path, Path]:
    """Details files in our form with every combination of a number of both sides."""
    sides: tuple[list[dict[str, object]], list[dict[str, object]]] = ([], [])
    numbers = itertools.product(NUMBERS, repeat=2)
    cases = itertools.product(APIS, TYPES, numbers)
    for count, (api, dtype, pair) in enumerate(cases):
        # Arguments that a call changed in place have rows that upstream does not know of.
        output = ("output.0", "output.0", "input.1", "input.out")[count % 4]
        for side, number in zip(sides, pair, strict=True):
            row: dict[str, object] = {
                "API Name": f"Torch.{api}.{count}.forward.{output}", "Bench Dtype": "torch.float64",
                "DEVICE Dtype": dtype, "Shape": "(2, 3)", "Status": "pass", "Message": "told"}
            # Only the numbers of some columns vary together: each decides in turn.
            row |= {name: number if (place + count) % 3 else 0.0005
                    for place, name in enumerate(DETAILS[4:21])}
            side.append(row)
    folder.mkdir(parents=True)
    paths = folder / "npu.csv", folder / "gpu.csv"
    for path, rows in zip(paths, sides, strict=True):
        write_details(path, rows)
    return paths


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `upstream` and `own` files, and what upstream says of each in `theirs`."""
    root = tmp_path_factory.mktemp("sides")
    own_pairs(root / "own")
    requests: list[dict[str, str]] = [{"make": str(root / "upstream")}]
    requests += [{"npu": str(root / kind / "npu.csv"), "gpu": str(root / kind / "gpu.csv"),
                  "out": str(root / kind / "theirs")} for kind in ("upstream", "own")]
    ask_upstream("1.2.2", root, requests)
    ask_upstream("26.2.0", root, [
        {"make": str(root / "newest")},
        {"npu": str(root / "newest/npu.csv"), "gpu": str(root / "newest/gpu.csv"),
         "out": str(root / "newest/theirs")}])
    for kind in ("upstream", "own", "newest"):
        done = run([PLUMB, "msprobe", "-f", "pytorch", "api_precision_compare", "-npu",
                    root / kind / "npu.csv", "-gpu", root / kind / "gpu.csv", "-o",
                    root / kind / "ours"])
        assert done.returncode == 0, done.stderr
    return root


def ask_upstream(version: str, root: Path, requests: list[dict[str, str]]) -> None:
    path = root / f"requests-{version}.json"
    path.write_text(json.dumps(requests))
    done = run([upstream_python(version), "-W", "ignore", HERE / "run_upstream_precheck_files.py",
                path])
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert "are missing in" not in done.stdout + done.stderr


def details_of(folder: Path) -> tuple[Rows, Rows]:
    """The details rows of both programs, by name."""
    [ours] = (folder / "ours").glob("api_precision_compare_details_*.csv")
    pairs = []
    for path in (folder / "theirs" / "details.csv", ours):
        header, *rows = read_csv(path)
        assert len(header) == 28
        pairs.append({row[0]: row for row in rows})
    with ours.open("rb") as stream:
        first = stream.readline()
    assert (folder / "theirs" / "details.csv").read_bytes().startswith(first)
    return pairs[0], pairs[1]


def same_cell(ours: str, theirs: str) -> bool:
    try:
        mine, other = float(ours), float(theirs)
    except ValueError:
        return ours == theirs
    return mine == other or (math.isnan(mine) and math.isnan(other))


@pytest.mark.parametrize("kind", ["upstream", "own"])
def test_every_row_has_the_same_verdict(compared: Path, kind: str) -> None:
    theirs, ours = details_of(compared / kind)
    targets = {row["API Name"]: row for row in
               csv.DictReader((compared / kind / "npu.csv").open(encoding="utf-8-sig"))}
    assert ours.keys() == targets.keys() >= theirs.keys()
    seen: Counter[str] = Counter()
    for name, row in ours.items():
        other = theirs[name]
        if other[25] == "SKIP" and targets[name]["Status"] == "error" and row[25] == "error":
            seen["wrong by itself"] += 1  # which upstream loses for want of a number
            continue
        assert row[25] == other[25], (name, row, other)
        seen[row[25]] += 1
        if row[25] == "SKIP":
            continue
        for place in range(1, 27):
            assert same_cell(row[place], other[place]), (name, place, row, other)
    print(seen)
    assert seen["pass"] > 20 and seen["error"] > 20 and seen["SKIP"] > 3
    if kind == "upstream":
        assert seen["wrong by itself"] == 2  # an unequal number, another shape


@pytest.mark.parametrize("kind", ["upstream", "own"])
def test_every_call_has_the_same_verdict(compared: Path, kind: str) -> None:
    header, *rows = read_csv(compared / kind / "theirs" / "result.csv")
    # Rows under the name of an output are what upstream writes where it fails.
    theirs = {row[0]: row for row in rows if not OUTPUT.search(row[0])}
    [path] = (compared / kind / "ours").glob("api_precision_compare_result_*.csv")
    own_header, *rows = read_csv(path)
    ours = {row[0]: row for row in rows}
    assert own_header == header and len(ours) == len(rows)
    lost = {OUTPUT.sub("", row[0])
            for row in read_csv(compared / kind / "theirs" / "result.csv")
            if OUTPUT.search(row[0])}
    for name, row in ours.items():
        if name in lost:
            continue
        assert len(row) == 4
        if theirs[name][3].startswith("This data type"):
            # Upstream skips both directions then, also one that the recording does not have.
            assert row[1] == "SKIP" and row[2] in ("SKIP", " "), row
            continue
        assert row[1:3] == theirs[name][1:3], (name, row, theirs[name])


def test_files_of_the_newest_release_are_judged_by_what_they_hold(compared: Path) -> None:
    theirs, ours = details_of(compared / "newest")
    seen: Counter[str] = Counter()
    for name, row in ours.items():
        # Names that release 1.2.2 judges by other standards, whose numbers are not there.
        if name.split(".")[1] in ("add", "mul", "relu", "topk") and theirs[name][25] != "SKIP":
            assert row[1:27] == theirs[name][1:27], (name, row, theirs[name])
            seen[row[25]] += 1
    print(seen)
    assert seen["pass"] > 20 and seen["error"] > 20
