"""Time and peak memory of merging the ranks of a parallel run, beside upstream's own.

    python benchmarks/end_to_end/graph_merge.py [--nodes N] [--replicas N,...] [--upstream]

A run of two tensor parallel ranks in a pipeline of two is generated (fixed seed), about N nodes on
each rank; more replicas are hard links to the first one's files. Before a figure is printed, every
merged recording must have all layers. What is in memory at a time is one replica, so that the peak
must not grow with their number, and time must grow with it alone. --upstream also runs release
26.2.0 on one replica.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
from pathlib import Path

import overhead
import tools_under_test as tut
from graph_files import run

sys.path.insert(0, str(tut.ROOT / "tests" / "python"))

from parallel_dumps import Split, write_run

SPLIT = Split(tp=2, pp=2)
NODES_PER_LAYER = 24  # that a rank records, forward and backward


def record(folder: Path, layers: int, replicas: int) -> Path:
    """The step's directory with all ranks."""
    first = folder / f"layers{layers}" / "step0"
    if not first.exists():
        write_run(first.parent, Split(tp=SPLIT.tp, pp=SPLIT.pp, layers=layers))
    if replicas == 1:
        return first
    step = folder / f"layers{layers}_replicas{replicas}" / "step0"
    places = itertools.product(range(SPLIT.tp), range(replicas), range(SPLIT.pp))
    for t, d, p in places:
        rank = step / f"rank{t + SPLIT.tp * (d + replicas * p)}"
        if rank.exists():
            continue
        rank.mkdir(parents=True)
        for file in (first / f"rank{SPLIT.rank(t, 0, p)}").iterdir():
            os.link(file, rank / file.name)
    return step


def words(replicas: int) -> list[str]:
    """The options that say how the run was split."""
    ranks = SPLIT.tp * SPLIT.pp * replicas
    return ["--rank_size", str(ranks), "--tp", str(SPLIT.tp), "--pp", str(SPLIT.pp),
            "--file_type", "json"]


def check(out: Path, layers: int, replicas: int) -> int:
    """Nodes of all merged recordings; ends the benchmark unless all layers are there."""
    nodes = 0
    ranks = sorted((out / "step0").iterdir())
    for rank in ranks:
        construct = json.loads((rank / "construct.json").read_text())
        nodes += len(construct)
        found = sum(name.endswith("TransformerLayer.forward.0") for name in construct)
        if found != layers:
            raise SystemExit(f"{rank}: {found} layers (expected {layers})")
    if len(ranks) != replicas:
        raise SystemExit(f"{out}: {len(ranks)} merged recordings (expected {replicas})")
    return nodes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=20_000, help="of each rank")
    parser.add_argument("--replicas", default="1,4,16")
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/graph_merge")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    layers = args.nodes // NODES_PER_LAYER * SPLIT.pp
    about, out = overhead.machine(), args.dumps / "out"
    tasks = [("plumbline", int(count)) for count in args.replicas.split(",")]
    for tool, replicas in tasks + ([("upstream-26.2.0", 1)] if args.upstream else []):
        source = record(args.dumps, layers, replicas)
        shutil.rmtree(out, ignore_errors=True)
        if tool == "plumbline":
            command = [args.plumb, "graph", str(source)]
        else:
            program = Path(tut.python_of(tool)).with_name("msprobe")
            command = [str(program), "graph_visualize", "-tp", str(source)]
        seconds, peak = run([*command, "-o", str(out), *words(replicas)])
        figures = {"benchmark": "graph_merge", "tool": tool, "ranks": 4 * replicas,
                   "merged_nodes": check(out, layers, replicas), "s": round(seconds, 2),
                   "peak_mib": round(peak)}
        print(json.dumps(figures), flush=True)
        overhead.append_json(args.json, about, [figures])
    return 0


if __name__ == "__main__":
    sys.exit(main())
