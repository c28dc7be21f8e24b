"""Wall time and peak memory of `plumb watch`: twelve rules over a million statistics, and over
tensors.

    python benchmarks/end_to_end/watch_points.py [--records N] [--steps N] [--megabytes N]

Statistics are recorded calls, each with its input and its output; one gradient vanishes in the last
step. Tensors are arrays of a static graph of two steps, which are cached when the time is taken;
one element of the last one is infinite. Before a time is printed, the answer must name the one
tensor that is wrong, and the counts must be right. PLUMB names the program (default: the one beside
this Python).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RULES = ["tensor_overflow", "tensor_too_large(max_gt=1e4, abs_mean_gt=1e3)",
         "gradient_vanishing(abs_mean_lt=1e-9)", "tensor_all_zero", "tensor_range(max_min_gt=1e5)",
         "tensor_range(range_start_inclusive=-1e3, range_end_inclusive=1e3, range_percentage_lt=5)",
         "weight_change_too_large(abs_mean_update_ratio_gt=1e6)", "mean > 100", "l2norm > 1e6",
         "sd < 1e-30 and count > 1", "nan_count > 0 or inf_count > 0", "min < -50 and max > 50"]


def write_calls(root: Path, records: int, steps: int) -> str:
    """Writes the steps; returns the answer."""
    calls = records // steps // 2
    for step in range(steps):
        directory = root / f"step{step}" / "rank0"
        directory.mkdir(parents=True)
        with open(directory / "dump.json", "w", encoding="utf-8") as file:
            file.write('{"task": "statistics", "level": "L1", "framework": "pytorch", '
                       '"dump_data_dir": null, "data": {')
            for i in range(calls):
                wrong = step == steps - 1 and i == calls - 7
                size = 1e-11 if wrong else 1.5 + i % 7
                tensor = ('{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 8], '
                          f'"Max": {size}, "Min": {-size}, "Mean": 0.0, "Norm": {size * 2}, '
                          '"requires_grad": false}')
                file.write(f'{"," if i else ""}"Torch.add.{i}.backward": {{"input": [{tensor}], '
                           f'"output": [{tensor}]}}')
            file.write("}}")
    return (f"first hit: gradient_vanishing at step {steps - 1} rank 0 "
            f"Torch.add.{calls - 7}.backward input 0 ")


def write_tensors(root: Path, megabytes: int) -> str:
    """Writes two steps of arrays of 64 MiB; returns the answer."""
    values = np.random.default_rng(1).normal(size=1 << 24).astype(np.float32)
    files = max(megabytes // 128, 1)
    for step in range(2):
        directory = root / "rank_0" / "net" / "0" / str(step)
        directory.mkdir(parents=True)
        for i in range(files):
            if step == 1 and i == files - 1:
                values[-1] = np.inf
            np.save(directory / f"Parameter.fc{i}.weight.0.0.{1000 + i}.output.0.DefaultFormat.npy",
                    values)
    return (f"first hit: tensor_overflow at step 1 rank 0 fc{files - 1}.weight output 0 "
            "(1 NaN or Inf)")


def measure(program: str, root: Path, expected: str, jobs: int) -> tuple[float, str]:
    """Seconds of the second run, and what it said; exits where that is wrong."""
    words = [word for rule in RULES for word in ("--when", rule)]
    seconds, text = 0.0, ""
    for _ in range(2):
        begin = time.perf_counter()
        done = subprocess.run([program, "watch", root, *words, "--io", "both", "--jobs", str(jobs)],
                              text=True, capture_output=True, check=True)
        seconds, text = time.perf_counter() - begin, done.stdout
    if not text.startswith(expected):
        sys.exit(f"wrong answer (expected {expected}): {text}")
    return seconds, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--jobs", type=int, default=0)
    options = parser.parse_args()
    program = os.environ.get("PLUMB") or str(Path(sys.executable).with_name("plumb"))
    threads = options.jobs or os.cpu_count()
    with tempfile.TemporaryDirectory() as folder:
        expected = write_calls(Path(folder) / "calls", options.records, options.steps)
        seconds, text = measure(program, Path(folder) / "calls", expected, options.jobs)
        records = options.records // options.steps // 2 * 2 * options.steps
        if f"watched: {records} tensors" not in text:
            sys.exit(f"wrong counts (expected {records} tensors): {text}")
        peak_kb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(json.dumps({"case": "watch_statistics", "rules": len(RULES), "records": records,
                          "threads": threads, "seconds": round(seconds, 3),
                          "peak_mb": round(peak_kb / 1024, 1)}))
        expected = write_tensors(Path(folder) / "tensors", options.megabytes)
        seconds, _ = measure(program, Path(folder) / "tensors", expected, options.jobs)
        # The first step is read again as the earlier value.
        gigabytes = max(options.megabytes // 128, 1) * 3 * (1 << 26) / 1e9
        print(json.dumps({"case": "watch_tensors", "rules": len(RULES), "threads": threads,
                          "gigabytes": round(gigabytes, 2), "seconds": round(seconds, 3),
                          "gb_per_s": round(gigabytes / seconds, 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
