"""Frames, first paint, memory and size of the page of `plumb view`, beside their budgets.

    python benchmarks/end_to_end/view_page.py [--url URL] [--nodes N] [--json FILE]

Chromium draws in software, without a screen. Frames are those of two panes with 100,000 boxes each,
all in view; the first paint is that of a result of 1,000,000 nodes a side. Both are made in the
browser (web/dev), so that memory is counted from when they are there. URL: a page that `plumb view`
serves, whose first paint and memory are measured too. Last, `plumb view --html` writes two
recordings of N nodes a side into one file, which is opened from disk; its times have no budget.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import graph_files

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = ROOT / "build" / "web" / "dist"
MANY_BOXES = "layers=100&modules=10&calls=100&ranks=1"
MANY_NODES = "layers=1000&modules=10&calls=99&ranks=1"
# The budgets: milliseconds, MiB, KiB.
FRAME_MS, FIRST_PAINT_MS, MEMORY_MIB, BUNDLE_KIB = 33, 300, 300, 250
FILE_MB = 15
# What is measured: name, value, budget if there is one, unit.
Line = tuple[str, float, float | None, str]


def drive(kind: str, argument: str) -> dict[str, object]:
    """What web/tools/bench.mjs measured."""
    done = subprocess.run(["node", str(ROOT / "web/tools/bench.mjs"), kind, argument], check=True,
                          text=True, stdout=subprocess.PIPE, cwd=ROOT)
    measured: dict[str, object] = json.loads(done.stdout)
    if measured["faults"]:
        sys.exit(f"the page failed: {measured['faults']}")
    return measured


def bundle_kib() -> float:
    """What a browser fetches before it can show anything, packed."""
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in DIST.iterdir()) / 1024


def p95(measured: dict[str, object], name: str) -> float:
    """The 95th percentile of the frames of one movement."""
    times = measured[name]
    assert isinstance(times, dict)
    return float(times["p95"])


def fits(value: float, budget: float | None) -> bool:
    return budget is None or value <= budget


def file_lines(plumb: str, nodes: int, folder: Path) -> list[Line]:
    """Of a page with its data inside."""
    target, golden, count = graph_files.sides(folder, nodes)
    page = folder / "page.html"
    seconds, peak = graph_files.run([plumb, "view", str(target), str(golden), "--html", str(page)])
    opened = drive("file", str(page))
    if "first wrong call: " not in str(opened["answer"]):
        sys.exit(f"{page}: says {opened['answer']}, but one call is wrong")
    what = f"one file, {count:,} nodes a side"
    return [(f"{what}: size", page.stat().st_size / 1e6, FILE_MB, "MB"),
            (f"{what}: compared and written", seconds, None, "s"),
            (f"{what}: peak", peak, None, "MiB"),
            (f"{what}: first paint", float(str(opened["first_paint_ms"])), None, "ms"),
            (f"{what}: with all rows", float(str(opened["rows_ms"])), None, "ms"),
            (f"{what}: browser memory", float(str(opened["heap_bytes"])) / 2**20, MEMORY_MIB,
             "MiB")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="a page that plumb view serves")
    parser.add_argument("--nodes", type=int, default=100_000, help="a side, of the page in a file")
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--dumps", type=Path, default=ROOT / "build/bench/graph_files")
    parser.add_argument("--json", type=Path, help="append the measures to this file")
    args = parser.parse_args()
    if shutil.which("node") is None or not (ROOT / "web/node_modules").is_dir():
        print("view_page.py: left out, run tools/bootstrap.sh web first")
        return 0
    subprocess.run(["npx", "vite", "build", "--mode", "made", "--logLevel", "error"], check=True,
                   cwd=ROOT / "web")
    boxes = drive("made", MANY_BOXES)
    if float(str(boxes["boxes"])) < 200_000:
        sys.exit(f"only {boxes['boxes']} boxes were open, expected 200,000")
    nodes = drive("made", MANY_NODES)
    lines: list[Line] = [
        ("p95 frame, pan, 2 x 100,000 boxes in view", p95(boxes, "pan"), FRAME_MS, "ms"),
        ("p95 frame, zoom, the same", p95(boxes, "zoom"), FRAME_MS, "ms"),
        ("memory with them", float(str(boxes["heap_bytes"])) / 2**20, MEMORY_MIB, "MiB"),
        ("first paint, 2 x 1,000,000 nodes", float(str(nodes["first_paint_ms"])), FIRST_PAINT_MS,
         "ms"),
        ("page, packed", bundle_kib(), BUNDLE_KIB, "KiB")]
    if args.url:
        served = drive("served", args.url)
        lines += [("served: first paint after page.js", float(str(served["first_paint_ms"])),
                   FIRST_PAINT_MS, "ms"),
                  ("served: memory", float(str(served["heap_bytes"])) / 2**20, MEMORY_MIB, "MiB"),
                  ("served: p95 frame, pan", p95(served, "pan"), FRAME_MS, "ms")]
    lines += file_lines(args.plumb, args.nodes, args.dumps)
    for name, value, budget, unit in lines:
        verdict = "" if budget is None else f" (budget {budget})"
        print(f"{name:48} {value:8.1f} {unit:4}{verdict}{'' if fits(value, budget) else '  OVER'}")
        if args.json:
            with args.json.open("a") as out:
                out.write(json.dumps({"benchmark": "view_page", "what": name, "value": value,
                                      "unit": unit, "budget": budget}) + "\n")
    return 0 if all(fits(value, budget) for _, value, budget, _ in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
