"""The viewer's index: time, peak memory and size of making it, and how long and large answers are.

    python benchmarks/end_to_end/view_store.py [--nodes 1000000] [--ask PROGRAM]

Works on the recordings of graph_files.py: N nodes a side, each with two inputs, a result and a call
stack; one layer is wrong. Before a figure is printed, the first row of "first divergence" must name
that layer, every node must be found, and a search must find what a count over the names finds.
Upstream's figures stand beside ours where it has any: 20 to 24 s and 43 MiB for a comparison of
7,789 records, 15 to 17 s and 1.5 GiB for a graph of 20,000 nodes. Exits 1 over budget.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import graph_files
import overhead
import tools_under_test as tut

# Seconds, MiB at the peak, MiB on disk; None: no budget.
BUDGETS: dict[str, tuple[float, float | None, float | None]] = {
    "compare": (0.3, None, 5), "build": (0.5, 100, None), "large": (20, 2048, 400)}
UPSTREAM = {"compare": "20-24 s, 43 MiB", "build": "15-17 s, 1.5 GiB peak", "large": "none"}
MOST_MS, MOST_BYTES, MOST_QUERY_MS = 16, 20_000, 100


def ask(program: str, store: Path, question: str, **parameters: str | int) -> Any:
    """An answer, parsed."""
    words = [f"{key}={value}" for key, value in parameters.items()]
    done = subprocess.run([program, "ask", str(store), question, *words], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def rows_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows with their fields."""
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


def check(program: str, store: Path, names: dict[str, str | None], is_pair: bool) -> None:
    """Ends the benchmark unless the store says what the recordings hold."""
    meta = ask(program, store, "meta")
    nodes = sum(place["nodes"] for place in meta["places"])
    found = ask(program, store, "find", q="softmax side:target", limit=1)["total"]
    softmax = sum("softmax" in name for name in names)
    wrong = list(names)[len(names) // 2]
    first = rows_of(ask(program, store, "first")["rows"])
    named = [row["name"] for row in first if row["kind"] == "first"]
    if nodes != len(names) + 1 or found != softmax or named != ([wrong] if is_pair else []):
        raise SystemExit(f"{store}: {nodes} nodes, {found} of {softmax} found, first {named} "
                         f"(expected {len(names) + 1}, all, {wrong})")


def make(program: str, paths: list[Path], store: Path, repeats: int) -> dict[str, float]:
    """Median of the times, the largest peak."""
    runs = [graph_files.run([program, "build", str(store), *map(str, paths)])
            for _ in range(repeats)]
    return {"median_s": round(statistics.median(seconds for seconds, _ in runs), 3),
            "best_s": round(min(seconds for seconds, _ in runs), 3),
            "peak_mib": round(max(peak for _, peak in runs)),
            "file_mib": round(store.stat().st_size / 2**20, 1)}


def times(program: str, store: Path, question: str, *words: str) -> dict[str, Any]:
    """Milliseconds of the first and of later answers of one that is open, and their size."""
    done = subprocess.run([program, "time", str(store), "9", question, *words],
                          capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    return {"question": " ".join((question, *words)), "open_ms": round(figures["open_ms"], 1),
            "first_ms": figures["ms"][0], "median_ms": statistics.median(figures["ms"][1:]),
            "bytes": figures["bytes"]}


def questions(program: str, store: Path) -> list[dict[str, Any]]:
    """What a page asks most, each of a store that was just opened."""
    middle = ask(program, store, "first")["rows"]["rows"][0][0]
    asked = [("children", "node=0"), ("children", "node=1"), ("children", "node=1", "offset=20000"),
             ("node", f"node={middle}"), ("path", f"node={middle}"), ("first",),
             ("find", "q=softmax"), ("find", "q=forward"), ("find", "q=level:error"),
             ("find", "q=op:linear dtype:fp32 error>1e-7 mlp", "order=error")]
    return [times(program, store, *words) for words in asked]


def over_budget(work: str, figures: dict[str, Any]) -> bool:
    """Whether a figure is above what is required."""
    pairs = zip((figures["best_s"], figures["peak_mib"], figures["file_mib"]), BUDGETS[work],
                strict=True)
    return any(most is not None and figure > most for figure, most in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the large one")
    parser.add_argument("--ask", default=str(tut.ROOT / "build/release/benchmarks/view/ask_store"))
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/graph_files")
    parser.add_argument("--json", type=Path, help="append JSON lines here")
    args = parser.parse_args()
    works = [("compare", 7_789, 7), ("build", 20_000, 7), ("large", args.nodes, 1)]
    results: list[dict[str, Any]] = []
    failed = False
    for work, nodes, repeats in works:
        target, golden, count = graph_files.sides(args.dumps, nodes)
        paths = [target] if work == "build" else [target, golden]
        store = args.dumps / f"{work}.plv"
        figures = {"benchmark": "view_store", "work": work, "nodes": count,
                   **make(args.ask, paths, store, repeats), "upstream": UPSTREAM[work]}
        check(args.ask, store, graph_files.names(nodes), len(paths) > 1)
        failed |= over_budget(work, figures)
        results.append(figures)
        print(json.dumps(figures), flush=True)
    for answer in questions(args.ask, args.dumps / "large.plv"):
        is_query = answer["question"].startswith("find")
        failed |= answer["first_ms"] > (MOST_QUERY_MS if is_query else MOST_MS)
        failed |= answer["bytes"] > MOST_BYTES
        results.append({"benchmark": "view_store", "work": "ask", **answer})
        print(json.dumps(results[-1]), flush=True)
    overhead.append_json(args.json, overhead.machine(), results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
