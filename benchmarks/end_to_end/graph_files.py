"""Time, peak memory and size of files for viewers of graphs, beside upstream's own.

    python benchmarks/end_to_end/graph_files.py [--build N] [--compare N] [--upstream]

Two recordings of a transformer of modules and APIs are generated (fixed seed): N nodes a side, each
with two inputs, a result and a call stack; the target has noise in the last digits and one wrong
layer. Before a figure is printed, the database must have every node, and the comparison must name
that layer. --upstream also runs releases 1.2.2 and 26.2.0 on the same recordings.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path

import overhead
import report_speed
import tools_under_test as tut

APIS = ("Functional.layer_norm", "Functional.linear", "Tensor.view", "Torch.matmul",
        "Functional.softmax", "Tensor.__add__", "Functional.gelu")


def names(nodes: int) -> dict[str, str | None]:
    """construct.json of about so many nodes: layers of three modules with seven APIs each."""
    construct: dict[str, str | None] = {}
    model = "Module.model.Model.forward.0"
    calls = dict.fromkeys(APIS, 0)
    for layer in range((nodes - 1) // (3 + 2 * len(APIS))):
        top = f"Module.model.layers.{layer}.Layer.forward.0"
        for part in ("attention.Attention", "mlp.Mlp"):
            inner = f"Module.model.layers.{layer}.{part}.forward.0"
            for api in APIS:
                construct[f"{api}.{calls[api]}.forward"] = inner
                calls[api] += 1
            construct[inner] = top
        construct[top] = model
    construct[model] = None
    return construct


def record(folder: Path, nodes: int, noise: float) -> int:
    """Writes one side and returns its number of nodes."""
    folder.mkdir(parents=True)
    rng, construct = random.Random(5), names(nodes)
    wrong = len(construct) // 2 if noise else -1
    frames = [f"File /home/user/model.py, line {{}}, in forward_{i}, \n y = self.part(x)"
              for i in range(12)]
    (folder / "construct.json").write_text(json.dumps(construct, indent=1))
    stacks = {name: [frame.format(10 + i % 50) for frame in frames]
              for i, name in enumerate(construct)}
    (folder / "stack.json").write_text(json.dumps(stacks, indent=1))
    with (folder / "dump.json").open("w") as out:
        out.write('{"task": "statistics", "level": "mix", "framework": "pytorch", '
                  '"dump_data_dir": null, "data": {')
        for i, name in enumerate(construct):
            factors = (1, 1, 1.5 if i == wrong else 1)
            values = [report_speed.tensor(rng, noise, factor) for factor in factors]
            out.write(f'{"," if i else ""}\n"{name}": {{"input_args": [{values[0]}, {values[1]}], '
                      f'"input_kwargs": {{}}, "output": [{values[2]}]}}')
        out.write("}}")
    return len(construct)


def sides(folder: Path, nodes: int) -> tuple[Path, Path, int]:
    """Target and golden, made when missing, and the number of nodes of each."""
    pair = folder / str(nodes) / "target", folder / str(nodes) / "golden"
    for side, noise in zip(pair, (1e-8, 0.0), strict=True):
        if not (side / "dump.json").exists():
            record(side, nodes, noise)
    return *pair, len(names(nodes))


def check(path: Path, count: int, is_pair: bool) -> None:
    """Ends the benchmark unless the database holds every node and the wrong one is an error."""
    with sqlite3.connect(path) as database:
        [(rows,)] = database.execute("SELECT count(*) FROM tb_nodes")
        errors = database.execute("SELECT node_name FROM tb_nodes WHERE precision_index = 1 "
                                  "ORDER BY node_order").fetchall()
    expected = (count + 1) * (2 if is_pair else 1)  # and the root
    if rows != expected or len(errors) != (1 if is_pair else 0):
        raise SystemExit(f"{path}: {rows} nodes, {len(errors)} errors (expected {expected} and "
                         f"{int(is_pair)})")


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and MiB at the peak. The peak that wait4() knows would be at least that
    of this process, which the child begins as; so it is read while the child runs."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak, status = 0, Path(f"/proc/{child.pid}/status")
    while child.poll() is None:
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
        peak = int(found.group(1)) if found else peak
        time.sleep(0.002)
    seconds = time.perf_counter() - began
    if child.returncode != 0:
        raise SystemExit(f"{command}: status {child.returncode}")
    return seconds, peak / 1024


def bytes_in(out: Path) -> int:
    """Of all result files."""
    return sum(path.stat().st_size for path in out.iterdir())


def measure(plumb: str, paths: list[Path], count: int, file_type: str, out: Path) -> dict:
    """Median of seven runs."""
    times: list[float] = []
    peak = 0.0
    for _ in range(7):
        shutil.rmtree(out, ignore_errors=True)
        seconds, peak = run(
            [plumb, "graph", *map(str, paths), "-o", str(out), "--file_type", file_type])
        times.append(seconds)
    for path in out.glob("*.db"):
        check(path, count, len(paths) > 1)
    return {"tool": "plumbline", "file_type": file_type,
            "median_s": round(statistics.median(times), 3), "best_s": round(min(times), 3),
            "peak_mib": round(peak), "file_mib": round(bytes_in(out) / 2**20, 1)}


def measure_upstream(tool: str, paths: list[Path], out: Path) -> dict:
    """One run."""
    shutil.rmtree(out, ignore_errors=True)
    program = str(Path(tut.python_of(tool)).with_name("msprobe"))
    if tool == "upstream-1.2.2":
        request = out.parent / "compare.json"
        request.write_text(json.dumps(dict(zip(("npu_path", "bench_path"), map(str, paths),
                                               strict=False))))
        command = [program, "-f", "pytorch", "graph", "-i", str(request), "-o", str(out)]
    else:
        command = [program, "graph_visualize", "-tp", str(paths[0]), "-o", str(out)]
        command += ["-gp", str(paths[1])] if len(paths) > 1 else []
    seconds, peak = run(command)
    return {"tool": tool, "median_s": round(seconds, 2), "peak_mib": round(peak),
            "file_mib": round(bytes_in(out) / 2**20, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=int, default=20_000)
    parser.add_argument("--compare", type=int, default=7_789)
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--upstream", action="store_true")
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/graph_files")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    about, out = overhead.machine(), args.dumps / "out"
    results = []
    for work, nodes in (("build", args.build), ("compare", args.compare)):
        target, golden, count = sides(args.dumps, nodes)
        paths = [target] if work == "build" else [target, golden]
        runs = [measure(args.plumb, paths, count, kind, out) for kind in ("db", "vis")]
        if args.upstream:
            runs += [measure_upstream(tool, paths, out)
                     for tool in ("upstream-1.2.2", "upstream-26.2.0")]
        for figures in runs:
            results.append({"benchmark": "graph_files", "work": work, "nodes": count, **figures})
            print(json.dumps(results[-1]), flush=True)
    overhead.append_json(args.json, about, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
