"""A watched training killed again and again: every file parses and holds whole steps.

PLUMBLINE_MONITOR_KILLS is how many kills there are in all.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from pathlib import Path

from monitor_training import EVERYTHING, write_config
from recording import run

KILLS = int(os.environ.get("PLUMBLINE_MONITOR_KILLS", "6"))

# One process imports torch and forks a training for every kill.
PROGRAM = """
import os, random, signal, sys, time
import torch
sys.path.insert(0, sys.argv[4])
from monitor_training import TwoLayers, train
from plumbline.pytorch import TrainerMon
torch.set_num_threads(1)
drawn = random.Random(int(sys.argv[3]))

def child(config, out, pipe):
    os.environ["MONITOR_OUTPUT_DIR"] = out
    model = TwoLayers()
    optimizer = torch.optim.Adam(model.parameters())
    TrainerMon(config).set_monitor(model, optimizer=optimizer)
    train(model, optimizer, steps=100000, at_step=lambda step: os.write(pipe, b"."))

for kill in range(int(sys.argv[2])):
    config, out = f"{sys.argv[1]}/config{kill % 3}/monitor_config.json", f"{sys.argv[1]}/{kill}"
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        child(config, out, writer)
    os.close(writer)
    until, steps = drawn.randint(1, 60), 0
    while steps < until:
        told = os.read(reader, 1)
        if not told:
            sys.exit("the training ended by itself")
        steps += len(told)
    time.sleep(drawn.uniform(0, 0.004))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while data := os.read(reader, 4096):
        steps += len(data)
    print("steps", kill, steps)
"""
WAITING = 4  # steps that may still be on their way to the files


def whole_steps(path: Path, rows: int) -> set[int]:
    """The steps of one file; only the last line may be torn, only the last step be short."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    parsed = [line.rstrip("\n").split(",") for line in lines]
    assert all(len(line) == len(parsed[0]) for line in parsed), path
    counts: dict[int, int] = {}
    for line in parsed[1:]:
        for cell in line[3:]:
            float(cell)
        counts[int(line[2])] = counts.get(int(line[2]), 0) + 1
    short = [step for step, count in counts.items() if count != rows]
    assert short in ([], [max(counts, default=0)]), (path, counts)
    return set(counts) - set(short)


def steps_of_csv(directory: Path, kind: str, rows: int) -> set[int]:
    """The whole steps of all files of a kind."""
    found: set[int] = set()
    for path in directory.glob(f"{kind}_[0-9]*.csv"):
        found |= whole_steps(path, rows)
    return found


def steps_of_database(directory: Path, kind: str, rows: int) -> set[int]:
    """The steps of a metric; each must be whole."""
    metric = "param_origin" if kind == "param" else kind
    with sqlite3.connect(directory / "monitor_data.trend.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counts = dict(database.execute(
            "SELECT step, COUNT(*) FROM trend_data JOIN monitoring_metrics USING (metric_id) "
            "WHERE metric_name = ? GROUP BY step", (metric,)))
    assert set(counts.values()) == {rows}, (directory, kind, counts)
    return set(counts)


def test_what_a_killed_training_leaves(tmp_path: Path) -> None:
    for at, form in enumerate(({}, {"step_count_per_record": 8}, {"format": "sqlite"})):
        write_config(tmp_path / f"config{at}", **EVERYTHING, **form)
    seed = os.environ.get("PLUMBLINE_MONITOR_KILLS_SEED", "7")
    done = run(PROGRAM, tmp_path, KILLS, seed, Path(__file__).parent)
    told = {int(kill): int(steps) for kill, steps in re.findall(r"steps (\d+) (\d+)", done.stdout)}
    assert len(told) == KILLS, done.stdout + done.stderr
    rows = {"actv": 6, "actv_grad": 6, "grad_unreduced": 4, "grad_reduced": 4, "param": 4,
            "other": 4, "exp_avg": 4, "exp_avg_sq": 4}
    for kill, steps in told.items():
        [directory] = (tmp_path / str(kill)).glob("*-rank0-*")
        json.loads((directory / "names.json").read_text())
        steps_of = steps_of_database if kill % 3 == 2 else steps_of_csv
        for kind, count in rows.items():
            due = set(range(1 if kind.startswith("exp") else 0, steps - WAITING))
            missing = due - steps_of(directory, kind, count) if due else due
            assert not missing, f"seed {seed}, kill {kill}, {kind}: {steps} steps, no {missing}"
