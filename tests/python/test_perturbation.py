"""The perturbation check: what is changed, what is found, and that training stays as it was."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording import PLUMB, run_script

torch = pytest.importorskip("torch")

from plumbline import _core  # noqa: E402
from plumbline.pytorch.adapter import TorchAdapter  # noqa: E402

HERE = Path(__file__).resolve().parent


def results_of(script: str, directory: Path, *words: str) -> list[Any]:
    done = run_script(HERE / script, directory, *words)
    return [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT ")]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    [results] = results_of("perturbation_scenarios.py", tmp_path_factory.mktemp("scenarios"))
    return results


CASES = [
    {"pert_mode": ["add_noise", "bit_noise", "change_value", "no_change"]},
    {"pert_mode": ["add_noise", "no_change"], "noise": "ulp", "autocast": True},
    {"pert_mode": "improve_precision", "dtype": "bfloat16"},
    {"pert_mode": "improve_precision", "autocast": True},
    {"pert_mode": "to_cpu", "fuzz_device": "cpu", "dtype": "bfloat16"},
    {"pert_mode": "improve_precision", "dtype": "bfloat16", "if_preheat": True, "preheat_step": 4},
    {"pert_mode": ["add_noise", "bit_noise", "change_value", "no_change"],
     "fuzz_stage": "backward"},
    {"pert_mode": "improve_precision", "fuzz_stage": "backward", "dtype": "bfloat16"},
    {"pert_mode": "to_cpu", "fuzz_device": "cpu", "fuzz_stage": "backward", "autocast": True},
]


def test_training_is_the_same_bits_with_every_mode_and_stage(tmp_path: Path) -> None:
    words = [json.dumps(case) for case in CASES]
    results = results_of("perturbed_training.py", tmp_path, *words)
    for case, result in zip(CASES, results, strict=True):
        assert result["different"] == [] and result["patched"] == [], case
        assert result["calls"] > 150, case
        # A network of right operators: nothing stands out.
        assert result["unexplained"] == [], case


def checker(tmp_path: Path, **section: Any) -> Any:
    config_path = tmp_path / "config.json"
    config_path.write_text(json.dumps({"task": "free_benchmark", "dump_path": str(tmp_path / "out"),
                                       "free_benchmark": section}))
    config = _core.load_config(str(config_path), None, None, None, None)
    parts = {"name": "pytorch", **TorchAdapter().framework_parts()}
    return _core.PerturbationCheck(_core.new_recorder(config, parts), config, "pytorch")


DTYPES = ("float16", "bfloat16", "float32", "float64")
NOISE = {"bfloat16": 1e-4, "float16": 1e-6, "float32": 1e-8, "float64": 1e-16}
SHAPES = [(), (0,), (1, 1), (7,), (3, 4, 5)]


def values_of(dtype: str, shape: tuple[int, ...]) -> Any:
    """Every class of values, spread over the shape."""
    info = torch.finfo(getattr(torch, dtype))
    kinds = [1.5, -0.02, 0.003, 2e-4, -0.2, info.tiny / 4, 0.0, -0.0, float("inf"), float("-inf"),
             float("nan"), info.tiny, -info.tiny * 1.5, info.max, 0.03, 0.9, -5e-9, 0.25]
    count = int(np.prod(shape))
    return torch.tensor([kinds[i % len(kinds)] for i in range(count)],
                        dtype=torch.float64).to(getattr(torch, dtype)).reshape(shape)


def bits(tensor: Any) -> Any:
    kind = {2: np.uint16, 4: np.uint32, 8: np.uint64}[tensor.element_size()]
    view = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(view).numpy().view(kind)


def rounded(values: Any, dtype: str) -> Any:
    """NumPy's float64 rounded to a type, as float64."""
    if dtype == "bfloat16":
        single = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        kept = (single + 0x7FFF + ((single >> 16) & 1)) & 0xFFFF0000
        return kept.astype(np.uint32).view(np.float32).astype(np.float64)
    return np.asarray(values).astype(dtype).astype(np.float64)


