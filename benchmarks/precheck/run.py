"""Compares the comparator of the pre-check with the same formulas in NumPy, as upstream has them;
then the whole command with upstream's (whole_command.py).

    python3 benchmarks/precheck/run.py build/release/benchmarks/precheck/comparator_bench
        [--elements N] [--upstream PYTHON]

Prints one JSON line per standard: GB per CPU second of both, bytes of both sides counted, one
thread. Stops with an error before any time of NumPy is printed if a number differs. --elements is
how many the native program is timed with (default: 1 GiB of float16); NumPy is timed with 16 Mi
elements, of which it makes a temporary array per operation.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import whole_command

ELEMENTS = 1 << 24
SAMPLES = 3
SMALL, RTOL, ABSOLUTE_ATOL, BENCHMARK_ATOL = 2**-10, 2**-10, 2**-16, 1e-16


def ladder(bench: np.ndarray, device: np.ndarray) -> tuple[dict, np.ndarray, np.ndarray]:
    """The steps that every output takes; also its absolute and relative errors."""
    wide = (device / np.abs(device).max()).astype(np.float64)
    scaled = (bench / np.abs(bench).max()).astype(np.float64)
    error = np.abs(device - bench)
    relative = error / (np.abs(bench) + np.finfo(bench.dtype).eps)
    return {
        "cosine": float(wide @ scaled / (np.linalg.norm(wide) * np.linalg.norm(scaled))),
        "max_abs_error": float(error.max()),
        "hundredth": float(np.mean(relative < 0.01)),
        "thousandth": float(np.mean(relative < 0.001)),
    }, error, relative


def domains(bench: np.ndarray, device: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Small and normal values, both of finite elements."""
    finite = np.isfinite(device) & np.isfinite(bench.astype(device.dtype))
    small = (np.abs(bench) <= SMALL) & finite
    return small, finite & ~small


def benchmark(bench: np.ndarray, device: np.ndarray) -> dict:
    numbers, error, relative = ladder(bench, device)
    small, normal = domains(bench, device)
    n = bench.size
    kept = np.where(normal, relative, -1)
    squares = np.where(normal, error, 0).astype(np.float64) ** 2
    outside = n - normal.sum()
    difference = device - bench.astype(device.dtype)
    return numbers | {
        "abs_error_ratio": float((small & (error > BENCHMARK_ATOL)).sum() / small.sum()),
        "max_rel_error": float(kept.max()),
        "mean_rel_error": float(kept[kept >= 0].mean(dtype=np.float64)),
        "rmse": float(np.sqrt(squares.mean() * (n / (n - outside + 0.0001) + 0.0001))),
        "error_balance": float(abs(int((difference > 0).sum()) - int((difference < 0).sum())) / n),
    }


def absolute_threshold(bench: np.ndarray, device: np.ndarray) -> dict:
    numbers, error, relative = ladder(bench, device)
    small, normal = domains(bench, device)
    return numbers | {
        "rel_error_ratio": float((normal & (relative > RTOL)).sum() / normal.sum()),
        "abs_error_ratio": float((small & (error > ABSOLUTE_ATOL)).sum() / small.sum()),
    }


def ulp_compare(bench: np.ndarray, device: np.ndarray) -> dict:
    numbers, error, _ = ladder(bench, device)
    exponent = np.maximum(np.frexp(bench)[1] - 1, -14)
    exponent[bench == 0] = 0
    ulp = error * np.exp2((10 - exponent).astype(np.float32))
    return numbers | {
        "max_ulp": float(ulp.max()),
        "mean_ulp": float(ulp.mean(dtype=np.float64)),
        "ulp_proportion": float(np.mean(ulp > 1)),
    }


def binary_consistency(bench: np.ndarray, device: np.ndarray) -> dict:
    numbers, _, _ = ladder(bench, device)
    return numbers | {"error_rate": float(np.mean(bench != device))}


STANDARDS = {f.__name__: f for f in (benchmark, absolute_threshold, ulp_compare,
                                     binary_consistency)}


def compare_comparators(program: str, elements: str | None) -> int:
    random = np.random.default_rng(1)
    bench = random.standard_normal(ELEMENTS, dtype=np.float32)
    noise = 1 + random.standard_normal(ELEMENTS, dtype=np.float32) * np.float32(3e-4)
    device = (bench * noise).astype(np.float16)
    with tempfile.TemporaryDirectory() as work:
        paths = [pathlib.Path(work) / "device", pathlib.Path(work) / "bench"]
        device.tofile(paths[0])
        bench.tofile(paths[1])
        command = [program, *map(str, paths), *([elements] if elements else [])]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        case = json.loads(line)
        numbers = case.pop("numbers")
        seconds = []
        for _ in range(SAMPLES):
            start = time.process_time()
            expected = STANDARDS[case["standard"]](bench, device)
            seconds.append(time.process_time() - start)
        for name, value in expected.items():
            # Upstream divides each side in its own type before it takes the cosine.
            if not math.isclose(numbers[name], value, rel_tol=1e-7 if name == "cosine" else 1e-9):
                print(f"run.py: {case['standard']} {name}: {numbers[name]} in place of {value}",
                      file=sys.stderr)
                return 1
        case["numpy_gb_per_s"] = round(6e-9 * ELEMENTS / statistics.median(seconds), 3)
        case["plumbline_over_numpy"] = round(case["gb_per_s"] / case["numpy_gb_per_s"], 1)
        print(json.dumps(case))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="benchmarks of the pre-check")
    parser.add_argument("comparator_bench")
    parser.add_argument("--elements")
    parser.add_argument("--upstream", help="interpreter with mindstudio-probe 1.2.2")
    options = parser.parse_args()
    if status := compare_comparators(options.comparator_bench, options.elements):
        return status
    return whole_command.main(["--upstream", options.upstream] if options.upstream else [])


if __name__ == "__main__":
    sys.exit(main())
