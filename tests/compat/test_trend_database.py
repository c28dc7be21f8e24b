"""plumb data2db against the data2db of upstream 26.2.0 on the same dumps.

Upstream leaves out tensors of other dtypes than float16, float32 and bfloat16, keyword arguments,
nested values and, with micro steps, calls outside of a root; plumbline's database holds these
besides (tests/python/test_data2db.py). Everything that upstream stores must be there, equal.
"""

from __future__ import annotations

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


def both(request: pytest.FixtureRequest, data: Path, micro_step: str) -> tuple[Path, Path]:
    """Upstream's and plumbline's database of the dump."""
    python = upstream_python("26.2.0")
    program = os.environ.get("PLUMB") or str(request.getfixturevalue("plumb"))
    for name, command in (("upstream", python.with_name("msprobe")), ("own", program)):
        done = run([command, "data2db", "--db", data.parent / name, "--data", data,
                    "--micro_step", micro_step], timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
    return data.parent / "upstream" / DATABASE, data.parent / "own" / DATABASE


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
    texts = []
    for path in both(request, tmp_path / "out", "true"):
        words = [" ".join(sql.replace("IF NOT EXISTS ", "").split()).replace("( ", "(")
                 .replace(" )", ")").replace(" (", "(")
                 for (sql,) in query(path, "SELECT sql FROM sqlite_master WHERE sql NOT NULL "
                                           "ORDER BY name")]
        texts.append([text.replace("monitoring_target(", "monitoring_targets(") for text in words])
    assert [t.lower() for t in texts[0]] == [t.lower() for t in texts[1]]
