"""-c: algorithms and layout converters of the user, in Python files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_dumps import Dump, Tensor
from msaccucmp_cases import ALGORITHMS, PLUMB, expected_values, normal, rows_of, run
from operator_dumps import dump_name, write_dump

FRACTAL_ZZ = 28  # a layout without known places

MAX_SUM = """
import numpy as np
from algorithm_manager.algorithm_parameter import AlgorithmParameter
from cmp_utils import log, utils
from helper import scale

def compare(my_output_dump_data, ground_truth_dump_data, args):
    assert isinstance(args, AlgorithmParameter) and args.get() is args.get_dict()
    log.print_info_log("one more")
    print("user code may print")
    assert my_output_dump_data.ndim == 1
    factor = float(getattr(args, "factor", 1)) * scale()
    result = np.abs(my_output_dump_data).max() * factor + np.sum(ground_truth_dump_data)
    my_output_dump_data[:] = 0  # harms no other algorithm
    note = args.my_output_dump_file.rsplit(".")[1] + " " + args.shape_type.name
    return utils.format_value(result), note + " " + str(my_output_dump_data.dtype)
"""


def functions(directory: Path, **files: str) -> Path:
    """A directory of user files; "__" in a name is a slash."""
    for name, text in files.items():
        path = directory / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def two_sides(directory: Path, x: Any, y: Any) -> list[str | Path]:
    """Two recordings of one operator; the words for compare."""
    for side, array in (("mine", x), ("golden", y)):
        write_dump(directory / side / dump_name("Add", "a", 1), [], [(array, "ND")])
    return ["compare", "-m", directory / "mine", "-g", directory / "golden", "-out", directory]


def test_own_algorithms_are_columns(tmp_path: Path) -> None:
    """`all` has the user's algorithms too; parameters reach them; helpers can be imported."""
    x, y = normal((3, 5)), normal((3, 5), 2)
    own = functions(tmp_path / "own", algorithm__alg_MaxSum=MAX_SUM,
                    helper="def scale():\n    return 2\n",
                    algorithm__alg_Second="def compare(a, b, c):\n    return str(a.max()), ''\n")
    done = run(*two_sides(tmp_path, x, y), "-c", own, "-a", "MaxSum:factor=3")
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)
    wide = [one.astype(np.float32) for one in (x, y)]
    assert row["MaxSum"] == f"{np.abs(wide[0]).max() * 6 + wide[1].sum():.6f}"
    assert row["Second"] == str(wide[0].max())  # the first one changed only its own copy
    assert "a Tensor float32" in row["CompareFailReason"]
    assert row["Verdict"] == "broken"
    assert "user code may print" in done.stderr
    assert not list(own.rglob("__pycache__"))


def test_chosen_and_replaced(tmp_path: Path) -> None:
    """-alg names them; one of a built-in's name takes its place, also by number."""
    text = "def compare(a, b, c):\n    return 'mine', ''\n"
    own = functions(tmp_path / "own", algorithm__alg_MaxAbsoluteError=text,
                    algorithm__alg_Other=text)
    words = two_sides(tmp_path, normal((4,)), normal((4,), 2))
    run(*words, "-c", own, "-alg", "0,1")
    (row,) = rows_of(tmp_path)
    assert row["MaxAbsoluteError"] == "mine"
    assert row["CosineSimilarity"] != "mine"
    assert "Other" not in row and "MeanAbsoluteError" not in row
    run(*words, "-c", own, "-alg", "Nothing", code=31)
    run(*words, "-alg", "Other", code=31)


