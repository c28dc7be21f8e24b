"""Executors of a pre-check, asked as `plumb precheck` asks them: over sockets and shared memory."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from precheck_processes import (
    Executor,
    Raw,
    Zygote,
    is_running,
    size_of,
    wait_for_end,
)
from torch.nn import functional as F

from plumbline.precheck_run import values
from plumbline.precheck_run.executor import Place, serve
from plumbline.precheck_run.pytorch import TorchRunner

# Calls that a framework does not have: one that crashes, one that hangs, one that returns a dict.
SITE = """
import os, sys, time, torch
functional = torch.nn.functional
functional.crash = lambda x: os.abort()
functional.leave = lambda x: sys.exit(3)
functional.hang = lambda x: time.sleep(3600)
functional.same = lambda x: x
functional.mapped = lambda x: {"sum": x + x, "rest": [x * 3, None, (True, 7, "text")]}
functional.special = lambda x: [torch.float16, torch.Size([2, 3]), float("nan"), float("-inf"),
                                1 << 62, -(1 << 63), 1 << 70, 1.5j, torch.device("cpu"), object]
functional.give = lambda *args, **kwargs: (repr(args), repr(kwargs))

class Reference:  # stands for the module of reference functions
    recorded = threads = None
    def find(self, name):
        return self.double if name == "npu_double" else None
    def double(self, x, *, rows=None):
        return [x * 2, self.recorded, self.threads, str(x.device)]
    def set_recorded(self, dtype):
        self.recorded = dtype
    def set_threads(self, threads):
        self.threads = threads
    def post_process(self, api, outputs, kwargs):
        return [outputs[0][: kwargs["rows"]], *outputs[1:]] if "rows" in kwargs else outputs
reference = sys.modules["plumbline.precheck_run.reference"] = Reference()
reference.double = reference.double  # the same object each time
"""


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """A server that has started, with two slots and the calls of SITE."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    server = Zygote(2, {"PYTHONPATH": path})
    assert server.start()["ready"]
    yield server
    server.close()


@pytest.fixture
def bench(zygote: Zygote) -> Iterator[Executor]:
    """An executor of the benchmark side."""
    yield from _executor(zygote, "bench")


@pytest.fixture
def device(zygote: Zygote) -> Iterator[Executor]:
    """An executor of the device side; the device is the CPU."""
    yield from _executor(zygote, "device")


def _executor(zygote: Zygote, role: str) -> Iterator[Executor]:
    executor = zygote.fork(role=role)
    assert executor.ready()["ready"]
    yield executor
    executor.connection.close()
    assert zygote.end_of(7) == "exit status 0"


def noise(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Numbers that depend on the shape alone."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=generator).to(dtype).requires_grad_(grad)


# ---- Values

@pytest.mark.parametrize("value", [
    None, True, 3, -(1 << 63), 2.5, math.inf, "text", [1, [2, None]], (1, ("a",)),
    {"a": [1], "b": {"c": 2}},
], ids=repr)
def test_a_plain_value_comes_back_from_its_json(value: Any) -> None:
    text = json.dumps(values.encode(value, lambda _: None, lambda _: None))
    back = values.decode(json.loads(text), {})
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("described", "value"), [
    ({"slice": [1, None, 2]}, slice(1, None, 2)), ({"ellipsis": "..."}, ...),
    ({"list": [{"tuple": [1]}]}, [(1,)]), ({"dict": [["k", {"list": []}]]}, {"k": []}),
], ids=repr)
def test_what_json_has_no_form_for_is_made(described: Any, value: Any) -> None:
    assert values.decode(described, {}) == value


@pytest.mark.parametrize(("name", "text", "value"), [
    ("float16", "1.5", 1.5), ("int64", "-7", -7), ("bool_", "False", False),
    ("bool_", "True", True), ("complex64", "(1+2j)", 1 + 2j), ("str_", "abc", "abc"),
    ("string_", "abc", b"abc"), ("uint8", "255", 255),
])
def test_a_numpy_scalar_is_made_of_its_type(name: str, text: str, value: Any) -> None:
    scalar = values.decode({"numpy": [name, text]}, {})
    assert type(scalar).__name__.rstrip("_") == name.rstrip("_").replace("string", "bytes")
    assert scalar == value


