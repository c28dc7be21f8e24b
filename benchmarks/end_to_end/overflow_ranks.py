"""Wall time and peak memory of `plumb overflow` on a synthetic step of many ranks.

    python benchmarks/end_to_end/overflow_ranks.py [--ranks N] [--records N] [--jobs N]

One rank differs from the others: it produces a NaN in its last tenth. The files of the others are
hard links of each other, so that the disk holds little. Before the time is printed, the answer must
name that rank and call. PLUMB names the program (default: the one beside this Python).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FILES = ("dump.json", "stack.json", "construct.json")


def tensor(value: float) -> dict[str, Any]:
    """A float32 tensor of one value."""
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
            "Min": value, "Mean": value, "Norm": abs(value), "requires_grad": False}


def entry_at(index: int, bad: bool) -> tuple[str, dict[str, Any]]:
    """Every tenth entry communicates."""
    name = "Distributed.all_reduce" if index % 10 == 9 else "Torch.add"
    result = math.nan if bad else 1.0
    return f"{name}.{index}.forward", {"input_args": [tensor(1.0), tensor(1.0)],
                                       "input_kwargs": {}, "output": [tensor(result)]}


def write_rank(directory: Path, records: int, bad_index: int | None) -> None:
    """The three files of one rank."""
    directory.mkdir(parents=True)
    entries = dict(entry_at(index, index == bad_index) for index in range(records))
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    texts = ({**head, "data": entries}, {"0": [list(entries), ["File a.py, line 1, in f, \n x"]]},
             dict.fromkeys(entries))
    for name, content in zip(FILES, texts, strict=True):
        (directory / name).write_text(json.dumps(content, indent=1))


def make_step(step: Path, ranks: int, records: int) -> str:
    """Writes the dumps and returns how the right answer starts."""
    bad_rank, bad_index = ranks // 3, records - records // 10
    write_rank(step / "rank0", records, None)
    for rank in range(1, ranks):
        directory = step / f"rank{rank}"
        if rank == bad_rank:
            write_rank(directory, records, bad_index)
            continue
        directory.mkdir()
        for name in FILES:
            os.link(step / "rank0" / name, directory / name)
    return f"first NaN/Inf: rank {bad_rank} Torch.add.{bad_index}.forward, output.0 is NaN"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=100)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=0)
    options = parser.parse_args()
    program = os.environ.get("PLUMB") or str(Path(sys.executable).with_name("plumb"))
    with tempfile.TemporaryDirectory() as folder:
        step = Path(folder) / "step0"
        expected = make_step(step, max(options.ranks, 2), options.records)
        begin = time.perf_counter()
        done = subprocess.run([program, "overflow", step, "-o", Path(folder) / "out", "--jobs",
                               str(options.jobs)], text=True, capture_output=True, check=True)
        seconds = time.perf_counter() - begin
    if not done.stdout.startswith(expected):
        print(f"wrong answer: {done.stdout}", file=sys.stderr)
        return 1
    peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps({"case": "overflow_ranks", "ranks": options.ranks,
                      "records": options.records, "threads": options.jobs or os.cpu_count(),
                      "seconds": round(seconds, 3), "peak_mb": round(peak_kb / 1024, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
