"""The structure checks fail when they should."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def load(name: str):
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run_tool(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, ROOT / "tools" / f"{name}.py", *map(str, arguments)],
                          text=True, capture_output=True, check=False)


def write(root: Path, **files: str) -> Path:
    """Writes files named with "__" for "/" and "_dot_" for "." below `root`."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# ---- check_layers


def layers(root: Path, **files: str) -> tuple[int, str]:
    done = run_tool("check_layers", write(root, **files))
    return done.returncode, done.stdout


def test_layers_allowed_edge_passes(tmp_path):
    status, out = layers(tmp_path, src__base__file_dot_h="", include__plumbline__result_dot_h="",
                         src__record__value_dot_cc='#include "base/file.h"\n'
                                                   '#include "plumbline/result.h"\n')
    assert (status, out) == (0, "layers: 3 files, no breach\n")


def test_layers_capture_including_load_is_named(tmp_path):
    status, out = layers(tmp_path, src__load__run_reader_dot_h="",
                         src__capture__observer_dot_cc='\n#include "load/run_reader.h"\n')
    assert status == 1
    assert out == ("src/capture/observer.cc:2: capture may not include load (allowed: base, tensor,"
                   " kernels, record, config, store, online)\n")


def test_layers_products_stand_side_by_side(tmp_path):
    status, out = layers(tmp_path, src__compare__runs_dot_h="",
                         src__ranks__pairs_dot_cc='#include "compare/runs.h"\n',
                         src__graphs__pairs_dot_cc='#include "compare/runs.h"\n')
    assert status == 1
    assert out.startswith("src/graphs/pairs.cc:1: graphs may not include compare (allowed: ")
    assert out.count("\n") == 1  # ranks may


def test_layers_folders_within_a_folder_have_an_order(tmp_path):
    status, out = layers(tmp_path, src__base__memory__bytes_dot_h="",
                         src__base__file__file_dot_h="",
                         src__base__text__csv_dot_cc='#include "base/file/file.h"\n',
                         src__base__memory__bytes_dot_cc='#include "base/file/file.h"\n')
    assert (status, out) == (1, "src/base/memory/bytes.cc:1: base/memory may not include base/file "
                                "(allowed: none)\n")


def test_layers_place_that_no_table_names_is_refused(tmp_path):
    status, out = layers(tmp_path, src__measure__norms__rms_dot_h="", src__run_dot_cc="",
                         src__metrics__rms_dot_h="")
    assert status == 1
    assert "src/measure/norms/rms.h: unknown folder norms within measure (name it in INNER" in out
    assert "src/run.cc: lies in no folder of src/" in out
    assert "src/metrics/rms.h: unknown layer metrics (expected one of base, " in out
    assert out.count("\n") == 3


def test_layers_angled_private_include_is_seen(tmp_path):
    status, out = layers(tmp_path, src__load__run_reader_dot_h="",
                         src__base__file_dot_cc="#include <load/run_reader.h>\n")
    assert status == 1 and "base may not include load" in out


def test_layers_utility_file_is_refused(tmp_path):
    status, out = layers(tmp_path, src__measure__utils_dot_h="")
    assert status == 1
    assert "src/measure/utils.h: this file name is not allowed (a file is named after" in out


def test_layers_cycle_is_printed(tmp_path):
    status, out = layers(tmp_path, src__base__a_dot_h='#include "base/b.h"\n',
                         src__base__b_dot_h='#include "base/a.h"\n')
    assert status == 1
    assert "include cycle: src/base/a.h -> src/base/b.h -> src/base/a.h" in out


def test_layers_public_header_may_not_show_private_ones(tmp_path):
    status, out = layers(tmp_path, src__base__file_dot_h="",
                         include__plumbline__run_dot_h='#include "base/file.h"\n')
    assert status == 1 and "may not include the private header src/base/file.h" in out


