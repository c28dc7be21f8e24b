"""What plumb view says of recordings, against plumb compare and the recordings themselves."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB
from view_client import Viewer, viewer

LINEAR, RELU = "Functional.linear.0.forward", "Functional.relu.0.forward"
REDUCE, BACK = "Distributed.all_reduce.0.forward", "Module.net.Net.backward.0"
NET = "Module.net.Net.forward.0"
PARENTS = {LINEAR: NET, RELU: NET, REDUCE: NET, NET: None, BACK: None}


def tensor(value: float, **more: Any) -> dict[str, Any]:
    """What a recorder says of eight numbers of about that size."""
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 4], "Max": value,
            "Min": -value, "Mean": value / 3, "Norm": value * 2, "requires_grad": False} | more


def group(ranks: list[int]) -> dict[str, Any]:
    return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": "g"}


def calls(scale: float = 1.0, start: float = 1.0) -> dict[str, Any]:
    """One step of a rank; `scale` is what the linear layer gets wrong."""
    after = 3.0 * start * scale
    return {LINEAR: {"input_args": [tensor(start)], "input_kwargs": {}, "output": [tensor(after)]},
            RELU: {"input_args": [tensor(after)], "input_kwargs": {}, "output": [tensor(after)]},
            REDUCE: {"input_args": [tensor(after)], "input_kwargs": {"group": group([0, 1])},
                     "output": [tensor(2 * after)]},
            NET: {"input_args": [tensor(start)], "input_kwargs": {}, "output": [tensor(2 * after)]},
            BACK: {"input": [tensor(1.0)], "output": [tensor(after)]}}


def write(directory: Path, data: dict[str, Any], parents: dict[str, str | None] | None = None,
          task: str = "statistics") -> Path:
    directory.mkdir(parents=True)
    (directory / "dump.json").write_text(json.dumps(
        {"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": None,
         "data": data}))
    (directory / "construct.json").write_text(
        json.dumps(PARENTS if parents is None else parents))
    (directory / "stack.json").write_text(json.dumps(
        {name: [f"File model.py, line {i}, in forward", "File train.py, line 1"]
         for i, name in enumerate(data)}))
    return directory


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]


class Result:
    """The first dataset of a viewer."""

    def __init__(self, running: Viewer) -> None:
        self.running = running
        found = running.dataset()
        assert found["state"] == "ready", found["error"]
        self.name = found["id"]

    def __call__(self, question: str, **parameters: object) -> Any:
        return self.running.get(f"d/{self.name}/{question}", **parameters)

    def find(self, q: str = "", **parameters: object) -> list[dict[str, Any]]:
        return rows(self("find", q=q, **parameters)["rows"])

    def node(self, name: str, side: str = "target", place: int = 0) -> dict[str, Any]:
        answer = self("path", name=name, side=side, place=place)
        assert answer["exact"], name
        return rows(answer["rows"])[-1]


def compared(target: Path, golden: Path, out: Path) -> list[str]:
    done = subprocess.run([str(PLUMB), "compare", str(target), str(golden), "-o", str(out)],
                          capture_output=True, text=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("file: ")]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two steps of two ranks; the linear layer of rank 1 is wrong in step 1."""
    top = tmp_path_factory.mktemp("store")
    for side in ("new", "good"):
        for step in (0, 1):
            for rank in (0, 1):
                is_wrong = side == "new" and step == 1 and rank == 1
                write(top / side / f"step{step}" / f"rank{rank}",
                      calls(1.5 if is_wrong else 1.0, 1.0 + step))
    return top / "new", top / "good"