FAILING = {
    "Raises": "def compare(a, b, c):\n    raise ValueError('no\\nluck')\n",
    "Leaves": "import sys\ndef compare(a, b, c):\n    sys.exit(3)\n",
    "Number": "def compare(a, b, c):\n    return 1.5, ''\n",
    "Single": "def compare(a, b, c):\n    return 'text'\n",
    "Dies": "import os\ndef compare(a, b, c):\n    os._exit(7)\n",
    "Killed": "import os\ndef compare(a, b, c):\n    os.kill(os.getpid(), 9)\n",
    "Pair": "def compare(a, b, c):\n    return 'ab'\n",
    "Lazy": "def compare(a, b, c):\n    return (text for text in 'ab')\n",
    "Stops": "def compare(a, b, c):\n    raise KeyboardInterrupt('stop')\n",
    "Odd": "class E(Exception):\n    def __str__(self):\n        raise ValueError\n"
           "def compare(a, b, c):\n    raise E\n",
    "Long": "def compare(a, b, c):\n    raise ValueError('y' * 5000000)\n",
}
SAID = {"Raises": "no luck", "Leaves": "3", "Number": "not string", "Single": "two texts",
        "Pair": "two texts", "Lazy": "a generator (expected two texts)", "Stops": "stop",
        "Odd": "'Odd'. E", "Long": "yyy...", "Dies": "exit status 7", "Killed": "signal 9"}


def test_errors_are_told_per_tensor(tmp_path: Path) -> None:
    """A function that fails has NaN and a reason; the others, and later tensors, have values."""
    own = functions(tmp_path / "own", algorithm__alg_Good="def compare(a, b, c):\n"
                    "    return str(a.size), ''\n",
                    **{f"algorithm__alg_{name}": text for name, text in FAILING.items()})
    words = two_sides(tmp_path, normal((4,)), normal((4,), 2))
    for side in ("mine", "golden"):
        write_dump(tmp_path / side / dump_name("Add", "b", 2), [], [(normal((6,)), "ND")])
    run(*words, "-c", own)
    rows = rows_of(tmp_path)
    assert [row["Good"] for row in rows] == ["4", "6"]
    for row in rows:
        for name, text in SAID.items():
            assert row[name] == "NaN"
            assert f"Failed to execute 'compare' in '{name}'. " in row["CompareFailReason"]
            assert text in row["CompareFailReason"], name
    assert [row["Verdict"] for row in rows] == ["broken", "same"]


def test_texts_of_a_class_of_the_user(tmp_path: Path) -> None:
    """What such a text holds is taken, not what its class makes of it."""
    own = functions(tmp_path / "own", algorithm__alg_Text="class S(str):\n    def __str__(self):\n"
                    "        return 'other'\n    def split(self):\n        return 5\n"
                    "def compare(a, b, c):\n    return S('real'), ''\n")
    run(*two_sides(tmp_path, normal((4,)), normal((4,), 2)), "-c", own)
    (row,) = rows_of(tmp_path)
    assert row["Text"] == "real"


BROKEN = {
    "algorithm__alg_Broken": ("def compare(", "SyntaxError"),
    "algorithm__alg_Import": ("import no_such_module\n", "no_such_module"),
    "algorithm__alg_Two": ("def compare(a, b):\n    pass\n", "takes 2 arguments (expected 3)"),
    "algorithm__alg_None": ("x = 1\n", "has no function"),
    "algorithm__alg_Value": ("compare = 1\n", "is no function"),
    "algorithm__alg_Exit": ("raise SystemExit(0)\n", "SystemExit"),
    "algorithm__alg_Stop": ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "format_convert__convert_FRACTAL_NZ_to_ND": ("def convert(\n", "SyntaxError"),
    "format_convert__convert_FOO_to_ND": ("def convert(a, b, c):\n    pass\n",
                                          "layout that is not known"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_are_no_functions(name: str, tmp_path: Path) -> None:
    """They end the run: the built-in function in its place would be another one's answer."""
    text, said = BROKEN[name]
    own = functions(tmp_path / "own", algorithm__alg_Good="def compare(a, b, c):\n    return '', ''"
                    "\n", **{name: text})
    words = two_sides(tmp_path, normal((4,)), normal((4,)))
    done = run(*words, "-c", own, code=26)
    (line,) = done.stderr.splitlines()
    assert said in line and name.replace("__", "/") in line
    assert not list(tmp_path.glob("*.csv"))
    if not name.startswith("format"):
        return
    file = next((tmp_path / "mine").iterdir())
    failed = subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path / "out", "-f", "ND",
                             "-c", own], capture_output=True, text=True, check=False)
    assert failed.returncode == 26 and said in failed.stderr
    assert not (tmp_path / "out").exists()


