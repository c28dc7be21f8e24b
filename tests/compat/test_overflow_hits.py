"""Task overflow_check finds and stores what upstream 1.2.2 finds and stores."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Runs, record, upstream_python
from dump_difference import unexplained
from known_differences import UPSTREAM_ONLY

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

RUNS = [f"overflow/{level}/overflow" for level in ("L0", "L1", "mix")]
LIMITED = "overflow/L1/overflow2"
CASES = [(run, step) for run in RUNS for step in (0, 1)] + [(LIMITED, 0)]
OWN_KEYS = {"overflow_origin", "overflow_reason"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Runs]:
    """The recordings of both tools."""
    return {
        "upstream": record(upstream_python(), "upstream", tmp_path_factory.mktemp("up"),
                           [*RUNS, LIMITED]),
        "plumbline": record(sys.executable, "plumbline", tmp_path_factory.mktemp("own"),
                            [*RUNS, LIMITED]),
    }


def only_upstream(name: str) -> bool:
    """Whether an entry or a file of it comes from upstream's own hooks."""
    return bool(UPSTREAM_ONLY.match(name))


def is_backward(name: str) -> bool:
    """Modules' backward entries and gradients stand elsewhere: key module-backward."""
    return name.startswith("Module.") and (".backward." in name or "parameters_grad" in name)


def without_own_keys(node: Any) -> Any:
    """The same tree as upstream would write it."""
    if isinstance(node, dict):
        return {key: without_own_keys(value) for key, value in node.items()
                if key not in OWN_KEYS}
    return [without_own_keys(item) for item in node] if isinstance(node, list) else node


def by_parameter(data: dict[str, Any]) -> dict[str, Any]:
    """Gradients of parameters in one order: upstream's is that of their arrival."""
    return {name: dict(sorted(entry.items())) if name.endswith(".parameters_grad") else entry
            for name, entry in data.items()}


@pytest.mark.parametrize(("run", "step"), CASES)
def test_same_hits(found: dict[str, Runs], run: str, step: int) -> None:
    ours = by_parameter(found["plumbline"].rank(run, step).data)
    theirs = {name: entry for name, entry
              in by_parameter(found["upstream"].rank(run, step).data).items()
              if not only_upstream(name)}
    assert theirs, "upstream found nothing"
    assert set(ours) == set(theirs)
    assert [name for name in ours if not is_backward(name)] == \
           [name for name in theirs if not is_backward(name)]
    left = unexplained(f"{run}/step{step}", without_own_keys(ours),
                       {name: theirs[name] for name in ours}, set())
    assert left == [], "(path, plumbline, upstream)"


@pytest.mark.parametrize(("run", "step"), CASES)
def test_same_examined_calls(found: dict[str, Runs], run: str, step: int) -> None:
    for name in ("stack.json", "construct.json"):
        ours = found["plumbline"].rank(run, step).read(name)
        theirs = found["upstream"].rank(run, step).read(name)
        assert set(ours) == {name for name in theirs if not only_upstream(name)}


@pytest.mark.parametrize(("run", "step"), CASES)
def test_same_files(found: dict[str, Runs], run: str, step: int) -> None:
    ours, theirs = (found[tool].rank(run, step).path / "dump_tensor_data"
                    for tool in ("plumbline", "upstream"))
    names = sorted(path.name for path in theirs.iterdir() if not only_upstream(path.name))
    assert sorted(path.name for path in ours.iterdir()) == names and names
    for name in names:
        one, other = (torch.load(Path(side) / name, weights_only=True) for side in (ours, theirs))
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def test_nothing_after_the_limit(found: dict[str, Runs]) -> None:
    for runs in found.values():
        assert len(runs.rank(LIMITED, 0).data) == 2
        assert not (runs.root / LIMITED / "step1").exists()
