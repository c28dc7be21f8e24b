"""What plumb makes of dumps and of files of upstream's monitor against what upstream makes of them:
databases (data2db of 26.2.0), event files, sorted alerts.

Upstream leaves out tensors of other dtypes than float16, float32 and bfloat16, keyword arguments,
nested values and, with micro steps, calls outside of a root; plumbline's database holds these
besides (tests/python/test_data2db.py). Everything that upstream stores must be there, equal.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run, upstream_python

sys.path.insert(0, str(ROOT / "tests" / "python"))

from trend_dumps import DATABASE, query, tree, trend, write

pytestmark = pytest.mark.upstream

TAGS = """SELECT target_name, t.metric_id, tag_name, category FROM monitoring_tags AS t
    JOIN tag_target_mapping USING (tag_id) JOIN monitoring_targets USING (target_id)"""


def both(request: pytest.FixtureRequest, data: Path, micro_step: str,
         database: str = DATABASE) -> tuple[Path, Path]:
    """Upstream's and plumbline's database of the data."""
    python = upstream_python("26.2.0")
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    for name, command in (("upstream", python.with_name("msprobe")), ("own", program)):
        done = run([command, "data2db", "--db", data.parent / name, "--data", data,
                    "--micro_step", micro_step], timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    return data.parent / "upstream" / database, data.parent / "own" / database


def test_every_row_and_tag_of_upstream(request, tmp_path):
    recorded = ROOT / "tests" / "data" / "upstream_26.2.0"
    out = tmp_path / "out"
    for place, recording in (("step0/rank0", "mix_statistics"), ("step1/rank0", "mix_statistics"),
                             ("step3/rank1", "l1_tensor"), ("step3/proc55", "mix_statistics"),
                             ("step3/proc7", "l0_statistics")):
        shutil.copytree(recorded / recording, out / place)
    upstream, own = both(request, out, "false")
    theirs, ours = trend(upstream), trend(own)
    assert len(theirs) > 200 and theirs.items() <= ours.items()
    extra = {key[3] for key in ours.keys() - theirs.keys()}
    assert extra == {"Tensor.__gt__.output.0", "Torch.where.input.0", "Tensor.__mul__.input.1"}
    tags = [{row for row in query(path, TAGS) if not row[0].startswith(tuple(extra))}
            for path in (upstream, own)]
    assert len(tags[0]) > 100 and tags[0] == tags[1]
    for table in ("global_stats", "monitoring_metrics"):
        assert query(upstream, f"SELECT * FROM {table}") == query(own, f"SELECT * FROM {table}")


def test_micro_steps_of_one_root(request, tmp_path):
    out = tmp_path / "out"
    write(out / "step5" / "rank0", *tree(2))
    write(out / "step5" / "rank1", *tree(3))
    write(out / "step9" / "rank0", *tree(1))
    upstream, own = both(request, out, "true")
    # Upstream does not renumber parameter gradients and counts them in the first micro step.
    theirs = {key: row for key, row in trend(upstream).items() if key[2] != "parameters_grad"}
    assert len(theirs) > 30 and theirs.items() <= trend(own).items()
    assert query(upstream, "SELECT * FROM global_stats") == query(own, "SELECT * FROM global_stats")


def test_schema_differs_in_the_misspelt_table_alone(request, tmp_path):
    write(tmp_path / "out" / "step0" / "rank0", *tree(1))
    theirs, ours = both(request, tmp_path / "out", "true")
    assert normalized_schema(theirs) == normalized_schema(ours)


def normalized_schema(path: Path) -> list[str]:
    words = [" ".join(sql.replace("IF NOT EXISTS ", "").split()).replace("( ", "(")
             .replace(" )", ")").replace(" (", "(")
             for (sql,) in query(path, "SELECT sql FROM sqlite_master WHERE sql NOT NULL "
                                       "ORDER BY name")]
    return [text.replace("monitoring_target(", "monitoring_targets(").lower() for text in words]


MONITOR_CONFIG = {
    "targets": {}, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
    "param_distribution": True, "mg_direction": True, "step_count_per_record": 2,
    "ops": ["norm", "min", "max", "mean", "nans", "zeros"],
    "alert": {"rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.1}}],
              "dump": True}}


@pytest.fixture(scope="module", params=["1.2.2", "26.2.0"])
def monitored(request, tmp_path_factory) -> Path:
    """What TrainerMon of that release wrote, as two ranks: one is a copy."""
    root = tmp_path_factory.mktemp("monitor")
    config = root / "config.json"
    config.write_text(json.dumps(MONITOR_CONFIG))
    done = run([upstream_python(request.param), "-W", "ignore",
                Path(__file__).with_name("record_monitor.py"), config, root / "out"], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    [rank0] = (root / "out").glob("*-rank0-*")
    shutil.copytree(rank0, rank0.with_name(rank0.name.replace("rank0", "rank3")))
    return root / "out"


MONITOR_TREND = """SELECT rank, step, target_name, vpp_stage, micro_step, metric_name, norm, min,
    max, zeros, nans, mean FROM trend_data JOIN monitoring_targets USING (target_id)
    JOIN monitoring_metrics USING (metric_id)"""


@pytest.mark.parametrize("micro_step", ["true", "false"])
def test_every_row_of_a_monitor(request, monitored, micro_step):
    theirs, ours = both(request, monitored, micro_step, "monitor_data.trend.db")
    rows = [set(query(path, MONITOR_TREND)) for path in (theirs, ours)]
    assert len(rows[0]) > 200
    # Upstream leaves out the file of parameters of 1.2.2.
    extra = {row[5] for row in rows[1] - rows[0]}
    is_first = any(monitored.glob("*/param_0-1.csv"))
    assert rows[0] <= rows[1] and extra == ({"param_origin"} if is_first else set())
    tags = [set(query(path, TAGS.replace("t.metric_id", "metric_name").replace(
        "JOIN tag_target", "JOIN monitoring_metrics USING (metric_id) JOIN tag_target")))
        for path in (theirs, ours)]
    assert len(tags[0]) > 50
    assert tags[0] == {row for row in tags[1] if row[1] not in extra}
    for column in ("min_step", "max_step", "max_rank"):
        values = [query(path, f"SELECT {column} FROM global_stats") for path in (theirs, ours)]
        assert values[0] == values[1], column
    if not is_first:  # else ours has a metric more
        assert query(theirs, "SELECT * FROM monitoring_metrics") == query(
            ours, "SELECT * FROM monitoring_metrics")
        schemas = [normalized_schema(path) for path in (theirs, ours)]
        for texts in schemas:  # upstream's columns of global_stats stand in no order
            texts[0] = "".join(sorted(texts[0].removesuffix(")").partition("(")[2].split(", ")))
        assert schemas[0] == schemas[1]


READ_EVENTS = """
import json, sys
from pathlib import Path
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = {}
for folder in sorted(Path(sys.argv[1]).glob("rank*/*")):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    for tag in events.Tags()["scalars"]:
        found[f"{folder.parent.name}/{folder.name} {tag}"] = [
            (event.step, repr(event.value)) for event in events.Scalars(tag)]
