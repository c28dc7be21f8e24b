"""`plumb data2db`: the database is read with Python's sqlite3 and compared with what Python's json
finds in the same dump.json files.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rank_dumps import tensor
from recording import PLUMB, config, run
from trend_dumps import DATABASE, api, query, tags, tensors, tree, trend, write

STATISTICS = ("Norm", "Max", "Min", "Mean")

# The worked example of the format: one root with a child, one call outside.
RECORD = """
import os, sys, torch
from plumbline.pytorch import PrecisionDebugger

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2, bias=False)
    def forward(self, x):
        return torch.nn.functional.relu(self.fc(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blk = Block()
    def forward(self, x):
        return self.blk(x)

model = Net()
with torch.no_grad():
    model.blk.fc.weight.copy_(torch.tensor([[1.0, 2.0], [-3.0, 0.5]]))
debugger = PrecisionDebugger(config_path=sys.argv[1])
for step in range(3):
    debugger.start(model=model)
    for micro in range(int(sys.argv[2])):
        loss = model(torch.tensor([[1.0, 2.0 + step + 10 * micro]])).sum()
        loss.backward()
    debugger.stop()
    debugger.step()
"""


def plumb(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs `plumb`."""
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60, **options)


def convert(data: Path, *words: object) -> Path:
    """Runs `plumb data2db` and returns the path of the database."""
    output = data.parent / "db"
    done = plumb("data2db", "--db", output, "--data", data, *words)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in output.iterdir()) == [DATABASE]
    return output / DATABASE


