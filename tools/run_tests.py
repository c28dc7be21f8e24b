"""Runs the test suites one after the other and adds up their counts.

The last line is `N passed, N failed, N skipped`, summed over unit tests, golden cases, Python
tests, tests of the page and structure checks; it is also written to build/test-summary.txt. Exit
status 1 if anything failed or a suite that should exist ran no test.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PYTEST_RAN_NOTHING = 5
PYTEST_PROCESSES = 5
# Of the processes that share the cores: a second thread of each costs ten times what it computes,
# because it spins while it waits for the first. One group keeps the threads that a user has.
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | PASSIVE
THREADED_GROUP = "python-2"
MINDSPORE_PYTHON = BUILD / "mindspore" / "bin" / "python"  # tools/bootstrap.sh mindspore
FUZZ_COMPILER = "clang++-14"
# Longer for every reader of what users hand in than for what only we write.
FUZZ_S, FUZZ_SHORT_S = 20, 10
FUZZ_SHORT = ("acl_dump", "atb_bin", "compare", "config_pack", "csv", "fusion_rule", "graph_dump",
              "journal", "kernels", "online_frame", "packed_value", "view_files", "view_query",
              "view_store", "xlsx")
FUZZ_DATA = {"config_pack": ("config_packs",), "npy": ("npy",), "torch_pt": ("torch_pt",),
             "torch_archive": ("torch_pt", "checkpoints"), "safetensors": ("checkpoints",)}
FUZZ_LOG_CHARACTERS = 6000
SUMMARY_LINE = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")


@dataclass
class Counts:
    """How many tests ended which way."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run(command: list[str], **environment: str) -> int:
    """Runs `command` in the repository root; its output goes to the terminal."""
    print("$", " ".join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode


def count_gtest(report: Path) -> Counts:
    """Counts of one gtest JSON report."""
    counts = Counts()
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            if case.get("failures"):
                counts.failed += 1
            elif case.get("result") in ("SKIPPED", "SUPPRESSED"):
                counts.skipped += 1
            else:
                counts.passed += 1
    return counts


def count_junit(report: Path) -> Counts:
    """Counts of one JUnit XML report, as pytest and ctest write it."""
    counts = Counts()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
        elif case.find("skipped") is not None:
            counts.skipped += 1
        else:
            counts.passed += 1
    return counts


def unit_tests(preset: str) -> Counts:
    """Builds a CMake preset and runs its unit tests."""
    if run(["cmake", "--preset", preset, "--log-level=WARNING"]) != 0:
        return Counts(failed=1)
    if run(["cmake", "--build", "--preset", preset]) != 0:
        return Counts(failed=1)
    reports = BUILD / preset / "reports"
    reports.mkdir(exist_ok=True)
    for old in reports.glob("*"):
        old.unlink()
    junit = reports / "ctest.xml"
    jobs = os.environ.get("JOBS") or str(os.cpu_count() or 1)
    status = run(["ctest", "--preset", preset, "--parallel", jobs, "--output-junit", str(junit)],
                 GTEST_OUTPUT=f"json:{reports}/")
    if not junit.exists():
        return Counts(failed=1)
    counts = Counts()
    # A test program that is not gtest, or that crashed before its report, counts as one test.
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        report = reports / f"{case.get('name')}_test.json"
        crashed = case.find("failure") is not None
        if report.exists():
            of_program = count_gtest(report)
            if crashed and of_program.failed == 0:
                of_program.failed = 1
            counts.add(of_program)
        elif crashed:
            counts.failed += 1
        else:
            counts.passed += 1
    if status != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


@contextmanager
def compiling(preset: str) -> Iterator[subprocess.Popen[bytes]]:
    """Compiles a preset in the processor time that is left over; nobody looks at the outcome, since
    unit_tests() builds what is missing and tells what fails."""
    BUILD.mkdir(exist_ok=True)
    script = 'cmake --preset "$0" && cmake --build --preset "$0"'
    with (BUILD / f"{preset}.log").open("w") as log, subprocess.Popen(
            ["nice", "-n", "19", "sh", "-c", script, preset], cwd=ROOT, stdout=log,
            stderr=subprocess.STDOUT) as work:
        yield work


def pytest_groups() -> dict[str, list[str]]:
    """Name -> files of the pytest processes, the long ones first."""
    folder = ROOT / "tests" / "python"
    files = sorted(str(path.relative_to(ROOT)) for path in folder.glob("test_*.py"))
    groups = {"compat": ["tests/compat"], "mindspore": ["tests/mindspore"]}
    groups |= {f"python-{i + 1}": files[i::6] for i in range(6)}
    return groups | {"faults": ["tests/faults"]}


def pytest_group(name: str, files: list[str], quick: bool) -> Counts:
    """Runs one pytest process; prints its output when it has ended."""
    python = MINDSPORE_PYTHON if name == "mindspore" else Path(sys.executable)
    if not python.exists():
        print(f"{name}: {python} is missing, nothing was run; run tools/bootstrap.sh {name}")
        return Counts(skipped=1) if quick else Counts(failed=1)
    report = BUILD / f"pytest-{name}.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "--durations=10", f"--junitxml={report}"]
    if quick:
        command += ["-m", "not slow and not upstream"]
    print("$", *command, files[0], "..." if len(files) > 1 else "", flush=True)
    log = BUILD / f"pytest-{name}.log"
    threads = PASSIVE if name == THREADED_GROUP else ONE_THREAD
    with log.open("w") as out:
        status = subprocess.run([*command, *files], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                                env=threads | os.environ, check=False).returncode
    print(f"\n--- {report.stem}\n{log.read_text(errors='replace')}", flush=True)
    counts = count_junit(report) if report.exists() else Counts(failed=1)
    if status not in (0, PYTEST_RAN_NOTHING) and counts.failed == 0:
        counts.failed = 1
    return counts


def python_tests(quick: bool) -> Counts:
    """Runs pytest over tests/python, tests/compat, tests/faults and tests/mindspore, several
    processes at once: much of the time they wait."""
    total = Counts()
    with ThreadPoolExecutor(PYTEST_PROCESSES) as pool:
        for counts in pool.map(lambda group: pytest_group(*group, quick), pytest_groups().items()):
            total.add(counts)
    return total


def web_tests() -> Counts:
    """The page: the compiler's check of types is one test, then its unit tests."""
    if not (ROOT / "web/node_modules").is_dir():
        print("web: web/node_modules is missing, nothing was run; run tools/bootstrap.sh web")
        return Counts(failed=1)
    typed = run(["npm", "--prefix", "web", "run", "--silent", "check"]) == 0
    command = ["node", "web/tools/test.mjs"]
    print("$", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    found = {name: int(count)
             for name, count in re.findall(r"^# (pass|fail|skipped) (\d+)$", done.stdout, re.M)}
    if done.returncode != 0:
        print(done.stdout, end="", flush=True)
    counts = Counts(found.get("pass", 0), found.get("fail", 0), found.get("skipped", 0))
    if done.returncode != 0 and counts.failed == 0:
        counts.failed = 1
    counts.add(Counts(passed=1) if typed else Counts(failed=1))
    return counts


def page_tests() -> Counts:
    """The viewer in a browser, over recordings that are made for it."""
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for needed in (chromium, "build/web/dist/index.html", "web/node_modules/playwright-core"):
        if not (ROOT / needed).exists():
            print(f"page: {needed} is missing, nothing was run")
            return Counts(skipped=1)
    plumb = str(Path(sys.executable).parent / "plumb")
    os.sync()  # or the server waits for what earlier tests wrote as soon as it makes a file durable
    with tempfile.TemporaryDirectory() as folder:
        if run([sys.executable, "tests/page/make_recordings.py", folder], PLUMB=plumb) != 0:
            return Counts(failed=1)
        command = ["node", "tests/page/tasks.mjs", folder, plumb]
        print("$", *command, flush=True)
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHON": sys.executable},
                              check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    print(done.stdout, end="", flush=True)
    found = SUMMARY_LINE.findall(done.stdout)
    counts = Counts(*(int(number) for number in found[-1])) if found else Counts(failed=1)
    if done.returncode != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def golden_tests() -> Counts:
    """Runs tests/golden/run.py, which ends with a summary line of the same form as ours."""
    command = [sys.executable, "tests/golden/run.py"]
    print("$", " ".join(command), flush=True)
    plumb = str(Path(sys.executable).parent / "plumb")
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PLUMB": plumb}, check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="", flush=True)
    found = SUMMARY_LINE.findall(done.stdout)
    if not found:
        return Counts(failed=1)
    counts = Counts(*(int(number) for number in found[-1]))
    if done.returncode != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def fuzz_directories(target: str) -> list[str]:
    """Where a fuzz target starts from; the first one takes what it finds."""
    found = BUILD / "corpus" / target
    found.mkdir(parents=True, exist_ok=True)
    seeds = [ROOT / "fuzz" / "corpus" / target,
             *(ROOT / "tests" / "data" / name for name in FUZZ_DATA.get(target, ()))]
    return [str(found), *(str(path) for path in seeds if path.exists())]


def fuzz_seconds(target: str) -> int:
    """How long a fuzz target runs."""
    return FUZZ_SHORT_S if target in FUZZ_SHORT else FUZZ_S


def fuzz_target(target: str) -> bool:
    """Runs one fuzz target over its corpus and then with mutations; true without a finding."""
    seconds = fuzz_seconds(target)
    program = BUILD / "fuzz" / "fuzz" / f"fuzz_{target}"
    log = BUILD / f"fuzz-{target}.log"
    # One input may take at most 5 s and 2 GiB: hanging and hoarding are findings too.
    command = [str(program), f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=2048",
               "-max_len=65536", "-seed=1", "-print_final_stats=1",
               f"-artifact_prefix={BUILD}/{target}-", *fuzz_directories(target)]
    with log.open("w") as out:
        try:
            status = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                                    check=False, timeout=seconds + 120).returncode
        except subprocess.TimeoutExpired:
            status = -1
    text = log.read_text(errors="replace")
    units = re.search(r"number_of_executed_units: (\d+)", text)
    print(f"{target:14} {seconds} s, {units.group(1) if units else 'unknown'} inputs: "
          f"{'nothing found' if status == 0 else 'FINDING'}", flush=True)
    if status != 0:
        print(text[-FUZZ_LOG_CHARACTERS:], flush=True)
    return status == 0


def fuzz_tests() -> Counts:
    """Builds the fuzz targets and lets each run for a while; each is one test."""
    if not can_fuzz():
        print(f"fuzz: {FUZZ_COMPILER} with its fuzzer library is not installed: nothing was run")
        return Counts(skipped=1)
    if run(["cmake", "--preset", "fuzz", "--log-level=WARNING"]) != 0:
        return Counts(failed=1)
    if run(["cmake", "--build", "--preset", "fuzz", "--target", "fuzz_targets"]) != 0:
        return Counts(failed=1)
    targets = sorted(path.stem.removeprefix("fuzz_") for path in (ROOT / "fuzz").glob("fuzz_*.cc"))
    targets.sort(key=fuzz_seconds, reverse=True)  # the long ones first: no core waits at the end
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        good = list(pool.map(fuzz_target, targets))
    return Counts(passed=sum(good), failed=len(good) - sum(good))


@functools.cache
def can_fuzz() -> bool:
    """Whether the compiler is there with the library that drives fuzz targets."""
    if shutil.which(FUZZ_COMPILER) is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "a.cc")
        source.write_text("#include <cstddef>\n#include <cstdint>\n"
                          'extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) '
                          "{ return 0; }\n")
        return subprocess.run([FUZZ_COMPILER, "-fsanitize=fuzzer,address,undefined", str(source),
                               "-o", str(Path(folder, "a"))], capture_output=True,
                              check=False).returncode == 0


