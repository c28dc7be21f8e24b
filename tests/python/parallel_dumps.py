"""Recordings of a small transformer as Megatron runs it, by tensor, pipeline and interleaved
pipeline parallel ranks: names, communication and numbers, computed with NumPy in float64. A model
has the same numbers however it is split, so that a merged run can be compared with a single rank.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, INNER, TOKENS = 8, 16, 4
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Split:
    """How many ranks share the model, and what it is."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1
    dp: int = 1
    layers: int = 4  # of the whole model
    micro_batches: int = 1
    batched: bool = False  # batch_isend_irecv instead of isend and irecv
    hands_over: bool = False  # the block of a later stage is called with what the one before made
    dict_weights: bool = True  # parameters as an object, otherwise as a list
    fault: tuple[int, float] | None = None  # layer, factor of what its activation returns
    replicated_fault: int | None = None  # tp rank whose layer norm returns other numbers

    @property
    def ranks(self) -> int:
        """All of them."""
        return self.tp * self.pp * self.dp

    def rank(self, t: int, d: int, p: int) -> int:
        """In Megatron's order tp-dp-pp."""
        return t + self.tp * (d + self.dp * p)


def tensor(values: Array, dtype: str = "torch.float32") -> dict[str, Any]:
    """A tensor object with its statistics."""
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(values.shape),
            "Max": float(values.max()), "Min": float(values.min()),
            "Mean": float(values.mean()), "Norm": float(np.linalg.norm(values)),
            "requires_grad": True}


def group(ranks: list[int]) -> dict[str, Any]:
    """A process group as an argument."""
    return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": f"g{ranks}"}


@dataclass
class Recorder:
    """The files of one rank."""

    construct: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    stack: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def entry(self, name: str, parent: str | None, values: dict[str, Any]) -> None:
        """A call that ended."""
        self.construct[name] = parent
        self.data[name] = values
        if ".forward" in name:
            self.stack[name] = [f"File /w/model.py, line {len(name)}, in forward, \n call(x)",
                                "File /w/train.py, line 3, in main, \n step()"]

    def api(self, api: str, parent: str | None, inputs: list[Any], output: Array | None,
            **kwargs: Any) -> str:
        """A forward call of an API, numbered by this rank."""
        number = self.counts.get(api, 0)
        self.counts[api] = number + 1
        name = f"{api}.{number}.forward"
        values: dict[str, Any] = {"input_args": [as_argument(each) for each in inputs],
                                  "input_kwargs": kwargs}
        if output is not None:
            values["output"] = [tensor(output)]
        self.entry(name, parent, values)
        return name

    def gradient(self, forward: str, parent: str | None, inputs: list[Array],
                 outputs: list[Array]) -> None:
        """The backward call of an API."""
        self.entry(forward.replace(".forward", ".backward"), parent,
                   {"input": [tensor(each) for each in inputs],
                    "output": [tensor(each) for each in outputs]})

    def write(self, directory: Path) -> None:
        """construct.json, dump.json and stack.json."""
        directory.mkdir(parents=True)
        dump = {"task": "statistics", "level": "mix", "framework": "pytorch",
                "dump_data_dir": None, "data": self.data}
        for name, content in (("construct", self.construct), ("dump", dump),
                              ("stack", self.stack)):
            (directory / f"{name}.json").write_text(json.dumps(content, indent=1))


def as_argument(value: Any) -> Any:
    """Arrays as tensor objects."""
    return tensor(value) if isinstance(value, np.ndarray) else value


@dataclass(frozen=True)
class Weights:
    """Of one layer."""

    norm: Array
    first: Array
    second: Array


@dataclass(frozen=True)
class Place:
    """Where something runs: stage, part of the model on it, micro batch; of layers also their
    number in the whole model and in that part."""

    p: int
    chunk: int
    micro: int
    layer: int = -1
    local: int = -1


def weights_of(layers: int) -> list[Weights]:
    """The same for every split."""
    random = np.random.default_rng(7)
    return [Weights(random.normal(1, 0.1, HIDDEN), random.normal(0, 0.5, (INNER, HIDDEN)),
                    random.normal(0, 0.5, (HIDDEN, INNER))) for _ in range(layers)]


