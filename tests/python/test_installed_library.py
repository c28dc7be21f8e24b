"""What `cmake --install` gives other programs: built against it are projects in C and C++
(tests/consumer), and the examples of examples/c_api. The symbols and types of the library are those
of tests/data/c_api.symbols and c_api.abi.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples" / "c_api"))
import compare  # noqa: E402

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


# Names of tools/debian-packages.txt in vcpkg; by feature of vcpkg.json, "" for none.
PORTS = {
    "": {"libcli11-dev": "cli11", "libexpat1-dev": "expat", "libfmt-dev": "fmt",
         "libisal-dev": "isal", "libjemalloc-dev": "jemalloc", "libedit-dev": "libedit",
         "libssl-dev": "openssl", "libspdlog-dev": "spdlog", "libsqlite3-dev": "sqlite3",
         "libtbb-dev": "tbb", "libexpected-dev": "tl-expected", "libxxhash-dev": "xxhash",
         "libyaml-cpp-dev": "yaml-cpp", "zlib1g-dev": "zlib"},
    "hdf5": {"libhdf5-dev": "hdf5"},
    "viewer": {"libcpp-httplib-dev": "cpp-httplib"},
    "tests": {"libbenchmark-dev": "benchmark", "libgtest-dev": "gtest",
              "nlohmann-json3-dev": "nlohmann-json"},
}


def libraries_of(list_of_packages: str) -> set[str]:
    return set(re.findall(r"^\s*(?:Build-Depends: )?((?:lib\S+|nlohmann\S+|zlib1g)-dev)\b",
                          (ROOT / list_of_packages).read_text(), re.MULTILINE))


def test_options_leave_whole_sources_out(tmp_path: Path) -> None:
    """No second build: that it compiles and what its commands say was tried by hand."""
    def sources(*options: str) -> dict[str, str]:
        output_of("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                  "-DPLUMBLINE_TESTS=OFF", *options)
        commands = json.loads((tmp_path / "compile_commands.json").read_text())
        return {str(Path(one["file"]).relative_to(ROOT)): one["command"] for one in commands
                if Path(one["file"]).is_relative_to(ROOT)}

    names = ("HDF5", "VIEWER", "PROTOBUF")
    some = sources(*(f"-DPLUMBLINE_{name}=OFF" for name in names))
    every = sources(*(f"-DPLUMBLINE_{name}=ON" for name in names))
    assert set(every) - set(some) == {
        "cli/hdf5_module.cc", "cli/view_module.cc", "src/formats/hdf5/hdf5_handle.cc",
        "src/formats/hdf5/hdf5_reader.cc", "src/formats/hdf5/hdf5_writer.cc",
        "src/load/depthwise_rule.cc", "src/load/isolated_dump.cc", "src/load/operator_replay.cc",
        "src/operators/compare_hdf5.cc", "src/operators/hdf5_filtered.cc",
        "src/view/serve/http_connection.cc", "src/view/serve/http_server.cc"}
    assert not [name for name, command in some.items() if "hdf5/serial" in command]
    assert {name for name, command in some.items() if "-DPLUMBLINE_WITHOUT_" in command} == {
        "cli/hdf5_loader.cc", "cli/commands/view.cc"}


def test_packages_name_the_same_libraries() -> None:
    """tools/debian-packages.txt, debian/control and vcpkg.json."""
    needed = libraries_of("tools/debian-packages.txt")
    assert needed == {name for ports in PORTS.values() for name in ports}
    control = (ROOT / "debian/control").read_text().partition("\n\n")[0]
    assert set(re.findall(r"\S+-dev", control)) == needed - set(PORTS["tests"])
    manifest = json.loads((ROOT / "vcpkg.json").read_text())
    features = {name: part["dependencies"] for name, part in manifest["features"].items()}
    features[""] = manifest["dependencies"]
    assert features.pop("protobuf") == ["protobuf"]
    assert features == {name: sorted(ports.values()) for name, ports in PORTS.items()}


def test_packages_have_the_version_of_the_header() -> None:
    [version] = re.findall(r'^#define PLUMBLINE_VERSION "(.*)"',
                           (ROOT / "include/plumbline/c_api.h").read_text(), re.MULTILINE)
    assert json.loads((ROOT / "vcpkg.json").read_text())["version-semver"] == version
    assert (ROOT / "debian/changelog").read_text().startswith(f"plumbline ({version}) ")


def test_symbols_are_those_of_the_list() -> None:
    """Nothing else is seen of the library; each has its version."""
    names = re.findall(r" [^A] (\S+)$", output_of("nm", "-D", "--defined-only", LIBRARY),
                       re.MULTILINE)
    assert names == (ROOT / "tests/data/c_api.symbols").read_text().split()


def test_types_are_those_of_the_file(tmp_path: Path) -> None:
    """A change that adds nothing but functions is an update of the file; any other breaks callers.
    To update: copy current.abi, of which the message tells, onto tests/data/c_api.abi."""
    if shutil.which("abidiff") is None or platform.machine() != "x86_64":
        pytest.skip("abigail-tools is not installed, or the file is of another machine")
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


@pytest.mark.parametrize("release", ["upstream_1.2.2", "upstream_26.2.0"])
@pytest.mark.parametrize("form", ["l0_statistics", "l1_tensor", "mix_md5", "mix_statistics"])
def test_recordings_of_upstream_are_read(form: str, release: str) -> None:
    """Names, shapes, statistics and checksums are those of the JSON file."""
    path = ROOT / "tests" / "data" / release / form
    recorded = json.loads((path / "dump.json").read_text())
    library = compare.Library(LIBRARY)
    run, call, slot = ctypes.c_void_p(), compare.CallInfo(), compare.Slot()
    library("plumb_run_open", os.fsencode(path), ctypes.byref(run))
    read = 0
    for number, (name, entry) in enumerate(recorded["data"].items()):
        library("plumb_run_call", run, ctypes.c_uint64(number), ctypes.byref(call))
        assert call.name.decode() == name
        tensors = list(tensors_in(entry))
        for index in range(call.slot_count):
            library("plumb_run_slot", run, ctypes.c_uint64(number), ctypes.c_uint64(index),
                    ctypes.byref(slot))
            if not slot.is_tensor:
                continue
            [tensor] = [one for one in tensors if is_of(one, slot)][:1]
            tensors.remove(tensor)
            read += 1
        assert not tensors, name
    library.native.plumb_run_close(run)
    assert read > 20


def tensors_in(value: object) -> Iterator[dict]:
    """All tensors of an entry of dump.json."""
    if isinstance(value, dict) and "dtype" in value and "shape" in value:
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(part)


def is_of(tensor: dict, slot: compare.Slot) -> bool:
    """Whether a slot tells what stands there."""
    def same(key: str, number: compare.Number) -> bool:
        if tensor.get(key) is None:
            return number.kind == 0
        both_nan = math.isnan(number.real) and math.isnan(tensor[key])
        return number.real == tensor[key] or both_nan

    keys = (("Max", slot.max), ("Min", slot.min), ("Mean", slot.mean), ("Norm", slot.norm))
    return (slot.dtype.decode() == tensor["dtype"] and slot.shape[:slot.ndim] == tensor["shape"]
            and all(same(key, number) for key, number in keys)
            and slot.digest.decode() == tensor.get("md5", ""))


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