def test_other_files_are_left_out(tmp_path: Path) -> None:
    """A name of another form is a warning; several broken files are one line."""
    good = "def compare(*texts):\n    return str(len(texts)), ''\n"
    own = functions(tmp_path / "own", algorithm__Wrong="raise ValueError", algorithm__alg_Good=good)
    words = two_sides(tmp_path, normal((4,)), normal((4,)))
    done = run(*words, "-c", own)
    assert "warning" in done.stderr and "Wrong.py: left out" in done.stderr
    (row,) = rows_of(tmp_path)
    assert row["Good"] == "3"
    functions(own, algorithm__alg_A="x", algorithm__alg_B="x", algorithm__alg_C="x")
    (line,) = run(*words, "-c", own, code=26).stderr.splitlines()
    assert "alg_A.py" in line and line.endswith("(and 2 more files)")


def test_names_of_other_columns(tmp_path: Path) -> None:
    """A second column of a name would be read in place of plumb's own one."""
    own = functions(tmp_path / "own", algorithm__alg_Verdict="def compare(a, b, c):\n"
                    "    return 'same', ''\n")
    done = run(*two_sides(tmp_path, normal((4,)), normal((4,), 2)), "-c", own, code=31)
    assert "alg_Verdict.py" in done.stderr


def test_scripts_written_for_upstream(tmp_path: Path) -> None:
    """What upstream's own algorithms and converters import is there."""
    own = functions(tmp_path / "own", algorithm__alg_Imports="""
from algorithm_manager.algorithm_parameter import AlgorithmParameter
from cmp_utils import log, utils, utils_type
from cmp_utils.constant.compare_error import CompareError
from cmp_utils.constant.const_manager import ConstManager
from cmp_utils.utils import ceiling_divide as ceil
from cmp_utils.utils import least_common_multiple as lcm

def compare(my_output_dump_data, ground_truth_dump_data, args):
    log.print_warn_log("a warning")
    if args.shape_type == utils_type.ShapeType.Scalar:
        raise CompareError(CompareError.MSACCUCMP_INDEX_OUT_OF_BOUNDS_ERROR)
    assert ConstManager.FLOAT_EPSILON < ConstManager.MINIMUM_VALUE and ConstManager.NAN == "NaN"
    return utils.format_value(ceil(7, 2) + lcm(4, 6)), ""
""")
    words = two_sides(tmp_path, normal((4,)), normal((4,)))
    for side in ("mine", "golden"):
        write_dump(tmp_path / side / dump_name("Add", "one", 2), [], [(normal((1,)), "ND")])
    done = run(*words, "-c", own, "-alg", "Imports")
    many, one = rows_of(tmp_path)
    assert many["Imports"] == "16.000000"
    assert one["Imports"] == "NaN" and "error 12" in one["CompareFailReason"]
    assert "[WARNING] a warning" in done.stderr


def test_bool_and_wide_types(tmp_path: Path) -> None:
    """Two bool tensors are not for own algorithms; wide types come as doubles."""
    own = functions(tmp_path / "own", algorithm__alg_Last="def compare(a, b, c):\n"
                    "    return repr(float(a[-1])) + str(a.dtype), ''\n")
    write = {"b": np.array([True, False]), "i": np.array([1, (1 << 40) + 1]),
             "d": np.array([1.0, 1 + 2.0 ** -50]), "s": np.array([3], np.int16)}
    for side in ("mine", "golden"):
        for i, (name, array) in enumerate(write.items()):
            write_dump(tmp_path / side / dump_name("Add", name, i), [], [(array, "ND")])
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-c", own)
    rows = {row["NPUDump"]: row for row in rows_of(tmp_path)}
    assert rows["b"]["Last"] == "NaN"
    assert "Last does not support Boolean" in rows["b"]["CompareFailReason"]
    assert rows["i"]["Last"] == f"{float((1 << 40) + 1)!r}float64"
    assert rows["d"]["Last"] == f"{1 + 2.0 ** -50!r}float64"
    assert rows["s"]["Last"] == "3.0float32"


