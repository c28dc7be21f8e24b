"""The text of a test program for one call: pytest and PyTorch, and nothing else."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.precheck_run.case_limits import Expected, Limit
from plumbline.precheck_run.extracted_case import CHANGED, GOLDEN, Case, Side, TensorName

# Of a test as it was recorded, and of one that was made smaller: which of them belongs to the
# program changes with the program, in one step.
DATA_FILE, REDUCED_DATA_FILE = "data.pt", "reduced.pt"
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
    seconds: float | None = None  # the call does not come back: the program ends after so long


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


def script(case: Case, expected: Expected, about: About, data_file: str = DATA_FILE) -> str:
    """The whole program."""
    constants = _CONSTANTS.format(device=about.device, data=data_file)
    constants += _SIDE if case.golden else ""
    if about.seconds is not None:
        constants = constants.replace("import os\n", "import faulthandler\nimport os\nimport sys\n")
        constants += _END.format(seconds=about.seconds)
    parts = [_head(case, about, data_file) + "\n".join([constants, _limits_text(expected)])
             + f"WITH_GRADIENT = {sorted(case.wants_grad)}\n"]
    parts += [TENSORS, _INPUTS, _CHECK, _call_function(case, expected.is_in_place),
              _FORWARD.rstrip("\n") + "\n" + _changed_text(case, expected)]
    if case.grads and any(name.startswith("gradient") for name in expected.values):
        grads = [None if grad is None else grad.name for grad in case.grads]
        parts += [GRADIENTS, _BACKWARD.format(grads=grads)]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _changed_text(case: Case, expected: Expected) -> str:
    """What the forward test checks besides what the call returned."""
    if not any(name.startswith(CHANGED) for name in expected.values):
        return ""
    argument = f"data[name.removeprefix({CHANGED!r})]"
    if case.golden:
        other = f'"{GOLDEN}" + name.removeprefix({CHANGED!r})'
        argument = f'data.get({other} if SIDE == "golden" else "", {argument})'
    return _CHANGED.format(argument=argument)


def _limits_text(expected: Expected) -> str:
    lines = ["# How far an element may be from the right one, which float64 gave: a number, and a",
             "# part of the right one; zeros: not at all. None: it is not judged.", "LIMITS = {"]
    for name in expected.values:
        limit = expected.limits.get(name)
        if limit is None:
            lines += _remark(f"{name}: {expected.left_out[name]}")
            lines.append(f"    {name!r}: None,")
            continue
        if limit.cut_from:
            lines += _remark(f"The errors of this type call for {limit.cut_from:.3g}, which would "
                             "let wrong results pass.")
        lines.append(f"    {name!r}: {_limit_text(limit)},")
    return "\n".join([*lines, "}", ""])


def _remark(text: str) -> list[str]:
    return [f"    # {line}" for line in textwrap.wrap(ascii(text)[1:-1], _LONGEST_LINE - 6)]


def _limit_text(limit: Limit) -> str:
    return f"({limit.absolute:.4g}, {limit.relative:.4g})"


def _head(case: Case, about: About, data_file: str) -> str:
    """Comments: names and paths in them are only text, whatever they hold."""
    lines = [f"{about.call} by itself, as it was recorded in {about.run!a}.", ""]
    where = f"the call in {about.golden!a}" if about.golden else "the call"
    lines += textwrap.wrap(
        f"{data_file} beside this file holds its tensors, and what {where} makes of them in "
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
DATA = torch.load(Path(__file__).with_name({data!r}), weights_only=True)
'''

_SIDE = '''SIDE = os.environ.get("SIDE", "target")
'''

_END = '''# The call did not come back here: after so many seconds this ends the program.
faulthandler.dump_traceback_later({seconds!r}, exit=True, file=sys.__stderr__)
'''

# The next two are in the programs of op_script as well.
TENSORS = '''
def tensors(value):
    """The tensors in a result, depth first."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (bool, int, float)):
        return [torch.tensor(value)]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value or [] for leaf in tensors(item)]
