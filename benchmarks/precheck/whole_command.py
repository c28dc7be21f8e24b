"""Calls per second of the whole `plumb precheck`, from its start to its files.

    python benchmarks/precheck/whole_command.py [--upstream PYTHON] [--case NAME] [--runs N]
        [--workers N]

Cases: llama_step, the 385 calls (by transformers 5) of one training step of a Llama of 7 layers
with random weights, recorded by plumbline with task statistics, forward and backward; tiny_adds
and adds, 10,000 additions of 4 x 8 and of 32 x 32 numbers. The device under test is the CPU. Before
a time is printed, every call must have a row, and every row must pass but for skipped ones, which
are counted.
--workers is how many processes run the device side (default: one).
--upstream names an interpreter with mindstudio-probe 1.2.2, whose run_ut takes a prefix of the same
calls (UPSTREAM_CALLS), its device being the CPU. PLUMB names the program (default: the one beside
this Python). `load` is what else the machine did: above 1 the figures say little.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ADDITIONS = 10_000
UPSTREAM_CALLS = 120
RECORD = """
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from plumbline.pytorch import PrecisionDebugger
torch.manual_seed(1234)
model = LlamaForCausalLM(LlamaConfig(
    hidden_size=256, intermediate_size=768, num_hidden_layers=7, num_attention_heads=8,
    vocab_size=2000, attn_implementation="eager"))
tokens = torch.randint(0, 2000, (2, 32))
debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=sys.argv[1])
debugger.start(model)
model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
debugger.stop()
debugger.step()
"""


def record_llama(work: Path) -> Path:
    """The dump.json of one step."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", RECORD, work / "run"], check=True,
                   env={**os.environ, "PLUMBLINE_LOG_LEVEL": "3"})
    (dump,) = (work / "run" / "step0").glob("*/dump.json")
    return Path(dump)


def write_adds(work: Path, shape: tuple[int, int] = (32, 32)) -> Path:
    """A recording of additions, as a recorder writes it."""
    operand = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": 1.0,
               "Min": -1.0, "Mean": 0.0, "Norm": 1.0, "requires_grad": False}
    entry = {"input_args": [operand, operand], "input_kwargs": {}, "output": [operand]}
    return write_dump(work / "dump.json", {
        "task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
        "data": {f"Torch.add.{i}.forward": entry for i in range(ADDITIONS)}})


CASES: dict[str, Callable[[Path], Path]] = {
    "llama_step": record_llama, "tiny_adds": lambda work: write_adds(work, (4, 8)),
    "adds": write_adds}


def write_dump(path: Path, document: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def call_of(entry: str) -> str:
    """"Torch.add.0" of "Torch.add.0.forward"."""
    return entry.rpartition(".")[0]


def first_calls(dump: Path, count: int, path: Path) -> Path:
    """The recording of the first `count` calls, with their backwards."""
    document = json.loads(dump.read_text())
    forward = [entry for entry in document["data"] if entry.endswith(".forward")]
    kept = {call_of(entry) for entry in forward[:count]}
    document["data"] = {entry: value for entry, value in document["data"].items()
                        if call_of(entry) in kept}
    return write_dump(path, document)


def calls_in(dump: Path) -> int:
    """Forward entries."""
    return sum(entry.endswith(".forward") for entry in json.loads(dump.read_text())["data"])


def timed(words: list[Any]) -> float:
    """Seconds of a command that must succeed."""
    begin = time.perf_counter()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(f"{words}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def cpu_seconds() -> float:
    """Of all processes that were started and waited for, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def skipped_in(output: Path, calls: int) -> int:
    """Calls without a verdict; ends the program unless all others pass and none is missing."""
    (path,) = output.glob("accuracy_checking_result_*.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))[1:]
    wrong = [row for row in rows if {word.lower() for word in row[1:3]} & {"error", "warning"}]
    if wrong or len({row[0] for row in rows}) != calls:
        raise SystemExit(f"{path}: {len(rows)} rows of {calls} calls, not passing: {wrong[:3]}")
    return sum("skip" in (row[1].lower(), row[2].lower()) for row in rows)


def measure(name: str, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One line of results."""
    dump = CASES[name](work)
    calls = calls_in(dump)
    plumb = os.environ.get("PLUMB") or str(Path(sys.executable).with_name("plumb"))
    workers = ["-n", options.workers] if options.workers else []
    load = os.getloadavg()[0]
    seconds = []
    before = cpu_seconds()
    skipped = 0
    for run in range(options.runs):
        output = work / f"out{run}"
        seconds.append(timed([plumb, "precheck", dump, "-o", output, "--device_type", "cpu",
                              "--format", "csv", "--python", sys.executable, *workers]))
        skipped = skipped_in(output, calls)
    used = (cpu_seconds() - before) / options.runs
    median = statistics.median(seconds)
    line = {"case": f"precheck_{name}", "calls": calls, "skipped": skipped,
            "workers": options.workers or 1,
            "seconds": round(median, 3), "calls_per_s": round(calls / median, 1),
            "cpu_seconds": round(used, 3), "cores": os.cpu_count(), "load": round(load, 2)}
    return line | (upstream(dump, work, options) if options.upstream else {})


def upstream(dump: Path, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Upstream's figures on a prefix of the calls."""
    prefix = first_calls(dump, UPSTREAM_CALLS, work / "prefix" / "dump.json")
    seconds = timed([options.upstream, "-W", "ignore", HERE / "run_upstream.py", "-f", "pytorch",
                     "run_ut", "-api_info", prefix, "-o", work / "theirs"])
    calls = calls_in(prefix)
    skipped = skipped_in(work / "theirs", calls)
    return {"upstream_calls": calls, "upstream_skipped": skipped,
            "upstream_seconds": round(seconds, 3),
            "upstream_calls_per_s": round(calls / seconds, 2)}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upstream", help="interpreter with mindstudio-probe 1.2.2")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args(words)
    for name in options.case or CASES:
        with tempfile.TemporaryDirectory() as work:
            print(json.dumps(measure(name, Path(work), options)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
