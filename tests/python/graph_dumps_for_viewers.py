"""Small recordings with everything that a viewer's graph has rules for, and readers of the files
that are made of them: SQLite and JSON by Python's own libraries.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from rank_dumps import number, tensor
from recording import PLUMB

Rows = dict[str, dict[str, Any]]

CHECKPOINT = ["File /opt/torch/utils/checkpoint.py, line 9, in recompute_fn, \n fn(*args)"]
USER = "File /w/net.py, line 12, in forward, \n y = self.fc(x)"
WRAPPED = ["File /w/wrap.py, line 61, in call, \n return TensorTemplate(op, hook)(*args)",
           "File /w/net.py, line 30, in forward, \n x = x + y"]

LAYER = "Module.block.layers.0.Layer"
INNER = "Module.block.layers.0.fc.Linear"

# name -> parent. A forward and a backward pass, layers.0 run again by a checkpoint, a second pass.
CONSTRUCT: dict[str, Any] = {
    "Tensor.a.0.forward": None, "Tensor.b.0.forward": None, "Functional.c.0.forward": None,
    f"{INNER}.forward.0": f"{LAYER}.forward.0",
    f"{LAYER}.forward.0": "Module.block.Block.forward.0",
    "Module.block.relu.ReLU.forward.0": "Module.block.Block.forward.0",
    "Module.block.Block.forward.0": None,
    "Torch.sum.0.forward": None,
    "Module.block.Block.backward.0": None,
    # The hook of an in-place layer did not fire: its neighbour seems to be inside of it.
    "Module.block.relu.ReLU.backward.0": "Module.block.Block.backward.0",
    f"{LAYER}.forward.1": None, f"{INNER}.forward.1": f"{LAYER}.forward.1",
    f"{LAYER}.backward.1": None, f"{INNER}.backward.1": f"{LAYER}.backward.1",
    f"{INNER}.backward.0": "Module.block.relu.ReLU.backward.0",
    f"{LAYER}.backward.0": None,
    "Tensor.a.0.backward": None, "Functional.c.0.backward": None,
    "Tensor.z.0.backward": None,  # no forward call
    "Module.block.Block.forward.1": None,
    "optimizer.step.0": None,
    "Distributed.batch_isend_irecv.0.forward": None,
}

TYPED: list[Any] = [
    None, number(3), number(True), number(0.123456789), number("it's None"), number("NoneType"),
    {"type": "torch.Size", "value": [2, 4]}, {"type": "slice", "value": [0, None, 2]},
    {"type": "ellipsis", "value": "..."}, {"type": "torch.dtype", "value": "torch.float32"},
    {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "533cb5e1"},
    [tensor(1e-7), [tensor(0.33333333333)]], {"key": tensor(1e20)}, tensor(float("nan")), [], {},
]


def _entry(name: str) -> dict[str, Any]:
    if "backward" in name:
        return {"input": [tensor(0.25)], "output": [tensor(0.5), None]}
    return {"input_args": [tensor(1.0)], "input_kwargs": {"dim": number(-1)},
            "output": [tensor(2.5)]}


def everything() -> dict[str, Any]:
    """construct.json, dump.json and stack.json by name."""
    data = {name: _entry(name) for name in CONSTRUCT if name != "optimizer.step.0"}
    data["Functional.c.0.forward"] = {"input_args": TYPED, "input_kwargs": {"src": number(1)},
                                      "output": [tensor(0.1)]}
    data[f"{INNER}.forward.0"]["parameters"] = {"weight": tensor(4.0), "bias": None}
    data["Distributed.batch_isend_irecv.0.forward"] = {"input_args": [], "output": [[
        {"class_type": "torch.distributed.P2POp", "op": "isend", "peer": 1, "tag": 0,
         "group_id": "533cb5e1", "tensor": tensor(7.0)}]]}
    data[f"{INNER}.parameters_grad"] = {"weight": [tensor(8.0)]}
    data[f"{INNER}.parameters_grad.1"] = {"weight": [tensor(9.0)]}
    stack = {name: [USER, "File /w/main.py, line 3, in main, \n run()"] for name in data
             if ".forward" in name}
    stack[f"{LAYER}.forward.1"] = [*CHECKPOINT, USER]
    stack["Tensor.a.0.forward"] = WRAPPED
    return {"construct.json": dict(CONSTRUCT), "stack.json": stack,
            "dump.json": {"task": "statistics", "level": "mix", "framework": "pytorch",
                          "dump_data_dir": None, "data": data}}


def pair() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two recordings. In the first one a layer returns other numbers, another one another shape,
    two more APIs stand between two modules in front, and one more API before the others."""
    target, golden = everything(), everything()
    data = target["dump.json"]["data"]
    data[f"{INNER}.forward.0"]["output"] = [tensor(3.0)]
    data["Module.block.relu.ReLU.forward.0"]["output"][0]["shape"] = [5]
    first, second = "Module.first.M.forward.0", "Module.second.M.forward.0"
    more = ("Torch.x.0.forward", "Torch.y.0.forward")
    for files, names in ((target, (first, *more, second, "Tensor.extra.0.forward")),
                         (golden, (first, second))):
        for part, fill in (("construct.json", None), ("dump.json", _entry(first))):
            table = files[part]["data"] if part == "dump.json" else files[part]
            earlier = dict(table)
            table.clear()
            table.update({**dict.fromkeys(names, fill), **earlier})
    return target, golden


def write(directory: Path, files: dict[str, Any]) -> Path:
    """Writes the files of one rank."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(json.dumps(content, indent=1))
    return directory


def graph(*words: Any) -> subprocess.CompletedProcess[str]:
    """Runs plumb graph."""
    return subprocess.run([PLUMB, "graph", *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=120)


def read_db(path: Path, source: str = "NPU", rank: int = 0) -> Rows:
    """The nodes of one rank of a .vis.db by name, in their order, with their stacks."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute("SELECT * FROM tb_nodes JOIN tb_stack ON stack_id = tb_stack.id "
                                "WHERE data_source = ? AND rank = ? ORDER BY step, node_order",
                                [source, rank])
        nodes = [dict(row) for row in rows]
    for node in nodes:
        del node["id"], node["stack_id"]
        for key in ("input_data", "output_data", "stack_info", "matched_node_link"):
            node[key] = json.loads(node[key])
    return {node["node_name"]: node for node in nodes}


def config_of(path: Path) -> dict[str, Any]:
    """The row of tb_config."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        return dict(database.execute("SELECT * FROM tb_config").fetchone())


def only(directory: Path, pattern: str) -> Path:
    """The one file of that pattern."""
    [path] = directory.glob(pattern)
    return path
