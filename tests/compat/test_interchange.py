"""Graph building of both releases and the newest compare run on our dumps, plumb on theirs."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conftest import HERE, Runs, rank_of_debug, run, upstream_python
from known_differences import UPSTREAM_ONLY

pytestmark = [pytest.mark.upstream, pytest.mark.slow]

WITH_TREE = [f"mixed/{level}/{mode}" for level in ("L0", "mix")
             for mode in ("statistics", "md5", "tensor", "structure")]
API_ONLY = [f"mixed/L1/{mode}" for mode in ("statistics", "md5", "tensor")]
COMPARED = [name for name in WITH_TREE + API_ONLY if not name.endswith("structure")]

# Graph nodes that only upstream 1.2.2 has: its hooks' views and the groups numbered around them,
# and the calls under the keys inplace-output and module-backward of differences.md.
NODES_OF_122 = re.compile(r"Tensor\.view_as\.|Apis_Between_Modules\."
                          r"|Module\.first\.Linear\.backward|Functional\.linear\.0\.backward"
                          r"|Functional\.relu\.0\.backward")
# Names that changed between the releases: APIs added to and taken from the list (newer_added and
# newer_removed of the API list; torch.ops.aten), and the number at the end of parameter gradients.
LISTED_SINCE_122 = re.compile(
    r"Tensor\.(float|int|to|bool|long|half|double|bfloat16|expand|numpy)\.\d|.*parameters_grad\.0")
NOT_LISTED_SINCE_122 = re.compile(
    r"Tensor\.__getitem__\.|Torch\.ones_like\.|Aten\.|.*parameters_grad(\.(weight|bias))?$"
    r"|Apis_Between_Modules\.|.*Module\.embed\.Embedding\.backward\.0\.output")


class Commands:
    """Upstream command lines, collected, run in one process, and their results."""

    def __init__(self, python: Path, root: Path):
        self._python, self.root = python, root
        self._requests: list[dict[str, Any]] = []

    def add(self, key: str, *words: Any) -> None:
        """A command line that writes below out(key)."""
        self.out(key).mkdir(parents=True)
        words = (*words, "-o", self.out(key))
        self._requests.append({"words": [str(word) for word in words], "log": self._log(key)})

    def run(self) -> Commands:
        """Runs all of them."""
        path = self.root / "requests.json"
        path.write_text(json.dumps(self._requests))
        done = run([self._python, "-W", "ignore", HERE / "run_upstream_commands.py", path],
                   timeout=400)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return self

    def out(self, key: str) -> Path:
        return self.root / key

    def _log(self, key: str) -> str:
        return str(self.root / (key.replace("/", "_") + ".log"))

    def file(self, key: str, pattern: str) -> Path:
        """The one result of a command that succeeded."""
        log = self._log(key)
        assert Path(log + ".status").read_text() == "0", Path(log).read_text()[-3000:]
        found = list(self.out(key).glob(pattern))
        assert len(found) == 1, Path(log).read_text()[-3000:]
        return found[0]

    def status(self, key: str) -> int:
        return int(Path(self._log(key) + ".status").read_text())


@pytest.fixture(scope="module")
def release(plumbline: Runs, upstream: Runs, tmp_path_factory) -> Commands:
    """`graph` of 1.2.2: our recording against upstream's."""
    commands = Commands(upstream_python(), tmp_path_factory.mktemp("commands122"))
    for name in WITH_TREE + API_ONLY:
        request = commands.root / (name.replace("/", "_") + ".json")
        request.write_text(json.dumps({
            "npu_path": str(plumbline.rank(name, 0).path),
            "bench_path": str(upstream.rank(name, 0).path), "is_print_compare_log": False}))
        request.chmod(0o640)
        commands.add(f"graph/{name}", "-f", "pytorch", "graph", "-i", request)
    return commands.run()


@pytest.fixture(scope="module")
def newer(plumbline: Runs, newest: Runs, tmp_path_factory) -> Commands:
    """`graph_visualize` and `compare` of 26.2.0: our recording against its own."""
    commands = Commands(upstream_python("26.2.0"), tmp_path_factory.mktemp("commands26"))
    for name in WITH_TREE + API_ONLY:
        ours, theirs = plumbline.rank(name, 0).path, newest.rank(name, 0).path
        commands.add(f"graph/{name}", "graph_visualize", "-tp", ours, "-gp", theirs)
        if name in API_ONLY:
            commands.add(f"own/{name}", "graph_visualize", "-tp", theirs, "-gp", theirs)
        if name in COMPARED:
            commands.add(f"compare/{name}", "compare", "-tp", ours / "dump.json", "-gp",
                         theirs / "dump.json")
    return commands.run()


