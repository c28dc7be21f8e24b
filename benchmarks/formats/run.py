"""Compares plumbline's dump.json writer and reader with Python's json on the same file.

    python3 benchmarks/formats/run.py build/release/benchmarks/formats/formats_bench

Prints one JSON line per case. Stops with an error, before any time is printed, if Python's own
text of the same data differs by a byte.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SAMPLES = 7


def median_ms(function) -> float:
    times = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> int:
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "dump.json"
        output = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
        text = path.read_text()
        data = json.loads(text)
        if json.dumps(data, indent=1) != text:
            print("run.py: Python spells the same data differently", file=sys.stderr)
            return 1
        copy = pathlib.Path(work) / "copy.json"

        def write() -> None:
            # As upstream does: streamed into a file.
            with open(copy, "w") as file:
                json.dump(data, file, indent=1)

        python = {
            "dump_json_write": median_ms(write),
            "dump_json_read": median_ms(lambda: json.loads(path.read_text())),
        }
        for line in output.splitlines():
            case = json.loads(line)
            if case["case"] in python:
                case["python_ms"] = round(python[case["case"]], 3)
                case["python_over_plumbline"] = round(case["python_ms"] / case["median_ms"], 1)
            print(json.dumps(case))
    return 0


if __name__ == "__main__":
    sys.exit(main())
