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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="plumbline only, no upstream")
    args = parser.parse_args()
    out = ROOT / "build" / "bench" / time.strftime("%Y%m%d-%H%M%S.jsonl")
    own = ["--tool", "plumbline"] if args.quick else []
    commands = [[sys.executable, "-W", "ignore", f"benchmarks/end_to_end/{name}.py", *own,
                 "--json", str(out)] for name in ("overhead", "tiny_loop", "compare_speed")]
    subprocess.run(["cmake", "--preset", "release", "--log-level=WARNING"], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", "release"], cwd=ROOT, check=True)
    native = ROOT / "build" / "release" / "benchmarks"
    commands += [[str(path)] for path in sorted(native.glob("*_bench"))]
    failures = 0
    for command in commands:
        print("\n$", " ".join(command), flush=True)
        failures += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    print(f"\nresults: {out.relative_to(ROOT)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
