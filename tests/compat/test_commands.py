"""Each tool's compare runs on the other's dumps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import openpyxl
import pytest
from conftest import HERE, RECORDINGS, Runs, run, upstream_python
from known_differences import PERTURBED, UPSTREAM_ONLY

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

# What upstream says about a row. Means and norms are left to test_dumps.py, which knows upstream's
# own rounding.
JUDGED = {
    "statistics": ("Max diff", "Min diff", "Result"),
    "md5": ("NPU MD5", "BENCH MD5", "Result"),
    "tensor": ("Cosine", "MaxAbsErr", "Accuracy Reached or Not", "Err_message"),
}
IDENTITY = ("NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape",
            "Bench Tensor Shape")
# Rows of the calls under the keys inplace-output and unused-output of known_differences.py.
LEFT_OUT = re.compile(r"^(Module\.first\.Linear\.backward\.0|Functional\.linear\.0\.backward"
                      r"|Functional\.relu\.0\.backward|Module\..*LlamaAttention\.backward)\.")
# Upstream rounds these to float32 before it takes their statistics (differences.md).
ROUNDED_DTYPES = ("torch.float64", "torch.int64", "torch.int32")


@pytest.fixture(scope="module")
def verdicts(plumbline: Runs, upstream: Runs, tmp_path_factory) -> dict[tuple[str, str], list]:
    """Upstream's result rows: (recording, "mixed" or "own") -> rows as dicts."""
    root = tmp_path_factory.mktemp("verdicts")
    requests, wanted = [], []
    for recording in RECORDINGS:
        golden = upstream.rank(recording, 0).path
        for kind, target in (("mixed", plumbline.rank(recording, 0).path), ("own", golden)):
            out = root / recording / kind
            out.mkdir(parents=True)
            requests.append({"target": str(target), "golden": str(golden), "out": str(out)})
            wanted.append((recording, kind))
    path = root / "requests.json"
    path.write_text(json.dumps(requests))
    done = run([upstream_python(), "-W", "ignore", HERE / "run_upstream_compare.py", path],
               fresh=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return {key: read_rows(root / key[0] / key[1]) for key in wanted}


def read_rows(out: Path) -> list[dict]:
    """The rows of the one workbook in `out`."""
    [path] = out.glob("compare_result*.xlsx")
    header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    return [row for row in found if not any(
        UPSTREAM_ONLY.match(row[key]) or LEFT_OUT.match(row[key])
        for key in ("NPU Name", "Bench Name"))]


def is_cancelled_mean(key: str, row: dict) -> bool:
    """Whether a warning is only about a mean that is zero but for rounding (of sums to 1e-9)."""
    return key == "Result" and row[key] == "Warning" and row["Max diff"] == 0 \
        and row["Min diff"] == 0 and abs(row["Mean diff"]) < 1e-7


def name_of(row: dict) -> str:
    """The name of a row; the order of module backwards may differ."""
    return row["NPU Name"]


@pytest.mark.parametrize("recording", RECORDINGS)
def test_upstream_pairs_every_row(verdicts, recording):
    ours, theirs = ([[str(row[key]) for key in IDENTITY] for row in verdicts[recording, kind]
                     if not PERTURBED.match(f"{recording}/step0:{row['NPU Name']}")]
                    for kind in ("mixed", "own"))
    assert len(theirs) > 10
    assert sorted(ours) == sorted(theirs)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_upstream_finds_no_difference(verdicts, recording):
    """Compared with upstream's dump, ours gets the verdicts that upstream's own gets."""
    judged = JUDGED[recording.rsplit("/", 1)[1]]
    ours, theirs = verdicts[recording, "mixed"], verdicts[recording, "own"]
    found = [(row["NPU Name"], key, row[key], other[key])
             for row, other in zip(sorted(ours, key=name_of), sorted(theirs, key=name_of),
                                   strict=True)
             for key in judged
             if row[key] != other[key]
             and not PERTURBED.match(f"{recording}/step0:{row['NPU Name']}")
             and not is_cancelled_mean(key, row)
             and not (key.endswith(" diff") and row["NPU Dtype"] in ROUNDED_DTYPES)]
    assert found == []


# Upstream's infinite mean of a finite mask (key sum-overflow) must be named, not passed over.
OVERFLOWS = "llama/L1/statistics"


def test_plumb_names_upstreams_overflowed_mean(plumb: Path, plumbline: Runs, upstream: Runs,
                                               tmp_path):
    done = run([plumb, "compare", plumbline.rank(OVERFLOWS, 0).path,
                upstream.rank(OVERFLOWS, 0).path, "-o", tmp_path / "out"])
    first, second = done.stdout.splitlines()[:2]
    assert first == "first wrong call: Torch.where.0.forward"
    assert "(golden -inf)" in second


@pytest.mark.parametrize("recording", [name for name in RECORDINGS
                                       if "/L1/" in name and name != OVERFLOWS])
def test_plumb_finds_no_wrong_call(plumb: Path, plumbline: Runs, upstream: Runs, tmp_path,
                                   recording):
    """Our dump against upstream's: every call paired, nothing suspicious."""
    done = run([plumb, "compare", plumbline.rank(recording, 0).path,
                upstream.rank(recording, 0).path, "-o", tmp_path / "out", "--fail-on", "any"])
    assert done.stdout.startswith("no wrong call"), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("recording", [name for name in RECORDINGS if "/mix/" in name])
def test_plumb_pairs_all_but_upstreams_own_calls(plumb: Path, plumbline: Runs, upstream: Runs,
                                                 tmp_path, recording):
    golden = upstream.rank(recording, 0)
    ours = plumbline.rank(recording, 0)
    done = run([plumb, "compare", ours.path, golden.path, "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stdout + done.stderr
    [paired] = re.findall(r"^calls: (\d+) paired", done.stdout, re.MULTILINE)
    other_shape = sum(1 for name in ours.data if LEFT_OUT.match(f"{name}."))
    assert int(paired) >= len(ours.data) - other_shape


@pytest.mark.parametrize("mode", ["statistics", "md5", "tensor"])
def test_plumb_reads_the_newest_upstream(plumb: Path, newest: Runs, tmp_path, mode):
    rank = newest.rank(f"llama/mix/{mode}", 0).path
    done = run([plumb, "compare", rank, rank, "-o", tmp_path / "out", "--fail-on", "any"])
    assert done.stdout.startswith("no wrong call"), done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["statistics", "md5", "tensor"])
def test_plumb_sees_that_two_steps_differ(plumb: Path, newest: Runs, tmp_path, mode):
    """The counter-test: step 0 against step 1 must not look alike."""
    done = run([plumb, "compare", newest.rank(f"llama/mix/{mode}", 1).path,
                newest.rank(f"llama/mix/{mode}", 0).path, "-o", tmp_path / "out",
                "--fail-on", "any"])
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("first wrong call:"), done.stdout
