"""Which calls are entries, at every level and with every filter, against release 1.2.2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from recording import run_script

pytest.importorskip("torch")
DATA = Path(__file__).parents[1] / "data"
UPSTREAM: dict[str, Any] = json.loads(
    (DATA / "upstream_1.2.2" / "filtered_runs.json").read_text())
# Identity nodes that upstream's module hooks put into the graph (docs/formats/differences.md).
HOOK_CALLS = re.compile(r"Tensor\.view_as\.")
# Of a block that runs twice, upstream numbers the backward calls in the order of the backward pass.
TWICE = re.compile(r"(Module\.b\.\S*\.backward)\.(0|1)")


def swapped(name: str | None) -> str | None:
    """With the number that the backward call of a module has in plumbline's files."""
    found = TWICE.fullmatch(name or "")
    return f"{found[1]}.{1 - int(found[2])}" if found else name


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("filters") / "runs.json"
    run_script(DATA / "make_filtered_runs.py", path, "plumbline")
    runs: dict[str, Any] = json.loads(path.read_text())
    return runs


@pytest.mark.parametrize("name", UPSTREAM)
def test_entries_are_upstreams(ours: dict[str, Any], name: str) -> None:
    theirs = {swapped(entry): members for entry, members in UPSTREAM[name]["entries"].items()
              if not HOOK_CALLS.match(entry)}
    found = ours[name]["entries"]
    assert list(found) == list(theirs)
    for entry, members in theirs.items():
        if (name, entry) == ("forwards", "Functional.layer_norm.0.forward"):
            assert "output" not in members, "upstream closes the range too early"
            members = [*members, "output"]
        assert found[entry] == members, entry


@pytest.mark.parametrize("name", UPSTREAM)
def test_parents_are_upstreams(ours: dict[str, Any], name: str) -> None:
    """Of backward calls that are filtered out there is no parent; upstream lists them."""
    theirs = {swapped(entry): swapped(parent)
              for entry, parent in UPSTREAM[name]["construct"].items()
              if not HOOK_CALLS.match(entry)}
    found = ours[name]["construct"]
    assert {entry: theirs[entry] for entry in found} == found
    missing = set(theirs) - set(found)
    assert all(".backward" in entry for entry in missing)
    assert not missing & set(ours[name]["entries"])


def test_levels_record_what_they_say(ours: dict[str, Any]) -> None:
    apis, modules, both = (set(ours[level]["entries"]) for level in ("L1", "L0", "mix"))
    assert both == apis | modules and not apis & modules
    assert all(name.startswith("Module.") for name in modules)
    parents = ours["mix"]["construct"]
    assert parents["Functional.linear.2.forward"] == "Module.b.fc.Linear.forward.1"
    assert parents["Torch.relu.2.backward"] == "Module.b.Blk.backward.1"
    assert parents["Module.a.Blk.forward.0"] is None, "the root is no entry"