print(json.dumps(found))
"""
CONVERT = """
import sys
from msprobe.pytorch.monitor.csv2tb import csv2tensorboard_by_step
csv2tensorboard_by_step(sys.argv[1], output_dirpath=sys.argv[2])
"""


def test_tensorboard_reads_what_upstreams_converter_gives(monitored, request):
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    out = monitored.parent
    done = run([program, "csv2tensorboard", "--data", monitored, "-o", out / "own"])
    assert done.returncode == 0, done.stderr
    python = upstream_python("1.2.2")
    done = run([python, "-W", "ignore", "-c", CONVERT, monitored, out / "theirs"], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found = []
    for name in ("theirs", "own"):
        done = run([python, "-W", "ignore", "-c", READ_EVENTS, out / name], timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        found.append(json.loads(done.stdout))
    theirs, ours = found
    assert len(theirs) > 100
    # Upstream leaves out the files `other`, and 1.2.2 the new names of parameters.
    own_kinds = {"other", "param_origin", "param_updated"}
    assert {tag.split("/")[1].split(" ")[0] for tag in ours.keys() - theirs.keys()} <= own_kinds
    # Upstream's processes end without closing their writers: the last events may be missing there.
    assert theirs == {tag: ours[tag][:len(events)] for tag, events in theirs.items()}
    assert {len(events) for tag, events in ours.items() if "/exp_avg" not in tag} == {3}


def test_alerts_in_upstreams_order(monitored, request):
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    alerts, out = monitored / "anomaly_detected", monitored.parent
    done = run([program, "anomaly_analyse", "-d", alerts, "-o", out / "sorted", "-k", "1000"])
    assert done.returncode == 0, done.stderr
    is_first = any(monitored.glob("*/param_0-1.csv"))
    module = ("msprobe.pytorch.monitor.anomaly_analyse" if is_first
              else "msprobe.core.monitor.anomaly_processor")
    python = upstream_python("1.2.2" if is_first else "26.2.0")
    done = run([python, "-W", "ignore", "-m", module, "-d", alerts, "-k", "1000"], timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    theirs = json.loads((alerts / "anomaly_analyse.json").read_text())
    ours = json.loads((out / "sorted" / "anomaly_analyse.json").read_text())
    assert len(theirs) > 10 and ours == theirs
    # Kinds that upstream does not know stand first there.
    known = ("actv", "actv_grad", "pre_grad", "post_grad", "acc_grad", "exp_avg", "exp_avg_sq")
    orders = [[key for key, record in found.items()
               if record["tag_name"].split("/")[-1] in known] for found in (theirs, ours)]
    assert len(orders[0]) > 10 and orders[0] == orders[1]