def model(mode: str, dtype: str, tensor: Any) -> Any:
    """What the mode makes of the values, in NumPy; bits."""
    before = bits(tensor).reshape(tuple(tensor.shape))
    if mode == "bit_noise":
        values = np.abs(tensor.double().numpy())
        changes = np.isfinite(values) & (values > torch.finfo(tensor.dtype).tiny)
        return np.where(changes, before ^ before.dtype.type(1), before)
    if mode == "add_noise":
        values = tensor.double().numpy()
        e, limit = rounded(NOISE[dtype], dtype), rounded(NOISE[dtype] ** 0.5, dtype)
        with np.errstate(all="ignore"):
            exact = values + e
        total = torch.from_numpy(np.asarray(rounded(exact, dtype))).to(tensor.dtype)
        return np.where(np.abs(values) > limit, bits(total).reshape(before.shape), before)
    after = before.copy()
    if after.ndim == 1:
        after[[0, -1]] = after[[-1, 0]]
    else:
        after[0, 0], after[-1, -1] = before[-1, -1], before[0, 0]
    return after


def sources(dtype: str) -> list[Any]:
    plain = [values_of(dtype, shape) for shape in SHAPES]
    return [*plain, plain[-1].transpose(0, 2), plain[-1][:, 1:3], plain[-1].expand(2, 3, 4, 5)]


