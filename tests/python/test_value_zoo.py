"""Whatever a call gets is recorded as what it is: valid JSON, nothing raised, nothing consumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recording import config, run

import plumbline

SETUP = """
import collections, dataclasses, enum, json, sys, types, warnings
import numpy as np
import torch
from plumbline.pytorch import PrecisionDebugger

warnings.simplefilter("error")  # the tool must not make the framework warn

class Take(torch.nn.Module):
    def forward(self, *args, **kwargs):
        return None

@dataclasses.dataclass
class Data:
    a: object
    b: object = 2
    shared: dataclasses.InitVar[int] = 7

class Pair(collections.namedtuple("Pair", "x y")):
    @property
    def bad(self): raise RuntimeError("never asked")

@dataclasses.dataclass
class BadField:
    good: object
    def __getattribute__(self, name):
        if name == "good": raise RuntimeError("hands off")
        return object.__getattribute__(self, name)

class Hostile:
    def __getattribute__(self, name): raise RuntimeError("hands off")
    def __repr__(self): raise RuntimeError("hands off")
    __str__ = __iter__ = __len__ = __hash__ = __eq__ = __bool__ = __index__ = __repr__

class Liar:
    @property
    def __class__(self): return torch.Tensor

class HostileList(list):
    def __iter__(self): raise RuntimeError("hands off")
    __len__ = __getitem__ = __iter__

class HostileDict(dict):
    def __iter__(self): raise RuntimeError("hands off")
    items = keys = __len__ = __getitem__ = __iter__

class HostileFloat(float):
    def __float__(self): raise RuntimeError("hands off")

class HostileStr(str):
    def __str__(self): raise RuntimeError("hands off")
    __repr__ = encode = __str__

class HostileInt(int):
    def __int__(self): raise RuntimeError("hands off")
    __index__ = __str__ = __repr__ = __int__

class HostileKey:
    def __str__(self): raise RuntimeError("hands off")
    __repr__ = __str__

class Color(enum.IntEnum):
    RED = 1

class Meta(type):
    @property
    def __module__(cls): raise RuntimeError("hands off")

class WithMeta(metaclass=Meta): pass

def nested(depth, kind):
    value = 5
    for _ in range(depth):
        value = [value] if kind is list else (value,) if kind is tuple else {"k": value}
    return value

cyclic = [1]; cyclic.append(cyclic); cyclic.append(cyclic)
ring = {"a": 1}; ring["self"] = [ring]
bomb = [1]
for _ in range(60): bomb = [bomb, bomb]

t = torch.arange(6.0).reshape(2, 3)
consumed = []
def generate():
    for i in range(3):
        consumed.append(i)
        yield i
