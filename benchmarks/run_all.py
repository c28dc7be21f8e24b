"""Runs every benchmark and writes JSON lines to build/bench/<time>.jsonl.

python benchmarks/run_all.py [--quick]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks" / "end_to_end"))
import tools_under_test  # noqa: E402

NATIVE = ROOT / "build" / "release" / "benchmarks"
END_TO_END = ROOT / "benchmarks" / "end_to_end"

# Against upstream, with --tool and --json.
SIDE_BY_SIDE = ("overhead", "tiny_loop", "compare_speed")
# Everything else: what they print is the result.
OTHERS = [
    [sys.executable, str(END_TO_END / "overflow_ranks.py")],
    [sys.executable, str(END_TO_END / "watch_points.py")],
    [sys.executable, str(END_TO_END / "graph_dumps.py")],
    [sys.executable, "benchmarks/formats/run.py", str(NATIVE / "formats" / "formats_bench")],
    [str(NATIVE / "kernels" / "plumbline_bench_kernels")],
    [str(NATIVE / "tensor" / "layout_bench")],
    [str(NATIVE / "store" / "long_step_bench")],
]
MINDSPORE = ROOT / "build" / "mindspore" / "bin" / "python"  # tools/bootstrap.sh mindspore
if MINDSPORE.exists():
    OTHERS.append([str(MINDSPORE), str(END_TO_END / "graph_mode.py")])
else:
    print(f"graph_mode.py: left out, {MINDSPORE} is not there")


def comparisons(out: Path, quick: bool) -> list[list[str]]:
    """Whole comparisons of many rows, ranks and tensors; next to upstream where it can do them."""
    rows = [sys.executable, str(END_TO_END / "report_speed.py"), "--json", str(out)]
    ranks = [sys.executable, str(END_TO_END / "compare_ranks.py")]
    tensors = [sys.executable, str(END_TO_END / "tensor_pairs.py"), "--json", str(out),
               "--verdict-share", str(NATIVE / "compare" / "verdict_share")]
    if not quick:
        rows.append("--upstream")
        tensors.append("--upstream")
        ranks += ["--upstream", tools_under_test.python_of("upstream-1.2.2")]
    return [rows, ranks, tensors]


def prechecks(quick: bool) -> list[list[str]]:
    """The comparator next to NumPy, the whole command next to upstream's; reference functions."""
    words = [sys.executable, "benchmarks/precheck/run.py",
             str(NATIVE / "precheck" / "comparator_bench")]
    reference = [str(NATIVE / "precheck" / "reference_bench"), "2048" if quick else "8192"]
    if not quick:
        words += ["--upstream", tools_under_test.python_of("upstream-1.2.2")]
    return [words, reference]


def device_dumps(out: Path) -> list[list[str]]:
    """Dump files of devices: converted next to a plain copy, compared next to NumPy."""
    return [[sys.executable, str(END_TO_END / f"{name}.py"), "--json", str(out)]
            for name in ("convert_speed", "operator_pairs")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="plumbline only, no upstream")
    args = parser.parse_args()
    out = ROOT / "build" / "bench" / time.strftime("%Y%m%d-%H%M%S.jsonl")
    own = ["--tool", "plumbline"] if args.quick else []
    commands = [[sys.executable, "-W", "ignore", str(END_TO_END / f"{name}.py"), *own,
                 "--json", str(out)] for name in SIDE_BY_SIDE]
    subprocess.run(["cmake", "--preset", "release", "--log-level=WARNING"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "release"], cwd=ROOT, check=True)
    failures = 0
    whole = comparisons(out, args.quick) + prechecks(args.quick) + device_dumps(out)
    for command in commands + whole + OTHERS:
        print("\n$", " ".join(command), flush=True)
        failures += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    print(f"\nresults: {out.relative_to(ROOT)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
