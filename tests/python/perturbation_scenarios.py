"""Scenarios of the perturbation check, all in one process: prints {scenario: result} as JSON.

    python perturbation_scenarios.py DIRECTORY

What a second run returns is decided here where a verdict is tested: a listed function is replaced
by one that knows which run it is in.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from plumbline.debugger import DebuggerBase
from plumbline.pytorch import PrecisionDebugger

ROOT = Path(sys.argv[1])
SCENARIOS: dict[str, Callable[[], Any]] = {}
_numbers = itertools.count()


def scenario(function: Callable[[], Any]) -> Callable[[], Any]:
    SCENARIOS[function.__name__] = function
    return function


def table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def checked(work: Callable[[], Any], steps: int = 1, **section: Any) -> dict[str, Any]:
    """What `work` returned while calls were run twice, and the rows of the files."""
    root = ROOT / str(next(_numbers))
    root.mkdir(parents=True)
    config = root / "config.json"
    config.write_text(json.dumps({"task": "free_benchmark", "dump_path": str(root / "out"),
                                  "free_benchmark": section}))
    DebuggerBase._instance = None
    debugger = PrecisionDebugger(str(config))
    results = []
    for _ in range(steps):
        debugger.start()
        results.append(work())
        debugger.stop()
        debugger.step()
    debugger._close()
    rows = [row for step in range(steps)
            for row in table(root / f"out/step{step}/rank/free_benchmark.csv")]
    return {"result": results[-1], "rows": rows, "root": root,
            "fixes": table(root / "out/step0/rank/free_benchmark_fix.csv"),
            "summary": table(root / "out/rank/free_benchmark_summary.csv")}


def second(first: Any, other: Any, inputs: torch.Tensor | None = None, **section: Any) -> list[Any]:
    """max_rel, dtype, shape and index of the rows of a call that returns `first`, then `other`."""
    original, calls = functional.softsign, itertools.count()

    def softsign(value: torch.Tensor) -> Any:
        return first if next(calls) == 0 else other

    functional.softsign = softsign
    try:
        value = torch.ones(4) if inputs is None else inputs
        section = {"pert_mode": "bit_noise", **section}
        rows = checked(lambda: functional.softsign(value), **section)["rows"]
    finally:
        functional.softsign = original
    return [[row["max_rel"], row["dtype"], row["shape"], row["output_index"]] for row in rows]


@scenario
def verdicts() -> Any:
    one, half = torch.ones(2, 3), torch.ones(4, dtype=torch.float16)
    large = torch.ones(1 << 24)
    doubled = large.clone()
    doubled[0] = 2
    precise = {"inputs": half, "pert_mode": "improve_precision"}
    return {
        "below": second(torch.ones(4).half(), torch.full((4,), 1.0019), **precise),
        "above": second(torch.ones(4).half(), torch.full((4,), 1.0021), **precise),
        "bfloat16": second(torch.ones(4).bfloat16(), torch.full((4,), 1.0039)),
        "flipped": second(one, -one),
        "tiny": second(one * 1e-6, one * 5e-5),
        "first of many": second(large, doubled),
        "nan": second(one, one * float("nan")),
        "inf": second(one * float("inf"), one),
        "nan allowed": second(one, one * float("nan"), nan_mismatch=False),
        "same nan": second(one * float("nan"), one * float("nan")),
        "same inf": second(one * float("inf"), one * float("inf")),
        "int in tuple": second((one, 5), (one, 6)),
        "float in tuple": second((one, 1.0), (one, 1.5)),
        "shape": second(one, torch.ones(3, 2)),
        "length": second((one, one), (one,)),
        "no change": second(one, one * (1 + 2**-23), pert_mode="no_change"),
        "strided": second(torch.ones(3, 2).t(), torch.full((2, 3), 2.0)),
        "complex": second((one, torch.ones(2, dtype=torch.complex64)),
                          (one, torch.full((2,), 1 + 2j))),
    }


@scenario
def cpu_verdicts() -> Any:
    half = torch.ones(64, dtype=torch.float16)
    signs = torch.tensor([1.0, -1.0]).repeat(32)
    cpu = {"inputs": half, "pert_mode": "to_cpu", "fuzz_device": "cpu"}
    infinite = half.clone()
    infinite[3] = float("inf")
    nan = torch.full((64,), float("nan"))
    return {
        "within": second(half, 1 + 3e-4 * signs, **cpu),
        "beyond": second(half, 1 + 6e-4 * signs, **cpu),
        "within in list": second([half], [1 + 3e-4 * signs], **cpu),
        "beyond in list": second([half], [1 + 6e-4 * signs], **cpu),
        "balance": second(half, torch.full((64,), 1.0003), **cpu),
        "negative balance": second(half, torch.full((64,), 0.9997), **cpu),
        "golden nan": second(half, nan, **cpu),
        "infinite": second(infinite, half.float(), **cpu),
        "as upstream": second(infinite, half.float(), nan_mismatch=False, **cpu)
        + second(half, nan, nan_mismatch=False, **cpu),
        "kept": float(infinite[3]),
    }


@scenario
def ill_conditioned() -> Any:
    torch.manual_seed(0)
    a, b = (torch.randn(64, 64, dtype=torch.bfloat16) for _ in range(2))
    found = checked(lambda: torch.softmax(torch.matmul(a, b), -1) is None, pert_mode="bit_noise")
    text = (found["root"] / "out/step0/rank/free_benchmark.csv").read_bytes().decode()
    return {"rows": found["rows"], "summary": found["summary"], "lines": text.splitlines(True)}


@scenario
def wrong_operator() -> Any:
    """An operator 20 % off in bfloat16, beside a right call that is ill-conditioned."""
    original = functional.softsign

    def softsign(value: torch.Tensor) -> torch.Tensor:
        return value * (1.2 if value.dtype == torch.bfloat16 else 1.0)

    functional.softsign = softsign
    torch.manual_seed(0)
    values = torch.randn(32, 32, dtype=torch.bfloat16)
    try:
        found = checked(lambda: (functional.softsign(values), torch.matmul(values, values)) is None,
                        pert_mode=["improve_precision", "bit_noise"])
        return {"summary": found["summary"], "root": str(found["root"])}
    finally:
        functional.softsign = original


@scenario
def nothing_to_improve() -> Any:
    calls = []
    original = functional.softsign
    functional.softsign = lambda value: calls.append(1) or original(value)
    try:
        found = checked(lambda: functional.softsign(torch.ones(3)) is None)
    finally:
        functional.softsign = original
    return {"calls": len(calls), "summary": found["summary"]}


@scenario
def in_place() -> Any:
    torch.manual_seed(0)
    modes = ["add_noise", "bit_noise", "change_value", "no_change"]

    def work() -> Any:
        value = torch.linspace(0.01, 0.2, 8)
        other = value.clone()
        value.mul_(2)
        value.add_(value)
        torch.add(value, 1, out=other)
        value[2:4] = other[:2]
        value += 1
        functional.relu(value, True)
        drawn = functional.dropout(value, 0.5) + torch.rand_like(value)
        return [value.tolist(), other.tolist(), drawn.tolist(), torch.rand(2).tolist()]

    torch.manual_seed(0)
    bare = work()
    torch.manual_seed(0)
    found = checked(work, pert_mode=modes)
    return {"same": bare == found["result"], "summary": found["summary"],
            "no_change": [row for row in found["rows"] if row["pert_mode"] == "no_change"]}


@scenario
def user_functions() -> Any:
    """A callable argument, a function of the user, a class of the user: each runs once."""
    calls: list[int] = []

    class Own(torch.Tensor):
        pass

    def distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return (one - other).abs().sum(-1)

    def work() -> None:
        triple = [torch.rand(3, 4) for _ in range(3)]
        functional.triplet_margin_with_distance_loss(*triple, distance_function=distance)
        torch.softmax(torch.rand(3).as_subclass(Own), -1)

    found = checked(work, pert_mode="no_change")
    return {"calls": len(calls), "reasons": {row["api"]: row["reason"] for row in found["summary"]}}


@scenario
def selected() -> Any:
    def work() -> None:
        torch.softmax(torch.rand(2, 3), -1)
        torch.softmax(torch.rand(2, 3), -1)
        torch.sigmoid(torch.rand(3))

    listed = checked(work, pert_mode="no_change", list=["softmax"])["summary"]
    scoped = checked(work, pert_mode="no_change", scope=["Torch.softmax.1.forward"])["summary"]
    globbed = checked(work, pert_mode="no_change", scope=["*.softmax.?.forward"])["summary"]
    matched = checked(work, pert_mode="no_change", list=["re:^Torch.s(i|x)", "tanh"])["summary"]
    return [[(row["api"], row["calls"]) for row in rows]
            for rows in (listed, scoped, globbed, matched)]


@scenario
def fix() -> Any:
    """An API that is wrong in float16 alone gives the float32 result, and the loss recovers."""
    original = functional.softsign
    functional.softsign = lambda value: value * (1.5 if value.dtype == torch.float16 else 1.0)

    def work() -> Any:
        torch.manual_seed(0)
        weight = torch.randn(16, 16, requires_grad=True)
        values = torch.randn(4, 16).half() @ weight.half()
        loss = functional.softsign(values).float().square().sum()
        loss.backward()
        kept = functional.softsign(values.detach().float())
        return {"loss": loss.item(), "grad": weight.grad.abs().sum().item(), "kept": kept.sum()}

    try:
        bare = work()
        found = checked(work, handler_type="fix", list=["softsign"])
        functional.softsign = lambda value: value * 1.0
        return {"bare": bare, "fixed": found["result"], "fixes": found["fixes"], "right": work(),
                "rows": found["rows"], "summary": found["summary"]}
    finally:
        functional.softsign = original


@scenario
def fix_structures() -> Any:
    """Members are replaced one by one; another structure is refused, the original stays."""
    half = torch.ones(2, dtype=torch.float16)
    results = {}
    for name, other in (("tuple", (torch.full((2,), 3.0), 7)), ("keys", {"b": torch.ones(2)})):
        original, calls = functional.softsign, itertools.count()
        first = (half.clone(), 5) if name == "tuple" else {"a": half.clone()}
        functional.softsign = lambda value, f=first, o=other, c=calls: f if next(c) == 0 else o
        try:
            found = checked(lambda: functional.softsign(half), handler_type="fix")
        finally:
            functional.softsign = original
        result = found["result"]
        results[name] = {"same object": result is first, "reasons": found["summary"][0]["reason"],
                         "value": result[0].tolist() if name == "tuple" else result["a"].tolist()}
    return results


@scenario
def backward() -> Any:
    def twice() -> None:
        value = torch.rand(8, requires_grad=True)
        (value * value + torch.sigmoid(value)).sum().backward()

    def product() -> None:
        value = (1 + 1e-2 * torch.randn(10000)).bfloat16().requires_grad_()
        torch.cumprod(value, 0).backward(torch.ones(10000, dtype=torch.bfloat16))

    torch.manual_seed(0)
    fine = checked(twice, pert_mode="bit_noise", fuzz_stage="backward")
    return {"fine": fine["rows"], "summary": fine["summary"],
            "product": checked(product, pert_mode="bit_noise", fuzz_stage="backward")["rows"]}


@scenario
def preheat() -> Any:
    def work() -> None:
        for _ in range(3):
            torch.softmax(torch.ones(4, dtype=torch.float16), -1)

    found = checked(work, steps=6, if_preheat=True, preheat_step=4)
    text = (found["root"] / "out/rank/free_benchmark_threshold.json").read_text()
    saved = found["root"] / "saved.json"
    saved.write_text(text)
    again = checked(work, threshold_file=str(saved))
    return {"thresholds": json.loads(text), "rows": found["rows"], "again": again["summary"]}


@scenario
def second_run_fails() -> Any:
    original, calls = functional.softsign, itertools.count()

    def softsign(value: torch.Tensor) -> torch.Tensor:
        if next(calls) > 0:
            raise RuntimeError("only once")
        return value

    functional.softsign = softsign
    try:
        return checked(lambda: functional.softsign(torch.ones(2)).tolist(),
                       pert_mode="no_change")
    finally:
        functional.softsign = original


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("RESULT " + json.dumps({name: run() for name, run in SCENARIOS.items()}, default=str))
