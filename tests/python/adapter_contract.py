"""What every adapter has to do, whichever the framework: one suite for all of them.

A test module makes a `Framework` and derives its test class from `AdapterContract`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plumbline.debugger import DebuggerBase


@dataclass
class Framework:
    """One framework with a network to record.

    Attributes:
        net: a module `net` with the children `first`, of class `Layer`, and `first.inner`, of class
            `Inner`, which calls the API once.
        tensor: makes a tensor of a list of numbers (float32).
        numbers: the numbers of a tensor.
        api: (entry name without number, function that calls that API with one tensor).
        draw: a random number of the framework.
        tensor_type, dtype: texts of the record of such a tensor.
    """

    adapter: Any
    net: Any
    tensor: Callable[[list[float]], Any]
    numbers: Callable[[Any], list[float]]
    api: tuple[str, Callable[[Any], Any]]
    draw: Callable[[], float]
    tensor_type: str
    dtype: str


class AdapterContract:
    """The suite; `framework` is a fixture of the module."""

    def record(self, framework: Framework, directory: Path, level: str, work: Any) -> Any:
        """dump.json and construct.json of `work()`."""
        if DebuggerBase._instance is not None:
            DebuggerBase._instance._close()
            DebuggerBase._instance = None
        kind = type("Debugger", (DebuggerBase,), {"_adapter": framework.adapter})
        debugger: Any = kind(task="statistics", dump_path=str(directory / "out"), level=level)
        debugger.start(framework.net)
        result = work()
        debugger.stop()
        debugger.step()
        folder = directory / "out/step0/rank"
        names = ("dump.json", "construct.json")
        return result, *(json.loads((folder / name).read_text()) for name in names)

    def test_what_it_says_of_itself(self, framework: Framework) -> None:
        adapter = framework.adapter
        assert isinstance(adapter.name, str) and adapter.name
        assert adapter.module_prefix in ("Module", "Cell")
        for version in (adapter.version(), adapter.modules_since):
            assert version and all(isinstance(part, int) for part in version)
        assert adapter.rank() is None
        assert adapter.is_module(framework.net) and not adapter.is_module(3)

    def test_every_listed_api_is_there(self, framework: Framework) -> None:
        listed = list(framework.adapter.apis())
        assert len({(prefix, name) for prefix, name, _, _ in listed}) > 0
        for prefix, name, owner, attribute in listed:
            assert callable(getattr(owner, attribute)), f"{prefix}.{name}"

    def test_modules_are_listed_depth_first_without_the_root(self, framework: Framework) -> None:
        tree = list(framework.adapter.module_tree(framework.net))
        assert [name for name, _ in tree] == ["first", "first.inner"]
        assert [type(module).__name__ for _, module in tree] == ["Layer", "Inner"]

    @pytest.mark.parametrize("level", ["L0", "L1", "mix"])
    def test_calls_are_recorded_and_computed_alike(
        self, framework: Framework, tmp_path: Path, level: str
    ) -> None:
        plain = framework.numbers(framework.net(framework.tensor([1.0, -2.0])))
        got, dump, parents = self.record(
            framework, tmp_path, level, lambda: framework.net(framework.tensor([1.0, -2.0]))
        )
        assert framework.numbers(got) == plain
        assert dump["framework"] == framework.adapter.name and dump["level"] == level
        kind = framework.adapter.module_prefix
        api = f"{framework.api[0]}.0.forward"
        inner, layer = f"{kind}.first.inner.Inner.forward.0", f"{kind}.first.Layer.forward.0"
        expected = {"L0": [inner, layer], "L1": [api], "mix": [api, inner, layer]}[level]
        assert [name for name in dump["data"] if ".forward" in name] == expected
        record = dump["data"][expected[0]]["input_args"][0]
        assert record["type"] == framework.tensor_type and record["dtype"] == framework.dtype
        assert (record["Max"], record["Min"], record["Mean"]) == (1.0, -2.0, -0.5)
        if level == "mix":
            assert (parents[api], parents[inner], parents[layer]) == (inner, layer, None)

    def test_nothing_stays_replaced(self, framework: Framework, tmp_path: Path) -> None:
        before = [vars(owner).get(name) for _, _, owner, name in framework.adapter.apis()]
        self.record(framework, tmp_path, "mix", lambda: None)
        after = [vars(owner).get(name) for _, _, owner, name in framework.adapter.apis()]
        assert all(one is other for one, other in zip(before, after, strict=True))
        framework.adapter.uninstall_apis()  # again: nothing is done
        framework.adapter.uninstall_modules()

    def test_outside_the_window_nothing_is_recorded(
        self, framework: Framework, tmp_path: Path
    ) -> None:
        _, dump, _ = self.record(framework, tmp_path, "mix", lambda: None)
        framework.api[1](framework.tensor([3.0]))
        assert dump["data"] == {}

    def test_a_seed_repeats_what_is_drawn(self, framework: Framework) -> None:
        drawn = []
        for _ in range(2):
            framework.adapter.seed(11, False, False)
            drawn.append(framework.draw())
        assert drawn[0] == drawn[1]