@pytest.fixture(scope="module")
def result(ranks: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    with viewer(tmp_path_factory.mktemp("cache"), *ranks) as running:
        yield Result(running)


def test_the_answer_is_that_of_plumb_compare(result: Result, ranks: tuple[Path, Path],
                                             tmp_path: Path) -> None:
    meta = result("meta")
    assert meta["answer"] == compared(*ranks, tmp_path / "out")
    assert meta["answer"][0].startswith(f"first wrong call: step 1 rank 1 {LINEAR}")
    assert (meta["kind"], meta["mode"], meta["steps"], meta["ranks"]) == (
        "compare", "statistics", [0, 1], [0, 1])
    assert [(place["step"], place["rank"]) for place in meta["places"]] == [
        (0, 0), (0, 1), (1, 0), (1, 1)]
    assert meta["first"]["name"] == LINEAR and meta["first"]["place"] == 3


def test_the_first_row_of_the_first_divergence_is_the_call_named(result: Result) -> None:
    first = rows(result("first")["rows"])
    assert (first[0]["name"], first[0]["kind"]) == (LINEAR, "first")
    assert first[0]["id"] == result("meta")["first"]["id"]
    assert "relative error" in first[0]["why"]
    assert first[0]["flags"] & 3 == 3
    assert result("first", place=0)["total"] == 0


def test_every_node_stands_where_the_recorder_put_it(result: Result) -> None:
    root = rows(result("children", node=0)["lists"][0]["rows"])
    assert [row["name"] for row in root] == [NET, BACK]
    inner = rows(result("children", node=root[0]["id"])["lists"][0]["rows"])
    assert [row["name"] for row in inner] == [LINEAR, RELU, REDUCE]
    assert [row["partner"] >= 0 for row in inner] == [True] * 3
    assert rows(result("flow", node=root[0]["id"])["rows"])[0]["name"] == LINEAR


def test_values_are_those_of_the_recordings(result: Result) -> None:
    node = result("node", node=result.node(LINEAR, place=3)["id"])
    assert node["stack"] == ["File model.py, line 0, in forward", "File train.py, line 1"]
    assert node["path"] == ["DefaultModel", NET, LINEAR]
    values = {value["name"]: value for value in node["values"]}
    output = values["output.0"]
    assert output["role"] == "output" and output["verdict"] in ("broken", "suspicious")
    assert (output["target"]["max"], output["golden"]["max"]) == (9.0, 6.0)
    assert output["target"]["shape"] == [2, 4]
    assert output["metrics"]["max_diff"] == 3.0
    assert math.isclose(output["metrics"]["max_percent"], 50.0)
    assert values["input.0"]["verdict"] == "same"


def test_calls_of_several_ranks_are_linked(result: Result) -> None:
    here = result.node(REDUCE, place=2)
    peers = result("comm", node=here["id"])["peers"]
    assert [(peer["rank"], peer["name"]) for peer in peers] == [(1, REDUCE)]
    assert here["flags"] & 8
    timeline = result("timeline", step=1)
    assert timeline["total"] == 1
    assert [end["rank"] for end in timeline["calls"][0]["ends"]] == [0, 1]


def test_a_value_over_the_steps(result: Result) -> None:
    over = result("over_steps", node=result.node(LINEAR, place=1)["id"], value="output.0")
    assert over["steps"] == [0, 1]
    assert over["target"]["max"] == [3.0, 9.0] and over["golden"]["max"] == [3.0, 6.0]
    assert over["error"][0] == 0 and over["error"][1] > 0.1


def test_queries_find_what_is_there(result: Result) -> None:
    assert {row["name"] for row in result.find("op:linear rank:1 step:1 side:target")} == {LINEAR}
    assert result("find", q="side:target")["total"] == 4 * 6
    assert result("find", q="error>0.1 side:target type:api")["total"] >= 1
    assert result("find", q="shape:[2,4] dtype:fp32 op:relu")["total"] == 8
    assert result("find", q="level:wrong")["error"]["at"] == 0


def test_one_recording_shows_where_nan_comes_from(tmp_path: Path) -> None:
    data = calls()
    data[LINEAR]["output"] = [tensor(1.0, Max="NaN")]
    data[RELU]["input_args"] = data[RELU]["output"] = [tensor(1.0, Max="NaN")]
    text = json.dumps(data).replace('"NaN"', "NaN")
    directory = write(tmp_path / "rank0", {})
    (directory / "dump.json").write_text(
        '{"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, '
        f'"data": {text}}}')
    with viewer(tmp_path / "cache", directory) as running:
        alone = Result(running)
        meta = alone("meta")
        first = rows(alone("first")["rows"])
        assert (meta["kind"], meta["first"]) == ("build", None)
        assert meta["places"][0]["golden_root"] == -1
        assert (first[0]["name"], first[0]["overflow"], first[0]["kind"]) == (
            LINEAR, "critical", "source")
        assert [row["overflow"] for row in alone.find("overflow:high")] == ["high"]
        value = alone("node", node=first[0]["id"])["values"][1]
        assert value["target"]["max"] == "nan" and value["golden"] is None
        assert {row["level"] for row in alone.find()} == {"none"}


def test_calls_without_modules_are_a_list(tmp_path: Path) -> None:
    sides = [write(tmp_path / name, {LINEAR: calls(scale)[LINEAR], RELU: calls(scale)[RELU]}, {})
             for name, scale in (("new", 1.5), ("good", 1.0))]
    with viewer(tmp_path / "cache", *sides) as running:
        flat = Result(running)
        assert [row["name"] for row in flat.find("type:api side:target")] == [LINEAR, RELU]
        assert rows(flat("first")["rows"])[0]["name"] == LINEAR
        assert any("no modules" in note for note in flat("meta")["notes"])


def test_calls_of_one_side_are_unmatched_and_proposed(tmp_path: Path) -> None:
    renamed = "Functional.relu_v2.0.forward"
    target, golden = calls(), calls()
    golden["Functional.extra.7.forward"] = golden[LINEAR]
    target[renamed] = {"input_args": [tensor(5.0)], "input_kwargs": {}, "output": [tensor(5.0)]}
    with viewer(tmp_path / "cache",
                write(tmp_path / "new", target, PARENTS | {renamed: NET}),
                write(tmp_path / "good", golden,
                      PARENTS | {"Functional.extra.7.forward": NET})) as running:
        found = Result(running)
        names = {row["name"] for row in found.find("is:unmatched")}
        assert names == {renamed, "Functional.extra.7.forward"}
        counts = found("meta")["places"][0]["counts"]
        assert (counts["unmatched_target"], counts["unmatched_golden"]) == (1, 1)
        differences = found("structure", place=0, only="differences")
        assert differences["total"] == 2
        named = found("meta")["answer"][0]
        match = re.match(r"first wrong call: (\S+)", named)
        first = rows(found("first")["rows"])
        assert first and (match is None or first[0]["name"] == match.group(1))


def test_structures_pair_by_name(tmp_path: Path) -> None:
    empty: dict[str, Any] = {LINEAR: {}, NET: {}}
    parents: dict[str, str | None] = {LINEAR: NET, NET: None}
    sides = [write(tmp_path / "new", empty, {**parents, RELU: NET}, "structure"),
             write(tmp_path / "good", empty, parents, "structure")]
    with viewer(tmp_path / "cache", *sides) as running:
        found = Result(running)
        assert found("meta")["mode"] == "structure"
        assert [(row["name"], row["kind"]) for row in rows(found("first")["rows"])] == [
            (RELU, "mismatch")]
        assert found.node(LINEAR)["partner"] >= 0


def test_what_is_received_comes_after_its_sender(tmp_path: Path) -> None:
    send, receive = "Distributed.send.0.forward", "Distributed.recv.0.forward"
    steps = [f"Functional.relu.{i}.forward" for i in range(1, 6)]
    inherits = "Functional.gelu.0.forward"

    def number(value: int) -> dict[str, Any]:
        return {"type": "int", "value": value}

    def call(given: float, got: float) -> dict[str, Any]:
        return {"input_args": [tensor(given)], "input_kwargs": {}, "output": [tensor(got)]}

    def sender(after: float) -> dict[str, Any]:
        """Wrong late: behind calls that are right."""
        return ({name: call(1.0, 1.0) for name in steps} | {LINEAR: call(1.0, after)}
                | {inherits: call(after, after)}
                | {send: {"input_args": [tensor(after)], "input_kwargs": {"dst": number(0)},
                          "output": [None]}})

    def receiver(value: float) -> dict[str, Any]:
        return {receive: {"input_args": [None], "input_kwargs": {"src": number(1)},
                          "output": [tensor(value)]}, RELU: call(value, 2 * value)}

    for side, value in (("new", 3.0), ("good", 2.0)):
        for rank, data in enumerate((receiver(value), sender(value))):
            write(tmp_path / side / f"rank{rank}", data, {})
    with viewer(tmp_path / "cache", tmp_path / "new", tmp_path / "good") as running:
        found = Result(running)
        first = found("first")
        assert "communication" in first["ordered_by"]
        assert [(row["name"], row["kind"]) for row in rows(first["rows"])] == [
            (LINEAR, "first"), (inherits, "carrier"), (receive, "carrier"), (RELU, "carrier")]
        assert found("meta")["first"]["name"] == LINEAR