@pytest.mark.parametrize("described", [
    {"other": "object"}, {"numpy": ["load", "x"]}, {"numpy": ["int8", "many"]},
    {"numpy": ["ndarray", "1"]},
], ids=repr)
def test_a_value_that_cannot_be_made_is_refused(described: Any) -> None:
    with pytest.raises(values.BadArgumentError):
        values.decode(described, {})


DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn",
          "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (2, 3, 4)], ids=str)
def test_every_type_of_elements_and_shape_goes_through(
    device: Executor, name: str, shape: tuple[int, ...]
) -> None:
    dtype = getattr(torch, name)
    data = bytes(range(1, 2)) * (math.prod(shape) * dtype.itemsize)  # no NaN, no odd bool
    tensor = torch.frombuffer(bytearray(data or b"\0" * 16), dtype=dtype)
    tensor = tensor[: math.prod(shape)].view(shape)
    answer = device.ask("Tensor.clone.0", tensor)
    assert answer["forward"]["value"]["tensor"][:2] == [name, list(shape)]
    found = device.result(answer)
    assert found.view(-1).view(torch.uint8).tolist() == tensor.view(-1).view(torch.uint8).tolist()


def test_arguments_arrive_as_they_are_described(bench: Executor) -> None:
    half = Raw({"memory_format": "torch.channels_last"})
    answer = bench.ask("Functional.give.0", None, 2, [1, (2,)], torch.Size([2]), slice(1, 2), ...,
                       Raw({"numpy": ["float16", "1.5"]}), torch.bfloat16, half,
                       kwargs={"device": Raw({"device": "npu:3"}), "x": {"k": float("nan")}})
    args, kwargs = bench.result(answer)
    assert args == ("(None, 2, [1, (2,)], torch.Size([2]), slice(1, 2, None), Ellipsis, "
                    f"{values.numpy_scalar('float16', '1.5')!r}, torch.bfloat16, "
                    "torch.channels_last)")
    assert kwargs == "{'device': device(type='cpu'), 'x': {'k': nan}}"


def test_results_of_every_kind_are_described(bench: Executor) -> None:
    answer = bench.ask("Functional.special.0", 1)
    dtype, size, nan, low, *integers, large, imaginary, device, kind = bench.result(answer)
    assert (dtype, size) == ({"dtype": "torch.float16"}, (2, 3))
    assert math.isnan(nan)
    assert (low, integers) == (-math.inf, [1 << 62, -(1 << 63)])
    assert (large, imaginary) == ({"other": "int"}, {"other": "builtins.complex"})
    assert (device, kind) == ({"device": "cpu"}, {"other": "builtins.type"})


def test_nested_results_keep_their_form(bench: Executor) -> None:
    x = noise(2, 3)
    found = bench.result(bench.ask("Functional.mapped.0", x))
    assert list(found) == ["sum", "rest"]
    assert torch.equal(found["sum"], x.double() * 2)
    assert torch.equal(found["rest"][0], x.double() * 3)
    assert found["rest"][1:] == [None, (True, 7, "text")]


@pytest.mark.parametrize(("name", "args"), [
    ("Tensor.to_sparse.0", (noise(2, 3),)),
    ("Torch.quantize_per_tensor.0", (noise(4), 0.1, 0, Raw({"dtype": "torch.quint8"}))),
    ("Tensor.to.0", (noise(4), Raw({"device": "meta"}))),
    ("Torch.nested.nested_tensor.0", ([noise(2), noise(3)],)),
])
def test_a_tensor_without_plain_elements_is_other(
    device: Executor, name: str, args: tuple[Any, ...]
) -> None:
    assert " tensor of torch." in device.result(device.ask(name, *args))["other"]


# ---- Calls, against PyTorch run directly in float64