generator = generate()
read_only = np.arange(4.0); read_only.flags.writeable = False
"""

# name: (Python source of the value, expected record). "tensor": a tensor object; a dict with
# "Max" is compared key by key; Ellipsis: anything, as long as it is valid JSON.
NULLS = {"Max": None, "Min": None, "Mean": None, "Norm": None}


def typed(kind: str, value: object) -> dict[str, object]:
    return {"type": kind, "value": value}


ZOO: dict[str, tuple[str, Any]] = {
    "none": ("None", None),
    "true": ("True", typed("bool", True)),
    "int": ("3", typed("int", 3)),
    "big": ("10**30", typed("int", 10**30)),
    "negative_big": ("-(2**63) - 1", typed("int", -(2**63) - 1)),
    "longest_int": ("2**63 - 1", typed("int", 2**63 - 1)),
    "too_many_digits": ("1 << 20000", typed("int", None)),
    "float": ("0.1", typed("float", 0.1)),
    "minus_zero": ("-0.0", "-0.0"),
    "nan": ("float('nan')", "NaN"),
    "inf": ("float('inf')", typed("float", float("inf"))),
    "minus_inf": ("float('-inf')", typed("float", float("-inf"))),
    "str": ("'abc'", typed("str", "abc")),
    "empty_str": ("''", typed("str", "")),
    "text": ("'\\u00e9\\U0001f600\\n\\x00\"'", typed("str", '\u00e9\U0001f600\n\x00"')),
    "lone_surrogate": ("'a\\ud800b\\udcff'", typed("str", "a\ud800b\udcff")),
    "ellipsis": ("...", typed("ellipsis", "...")),
    "slice": ("slice(1, None, 2)", typed("slice", [1, None, 2])),
    "slice_tensor": (
        "slice(torch.tensor(3), np.int64(5), np.uint8(2))", typed("slice", [3, 5, 2])
    ),
    "slice_other": ("slice(1.5, 'a', Hostile())", typed("slice", [None, None, None])),
    "slice_big": ("slice(10**30)", typed("slice", [None, 10**30, None])),
    "list": ("[1, [2, (3,)]]", [typed("int", 1), [typed("int", 2), [typed("int", 3)]]]),
    "empty_list": ("[]", []),
    "empty_tuple": ("()", []),
    "empty_dict": ("{}", {}),
    "dict": ("{'a': [None, 1]}", {"a": [None, typed("int", 1)]}),
    "keys": (
        "{1: 1, None: 2, True: 3, (1, 2): 4, 0.5: 5, float('nan'): 6, 2**70: 7}",
        {
            "1": typed("int", 3), "null": typed("int", 2), "(1, 2)": typed("int", 4),
            "0.5": typed("int", 5), "NaN": typed("int", 6), str(2**70): typed("int", 7),
        },
    ),
    "true_key": ("{True: 3}", {"true": typed("int", 3)}),
    "surrogate_key": ("{'\\udc80': 1}", {"\udc80": typed("int", 1)}),
    "hostile_key": ("{HostileKey(): 1}", {"<HostileKey>": typed("int", 1)}),
    "namedtuple": ("Pair(1, None)", {"x": typed("int", 1), "y": None}),
    "return_type": ("torch.max(t, 1)", [{"Max": 5.0, "Min": 2.0}, {"Max": 2.0, "Min": 2.0}]),
    "dataclass": ("Data([1])", {"a": [typed("int", 1)], "b": typed("int", 2)}),
    "dataclass_class": ("Data", typed("builtins.type", None)),
    "bad_field": ("BadField(1)", {"good": typed("_Unreadable", None)}),
    "hostile": ("Hostile()", typed("__main__.Hostile", None)),
    "liar": ("Liar()", typed("__main__.Liar", None)),
    "bad_metaclass": ("WithMeta()", ...),
    "hostile_list": ("HostileList([1, t])", [typed("int", 1), {"Max": 5.0}]),
    "hostile_dict": ("HostileDict(a=1)", {"a": typed("int", 1)}),
    "hostile_float": ("HostileFloat(1.5)", typed("HostileFloat", 1.5)),
    "hostile_str": ("HostileStr('x')", typed("HostileStr", "x")),
    "hostile_int": ("HostileInt(7)", typed("HostileInt", 7)),
    "hostile_big_int": ("HostileInt(10**25)", typed("HostileInt", 10**25)),
    "enum": ("Color.RED", typed("Color", 1)),
    "ordered_dict": ("collections.OrderedDict(b=1)", {"b": typed("int", 1)}),
    "default_dict": ("collections.defaultdict(int, b=1)", {"b": typed("int", 1)}),
    "deque": ("collections.deque([1])", typed("collections.deque", None)),
    "complex": ("3 + 4j", typed("builtins.complex", None)),
    "bytes": ("b'ab'", typed("builtins.bytes", None)),
    "set": ("{1, 2}", typed("builtins.set", None)),
    "range": ("range(3)", typed("builtins.range", None)),
    "generator": ("generator", typed("builtins.generator", None)),
    "function": ("generate", typed("builtins.function", None)),
    "module": ("torch", typed("builtins.module", None)),
    "object": ("types.SimpleNamespace(a=1)", typed("types.SimpleNamespace", None)),
    "np_float": ("np.float32(1.5)", typed("float32", 1.5)),
    "np_double": ("np.float64(0.1)", typed("float64", 0.1)),
    "np_half": ("np.float16('nan')", "NaN"),
    "np_int": ("np.int64(-3)", typed("int64", -3)),
    "np_uint": ("np.uint64(2**64 - 1)", typed("uint64", 2**64 - 1)),
    "np_bool": ("np.bool_(True)", typed("bool", True)),
    "np_str": ("np.str_('s')", typed("str_", "s")),
    "np_complex": ("np.complex64(1 + 2j)", typed("complex64", "(1+2j)")),
    "np_time": ("np.datetime64('2020-01-01')", typed("datetime64", "2020-01-01")),
    "array": (
        "np.arange(4)",
        {"type": "numpy.ndarray", "dtype": "int64", "shape": [4], "Max": 3.0, "Min": 0.0,
         "Mean": 1.5},
    ),
    "array_empty": ("np.zeros((0, 3))", {"shape": [0, 3], **NULLS}),
    "array_0d": ("np.array(2.5)", {"shape": [], "Max": 2.5, "Norm": 2.5}),
    "array_text": ("np.array(['x', 'yy'])", {"dtype": "<U2", "shape": [2], **NULLS}),
    "array_object": ("np.array([None, t], object)", {"dtype": "object", "shape": [2], **NULLS}),
    "array_record": ("np.zeros(2, 'i4,f8')", {"shape": [2], **NULLS}),
    "array_read_only": ("read_only", {"dtype": "float64", "Max": 3.0, "Mean": 1.5}),
    "array_reversed": ("np.arange(4.0)[::-1]", {"dtype": "float64", "Max": 3.0, "shape": [4]}),
    "array_big_endian": ("np.arange(4.0).astype('>f8')", {"dtype": ">f8", "Max": 3.0}),
    "array_long_double": ("np.arange(4).astype('longdouble')", {"Max": 3.0, "Mean": 1.5}),
    "array_bool": ("np.array([True, False])", {"dtype": "bool", "Max": True, "Min": False}),
    "array_strided": ("np.arange(12.0).reshape(3, 4).T[::2]", {"shape": [2, 3], "Max": 10.0}),
    "torch_dtype": ("torch.float16", typed("torch.dtype", "torch.float16")),
    "torch_device": ("torch.device('cpu')", typed("torch.device", "cpu:None")),
    "torch_device_index": ("torch.device('cuda', 1)", typed("torch.device", "cuda:1")),
    "torch_format": (
        "torch.channels_last", {"type": "torch.memory_format", "format": "channels_last"}
    ),
    "torch_layout": ("torch.strided", typed("torch.layout", None)),
    "torch_size": ("torch.Size([2, 3])", typed("torch.Size", [2, 3])),
    "torch_generator": ("torch.Generator()", typed("torch._C.Generator", None)),
    "cyclic": ("cyclic", [typed("int", 1), None, None]),
    "ring": ("ring", {"a": typed("int", 1), "self": [None]}),
}

CALLS = """
zoo = {{{zoo}}}
root = torch.nn.Sequential(Take())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
for value in zoo.values():
    root[0](value, give=[value])
