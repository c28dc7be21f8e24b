"""Options of plumb graph that front ends and pipelines use, and inputs at the edge."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from graph_dumps_for_viewers import everything, graph, only, read_db, write
from rank_dumps import forward, number, tensor
from recording import PLUMB
from test_graph import module
from test_graph_compare import LINEAR, both, stored


def progress_of(text: str) -> list[dict[str, Any]]:
    """The lines for front ends, as upstream's own reads them."""
    return [json.loads(line.split("PROGRESS: ")[-1]) for line in text.splitlines()
            if "PROGRESS: " in line]


def test_progress_lines_are_upstreams(tmp_path):
    for rank in range(4):
        write(tmp_path / "in" / f"rank{rank}", everything())
    words = ["-tp", str(tmp_path / "in"), "-gp", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    done = subprocess.run([PLUMB, "msprobe", "graph_visualize", *words, "-progress_log"],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = progress_of(done.stdout)
    assert [line["current_progress"] for line in lines] == [0, 25, 50, 75, 100, 100]
    assert [line["process_running"] for line in lines] == [True] * 5 + [False]
    assert all(list(line) == ["current_progress", "process_running", "error_msg"]
               for line in lines) and lines[-1]["error_msg"] == []


def test_progress_lines_say_what_failed(tmp_path):
    done = graph(tmp_path / "nowhere", "-o", tmp_path / "out", "-progress_log")
    assert done.returncode == 3
    last = progress_of(done.stdout)[-1]
    assert last["process_running"] is False and "nowhere" in last["error_msg"][0]


def test_the_limit_of_a_norm_jump_is_the_users(tmp_path):
    write(tmp_path / "in", module([forward(LINEAR, [tensor(1.0)], [tensor(50.0)])]))
    limits = tmp_path / "limits.json"
    for ratio, level in ((100, None), (40, "high")):
        limits.write_text(json.dumps({"overflow_norm_ratio": ratio}))
        out = tmp_path / f"out{ratio}"
        assert graph(tmp_path / "in", "-o", out, "-oc", "--thresholds", limits).returncode == 0
        assert read_db(only(out, "*.vis.db"))[LINEAR]["overflow_level"] == level


@pytest.mark.parametrize("text, status, words", [
    ('{"cosine": 0.9}', 2, ['"cosine"', "overflow_norm_ratio"]),
    ('{"overflow_norm_ratio": 1}', 2, ["above 1"]),
    ('{"overflow_norm_ratio": "100"}', 2, ["above 1"]),
    ("{", 5, ["byte"]), ("[]", 5, ["no JSON object"])])
def test_other_limits_are_refused(tmp_path, text, status, words):
    write(tmp_path / "in", everything())
    limits = tmp_path / "limits.json"
    limits.write_text(text)
    done = graph(tmp_path / "in", "-o", tmp_path / "out", "--thresholds", limits)
    assert done.returncode == status and str(limits) in done.stderr
    assert all(word in done.stderr for word in words)
    assert not (tmp_path / "out").exists()


def test_one_line_per_tensor(tmp_path):
    sides = [stored(tmp_path / "a", [1.0, 2.0, 3.0, 5.0]),
             stored(tmp_path / "b", [1.0, 2.0, 3.0, 4.0])]
    done = graph(*sides, "-o", tmp_path / "out", "-tensor_log")
    [line] = [line for line in done.stderr.splitlines() if ".output.0" in line]
    assert "cosine" in line and "max_abs_error 1" in line


def test_the_result_is_served(tmp_path):
    write(tmp_path / "in", everything())
    process = subprocess.Popen([PLUMB, "graph", tmp_path / "in", "-o", tmp_path / "out", "--jobs",
                                "1", "--serve"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = next(line for line in process.stdout if "http://" in line)
        url = next(word for word in address.split() if word.startswith("http://"))
        place, token = url.split("?token=")
        request = urllib.request.Request(f"{place}api/datasets",
                                         headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            [dataset] = json.load(answer)["datasets"]
        assert dataset["target"] == str(only(tmp_path / "out", "*.vis.db"))
    finally:
        process.terminate()
        process.wait(timeout=20)


def values_of(root: Path, target: list[Any], golden: list[Any], *words: str) -> dict[str, Any]:
    """The inputs of one call of a comparison, by their places."""
    files = [module([forward(LINEAR, inputs, [tensor(2.0)])]) for inputs in (target, golden)]
    done = graph(*both(root, *files), "-o", root / "out", *words)
    assert done.returncode == 0, done.stderr
    shown = read_db(only(root / "out", "*.vis.db"))[LINEAR]["input_data"]
    return {name.rsplit(".", 1)[1]: value for name, value in shown.items()}


def test_what_is_no_number_has_no_difference(tmp_path):
    items = [tensor(0.0), number(True), number("text"), None]
    shown = values_of(tmp_path, [tensor(1.0), *items[1:]], items)
    assert shown["0"]["MaxRelativeErr"] == "N/A" and shown["0"]["Max diff"] == "1.0"
    for place in ("1", "2"):
        metrics = [text for key, text in shown[place].items() if key.endswith((" diff", "Err"))]
        assert metrics == ["N/A"] * 8
    assert shown["3"]["value"] == "null"


def test_a_value_more_has_no_counterpart_and_no_errors(tmp_path):
    shown = values_of(tmp_path, [tensor(1.0), tensor(7.0)], [tensor(1.0)], "-f")
    assert set(shown) == {"0", "1"}
    for value in shown.values():  # the call has another structure: nothing of it is compared
        assert not [key for key in value if key.endswith((" diff", "Err"))]
        assert value["Result"] == "not comparable" and f"{LINEAR}.input.1" in value["Err_message"]


def nested(levels: int) -> Any:
    value: Any = tensor(2.0)
    for _ in range(levels):
        value = [value]
    return value


def test_bare_nan_and_deep_arguments(tmp_path):
    files = module([forward(LINEAR, [tensor(float("nan")), tensor(float("-inf"))],
                            [nested(10), tensor(float("inf"))])])
    assert "NaN" in json.dumps(files) and "-Infinity" in json.dumps(files)
    write(tmp_path / "in", files)
    assert graph(tmp_path / "in", "-o", tmp_path / "out").returncode == 0
    node = read_db(only(tmp_path / "out", "*.vis.db"))[LINEAR]
    texts = [value["Max"] for value in [*node["input_data"].values(),
                                        *node["output_data"].values()]]
    assert texts == ["nan", "-inf", "2.0", "inf"]


def test_arguments_deeper_than_a_recorder_writes_are_named(tmp_path):
    write(tmp_path / "in", module([forward(LINEAR, [nested(450)], [tensor(1.0)])]))
    done = graph(tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 4 and LINEAR in done.stderr and "nested deeper" in done.stderr
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("tasks, word", [(("statistics", "md5"), "md5 digests"),
                                         (("tensor", "statistics"), "task is tensor")])
def test_other_tasks_are_not_compared(tmp_path, tasks, word):
    sides = []
    for name, task in zip(("a", "b"), tasks, strict=True):
        extra = {"md5": "00000001"} if task == "md5" else {}
        files = module([forward(LINEAR, [tensor(1.0, **extra)], [tensor(2.0, **extra)])])
        files["dump.json"]["task"] = "tensor" if task == "tensor" else "statistics"
        sides.append(write(tmp_path / name, files))
    done = graph(*sides, "-o", tmp_path / "out")
    assert done.returncode == 2 and word in done.stderr
    assert not list(tmp_path.glob("out/*"))
