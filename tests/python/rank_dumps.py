"""Synthetic dumps of several ranks, in the files of upstream 26.x, and the scenarios of the
communication-aware search for the first NaN or Inf.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Entry = tuple[str, dict[str, Any]]
Ranks = dict[str, list[Entry]]

NAN, INF = math.nan, math.inf
WORLD = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "533cb5e1"}


def tensor(value: float = 1.0, low: float | None = None, **extra: Any) -> dict[str, Any]:
    """A float32 tensor whose Max is `value`."""
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
            "Min": value if low is None else low, "Mean": value, "Norm": abs(value),
            "requires_grad": False, **extra}


def number(value: Any) -> dict[str, Any]:
    """A scalar argument."""
    return {"type": type(value).__name__, "value": value}


def forward(name: str, inputs: list[Any], outputs: list[Any], **kwargs: Any) -> Entry:
    """An entry of a forward call."""
    return name, {"input_args": inputs, "input_kwargs": kwargs, "output": outputs}


def backward(name: str, inputs: list[Any], outputs: list[Any]) -> Entry:
    """An entry of a backward call."""
    return name, {"input": inputs, "output": outputs}


def all_reduce(count: int, given: float, result: float) -> Entry:
    """A collective call of both ranks."""
    return forward(f"Distributed.all_reduce.{count}.forward", [tensor(given)],
                   [tensor(result), WORLD], group=WORLD)


def fine(count: int) -> Entry:
    """A computing call without anything wrong."""
    return forward(f"Torch.add.{count}.forward", [tensor(), tensor()], [tensor()])


def log(value: float = -INF, count: int = 0) -> Entry:
    """A computing call that produces `value` from good inputs."""
    return forward(f"Torch.log.{count}.forward", [tensor(0.5)], [tensor(value)])


def passes(name: str, value: float) -> Entry:
    """A call that hands on a bad value."""
    return forward(name, [tensor(value)], [tensor(value)])


def scenarios() -> dict[str, tuple[Ranks, list[tuple[str, str]]]]:
    """Name -> the entries of each rank directory, and the expected rank key and entry (none, or
    all that upstream's file names; the first is the answer)."""
    return {
        "nothing": (
            {"rank0": [fine(0), all_reduce(0, 1, 2), fine(1)],
             "rank1": [fine(0), all_reduce(0, 1, 2), fine(1)]}, []),
        "before_communication_on_one_rank": (
            {"rank0": [fine(0), log(INF), all_reduce(0, INF, INF)],
             "rank1": [fine(0), fine(1), all_reduce(0, 1, INF),
                       passes("Torch.mul.0.forward", INF)]},
            [("rank_0", "Torch.log.0.forward")]),
        "between_two_collectives": (
            {"rank0": [fine(0), all_reduce(0, 1, 2), fine(1), log(NAN), all_reduce(1, NAN, NAN)],
             "rank1": [fine(0), all_reduce(0, 1, 2), fine(1), all_reduce(1, 1, NAN),
                       passes("Torch.mul.0.forward", NAN)]},
            [("rank_0", "Torch.log.0.forward")]),
        "communication_produces": (
            {"rank0": [fine(0), all_reduce(0, 1, NAN)], "rank1": [fine(0), all_reduce(0, 1, NAN)]},
            [("rank_0", "Distributed.all_reduce.0.forward")]),
        "polluted_second_send": (
            {"rank0": [fine(0),
                       forward("Distributed.send.0.forward", [tensor(), number(1)],
                               [tensor(), number(1)]),
                       log(NAN),
                       forward("Distributed.send.1.forward", [tensor(NAN), number(1)],
                               [tensor(NAN), number(1)])],
             "rank1": [forward("Distributed.recv.0.forward", [None, number(0)],
                               [tensor(), number(0)]),
                       fine(0),
                       forward("Distributed.recv.1.forward", [None, number(0)],
                               [tensor(NAN), number(0)]),
                       passes("Torch.mul.0.forward", NAN)]},
            [("rank_0", "Torch.log.0.forward")]),
        "after_the_last_communication": (
            {"rank0": [all_reduce(0, 1, 2), fine(0)],
             "rank1": [all_reduce(0, 1, 2), fine(0), log(INF)]},
            [("rank_1", "Torch.log.0.forward")]),
        "nested_list_input": (
            {"rank0": [forward("Torch.cat.0.forward", [[tensor(NAN), tensor()]], [tensor(NAN)]),
                       all_reduce(0, NAN, NAN)],
             "rank1": [fine(0), all_reduce(0, 1, NAN)]},
            [("rank_0", "Torch.cat.0.forward")]),
        "backward_only": (
            {"rank0": [fine(0), all_reduce(0, 1, 2),
                       backward("Torch.sqrt.0.backward", [tensor()], [tensor(INF)])],
             "rank1": [fine(0), all_reduce(0, 1, 2),
                       backward("Torch.sqrt.0.backward", [tensor()], [tensor(1)])]},
            [("rank_0", "Torch.sqrt.0.backward")]),
    }


def write_rank(directory: Path, entries: list[Entry], *, flat_stack: bool = False,
               **header: Any) -> Path:
    """Writes dump.json, stack.json and construct.json; every entry is inside Module.net."""
    directory.mkdir(parents=True)
    head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    names = [name for name, _ in entries]
    frames = ["File a.py, line 1, in f, \n y = g(x)", "File b.py, line 2, in main, \n f(x)"]
    outer = "Module.net.Net.forward.0"
    parents = dict.fromkeys(names, outer) | {outer: None}
    stack = {name: frames for name in names} if flat_stack else {"0": [names, frames]}
    (directory / "dump.json").write_text(
        json.dumps({**head, **header, "data": dict(entries)}, indent=1))
    (directory / "stack.json").write_text(json.dumps(stack, indent=1))
    (directory / "construct.json").write_text(json.dumps(parents, indent=1))
    return directory


def write_step(directory: Path, ranks: Ranks, **options: Any) -> Path:
    """Writes one directory per rank."""
    for name, entries in ranks.items():
        write_rank(directory / name, entries, **options)
    return directory
