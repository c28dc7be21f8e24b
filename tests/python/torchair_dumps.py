"""Dumps of a compiled graph (GE) and of its uncompiled run (FX), as torchair leaves them."""

from __future__ import annotations

import pathlib
import struct

import numpy as np

CODES = {"float32": 1, "float16": 2, "int8": 3, "int64": 8, "bool": 11, "float64": 12}
CULPRIT = "MatMul_1"
# Operator of the graph, its type, its FX operator, what feeds it; in the order of the run.
OPERATORS = [
    ("Add_0", "Add", "add-aten.add.Tensor", ["Data_0", "Data_1"]),
    ("MatMul_1", "MatMulV2", "mm-aten.mm.default", ["Add_0", "Data_2"]),
    ("Relu_2", "Relu", "relu-aten.relu.default", ["MatMul_1"]),
    ("Mul.x_3", "Mul", "mul-aten.mul.Tensor", ["Relu_2", "Data_3"]),
]


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def ge_bytes(inputs: list[np.ndarray], outputs: list[np.ndarray], packed: bool = True) -> bytes:
    """A dump file: length, message, elements."""
    def tensor(array: np.ndarray, size_field: int) -> bytes:
        dims = (field(1, b"".join(map(varint, array.shape))) if packed
                else b"".join(field(1, size) for size in array.shape))
        return (field(1, CODES[str(array.dtype)]) + field(2, 2) + field(3, dims)
                + field(size_field, array.nbytes))
    message = field(1, b"2.0") + field(2, 1700000000)
    message += b"".join(field(3, tensor(array, 6)) for array in outputs)
    message += b"".join(field(4, tensor(array, 5)) for array in inputs)
    message += field(6, b"an operator") + field(99, 7)
    return (struct.pack("<Q", len(message)) + message
            + b"".join(array.tobytes() for array in [*inputs, *outputs]))


def graph_text() -> str:
    """The graph of OPERATORS."""
    text = ""
    for name, kind, fx, feeds in OPERATORS:
        text += f'op {{\n  name: "{name}"\n  type: "{kind}"\n'
        text += "".join(f'  input: "{feed}:0"\n' for feed in feeds)
        text += ('  output_desc {\n    name: "y"\n    attr {\n      key: "_fx_tensor_name"\n'
                 f'      value {{\n        s: "{fx}.OUTPUT.0"\n      }}\n    }}\n  }}\n}}\n')
    return text


def run(faulty: bool, seed: int = 3) -> dict[str, tuple[list[np.ndarray], list[np.ndarray]]]:
    """Inputs and outputs of every operator; a fault scales the matrix product."""
    random = np.random.default_rng(seed)
    x, y, w, z = (random.standard_normal((4, 4)).astype("f4") for _ in range(4))
    total = x + y
    product = total @ w * np.float32(1.5 if faulty else 1)
    positive = np.maximum(product, 0)
    return {"Add_0": ([x, y], [total]), "MatMul_1": ([total, w], [product]),
            "Relu_2": ([product], [positive]), "Mul.x_3": ([positive, z], [positive * z])}


def write_ge(root: pathlib.Path, faulty: bool, *, tokens: int = 2, rank: int | None = None,
             fused: bool = False, graph: bool = True) -> pathlib.Path:
    """One GE dump into `root`; `fused`: the matrix product and what follows it are one operator."""
    root.mkdir(parents=True, exist_ok=True)
    data = root if rank is None else root / f"worldsize2_global_rank{rank}"
    mark = "1_pid_5" if rank is None else f"1_rank_{rank}_pid_5"
    if graph:
        (root / f"dynamo_original_graph_{mark}.txt").write_text(graph_text())
    for token in range(tokens):
        place = data / "20240101000000" / "0" / "graph_1_0" / "1" / str(token)
        place.mkdir(parents=True)
        results = run(faulty, 3 + token)
        time = 1700000000000000 + token * 100
        for i, (name, kind, _, _) in enumerate(OPERATORS):
            inputs, outputs = results[name]
            if fused and name == "MatMul_1":
                continue
            if fused and name == "Relu_2":
                kind, name = "AutomaticBufferFusionOp", "MatMul_1Relu_2"
                inputs = results["MatMul_1"][0]
            (place / f"{kind}.{name}.{i}.6.{time + i}").write_bytes(ge_bytes(inputs, outputs,
                                                                            packed=i % 2 == 0))
        (place / f"Cast.cast_inner.9.6.{time + 50}").write_bytes(
            ge_bytes([results["Add_0"][0][0]], [results["Add_0"][0][0].astype("f2")]))
        (place / f"TransX.made_by_compiler.9.6.{time + 51}").write_bytes(ge_bytes([], []))
    return root


def write_fx(root: pathlib.Path, *, tokens: int = 2, rank: int | None = None) -> pathlib.Path:
    """The uncompiled run; token directories count from 1, in ranks from 0."""
    data = root if rank is None else root / f"worldsize2_global_rank{rank}"
    for token in range(tokens):
        place = data / str(token + (rank is None))
        if rank is None:
            place /= "gm_1"
        place.mkdir(parents=True)
        for name, (inputs, outputs) in run(False, 3 + token).items():
            fx = next(fx for op, _, fx, _ in OPERATORS if op == name)
            files = [(f"INPUT.{i}", i, array) for i, array in enumerate(inputs)]
            files += [(f"OUTPUT.{i}", i, array) for i, array in enumerate(outputs)]
            for io, i, array in files:
                np.save(place / f"{fx}.{io}.20240101000000{i}.npy", array)
    return root
