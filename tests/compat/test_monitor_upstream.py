"""TrainerMon against upstream's: equal files of one training, and files that its tools read."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, run, upstream_python
from test_trend_database import (
    CONVERT,
    MONITOR_CONFIG,
    MONITOR_TREND,
    READ_EVENTS,
    normalized_schema,
    query,
)

sys.path.insert(0, str(ROOT / "tests" / "python"))

from heat_pictures import counts_in, pixels

pytestmark = pytest.mark.upstream

HERE = Path(__file__).parent
LATEST = {**MONITOR_CONFIG, "profile": "latest"}  # which upstream does not know, and ignores
KINDS = ("actv", "actv_grad", "grad_unreduced", "grad_reduced", "exp_avg", "exp_avg_sq", "param",
         "other")


def recorded(root: Path, options: dict[str, Any], release: str) -> dict[str, Path]:
    """The same training under the monitor of a release and under our own."""
    config = root / "config.json"
    config.write_text(json.dumps(options))
    for name, python in (("theirs", upstream_python(release)), ("own", Path(sys.executable))):
        done = run([python, "-W", "ignore", HERE / "record_monitor.py", config, root / name],
                   timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    return {name: root / name for name in ("theirs", "own")}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return recorded(tmp_path_factory.mktemp("both"), MONITOR_CONFIG, "1.2.2")


def rows_of(root: Path, kind: str, block: str) -> dict[tuple[str, ...], dict[str, float]]:
    """Name, step and micro step -> op -> number."""
    [directory] = root.glob("*-rank0-*")
    with (directory / f"{kind}_{block}.csv").open(newline="") as file:
        found = {}
        for row in csv.DictReader(file):
            key = tuple(row.pop(name, "") for name in ("vpp_stage", "name", "step", "micro_step"))
            found[key] = {op: float(value) for op, value in row.items()}
        return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_is_upstreams(both: dict[str, Path], kind: str) -> None:
    for block in ("0-1", "2-3"):
        theirs, ours = (rows_of(both[name], kind, block) for name in ("theirs", "own"))
        assert theirs.keys() == ours.keys() and len(theirs) >= 4
        for key, values in theirs.items():
            assert list(values) == list(ours[key])
            for op, value in values.items():
                # One unit of the last digit that is printed.
                assert ours[key][op] == pytest.approx(value, rel=0, abs=1.01e-6, nan_ok=True), key
                assert math.isnan(ours[key][op]) == math.isnan(value)


def test_upstreams_tools_read_the_files(both: dict[str, Path], tmp_path: Path,
                                        request: pytest.FixtureRequest) -> None:
    shutil.copytree(both["own"], tmp_path / "data", ignore=shutil.ignore_patterns("anomaly*"))
    first, newest = upstream_python(), upstream_python("26.2.0")
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    done = run([first, "-W", "ignore", "-c", CONVERT, tmp_path / "data", tmp_path / "tb"],
               timeout=300)
    assert done.returncode == 0 and "failed" not in done.stdout, done.stdout + done.stderr
    done = run([first, "-W", "ignore", "-c", READ_EVENTS, tmp_path / "tb"], timeout=300)
    events = json.loads(done.stdout)
    assert len(events) > 100 and any("vp0:fc1.weight/norm" in tag for tag in events)
    for command in (newest.with_name("msprobe"), program):
        out = tmp_path / Path(command).name
        done = run([command, "data2db", "--db", out, "--data", tmp_path / "data", "--format",
                    "monitor"], timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    theirs, ours = (set(query(tmp_path / name / "monitor_data.trend.db", MONITOR_TREND))
                    for name in ("msprobe", Path(program).name))
    assert len(theirs) > 100 and theirs <= ours
    done = run([program, "trend", tmp_path / "data", "-o", tmp_path / "trend.html"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "trend.html").stat().st_size > 1000


def is_same(theirs: str, ours: str) -> bool:
    """Two cells, numbers up to one unit of the last digit that is printed."""
    try:
        return float(ours) == pytest.approx(float(theirs), rel=0, abs=1.01e-6, nan_ok=True)
    except ValueError:
        return theirs == ours


def alerts_of(root: Path) -> set[tuple[str, int]]:
    found = json.loads((root / "anomaly_detected" / "rank0" / "anomaly.json").read_text())
    return {(one["tag_name"], one["step"]) for one in found.values()}


def test_the_latest_profile_is_the_newest_release(tmp_path: Path) -> None:
    """Every file with every row in its place, statistics, shapes, types, and alerts."""
    both = recorded(tmp_path, LATEST, "26.2.0")
    directories = {name: next(iter(path.glob("*-rank0-*"))) for name, path in both.items()}
    files = {name: sorted(path.name for path in directory.glob("*.csv"))
             for name, directory in directories.items()}
    assert files["own"] == files["theirs"] and len(files["own"]) == 18
    for name in files["own"]:
        theirs, ours = (list(csv.reader((directories[side] / name).open(newline="")))
                        for side in ("theirs", "own"))
        assert ours[0] == theirs[0] and ours[0][-2:] == ["shape", "dtype"]
        assert len(ours) == len(theirs) >= 5
        if name.startswith("actv_grad"):  # ours has the gradient of the output first, as it comes
            theirs, ours = ([rows[0], *sorted(rows[1:], key=lambda row: row[:4])]
                            for rows in (theirs, ours))
        # A sign agreement is computed in double.
        columns = len(ours[0]) - name.startswith("other")
        for one, other in zip(theirs, ours, strict=True):
            assert all(map(is_same, one[:columns], other[:columns])), f"{name}: {one} {other}"
    assert alerts_of(both["own"]) == alerts_of(both["theirs"]) and alerts_of(both["own"])


def test_the_database_is_that_of_upstreams_converter(both: dict[str, Path],
                                                     tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**MONITOR_CONFIG, "format": "sqlite", "param_updated": True}))
    done = run([sys.executable, "-W", "ignore", HERE / "record_monitor.py", config,
                tmp_path / "out"], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    [ours] = (tmp_path / "out").glob("*-rank0-*/monitor_data.trend.db")
    shutil.copytree(both["own"], tmp_path / "data", ignore=shutil.ignore_patterns("anomaly*"))
    for path in (tmp_path / "data").glob("*/param_*"):  # upstream's later name of it
        path.with_name(path.name.replace("param_", "param_origin_")).write_bytes(path.read_bytes())
        path.rename(path.with_name(path.name.replace("param_", "param_updated_")))
    done = run([upstream_python("26.2.0").with_name("msprobe"), "data2db", "--db", tmp_path / "db",
                "--data", tmp_path / "data", "--micro_step", "false", "--format", "monitor"],
               timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    theirs = tmp_path / "db" / "monitor_data.trend.db"
    schemas = [normalized_schema(path) for path in (theirs, ours)]
    for texts in schemas:  # upstream's columns of global_stats stand in no order
        texts[0] = "".join(sorted(texts[0].removesuffix(")").partition("(")[2].split(", ")))
    assert schemas[0] == schemas[1]
    rows = [{row[:6]: row[6:] for row in query(path, MONITOR_TREND) if row[5] != "param_updated"}
            for path in (theirs, ours)]
    assert rows[0].keys() == rows[1].keys() and len(rows[0]) > 100
    for key, values in rows[0].items():
        for value, exact in zip(values, rows[1][key], strict=True):
            assert value == (None if exact is None else pytest.approx(exact, rel=0, abs=1.01e-6))
    for sql in ("SELECT metric_name FROM monitoring_metrics ORDER BY metric_id",
                "SELECT min_step, max_step, max_rank FROM global_stats"):
        assert query(theirs, sql) == query(ours, sql)


@pytest.mark.parametrize("targets", [
    {"moe_router_weight_hook": ["0:fc1"], "moe_router_logit_hook": ["0:fc1"]},
    {"linear_hook": []}], ids=["routers", "matrices"])
def test_features_of_layers_are_upstreams(tmp_path: Path, targets: dict[str, list[str]]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({
        "targets": {}, "ops": ["norm"], "recording_l2_features": True, "step_count_per_record": 3,
        "ndigits": 12, "l2_targets": targets}))
    for name, python in (("theirs", upstream_python("26.2.0")), ("own", Path(sys.executable))):
        done = run([python, "-W", "ignore", HERE / "record_monitor.py", config, tmp_path / name],
                   timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    for kind in targets:
        theirs, ours = (rows_of(tmp_path / name, kind, "0-2") for name in ("theirs", "own"))
        assert list(theirs) == list(ours) and len(theirs) >= 3
        for key, values in theirs.items():
            found = ours[key]
            assert list(found) == list(values)
            if kind != "linear_hook":
                assert found == pytest.approx(values, rel=1e-5)
            elif key[2] == "0":  # drawing its start vector, upstream changes the training
                assert found["sr"] * found["kernel_norm"] == pytest.approx(
                    values["sr"] * values["kernel_norm"], rel=1e-5)
                assert found["kernel_norm"] == pytest.approx(values["kernel_norm"], rel=0.3)


READ_ALL_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [event.step for event in events.Scalars(tag)]
                  for tag in events.Tags()["scalars"]}))
"""