'''

GRADIENTS = '''
def gradients(outputs, incoming, data, leaves):
    """Of the leaves; `incoming` has the name of the gradient that comes into each output."""
    pairs = [(output, data[name]) for output, name in zip(outputs, incoming)
             if name is not None and output.requires_grad]
    return torch.autograd.grad([output for output, _ in pairs], leaves,
                               [grad.to(output.dtype) for output, grad in pairs],
                               allow_unused=True)
'''

_INPUTS = '''
def inputs(with_gradient):
    """Copies of the tensors on the device, as calls may change them; and what has gradients."""
    data, leaves = {}, {}
    for name, tensor in DATA["tensors"].items():
        data[name] = tensor.to(DEVICE, copy=True)
        if with_gradient and name in WITH_GRADIENT:
            leaves[name] = data[name].requires_grad_()
            data[name] = leaves[name].clone()
    return data, leaves
'''

_CHECK = '''
def check(name, result):
    """Compares a result with the right one."""
    expected, limit = DATA["expected"][name], LIMITS[name]
    result = result.detach().cpu()
    assert result.shape == expected.shape, f"{name}: shape {tuple(result.shape)}"
    if limit is None:
        return
    is_measured = expected.is_floating_point() or expected.is_complex()
    result = result.to(expected.dtype) if is_measured else result
    wrong = ~((result == expected) | (result.isnan() & expected.isnan()))
    if limit != (0, 0):
        allowed = limit[0] + limit[1] * expected.abs()
        wrong &= ~(expected.isfinite() & ((result - expected).abs() <= allowed))
    count = int(wrong.sum())
    if count:
        place = tuple(wrong.nonzero()[0].tolist())
        raise AssertionError(
            f"{name}: {count} of {wrong.numel()} elements are too far off; {place} is "
            f"{result[place].item()} (expected {expected[place].item()}, limit {limit})")
'''

_FORWARD = '''
def test_forward():
    data, _ = inputs(with_gradient=False)
    results = tensors(call(data))
    assert len(results) == sum(name.startswith("output") for name in LIMITS)
    for number, result in enumerate(results):
        check(f"output.{number}", result)
'''

# Where a run is a side, it may have passed another tensor at that place.
_CHANGED = '''    for name in [name for name in LIMITS if name.startswith("changed ")]:
        check(name, {argument})
'''

_BACKWARD = '''
def test_backward():
    data, leaves = inputs(with_gradient=True)
    outputs = tensors(call(data))
    found = gradients(outputs, {grads}, data, list(leaves.values()))
    results = {{f"gradient of {{name.removeprefix('golden_')}}": gradient
               for name, gradient in zip(leaves, found) if gradient is not None}}
    assert sorted(results) == sorted(name for name in LIMITS if name.startswith("gradient"))
    for name, result in results.items():
        check(name, result)
'''


def _call_function(case: Case, is_in_place: bool) -> str:
    what = "The call as it was recorded" + (", and what it changes." if is_in_place else ".")
    lines = ["def call(data):", f'    """{what}"""', "    torch.manual_seed(0)"]
    if case.golden:
        lines.append('    if SIDE == "golden":')
        lines += _returned(case, case.golden, is_in_place, "        ")
    return "\n".join([*lines, *_returned(case, case.target, is_in_place, "    ")])


def _returned(case: Case, side: Side, is_in_place: bool, indent: str) -> list[str]:
    lines, outer = [], indent
    if case.autocast:
        lines = [f"{indent}with torch.autocast(torch.device(DEVICE).type, dtype={case.autocast}):"]
        indent += "    "
    text = textwrap.indent(call_text(case, side), indent).lstrip()
    if is_in_place:
        return [*lines, f"{indent}{text}", f"{outer}return {value_text(side.args[0])}"]
    return [*lines, f"{indent}return {text}"]
