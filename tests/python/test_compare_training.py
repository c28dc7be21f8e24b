"""`plumb compare --consistent_check`: a training against an engine with fused modules."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB, run_script

import plumbline

MODELS = Path(__file__).with_name("training_models.py")
CHECK = ("--consistent_check", "--backend", "fsdp")
LAYER = "Module._fsdp_wrapped_module.model.layers.1._fsdp_wrapped_module"


def compare(directory: Path, *words: Any, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PLUMB, "compare", directory / "train", directory / "infer", "-o", directory / "out",
         "--format", "csv", *map(str, words)],
        text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("training")
    run_script(MODELS, directory, "none", "swapped", "norm")
    return directory


@pytest.fixture(scope="module")
def good(recorded: Path) -> Path:
    return recorded / "none"


def rows(directory: Path) -> list[dict[str, str]]:
    (table,) = (directory / "out").glob("*.csv")
    with table.open() as file:
        found = list(csv.DictReader(file))
    table.unlink()
    return found


def test_fused_modules_agree(good: Path) -> None:
    answer = json.loads(compare(good, *CHECK, "--json").stdout)
    assert answer["first_wrong_call"] is None
    table = rows(good)
    pairs = [row for row in table if "N/A" not in (row["NPU Name"], row["Bench Name"])]
    assert {row["Verdict"] for row in pairs} <= {"same", "within noise"}
    by_bench = {row["Bench Name"]: row for row in pairs}
    # Three projections are one, at every value; weights in rows, results in columns.
    for layer, end in ((0, "output.0"), (1, "parameters.weight"), (1, "parameters.bias")):
        name = f"Module.model.layers.{layer}.self_attn.qkv_proj.QKVParallelLinear.forward.0.{end}"
        inside = f"Module._fsdp_wrapped_module.model.layers.{layer}._fsdp_wrapped_module.self_attn"
        assert by_bench[name]["NPU Name"] == ";  ".join(
            f"{inside}.{part}_proj.Linear.forward.0.{end}" for part in "qkv")
        assert by_bench[name]["Verdict"] in ("same", "within noise")
        assert float(by_bench[name]["Cosine"]) > 0.999999
    # What the engine keeps beside its residual is added first.
    norm = "Module.model.layers.1.input_layernorm.RMSNorm.forward.0"
    total = by_bench[f"{norm}.input.0;  {norm}.input.1"]
    assert total["NPU Name"] == f"{LAYER}.input_layernorm.RMSNorm.forward.0.input.0"
    assert total["Verdict"] in ("same", "within noise")
    # Layers run again for the backward pass are not in it, nor wrappers.
    assert not [row for row in table if ".forward.1." in row["NPU Name"]]
    assert not [row for row in table if ".Wrapper." in row["NPU Name"]]


@pytest.mark.parametrize("fault, culprit, item, cause", [
    ("swapped", f"{LAYER}.mlp.gate_proj.Linear.forward.0;  {LAYER}.mlp.up_proj.Linear.forward.0",
     "parameters.weight", "permuted"),
    ("norm", f"{LAYER}.post_attention_layernorm.RMSNorm.forward.0", "output.0", "scale"),
])
def test_a_fault_is_named(recorded: Path, fault: str, culprit: str, item: str, cause: str) -> None:
    done = compare(recorded / fault, *CHECK, "--json", "--fail-on", "broken", status=1)
    first = json.loads(done.stdout)["first_wrong_call"]
    assert first["name"] == culprit
    assert first["item"].endswith(item)
    assert first["cause"] == cause


def test_statistics_alone(recorded: Path, tmp_path: Path) -> None:
    for side in ("train", "infer"):
        text = (recorded / "norm" / side / "rank/dump.json").read_text()
        text = re.sub(r', *"data_name": "[^"]*"', "", text).replace('"tensor"', '"statistics"', 1)
        (tmp_path / side / "rank").mkdir(parents=True)
        (tmp_path / side / "rank/dump.json").write_text(text)
    place = tmp_path
    first = json.loads(compare(place, *CHECK, "--json").stdout)["first_wrong_call"]
    assert first["name"] == f"{LAYER}.post_attention_layernorm.RMSNorm.forward.0"
    name = "Module.model.layers.0.mlp.gate_up_proj.MergedColumnParallelLinear.forward.0.output.0"
    (row,) = [row for row in rows(place) if row["Bench Name"] == name]
    assert row["Verdict"] in ("same", "within noise")
    assert float(row["NPU l2norm"]) == pytest.approx(float(row["Bench l2norm"]), rel=1e-6)


def test_a_module_of_another_name(good: Path, tmp_path: Path) -> None:
    table = tmp_path / "map.yaml"
    table.write_text("o_proj: other\n")
    compare(good, *CHECK, "--module-map", table)
    assert {row["Bench Name"] for row in rows(good) if ".o_proj." in row["NPU Name"]} == {"N/A"}


def test_upstreams_command_line(good: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [PLUMB, "msprobe", "compare", "-tp", good / "train", "-gp", good / "infer", *CHECK, "-o",
         tmp_path], text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "show no wrong one" in done.stdout


@pytest.mark.parametrize("words, status, text", [
    (["--consistent_check"], 2, "needs --backend"),
    (["--backend", "fsdp"], 2, "belong to --consistent_check"),
    (["--consistent_check", "--backend", "other"], 2, "--backend"),
    ([*CHECK, "-f"], 2, "has pairing rules of its own"),
    ([*CHECK, "--module-map", "missing.yaml"], 3, "missing.yaml"),
])
def test_wrong_options(good: Path, words: list[str], status: int, text: str) -> None:
    done = compare(good, *words, status=status)
    assert text in done.stderr and not done.stdout
    assert not list((good / "out").glob("*.csv"))


def test_two_models_with_nothing_in_common(good: Path, tmp_path: Path) -> None:
    data = json.loads((good / "infer/rank/dump.json").read_text())
    data["data"] = {"Module.other.Other.forward.0": {"input_args": [], "input_kwargs": {},
                                                     "output": []}}
    (tmp_path / "infer/rank/dump_tensor_data").mkdir(parents=True)
    (tmp_path / "infer/rank/dump.json").write_text(json.dumps(data))
    (tmp_path / "train").symlink_to(good / "train")
    done = compare(tmp_path, *CHECK, status=2)
    assert "no module in common" in done.stderr and not (tmp_path / "out").exists()


def test_a_lost_file_is_not_judged(good: Path, tmp_path: Path) -> None:
    place = tmp_path / "lost"
    shutil.copytree(good, place, ignore=shutil.ignore_patterns("out"))
    (lost,) = place.glob("train/rank/dump_tensor_data/*layers.0*v_proj*forward.0.output.0.pt")
    lost.unlink()
    compare(place, *CHECK, "--fail-on", "any", status=1)
    (row,) = [row for row in rows(place)
              if "layers.0" in row["NPU Name"] and "qkv_proj" in row["Bench Name"]
              and row["Bench Name"].endswith("output.0")]
    assert (row["Verdict"], row["Reason"]) == ("not comparable", "unreadable")


def test_the_same_from_python(recorded: Path, tmp_path: Path) -> None:
    for case in ("none", "swapped"):
        directory = recorded / case
        told = json.loads(compare(directory, *CHECK, "--json").stdout)
        result = plumbline.compare_training(
            directory / "train", directory / "infer", tmp_path / case, backend="fsdp",
            formats="csv")
        assert result.details == told["first_wrong_call"]
        assert result.counts == told["counts"]
        assert (result.first_wrong_call is None) == (case == "none")
        assert len(list((tmp_path / case).glob("*.csv"))) == 1


def test_wrong_arguments_from_python(good: Path, tmp_path: Path) -> None:
    sides = good / "train", good / "infer"
    with pytest.raises(ValueError, match="expected fsdp or megatron"):
        plumbline.compare_training(*sides, backend="deepspeed")
    with pytest.raises(FileNotFoundError, match="no_map"):
        plumbline.compare_training(*sides, backend="fsdp", module_map=tmp_path / "no_map.yaml")
    table = tmp_path / "map.yaml"
    table.write_text("o_proj: other\n")
    found, without = (plumbline.compare_training(*sides, backend="fsdp", module_map=modules)
                      for modules in (table, None))
    assert found.counts["unmatched target"] > without.counts["unmatched target"]


@pytest.fixture
def of_ranks(recorded: Path, tmp_path: Path) -> Path:
    """Two steps of two ranks; of the second step rank 1 has a fault."""
    for step, cases in enumerate((("none", "none"), ("none", "norm"))):
        for rank, case in enumerate(cases):
            for side in ("train", "infer"):
                shutil.copytree(recorded / case / side / "rank",
                                tmp_path / side / f"step{step}" / f"rank{rank}")
    return tmp_path


def test_every_rank_and_step(of_ranks: Path) -> None:
    answer = json.loads(compare(of_ranks, *CHECK, "--json", "--format", "csv,html").stdout)
    first = answer["first_wrong_call"]
    assert (first["step"], first["rank"]) == (1, 1)
    assert first["name"] == f"{LAYER}.post_attention_layernorm.RMSNorm.forward.0"
    assert [rank["state"] for rank in answer["ranks"]] == ["compared"] * 4
    assert "rank 1" in answer["answer"]
    # Each has the table that a comparison of it alone has.
    for step, rank in ((0, 0), (1, 1)):
        (table,) = (of_ranks / f"out/step{step}").glob(f"*rank{rank}-rank{rank}_*.csv")
        alone = plumbline.compare_training(
            of_ranks / f"train/step{step}/rank{rank}", of_ranks / f"infer/step{step}/rank{rank}",
            of_ranks / f"alone{step}", backend="fsdp", formats="csv")
        assert Path(alone.files[0]).read_bytes() == table.read_bytes()
        assert ";  " in table.read_text()
    again = json.loads(compare(of_ranks, *CHECK, "--json", "--format", "csv,html").stdout)
    assert {rank["state"] for rank in again["ranks"]} == {"taken over"}
    assert again["first_wrong_call"] == first


def test_another_table_of_names_is_another_comparison(of_ranks: Path, tmp_path: Path) -> None:
    compare(of_ranks, *CHECK)
    modules = tmp_path / "map.yaml"
    modules.write_text("o_proj: other\n")
    words = (*CHECK, "--module-map", modules, "--json")
    mapped = json.loads(compare(of_ranks, *words).stdout)
    assert {rank["state"] for rank in mapped["ranks"]} == {"compared"}
    modules.write_text("o_proj: o_proj\n")
    assert {rank["state"] for rank in json.loads(compare(of_ranks, *words).stdout)["ranks"]} == {
        "compared"}


def test_a_call_of_several_modules_is_placed_in_time(recorded: Path, tmp_path: Path) -> None:
    """The wrong call of rank 1 stands for two modules; rank 0 goes wrong in a later one."""
    for rank, case in enumerate(("norm", "swapped")):
        for side in ("train", "infer"):
            shutil.copytree(recorded / case / side / "rank", tmp_path / side / f"rank{rank}")
    answer = json.loads(compare(tmp_path, *CHECK, "--json").stdout)
    calls = {origin["rank"]: origin for origin in answer["origins"]}
    assert ";  " in calls[1]["name"] and ".mlp.gate_proj." in calls[1]["name"]
    assert 0 < calls[0]["index"] < calls[1]["index"]
    assert answer["first_wrong_call"]["rank"] == 0


def test_a_rank_of_one_side_alone(of_ranks: Path) -> None:
    shutil.rmtree(of_ranks / "infer/step0/rank1")
    answer = json.loads(compare(of_ranks, *CHECK, "--step", "0", "--json", status=3).stdout)
    assert [rank["state"] for rank in answer["ranks"]] == ["compared", "missing"]
    assert not answer["complete"]


def test_ranks_with_wrong_options(of_ranks: Path) -> None:
    done = compare(of_ranks, *CHECK, "-f", status=2)
    assert done.stderr.count("has pairing rules of its own") == 1
    assert not (of_ranks / "out").exists()


def test_ranks_from_python(of_ranks: Path, tmp_path: Path) -> None:
    found = plumbline.compare_ranks(of_ranks / "train", of_ranks / "infer", tmp_path / "out",
                                    backend="fsdp", formats="csv", steps=[1])
    assert found.first_wrong_call is not None and found.first_wrong_call["rank"] == 1
    with pytest.raises(ValueError, match="belongs to backend"):
        plumbline.compare_ranks(of_ranks / "train", of_ranks / "infer", tmp_path / "other",
                                module_map="map.yaml")
    with pytest.raises(ValueError, match="expected fsdp or megatron"):
        plumbline.compare_ranks(of_ranks / "train", of_ranks / "infer", tmp_path / "other",
                                backend="other")


def test_what_is_no_recording_of_modules(good: Path, tmp_path: Path) -> None:
    array = next(good.glob("train/rank/dump_tensor_data/*.pt"))
    for words in ([good / "train", array], [array, array]):
        done = subprocess.run([PLUMB, "compare", *words, *CHECK, "-o", tmp_path / "out"],
                              text=True, capture_output=True, check=False, timeout=60)
        assert done.returncode == 2 and "is no recording of modules" in done.stderr, done
        assert done.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
