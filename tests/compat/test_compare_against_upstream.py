"""plumb compare against the comparison of upstream 1.2.2 on the same dumps, cell by cell.

Needs the Python of an environment with mindstudio-probe 1.2.2 and torch: the one that
`tools/bootstrap.sh upstream` makes, or PLUMBLINE_UPSTREAM_1_2_2; skipped where there is
none. PLUMB names the program (default: the one beside this Python, then the one on PATH).
"""

import glob
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import run

openpyxl = pytest.importorskip("openpyxl")

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def first_existing(*paths):
    return next((path for path in paths if path and os.path.exists(path)), None)


UPSTREAM = first_existing(os.environ.get("PLUMBLINE_UPSTREAM_1_2_2"),
                          os.path.join(ROOT, "build/upstream/1.2.2/bin/python"))
PLUMB = first_existing(os.environ.get("PLUMB"),
                       os.path.join(os.path.dirname(sys.executable), "plumb"),
                       shutil.which("plumb"))

pytestmark = [
    pytest.mark.upstream,
    pytest.mark.skipif(not UPSTREAM, reason="no upstream 1.2.2: run tools/bootstrap.sh upstream"),
    pytest.mark.skipif(not PLUMB, reason="plumb is not installed and PLUMB is not set"),
]

MODES = {
    "statistics": ("statistics", "mix", "statistics"),
    "md5": ("statistics", "L1", "md5"),
    "tensor": ("tensor", "mix", "statistics"),
}
# Wording is ours; the codes in brackets are tested elsewhere.
WORDING = {"Err_message"}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """mode -> (target, golden): one step with a wrong epsilon in the second block, and without."""
    root = tmp_path_factory.mktemp("dumps")
    words = []
    for mode, settings in MODES.items():
        for eps in ("1e-2", "1e-6"):
            words += [str(root / mode / eps), *settings, eps]
    run([UPSTREAM, os.path.join(HERE, "record_small_model.py"), *words],
        fresh=True).check_returncode()

    def side(mode, eps):
        (dump,) = glob.glob(str(root / mode / eps / "step0" / "*" / "dump.json"))
        return dump

    return {mode: (side(mode, "1e-2"), side(mode, "1e-6")) for mode in MODES}


def request_file(folder, target, golden):
    path = os.path.join(folder, "compare.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"npu_path": target, "bench_path": golden,
                   "stack_path": target.replace("dump.json", "stack.json"),
                   "is_print_compare_log": False}, file)
    return path


def read_sheet(folder):
    (path,) = glob.glob(os.path.join(folder, "compare_result_*.xlsx"))
    sheet = openpyxl.load_workbook(path).active
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    fills = [row[0].fill.fgColor.rgb[2:] if row[0].fill.fill_type else None
             for row in sheet.iter_rows()]
    return rows[0], rows[1:], fills[1:]


@pytest.fixture(scope="module")
def sheets(dumps, tmp_path_factory):
    """mode -> (upstream's sheet, ours), each as read_sheet gives it."""
    requests, folders = [], {}
    for mode, (target, golden) in dumps.items():
        folder = tmp_path_factory.mktemp(mode)
        words = ["-f", "pytorch", "compare", "-i", request_file(folder, target, golden), "-s", "-o"]
        requests.append({"words": [*words, str(folder / "theirs")], "log": str(folder / "log")})
        subprocess.run([PLUMB, *words, str(folder / "ours")], check=True, capture_output=True)
        folders[mode] = folder
    path = tmp_path_factory.mktemp("requests") / "requests.json"
    path.write_text(json.dumps(requests))
    run([UPSTREAM, os.path.join(HERE, "run_upstream_commands.py"), path]).check_returncode()
    for request in requests:
        with open(request["log"] + ".status", encoding="ascii") as status:
            assert status.read() == "0", request
    return {mode: (read_sheet(folder / "theirs"), read_sheet(folder / "ours"))
            for mode, folder in folders.items()}


def close(a, b):
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    return numbers and abs(a - b) <= 1e-4 * abs(b)


def repaired(mode, column, row, header):
    """True where plumbline differs on purpose (docs/reference/compare.md, "repairs")."""
    cell = dict(zip(header, row, strict=False))
    shape, dtype = cell["NPU Tensor Shape"], cell["NPU Dtype"]
    if mode == "tensor":
        one_element = shape in ("[]", "[1]") and str(dtype).startswith("torch.")
        if column == "Accuracy Reached or Not":
            # Scalars are judged; empty tensors are not; NaN cosine is never "Yes".
            return one_element or shape == "[0]" or cell["Cosine"] == "Nan"
        if shape == "[0]":
            return column in ("Cosine", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio",
                              "Five Thousandths Err Ratio")
        if dtype == "torch.float16":  # zeros: the regulator underflows in half precision
            return column in ("MaxRelativeErr", "One Thousandth Err Ratio",
                              "Five Thousandths Err Ratio")
    return False


@pytest.mark.parametrize("mode", list(MODES))
def test_cells_equal(mode, sheets):
    (header, rows, _), (our_header, our_rows, _) = sheets[mode]
    assert our_header[:len(header)] == header
    assert our_header[len(header):] == ["Verdict", "Reason"]
    assert len(our_rows) == len(rows)
    different = []
    for number, (theirs, ours) in enumerate(zip(rows, our_rows, strict=True), start=2):
        for column, a, b in zip(header, theirs, ours, strict=False):
            if column in WORDING:
                nan = "Nan" in theirs  # coloured and noted here, ignored there
                assert (a is None) == (b is None) or nan or mode == "tensor", (number, a, b)
                continue
            if column == "MaxRelativeErr" and mode == "tensor" and close(a, b):
                continue  # upstream divides in the tensors' own precision, plumbline in double
            if a != b and not repaired(mode, column, theirs, header):
                different.append((number, theirs[0], column, a, b))
    assert not different, different[:20]


@pytest.mark.parametrize("mode", ["statistics", "tensor"])
def test_fills_equal(mode, sheets):
    (_, rows, fills), (_, _, our_fills) = sheets[mode]
    different = []
    for row, theirs, ours in zip(rows, fills, our_fills, strict=True):
        values = [str(value).strip().lower() for value in row]
        if theirs != ours and "nan" not in values:  # NaN rows are red here
            different.append((row[0], theirs, ours))
    assert not different, different[:20]


@pytest.mark.parametrize("mode", list(MODES))
def test_first_wrong_call_is_the_epsilon(mode, dumps, tmp_path):
    out = subprocess.run([PLUMB, "compare", *dumps[mode], "-o", str(tmp_path)], check=True,
                         capture_output=True, text=True).stdout.splitlines()
    # odd_values() uses Torch.add.0 to 3, the blocks 4, 5, 6.
    assert out[0] == "first wrong call: Torch.add.5.forward"
    assert out[1].strip() == "argument differs: input.1 is 0.01 (golden 1e-06)"


@pytest.mark.parametrize("mode", list(MODES))
def test_a_run_against_itself_has_no_wrong_call(mode, dumps, tmp_path):
    golden = dumps[mode][1]
    command = [PLUMB, "compare", golden, golden, "-o", str(tmp_path), "--fail-on", "any"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    answer, *rest = done.stdout.splitlines()
    # The model adds a NaN, which is not judged: nothing tells whether it is right.
    assert answer.startswith("not judged completely: 2 values are NaN on both sides; ")
    assert answer.endswith(" paired calls show no wrong one") and done.returncode == 1
    assert any("0 within noise, 0 suspicious, 0 broken" in line for line in rest)
