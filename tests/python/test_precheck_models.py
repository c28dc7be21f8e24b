"""The pre-check of whole models on the test device: clean, and with operators that are wrong."""

from __future__ import annotations

import csv
import functools
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from device_server import device_environment
from recording import PLUMB, config, run_script
from warm_interpreter import warm_python

MODELS = ["llama", "mixtral", "resnet", "lstm"]
DTYPES = ["float32", "bfloat16", "float16"]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step of every model in every type: <model>/<dtype>/out/step0/rank/dump.json."""
    pytest.importorskip("transformers")
    directory = tmp_path_factory.mktemp("precheck_models")
    words = []
    for model in MODELS:
        for dtype in DTYPES:
            place = directory / model / dtype
            place.mkdir(parents=True)
            words += [model, dtype, str(config(place, level="mix"))]
    script = Path(__file__).with_name("precheck_models.py")
    run_script(script, "plumbline.pytorch", *words)
    return directory


def check(dump: Path, out: Path, *options: str, **environment: str) -> dict[str, tuple[str, str]]:
    """Call -> statuses of its forward and backward, on the test device."""
    settings = device_environment(**environment)
    settings["PLUMBLINE_PYTHON"] = warm_python(path=settings["PYTHONPATH"])
    done = subprocess.run(
        [PLUMB, "precheck", str(dump), "-o", str(out), "--device_type", "testdev", *options],
        capture_output=True, text=True, timeout=600, check=False, env=settings)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (path,) = out.glob("accuracy_checking_result_*.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row[0]: (row[1], row[2]) for row in list(csv.reader(file))[1:]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("model", MODELS)
def test_a_clean_device_has_no_error(recordings: Path, tmp_path: Path, model: str,
                                     dtype: str) -> None:
    found = check(recordings / model / dtype / "out" / "step0", tmp_path)
    wrong = {name: row for name, row in found.items() if "error" in row}
    assert not wrong
    counts = Counter(word for row in found.values() for word in row)
    assert counts["pass"] > counts["SKIP"], counts


# Operator, kind, value, and the calls that must be named: their API and direction. Those of one
# line are switched on in one run: each call is run by itself, so that none of them can be the cause
# of what is found in the rows of another one.
DEFECTS = {
    ("llama", "float16"): [
        [("mm", "scale", 1.02, "linear", 0), ("bmm", "scale", 0.9, "matmul", 0),
         ("_softmax", "scale", 1.05, "softmax", 0)],
    ],
    ("llama", "bfloat16"): [
        [("mm", "nan", None, "linear", 0), ("bmm", "nan", None, "matmul", 0),
         ("_softmax", "nan", None, "softmax", 0), ("silu", "nan", None, "silu", 0),
         ("silu_backward", "nan", None, "silu", 1), ("index_select", "nan", None, "embedding", 0),
         ("rsqrt", "nan", None, "rsqrt", 0), ("mean", "lost_carry", None, "mean", 0),
         ("cat", "nan", None, "cat", 0)],
        [("mm", "lost_carry", None, "linear", 0),
         ("_softmax_backward_data", "nan", None, "softmax", 1)],
    ],
    ("llama", "float32"): [
        [("silu", "scale", 1.05, "silu", 0), ("silu_backward", "scale", 0.8, "silu", 1),
         ("index_select", "scale", 1.1, "embedding", 0),
         ("embedding_dense_backward", "scale", 1.1, "embedding", 1),
         ("pow", "scale", 1.1, "pow", 0), ("rsqrt", "scale", 1.1, "rsqrt", 0),
         ("mean", "scale", 1.5, "mean", 0), ("cos", "scale", 1.1, "cos", 0),
         ("sin", "scale", 1.1, "sin", 0), ("mul", "scale", 1.1, "__mul__", 0)],
    ],
    ("resnet", "float32"): [
        [("convolution", "scale", 1.05, "conv2d", 0),
         ("convolution_backward", "scale", 1.2, "conv2d", 1),
         ("native_batch_norm", "scale", 1.1, "batch_norm", 0)],
        [("convolution", "nan", None, "conv2d", 0),
         ("native_batch_norm_backward", "scale", 1.2, "batch_norm", 1)],
        [("convolution", "lost_carry", None, "conv2d", 0)],
    ],
}
Run = tuple[str, str, int]  # model, type, line of DEFECTS
CASES = [((*key, line), defect) for key, lines in DEFECTS.items()
         for line, defects in enumerate(lines) for defect in defects]


@pytest.fixture(scope="module")
def found(recordings: Path,
          tmp_path_factory: pytest.TempPathFactory) -> Callable[[Run], dict[str, tuple[str, str]]]:
    """The statuses of a run with the defects of a line."""
    @functools.cache
    def rows(run: Run) -> dict[str, tuple[str, str]]:
        model, dtype, line = run
        entries = [{"op": operator, "kind": kind, **({} if value is None else {"value": value})}
                   for operator, kind, value, *_ in DEFECTS[model, dtype][line]]
        return check(recordings / model / dtype / "out" / "step0",
                     tmp_path_factory.mktemp("defects"),
                     PLUMBLINE_TEST_DEVICE_DEFECTS=json.dumps(entries))
    return rows


@pytest.mark.parametrize(("run", "defect"), CASES,
                         ids=[f"{run[0]}-{one[0]}-{one[1]}" for run, one in CASES])
def test_a_wrong_operator_is_named(found: Callable[[Run], dict[str, tuple[str, str]]], run: Run,
                                   defect: tuple[str, str, float | None, str, int]) -> None:
    api, direction = defect[3:]
    rows = [row[direction] for name, row in found(run).items() if name.split(".")[-2] == api]
    assert rows, f"{run[0]} has no {api}"
    assert "error" in rows, (rows, defect)


def test_a_crash_or_hang_of_one_operator_costs_its_rows(recordings: Path, tmp_path: Path) -> None:
    dump = recordings / "llama" / "float32" / "out" / "step0"
    defects = json.dumps([{"op": "rsqrt", "kind": "abort"}, {"op": "cos", "kind": "hang"}])
    found = check(dump, tmp_path, "--api_timeout", "10", PLUMBLINE_TEST_DEVICE_DEFECTS=defects)
    for name, row in found.items():
        assert (row[0] == "SKIP") == (name.split(".")[-2] in ("rsqrt", "cos")), (name, row)
    (path,) = tmp_path.glob("accuracy_checking_result_*.csv")
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        assert (".rsqrt." in line) == ("crashed" in line), line
        assert (".cos." in line) == ("timeout" in line), line