@pytest.mark.parametrize("name", WITH_TREE + API_ONLY)
def test_release_122_builds_the_same_graph(release: Commands, name: str):
    graph = json.loads(release.file(f"graph/{name}", "*.vis").read_text())
    ours, theirs = graph["NPU"]["node"], graph["Bench"]["node"]
    assert len(ours) > (1 if name in API_ONLY else 10) - 1
    assert [node for node in ours if node not in theirs] == []
    assert [node for node in theirs if node not in ours and not NODES_OF_122.match(node)] == []
    for node, content in ours.items():
        parents = (content["upnode"], theirs[node]["upnode"])
        # Parents of backward calls: key module-backward. Groups are numbered by what is in them.
        if ".backward" not in node and "Apis_Between_Modules" not in "".join(map(str, parents)):
            assert parents[0] == parents[1], node


@pytest.mark.parametrize("name", WITH_TREE)
def test_newest_release_builds_the_same_graph(newer: Commands, name: str):
    base = sqlite3.connect(newer.file(f"graph/{name}", "*.vis.db"))
    nodes = {side: {node for (node,) in base.execute(
        "select node_name from tb_nodes where data_source = ?", (side,))}
        for side in ("NPU", "Bench")}
    assert len(nodes["NPU"]) > 10
    only_ours = sorted(nodes["NPU"] - nodes["Bench"])
    only_theirs = sorted(nodes["Bench"] - nodes["NPU"])
    assert [node for node in only_ours if not NOT_LISTED_SINCE_122.match(node)] == []
    assert [node for node in only_theirs
            if not LISTED_SINCE_122.match(node) and not NODES_OF_122.match(node)] == []


@pytest.mark.parametrize("name", API_ONLY)
def test_newest_release_builds_no_graph_without_modules(newer: Commands, name: str):
    """Not of our dumps and not of its own: construct.json is empty at L1."""
    assert newer.status(f"graph/{name}") == newer.status(f"own/{name}") == 1


@pytest.mark.parametrize("name", COMPARED)
def test_newest_release_compares(newer: Commands, name: str):
    with newer.file(f"compare/{name}", "compare_result_*.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    paired = [row for row in rows if "N/A" not in (row["NPU Name"], row["Bench Name"])]
    assert len(paired) > 20
    alone = [row["NPU Name"] for row in rows if row["Bench Name"] == "N/A"]
    assert [item for item in alone if not NOT_LISTED_SINCE_122.match(item)] == []
    if not name.endswith("md5"):  # digests: the last bits differ from process to process
        assert {row["Result"] for row in paired} == {"pass"}


@pytest.mark.parametrize("name", COMPARED)
def test_plumb_compares_with_the_newest_release(plumb: Path, plumbline: Runs, newest: Runs,
                                                tmp_path: Path, name: str):
    done = run([plumb, "compare", plumbline.rank(name, 0).path, newest.rank(name, 0).path, "-o",
                tmp_path / "out"], timeout=60)
    assert done.returncode == 0, done.stderr
    [paired] = re.findall(r"^calls: (\d+) paired", done.stdout, re.MULTILINE)
    assert int(paired) > 8
    if not name.endswith("md5"):
        assert "first wrong call" not in done.stdout
        assert " 0 suspicious, 0 broken" in done.stdout


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_debug_json_has_the_entries_of_release_122(plumbline: Runs, upstream: Runs, mode: str):
    """No command of 1.2.2 reads debug.json; its readers see the same names and keys."""
    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shape(item) for key, item in value.items()}
        return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__

    ours, theirs = (json.loads(rank_of_debug(runs, f"mixed/debug/{mode}").read_text())
                    for runs in (plumbline, upstream))
    assert list(ours["data"]) == list(theirs["data"])
    assert len(ours["data"]) >= 2
    assert shape(ours["data"]) == shape(theirs["data"])


def test_every_pattern_is_needed(upstream: Runs):
    """UPSTREAM_ONLY and NODES_OF_122 name calls that upstream still makes."""
    names = list(upstream.rank("mixed/mix/statistics", 0).data)
    assert any(UPSTREAM_ONLY.match(name) for name in names)
    assert any(NODES_OF_122.match(name) for name in names)
