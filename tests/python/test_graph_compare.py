"""plumb graph of two recordings: what pairs, which levels nodes have, and that its answer is that
of plumb compare.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from graph_dumps_for_viewers import (
    INNER,
    LAYER,
    config_of,
    everything,
    graph,
    only,
    pair,
    read_db,
    write,
)
from rank_dumps import forward, tensor
from recording import PLUMB
from test_graph import module

LINEAR = "Functional.linear.0.forward"


def both(root: Path, target: dict[str, Any], golden: dict[str, Any]) -> tuple[Path, Path]:
    """The two recordings written."""
    return write(root / "target", target), write(root / "golden", golden)


def compared(root: Path, target: dict[str, Any], golden: dict[str, Any],
             *words: Any) -> dict[str, dict[str, Any]]:
    """The target's nodes of the comparison, whose answer must be that of plumb compare."""
    sides = both(root, target, golden)
    done = graph(*sides, "-o", root / "out", *words)
    assert done.returncode == 0, done.stderr
    reference = subprocess.run([PLUMB, "compare", *sides, "-o", root / "compared", *words],
                               capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == reference.stdout.splitlines()[0]
    return read_db(only(root / "out", "*.vis.db"))


def message(node: dict[str, Any], place: str) -> str:
    """What the one value at `place` of a node says of itself."""
    [text] = json.loads(node[f"{place}_data"][f"{node['node_name']}.{place}.0"]["Err_message"])
    return text


def test_first_wrong_call_is_red_and_the_rest_pairs(tmp_path):
    nodes = compared(tmp_path, *pair())
    wrong = nodes[f"{INNER}.forward.0"]
    assert wrong["precision_index"] == 1
    assert message(wrong, "output").startswith("error: exceeds-noise: relative error 0.4, expl")
    shown = wrong["output_data"][f"{INNER}.forward.0.output.0"]
    texts = [shown[key] for key in ("Max diff", "MaxRelativeErr", "Result")]
    assert texts == ["0.5", "20.0%", "error"]
    other_form = nodes["Module.block.relu.ReLU.forward.0"]
    assert other_form["precision_index"] == 1
    assert "shape-differs" in message(other_form, "output")
    # What stands beside the groups of APIs changes nothing in them.
    links = {name: node["matched_node_link"][1:] for name, node in nodes.items()}
    assert links["Apis_Between_Modules.0"] == [] == links["Torch.x.0.forward"]
    assert links["Apis_Between_Modules.1"] == ["Apis_Between_Modules.0"]
    assert links["Functional.c.0.forward"] == ["Apis_Between_Modules.0", "Functional.c.0.forward"]
    assert links["Apis_Between_Modules.2"] == ["Apis_Between_Modules.1"]
    assert nodes["Apis_Between_Modules.1"]["precision_index"] == 0
    assert nodes["Torch.x.0.forward"]["precision_index"] is None
    assert nodes[f"{LAYER}.forward.0"]["precision_index"] == 0


def test_vis_has_both_graphs_and_the_levels(tmp_path):
    sides = both(tmp_path, *pair())
    assert graph(*sides, "-o", tmp_path / "out", "--file_type", "vis").returncode == 0
    document = json.loads(only(tmp_path / "out", "compare_*.vis").read_text())
    assert list(document) == ["NPU", "Bench", "ToolTip", "Colors", "MicroSteps", "task",
                              "OverflowCheck", "mp_meta"]
    assert document["NPU"]["node"][f"{INNER}.forward.0"]["data"] == {"precision_index": 1}
    assert document["Bench"]["node"][f"{INNER}.forward.0"]["data"] == {}
    link = document["Bench"]["node"]["Functional.c.0.forward"]["matched_node_link"]
    assert link == ["DefaultModel", "Apis_Between_Modules.1", "Functional.c.0.forward"]
    assert [band["value"] for band in document["Colors"].values()] == [
        [0, 0.3], [0.3, 0.6], [0.6, 1], []]


def test_nan_on_one_side_is_an_error(tmp_path):
    entries = [[forward(LINEAR, [tensor(1.0)], [tensor(value)])] for value in (float("nan"), 2.0)]
    nodes = compared(tmp_path, *map(module, entries))
    assert nodes[LINEAR]["precision_index"] == 1


def test_nan_on_both_sides_is_no_pass(tmp_path):
    files = module([forward(LINEAR, [tensor(1.0)], [tensor(float("nan"))])])
    nodes = compared(tmp_path, files, files)
    assert nodes[LINEAR]["precision_index"] == 0.5


def test_checksums(tmp_path):
    files = [module([forward(LINEAR, [tensor(1.0, md5="00000001")], [tensor(2.0, md5=digest)])])
             for digest in ("00000002", "00000003")]
    nodes = compared(tmp_path, *files)
    assert nodes[LINEAR]["precision_index"] == 1
    [shown] = nodes[LINEAR]["output_data"].values()
    assert shown["md5"] == "00000002" and "Max diff" not in shown
    assert config_of(only(tmp_path / "out", "*.vis.db"))["task"] == "md5"


def stored(root: Path, values: list[float], keep: bool = True) -> Path:
    """A recording of one call whose result is stored."""
    name = f"{LINEAR}.output.0.pt"
    result = torch.tensor(values)
    record = tensor(max(values), min(values), data_name=name)
    record["Norm"], record["Mean"] = float(result.norm()), float(result.mean())
    files = module([forward(LINEAR, [tensor(1.0)], [record])])
    files["dump.json"]["task"] = "tensor"
    (root / "dump_tensor_data").mkdir(parents=True)
    if keep:
        torch.save(result, root / "dump_tensor_data" / name)
    return write(root, files)


def test_tensors(tmp_path):
    sides = [stored(tmp_path / "a", [1.0, 2.0, 3.0, 5.0]),
             stored(tmp_path / "b", [1.0, 2.0, 3.0, 4.0])]
    done = graph(*sides, "-o", tmp_path / "out")
    assert done.returncode == 0 and done.stdout.startswith("first wrong call: Functional.linear")
    node = read_db(only(tmp_path / "out", "*.vis.db"))[LINEAR]
    [shown] = node["output_data"].values()
    cosine = torch.nn.functional.cosine_similarity(
        torch.tensor([1.0, 2, 3, 5], dtype=torch.float64),
        torch.tensor([1.0, 2, 3, 4], dtype=torch.float64), dim=0)
    assert float(shown["Cosine"]) == pytest.approx(float(cosine), abs=1e-6)
    assert (shown["MaxAbsErr"], shown["One Thousandth Err Ratio"]) == ("1.0", "0.75")
    assert config_of(only(tmp_path / "out", "*.vis.db"))["task"] == "all"


def test_missing_tensor_is_no_pass(tmp_path):
    sides = [stored(tmp_path / "a", [1.0, 2.0]), stored(tmp_path / "b", [1.0, 2.0], keep=False)]
    done = graph(*sides, "-o", tmp_path / "out", "--fail-on", "unjudged")
    assert done.returncode == 1
    assert read_db(only(tmp_path / "out", "*.vis.db"))[LINEAR]["precision_index"] != 0


def test_structure_pairs_by_name_without_levels(tmp_path):
    files = everything()
    files["dump.json"]["task"] = "structure"
    done = graph(*both(tmp_path, files, files), "-o", tmp_path / "out")
    assert done.stdout.startswith("structure compared: no values were recorded\n")
    path = only(tmp_path / "out", "*.vis.db")
    assert config_of(path)["task"] == "structure"
    assert {node["precision_index"] for node in read_db(path).values()} == {None}
    assert all(node["matched_node_link"] for node in read_db(path).values())


def test_tasks_must_agree(tmp_path):
    target, golden = everything(), everything()
    golden["dump.json"]["task"] = "structure"
    done = graph(*both(tmp_path, target, golden), "-o", tmp_path / "out")
    assert done.returncode == 2 and "task" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_ranks_of_one_side_are_left_out(tmp_path):
    for side, ranks in (("a", (0, 1, 2)), ("b", (0, 1))):
        for rank in ranks:
            write(tmp_path / side / f"rank{rank}", everything())
    done = graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 0 and "rank 2: only in" in done.stderr
    assert done.stdout.startswith("0 of 2 comparisons name a wrong call")
    assert config_of(only(tmp_path / "out", "*.vis.db"))["rank_list"] == "[0, 1]"


def test_of_several_steps_the_first_wrong_call_is_the_answer(tmp_path):
    target, golden = pair()
    for step, side in ((0, golden), (1, target), (2, target)):
        write(tmp_path / "a" / f"step{step}" / "rank0", side)
        write(tmp_path / "b" / f"step{step}" / "rank0", golden)
    first = graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out").stdout.splitlines()[0]
    assert first.startswith(f"first wrong call: step 1 rank 0 {INNER}.forward.0 (2 of 3 comp")
    write(tmp_path / "a" / "step1" / "rank1", target)
    write(tmp_path / "b" / "step1" / "rank1", golden)
    both_ranks = graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out").stdout
    assert both_ranks.startswith("3 of 4 comparisons name a wrong call; ")
    assert "which rank was the first one: plumb compare" in both_ranks


def test_no_common_step(tmp_path):
    write(tmp_path / "a" / "step0" / "rank0", everything())
    write(tmp_path / "b" / "step1" / "rank0", everything())
    done = graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 3 and "no rank and step" in done.stderr


def test_steps_against_ranks(tmp_path):
    write(tmp_path / "a" / "step0" / "rank0", everything())
    write(tmp_path / "b" / "rank0", everything())
    done = graph(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 2 and "holds steps" in done.stderr


def test_layer_mapping_pairs_what_is_called_otherwise(tmp_path):
    def model(layer: str, kind: str, call: int, value: float) -> dict[str, Any]:
        top, inner = "Module.attn.SelfAttention.forward.0", f"Module.attn.{layer}.{kind}.forward.0"
        api = f"Functional.linear.{call}.forward"
        return {"construct.json": {api: inner, inner: top, top: None},
                "stack.json": {name: ["File /w/a.py, line 1, in forward, \n f()"]
                               for name in (api, inner, top)},
                "dump.json": {"task": "statistics", "data": dict(
                    forward(name, [tensor(1.0)], [tensor(value)]) for name in (api, inner, top))}}

    rules = tmp_path / "rules.yaml"
    rules.write_text("SelfAttention:\n  query_key_value: linear_qkv\n")
    sides = both(tmp_path, model("query_key_value", "Linear", 0, 2.0),
                 model("linear_qkv", "Lin2", 7, 2.0))
    done = graph(*sides, "-o", tmp_path / "out", "-lm", rules)
    assert done.returncode == 0, done.stderr
    nodes = read_db(only(tmp_path / "out", "*.vis.db"))
    link = nodes[LINEAR]["matched_node_link"]
    assert link[-2:] == ["Module.attn.linear_qkv.Lin2.forward.0", "Functional.linear.7.forward"]
    golden = read_db(only(tmp_path / "out", "*.vis.db"), "Bench")
    assert golden["Functional.linear.7.forward"]["matched_node_link"][-1] == LINEAR
    rules.write_text("not: [a mapping")
    assert graph(*sides, "-o", tmp_path / "bad", "-lm", rules).returncode in (2, 5)


def test_older_request_file(tmp_path):
    target, golden = both(tmp_path, *pair())
    request = tmp_path / "compare.json"
    request.write_text(json.dumps({"npu_path": str(target), "bench_path": str(golden),
                                   "is_print_compare_log": True}))
    done = subprocess.run([PLUMB, "msprobe", "-f", "pytorch", "graph", "-i", request, "-o",
                           tmp_path / "out", "-cs", "-oc"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(only(tmp_path / "out", "compare_*.vis").read_text())["OverflowCheck"] is True
