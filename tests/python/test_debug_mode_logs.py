"""Logs of torch's DebugMode and dumps of numerics as recordings: what `plumb compare` names is what
torch's own check finds first, also where that check gives up."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("torch.utils._debug_mode")

from recording import PLUMB
from torch.utils._debug_mode import DebugMode, _OpCall

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
import make_debug_mode_logs as logs

MODULES = {"record_nn_module": True, "record_stack_trace": True}
OPTIONS = [
    pytest.param({}, id="norm"),
    pytest.param({"hash_fn": "hash_tensor", **MODULES}, id="xor"),
    pytest.param({"hash_fn": ["norm", "hash_tensor"], "record_ids": True}, id="both"),
    pytest.param({"hash_inputs": False, **MODULES}, id="results"),
    pytest.param({"record_torchfunction": True, **MODULES}, id="functions"),
]


def save(mode: DebugMode, path: Path) -> Path:
    path.write_text(mode.debug_string())
    return path


def compare(target: Path, golden: Path, *options: str, status: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [PLUMB, "compare", target, golden, "-o", target.parent / "out", "--json", "--format",
         "json", *options], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr + done.stdout
    return json.loads(done.stdout)


def rows_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    (path,) = (file for file in answer["files"] if file.endswith(".json"))
    return json.loads(Path(path).read_text())["rows"]


def refusal(target: Path, golden: Path, status: int) -> str:
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", target.parent / "out"],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr + done.stdout
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    return line


def names_of(mode: DebugMode) -> dict[int, str]:
    """The names of the recorded calls of operators, by their place in the log."""
    counts: Counter[str] = Counter()
    names = {}
    for index, call in enumerate(mode.logs):
        if not isinstance(call, _OpCall) or "::" not in str(getattr(call.op, "__qualname__", "")):
            continue
        operator, _, overload = call.op.__qualname__.partition("::")[2].partition(".")
        base = f"Aten.{operator}.{overload or 'default'}"
        names[index] = f"{base}.{counts[base]}.forward"
        counts[base] += 1
    return names


def mismatches_of(target: DebugMode, golden: DebugMode, inputs: bool) -> tuple[str, int]:
    """What torch's check says: the call of the first mismatch, and in how many tensors. Where two
    hashes of each were taken, it counts both."""
    found = DebugMode.check_hash_mismatches(target.logs, golden.logs, compare_inputs=inputs)
    names = names_of(target)
    for index, pair in enumerate(zip(target.logs, golden.logs, strict=True)):
        one = DebugMode.check_hash_mismatches([pair[0]], [pair[1]], compare_inputs=inputs)
        if one:
            return names[index], len(found)
    assert not found
    return "", 0


def differing(answer: dict[str, Any]) -> int:
    """How many tensors have another digest."""
    def is_tensor(side: dict[str, Any]) -> bool:
        return side.get("dtype") in ("torch.float32", "torch.int64", "unknown")

    both = [(row["target"], row["golden"]) for row in rows_of(answer)
            if "target" in row and "golden" in row]
    return sum(is_tensor(a) and a["md5"] != b["md5"] for a, b in both)


def expect_no_wrong_call(answer: dict[str, Any]) -> None:
    assert answer["first_wrong_call"] is None
    assert answer["complete"]
    assert answer["certainty"]["level"] == "low"  # the hashes of a log prove little


def expect_found(answer: dict[str, Any], mismatches: tuple[str, int]) -> None:
    name, count = mismatches
    assert answer["first_wrong_call"]["name"] == name
    assert count > 100
    assert differing(answer) == count


@pytest.mark.parametrize("options", OPTIONS)
def test_equal_runs_have_no_wrong_call(tmp_path: Path, options: dict[str, Any]) -> None:
    first, second = logs.train(**options), logs.train(**options)
    assert mismatches_of(first, second, inputs=True) == ("", 0)
    expect_no_wrong_call(compare(save(first, tmp_path / "a.log"),
                                 save(second, tmp_path / "b.log"), "--fail-on", "any"))


@pytest.mark.parametrize("options", OPTIONS)
def test_a_wrong_epsilon_is_named(tmp_path: Path, options: dict[str, Any]) -> None:
    golden, target = logs.train(**options), logs.train(eps=1e-3, **options)
    name, count = mismatches_of(target, golden, inputs=options.get("hash_inputs", True))
    assert name == "Aten.native_layer_norm.default.2.forward"
    answer = compare(save(target, tmp_path / "new.log"), save(golden, tmp_path / "old.log"),
                     "--fail-on", "wrong", status=1)
    expect_two_hashes = isinstance(options.get("hash_fn"), list)
    assert answer["first_wrong_call"]["name"] == name
    assert (differing(answer) == count) != expect_two_hashes
    if "record_nn_module" in options:
        assert answer["first_wrong_call"]["module_path"][0] == (
            "Module.Transformer.layers.1.attention_norm.forward.0")


def wrong_weight(model: logs.Transformer) -> None:
    with torch.no_grad():
        model.layers[1].out.weight[3, 3] += 1e-3


@pytest.mark.parametrize("options", OPTIONS)
def test_what_differs_is_what_torch_finds(tmp_path: Path, options: dict[str, Any]) -> None:
    golden, target = logs.train(**options), logs.train(change=wrong_weight, **options)
    name, count = mismatches_of(target, golden, inputs=options.get("hash_inputs", True))
    answer = compare(save(target, tmp_path / "new.log"), save(golden, tmp_path / "old.log"))
    assert answer["first_wrong_call"]["name"] == name
    assert count > 100
    assert (differing(answer) == count) != isinstance(options.get("hash_fn"), list)


@pytest.mark.parametrize("options", OPTIONS)
def test_logs_of_unequal_length_are_aligned(tmp_path: Path, options: dict[str, Any]) -> None:
    golden = logs.train(**options)
    harmless = logs.train(insert=logs.twice_halved, **options)
    with pytest.raises(ValueError, match="Log lengths don't match"):
        DebugMode.check_hash_mismatches(harmless.logs, golden.logs)
    old = save(golden, tmp_path / "old.log")
    answer = compare(save(harmless, tmp_path / "longer.log"), old)
    assert answer["first_wrong_call"] is None
    rows = rows_of(answer)
    assert not [row for row in rows if row["verdict"] in ("suspicious", "broken")]
    alone = {row["target"]["name"] if "target" in row else "" for row in rows
             if row["verdict"] == "not comparable"}
    assert all(name.startswith("Aten.mul.Tensor.") for name in alone), alone

    # The same with a fault before the inserted calls: it is named all the same.
    wrong = logs.train(eps=1e-3, insert=logs.twice_halved, **options)
    answer = compare(save(wrong, tmp_path / "wrong.log"), old)
    assert answer["first_wrong_call"]["name"] == "Aten.native_layer_norm.default.2.forward"


def test_an_inserted_fault_is_seen_behind_it(tmp_path: Path) -> None:
    golden, target = logs.train(**MODULES), logs.train(insert=lambda y: y * 1.001, **MODULES)
    answer = compare(save(target, tmp_path / "new.log"), save(golden, tmp_path / "old.log"))
    first = answer["first_wrong_call"]["name"]
    # What the projection reads is the first thing that differs.
    assert first in ("Aten.mul.Tensor.0.forward", "Aten._unsafe_view.default.7.forward",
                     "Aten.view.default.15.forward"), first
    assert "Module.Transformer.layers.1" in str(answer["first_wrong_call"]["module_path"])


def test_save_logs_and_the_text_are_one_form(tmp_path: Path) -> None:
    data = Path(logs.__file__).with_name("debug_mode")
    for name in ("sound.json", "sound.log", "wrong_eps.log"):
        shutil.copy(data / name, tmp_path)
    expect_no_wrong_call(compare(tmp_path / "sound.json", tmp_path / "sound.log",
                                 "--fail-on", "any"))
    answer = compare(tmp_path / "wrong_eps.log", tmp_path / "sound.json")
    assert answer["first_wrong_call"]["name"] == "Aten.native_layer_norm.default.0.forward"


@pytest.mark.skipif(not hasattr(DebugMode, "save_logs"), reason="torch before 2.14")
def test_save_logs_of_this_torch(tmp_path: Path) -> None:
    mode = logs.train(**MODULES)
    DebugMode.save_logs(mode.logs, tmp_path / "saved.json")
    expect_no_wrong_call(compare(tmp_path / "saved.json", save(mode, tmp_path / "a.log")))


def test_dumps_of_hashes(tmp_path: Path) -> None:
    golden, target = logs.train(record_nn_module=True), logs.train(eps=1e-3, record_nn_module=True)
    logs.dump_tensor_hashes(golden, tmp_path / "old.txt")
    logs.dump_tensor_hashes(target, tmp_path / "new.txt")
    logs.dump_tensor_hashes(logs.train(insert=logs.twice_halved, record_nn_module=True),
                            tmp_path / "longer.txt")
    answer = compare(tmp_path / "new.txt", tmp_path / "old.txt")
    expect_found(answer, mismatches_of(target, golden, inputs=True))
    answer = compare(tmp_path / "longer.txt", tmp_path / "old.txt")
    assert answer["first_wrong_call"] is None


def test_dumps_of_torchtitan(tmp_path: Path) -> None:
    logs.dump_activations(tmp_path / "old.log")
    logs.dump_activations(tmp_path / "same.log")
    logs.dump_activations(tmp_path / "new.log", eps=1e-3)
    logs.dump_activations(tmp_path / "longer.log", eps=1e-3, insert=logs.twice_halved)
    expect_no_wrong_call(compare(tmp_path / "same.log", tmp_path / "old.log", "--fail-on", "any"))
    for target in ("new.log", "longer.log"):
        answer = compare(tmp_path / target, tmp_path / "old.log")
        assert answer["first_wrong_call"]["name"] == "Aten.native_layer_norm.2.forward", target
        assert "model/transformer.py" in answer["first_wrong_call"]["stack_line"]


def test_kernels_past_the_dispatcher_are_told(tmp_path: Path) -> None:
    answer = compare(save(logs.with_kernels(3.0), tmp_path / "new.log"),
                     save(logs.with_kernels(), tmp_path / "old.log"))
    assert answer["first_wrong_call"]["name"].startswith("Triton.triton_poi_fused_mul_1.")
    assert any("went past the dispatcher" in warning for warning in answer["warnings"])


def test_nan_on_both_sides_is_no_pass(tmp_path: Path) -> None:
    line = "    aten::log(t: f32[2])  ->  t: f32[2]  # {'input_hash': ((1.5,), {}), 'hash': nan}\n"
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(line)
    answer = compare(tmp_path / "a.log", tmp_path / "b.log", "--fail-on", "unjudged", status=1)
    assert not answer["complete"]


def test_what_cannot_be_compared_is_said_in_one_line(tmp_path: Path) -> None:
    golden = logs.train(layers=1)
    old = save(golden, tmp_path / "old.log")
    bare = save(logs.train(layers=1, hashes=False), tmp_path / "bare.log")
    assert "without hashes" in refusal(bare, bare, 2)
    assert "bare.log" in refusal(old, bare, 2)
    other = save(logs.train(layers=1, hash_fn="hash_tensor"), tmp_path / "xor.log")
    assert "hashes are norm" in refusal(old, other, 2)
    logs.dump_tensor_hashes(golden, tmp_path / "hashes.txt")
    assert "a DebugMode dump of hashes" in refusal(old, tmp_path / "hashes.txt", 2)
    cut = tmp_path / "cut.log"
    text = old.read_text()
    cut.write_text(text[: len(text) // 2])
    number = text[: len(text) // 2].count("\n") + 1
    assert f"line {number}: " in refusal(cut, old, 5)
    mixed = tmp_path / "mixed.log"
    mixed.write_text(text + "\nstep 1 loss 2.5\n")
    assert f"line {text.count(chr(10)) + 2}: no line of a log" in refusal(mixed, old, 5)
    answer = compare(cut, old, "--salvage")
    assert "truncated" in str(answer["warnings"])
    assert not answer["complete"]


def test_inspect_and_view_take_logs(tmp_path: Path) -> None:
    old = save(logs.train(**MODULES), tmp_path / "old.log")
    new = save(logs.train(eps=1e-3, **MODULES), tmp_path / "new.log")
    done = subprocess.run([PLUMB, "inspect", old, "--json"], capture_output=True, text=True,
                          check=True)
    (facts,) = json.loads(done.stdout)["dumps"]
    assert facts["dialect"] == "a log of DebugMode"
    assert facts["checksums"] == facts["tensors"] > 500
    for paths in ([old], [new, old]):
        store = tmp_path / f"{len(paths)}.store"
        done = subprocess.run([PLUMB, "view", *paths, "--build-only", "--store", store],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert store.stat().st_size > 10_000