def test_two_arrays(tmp_path: Path) -> None:
    """Two .npy files have the user's algorithms too."""
    np.save(tmp_path / "x.npy", normal((4,)))
    own = functions(tmp_path / "own", algorithm__alg_Size="def compare(a, b, c):\n"
                    "    return str(a.size), ''\n")
    done = run("compare", "-m", tmp_path / "x.npy", "-g", tmp_path / "x.npy", "-c", own)
    assert "Size: 4\n" in done.stdout


REVERSED = """
import numpy as np
def convert(shape_from, shape_to, array):
    assert isinstance(shape_from, list) and array.ndim == 1
    return array.reshape(shape_from)[::-1, ::-1].copy()
"""


def reversed_dump(path: Path, array: Any) -> None:
    """A tensor that lies backwards, in a layout nobody knows, with a padded row."""
    padded = np.vstack([array, np.full((1, array.shape[1]), 9, array.dtype)])
    Dump(outputs=[Tensor(padded[::-1, ::-1].tobytes(), 2, padded.shape, FRACTAL_ZZ,
                         array.shape)]).write(path)


def test_own_converter_in_convert(tmp_path: Path) -> None:
    """A layout that nobody knows becomes one that is; the result is cut to the original shape."""
    x = normal((5, 3))
    file = tmp_path / "dump" / dump_name("Add", "a", 1)
    reversed_dump(file, x)
    own = functions(tmp_path / "own", format_convert__convert_FRACTAL_ZZ_to_ND=REVERSED)
    words = [PLUMB, "convert", "-d", file, "-out", tmp_path, "-f", "ND"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 22
    subprocess.run([*words, "-c", own], check=True, capture_output=True)
    (path,) = tmp_path.glob("*.npy")
    assert path.name.endswith(".output.0.5x3.npy")
    np.testing.assert_array_equal(np.load(path), x)
    run("shape_conversion", "-i", file, "-format", "ND", "-o", tmp_path / "shape", "-custom", own)
    (path,) = (tmp_path / "shape").glob("*.npy")
    np.testing.assert_array_equal(np.load(path), x)


def test_own_converter_in_compare(tmp_path: Path) -> None:
    """Both sides are brought to their original shape by the user's converter."""
    x, y = normal((5, 3)), normal((5, 3), 2)
    for side, array in (("mine", x), ("golden", y)):
        reversed_dump(tmp_path / side / dump_name("Add", "a", 1), array)
    own = functions(tmp_path / "own", format_convert__convert_FRACTAL_ZZ_to_ND=REVERSED)
    run("compare", "-m", tmp_path / "mine", "-g", tmp_path / "golden", "-out", tmp_path, "-c", own)
    (row,) = rows_of(tmp_path)
    assert {name: row[name] for name in ALGORITHMS} == expected_values(x, y)
    assert row["Shape"] == "[5,3]"


def test_own_converter_replaces_the_built_in(tmp_path: Path) -> None:
    """With groups for FRACTAL_Z; an own one has the built-in's place."""
    x = normal((2, 5, 3, 4))
    file = tmp_path / "dump" / dump_name("Add", "a", 1)
    write_dump(file, [], [(x, "NC1HWC0")])
    own = functions(tmp_path / "own", format_convert__convert_NC1HWC0_to_NCHW="""
import numpy as np
def convert(shape_from, shape_to, array):
    n, c1, h, w, c0 = shape_from
    plain = array.reshape(shape_from).transpose(0, 1, 4, 2, 3).reshape(n, c1 * c0, h, w)
    return plain.astype(np.float32) + np.float32(shape_to[1])
""", format_convert__convert_NC1HWC0_to_FRACTAL_Z="""
def convert(shape_from, shape_to, array, group):
    return array[:4].reshape(2, 2) * 0 + group
""")
    subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path / "a", "-f", "NCHW", "-c", own],
                   check=True, capture_output=True)
    (path,) = (tmp_path / "a").glob("*.npy")
    np.testing.assert_array_equal(np.load(path), x.astype(np.float32) + 5)
    subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path / "b", "-f", "FRACTAL_Z", "-s",
                    "2,2", "-c", own], check=True, capture_output=True)
    (path,) = (tmp_path / "b").glob("*.npy")
    np.testing.assert_array_equal(np.load(path), np.ones((2, 2), np.float16))


