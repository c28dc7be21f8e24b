"""The pre-check of whole models on the test device: clean, and with operators that are wrong."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from device_server import device_environment
from recording import PLUMB, config

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
    done = subprocess.run([sys.executable, "-W", "ignore", script, "plumbline.pytorch", *words],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return directory


def check(dump: Path, out: Path, *options: str, **environment: str) -> dict[str, tuple[str, str]]:
    """Call -> statuses of its forward and backward, on the test device."""
    done = subprocess.run(
        [PLUMB, "precheck", str(dump), "-o", str(out), "--device_type", "testdev", *options],
        capture_output=True, text=True, timeout=600, check=False,
        env=device_environment(**environment))
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


# Operator, kind, value, and the calls that must be named: their API and direction.
DEFECTS = [
    ("mm", "scale", 1.02, "linear", 0), ("mm", "nan", None, "linear", 0),
    ("mm", "lost_carry", None, "linear", 0), ("bmm", "scale", 0.9, "matmul", 0),
    ("bmm", "nan", None, "matmul", 0), ("_softmax", "scale", 1.05, "softmax", 0),
    ("_softmax", "nan", None, "softmax", 0),
    ("silu_backward", "nan", None, "silu", 1),
    ("_softmax_backward_data", "nan", None, "softmax", 1), ("silu", "scale", 1.05, "silu", 0),
    ("silu", "nan", None, "silu", 0), ("silu_backward", "scale", 0.8, "silu", 1),
    ("index_select", "scale", 1.1, "embedding", 0), ("index_select", "nan", None, "embedding", 0),
    ("embedding_dense_backward", "scale", 1.1, "embedding", 1), ("pow", "scale", 1.1, "pow", 0),
    ("rsqrt", "scale", 1.1, "rsqrt", 0), ("rsqrt", "nan", None, "rsqrt", 0),
    ("mean", "scale", 1.5, "mean", 0), ("mean", "lost_carry", None, "mean", 0),
    ("cos", "scale", 1.1, "cos", 0), ("sin", "scale", 1.1, "sin", 0),
    ("cat", "nan", None, "cat", 0),
    ("mul", "scale", 1.1, "__mul__", 0),
]
CONVOLUTION_DEFECTS = [
    ("convolution", "scale", 1.05, "conv2d", 0), ("convolution", "nan", None, "conv2d", 0),
    ("convolution", "lost_carry", None, "conv2d", 0),
    ("convolution_backward", "scale", 1.2, "conv2d", 1),
    ("native_batch_norm", "scale", 1.1, "batch_norm", 0),
    ("native_batch_norm_backward", "scale", 1.2, "batch_norm", 1),
]


def named(recordings: Path, out: Path, model: str, dtype: str, defect: tuple) -> None:
    operator, kind, value, api, direction = defect
    entry = {"op": operator, "kind": kind, **({} if value is None else {"value": value})}
    found = check(recordings / model / dtype / "out" / "step0", out,
                  PLUMBLINE_TEST_DEVICE_DEFECTS=json.dumps([entry]))
    rows = [row[direction] for name, row in found.items() if name.split(".")[-2] == api]
    assert rows, f"{model} has no {api}"
    assert "error" in rows, (rows, entry)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda one: f"{one[0]}-{one[1]}")
def test_a_wrong_operator_of_llama_is_named(recordings: Path, tmp_path: Path,
                                            defect: tuple) -> None:
    # What is wrong by a factor is judged in each type in its turn, the rest in bfloat16.
    dtype = "float16" if defect[0] in ("mm", "bmm", "_softmax") else "float32"
    named(recordings, tmp_path, "llama", dtype if defect[1] == "scale" else "bfloat16", defect)


@pytest.mark.parametrize("defect", CONVOLUTION_DEFECTS, ids=lambda one: f"{one[0]}-{one[1]}")
def test_a_wrong_operator_of_a_residual_network_is_named(recordings: Path, tmp_path: Path,
                                                         defect: tuple) -> None:
    named(recordings, tmp_path, "resnet", "float32", defect)


@pytest.mark.parametrize(("kind", "cause"), [("abort", "crashed"), ("hang", "timeout")])
def test_a_crash_or_hang_of_one_operator_costs_its_rows(recordings: Path, tmp_path: Path,
                                                        kind: str, cause: str) -> None:
    dump = recordings / "llama" / "float32" / "out" / "step0"
    defect = json.dumps([{"op": "rsqrt", "kind": kind}])
    found = check(dump, tmp_path, "--api_timeout", "3", PLUMBLINE_TEST_DEVICE_DEFECTS=defect)
    for name, row in found.items():
        assert (row[0] == "SKIP") == (".rsqrt." in name), (name, row)
    (path,) = tmp_path.glob("accuracy_checking_result_*.csv")
    assert cause in path.read_text(encoding="utf-8-sig")