@pytest.mark.parametrize("mode", ["add_noise", "bit_noise", "change_value"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_noise_is_that_of_a_numpy_model(tmp_path: Path, dtype: str, mode: str) -> None:
    check = checker(tmp_path)
    for source in sources(dtype):
        target = torch.empty_like(source)
        kept = bits(source).copy()
        obstacle = check.perturb(mode, source, target, 1)
        assert np.array_equal(bits(source), kept), "the source is only read"
        shape = tuple(source.shape)
        is_small = len(shape) == 0 or shape == (1, 1)
        if (mode == "change_value" and is_small) or 0 in shape:
            assert obstacle, shape
            continue
        expected = model(mode, dtype, source)
        assert bool(obstacle) == np.array_equal(expected.ravel(), kept.ravel()), shape
        if not obstacle:
            is_nan = np.isnan(source.double().numpy()) & (mode != "change_value")
            assert np.all((bits(target).reshape(expected.shape) == expected) | is_nan), shape


def test_what_has_no_noise_says_why(tmp_path: Path) -> None:
    check = checker(tmp_path)
    for source in (torch.ones(3, dtype=torch.int32), torch.ones(3, dtype=torch.bool),
                   torch.ones(3, dtype=torch.complex64), torch.ones(3).to(torch.float8_e5m2)):
        for mode in ("add_noise", "bit_noise", "change_value"):
            assert check.perturb(mode, source, torch.empty_like(source), 1)
    same = torch.ones(4)
    assert "the same" in check.perturb("change_value", same, same.clone(), 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_add_noise_changes_lie_in_the_documented_window(tmp_path: Path,
                                                                   dtype: str) -> None:
    low, high = {"bfloat16": (1e-2, 0.03125), "float16": (1e-3, 0.00391), "float32": (1e-4, 0.25),
                 "float64": (1e-8, 1.0)}[dtype]
    source = torch.logspace(-9, 1, 4000, dtype=torch.float64).to(getattr(torch, dtype))
    target = torch.empty_like(source)
    assert checker(tmp_path).perturb("add_noise", source, target, 1) == ""
    changed = source[bits(source) != bits(target)].double()
    assert low * 0.99 < changed.min() < low * 1.02 and high * 0.97 < changed.max() <= high


@pytest.mark.parametrize("dtype", DTYPES)
def test_noise_by_units_moves_every_value_to_a_neighbour(tmp_path: Path, dtype: str) -> None:
    source = torch.linspace(-3, 4, 1000, dtype=torch.float64).to(getattr(torch, dtype))
    check = checker(tmp_path, pert_mode="add_noise", noise="ulp")
    targets = [torch.empty_like(source) for _ in range(3)]
    for target, seed in zip(targets, (1, 1, 2), strict=True):
        assert check.perturb("add_noise", source, target, seed) == ""
    steps = bits(targets[0]).astype(np.int64) - bits(source).astype(np.int64)
    nonzero = source.numpy(force=True) != 0 if dtype != "bfloat16" else source.float().numpy() != 0
    assert set(steps[nonzero]) == {-1, 1} and not steps[~nonzero].any()
    assert 0.4 < (steps > 0).mean() < 0.6
    assert torch.equal(targets[0], targets[1]) and not torch.equal(targets[0], targets[2])


def test_verdicts(found: dict[str, Any]) -> None:
    flat = "torch.Size([2, 3])"
    assert found["verdicts"] == {
        "below": [], "above": [["0.00209999", "torch.float16", "torch.Size([4])", ""]],
        "bfloat16": [],
        "flipped": [["symbol_flipping", "torch.float32", flat, ""]], "tiny": [],
        "first of many": [["1", "torch.float32", "torch.Size([16777216])", ""]],
        "nan": [["nan_mismatch", "torch.float32", flat, ""]],
        "inf": [["inf_mismatch", "torch.float32", flat, ""]],
        "nan allowed": [], "same nan": [], "same inf": [],
        "int in tuple": [["", "", "", "1"]], "float in tuple": [["-0.333333", "", "", "1"]],
        "shape": [["shape_mismatch", "torch.float32", flat, ""]],
        "length": [["shape_mismatch", "", "", ""]],
        "no change": [["1.19209e-07", "torch.float32", flat, ""]],
        "strided": [["1", "torch.float32", flat, ""]],
        "complex": [["19999", "torch.complex64", "torch.Size([2])", "1"]],
    }


def test_verdicts_beside_the_cpu(found: dict[str, Any]) -> None:
    half = ["torch.float16", "torch.Size([64])", ""]
    assert found["cpu_verdicts"] == {
        "within": [], "beyond": [["0.000600341", *half]], "within in list": [],
        "beyond in list": [["0.000600341", "", "", ""]], "balance": [["0.00029996", *half]],
        "negative balance": [["0.00030008", *half]], "golden nan": [["nan_mismatch", *half]],
        "infinite": [["inf_mismatch", *half]], "as upstream": [], "kept": float("inf")}


def test_rows_of_an_ill_conditioned_pair(found: dict[str, Any]) -> None:
    result = found["ill_conditioned"]
    assert result["lines"][0] == ("rank,pert_mode,stage,step,api_name,max_rel,dtype,shape,"
                                  "output_index,expected\r\n")
    assert len(result["lines"]) == 3 and all(line.endswith("\r\n") for line in result["lines"])
    product, softmax = result["rows"]
    assert product["api_name"] == "Torch.matmul.0.forward" and product["rank"] == "0"
    assert product["max_rel"] == "symbol_flipping"
    assert 0.2 < float(softmax["max_rel"]) < 0.4
    # What the condition of the operator makes of one bit is as much.
    assert 0.5 < float(softmax["expected"]) / float(softmax["max_rel"]) < 2
    assert [row["unexplained"] for row in result["summary"]] == ["0", "0"]


def test_what_the_condition_does_not_explain_comes_first(found: dict[str, Any]) -> None:
    first, second, *others = found["wrong_operator"]["summary"]
    assert (first["api"], first["pert_mode"]) == ("Functional.softsign", "improve_precision")
    assert first["unexplained"] == "1" and float(first["excess"]) > 1
    assert second["inconsistent"] == "1" and second["unexplained"] == "0"
    assert float(second["excess"]) < 1
    assert {row["api"] for row in (second, *others)} == {"Functional.softsign", "Torch.matmul"}


def test_nothing_runs_twice_when_nothing_is_changed(found: dict[str, Any]) -> None:
    result = found["nothing_to_improve"]
    assert result["calls"] == 1
    assert [(row["calls"], row["skipped"], row["reason"]) for row in result["summary"]] == [
        ("0", "1", "no input is in low precision")]


def test_in_place_calls_are_compared_and_change_nothing_twice(found: dict[str, Any]) -> None:
    result = found["in_place"]
    assert result["same"] and result["no_change"] == []
    compared = {(row["api"], row["pert_mode"]): row["calls"] for row in result["summary"]}
    for api in ("Tensor.mul_", "Tensor.add_", "Tensor.__setitem__", "Tensor.__iadd__", "Torch.add",
                "Functional.relu", "Functional.dropout"):
        assert int(compared[api, "no_change"]) >= 1, api


def test_functions_and_classes_of_the_user_run_once(found: dict[str, Any]) -> None:
    assert found["user_functions"]["calls"] == 2  # both pairs of one call
    assert found["user_functions"]["reasons"] == {
        "Functional.triplet_margin_with_distance_loss":
            "it is given a function, which may do anything when it runs twice",
        "Torch.softmax": "an input is of class Own"}


def test_list_and_scope_choose_calls(found: dict[str, Any]) -> None:
    assert found["selected"] == [[["Torch.softmax", "2"]], [["Torch.softmax", "1"]],
                                 [["Torch.softmax", "2"]], [["Torch.sigmoid", "1"]]]


def test_fix_gives_the_precise_result_to_the_training(found: dict[str, Any]) -> None:
    result = found["fix"]
    right, bare, fixed = (result[key]["loss"] for key in ("right", "bare", "fixed"))
    assert abs(fixed - right) < 1e-3 * right < abs(bare - right)
    [row] = result["fixes"]
    assert row["api_name"] == "Functional.softsign.0.forward" and row["changed_ratio"] == "1"
    assert float(row["max_abs"]) > 0.1
    assert result["rows"] == []
    assert [(row["calls"], row["skipped"]) for row in result["summary"]] == [("1", "1")]


def test_fix_goes_member_by_member_or_not_at_all(found: dict[str, Any]) -> None:
    result = found["fix_structures"]
    assert result["tuple"] == {"same object": True, "reasons": "", "value": [3.0, 3.0]}
    assert result["keys"]["same object"] and result["keys"]["value"] == [1.0, 1.0]
    assert "other keys" in result["keys"]["reasons"]


def test_backward_compares_the_gradients_of_one_call(found: dict[str, Any]) -> None:
    result = found["backward"]
    assert result["fine"] == []
    compared = {row["api"]: row["calls"] for row in result["summary"]}
    assert compared["Tensor.__mul__"] == "1" and compared["Torch.sigmoid"] == "1"
    [row] = result["product"]
    assert (row["stage"], row["api_name"]) == ("backward", "Torch.cumprod.0.backward")
    assert row["output_index"] == "0"


def test_preheat_halves_what_agrees_with_the_cpu(found: dict[str, Any]) -> None:
    assert found["preheat"]["thresholds"] == {
        "Torch.softmax": {"torch.float16": {"threshold": 1.13125, "frozen": False, "samples": 3}}}
    assert found["preheat"]["rows"] == [] and found["preheat"]["again"][0]["calls"] == "3"


def test_a_second_run_that_raises_is_counted(found: dict[str, Any]) -> None:
    result = found["second_run_fails"]
    assert result["result"] == [1.0, 1.0] and result["rows"] == []
    assert result["summary"][0]["reason"] == "the second run failed: RuntimeError: only once"


def error_of(section: dict[str, Any], **top: Any) -> str:
    text = json.dumps({"task": "free_benchmark", "dump_path": "/tmp/out", **top,
                       "free_benchmark": section})
    path = Path(error_of.directory) / "config.json"  # type: ignore[attr-defined]
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        _core.load_config(str(path), None, None, None, None)
    return str(caught.value).split("config.json: ", 1)[1]


def test_every_wrong_setting_is_told_at_once(tmp_path: Path) -> None:
    error_of.directory = tmp_path  # type: ignore[attr-defined]
    text = error_of({"fuzz_device": "tpu", "pert_mode": "noise", "handler_type": "mend",
                     "fuzz_level": "L2", "fuzz_stage": "sideways", "if_preheat": "true",
                     "preheat_step": 0, "max_sample": 1.5, "scope": ["a"], "list": ["b"],
                     "noise": "much", "threshold_file": "/nowhere.json"}, level="L0")
    for field in ("fuzz_device", "pert_mode", "handler_type", "fuzz_level", "fuzz_stage",
                  "if_preheat", "preheat_step", "max_sample", "scope", "noise", "threshold_file"):
        assert f"free_benchmark.{field}: is" in text, field
    assert "level: is \"L0\" (expected L1" in text and "\n" not in text


@pytest.mark.parametrize(("section", "field"), [
    ({"pert_mode": "to_cpu"}, "fuzz_device"), ({"fuzz_device": "cpu"}, "fuzz_device"),
    ({"fuzz_device": "cpu", "pert_mode": ["to_cpu", "add_noise"]}, "fuzz_device"),
    ({"handler_type": "fix", "if_preheat": True}, "if_preheat"),
    ({"handler_type": "fix", "fuzz_stage": "backward"}, "fuzz_stage"),
    ({"handler_type": "fix", "pert_mode": "add_noise"}, "pert_mode"),
    ({"pert_mode": []}, "pert_mode"), ({"pert_mode": ["add_noise", 3]}, "pert_mode"),
])
def test_settings_that_do_not_go_together(tmp_path: Path, section: dict[str, Any],
                                          field: str) -> None:
    error_of.directory = tmp_path  # type: ignore[attr-defined]
    assert error_of(section).startswith(f"free_benchmark.{field}: ")


def merge(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, "free_benchmark", "merge", *map(str, words)], text=True,
                          capture_output=True, check=False)


HEADER = "rank,pert_mode,stage,step,api_name,max_rel,dtype,shape,output_index"


def write_rows(path: Path, *rows: str, header: str = HEADER) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\r\n" for row in (header, *rows)), newline="")


def test_ranks_are_merged_in_the_order_of_calls(tmp_path: Path) -> None:
    softmax = 'add_noise,forward,{},Torch.softmax.0.forward,0.5,torch.float16,"torch.Size([2, 3])",'
    matmul = 'add_noise,forward,{},Torch.matmul.0.forward,symbol_flipping,torch.float16,(2),1'
    write_rows(tmp_path / "step10/rank0/free_benchmark.csv", "0," + softmax.format(10))
    write_rows(tmp_path / "step2/rank1/free_benchmark.csv", "1," + matmul.format(2),
               "1," + softmax.format(2))
    write_rows(tmp_path / "step2/rank10/free_benchmark.csv", "10," + softmax.format(2), "10,add_no")
    write_rows(tmp_path / "step2/rank10/free_benchmark_77.csv", "10," + matmul.format(2))
    done = merge(tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first == ("first: step 2, Torch.matmul.0.forward (add_noise): max_rel symbol_flipping "
                     "on 2 of 3 ranks")
    text = (tmp_path / "out/free_benchmark_merged.csv").read_text().splitlines()
    rows = list(csv.DictReader(text))
    assert [(row["step"], row["api_name"].split(".")[1], row["rank"], row["ranks_reported"])
            for row in rows] == [("2", "matmul", "1", "2"), ("2", "matmul", "10", "2"),
                                 ("2", "softmax", "1", "2"), ("2", "softmax", "10", "2"),
                                 ("10", "softmax", "0", "1")]
    assert "a row without step or name is left out" in done.stderr


def test_the_file_of_upstream_for_mindspore_is_read(tmp_path: Path) -> None:
    header = HEADER.replace("pert_mode", "pert_type")
    row = "{},add_noise,forward,0,Mint.add.0,7.0,Float32,\"(2, 3)\","
    write_rows(tmp_path / "free_benchmark.csv", row.format(1), header, row.format(0), header=header)
    done = merge(tmp_path)
    assert done.stdout.startswith("first: step 0, Mint.add.0 (add_noise): max_rel 7.0 on 2 of 2")


def test_merging_says_what_is_missing(tmp_path: Path, found: dict[str, Any]) -> None:
    assert merge(tmp_path / "none").returncode == 3
    assert merge(tmp_path).returncode == 3
    write_rows(tmp_path / "step0/rank0/free_benchmark.csv", header="a,b")
    done = merge(tmp_path)
    assert done.returncode == 5 and "no column rank" in done.stderr
    # The directory of a real run, in which one operator is wrong.
    done = merge(Path(found["wrong_operator"]["root"]) / "out")
    assert done.stdout.startswith("Functional.softsign (improve_precision): 1 call on 1 of 1 rank "
                                  "moved more than its condition explains")