SUBCLASS = """class Own(numpy.ndarray):
        def __getitem__(self, key):
            return 7
"""


@pytest.mark.parametrize(("body", "text", "code"), [
    ("raise ValueError('no luck')", "no luck", 26), ("return [1]", "not numpy.ndarray", 26),
    ("return None", "not numpy.ndarray but NoneType", 26),
    ("return (x for x in array)", "not numpy.ndarray but generator", 26),
    ("return array[0]", "not numpy.ndarray but float16", 26),
    ("return numpy.array(['a'])", "elements of type", 26),
    ("return numpy.full(shape_to, None)", "elements of type object", 26),
    ("return numpy.zeros(shape_to, 'M8[s]')", "elements of type datetime64", 26),
    ("return numpy.zeros(shape_to, numpy.longdouble)", "float128, which no file here holds", 26),
    ("return numpy.ma.masked_all(shape_to, 'f4')", "15 masked elements, which have no value", 26),
    ("return numpy.ma.masked_less(array.reshape(shape_from), -9e9)", "", 0),
    (SUBCLASS + "    return array.view(Own)", "of type Own, a subclass of numpy.ndarray", 26),
    ("raise KeyboardInterrupt", "Failed to execute 'convert'", 26),
    ("raise SystemExit(0)", "Failed to execute 'convert'", 26),
    ("import os; os._exit(5)", "exit status 5", 26), ("import os; os._exit(0)", "status 0", 26),
    ("import os; os.kill(os.getpid(), 11)", "signal 11 (Segmentation fault)", 26),
    ("return numpy.array(1.0)", "expected at least (5,3)", 23),
    ("return array.reshape(2, 9)", "expected at least (5,3)", 23),
    ("return array[:1]", "expected at least (5,3)", 23)])
