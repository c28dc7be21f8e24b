"""Modules of MindTorch, which are PyTorch's and no cells: a stand-in on MindSpore's tensors.

No package of MindTorch can be installed here. The stand-in has of `torch` what a network needs.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor
from ms_recording import assert_nothing_lost, entries, new_debugger, read


class Handle:
    def __init__(self, hooks: dict[int, Any]) -> None:
        self.hooks = hooks

    def remove(self) -> None:
        self.hooks.pop(id(self), None)


class Module:
    """As torch.nn.Module: hooks, parameters and parts, by their names."""

    def __init__(self) -> None:
        for name in ("_parameters", "_modules", "_before", "_after"):
            object.__setattr__(self, name, {})

    def __setattr__(self, name: str, value: Any) -> None:
        parts = {Parameter: self._parameters, Module: self._modules}
        kind = next((kind for kind in parts if isinstance(value, kind)), None)
        if kind is None:
            return object.__setattr__(self, name, value)
        parts[kind][name] = value
        return None

    def __getattr__(self, name: str) -> Any:
        for parts in (self._parameters, self._modules):
            if name in parts:
                return parts[name]
        raise AttributeError(name)

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        yield prefix, self
        for name, module in self._modules.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def _register(self, hooks: dict[int, Any], hook: Any) -> Handle:
        handle = Handle(hooks)
        hooks[id(handle)] = hook
        return handle

    def register_forward_pre_hook(self, hook: Any, *, with_kwargs: bool) -> Handle:
        assert with_kwargs
        return self._register(self._before, hook)

    def register_forward_hook(self, hook: Any, *, with_kwargs: bool, always_call: bool) -> Handle:
        assert with_kwargs and always_call
        return self._register(self._after, hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for hook in list(self._before.values()):
            args, kwargs = hook(self, args, kwargs) or (args, kwargs)
        result = self.forward(*args, **kwargs)
        for hook in list(self._after.values()):
            changed = hook(self, args, kwargs, result)
            result = result if changed is None else changed
        return result


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake: Any = types.ModuleType("torch")
    functional = types.SimpleNamespace(relu=lambda x: ms.ops.relu(x),
                                       linear=lambda x, weight: ms.ops.matmul(x, weight.T))
    fake.nn = types.SimpleNamespace(Module=Module, functional=functional)
    fake.Tensor, fake.tensor = ms.Tensor, lambda value: ms.Tensor(value)
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def network(torch: Any) -> Any:
    class Linear(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, values: Any) -> None:
            super().__init__()
            self.weight = Parameter(Tensor(values.astype(np.float32)), name=f"w{values.shape[0]}")

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.linear(x, self.weight)

    class Block(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.fc = Linear(np.arange(6).reshape(2, 3) - 2)

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.relu(self.fc(x))

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.block, self.head = Block(), Linear(np.array([[1.0, 2.0]]))

        def forward(self, x: Any) -> Any:
            return self.head(self.block(x))

    return Net()


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_modules_and_gradients_are_recorded(tmp_path: Path, torch: Any, level: str) -> None:
    net = network(torch)
    parameters = [module.weight for _, module in net.named_modules() if module._parameters]
    way_back = ms.value_and_grad(lambda x: net(x).sum(), None, parameters)
    x = Tensor(np.array([[1.0, 2.0, 3.0]], np.float32))
    plain = [gradient.asnumpy().tolist() for gradient in way_back(x)[1]]
    debugger = new_debugger(tmp_path, level=level, task="tensor")
    debugger._adapter._apis._recorder = None  # the probes of the stand-in
    debugger.start(net)
    assert [gradient.asnumpy().tolist() for gradient in way_back(x)[1]] == plain
    debugger.stop()
    debugger.step()
    assert not any(module._before or module._after for _, module in net.named_modules())
    assert_nothing_lost(tmp_path)
    assert read(tmp_path)["framework"] == "mindtorch"
    data = entries(tmp_path)
    modules = [name for name in data if name.startswith("Module.")]
    assert set(modules) == {f"Module.{name}.{what}" for name, parts in {
        "block.Block": ["forward.0", "backward.0"],
        "block.fc.Linear": ["forward.0", "backward.0", "parameters_grad"],
        "head.Linear": ["forward.0", "backward.0", "parameters_grad"]}.items() for what in parts}
    assert not any(name.startswith(("Cell", "Mint")) for name in data)
    check_values(tmp_path, data)
    parents = read(tmp_path, "construct")
    assert parents["Module.block.fc.Linear.forward.0"] == "Module.block.Block.forward.0"
    if level == "mix":
        names = [name for name in data if name.endswith("forward")]
        assert names == ["Functional.linear.0.forward", "Functional.relu.0.forward",
                         "Functional.linear.1.forward", "Tensor.sum.0.forward"]
        assert parents["Functional.linear.0.forward"] == "Module.block.fc.Linear.forward.0"


def check_values(directory: Path, data: dict[str, Any]) -> None:
    # In NumPy: h = x W1^T; the gradient of relu(h) is W2 where h > 0.
    first, second = np.arange(6).reshape(2, 3) - 2, np.array([[1.0, 2.0]])
    hidden = np.array([[1.0, 2.0, 3.0]]) @ first.T
    gradient = second * (hidden > 0)
    folder = directory / "out/step0/rank/dump_tensor_data"

    def values(record: Any) -> Any:
        return np.load(folder / record["data_name"])

    linear = data["Module.block.fc.Linear.forward.0"]
    assert np.allclose(values(linear["output"][0]), hidden)
    assert np.allclose(values(linear["parameters"]["weight"]), first)
    assert np.allclose(values(data["Module.block.fc.Linear.backward.0"]["input"][0]), gradient)
    weight = data["Module.block.fc.Linear.parameters_grad"]["weight"][0]
    assert np.allclose(values(weight), gradient.T @ np.array([[1.0, 2.0, 3.0]]))


def test_what_is_no_module_is_refused(tmp_path: Path, torch: Any) -> None:
    debugger = new_debugger(tmp_path, level="L0")
    with pytest.raises(ValueError, match="model must be a module"):
        debugger.start(object())
    cell = ms.nn.Dense(2, 2)  # still one
    debugger.start(cell)
    debugger.stop()
