"""Runs upstream's own compare over several pairs of dumps in one process.

    python run_upstream_compare.py REQUESTS.json

REQUESTS is a list of {"target": rank directory, "golden": rank directory, "out": directory}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msprobe.pytorch import compare


def main() -> int:
    for request in json.loads(Path(sys.argv[1]).read_text()):
        sides = {"npu_json_path": f"{request['target']}/dump.json",
                 "bench_json_path": f"{request['golden']}/dump.json",
                 "stack_json_path": f"{request['target']}/stack.json",
                 "is_print_compare_log": False}
        compare(sides, output_path=request["out"], stack_mode=True, auto_analyze=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