def test_converters_that_fail(tmp_path: Path, body: str, text: str, code: int) -> None:
    """One line, upstream's number, nothing written; other files of the directory are converted."""
    reversed_dump(tmp_path / "dump" / dump_name("Add", "a", 1), normal((5, 3)))
    good = normal((2, 2))
    write_dump(tmp_path / "dump" / dump_name("Add", "b", 2), [], [(good, "ND")])
    own = functions(tmp_path / "own", format_convert__convert_FRACTAL_ZZ_to_ND=
                    f"import numpy\ndef convert(shape_from, shape_to, array):\n    {body}\n")
    done = subprocess.run([PLUMB, "convert", "-d", tmp_path / "dump", "-out", tmp_path / "out",
                           "-f", "ND", "-c", own], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code == 0:  # nothing is masked: all elements have a value
        assert len(list((tmp_path / "out").glob("*.npy"))) == 2
        return
    (line,) = [line for line in done.stderr.splitlines() if "(error" in line]
    assert text in line
    (path,) = (tmp_path / "out").glob("*.npy")
    np.testing.assert_array_equal(np.load(path), good)


def test_no_python(tmp_path: Path) -> None:
    """One line says that Python is missing, or that it lacks NumPy."""
    words = [PLUMB, "msaccucmp", *two_sides(tmp_path, normal((2,)), normal((2,)))]
    own = functions(tmp_path / "own", algorithm__alg_A="def compare(a, b, c):\n    return '', ''\n")
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 9\n")
    bare.chmod(0o755)
    for environment, text in (
            ({"PATH": str(tmp_path)}, "PATH has no python3"),
            ({"PLUMBLINE_PYTHON": str(tmp_path / "nothing")}, "PLUMBLINE_PYTHON: no program"),
            ({"PLUMBLINE_PYTHON": str(bare)}, "exit status 9"),
            ({"PYTHONPATH": str(functions(tmp_path / "path", numpy="raise ImportError('none')"))},
             "NumPy is needed: none")):
        done = subprocess.run([*map(str, words), "-c", own], capture_output=True, text=True,
                              check=False, env={**os.environ, **environment})
        assert done.returncode == 26
        (line,) = done.stderr.splitlines()
        assert text in line


def test_wrong_directories(tmp_path: Path) -> None:
    """Missing, empty, too large, too many files; parameters that cannot be read."""
    words = two_sides(tmp_path, normal((2,)), normal((2,)))
    run(*words, "-c", tmp_path / "nothing", code=3)
    (tmp_path / "own" / "algorithm").mkdir(parents=True)
    assert "holds no function" in run(*words, "-c", tmp_path / "own").stderr
    # The directory of one kind in place of the one that holds both.
    done = run(*words, "-c", tmp_path / "own" / "algorithm", code=3)
    assert "holds no directory algorithm or format_convert" in done.stderr
    for parameters in ("A", ":a=b", "A:b", "A:b=c=d", "A:=c", "A:b="):
        run(*words, "-c", tmp_path / "own", "-a", parameters, code=6)
    run(*words, "-a", "A:b=c", code=6)
    big = functions(tmp_path / "big", algorithm__alg_A="#" * ((1 << 20) + 1))
    run(*words, "-c", big, code=43)
    for i in range(1001):
        (tmp_path / "own" / f"{i}.txt").write_text("")
    run(*words, "-c", tmp_path / "own", code=46)


def test_layouts_of_bfloat16_reach_numpy(tmp_path: Path) -> None:
    """Types that NumPy lacks come as float32."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    file = tmp_path / "dump" / dump_name("Add", "a", 1)
    Dump(outputs=[Tensor(bits[::-1, ::-1].tobytes(), 27, (2, 3), FRACTAL_ZZ, (2, 3))]).write(file)
    own = functions(tmp_path / "own", format_convert__convert_FRACTAL_ZZ_to_ND=REVERSED)
    subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path, "-f", "ND", "-c", own],
                   check=True, capture_output=True)
    (path,) = tmp_path.glob("*.npy")
    assert np.load(path).dtype == np.float32
    np.testing.assert_array_equal(np.load(path), x)


@pytest.mark.parametrize(("expression", "dtype"), [
    ("numpy.asfortranarray(x)", "<f4"), ("x.astype('>f4')", "<f4"), ("x.view(numpy.matrix)", "<f4"),
    ("numpy.broadcast_to(x[:1], x.shape)", "<f4"), ("x + 1j", "<c8"), ("x > 7", "|b1"),
    ("numpy.pad(x, 3)[3:, 3:]", "<f4"), ("x[::-1, ::-1]", "<f4")])
def test_results_of_any_order_and_type(tmp_path: Path, expression: str, dtype: str) -> None:
    """The elements are those that NumPy has, whatever lies how in its memory."""
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    file = tmp_path / "dump" / dump_name("Add", "a", 1)
    reversed_dump(file, x.astype(np.float16))
    own = functions(tmp_path / "own", format_convert__convert_FRACTAL_ZZ_to_ND=f"""
import numpy
def convert(shape_from, shape_to, array):
    x = array.reshape(shape_from)[::-1, ::-1][:5].astype(numpy.float32)
    return {expression}
""")
    subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path, "-f", "ND", "-c", own],
                   check=True, capture_output=True)
    (path,) = tmp_path.glob("*.npy")
    expected = np.asarray(eval(expression, {"numpy": np, "x": x}))[:5, :3]
    assert np.load(path).dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.load(path), expected)
