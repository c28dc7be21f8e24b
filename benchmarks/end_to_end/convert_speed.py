"""Speed of plumb convert next to a plain copy of the same files.

    python benchmarks/end_to_end/convert_speed.py [--gb 1] [--runs 8] [--plumb PROGRAM]

Dump files of 16 to 64 MB are made (fixed seed), half of them NC1HWC0 and half FRACTAL_NZ, float16
and float32, with padding. Each run copies them with cp and converts them to NCHW, both into an
empty directory and with the files in the page cache. Before a time is printed, every array must
have the elements that the dumps were made of. Prints one JSON line; `peak_mib` is the largest
resident memory of the conversion, mapped dumps included, `anonymous_mib` what it allocated.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import overhead
import report_speed
import tools_under_test as tut

sys.path.insert(0, str(tut.ROOT / "tests" / "python"))
import device_dumps

MEGABYTE = 1_000_000


def image(dtype: str, megabytes: int) -> tuple[device_dumps.Tensor, numpy.ndarray]:
    """An NC1HWC0 tensor with 250 of 256 channels in use."""
    side = 56
    batch = max(1, megabytes * MEGABYTE // (256 * side * side * numpy.dtype(dtype).itemsize))
    random = numpy.random.default_rng(batch)
    array = random.standard_normal((batch, 250, side, side), dtype=numpy.float32).astype(dtype)
    padded = numpy.zeros((batch, 256, side, side), dtype)
    padded[:, :250] = array
    device = padded.reshape(batch, 16, 16, side, side).transpose(0, 1, 3, 4, 2)
    return device_dumps.Tensor(numpy.ascontiguousarray(device).tobytes(),
                               device_dumps.CODES[dtype], device.shape,
                               device_dumps.FORMATS["NC1HWC0"], array.shape), array


def matrix(dtype: str, megabytes: int) -> tuple[device_dumps.Tensor, numpy.ndarray]:
    """A FRACTAL_NZ tensor whose last rows and columns are padding."""
    columns = 2048
    rows = megabytes * MEGABYTE // (columns * numpy.dtype(dtype).itemsize) // 16 * 16
    random = numpy.random.default_rng(rows)
    array = random.standard_normal((rows - 3, columns - 7), dtype=numpy.float32).astype(dtype)
    padded = numpy.zeros((rows, columns), dtype)
    padded[:rows - 3, :columns - 7] = array
    device = padded.reshape(rows // 16, 16, columns // 16, 16).transpose(2, 0, 1, 3)
    return device_dumps.Tensor(numpy.ascontiguousarray(device).tobytes(),
                               device_dumps.CODES[dtype], device.shape,
                               device_dumps.FORMATS["FRACTAL_NZ"], array.shape), array


def make(folder: Path, gigabytes: float) -> dict[str, Path]:
    """Dump files of that many bytes; for each the array that it must become."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "golden").mkdir(parents=True)
    kinds = []
    for layout in (image, matrix):
        for dtype, megabytes in (("float16", 16), ("float32", 64)):
            tensor, array = layout(dtype, megabytes)
            golden = folder / "golden" / f"{layout.__name__}_{dtype}.npy"
            numpy.save(golden, array)
            kinds.append((device_dumps.Dump(outputs=[tensor]).bytes(), golden))
    expected, written = {}, 0
    while written < gigabytes * 1e9:
        content, golden = kinds[len(expected) % len(kinds)]
        name = f"Op.n{len(expected)}.1.2.{1700000000000000 + len(expected)}"
        (folder / "in").mkdir(exist_ok=True)
        (folder / "in" / name).write_bytes(content)
        expected[name] = golden
        written += len(content)
    return expected


def check(out: Path, expected: dict[str, Path]) -> None:
    """Every array is what its dump was made of."""
    arrays = {golden: numpy.load(golden) for golden in set(expected.values())}
    for name, golden in expected.items():
        [path] = out.glob(f"{name}.output.0.*.npy")
        array = numpy.load(path, mmap_mode="r")
        if array.dtype != arrays[golden].dtype or not numpy.array_equal(
                array.reshape(arrays[golden].shape), arrays[golden]):
            raise SystemExit(f"wrong answer: {path}")


def timed(command: list[str], out: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of one run into an empty directory."""
    shutil.rmtree(out, ignore_errors=True)
    return report_speed.run(command)[:2]


def memory_of(command: list[str], out: Path) -> tuple[float, float]:
    """Largest resident and largest anonymous memory of one run in MiB, by samples: what wait4
    tells includes the memory of this process, from before the program was started in its place."""
    shutil.rmtree(out, ignore_errors=True)
    resident = anonymous = 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            text = Path(f"/proc/{process.pid}/status").read_text()
            values = dict(line.split(":", 1) for line in text.splitlines())
            if values["Name"].strip() == "plumb":
                resident = max(resident, int(values.get("VmHWM", "0").split()[0]))
                anonymous = max(anonymous, int(values.get("RssAnon", "0").split()[0]))
            time.sleep(0.005)
    return resident / 1024, anonymous / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=1)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--plumb", default=str(Path(sys.executable).with_name("plumb")))
    parser.add_argument("--dumps", type=Path, default=tut.ROOT / "build/bench/convert_speed")
    parser.add_argument("--json", type=Path, help="append a JSON line here")
    args = parser.parse_args()
    expected = make(args.dumps, args.gb)
    source, copy, out = args.dumps / "in", args.dumps / "copy", args.dumps / "out"
    convert = [args.plumb, "convert", "-d", str(source), "-out", str(out), "-f", "NCHW"]
    copies, conversions = [], []
    command = ["cp", "-r", "--reflink=never", str(source), str(copy)]
    # In turns, each first every other time: memory that was given back in between is slow to get
    # again on virtual machines, whoever asks for it.
    for run in range(args.runs + 1):
        turns = [(copies, command, copy), (conversions, convert, out)]
        for times, words, target in turns if run % 2 else reversed(turns):
            times.append(timed(words, target))
    del copies[0], conversions[0]  # they warmed up
    check(out, expected)
    size = sum(path.stat().st_size for path in source.iterdir())
    copied, copied_cpu = map(statistics.median, zip(*copies, strict=True))
    converted, converted_cpu = map(statistics.median, zip(*conversions, strict=True))
    peak, anonymous = memory_of(convert, out)
    result = {"benchmark": "convert_speed", "files": len(expected), "bytes": size,
              "copy_s": round(copied, 3), "convert_s": round(converted, 3),
              "copy_cpu_s": round(copied_cpu, 3), "convert_cpu_s": round(converted_cpu, 3),
              "best_copy_s": round(min(copies)[0], 3),
              "best_convert_s": round(min(conversions)[0], 3),
              "share_of_copy_speed": round(copied / converted, 3),
              "best_share": round(min(copies)[0] / min(conversions)[0], 3), "peak_mib": round(peak),
              "anonymous_mib": round(anonymous), "largest_tensor_mib": 61}
    shutil.rmtree(args.dumps)
    print(json.dumps(result), flush=True)
    overhead.append_json(args.json, overhead.machine(), [result])
    return 0


if __name__ == "__main__":
    sys.exit(main())