def _raised(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        leaf = value.detach().double() if value.is_floating_point() else value.detach()
        return leaf.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return [_raised(item) for item in value]
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


W, B = noise(4, 5, grad=True), noise(4, grad=True)
LSTM = [noise(12, 4, grad=True), noise(12, 3, grad=True), noise(12, grad=True),
        noise(12, grad=True)]
INDEX = torch.tensor([[0, 3], [4, 3]])
CALLS: dict[str, tuple[Callable[..., Any], list[Any], dict[str, Any]]] = {
    "Functional.linear.0": (F.linear, [noise(3, 5, grad=True)], {"weight": W, "bias": B}),
    "Functional.softmax.0": (F.softmax, [noise(3, 5, grad=True)], {"dim": -1}),
    "Functional.conv2d.0": (
        F.conv2d, [noise(2, 3, 8, 8, grad=True), noise(4, 3, 3, 3, grad=True), B], {"stride": 2}),
    "Functional.embedding.0": (F.embedding, [INDEX, noise(5, 6, grad=True)], {}),
    "Functional.layer_norm.0": (
        F.layer_norm, [noise(3, 4, grad=True), [4], noise(4, grad=True), noise(4, grad=True)],
        {"eps": 1e-3}),
    "Torch.topk.0": (torch.topk, [noise(3, 9, grad=True), 4], {}),
    "Torch.max.0": (torch.max, [noise(3, 9, grad=True), 1], {}),
    "Torch.cat.0": (torch.cat, [[noise(2, 3, grad=True), noise(4, 3, grad=True)]], {"dim": 0}),
    "Torch.split.0": (torch.split, [noise(7, 3, grad=True), 3], {}),
    "Torch.linalg.norm.0": (torch.linalg.norm, [noise(7, 3, grad=True)], {}),
    "Torch.lstm.0": (torch.lstm, [noise(5, 2, 4, grad=True),
                                  [noise(1, 2, 3, grad=True), noise(1, 2, 3)], LSTM, True, 1, 0.0,
                                  False, False, False], {}),
    "Tensor.add_.0": (torch.Tensor.add_, [noise(3, 4, grad=True), noise(4, grad=True)],
                      {"alpha": 2}),
    "Tensor.mul_.0": (torch.Tensor.mul_, [noise(3, 4, grad=True), noise(4, grad=True)], {}),
    "Tensor.transpose_.0": (torch.Tensor.transpose_, [noise(3, 4, grad=True), 0, 1], {}),
    "Tensor.__getitem__.0": (torch.Tensor.__getitem__, [noise(5, 4, grad=True), INDEX], {}),
    "Aten.gelu.0": (torch.ops.aten.gelu, [noise(5, 4, grad=True)], {}),
    "Aten.add.Tensor.0": (torch.ops.aten.add.Tensor, [noise(5, 4, grad=True), noise(4)], {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_what_pytorch_computes_in_float64(bench: Executor, name: str) -> None:
    function, args, kwargs = CALLS[name]
    raised, keywords = _raised(args), {key: _raised(item) for key, item in kwargs.items()}
    inputs = _tensors([raised, list(keywords.values())])
    # The same values, but no leaves: what is changed in place may not be one.
    places = {id(tensor): tensor.clone() for tensor in inputs}
    truth = function(*_replaced(raised, places), **_replaced(keywords, places))
    outputs = _tensors(truth)
    graded = [output for output in outputs if output.requires_grad]
    grads = [noise(*output.shape) for output in graded]
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    gradients = torch.autograd.grad(graded, wanted, [grad.double() for grad in grads])

    answer = bench.ask(name, *args, kwargs=kwargs, grads=grads)
    found = _tensors(bench.result(answer))
    assert [tensor.dtype for tensor in found] == [tensor.dtype for tensor in outputs]
    for tensor, expected in zip(found, outputs, strict=True):
        torch.testing.assert_close(tensor, expected.detach(), rtol=1e-12, atol=1e-12)
    found = bench.result(answer, "backward")
    assert [item is None for item in found] == [not tensor.requires_grad for tensor in inputs]
    for tensor, expected in zip(filter(_is_tensor, found), gradients, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=1e-12, atol=1e-12)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _replaced(value: Any, places: dict[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return places[id(value)]
    if isinstance(value, list):
        return [_replaced(item, places) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, places) for key, item in value.items()}
    return value


def test_the_device_side_keeps_the_recorded_type(device: Executor) -> None:
    x = noise(3, 5, dtype=torch.bfloat16).requires_grad_()
    answer = device.ask("Functional.gelu.0", x, grads=[noise(3, 5, dtype=torch.bfloat16)])
    assert torch.equal(device.result(answer), F.gelu(x.detach()))
    assert device.result(answer, "backward")[0].dtype == torch.bfloat16


def test_both_sides_get_the_precision_that_each_tensor_names(bench: Executor) -> None:
    half = noise(3, 4, dtype=torch.float16)
    answer = bench.ask("Torch.add.0", half, torch.arange(4))
    assert answer["forward"]["value"]["tensor"][0] == "float32"
    assert torch.equal(bench.result(answer), half.float() + torch.arange(4))


def test_autocast_is_of_the_device_side_alone(bench: Executor, device: Executor) -> None:
    args = (noise(3, 5), noise(4, 5))
    found = device.result(device.ask("Functional.linear.0", *args, autocast="bfloat16"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = F.linear(*args)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, expected)
    answer = bench.ask("Functional.linear.0", *args, autocast="bfloat16")
    assert bench.result(answer).dtype == torch.float64


def test_out_is_written_and_has_no_backward(bench: Executor) -> None:
    x, y = noise(3, 4, grad=True), noise(4)
    answer = bench.ask("Torch.add.0", x, y, kwargs={"out": torch.zeros(3, 4)},
                       grads=[noise(3, 4)])
    assert torch.equal(bench.result(answer), (x + y.double()).detach())
    assert answer["backward"]["skip"][0] == "backward-skipped"


def test_calls_in_place_leave_the_shared_inputs_alone(zygote: Zygote, device: Executor) -> None:
    request = device.request("Tensor.add_.0", noise(3, 4), noise(4))
    before = os.pread(zygote.memory[0], 1 << 16, 0)
    device.send(request)
    assert "value" in (device.read() or {})["forward"]
    assert os.pread(zygote.memory[0], 1 << 16, 0) == before


def after(executor: Executor, answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What the arguments are behind a call: kind -> place -> tensor, None for what is returned."""
    return {kind: executor.result({"arguments": {"value": value}}, "arguments")
            for kind, value in answer["arguments"].items()}


@pytest.mark.parametrize(("name", "args", "kwargs", "places"), [
    ("Tensor.add_.0", (noise(3, 4), noise(4)), {}, {"0": None}),
    ("Tensor.__setitem__.0", (noise(3, 4), 1, 2.5), {}, {"0": (1, 2.5)}),
    ("Torch.add.0", (noise(3, 4), 1), {"out": noise(3, 4)}, {"out": None}),
    ("Torch._foreach_add_.0", ([noise(2), noise(2)], 1), {},
     {"0_0": None, "0_1": None}),
    ("Torch.add.0", (noise(3, 4), 1), {}, {}),
    ("Functional.relu.0", (noise(3, 4),), {"inplace": True}, {"0": None}),
])
def test_arguments_that_a_call_changes_come_back(
    device: Executor, name: str, args: tuple[Any, ...], kwargs: dict[str, Any],
    places: dict[str, Any]
) -> None:
    found = after(device, device.ask(name, *args, kwargs=kwargs))
    assert found.keys() == ({"changed"} if places else set())
    changed = found.get("changed", {})
    assert changed.keys() == places.keys()
    for place, assigned in places.items():
        if assigned is None:  # it is what the call returned
            assert changed[place] is None
            continue
        wanted = noise(3, 4)
        wanted[assigned[0]] = assigned[1]
        assert torch.equal(changed[place], wanted)


@pytest.mark.parametrize("trains", [True, False])
def test_running_statistics_come_back_though_no_version_counts_them(
    bench: Executor, trains: bool
) -> None:
    x, mean, variance = noise(6, 3, grad=True), noise(3), torch.ones(3)
    answer = bench.ask("Functional.batch_norm.0", x, mean, variance, None, None, trains, 0.1, 1e-5,
                       grads=[noise(6, 3)])
    statistics = [mean.double(), variance.double()]
    F.batch_norm(x.detach().double(), *statistics, training=trains)
    found = after(bench, answer)
    assert found.keys() == {"changed" if trains else "kept"}
    for place, expected in zip(("1", "2"), statistics, strict=True):
        torch.testing.assert_close(next(iter(found.values()))[place], expected)


X = noise(4, 5)
MASK = torch.tensor([True, False, True, False])


@pytest.mark.parametrize(("index", "expected"), [
    (2, X[2]), (slice(1, 3), X[1:3]), ([slice(None), 1], X[:, 1]),
    ([..., None, 0], X[..., None, 0]), ([1, 2], X[1, 2]), ([1, 2, 0], X[[1, 2, 0]]),
    ([3, 9], None), ([True, False, True, False], X[MASK]),
    (MASK, X[MASK]), (MASK.to(torch.uint8), X[MASK]), (INDEX % 4, X[INDEX % 4]),
    ([INDEX % 4, INDEX], X[INDEX % 4, INDEX]), (X > 0, X[X > 0]), ([None, [0, 2]], X[None, [0, 2]]),
    (torch.tensor(3), X[3]),
], ids=str)
def test_an_index_out_of_a_dump_is_the_one_that_was_used(
    bench: Executor, index: Any, expected: torch.Tensor | None
) -> None:
    answer = bench.ask("Tensor.__getitem__.0", X, index)
    if expected is None:
        assert answer["forward"]["skip"][0] == "cpu-failed"
    else:
        assert torch.equal(bench.result(answer), expected.double())


def test_a_recorded_gradient_tells_a_list_from_a_tuple(bench: Executor) -> None:
    x = noise(4, 5, grad=True)
    answer = bench.ask("Tensor.__getitem__.0", x, [1, 2], grads=[noise(2, 5)])
    assert torch.equal(bench.result(answer), x.detach()[[1, 2]].double())
    assert torch.equal(bench.result(answer, "backward")[0][1], noise(2, 5)[0].double())


def test_a_tensor_compared_with_none(bench: Executor) -> None:
    assert bench.result(bench.ask("Tensor.__eq__.0", X, None)) is False
    assert bench.result(bench.ask("Tensor.__ne__.0", X, None)) is True
    assert bench.result(bench.ask("Tensor.__eq__.0", X, X)).all()


@pytest.mark.parametrize("role", ["bench", "device"])
def test_a_reference_function_stands_in_for_an_operator(zygote: Zygote, role: str) -> None:
    executor = zygote.fork(identity=37, role=role)
    assert executor.ready()["ready"]
    x, gradient = noise(4, 2, dtype=torch.float16).requires_grad_(), noise(4, 2)
    answer = executor.ask("NPU.npu_double.0", x, kwargs={"rows": 3}, grads=[gradient])
    value, recorded, threads, where = executor.result(answer)
    backward = executor.result(answer, "backward")[0]
    executor.connection.close()
    assert zygote.end_of(37) == "exit status 0"
    assert value.dtype == (torch.float32 if role == "bench" else torch.float16)
    assert torch.equal(value, (x.detach() * 2)[:3].to(value.dtype))
    assert (recorded, threads, where) == ("float16", 1, "cpu")
    assert "arguments" not in answer  # what the operator writes, the reference need not
    assert torch.equal(backward, (gradient * 2).to(value.dtype))


# ---- Backward

def test_a_gradient_that_was_not_recorded_is_not_applied(bench: Executor) -> None:
    x = noise(6, 3, grad=True)
    gradient = noise(2, 3)
    answer = bench.ask("Torch.split.0", x, 2, grads=[None, gradient, None])
    expected = torch.zeros(6, 3, dtype=torch.float64)
    expected[2:4] = gradient
    assert torch.equal(bench.result(answer, "backward")[0], expected)


@pytest.mark.parametrize(("args", "grads", "reason"), [
    ([noise(3, 4)], [noise(3, 4)], "no argument needs a gradient"),
    ([noise(3, 4, grad=True)], [noise(7)], "gradient 0 of shape (7,) fits no output"),
    ([noise(3, 4, grad=True)], [None], "no gradient was recorded"),
    ([noise(3, 4, grad=True)], [], "no gradient was recorded"),
])
def test_a_backward_that_cannot_be_run_says_why(
    bench: Executor, args: list[Any], grads: list[Any], reason: str
) -> None:
    answer = bench.ask("Torch.exp.0", *args, grads=grads)
    assert answer["backward"] == {"skip": ["backward-skipped", reason]}
    assert torch.equal(bench.result(answer), torch.exp(args[0].detach().double()))


def test_an_exception_in_the_backward_leaves_the_forward(bench: Executor) -> None:
    x = noise(3, 3, grad=True)
    vectors = noise(3, 3, dtype=torch.complex64)
    answer = bench.ask("Torch.linalg.eig.0", x, grads=[noise(3, dtype=torch.complex64), vectors])
    cause, text = answer["backward"]["skip"]
    assert cause == "cpu-failed"
    assert "linalg_eig_backward" in text
    assert "\n" not in text
    assert torch.equal(bench.result(answer)[0], torch.linalg.eig(x.detach().double())[0])


def test_a_sparse_gradient_comes_dense(bench: Executor) -> None:
    weight, gradient = noise(5, 6, grad=True), noise(2, 2, 6)
    answer = bench.ask("Functional.embedding.0", INDEX, weight, kwargs={"sparse": True},
                       grads=[gradient])
    expected = torch.zeros(5, 6, dtype=torch.float64)
    expected.index_put_((INDEX,), gradient.double(), accumulate=True)
    torch.testing.assert_close(bench.result(answer, "backward")[1], expected)


# ---- What goes wrong

def test_int32_is_passed_as_int64_where_the_kernel_wants_it(device: Executor) -> None:
    labels = torch.tensor([1, 0], dtype=torch.int32)
    answer = device.ask("Functional.cross_entropy.0", noise(2, 3), labels)
    assert torch.equal(device.result(answer), F.cross_entropy(noise(2, 3), labels.long()))
    assert answer["note"] == "int32 arguments were passed as int64"
    answer = device.ask("Torch.add.0", labels, 1)
    assert device.result(answer).dtype == torch.int32


@pytest.mark.parametrize(("name", "args", "cause", "text"), [
    ("Torch.no_such.0", (), "not-in-inventory", "has no Torch.no_such"),
    ("Torch.os.system.0", ("exit 1",), "not-in-inventory", "has no Torch.os.system"),
    ("Jit.f.0", (), "not-in-inventory", "type Jit"),
    ("NPU.npu_no_such.0", (), "not-in-inventory", "no reference function for npu_no_such"),
    ("Aten.no_such.0", (), "not-in-inventory", "torch.ops.aten has no no_such"),
    ("Torch.add.0", (Raw({"other": "function"}), 1), "bad-argument", "kind other (function)"),
    ("Torch.add.0", (Raw({"tensor": ["hifloat8", [1], 0, False, None]}), 1), "bad-argument",
     "hifloat8"),
    ("Torch.add.0", (Raw({"tensor": ["float64", [1 << 40], 0, False, None]}), 1), "bad-argument",
     "a tensor ends at byte 8796093022208 of the shared memory"),
    ("Torch.zeros.0", (1 << 50,), "out-of-memory", "can't allocate memory"),
    ("Torch.linalg.inv.0", (noise(3, 3, dtype=torch.float16),), "device-failed",
     "RuntimeError: linalg.inv: Low precision dtypes not supported"),
    ("Torch.matmul.0", (noise(3, 4), noise(3, 4)), "device-failed", "RuntimeError: mat1 and mat2"),
])
def test_a_call_that_fails_says_why(
    device: Executor, name: str, args: tuple[Any, ...], cause: str, text: str
) -> None:
    answer = device.ask(name, *args, grads=[noise(2)])
    assert answer["forward"]["skip"][0] == cause
    assert text in answer["forward"]["skip"][1]
    assert answer["backward"] == {"skip": ["backward-skipped", "the forward failed"]}
    assert device.result(device.ask("Torch.add.0", noise(2), 1)).shape == (2,)  # and goes on


@pytest.mark.parametrize("line", [b"{", b"[]", b"{}", b'{"id":3,"slot":0}', b'{"id":3,"slot":9}'])
def test_a_malformed_request_is_answered(bench: Executor, line: bytes) -> None:
    bench.connection.sendall(line + b"\n")
    answer = bench.read()
    assert answer is not None
    assert answer["error"].startswith("the request is malformed: ")
    assert bench.result(bench.ask("Torch.add.0", noise(2), 1)).shape == (2,)


@pytest.mark.parametrize(("name", "how"), [
    ("crash", f"signal 6 ({signal.strsignal(6)})"), ("leave", "exit status 3"),
])
def test_an_executor_that_ends_is_reported_and_replaced(
    zygote: Zygote, name: str, how: str
) -> None:
    executor = zygote.fork(identity=31)
    assert executor.ready()["ready"]
    first = json.dumps(executor.request("Functional.same.0", 3)).encode()
    second = json.dumps({**executor.request(f"Functional.{name}.0", 1), "id": 13}).encode()
    executor.connection.sendall(first + b"\n" + second + b"\n")
    assert (executor.read() or {})["forward"] == {"value": 3}  # the answer before is not lost
    assert executor.read() is None
    assert zygote.end_of(31) == how
    again = zygote.fork(identity=32)
    assert again.ready()["ready"]
    assert again.ask("Functional.same.0", 3)["forward"] == {"value": 3}
    again.connection.close()
    assert zygote.end_of(32) == "exit status 0"


def test_an_executor_that_hangs_can_be_killed(zygote: Zygote) -> None:
    executor = zygote.fork(identity=33)
    pid = executor.ready()["pid"]
    executor.send(executor.request("Functional.hang.0", 1))
    with pytest.raises(TimeoutError):
        executor.read(seconds=0.2)
    os.kill(pid, signal.SIGKILL)
    assert zygote.end_of(33) == f"signal 9 ({signal.strsignal(9)})"


def test_a_device_that_is_lost_ends_its_executor_after_the_answer() -> None:
    place = Place("device", "meta", threads=1, slots=1, first_descriptor=4)
    runner = TorchRunner(place, torch.device("meta"))  # no tensor comes back from there
    line = json.dumps({"id": 5, "slot": 0, "name": "Torch.cat.0", "type": "Torch", "api": "cat",
                       "args": [], "kwargs": [], "grads": None}).encode()
    ours, theirs = socket.socketpair()
    ours.sendall(line + b"\n" + line + b"\n")
    with pytest.raises(SystemExit):
        serve(theirs, runner)
    gc.enable()
    theirs.close()
    with ours:
        answer = json.loads(ours.recv(1 << 16))  # and no second one
    assert (answer["id"], answer["last"]) == (5, True)
    assert answer["forward"]["skip"][0] == "device-failed"


# ---- Order, memory, repeatability

def test_requests_are_answered_in_order(bench: Executor) -> None:
    message = bench.request("Torch.add.0", noise(3), 1)
    lines = [json.dumps({**message, "id": number}) for number in range(500)]
    bench.connection.sendall(("\n".join(lines) + "\n").encode())
    assert [(bench.read() or {})["id"] for _ in range(500)] == list(range(500))


def test_shared_memory_grows_with_the_calls(zygote: Zygote, device: Executor) -> None:
    for count in (10, 100_000, 20, 1_000_000):
        x = torch.arange(count, dtype=torch.float32)
        answer = device.ask("Torch.add.0", x, 1, slot=1)
        assert torch.equal(device.result(answer, slot=1), x + 1)
    assert size_of(zygote.memory[5]) >= 4_000_000
    assert size_of(zygote.memory[4]) == 0  # the other side's


def test_several_threads_work_after_the_fork(zygote: Zygote) -> None:
    executor = zygote.fork(identity=36, threads=3)
    assert executor.ready()["ready"]
    x = noise(300, 300)
    found = executor.result(executor.ask("Torch.matmul.0", x, x))
    assert executor.result(executor.ask("Torch.get_num_threads.0")) == 3
    executor.connection.close()
    assert zygote.end_of(36) == "exit status 0"
    torch.testing.assert_close(found, x.double() @ x.double())


def test_memory_of_a_large_result_is_given_back(zygote: Zygote, device: Executor) -> None:
    large = device.ask("Torch.zeros.0", 40 << 20)  # 160 MiB
    assert "value" in large["forward"]
    for _ in range(2):
        device.ask("Torch.add.0", noise(3), 1)
    held = os.fstat(zygote.memory[2]).st_blocks * 512
    assert held <= 66 << 20


def test_ten_thousand_calls_leave_no_memory_behind(zygote: Zygote) -> None:
    executor = zygote.fork(identity=34)
    pid = executor.ready()["pid"]
    good = executor.request("Torch.mul.0", noise(64, 64, grad=True), 2, grads=[noise(64, 64)])
    bad = {**good, "api": "matmul"}
    held = []
    for _ in range(2):
        lines = [json.dumps(message) for message in [good, good, good, bad] * 250]
        for start in range(0, len(lines), 50):  # as many as sockets hold
            executor.connection.sendall(("\n".join(lines[start: start + 50]) + "\n").encode())
            for _ in range(50):
                assert executor.read() is not None
        status = Path(f"/proc/{pid}/status").read_text()
        held.append(int(status.partition("VmRSS:")[2].split()[0]))
    executor.connection.close()
    assert zygote.end_of(34) == "exit status 0"
    assert held[1] - held[0] < 4096  # 1,000 calls of 48 KiB each


def test_random_calls_repeat_on_any_executor(zygote: Zygote, bench: Executor) -> None:
    other = zygote.fork(identity=35)
    assert other.ready()["ready"]
    bench.ask("Torch.rand.9", 5)
    first = bench.result(bench.ask("Functional.dropout.3", noise(100)))
    second = other.result(other.ask("Functional.dropout.3", noise(100)))
    different = other.result(other.ask("Functional.dropout.4", noise(100)))
    other.connection.close()
    assert zygote.end_of(35) == "exit status 0"
    assert torch.equal(first, second)
    assert not torch.equal(first, different)


# ---- Requests that more is asked of

def test_only_the_forward_may_be_wanted(bench: Executor) -> None:
    answer = bench.ask("Torch.exp.0", noise(3, grad=True), grads=[noise(3)], only_forward=True)
    assert answer["backward"] is None
    assert torch.equal(bench.result(answer), torch.exp(noise(3).double()))


def test_everything_floating_may_be_raised(device: Executor) -> None:
    x, y = noise(3, dtype=torch.float16), noise(3, dtype=torch.bfloat16)
    answer = device.ask("Torch.where.0", torch.tensor([True, False, True]), x, y,
                        raise_all="float64")
    assert torch.equal(device.result(answer), torch.where(torch.tensor([True, False, True]),
                                                          x.double(), y.double()))


@pytest.mark.parametrize(("name", "value", "forward", "backward"), [
    ("Torch.exp.0", 1.0, False, False), ("Torch.exp.0", 1000.0, True, True),
    ("Torch.sqrt.0", 0.0, False, True), ("Torch.log.0", -1.0, True, False),
])
def test_an_overflow_is_reported_per_direction(
    device: Executor, name: str, value: float, forward: bool, backward: bool
) -> None:
    x = torch.tensor([2.0, value], requires_grad=True)
    answer = device.ask(name, x, grads=[torch.ones(2)], report_overflow=True)
    assert answer["overflow"] == {"forward": forward, "backward": backward}


# ---- The server

@pytest.mark.parametrize(("request_", "text"), [
    ({"framework": "tensorflow"}, "framework 'tensorflow' is unknown"),
    ({"device": "npu"}, "torch_npu cannot be imported"),
    ({"device": "abacus"}, "device abacus: PyTorch"),
    ({"device": "xpu"}, "device xpu: "),
])
def test_what_cannot_be_started_is_told(request_: dict[str, str], text: str) -> None:
    server = Zygote()
    answer = server.start(**request_)
    assert text in answer["error"]
    assert "\n" not in answer["error"]
    server.close()


def test_the_server_says_what_there_is_and_runs_no_thread() -> None:
    server = Zygote()
    answer = server.start(device="auto", inventory=["Functional.linear", "Tensor.__add__",
                                                    "Torch.linalg.norm", "Torch.no_such"])
    assert answer["ready"]
    assert answer["framework_version"] == torch.__version__.partition("+")[0]
    assert answer["device"] in ("cpu", "cuda", "npu")
    assert answer["inventory_missing"] == ["Torch.no_such"]
    assert len(os.listdir(f"/proc/{server.pid}/task")) == 1
    server.close()


def test_the_server_imports_neither_a_framework_nor_native_code_itself() -> None:
    code = ("import sys, plumbline.precheck_run.server\n"
            "print([name for name in sys.modules if name in ('torch', 'numpy', 'mindspore')"
            " or name.startswith('plumbline._')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_server_started_by_hand_says_what_it_is_for() -> None:
    done = subprocess.run([sys.executable, "-m", "plumbline.precheck_run.server"],
                          capture_output=True, text=True)
    assert done.returncode == 2
    assert "plumb precheck starts this program" in done.stderr


def test_a_fork_before_the_start_is_refused() -> None:
    server = Zygote()
    executor = server.fork(identity=3)
    assert server.end_of(3) == "not started"
    assert executor.read() is None
    server.send({"op": "dance"})
    assert (server.read() or {})["error"] == "request 'dance' is unknown (expected start or fork)"
    server.close()


def _sixty_four(server: Zygote) -> list[int]:
    executors = [server.fork(identity=number) for number in range(64)]
    pids = [executor.ready()["pid"] for executor in executors]
    for executor in executors:
        assert executor.ask("Torch.add.0", noise(3), 1)["id"] == 12
    for executor in executors:  # the sockets stay open: nothing but the server's end ends them
        executor.connection.detach()
    return pids


def test_closing_the_socket_ends_every_process() -> None:
    server = Zygote()
    assert server.start()["ready"]
    pids = _sixty_four(server)
    assert len(set(pids)) == 64
    assert all(map(is_running, pids))
    server.close()
    assert not any(map(is_running, pids))


def test_a_server_that_is_killed_takes_its_executors_along() -> None:
    server = Zygote()
    assert server.start()["ready"]
    executors = [server.fork(identity=number) for number in range(4)]
    pids = [executor.ready()["pid"] for executor in executors]
    os.kill(server.pid, signal.SIGKILL)
    server.close()
    assert all(wait_for_end(pid) for pid in pids)