def test_layers_nobody_includes_an_edge(tmp_path):
    status, out = layers(tmp_path, cli__commands_dot_h="",
                         src__report__table_dot_cc='#include "cli/commands.h"\n')
    assert status == 1 and "report may not include cli" in out


def test_layers_unknown_folder_is_refused(tmp_path):
    status, out = layers(tmp_path, src__helpers__a_dot_h="")
    assert status == 1 and "unknown layer helpers" in out


def package(root: Path, **modules: str) -> tuple[int, str]:
    """check_layers over a package plumbline of these modules."""
    for name, text in {"_core.pyi": "", "_compare.pyi": "", **modules}.items():
        path = root / "python" / "plumbline" / name.replace("__", "/")
        path = path if path.suffix else path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = run_tool("check_layers", root)
    return done.returncode, done.stdout


def test_layers_python_edges_of_the_table_pass(tmp_path):
    status, out = package(tmp_path, guards="from plumbline import _core\n",
                          debugger="from plumbline.guards import Guards\nimport os\n",
                          pytorch__adapter="import plumbline.debugger\n")
    assert (status, out) == (0, "layers: 5 files, no breach\n")


def test_layers_recording_importing_the_comparison_is_named(tmp_path):
    status, out = package(tmp_path, guards="\nfrom plumbline import _compare\n")
    assert status == 1
    assert out == ("python/plumbline/guards.py:2: hooks may not import native comparison "
                   "(allowed: native recorder)\n")


@pytest.mark.parametrize("text", [
    "from plumbline.mindspore.values import x\n", "from plumbline.mindspore import values\n",
    "import plumbline.mindspore.values\n", "from ..mindspore import values\n",
])
def test_layers_every_form_of_an_import_is_seen(tmp_path, text):
    status, out = package(tmp_path, pytorch__adapter=text, mindspore__values="")
    assert status == 1 and "adapter.py:1: pytorch may not import mindspore" in out


@pytest.mark.parametrize("text", [
    "from plumbline.mindspore.jit import x\n", "from . import jit\n", "from .jit import x\n",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .jit import x\n",
])
def test_layers_cycle_of_imports_is_printed(tmp_path, text):
    status, out = package(tmp_path, mindspore__values=text,
                          mindspore__jit="from plumbline.mindspore import values\n")
    assert status == 1
    cycle = ("jit", "values", "jit")
    steps = " -> ".join(f"python/plumbline/mindspore/{name}.py" for name in cycle)
    assert f"import cycle: {steps}\n" in out


def test_layers_only_frameworks_and_native_halves_are_imported_late(tmp_path):
    late = "def f():\n    import {}\n"
    status, out = package(tmp_path, pytorch__adapter=late.format("torch._dynamo"),
                          config_check__pack=late.format("plumbline._compare"),
                          comparison=late.format("plumbline.notebook"), notebook="")
    assert status == 1
    assert out.startswith("python/plumbline/comparison.py:2: imports plumbline.notebook inside")
    assert len(out.splitlines()) == 1


def test_layers_python_module_in_no_group_is_refused(tmp_path):
    status, out = package(tmp_path, helpers="")
    assert status == 1 and "python/plumbline/helpers.py: in no group" in out


# ---- check_sizes


def cxx_measures(tmp_path: Path, text: str) -> dict[str, dict[str, int]]:
    sizes = load("check_sizes")
    path = tmp_path / "a.cc"
    path.write_text(text)
    found: dict[str, dict[str, int]] = {}
    for measure in sizes.cxx_functions(path, "a.cc"):
        found.setdefault(measure.where.removeprefix("a.cc: "), {})[measure.kind] = measure.size
    return found


