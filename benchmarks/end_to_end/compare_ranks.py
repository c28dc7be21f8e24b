"""Wall time and peak memory of `plumb compare` on two steps of many ranks, next to upstream 1.2.2.

    python benchmarks/end_to_end/compare_ranks.py [--ranks N] [--rows N] [--format xlsx]
        [--upstream PYTHON] [--upstream-ranks N] [--ray PYTHON]

One rank differs: one of its calls gives three times the golden result. The files of the other ranks
are hard links of each other, so that the disk holds little; every rank is still read, compared and
written on its own. Before the time is printed, the answer must name that rank and call, and every
rank must have its result files with all rows. PLUMB names the program (default: the one beside
this Python). --upstream names an interpreter with mindstudio-probe 1.2.2, which takes the ranks one
after the other; its time is measured on --upstream-ranks of them. --ray names an interpreter with
Ray: the same command with --engine ray, whose output must be the same but for times; the memory is
that of all processes that it started, shared pages counted once.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

FILES = ("dump.json", "stack.json", "construct.json")
ROWS_PER_CALL = 4
UPSTREAM = ("import sys; from msprobe.pytorch import compare_distributed; "
            "compare_distributed(sys.argv[1], sys.argv[2], sys.argv[3], auto_analyze=False)")


def tensor(value: float) -> dict[str, Any]:
    """A float32 tensor of one value."""
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 1024], "Max": value,
            "Min": -value, "Mean": value / 7, "Norm": 3 * value, "requires_grad": False}


def entry_at(index: int, factor: float) -> tuple[str, dict[str, Any]]:
    """A call with three inputs and an output; every tenth one communicates."""
    name = "Distributed.all_reduce" if index % 10 == 9 else "Torch.addmm"
    value = 1 + index / 1000
    return f"{name}.{index}.forward", {
        "input_args": [tensor(value), tensor(value / 2), tensor(value / 3)], "input_kwargs": {},
        "output": [tensor(factor * 1.5 * value)]}


def write_rank(directory: Path, calls: int, wrong: int | None) -> None:
    """The three files of one rank."""
    directory.mkdir(parents=True)
    entries = dict(entry_at(i, 3.0 if i == wrong else 1.0) for i in range(calls))
    head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    frames = ["File model.py, line 1, in forward, \n y = f(x)"]
    texts = ({**head, "data": entries}, {"0": [list(entries), frames]}, dict.fromkeys(entries))
    for name, content in zip(FILES, texts, strict=True):
        (directory / name).write_text(json.dumps(content, indent=1))


def make_step(step: Path, ranks: int, calls: int, wrong: tuple[int, int] | None) -> Path:
    """One rank is written; the others are links, but for the rank and call that are wrong."""
    write_rank(step / "rank0", calls, None)
    for rank in range(1, ranks):
        directory = step / f"rank{rank}"
        if wrong and rank == wrong[0]:
            write_rank(directory, calls, wrong[1])
            continue
        directory.mkdir()
        for name in FILES:
            os.link(step / "rank0" / name, directory / name)
    return step


def timed(command: list[Any]) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds of a command that must succeed."""
    begin = time.perf_counter()
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          check=True)
    return time.perf_counter() - begin, done


def children_of(root: int) -> set[int]:
    """A process and all that it started, as far as they still belong to it."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2]
                                             .split()[1])
        except OSError:
            continue
    found, grows = {root}, True
    while grows:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grows = bool(more)
    return found


def memory_of(root: int) -> int:
    """Bytes of all of them; of shared pages their share."""
    total = 0
    for pid in children_of(root):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += 1024 * int(re.search(r"^Pss: +(\d+)", text, re.MULTILINE).group(1))
    return total


def peak_while(process: subprocess.Popen[str]) -> list[int]:
    """Of memory_of(), while it runs: the only element, in the end."""
    peak = [0]

    def look() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], memory_of(process.pid))
            time.sleep(0.5)

    threading.Thread(target=look, daemon=True).start()
    return peak


def measure_ray(folder: Path, options: argparse.Namespace, words: list[Any],
                expected: str) -> dict[str, Any]:
    """The same command on a cluster of this machine."""
    (folder / "out").rename(folder / "without")
    begin = time.perf_counter()
    process = subprocess.Popen([*map(str, words), "--engine", "ray"], text=True,
                               stdout=subprocess.PIPE,
                               env=os.environ | {"PLUMBLINE_PYTHON": options.ray})
    peak = peak_while(process)
    out, _ = process.communicate()
    seconds = time.perf_counter() - begin
    timeless = re.compile(r"_\d{14}(_\d+)?\.")
    assert timeless.sub("_T.", out) == timeless.sub("_T.", expected), "another answer than without"
    return {"ray_seconds": round(seconds, 3), "ray_peak_mb": round(peak[0] / 2**20, 1)}


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any] | None:
    """One line of results; nothing when the answer is wrong."""
    calls = options.rows // ROWS_PER_CALL
    wrong = (options.ranks // 3 or 1, calls - calls // 10)
    golden = make_step(folder / "golden", options.ranks, calls, None)
    target = make_step(folder / "target", options.ranks, calls, wrong)
    program = os.environ.get("PLUMB") or str(Path(sys.executable).with_name("plumb"))
    words = [program, "compare", target, golden, "-o", folder / "out", "--format", options.format,
             "--threads", options.threads, "--json"]
    seconds, done = timed(words)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    again, _ = timed(words)
    result = json.loads(done.stdout)
    first = result["first_wrong_call"]
    rows = [sum(rank["counts"][key] for key in ("same", "within noise", "suspicious", "broken",
                                                "not comparable")) for rank in result["ranks"]]
    files = sum(len(rank["files"]) for rank in result["ranks"])
    good = (first["rank"] == wrong[0] and first["name"].startswith(("Torch", "Distributed"))
            and f".{wrong[1]}." in first["name"] and result["complete"]
            and rows == [calls * ROWS_PER_CALL] * options.ranks
            and files == options.ranks * len(options.format.split(",")))
    if not good:
        print(f"wrong answer: {first} {files} files", file=sys.stderr)
        return None
    told = measure_ray(folder, options, words, done.stdout) if options.ray else {}
    return {"case": "compare_ranks", "ranks": options.ranks, "rows": calls * ROWS_PER_CALL,
            "format": options.format, "threads": options.threads or os.cpu_count(),
            "seconds": round(seconds, 3), "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
            "seconds_taken_over": round(again, 3), "peak_mb": round(used.ru_maxrss / 1024, 1),
            **told}


def measure_upstream(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Upstream's time on some of the ranks."""
    for side in ("golden", "target"):
        (folder / f"some_{side}").mkdir()
        for rank in range(options.upstream_ranks):
            (folder / side / f"rank{rank}").rename(folder / f"some_{side}" / f"rank{rank}")
    (folder / "theirs").mkdir()
    seconds, _ = timed([options.upstream, "-W", "ignore", "-c", UPSTREAM, folder / "some_target",
                        folder / "some_golden", folder / "theirs"])
    count = len(list((folder / "theirs").glob("compare_result_*.xlsx")))
    assert count == options.upstream_ranks, f"upstream wrote {count} workbooks"
    return {"upstream_ranks": options.upstream_ranks, "upstream_seconds": round(seconds, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--format", default="xlsx")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--upstream")
    parser.add_argument("--ray", metavar="PYTHON")
    parser.add_argument("--upstream-ranks", type=int, default=2)
    options = parser.parse_args()
    options.ranks = max(options.ranks, 2)
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder), options)
        if result is None:
            return 1
        if options.upstream:
            result |= measure_upstream(Path(folder), options)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
