"""What a debugger costs a training in GRAPH_MODE: none, closed, statistics, tensors.

    python benchmarks/end_to_end/graph_mode.py [--steps N] [--work DIR]

Needs MindSpore; CPU. Every way is a process of its own, in turn with the others; the figure is the
median time of a step, with start(), stop() and step(), after two that are not counted. Losses must
be equal bit for bit, and every dump must hold every step, before a figure is printed. "closed" is a
debugger whose `step` selects none of them. Writing the tensors is MindSpore's own work, on CPU also
where statistics are wanted: `bytes` is what a step leaves behind. `end_s` is the time of the
process behind its last step, in which the statistics that are left are made.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 3
WARM_UP = 2
LAYERS, WIDTH, BATCH = 4, 1024, 128
WAYS: dict[str, dict[str, Any]] = {
    "none": {}, "closed": {"task": "statistics", "step": [1_000_000]},
    "statistics": {"task": "statistics"}, "tensors": {"task": "tensor"}}


def train(config: str, steps: int) -> None:
    """Child process: prints step times, losses and the clock at the end."""
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn

    from plumbline.mindspore import PrecisionDebugger

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)
    debugger = PrecisionDebugger(config) if config else None
    layers = [cell for _ in range(LAYERS) for cell in (nn.Dense(WIDTH, WIDTH), nn.ReLU())]
    net = nn.SequentialCell(*layers)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()),
                               nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    random = np.random.default_rng(0)
    data = [Tensor(random.standard_normal((BATCH, WIDTH)).astype("f4")) for _ in range(2)]
    times, losses = [], []
    for _ in range(WARM_UP + steps):
        begin = time.perf_counter()
        if debugger is not None:
            debugger.start(net)
        losses.append(float(step(*data).asnumpy()).hex())
        if debugger is not None:
            debugger.stop()
            debugger.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"times": times[WARM_UP:], "losses": losses, "end": time.time()}),
          flush=True)


def run(way: str, work: Path, steps: int) -> dict[str, Any]:
    """One process; its facts, with the time that it took to end and the bytes that it left."""
    dump = work / "dump"
    config = ""
    if WAYS[way]:
        path = work / f"{way}.json"
        path.write_text(json.dumps({"level": "L2", "dump_path": str(dump), **WAYS[way]}))
        path.chmod(0o640)
        config = str(path)
    command = [sys.executable, __file__, "--child", config, "--steps", str(steps)]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    ended = time.time()
    [line] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    facts: dict[str, Any] = json.loads(line)
    facts["end_s"] = ended - facts["end"]
    facts.update(left_behind(way, dump, WARM_UP + steps))
    return facts


def left_behind(way: str, dump: Path, steps: int) -> dict[str, Any]:
    """Rows or tensors, and bytes, per step; raises unless every step has them. Removes the dump."""
    counts, size = [], 0
    for step in range(steps):
        place = dump / f"rank_0/Net/0/{step}"
        tensors = list(place.glob("*.npy"))
        table = place / "statistic.csv"
        rows = len(table.read_text().splitlines()) - 1 if table.exists() else 0
        wants_rows, wants_tensors = way == "statistics", way == "tensors"
        if bool(rows) != wants_rows or bool(tensors) != wants_tensors:
            raise SystemExit(f"{way}: step {step} has {rows} rows and {len(tensors)} tensors")
        counts.append(rows or len(tensors))
        size += sum(path.stat().st_size for path in [*tensors, table] if path.exists())
    subprocess.run(["rm", "-rf", str(dump)], check=True)
    return {"count": min(counts), "bytes": size // steps}


def main() -> int:
    """Prints one JSON line per way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--work", help="where dumps go (a temporary directory without a dot)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        train(arguments.child, arguments.steps)
        return 0
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        for _ in range(ROUNDS):
            for way, facts in runs.items():
                facts.append(run(way, Path(work), arguments.steps))
    if len({tuple(facts["losses"]) for group in runs.values() for facts in group}) != 1:
        raise SystemExit("losses differ")
    middles = {way: statistics.median(t for facts in group for t in facts["times"])
               for way, group in runs.items()}
    for way, group in runs.items():
        print(json.dumps({
            "way": way, "step_ms": round(middles[way] * 1e3, 2),
            "ratio": round(middles[way] / middles["none"], 3),
            "end_s": round(statistics.median(facts["end_s"] for facts in group), 2),
            "per_step": group[0]["count"], "bytes": group[0]["bytes"]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