debugger.stop(); debugger.step()
assert consumed == [] and list(generator) == [0, 1, 2]
"""


def entries(tmp_path: Path) -> dict[str, Any]:
    text = (tmp_path / "out" / "step0" / "rank" / "dump.json").read_text()
    data: dict[str, Any] = json.loads(text)["data"]
    return data


def check(name: str, found: Any, expected: Any) -> None:
    if expected is ...:
        return
    if expected == "NaN":
        assert found["value"] != found["value"], name
    elif expected == "-0.0":
        assert str(found["value"]) == "-0.0", name
    elif isinstance(expected, dict) and "Max" in expected:
        assert {key: found[key] for key in expected} == expected, name
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), name
        for position, item in enumerate(expected):
            check(f"{name}[{position}]", found[position], item)
    else:
        assert found == expected, name


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_every_value_is_recorded_as_what_it_is(tmp_path: Path, task: str) -> None:
    source = ", ".join(f"{name!r}: {value}" for name, (value, _) in ZOO.items())
    run(SETUP + CALLS.format(zoo=source), config(tmp_path, task=task, level="L0"))
    found = entries(tmp_path)
    assert len(found) == len(ZOO)
    for number, (name, (_, expected)) in enumerate(ZOO.items()):
        entry = found[f"Module.0.Take.forward.{number}"]
        check(name, entry["input_args"][0], expected)
        check(name, entry["input_kwargs"]["give"][0], expected)


def test_what_is_lost_is_counted(tmp_path: Path) -> None:
    values = ["cyclic", "bomb", "BadField(1)", "slice('a')", "1 << 20000", "[1, {2: t}]"]
    source = ", ".join(f"{number}: {value}" for number, value in enumerate(values))
    run(SETUP + CALLS.format(zoo=source).replace("give=[value]", ""), config(tmp_path, level="L0"))
    log = (tmp_path / "out" / "step0" / "rank" / "dump_error_info.log").read_text()
    assert "values_unreadable: 6 " in log  # cyclic holds itself twice
    assert "Module.0.Take.forward.4: a value that cannot be read" in log


def leaf_depth(value: Any) -> tuple[int, Any]:
    depth = 0
    while isinstance(value, list) or (isinstance(value, dict) and "k" in value):
        value = value[0] if isinstance(value, list) else value["k"]
        depth += 1
    return depth, value


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_nesting_is_kept_to_a_depth_of_400(tmp_path: Path, kind: str) -> None:
    depths = [11, 399, 400, 401, 5000]
    source = ", ".join(f"{depth}: nested({depth}, {kind})" for depth in depths)
    run(SETUP + CALLS.format(zoo=source).replace("give=[value]", ""), config(tmp_path, level="L0"))
    found = entries(tmp_path)
    for number, depth in enumerate(depths):
        reached, leaf = leaf_depth(found[f"Module.0.Take.forward.{number}"]["input_args"][0])
        expected = (depth, typed("int", 5)) if depth <= 400 else (400, None)
        assert (reached, leaf) == expected
    written = str(tmp_path / "out" / "step0" / "rank")
    assert plumbline.compare(written, written) is not None  # what is written is read


def test_the_keys_dtype_and_device_name_their_values(tmp_path: Path) -> None:
    body = """