def test_tensorboard_opens_event_files(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**MONITOR_CONFIG, "format": "tensorboard"}))
    done = run([sys.executable, "-W", "ignore", HERE / "record_monitor.py", config,
                tmp_path / "out"], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    [directory] = (tmp_path / "out").glob("*-rank0-*")
    done = run([upstream_python(), "-W", "ignore", "-c", READ_ALL_EVENTS, directory], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert all(steps == ([1, 2] if "/exp_avg" in tag else [0, 1, 2])
               for tag, steps in found.items())
    kinds = {tag.rpartition("/")[2].rpartition("_")[0] for tag in found}
    assert kinds == {"actv", "actv_grad", "acc_grad", "post_grad", "exp_avg", "exp_avg_sq",
                     "param", "mg_direction"}
    assert {"0:fc1.input:1/rank0/actv_norm", "0:fc2.bias/rank0/post_grad_zeros"} <= found.keys()


def second_rows(directory: Path) -> dict[tuple[str, ...], dict[str, float]]:
    """File, stage, step, name and scope -> op -> number, of a TrainerMonitorV2."""
    found: dict[tuple[str, ...], dict[str, float]] = {}
    for path in sorted((directory / "rank_0").glob("*.csv")):
        text = path.read_bytes().decode()
        assert text.endswith("\r\n")
        for row in csv.DictReader(text.splitlines()):
            key = (path.name, *(row.pop(name) for name in
                                ("vpp_stage", "step", "module_name", "scope")))
            assert key not in found
            found[key] = {op: float(value) for op, value in row.items()}
    return found


@pytest.mark.parametrize("form", ["one", "list"])
def test_the_second_form_has_upstreams_rows(tmp_path: Path, form: str) -> None:
    rows = {}
    for name, python in (("theirs", upstream_python("26.2.0")), ("own", Path(sys.executable))):
        done = run([python, "-W", "ignore", HERE / "record_monitor_v2.py", tmp_path / name, form],
                   timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        rows[name] = second_rows(tmp_path / name)
    theirs, ours = rows["theirs"], rows["own"]
    # Upstream's hooks of unreduced gradients are gone before the first backward pass.
    assert {key[-1] for key in ours.keys() - theirs.keys()} == {"unreduced"}
    assert not theirs.keys() - ours.keys() and len(theirs) > 150
    for key, values in theirs.items():
        assert list(values) == list(ours[key])
        if key[3].endswith(".grad_output.1"):
            continue  # the module uses this output itself: ours has the gradient of both uses
        for op, value in values.items():  # upstream adds up in float32
            assert ours[key][op] == pytest.approx(value, rel=1e-5, abs=1e-7), (key, op)


READ_IMAGES = """
import base64, io, json, sys
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"images": 0})
events.Reload()
found = {}
for tag in events.Tags()["images"]:
    for event in events.Images(tag):
        picture = Image.open(io.BytesIO(event.encoded_image_string))
        assert picture.size == (event.width, event.height) and picture.mode == "RGB"
        found.setdefault(tag, {})[event.step] = base64.b64encode(
            event.encoded_image_string).decode()
print(json.dumps(found))
"""


def test_pictures_of_adam_are_upstreams(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**MONITOR_CONFIG, "format": "tensorboard",
                                  "ur_distribution": True}))
    printed = {}
    for name, python in (("theirs", upstream_python()), ("own", Path(sys.executable))):
        done = run([python, "-W", "ignore", HERE / "record_monitor.py", config, tmp_path / name],
                   timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        printed[name] = done.stdout
    theirs = json.loads(printed["theirs"].rpartition("matrices ")[2])
    [directory] = (tmp_path / "own").glob("*-rank0-*")
    done = run([upstream_python(), "-W", "ignore", "-c", READ_IMAGES, directory], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    ours = json.loads(done.stdout)
    assert len(theirs) == 8
    assert ours.keys() == {tag.replace("/adam", "/rank0/adam") for tag in theirs}
    for tag, matrix in theirs.items():
        pictures = ours[tag.replace("/adam", "/rank0/adam")]
        assert sorted(pictures) == ["1", "2"]
        picture = pixels(base64.b64decode(pictures["2"]))
        expected = np.array(matrix, dtype=np.int64)
        # The first moments give 1 and -1 but for rounding, which upstream does in float32: the
        # counts there may be others, and with them the largest one, by which colours are scaled.
        scales = (counts_in(picture, 2, largest) for largest in range(1, 33))
        assert any((found[1:-1, 0] == expected[1:-1, 0]).all() and found.min() >= 0
                   and (found[:, 1] == expected[:, 1]).all() for found in scales), tag
