"""What `cmake --install` gives other programs: built against it are projects in C and C++
(tests/consumer), and the examples of examples/c_api. The symbols and types of the library are those
of tests/data/c_api.symbols and c_api.abi.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build" / "release"
LIBRARY = RELEASE / "src" / "c_api" / "libplumbline.so"
EXAMPLES = ROOT / "examples" / "c_api"
ABI = ROOT / "tests" / "data" / "c_api.abi"
WITH_ALL = ROOT / "build" / "optional" / "bin" / "python"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the preset release is not built")


def output_of(*command: object, expected: int = 0, **environment: str) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, timeout=120, env=os.environ | environment)
    assert done.returncode == expected, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("installed")
    for component in ("runtime", "development"):
        output_of("cmake", "--install", RELEASE, "--prefix", prefix, "--component", component)
    return prefix


@pytest.fixture(scope="module")
def programs(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of tests/consumer, found through find_package()."""
    build = tmp_path_factory.mktemp("consumer")
    output_of("cmake", "-S", ROOT / "tests" / "consumer", "-B", build, "-G", "Ninja",
              f"-DCMAKE_PREFIX_PATH={installed}")
    output_of("cmake", "--build", build)
    return build


@pytest.fixture(scope="module")
def recordings(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """golden, and target, whose second step has a wrong call."""
    folder = tmp_path_factory.mktemp("recordings")
    for name, scale in (("golden", 1), ("target", 1.5)):
        output_of(programs / "record", folder / name, scale)
    return folder


def current_abi(folder: Path) -> Path:
    ignored = folder / "private.abignore"
    ignored.write_text("[suppress_type]\nsource_location_not_in = c_api.h\ndrop = yes\n")
    output_of("abidw", "--suppressions", ignored, "--no-comp-dir-path", "--no-corpus-path",
              "--no-show-locs", "--no-elf-needed", "--no-parameter-names",
              "--exported-interfaces-only", "--out-file", folder / "current.abi", LIBRARY)
    return folder / "current.abi"


def test_symbols_are_those_of_the_list() -> None:
    """Nothing else is seen of the library; each has its version."""
    names = re.findall(r" [^A] (\S+)$", output_of("nm", "-D", "--defined-only", LIBRARY),
                       re.MULTILINE)
    assert names == (ROOT / "tests/data/c_api.symbols").read_text().split()


def test_types_are_those_of_the_file(tmp_path: Path) -> None:
    """A change that adds nothing but functions is an update of the file; any other breaks callers.
    To update: copy current.abi, of which the message tells, onto tests/data/c_api.abi."""
    if shutil.which("abidiff") is None:
        pytest.skip("abigail-tools is not installed")
    current = current_abi(tmp_path)
    output_of("abidiff", ABI, current)
    broken = tmp_path / "broken.abi"
    text, changes = re.subn(r"(name='plumb_slot' size-in-bits=)'\d+'", r"\1'64'", ABI.read_text())
    assert changes == 1
    broken.write_text(text)
    done = subprocess.run(["abidiff", broken, current], capture_output=True, text=True, check=False)
    assert done.returncode != 0, "a change of a struct is not seen"


def test_the_consumers_record_and_compare(programs: Path, recordings: Path) -> None:
    def compare(step: str, expected: int) -> list[str]:
        return output_of(programs / "compare", recordings / "target" / step,
                         recordings / "golden" / step, expected=expected).splitlines()

    assert compare("step0", 0) == ["no wrong call"]
    assert compare("step1", 1) == [
        "Functional.linear.0.forward: scale",
        "Functional.linear.0.forward.input.0 of torch.float32 max 11 first -5",
        "Functional.linear.0.forward.output.0 of torch.float32 max 49.5 first -22.5"]
    output_of(programs / "compare", recordings / "missing", recordings / "golden", expected=2)


def test_plumb_compare_reads_the_same(recordings: Path, tmp_path: Path) -> None:
    """The files are those of every other recording, the tree of modules with them."""
    answer = output_of(PLUMB, "compare", recordings / "target" / "step1",
                       recordings / "golden" / "step1", "-o", tmp_path / "out", "--format", "csv",
                       "--fail-on", "wrong", expected=1)
    assert answer.startswith("first wrong call: Functional.linear.0.forward\n")
    assert "Module.head.Linear.forward.0" in answer


def test_a_killed_recorder_leaves_its_calls(programs: Path, tmp_path: Path) -> None:
    """The journal holds what was told."""
    source = tmp_path / "killed.c"
    source.write_text((ROOT / "tests/consumer/record.c").read_text().replace(
        "must(plumb_step_end(recorder, &error));", "raise(9);").replace(
        "#include <stdio.h>", "#include <signal.h>\n#include <stdio.h>"))
    library = re.search(r"libplumbline\S* => (\S+)", output_of("ldd", programs / "record"))
    assert library
    output_of("cc", source, "-I", ROOT / "include", library[1], "-o", tmp_path / "killed")
    output_of(tmp_path / "killed", tmp_path / "run", "1", expected=-9,
              LD_LIBRARY_PATH=str(Path(library[1]).parent))
    output_of(PLUMB, "recover", tmp_path / "run")
    dump = (tmp_path / "run/step0/rank/dump.json").read_text()
    assert "Functional.linear.0.forward" in dump and "Module.head.Linear.forward.0" in dump


def test_the_example_in_c_by_pkg_config(installed: Path, tmp_path: Path) -> None:
    places = installed.glob("lib*/**/pkgconfig")
    flags = output_of("pkg-config", "--cflags", "--libs", "plumbline",
                      PKG_CONFIG_PATH=":".join(map(str, places))).split()
    program = tmp_path / "record_and_compare"
    output_of("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
              EXAMPLES / "record_and_compare.c", *flags, "-lm", "-o", program)
    [folder] = [flag[2:] for flag in flags if flag.startswith("-L")]
    answer = output_of(program, tmp_path / "runs", expected=1, LD_LIBRARY_PATH=folder)
    assert answer.startswith("first wrong call: Functional.rms_norm.0.forward\ncause: ")


def test_the_example_in_python(recordings: Path) -> None:
    def compare(step: str, expected: int) -> list[str]:
        return output_of(sys.executable, EXAMPLES / "compare.py", recordings / "target" / step,
                         recordings / "golden" / step, LIBRARY, expected=expected).splitlines()

    assert compare("step0", 0) == ["no wrong call"]
    lines = compare("step1", 1)
    mean = 4.5 * sum(i * i % 17 - 5 for i in range(24)) / 24  # tests/consumer/record.c
    assert lines[0] == "first wrong call: Functional.linear.0.forward"
    assert lines[1].startswith("cause: ")
    assert lines[3] == ("  Functional.linear.0.forward.output.0 torch.float32 [4, 6] max 49.5 "
                        f"mean {mean:.6g}")


def test_the_example_of_onnx_runtime(tmp_path: Path) -> None:
    """The exported program agrees with the PyTorch model, weights with them; with another epsilon
    in one node, that node is named."""
    assert WITH_ALL.is_file(), "build/optional is missing; run tools/bootstrap.sh optional"
    example = EXAMPLES / "record_onnx_runtime.py"
    answer = output_of(WITH_ALL, "-W", "ignore", example, tmp_path / "right", LIBRARY)
    assert answer.splitlines()[-1].endswith("no wrong call")
    answer = output_of(WITH_ALL, "-W", "ignore", example, tmp_path / "wrong", LIBRARY, "0.05",
                       expected=1)
    assert "first wrong call: Module.2.LayerNorm.forward.0\n" in answer
