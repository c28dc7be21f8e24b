"""Writes tests/data/checkpoints: small state dicts saved by PyTorch, and .safetensors made by hand.

expected.txt has one line per tensor: file, name, dtype, shape ("-" for none), row-major
little-endian bytes in hex ("-" for none).
"""

import argparse
import json
import pathlib
import struct
from collections import OrderedDict, defaultdict

import torch

OUT = pathlib.Path(__file__).parent / "checkpoints"
LINES = []


def note(file, name, value):
    value = value.detach().contiguous()
    data = value.reshape(-1).view(torch.uint8).numpy().tobytes().hex() or "-"
    shape = ",".join(map(str, value.shape)) or "-"
    LINES.append(f"{file} {name} {str(value.dtype).removeprefix('torch.')} {shape} {data}")


def model():
    base = torch.arange(12.0).reshape(3, 4)
    return OrderedDict(weight=base, view=base[1:, ::2], bias=torch.tensor([1.5, -2.0]).half(),
                       count=torch.tensor(7), none=torch.zeros(0, 3))


def save_torch(name, legacy):
    values = model()
    other = defaultdict(list, {"a": [1]})
    content = {"model": values, "args": argparse.Namespace(size=2, name="x", rate=0.5),
               "state": {0: {"exp": torch.full((2,), 0.25), "step": 3}}, "other": other,
               "sets": ({1, 2}, frozenset("a"), b"bytes", bytearray(b"x"), 2**70, slice(1, 2)),
               "list": [torch.nn.Parameter(torch.ones(2)), None, True]}
    torch.save(content, OUT / name, _use_new_zipfile_serialization=not legacy)
    for key, value in values.items():
        note(name, f"model.{key}", value)
    note(name, "state.0.exp", content["state"][0]["exp"])
    note(name, "list.0", content["list"][0])


def save_safetensors(name):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    codes = {"float32": "F32", "float16": "F16", "int64": "I64"}
    for key, value in model().items():
        raw = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        header[key] = {"dtype": codes[str(value.dtype).removeprefix("torch.")],
                       "shape": list(value.shape),
                       "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
        note(name, key, value)
    text = json.dumps(header).encode()
    (OUT / name).write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    OUT.mkdir(exist_ok=True)
    save_torch("nested.pt", legacy=False)
    save_torch("nested_legacy.pth", legacy=True)
    save_safetensors("plain.safetensors")
    (OUT / "expected.txt").write_text("\n".join(LINES) + "\n")


main()