def test_sizes_finds_functions_parameters_and_nesting(tmp_path):
    found = cxx_measures(tmp_path, """
namespace x {
int Add(int a, std::map<int, int> b = {}) {  // not a brace: {
  const char* text = "}";
  if (a > 0) {
    for (;;) {
      while (a) { --a; }
    }
  } else if (a == 2) {
  }
  return a;
}
Thing::Thing(int a) : a_(a), b_{2} {}
auto Make() -> std::vector<int> { return {1, 2}; }
struct S { int v = 0; void Set(int x, int y, int z) noexcept { v = x; } };
TEST(Area, Case) { auto f = [](int a, int b, int c, int d, int e, int f) { return a; }; }
}
""")
    assert found["Add"] == {"parameters": 2, "function": 10, "nesting": 3}
    assert found["Thing::Thing"] == {"parameters": 1, "function": 1, "nesting": 0}
    assert found["Make"] == {"parameters": 0, "function": 1, "nesting": 0}
    assert found["Set"]["parameters"] == 3
    assert found["TEST(Area, Case)"]["test function"] == 1
    assert len(found) == 5


@pytest.mark.parametrize(("name", "text", "expected"), [
    ("src__base__a_dot_cc", "\n" * 801, "src/base/a.cc: file 801 (cap 800)"),
    ("src__base__a_dot_h", "\n" * 301, "src/base/a.h: header 301 (cap 300)"),
    ("src__base__a_dot_cc", "int F() {\n" + "\n" * 59 + "}\n", "src/base/a.cc: F: function 61"),
    ("src__base__a_dot_cc", "int F(int a, int b, int c, int d, int e, int f) {}\n",
     "src/base/a.cc: F: parameters 6 (cap 5)"),
    ("src__base__a_dot_cc", "int F() { if (1) { if (1) { if (1) { if (1) {} } } } }\n",
     "src/base/a.cc: F: nesting 4 (cap 3)"),
    ("python__plumbline__a_dot_py", "def f(a, b, c, d, e, f):\n    pass\n",
     "python/plumbline/a.py: f: parameters 6 (cap 5)"),
    ("python__plumbline__pytorch__a_dot_py", "x = 1\n" * 1401,
     "python/plumbline/pytorch: 1401 lines (expected at most 1400)"),
    ("python__plumbline__pytorch__a_dot_py", "open('x')\n",
     "python/plumbline/pytorch/a.py: opens a file"),
])
def test_sizes_breach_is_named(tmp_path, name, text, expected):
    done = run_tool("check_sizes", write(tmp_path, **{name: text}))
    assert done.returncode == 1
    assert expected in done.stdout


def test_sizes_a_small_header_belongs_to_its_only_includer(tmp_path):
    done = run_tool("check_sizes", write(tmp_path, src__base__a_dot_h="\n",
                                         src__base__b_dot_h='#include "base/a.h"\n'))
    assert done.returncode == 1
    assert "src/base/a.h: 1 lines for src/base/b.h alone; merge them" in done.stdout


def test_sizes_a_folder_holds_thirty_units(tmp_path):
    files = {f"src__base__a{i}_dot_cc": "" for i in range(31)}
    done = run_tool("check_sizes", write(tmp_path, **files))
    assert done.returncode == 1 and "src/base: 31 units (at most 30)" in done.stdout


def test_sizes_reason_excuses(tmp_path):
    text = "// One table.\n// Size caps: the table of all dtypes is one list.\n" + "\n" * 600
    done = run_tool("check_sizes", write(tmp_path, src__base__a_dot_cc=text))
    assert done.returncode == 0, done.stdout


# ---- check_docs


def docs(root: Path, *arguments: str, **files: str) -> tuple[int, str]:
    done = run_tool("check_docs", write(root, **files), *arguments)
    return done.returncode, done.stdout


def test_docs_failing_command_is_named(tmp_path):
    text = "# T\n\n```sh\ntrue\n```\n\n```sh\necho before\nfalse\n```\n"
    status, out = docs(tmp_path, README_dot_md=text)
    assert status == 1
    assert "README.md: block 2 (line 7) ended with status 1:\nbefore" in out


def test_docs_blocks_share_one_directory_and_marked_ones_do_not_run(tmp_path):
    text = ("```sh\necho hello > made\n```\n<!-- not run: would fail on purpose -->\n```sh\nfalse\n"
            "```\n```python\nassert open('made').read() == 'hello\\n'\n```\n```\nnot code\n```\n")
    status, out = docs(tmp_path, README_dot_md=text)
    assert status == 0, out