def sanitizer_preset() -> str:
    """One sanitizer build for unit tests and fuzz targets where the fuzzer can be built."""
    return "fuzz" if can_fuzz() else "asan"


def checks() -> Counts:
    """Structure and lint; each program is one test."""
    commands = [
        ["tools/check_layers.py"],
        ["tools/check_sizes.py"],
        ["tools/check_docs.py"],
        ["-m", "ruff", "check", "-q", "."],
    ]
    if (ROOT / "python/plumbline").is_dir():
        commands.append(["-m", "mypy", "--no-error-summary", "python/plumbline"])
    counts = Counts()
    for command in commands:
        failed = run([sys.executable, *command]) != 0
        counts.add(Counts(failed=1) if failed else Counts(passed=1))
    return counts


def suites(quick: bool) -> dict[str, Callable[[], Counts]]:
    """The suites by name, in the order they run: quick answers first."""
    table: dict[str, Callable[[], Counts]] = {"checks": checks}
    table["web"] = web_tests
    table["release"] = lambda: unit_tests("release")
    if (ROOT / "tests/golden/run.py").exists():
        table["golden"] = golden_tests
    table["python"] = lambda: python_tests(quick)
    table["page"] = page_tests
    if not quick:
        table["asan"] = lambda: unit_tests(sanitizer_preset())
        table["fuzz"] = fuzz_tests
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no sanitizers, no slow tests")
    parser.add_argument("--only", action="append", help="run only this suite (may be repeated)")
    args = parser.parse_args()
    table = suites(args.quick)
    if args.only:
        table["clang"] = lambda: unit_tests("clang")
        unknown = set(args.only) - set(table)
        if unknown:
            parser.error(f"unknown suite {sorted(unknown)[0]!r} (expected one of {list(table)})")
        table = {name: table[name] for name in args.only}
    total, lines = Counts(), []
    # What a shell starts in the background ignores interrupts, and so would what tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The suites before it leave processor time: checks one core, Python tests gaps.
    is_beside = "asan" in table and next(iter(table)) != "asan"
    with compiling(sanitizer_preset()) if is_beside else nullcontext() as work:
        for name, suite in table.items():
            print(f"\n=== {name}", flush=True)
            began = time.monotonic()
            if name == "asan" and work:
                work.wait()
            counts = suite()
            if counts.passed + counts.failed == 0 and name not in ("fuzz", "page"):
                counts.failed = 1  # a suite that ran nothing proves nothing
            lines.append(f"{name:8} {counts} ({time.monotonic() - began:.0f} s)")
            total.add(counts)
    print("\n" + "\n".join(lines))
    BUILD.mkdir(exist_ok=True)
    (BUILD / "test-summary.txt").write_text(f"{total}\n")
    print(total, flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