class Model:
    """All ranks of one replica, step by step. Each list of arrays has one for each tp rank."""

    def __init__(self, split: Split, replica: int) -> None:
        self.split, self.replica = split, replica
        self.weights = weights_of(split.layers)
        self.ranks = {(t, p): Recorder() for t in range(split.tp) for p in range(split.pp)}
        self.kept: dict[tuple[int, int], dict[str, Any]] = {}

    def rank_of(self, t: int, p: int) -> int:
        """Number of a rank of this replica."""
        return self.split.rank(t, self.replica, p)

    def tensor_group(self, p: int) -> dict[str, Any]:
        """The tp ranks of one stage."""
        return group([self.rank_of(t, p) for t in range(self.split.tp)])

    def prefix(self, chunk: int) -> str:
        """What names of modules begin with."""
        return f"Module.{chunk}.module.module" if self.split.vpp > 1 else "Module.module.module"

    def stages(self) -> list[tuple[int, int, list[int]]]:
        """(stage, chunk, layers) in order of execution."""
        per = self.split.layers // (self.split.pp * self.split.vpp)
        found = []
        for chunk in range(self.split.vpp):
            for p in range(self.split.pp):
                begin = (chunk * self.split.pp + p) * per
                found.append((p, chunk, list(range(begin, begin + per))))
        return found

    def transfer(self, p: int, to: int, values: Array) -> None:
        """Sends between stages, as calls between the modules."""
        for t in range(self.split.tp):
            for here, there, op in ((p, to, "isend"), (to, p, "irecv")):
                recorder, peer = self.ranks[t, here], self.rank_of(t, there)
                if self.split.batched:
                    move = {"class_type": "torch.distributed.P2POp", "op": op, "peer": peer,
                            "tag": 0, "group_id": "pp", "tensor": tensor(values)}
                    name = recorder.api("Distributed.batch_isend_irecv", None, [], None)
                    recorder.data[name]["output"] = [[move]]
                else:
                    key = "dst" if op == "isend" else "src"
                    recorder.api(f"Distributed.{op}", None, [values], values,
                                 **{key: {"type": "int", "value": peer}})
                recorder.api("Tensor.detach", None, [values], values)

    def reduce(self, p: int, parents: list[str], parts: list[Array]) -> Array:
        """all_reduce over the tp ranks."""
        whole = np.sum(parts, axis=0)
        if self.split.tp == 1:
            return whole
        for t, part in enumerate(parts):
            self.ranks[t, p].api("Distributed.all_reduce", parents[t], [part], whole,
                                 group=self.tensor_group(p))
        return whole

    def shard(self, values: Array, t: int, axis: int) -> Array:
        """The part of a weight that a tp rank has."""
        return np.split(values, self.split.tp, axis=axis)[t]

    def parameters(self, **values: Array) -> Any:
        """As a recorder writes them."""
        objects = {key: tensor(value) for key, value in values.items()}
        return objects if self.split.dict_weights else list(objects.values())

    def layer_forward(self, at: Place, x: Array) -> Array:
        """One transformer layer: norm, column parallel, tanh, row parallel, residual."""
        p, chunk, micro, layer, local = at.p, at.chunk, at.micro, at.layer, at.local
        split, weights = self.split, self.weights[layer]
        path = f"{self.prefix(chunk)}.decoder.layers.{local}"
        name = f"{path}.TransformerLayer.forward.{micro}"
        mlp = f"{path}.mlp.MLP.forward.{micro}"
        kept: dict[str, Any] = {"x": x, "apis": []}
        partial, rows, hidden = [], [], []
        for t in range(split.tp):
            recorder, apis = self.ranks[t, p], {}
            norm = f"{path}.input_layernorm.LayerNorm.forward.{micro}"
            scale = 1.5 if split.replicated_fault == t and layer == 1 else 1.0
            normed = x * weights.norm * scale
            apis["norm"] = recorder.api("Functional.layer_norm", norm, [x, weights.norm], normed)
            recorder.entry(norm, name, {"input_args": [tensor(x)], "input_kwargs": {},
                                        "parameters": self.parameters(weight=weights.norm),
                                        "output": [tensor(normed)]})
            first, second = self.shard(weights.first, t, 0), self.shard(weights.second, t, 1)
            column = f"{path}.mlp.linear_fc1.ColumnParallelLinear.forward.{micro}"
            h = normed @ first.T
            apis["column"] = recorder.api("Torch.matmul", column, [normed, first.T], h)
            recorder.entry(column, mlp, {"input_args": [tensor(normed)], "input_kwargs": {},
                                         "parameters": self.parameters(weight=first),
                                         "output": [tensor(h), None]})
            g = np.tanh(h)
            if split.fault and split.fault[0] == layer:
                g = g * split.fault[1]
            apis["act"] = recorder.api("Torch.tanh", mlp, [h], g)
            row = f"{path}.mlp.linear_fc2.RowParallelLinear.forward.{micro}"
            part = g @ second.T
            apis["row"] = recorder.api("Torch.matmul", row, [g, second.T], part)
            rows.append(row)
            partial.append(part)
            hidden.append((h, g, first, second))
            kept["apis"].append(apis)
        y = self.reduce(p, rows, partial)
        out = x + y
        for t in range(split.tp):
            recorder = self.ranks[t, p]
            _, g, _, second = hidden[t]
            recorder.entry(rows[t], mlp, {"input_args": [tensor(g)], "input_kwargs": {},
                                          "parameters": self.parameters(weight=second),
                                          "output": [tensor(y), None]})
            normed = x * weights.norm
            recorder.entry(mlp, name, {"input_args": [tensor(normed)], "input_kwargs": {},
                                       "output": [tensor(y), None]})
            kept["apis"][t]["add"] = recorder.api("Tensor.__add__", name, [x, y], out)
            recorder.entry(name, f"{self.prefix(chunk)}.decoder.TransformerBlock.forward.{micro}",
                           {"input_args": [tensor(x)], "input_kwargs": {},
                            "output": [tensor(out)]})
        kept.update(hidden=hidden, local=local)
        self.kept[layer, micro] = kept
        return out

    def layer_backward(self, at: Place, d: Array) -> Array:
        """The gradients of layer_forward."""
        p, chunk, micro, layer = at.p, at.chunk, at.micro, at.layer
        split, kept, weights = self.split, self.kept[layer, micro], self.weights[layer]
        path = f"{self.prefix(chunk)}.decoder.layers.{kept['local']}"
        name, mlp = f"{path}.TransformerLayer.backward.{micro}", f"{path}.mlp.MLP.backward.{micro}"
        parts, columns = [], []
        for t in range(split.tp):
            recorder, apis = self.ranks[t, p], kept["apis"][t]
            h, g, first, second = kept["hidden"][t]
            recorder.gradient(apis["add"], name, [d], [d, d])
            row = f"{path}.mlp.linear_fc2.RowParallelLinear.backward.{micro}"
            dg = d @ second
            recorder.gradient(apis["row"], row, [d], [dg, (d.T @ g).T])
            recorder.entry(row, mlp, {"input": [tensor(d)], "output": [tensor(dg)]})
            dh = dg * (1 - g * g)
            recorder.gradient(apis["act"], mlp, [dg], [dh])
            column = f"{path}.mlp.linear_fc1.ColumnParallelLinear.backward.{micro}"
            part = dh @ first
            normed = kept["x"] * weights.norm
            recorder.gradient(apis["column"], column, [dh], [part, (dh.T @ normed).T])
            columns.append(column)
            parts.append(part)
            del h
        dn = self.reduce(p, columns, parts)
        dx = d + dn * weights.norm
        for t in range(split.tp):
            recorder, apis = self.ranks[t, p], kept["apis"][t]
            _, g, first, second = kept["hidden"][t]
            recorder.entry(columns[t], mlp, {"input": [tensor(d @ second * (1 - g * g))],
                                             "output": [tensor(dn)]})
            recorder.entry(mlp, name, {"input": [tensor(d)], "output": [tensor(dn)]})
            norm = f"{path}.input_layernorm.LayerNorm.backward.{micro}"
            recorder.gradient(apis["norm"], norm, [dn], [dn * weights.norm])
            recorder.entry(norm, name, {"input": [tensor(dn)],
                                        "output": [tensor(dn * weights.norm)]})
            recorder.entry(name, f"{self.prefix(chunk)}.decoder.TransformerBlock.backward.{micro}",
                           {"input": [tensor(d)], "output": [tensor(dx)]})
            del first
        return dx

    def around(self, at: Place, direction: str, inputs: list[Array],
               outputs: list[Array]) -> None:
        """The modules around the layers."""
        p, chunk, micro = at.p, at.chunk, at.micro
        prefix = self.prefix(chunk)
        outer = prefix.rsplit(".", 1)[0]
        names = [f"{prefix}.decoder.TransformerBlock", f"{prefix}.GPTModel",
                 f"{outer}.Float16Module"]
        first = "input_args" if direction == "forward" else "input"
        # All stages are called with the tokens; what a stage before made is handed over otherwise.
        given: list[Any] = [tensor(np.arange(TOKENS, dtype=float), "torch.int64")]
        if direction == "backward":
            given = [tensor(each) for each in inputs]
        results = [tensor(each) for each in outputs] if direction == "forward" else [None]
        for t in range(self.split.tp):
            for name, parent in zip(names, [*names[1:], None], strict=True):
                values = {first: given, "output": results}
                if name == names[0] and (p or chunk) and not self.split.hands_over:
                    values = {**values, ("input_args" if direction == "forward" else "output"):
                              [None]}
                elif name == names[0]:
                    ends = inputs if direction == "forward" else outputs
                    values = {**values, ("input_args" if direction == "forward" else "output"):
                              [tensor(each) for each in ends]}
                self.ranks[t, p].entry(f"{name}.{direction}.{micro}",
                                       f"{parent}.{direction}.{micro}" if parent else None, values)

    def run(self) -> None:
        """All micro batches forward, then all backward."""
        stages = self.stages()
        random = np.random.default_rng(11 + self.replica)
        ends = []
        for micro in range(self.split.micro_batches):
            x = random.normal(0, 1, (TOKENS, HIDDEN))
            for step, (p, chunk, layers) in enumerate(stages):
                entered = x
                for local, layer in enumerate(layers):
                    x = self.layer_forward(Place(p, chunk, micro, layer, local), x)
                self.around(Place(p, chunk, micro), "forward", [entered], [x])
                if step + 1 < len(stages) and stages[step + 1][0] != p:
                    self.transfer(p, stages[step + 1][0], x)
            ends.append(x)
        for micro, x in enumerate(ends):
            d = x / x.size
            for step, (p, chunk, layers) in reversed(list(enumerate(stages))):
                entered = d
                for layer in reversed(layers):
                    d = self.layer_backward(Place(p, chunk, micro, layer), d)
                self.around(Place(p, chunk, micro), "backward", [entered], [d])
                if step > 0 and stages[step - 1][0] != p:
                    self.transfer(p, stages[step - 1][0], d)
        for (t, p), recorder in self.ranks.items():
            for layer, micro in list(self.kept):
                if micro or self.stage_of(layer)[0] != p:
                    continue
                chunk, local = self.stage_of(layer)[1], self.kept[layer, micro]["local"]
                path = f"{self.prefix(chunk)}.decoder.layers.{local}.mlp.linear_fc1"
                weight = self.shard(self.weights[layer].first, t, 0)
                recorder.data[f"{path}.ColumnParallelLinear.parameters_grad"] = {
                    "weight": [tensor(weight * 0.01)]}

    def stage_of(self, layer: int) -> tuple[int, int]:
        """(stage, chunk) of a layer."""
        return next((p, chunk) for p, chunk, layers in self.stages() if layer in layers)


def write_run(root: Path, split: Split, step: int = 0) -> Path:
    """Writes step{N}/rank{R} of all ranks below `root`; returns the directory of the step."""
    directory = root / f"step{step}"
    for replica in range(split.dp):
        model = Model(split, replica)
        model.run()
        for (t, p), recorder in model.ranks.items():
            recorder.write(directory / f"rank{model.rank_of(t, p)}")
    return directory