def test_docs_unmarked_reason_does_not_skip(tmp_path):
    status, _ = docs(tmp_path, README_dot_md="<!-- not run: -->\n```sh\nfalse\n```\n")
    assert status == 1


def test_docs_broken_links_are_named(tmp_path):
    text = "[a](docs/a.md) [b](docs/b.md) [c](docs/a.md#the-part) [d](docs/a.md#gone) [w](http://x)"
    status, out = docs(tmp_path, "--links-only", README_dot_md=text,
                       docs__a_dot_md="# The part\n")
    assert status == 1
    assert out == ("README.md: link to docs/b.md: no such file\n"
                   "README.md: link to docs/a.md#gone: no such heading\n")


# ---- bench_compare and run_tests


def test_bench_compare_finds_a_slowdown_and_ignores_noise(tmp_path):
    def result(case: str, value: float, spread: float) -> str:
        return json.dumps({"benchmark": "b", "case": case, "median": value, "mad": spread}) + "\n"

    write(tmp_path, old=result("slow", 100, 1) + result("noisy", 100, 9) + result("gone", 1, 0),
          new=result("slow", 110, 1) + result("noisy", 110, 9))
    done = run_tool("bench_compare", tmp_path / "old", tmp_path / "new")
    assert done.returncode == 1
    assert "slow" in done.stdout and "1.100" in done.stdout
    assert not [line for line in done.stdout.splitlines() if "noisy" in line and "SLOWER" in line]
    assert "gone" in done.stdout


def test_run_tests_counts_reports(tmp_path):
    run_tests = load("run_tests")
    write(tmp_path, junit_dot_xml='<testsuites><testsuite><testcase name="a"/><testcase name="b">'
          '<failure/></testcase><testcase name="c"><skipped/></testcase></testsuite></testsuites>',
          gtest_dot_json=json.dumps({"testsuites": [{"testsuite": [
              {"result": "COMPLETED"}, {"result": "SKIPPED"},
              {"result": "COMPLETED", "failures": [{"failure": "x"}]}]}]}))
    assert str(run_tests.count_junit(tmp_path / "junit.xml")) == "1 passed, 1 failed, 1 skipped"
    assert str(run_tests.count_gtest(tmp_path / "gtest.json")) == "1 passed, 1 failed, 1 skipped"


def test_run_tests_waits_for_what_it_compiles_beside(tmp_path, monkeypatch):
    run_tests = load("run_tests")
    monkeypatch.setattr(run_tests, "BUILD", tmp_path)
    with run_tests.compiling("no-such"):
        pass
    assert "No such preset" in (tmp_path / "no-such.log").read_text()


# ---- CMakeLists.txt

@pytest.mark.parametrize("options, programs, modules", [
    (["-DSKBUILD=ON", "-DSKBUILD_SCRIPTS_DIR=/scripts", "-DSKBUILD_DATA_DIR=/data"],
     "/scripts", "/data/lib/plumbline"),
    ([], "${CMAKE_INSTALL_PREFIX}/bin", "${CMAKE_INSTALL_PREFIX}/lib/plumbline")])
def test_programs_are_installed_once(options: list[str], programs: str, modules: str,
                                     tmp_path: Path) -> None:
    """A wheel that is built from here held the program twice."""
    subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, *options], check=True,
                   capture_output=True)
    places = [re.match(r'.*DESTINATION "(.*)" TYPE .*/cli/plumb(?:_([a-z0-9]+)-.*)?"\)$', line)
              for file in tmp_path.rglob("cmake_install.cmake")
              for line in file.read_text().splitlines() if "file(INSTALL DESTINATION" in line]
    installs = [(place[2] or "plumb", place[1]) for place in places if place]
    assert sorted(installs) == [("hdf5", modules), ("plumb", programs), ("view", modules)]