def metric_of(name: str) -> str:
    """The metric of an entry that is not recomputed."""
    return next(m for m in ("forward", "backward", "parameters_grad") if m in name.split("."))


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The worked example, three steps of two equal ranks."""
    folder = tmp_path_factory.mktemp("worked")
    run(RECORD, config(folder, level="mix"), 1)
    for step in range(3):
        own = folder / "out" / f"step{step}" / "rank"
        shutil.copytree(own, own.with_name("rank1"))
        own.rename(own.with_name("rank0"))
    return folder / "out"


def test_every_tensor_of_the_worked_example_is_a_row(worked: Path) -> None:
    database = convert(worked, "--micro_step", "false")
    expected: Counter[str] = Counter()
    values: dict[str, list[float]] = {}
    for path in sorted(worked.glob("step*/rank*/dump.json")):
        for name, entry in json.loads(path.read_text())["data"].items():
            found = tensors(entry)
            expected[metric_of(name)] += len(found)
            values.setdefault(metric_of(name), []).extend(
                t[key] for t in found for key in STATISTICS)
    assert min(expected.values()) >= 6  # three metrics, each in all steps and ranks
    rows = trend(database)
    assert Counter(key[2] for key in rows) == expected
    for metric, numbers in values.items():
        stored = [v for key, row in rows.items() if key[2] == metric for v in row]
        assert sorted(stored) == sorted(numbers)
    assert {key[:2] for key in rows} == {(rank, step) for rank in (0, 1) for step in range(3)}
    weight = (0, 2, "forward", "Module.blk.fc.Linear.parameters.weight", 0)
    assert rows[weight][1:] == (2.0, -3.0, 0.125)
    assert (1, 0, "parameters_grad", "Module.blk.fc.Linear.weight", 0) in rows
    assert query(database, "SELECT * FROM global_stats") == [
        (1, 0, 2, *["norm,max,min,mean"] * 4)]
    assert query(database, "PRAGMA foreign_key_check") == []
    assert query(database, "PRAGMA integrity_check") == [("ok",)]


def test_the_schema_is_upstreams(worked: Path) -> None:
    database = convert(worked, "--micro_step", "false")
    columns = {table: [row[1] for row in query(database, f"PRAGMA table_info({table})")]
               for (table,) in query(database, "SELECT name FROM sqlite_master WHERE type='table'")
               if table != "sqlite_sequence"}
    assert columns == {
        "monitoring_targets": ["target_id", "target_name", "vpp_stage", "micro_step"],
        "monitoring_metrics": ["metric_id", "metric_name"],
        "monitoring_tags": ["tag_id", "tag_name", "category", "metric_id"],
        "tag_target_mapping": ["tag_id", "target_id"],
        "trend_data": ["rank", "step", "target_id", "metric_id", "norm", "max", "min", "mean"],
        "global_stats": ["max_rank", "min_step", "max_step", "forward", "backward", "recompute",
                         "parameters_grad"]}
    assert query(database, "SELECT * FROM monitoring_metrics") == [
        (1, "forward"), (2, "backward"), (3, "recompute"), (4, "parameters_grad")]
    assert query(database, "PRAGMA journal_mode") == [("delete",)]


def test_tags(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out / "step0" / "rank0", {
        "Module.layers.3.mlp.fc.Linear.forward.0": {
            **api(tensor()), "parameters": {"weight": tensor()}},
        "Module.0.net.layers.1.layers.2.B.forward.0": api(tensor()),
        "Functional.linear.0.forward": api(tensor(), bias=tensor())})
    database = convert(out, "--micro_step", "false")
    module = {("Module", "default"), ("layers.3", "layer"), ("mlp.fc.Linear", "module")}
    assert tags(database, "Module.layers.3.mlp.fc.Linear.input.0") == {
        ("input.0", "index"), *module}
    assert tags(database, "Module.layers.3.mlp.fc.Linear.parameters.weight") == {
        ("parameters.weight", "index"), ("parameters", "default"), *module}
    assert tags(database, "Module.0.net.layers.1.layers.2.B.output.0") == {
        ("output.0", "index"), ("Module", "default"), ("net", "module"), ("layers.1", "layer"),
        ("layers.2", "layer"), ("B", "module")}
    assert tags(database, "Functional.linear.kwargs.bias") == {
        ("kwargs.bias", "index"), ("Functional.linear", "function")}


def test_values_that_no_chart_can_show(tmp_path: Path) -> None:
    values = [math.inf, -math.inf, 1e12, -1e12, math.nan, None, 3, True, "7.5", 1e9, 10**30]
    expected = [1000000001, -1000000001, 1e9, -1e9, None, None, 3, 1, 7.5, 1e9, 1e9]
    out = tmp_path / "out"
    write(out / "step0" / "rank", {"Torch.add.0.forward": api(*[
        {**tensor(), "Max": value} for value in values])})
    rows = trend(convert(out, "--micro_step", "false"))
    assert [rows[0, 0, "forward", f"Torch.add.input.{i}", 0][1]
            for i in range(len(values))] == expected


def test_nested_tensors_keywords_and_every_dtype(tmp_path: Path) -> None:
    out = tmp_path / "out"
    double = {**tensor(), "dtype": "torch.float64"}
    write(out / "step4" / "rank2", {
        "Torch.cat.7.forward": api([double, [tensor()]], key={"a": tensor()}),
        "Torch.cat.7.backward": {"input": [tensor()], "output": [None, [tensor()]]},
        "Cell.fc.Dense.forward.1": {**api(), "parameters": {"w": [tensor()], "none": None},
                                    "is_recompute": True},
        "Cell.fc.Dense.parameters_grad.1": {"w": [tensor()], "b": tensor()},
        "Module.forward.Linear.backward.0": {"input": [tensor()], "output": []},
        "optimizer": api(tensor())})
    database = convert(out, "--micro_step", "false")
    assert sorted(key[2:] for key in trend(database)) == sorted([
        ("forward", "Torch.cat.input.0.0", 7), ("forward", "Torch.cat.input.0.1.0", 7),
        ("forward", "Torch.cat.kwargs.key.a", 7), ("forward", "Torch.cat.output.0", 7),
        ("backward", "Torch.cat.input.0", 7), ("backward", "Torch.cat.output.1.0", 7),
        ("recompute", "Cell.fc.Dense.output.0", 1),
        ("recompute", "Cell.fc.Dense.parameters.w", 1),
        ("parameters_grad", "Cell.fc.Dense.w", 1), ("parameters_grad", "Cell.fc.Dense.b", 1),
        ("backward", "Module.forward.Linear.input.0", 0)])
    assert query(database, "SELECT max_rank, min_step, max_step FROM global_stats") == [(2, 4, 4)]
    assert ("input.0.1.0", "index") in tags(database, "Torch.cat.input.0.1.0")


def test_processes_come_after_the_ranks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("rank3", "rank", "proc100", "proc99"):
        write(out / "step0" / name, {"Torch.add.0.forward": api(tensor(float(len(name))))})
    write(out / "step1" / "proc7", {"Torch.add.0.forward": api(tensor())})
    write(out / "step1" / "rank4_812", {"Torch.add.0.forward": api(tensor())})
    (out / "step2").mkdir()
    (out / "step1" / "rank9").mkdir()
    done = plumb("data2db", "--db", tmp_path, "--data", out, "--micro_step", "false")
    assert done.returncode == 0
    assert "step 0: proc99 is rank 4" in done.stdout and "proc100 is rank 5" in done.stdout
    assert "rank4_812: left out" in done.stderr
    assert "rank9: no dump.json" in done.stderr and "step2: no rank directory" in done.stderr
    rows = trend(tmp_path / DATABASE)
    assert {key[:2] for key in rows} == {(0, 0), (3, 0), (4, 0), (5, 0), (0, 1)}
    assert rows[4, 0, "forward", "Torch.add.input.0", 0][1] == 6
    assert query(tmp_path / DATABASE, "SELECT max_rank FROM global_stats") == [(5,)]


def test_mapping_replaces_texts_in_file_order(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out / "step0" / "rank0", {"Module.a.a.Linear.forward.0": api(tensor())})
    mapping = tmp_path / "names.json"
    mapping.write_text('{"a.a": "b", "b.": "layers.3."}')
    rows = trend(convert(out, "--micro_step", "false", "--mapping", mapping))
    assert {key[3] for key in rows} == {"Module.layers.3.Linear.input.0",
                                        "Module.layers.3.Linear.output.0"}


def test_micro_steps_of_a_recording(tmp_path: Path) -> None:
    run(RECORD, config(tmp_path, level="mix"), 2)
    database = convert(tmp_path / "out")
    rows = trend(database)
    inputs = {key[1]: row[1] for key, row in rows.items()
              if key[2:4] == ("forward", "Module.blk.Block.input.0")}
    assert inputs == {0: 2, 1: 12, 2: 3, 3: 13, 4: 4, 5: 14}  # 2 + step + 10 * micro step
    # Calls outside of the root, its gradients and every number are those of their micro step.
    for key in [("forward", "Tensor.sum.input.0"), ("backward", "Functional.linear.input.0"),
                ("forward", "Functional.relu.output.0"),
                ("backward", "Module.blk.fc.Linear.input.0")]:
        found = [k for k in rows if k[2:4] == key]
        assert {(k[1], k[4]) for k in found} == {(step, 0) for step in range(6)}, key
    files = list((tmp_path / "out").glob("step*/rank/dump.json"))
    count = sum(len(tensors(json.loads(path.read_text())["data"])) for path in files)
    assert len(rows) == count
    assert query(database, "SELECT min_step, max_step FROM global_stats") == [(0, 5)]


def test_micro_steps_follow_the_first_root(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out / "step5" / "rank0", *tree(2))
    write(out / "step5" / "rank1", *tree(3))
    write(out / "step9" / "rank0", *tree(1))
    rows = trend(convert(out))
    for (rank, step, _, target, _), row in rows.items():
        if rank == 0 and step < 2 and not target.endswith("output.0"):
            assert row[1] == step, target
    assert {key[1] for key in rows if key[0] == 0} == {0, 1, 3}  # rank 1 has three in step5
    assert {key[1] for key in rows if key[0] == 1} == {0, 1, 2}
    assert {key[4] for key in rows if "relu" in key[3]} == {0, 1}
    assert {key[4] for key in rows if "relu" not in key[3]} == {0}
    assert (0, 0, "forward", "Torch.rand.output.0", 0) in rows


def test_several_roots_turn_micro_steps_off(tmp_path: Path) -> None:
    out = tmp_path / "out"
    entries, parents = tree(2)
    for i in range(2):
        entries[f"Module.head.Head.forward.{i}"] = api(tensor(float(i)))
        parents[f"Module.head.Head.forward.{i}"] = None
    write(out / "step5" / "rank0", entries, parents)
    done = plumb("data2db", "--db", tmp_path, "--data", out)
    assert done.returncode == 0 and "2 outermost modules (Module.net" in done.stdout
    assert {key[1] for key in trend(tmp_path / DATABASE)} == {5}
    rows = trend(convert(out, "--micro_step", "True"))
    assert {key[1] for key in rows} == {0, 1}
    assert len(rows) == len(tensors(entries))


def test_counted_micro_steps_are_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    entries = {f"Functional.relu.{i}.forward": api(tensor(float(i))) for i in range(4)}
    parents = {f"Functional.relu.{i}.forward": [None, i // 2] for i in range(4)}
    write(out / "step0" / "rank", entries, {**parents, "megatron_micro_step_number": 2})
    write(out / "step1" / "rank", entries, {**parents, "megatron_micro_step_number": 2})
    rows = trend(convert(out))
    found = {key[1:]: row[1] for key, row in rows.items() if key[3].endswith("input.0")}
    name = ("forward", "Functional.relu.input.0")
    assert found == {(3 * s + m, *name, n): 2 * m + n
                     for s in (0, 1) for m in (0, 1) for n in (0, 1)}
    parents["Functional.relu.0.forward"] = [None, "first"]
    write(out / "step2" / "rank", entries, {**parents, "megatron_micro_step_number": 2})
    assert plumb("data2db", "--db", tmp_path, "--data", out).returncode == 5


def test_without_roots_there_is_one_micro_step(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for step in (3, 7):
        write(out / f"step{step}" / "rank",
              {f"Torch.add.{i}.forward": api(tensor()) for i in range(2)}, {})
    assert {(k[1], k[4]) for k in trend(convert(out))} == {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """One step of one rank."""
    write(tmp_path / "out" / "step0" / "rank0", {"Torch.add.0.forward": api(tensor())}, {})
    return tmp_path / "out"


@pytest.mark.parametrize(("words", "status", "message"), [
    (["--process_num", "0"], 2, "process_num must be a positive integer"),
    (["--process_num", "129"], 2, "Maximum supported process_num is 128"),
    (["--process_num", "two"], 2, "process_num must be a positive integer"),
    (["--format", "csv"], 2, "--format"),
    (["--format", "monitor"], 3, "no directory of a monitor"),
    (["--micro_step", "yes"], 2, "--micro_step"),
    (["--mapping", "missing.json"], 3, "missing.json"),
])
def test_wrong_options(small: Path, words: list[str], status: int, message: str) -> None:
    done = plumb("data2db", "--db", small.parent / "db", "--data", small, *words)
    assert done.returncode == status and message in done.stderr
    assert not (small.parent / "db" / DATABASE).exists()


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '{"": "x"}', "no", ""])
def test_mapping_that_is_none(small: Path, text: str) -> None:
    mapping = small.parent / "mapping.json"
    mapping.write_text(text)
    done = plumb("data2db", "--db", small.parent / "db", "--data", small, "--mapping", mapping)
    assert done.returncode == 5 and "mapping.json" in done.stderr
    assert not (small.parent / "db").exists()


def test_nothing_to_import(tmp_path: Path) -> None:
    def refused(data: Path, status: int, message: str) -> None:
        done = plumb("data2db", "--db", tmp_path / "db", "--data", data)
        assert done.returncode == status and message in done.stderr, done.stderr
        assert not (tmp_path / "db" / DATABASE).exists()

    refused(tmp_path / "missing", 3, "missing: no such directory")
    (tmp_path / "a").mkdir()
    refused(tmp_path / "a", 3, "no step directory")
    (tmp_path / "a" / "Nov21_19-41-30-rank0-abc").mkdir()
    refused(tmp_path / "a", 3, "no csv file")
    (tmp_path / "a" / "step0" / "rank0").mkdir(parents=True)
    refused(tmp_path / "a", 3, "rank0: no dump.json")
    write(tmp_path / "b" / "step0" / "rank0", {"Torch.add.0.forward": api(tensor())})
    refused(tmp_path / "b", 3, "construct.json: missing")
    write(tmp_path / "c" / "step0" / "rank0", {}, {})
    refused(tmp_path / "c", 3, "no recorded tensor")


def test_what_holds_both_becomes_both(small: Path) -> None:
    rank = small / "Nov21_19-41-30-rank0-3f9c1a2b"
    rank.mkdir()
    (rank / "grad_reduced_0-0.csv").write_text("vpp_stage,name,step,norm\n0,fc.weight,0,1.5\n")
    out = small.parent / "db"
    done = plumb("data2db", "--db", out, "--data", small)
    assert done.returncode == 0, done.stderr
    assert "monitor_data.trend.db: 1 targets, 1 rows (grad_reduced 1)" in done.stdout
    assert len(trend(out / DATABASE)) == 2
    [(norm,)] = query(out / "monitor_data.trend.db", "SELECT norm FROM trend_data")
    assert norm == 1.5
    for form, name in (("dump", DATABASE), ("monitor", "monitor_data.trend.db")):
        done = plumb("data2db", "--db", out / form, "--data", small, "--format", form)
        assert done.returncode == 0 and [p.name for p in (out / form).iterdir()] == [name]


@pytest.mark.parametrize("name", ["dump.json", "construct.json"])
@pytest.mark.parametrize("text", ["", "[]", "{", '{"data": 3}'])
def test_damaged_file_leaves_the_old_database(small: Path, name: str, text: str) -> None:
    database = convert(small)
    before = database.read_bytes()
    write(small / "step1" / "rank0", {"Torch.add.0.forward": api(tensor())}, {})
    (small / "step1" / "rank0" / name).write_text(text)
    done = plumb("data2db", "--db", database.parent, "--data", small)
    assert done.returncode == 5 and name in done.stderr, done.stderr
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [DATABASE]


def test_cut_dump_is_refused(small: Path) -> None:
    path = small / "step0" / "rank0" / "dump.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    done = plumb("data2db", "--db", small.parent / "db", "--data", small)
    assert done.returncode == 5 and "dump.json" in done.stderr
    assert list((small.parent / "db").iterdir()) == []


def test_existing_database_is_replaced(small: Path) -> None:
    database = convert(small)
    first = trend(database)
    database.write_text("no database")
    done = plumb("data2db", "--db", database.parent, "--data", small)
    assert done.returncode == 0 and "the existing database was replaced" in done.stderr
    assert trend(database) == first
    database.unlink()
    database.mkdir()
    assert plumb("data2db", "--db", database.parent, "--data", small).returncode == 2


def test_remains_of_a_killed_run_are_no_obstacle(small: Path) -> None:
    database = convert(small)
    expected = trend(database)
    for name in ("", "-journal", "-wal"):
        (database.parent / f".{DATABASE}.tmp{name}").write_bytes(database.read_bytes()[:5000])
    done = plumb("data2db", "--db", database.parent, "--data", small)
    assert done.returncode == 0, done.stderr
    assert trend(database) == expected


def test_links_are_not_followed(small: Path) -> None:
    victim = small.parent / "victim"
    victim.write_text("precious")
    (small.parent / "db").mkdir()
    database = small.parent / "db" / DATABASE
    database.symlink_to(victim)
    assert len(trend(convert(small))) == 2
    assert victim.read_text() == "precious" and not database.is_symlink()


def test_full_disk(small: Path) -> None:
    write(small / "step1" / "rank0", {f"Torch.add.{i}.forward": api(tensor())
                                      for i in range(2000)}, {})
    limit = 40_000
    done = plumb("data2db", "--db", small.parent / "db", "--data", small,
                 restore_signals=False,  # SIGXFSZ stays ignored: writing fails instead
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 6 and "cannot write the database" in done.stderr
    assert list((small.parent / "db").iterdir()) == []


def test_upstreams_command_line(small: Path) -> None:
    done = plumb("msprobe", "-f", "pytorch", "data2db", "--db", small.parent / "db",
                 f"--data={small}", "--micro_step", "True", "--process_num", "4")
    assert done.returncode == 0, done.stderr
    assert len(trend(small.parent / "db" / DATABASE)) == 2
    assert plumb("msprobe", "data2db", "--db", small.parent).returncode == 2
