"""The text of a test program for one call: pytest and PyTorch, and nothing else."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.precheck_run.extracted_case import Case, Expected, Side, TensorName

DATA_FILE = "data.pt"
_OWNERS = {"Functional": "torch.nn.functional", "Tensor": "torch.Tensor", "Torch": "torch",
           "Aten": "torch.ops.aten", "VF": "torch._VF"}
_LONGEST_LINE = 96


@dataclass(frozen=True)
class About:
    """What the first lines of the program say."""

    call: str  # "Tensor.__add__.22"
    run: str
    golden: str
    device: str  # the default of DEVICE


def function_text(case: Case) -> str:
    """"torch.nn.functional.softmax".

    Raises:
        ValueError: the call is none of plain PyTorch.
    """
    owner = _OWNERS.get(case.type)
    if owner is None:
        raise ValueError(f"{case.type}.{case.api} is no function of plain PyTorch (expected a call "
                         f"of the types {', '.join(_OWNERS)})")
    return f"{owner}.{case.api}"


def value_text(value: Any, device: str = "DEVICE") -> str:
    """Python source of an argument; tensors are elements of `data`, devices are `device`."""
    if isinstance(value, TensorName):
        return f"data[{value.name!r}]"
    if value is ...:
        return "..."
    if isinstance(value, torch.device):
        return '"meta"' if value.type == "meta" else device
    if isinstance(value, torch.Size):
        return f"torch.Size({list(value)})"
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{float(value)}")'
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return "slice(" + ", ".join(value_text(part, device) for part in parts) + ")"
    if type(value) is list:
        return "[" + ", ".join(value_text(item, device) for item in value) + "]"
    if type(value) is tuple:
        return "(" + "".join(value_text(item, device) + ", " for item in value).rstrip() + ")"
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {value_text(v, device)}" for k, v in value.items()) + "}"
    if type(value).__module__ == "numpy":
        plain = value.item()
        return value_text(plain if type(plain).__module__ != "numpy" else float(plain), device)
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return ascii(value)
    raise ValueError(f"an argument of the type {type(value).__name__} cannot be written down")


def call_text(case: Case, side: Side, device: str = "DEVICE") -> str:
    """Python source of the call."""
    words = [value_text(value, device) for value in side.args]
    words += [f"{name}={value_text(value, device)}" for name, value in side.kwargs.items()]
    line = f"{function_text(case)}({', '.join(words)})"
    if len(line) <= _LONGEST_LINE - 11:
        return line
    return f"{function_text(case)}(\n" + "".join(f"    {word},\n" for word in words) + ")"


def script(case: Case, expected: Expected, about: About) -> str:
    """The whole program."""
    constants = _CONSTANTS.format(device=about.device) + (_SIDE if case.golden else "")
    parts = [_head(case, about) + "\n" + constants]
    limits = ",\n".join(f"    {name!r}: {value_text(limit)}"
                        for name, limit in expected.limits.items())
    parts[0] += ("\n# Largest absolute difference from the right result, in float64; 0: none.\n"
                 f"LIMITS = {{\n{limits},\n}}\nWITH_GRADIENT = {sorted(case.wants_grad)}\n")
    parts.append(_HELPERS)
    parts.append(_call_function(case))
    parts.append(_FORWARD)
    if case.grads and any(name.startswith("gradient") for name in expected.values):
        grads = [None if grad is None else grad.name for grad in case.grads]
        parts.append(_BACKWARD.format(grads=grads))
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _head(case: Case, about: About) -> str:
    """Comments: names and paths in them are only text, whatever they hold."""
    lines = [f"{about.call} by itself, as it was recorded in {about.run!a}.", ""]
    where = f"the call in {about.golden!a}" if about.golden else "the call"
    lines += textwrap.wrap(
        f"{DATA_FILE} beside this file holds its tensors, and what {where} makes of them in "
        "float64. The tests fail where this call gives something else.", _LONGEST_LINE - 2)
    lines += ["", "    pytest -q THIS_FILE                 on the device " + ascii(about.device),
              "    DEVICE=npu pytest -q THIS_FILE      on another one"]
    if case.golden:
        lines.append("    SIDE=golden pytest -q THIS_FILE     with the arguments of the golden run")
    return "\n".join(f"# {line}".rstrip() for line in lines) + "\n"


_CONSTANTS = '''
import os
from pathlib import Path

import torch

DEVICE = os.environ.get("DEVICE", {device!r})
DATA = torch.load(Path(__file__).with_name("data.pt"), weights_only=True)
'''

_SIDE = '''SIDE = os.environ.get("SIDE", "target")
'''

_HELPERS = '''
def inputs(with_gradient):
    """Copies of the tensors on the device, as calls may change them; and what has gradients."""
    data, leaves = {}, {}
    for name, tensor in DATA["tensors"].items():
        data[name] = tensor.to(DEVICE, copy=True)
        if with_gradient and name in WITH_GRADIENT:
            leaves[name] = data[name].requires_grad_()
            data[name] = leaves[name].clone()
    return data, leaves


def tensors(value):
    """The tensors in a result, depth first."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (bool, int, float)):
        return [torch.tensor(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value or [] for leaf in tensors(item)]


def check(name, result):
    """Compares a result with the one in float64."""
    expected, limit = DATA["expected"][name], LIMITS[name]
    result = result.detach().cpu()
    assert result.shape == expected.shape, f"{name}: shape {tuple(result.shape)}"
    result = result.to(expected.dtype)
    same = (result == expected) | (result.isnan() & expected.isnan())
    wrong = ~same & ~((result - expected).abs() <= limit) if limit else ~same
    count = int(wrong.sum())
    if count:
        place = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"{name}: {count} of {wrong.numel()} elements are off by more than {limit:.3g}; "
            f"{place} is {result[place].item()} (expected {expected[place].item()})")
'''

_FORWARD = '''
def test_forward():
    data, _ = inputs(with_gradient=False)
    results = tensors(call(data))
    assert len(results) == sum(name.startswith("output") for name in LIMITS)
    for number, result in enumerate(results):
        check(f"output.{{number}}", result)
'''.replace("{{", "{").replace("}}", "}")

_BACKWARD = '''
def test_backward():
    data, leaves = inputs(with_gradient=True)
    outputs = tensors(call(data))
    names = {grads}
    pairs = [(output, data[name]) for output, name in zip(outputs, names)
             if name is not None and output.requires_grad]
    found = torch.autograd.grad([output for output, _ in pairs], list(leaves.values()),
                                [grad.to(output.dtype) for output, grad in pairs],
                                allow_unused=True)
    gradients = {{f"gradient of {{name.removeprefix('golden_')}}": gradient
                 for name, gradient in zip(leaves, found) if gradient is not None}}
    assert sorted(gradients) == sorted(name for name in LIMITS if name.startswith("gradient"))
    for name, gradient in gradients.items():
        check(name, gradient)
'''


def _call_function(case: Case) -> str:
    lines = ["def call(data):", '    """The call as it was recorded."""',
             "    torch.manual_seed(0)"]
    if case.golden:
        lines += ['    if SIDE == "golden":', *_returned(case, case.golden, "        ")]
    return "\n".join([*lines, *_returned(case, case.target, "    ")])


def _returned(case: Case, side: Side, indent: str) -> list[str]:
    lines = []
    if case.autocast:
        lines = [f"{indent}with torch.autocast(torch.device(DEVICE).type, dtype={case.autocast}):"]
        indent += "    "
    text = textwrap.indent(call_text(case, side), indent).lstrip()
    return [*lines, f"{indent}return {text}"]
