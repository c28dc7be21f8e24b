"""`plumb compare --unshard`: runs of two and four gloo processes against the run on one, the layout
found without a hint.

The runs are those of parallel_llama.py, which share a small Llama (or Mixtral) in every way that
the planner knows. What they compute is the same, so nothing may be named; with a fault the layer
with the fault must be.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

HERE = Path(__file__).resolve().parent
LAYOUTS = {
    "tp2": "tensor parallel 2",
    "tp4": "tensor parallel 4",
    "sp2": "tensor parallel 2, sequence parallel 2",
    "pp2": "pipeline parallel 2",
    "pp2_global": "pipeline parallel 2",
    "ep2": "expert parallel 2",
    "ep4": "expert parallel 4",
    "cp2": "context parallel 2",
    "dp2": "data parallel 2",
    "fsdp2": "fully sharded data parallel 2",
    "pp2_ep2": "pipeline parallel 2, expert parallel 2",
    "tp2_pp2": "tensor parallel 2, pipeline parallel 2",
    "tp2_dp2": "tensor parallel 2, data parallel 2",
    "packed": "other dimensions of one batch",
}
FAULTS = ("tp2", "sp2", "pp2", "ep4", "cp2", "dp2", "fsdp2", "tp2_dp2", "pp2_ep2")
# Whose layers, or experts, have equal weights, and what has to be said then.
TOLD = {"pp2-equal": "pp=2", "pp4-equal": "pp=4", "tp2_pp2-equal": "tp=2,pp=2", "ep2-equal": "ep=2",
        "pp2_ep2-equal": "pp=2,ep=2"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All recordings."""
    out = tmp_path_factory.mktemp("runs")
    names = ["single", "mixtral", *LAYOUTS, *(f"{name}-fault" for name in FAULTS), "tp2-other",
             "single-equal", "mixtral-equal", *TOLD, "pp4", "single-tensor", "mixtral-tensor",
             *(f"{name}-tensor" for name in ELEMENTS),
             *(f"{name}-exchanged{task}" for name in ("tp2", "cp2") for task in ("", "-tensor"))]
    done = subprocess.run([sys.executable, HERE / "parallel_llama.py", out, *names], text=True,
                          capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return out


def golden_of(runs: Path, name: str) -> Path:
    layout, *variants = name.split("-")
    alike = [variant for variant in variants if variant in ("equal", "tensor")]
    return runs / "-".join(["mixtral" if "ep" in layout else "single", *alike]) / "step0"


def unsharded(runs: Path, name: str, out: Path, *more: str) -> list[str]:
    """The lines that are printed."""
    done = subprocess.run(
        [PLUMB, "compare", runs / name / "step0", golden_of(runs, name), "--unshard", "-o", out,
         "--format", "json", *more], text=True, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def line_with(lines: list[str], beginning: str) -> str:
    [line] = [line.strip() for line in lines if line.strip().startswith(beginning)]
    return line


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_is_found_and_nothing_is_named(runs: Path, tmp_path: Path, name: str) -> None:
    lines = unsharded(runs, name, tmp_path)
    assert re.match("no wrong call$|not judged completely: ", lines[0]), lines
    layout = line_with(lines, "layout: ")
    assert layout.partition("golden's one: ")[2] == LAYOUTS[name]
    proven, of = re.match(r"proof: (\d+) of (\d+) parameters", line_with(lines, "proof:")).groups()
    assert proven == of == ("127" if "ep" in name else "39")
    # Whether there is something that could not be judged is said in both places.
    told = any(line.strip().startswith("not judged: ") for line in lines)
    assert told == lines[0].startswith("not judged completely")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_rank_is_named(runs: Path, tmp_path: Path, name: str) -> None:
    lines = unsharded(runs, f"{name}-fault", tmp_path)
    assert lines[0].startswith("first wrong call: Tensor.__mul__."), lines
    inside = line_with(lines, "inside: ")
    assert re.match(r"inside: Module\.layers\.2\.mlp\.(experts\.\d\.)?up_proj\.", inside)


@pytest.mark.parametrize("name", ["tp2", "cp2", "ep4"])
def test_folded_statistics_are_those_of_all_parts(runs: Path, tmp_path: Path, name: str) -> None:
    """By arithmetic over the ranks' own files."""
    unsharded(runs, name, tmp_path)
    folded = json.loads((tmp_path / "unsharded/target/dump.json").read_text())["data"]
    ranks = [json.loads(path.read_text())["data"]
             for path in sorted((runs / name / "step0").glob("rank*/dump.json"))]
    call = "Module.layers.1.attention.q_proj.Linear.forward.0"
    parts = [rank[call]["output"][0] for rank in ranks]
    found = folded[call]["output"][0]
    if name == "ep4":  # all ranks do the same
        assert {key: found[key] for key in ("Max", "Min", "Mean", "Norm")} == {
            key: parts[0][key] for key in ("Max", "Min", "Mean", "Norm")}
        return
    assert found["Max"] == max(part["Max"] for part in parts)
    assert found["Min"] == min(part["Min"] for part in parts)
    assert found["Mean"] == pytest.approx(sum(part["Mean"] for part in parts) / 2, rel=1e-12)
    norm = sum(part["Norm"] ** 2 for part in parts) ** 0.5
    assert found["Norm"] == pytest.approx(norm, rel=1e-12)
    whole = json.loads((golden_of(runs, name) / "rank/dump.json").read_text())["data"]
    assert found["shape"] == whole[call]["output"][0]["shape"]


def test_other_weights_are_no_proof(runs: Path, tmp_path: Path) -> None:
    lines = unsharded(runs, "tp2-other", tmp_path)
    assert lines[0].startswith("first wrong call: ")
    assert line_with(lines, "proof: ").startswith("proof: 0 of 39 parameters")
    assert "the others differ" in line_with(lines, "proof: ")


@pytest.mark.parametrize("name, rank", [("tp2", 1), ("tp4", 2), ("pp2", 1), ("ep4", 2), ("dp2", 1)])
def test_a_missing_rank_is_told_and_nothing_is_named(runs: Path, tmp_path: Path, name: str,
                                                     rank: int) -> None:
    shutil.copytree(runs / name, tmp_path / "run")
    shutil.rmtree(tmp_path / f"run/step0/rank{rank}")
    line = refused(tmp_path / "run/step0", golden_of(runs, name), tmp_path / "out")
    told = "does not come together" if name == "dp2" else f"rank {rank} is missing"
    assert told in line


@pytest.mark.parametrize("name", TOLD)
def test_equal_weights_need_to_be_told(runs: Path, tmp_path: Path, name: str) -> None:
    place = runs / name / "step0"
    assert "is on no rank" in refused(place, golden_of(runs, name), tmp_path / "out")
    lines = unsharded(runs, name, tmp_path, "--layout", TOLD[name])
    assert re.match("no wrong call$|not judged completely: ", lines[0]), lines
    assert f"told by --layout: {TOLD[name]};" in line_with(lines, "told by")
    if "pp" in name:
        order = line_with(lines, "layers by golden's numbers")
        gets, of = re.search(r"gets? what the stage ahead gives: (\d) of (\d)", order).groups()
        assert gets == of
    else:
        assert line_with(lines, "layers.*.mlp.experts by golden's numbers").endswith("not proven)")


def test_what_is_told_beside_a_wrong_weight_leads_to_it(runs: Path, tmp_path: Path) -> None:
    def spoil(data: dict[str, Any]) -> None:
        call = data["Module.layers.1.mlp.up_proj.Linear.forward.0"]
        call["parameters"]["weight"] |= {"Max": 0.9, "Norm": 9.0}

    place = edited(runs, "pp2", tmp_path, spoil)
    golden = golden_of(runs, "pp2")
    assert "is on no rank" in refused(place, golden, tmp_path / "out")
    done = subprocess.run([PLUMB, "compare", place, golden, "--unshard", "--layout", "pp=2", "-o",
                           tmp_path / "out"], text=True, capture_output=True, check=False)
    assert done.stdout.startswith("first wrong call: Module.layers.3.mlp.up_proj.Linear.forward.0")
    assert "proof: 38 of 39 parameters" in done.stdout


@pytest.mark.parametrize("name, layout, told", [
    ("tp2", "tp=1", "tp=1: parameters are in shards of 2"),
    ("tp2", "tp=4", "tp=4: does not divide the 2 ranks"),
    ("tp2", "pp=2", "pp=2: all ranks run the same layers"),
    ("tp2", "cp=2", "cp=2: the first module gets all of its input on every rank"),
    ("tp2", "fsdp=2", "fsdp=2: the first module gets all of its input on every rank"),
    ("tp2", "ep=2", "ep=2: no rank has experts of its own"),
    ("tp2", "sp=2", "sp=2: norms get the whole sequence on every rank"),
    ("pp2", "tp=2", "tp=2: every rank has whole parameters"),
    ("ep2", "pp=2", "pp=2: all ranks run the same layers"),
    ("cp2", "cp=1,dp=1", "cp=1,dp=1: 1 parts of the batch"),
    ("tp2", "tp=2,cp=2", "tp=2,cp=2: the sizes do not make up the 2 ranks"),
    ("tp2_dp2", "tp=2,dp=2,order=dp-tp", "tp=2 and its order put ranks 0, 2 together, but"),
    ("tp2_pp2", "tp=2,pp=2,order=pp-tp", "rank 1 would have layers 2 to 3 of golden, where 0 of"),
    ("tp2_pp2-equal", "tp=2,pp=2,order=pp-tp", "pp=2: the layers are on 4 stages"),
    ("pp4-equal", "pp=2", "layers.2.input_norm.Norm.forward.0 is on no rank with --layout pp=2"),
    ("tp2", "vpp=2", 'unknown field "vpp" (expected tp, '),
    ("tp2", "tp", 'tp: expected a number above 0, got ""'),
    ("tp2", "tp=2,tp=2", "tp twice"),
    ("tp2", "order=tp-dp", "order: needs a size"),
    ("tp2", "tp=2,order=tp-tp", "order: tp-tp names tp twice"),
])
def test_what_is_told_wrongly_is_refused(runs: Path, tmp_path: Path, name: str, layout: str,
                                         told: str) -> None:
    line = refused(runs / name / "step0", golden_of(runs, name), tmp_path / "out", "--layout",
                   layout)
    assert "--layout" in line and told in line
    assert not (tmp_path / "out/unsharded").exists()


@pytest.mark.parametrize("name, told", [
    ("pp4-equal", "its layers get what those of rank 2 give, which is stage 2"),
    ("pp4", "rank 1 would have layers 1 to 1 of golden, where 0 of its parameters are golden's and "
            "9 are others; at 2 to 2 9 are golden's and 0 others"),
])
def test_an_order_of_stages_that_is_told_wrongly_is_refused(runs: Path, tmp_path: Path, name: str,
                                                           told: str) -> None:
    shutil.copytree(runs / name, tmp_path / "run")
    step = tmp_path / "run/step0"
    (step / "rank1").rename(step / "other")
    (step / "rank2").rename(step / "rank1")
    (step / "other").rename(step / "rank2")
    assert told in refused(step, golden_of(runs, name), tmp_path / "out", "--layout", "pp=4")


@pytest.mark.parametrize("name, layout, found", [
    ("cp2", "cp=2", "context parallel 2"),
    ("cp2", "dp=2", "data parallel 2"),
    ("tp2_dp2", "tp=2,dp=2", "tensor parallel 2, data parallel 2"),
])
def test_what_is_told_names_what_shapes_do_not(runs: Path, tmp_path: Path, name: str, layout: str,
                                              found: str) -> None:
    lines = unsharded(runs, name, tmp_path, "--layout", layout)
    assert line_with(lines, "layout: ").endswith(f"golden's one: {found}")
    is_taken = any("is the batch: told by --layout, not proven" in line for line in lines)
    assert is_taken == (layout == "dp=2")


def test_an_empty_rank_is_told(runs: Path, tmp_path: Path) -> None:
    place = edited(runs, "pp2", tmp_path, lambda data: data.clear())
    assert "is on no rank" in refused(place, golden_of(runs, "pp2"), tmp_path / "out")


def refused(target: Path, golden: Path, out: Path, *more: str) -> str:
    """The line on standard error; there is no answer."""
    done = subprocess.run([PLUMB, "compare", target, golden, "--unshard", "-o", out, *more],
                          text=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    return line


def edited(runs: Path, name: str, tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a run whose rank 1 recorded something else."""
    shutil.copytree(runs / name, tmp_path / "run")
    path = tmp_path / "run/step0/rank1/dump.json"
    content = json.loads(path.read_text())
    change(content["data"])
    path.write_text(json.dumps(content))
    return tmp_path / "run/step0"


def spoil_epsilon(data: dict[str, Any]) -> None:
    data["Tensor.__add__.0.forward"]["input_args"][1]["value"] = 1e-2


def spoil_type(data: dict[str, Any]) -> None:
    data["Tensor.__add__.0.forward"]["output"][0]["dtype"] = "torch.bfloat16"


def lose_loss(data: dict[str, Any]) -> None:
    loss = data["Functional.cross_entropy.0.forward"]["output"][0]
    loss |= {"Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}


def lose_weight(data: dict[str, Any]) -> None:
    weight = data["Module.norm.Norm.forward.0"]["parameters"]["weight"]
    weight |= {"Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}


@pytest.mark.parametrize("change", [spoil_epsilon, spoil_type, lose_loss, lose_weight])
def test_what_one_rank_alone_has_otherwise_is_named(
    runs: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    place = edited(runs, "tp2", tmp_path, change)
    done = subprocess.run(
        [PLUMB, "compare", place, golden_of(runs, "tp2"), "--unshard", "-o", tmp_path / "out",
         "--fail-on", "broken,unmatched,suspicious"], text=True, capture_output=True, timeout=60,
        check=False)
    assert done.returncode == 1, done.stdout


def test_a_call_that_one_rank_lacks_is_not_judged(runs: Path, tmp_path: Path) -> None:
    place = edited(runs, "tp2", tmp_path, lambda data: data.pop("Functional.linear.5.forward"))
    done = subprocess.run(
        [PLUMB, "compare", place, golden_of(runs, "tp2"), "--unshard", "-o", tmp_path / "out"],
        text=True, capture_output=True, timeout=60, check=False)
    assert not done.stdout.startswith("no wrong call")
    assert "calls that only some of their ranks made: Functional.linear." in done.stdout


def test_a_second_time_has_recordings_of_its_own(runs: Path, tmp_path: Path) -> None:
    unsharded(runs, "pp2", tmp_path)
    lines = unsharded(runs, "pp2", tmp_path)
    assert f"{tmp_path}/unsharded_2 " in line_with(lines, "recordings: ")
    assert (tmp_path / "unsharded/golden/dump.json").exists()


@pytest.mark.parametrize("words, told", [
    (["{tp2}", "{tp4}"], "{tp4}: holds 4 ranks (expected the run on one rank, to which those of "
                         "{tp2} are brought together)"),
    (["{tp2}", "{single}", "--rank", "0"], "--unshard: is about all ranks of one step"),
    (["{tp2}/..", "{single}"], "{tp2}/..: holds steps (expected one of them"),
    (["{tp2}", "{single}/nothing"], "{single}/nothing: "),
])
def test_what_cannot_be_brought_together_is_told(runs: Path, tmp_path: Path, words: list[str],
                                                told: str) -> None:
    places = {name: f"{runs}/{name}/step0" for name in ("tp2", "tp4", "single")}
    done = subprocess.run([PLUMB, "compare", "--unshard", "-o", tmp_path / "out",
                           *(word.format(**places) for word in words)], text=True,
                          capture_output=True, timeout=60, check=False)
    assert done.returncode in (2, 3) and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("plumb compare: " + told.format(**places)), line


def test_a_layout_is_of_what_is_brought_together(runs: Path, tmp_path: Path) -> None:
    single = golden_of(runs, "tp2")
    done = subprocess.run([PLUMB, "compare", single, single, "--layout", "tp=2", "-o", tmp_path],
                          text=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "plumb compare: --layout: belongs to --unshard\n"


ELEMENTS = {"tp2": 58, "cp2": 233, "dp2": 50, "pp2": 50, "tp2_pp2": 58, "fsdp2": 50, "pp2_ep2": 50}


@pytest.mark.parametrize("name", ELEMENTS)
def test_recorded_tensors_are_compared_element_by_element(runs: Path, tmp_path: Path,
                                                          name: str) -> None:
    lines = unsharded(runs, f"{name}-tensor", tmp_path)
    assert re.search("no wrong call$|^not judged completely: ", lines[0]), lines
    told = line_with(lines, "tensors: ")
    in_order, by_size = re.match(r"tensors: (\d+) values.*?; (\d+) in order of size", told).groups()
    assert int(in_order) > 900 and int(by_size) == ELEMENTS[name], told
    assert ("zig-zag over 2 ranks" in told) == (name == "cp2")
    # What needs no sum of a recorded reduction is judged.
    assert not any("such as a summand" in line for line in lines)
    assert not list((tmp_path / "unsharded").glob("*/dump_tensor_data"))  # nothing is copied


@pytest.mark.parametrize("name", ["tp2", "cp2"])
def test_elements_that_two_ranks_exchanged_are_seen(runs: Path, tmp_path: Path, name: str) -> None:
    lines = unsharded(runs, f"{name}-exchanged-tensor", tmp_path / "tensor")
    inside = "inside: Module.layers.2.mlp.gate_proj.Linear.forward.0 "
    assert lines[0].startswith("first wrong call: ")
    assert line_with(lines, "inside: ").startswith(inside)
    assert line_with(lines, "cause: ").startswith("cause: permuted (high confidence)")
    assert line_with(lines, "inputs already differ: input.0 (the result of Functional.linear.")
    # By statistics it is a later call, which mixes what the ranks have.
    lines = unsharded(runs, f"{name}-exchanged", tmp_path / "statistics")
    assert not line_with(lines, "inside: ").startswith(inside)


def test_ranks_in_another_order_prove_none(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tp2-tensor", tmp_path / "tp2-tensor")
    step = tmp_path / "tp2-tensor/step0"
    (step / "rank0").rename(step / "other")
    (step / "rank1").rename(step / "rank0")
    (step / "other").rename(step / "rank1")
    done = subprocess.run(
        [PLUMB, "compare", step, golden_of(runs, "tp2-tensor"), "--unshard", "-o",
         tmp_path / "out"], text=True, capture_output=True, timeout=60, check=False)
    assert done.stdout.startswith("no wrong call")
    by_size = re.search(r"; (\d+) in order of size, as nothing shows", done.stdout)
    assert by_size is not None and int(by_size.group(1)) > 500
    assert "certainty: medium: every element was compared; " in done.stdout
    assert "elements that changed places are not seen there" in done.stdout


def test_a_rank_without_its_tensors_is_compared_by_statistics(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tp2-tensor", tmp_path / "run")
    shutil.rmtree(tmp_path / "run/step0/rank1/dump_tensor_data")
    done = subprocess.run(
        [PLUMB, "compare", tmp_path / "run/step0", golden_of(runs, "tp2-tensor"), "--unshard", "-o",
         tmp_path / "out"], text=True, capture_output=True, timeout=60, check=False)
    assert "(statistics mode)" in done.stdout and "tensors: " not in done.stdout


def test_a_damaged_tensor_is_no_claim(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "tp2-tensor", tmp_path / "run")
    name = "Module.layers.2.mlp.gate_proj.Linear.forward.0.output.0.pt"
    path = tmp_path / "run/step0/rank1/dump_tensor_data" / name
    path.unlink()  # the same contents may have other names
    path.write_bytes(b"nothing")
    done = subprocess.run(
        [PLUMB, "compare", tmp_path / "run/step0", golden_of(runs, "tp2-tensor"), "--unshard", "-o",
         tmp_path / "out"], text=True, capture_output=True, timeout=60, check=False)
    assert done.stdout.startswith("not judged completely: "), done.stdout
