"""A framework of two functions and one class of modules, for tests without a real one.

Its tensors are read through their attributes, as MindSpore's are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from plumbline import _core, values


class DType:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


FLOAT32 = DType("Float32")


class Tensor:
    device, _dtype, _requires_grad, _grad_node = "CPU", FLOAT32, False, None

    def __init__(self, numbers: Any) -> None:
        self.array = np.ascontiguousarray(numbers, np.float32)
        self.shape = self.array.shape

    def stride(self) -> list[int]:
        return [step // self.array.itemsize for step in self.array.strides]

    def data_ptr(self) -> int:
        return self.array.ctypes.data


class functions:  # stands for a module
    @staticmethod
    def double(x: Tensor) -> Tensor:
        return Tensor(x.array * 2)


class Module:
    def __init__(self, **children: Module) -> None:
        self.children, self.before, self.after = children, [], []
        self._parameters: dict[str, Any] = {}

    def __call__(self, *args: Any) -> Any:
        for hook in list(self.before):
            hook(self, args, {})
        result = self.forward(*args)
        for hook in list(self.after):
            hook(self, args, {}, result)
        return result

    def forward(self, x: Any) -> Any:
        for child in self.children.values():
            x = child(x)
        return x


class Layer(Module):
    pass


class Inner(Module):
    def forward(self, x: Tensor) -> Tensor:
        return functions.double(x)


class FakeAdapter:
    """`plumbline.adapter.Adapter` for it."""

    modules_since: tuple[int, ...] = (1,)

    def __init__(self, name: str = "fake", module_prefix: str = "Module") -> None:
        self.name, self.module_prefix = name, module_prefix
        self._patches = _core.PatchSet()
        self._hooked: list[tuple[Module, Any, Any]] = []

    def version(self) -> tuple[int, ...]:
        return (1, 0)

    def rank(self) -> int | None:
        return None

    def is_module(self, value: object) -> bool:
        return isinstance(value, Module)

    def framework_parts(self) -> dict[str, Any]:
        return {"tensor": Tensor, "dtype": DType, "dtypes": [FLOAT32], "node_id_name": "id",
                "requires_grad_name": "_requires_grad", "grad_node_name": "_grad_node",
                "describe": lambda value: values.describe(value, Tensor)}

    def use_recorder(self, recorder: Any) -> None: ...

    def send_values(self) -> None: ...

    def receive_values(self) -> None: ...

    def apis(self) -> Iterable[tuple[str, str, object, str]]:
        return [("Fake", "double", functions, "double")]

    def use_model(self, models: Iterable[Any]) -> None:
        pass

    def install_apis(self, recorder: _core.Recorder, with_regions: bool) -> None:
        self._patches = _core.PatchSet()
        for prefix, name, owner, attribute in self.apis():
            probe = recorder.probe(getattr(owner, attribute), f"{prefix}.{name}", False)
            self._patches.add(owner, attribute, staticmethod(probe))
        self._patches.apply()

    def uninstall_apis(self) -> None:
        self._patches.restore()

    def install_modules(
        self, recorder: _core.Recorder, modules: Iterable[tuple[str, Any]], wants_backward: bool
    ) -> None:
        no = {"sequence_number": None, "gradient_edge": None, "watch_all": None}
        autograd = _core.Autograd(is_grad_enabled=lambda: False, queue_callback=print, add=print,
                                  reduces_in_place=lambda: None, opens_containers=False,
                                  **no)
        for prefix, module in modules:
            hook = _core.ModuleHook(recorder, autograd, prefix, wants_backward)
            before, after = hook.before, hook.after
            self._hooked.append((module, before, after))
            module.before.append(before)
            module.after.append(after)

    def uninstall_modules(self) -> None:
        for module, before, after in self._hooked:
            module.before.remove(before)
            module.after.remove(after)
        self._hooked = []

    def uninstall_batches(self) -> None:
        pass

    def end_step(self) -> None:
        pass

    def module_tree(self, model: Any) -> Iterable[tuple[str, Any]]:
        for name, child in model.children.items():
            yield name, child
            yield from ((f"{name}.{rest}", one) for rest, one in self.module_tree(child))

    def seed(self, seed: int, deterministic: bool, remove_dropout: bool) -> None:
        random.seed(seed)

    def watch_calls(self, module: Any, callback: Callable[..., None]) -> Any:
        raise NotImplementedError