root = torch.nn.Sequential(Take())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
root[0](dtype=torch.bfloat16, device="cuda:0")
root[0](dtype="float32", device=torch.device("cpu"))
root[0](dtype=None, device=None)
root[0](dtype=t, device=t)
root[0](options={"dtype": torch.int8, "device": "meta"})
debugger.stop(); debugger.step()
"""
    run(SETUP + body, config(tmp_path, level="L0"))
    found = [entry["input_kwargs"] for entry in entries(tmp_path).values()]
    assert found[0]["dtype"] == typed("torch.dtype", "torch.bfloat16")
    assert found[0]["device"] == typed("torch.device", "cuda:0")
    assert found[1]["dtype"] == typed("torch.dtype", "float32")
    assert found[1]["device"] == typed("torch.device", "cpu:None")
    assert found[2] == {"dtype": None, "device": None}
    assert found[3]["dtype"]["Max"] == found[3]["device"]["Max"] == 5.0
    assert found[4]["options"] == {
        "dtype": typed("torch.dtype", "torch.int8"), "device": typed("torch.device", "meta")
    }


def test_a_model_output_keeps_its_fields(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    body = """
from transformers.modeling_outputs import BaseModelOutput
class Give(torch.nn.Module):
    def forward(self, x): return BaseModelOutput(last_hidden_state=x, attentions=(x, x))
root = torch.nn.Sequential(Give())
debugger = PrecisionDebugger(sys.argv[1])
debugger.start(model=root)
out = root[0](t)
assert list(out) == ["last_hidden_state", "attentions"] and len(out.to_tuple()) == 2
debugger.stop(); debugger.step()
"""
    code = SETUP.replace('warnings.simplefilter("error")', "") + body
    run(code, config(tmp_path, task="tensor", level="L0"))
    output = entries(tmp_path)["Module.0.Give.forward.0"]["output"][0]
    assert list(output) == ["last_hidden_state", "hidden_states", "attentions"]
    assert output["hidden_states"] is None
    name = "Module.0.Give.forward.0.output.0.attentions.1.pt"
    assert output["attentions"][1]["data_name"] == name
