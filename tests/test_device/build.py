"""Builds the test device: `python tests/test_device/build.py`, with the Python that has torch.

The result is a folder for PYTHONPATH, build/test_device: the package plumbline_test_device with
its library, and the metadata by which `import torch` finds it. A second run compares a hash of the
sources, of PyTorch's version and of the compiler, and builds nothing. CXX names the compiler, JOBS
how many may run; ccache is used where it is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "test_device"
TARGET = ROOT / "build" / "test_device"
PACKAGE = "plumbline_test_device"
LIBRARY = f"lib{PACKAGE}.so"
FLAGS = ("-std=c++20", "-fPIC", "-Wall", "-Wextra")
# Optimised where loops run; the registrations of autocast are templates without any.
UNITS = {"all.cc": "-O1", "autocast.cc": "-O0"}


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def fail(text: str) -> None:
    print(f"setup: error: test device: {text}", file=sys.stderr)
    sys.exit(3)


def torch_folder() -> Path:
    """Where PyTorch is installed; it is not imported, which would load an older test device."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        fail(f"{sys.executable} has no torch; run this with the Python of .venv")
    folder = Path(spec.origin).parent
    if not (folder / "include" / "ATen" / "Functions.h").is_file():
        fail(f"{folder}/include: the C++ headers of torch are missing; install the whole wheel")
    return folder


def compiler() -> list[str]:
    name = os.environ.get("CXX", "c++")
    if shutil.which(name) is None:
        fail(f"{name}: no such compiler; set CXX or install g++")
    return [name]


def inputs_hash(cxx: list[str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".cc", ".h", ".py"):
            digest.update(path.relative_to(SOURCE).as_posix().encode() + path.read_bytes())
    digest.update(importlib.metadata.version("torch").encode())
    digest.update(subprocess.run([*cxx, "--version"], capture_output=True, check=True).stdout)
    digest.update(str((sys.version_info[:2], FLAGS, UNITS)).encode())
    return digest.hexdigest()


def run_together(commands: list[list[str]], jobs: int) -> None:
    """Runs the compiler calls, at most `jobs` at a time; ends the program if one fails."""
    waiting = list(commands)
    running: list[tuple[list[str], subprocess.Popen[str]]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            command = waiting.pop(0)
            running.append((command, subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
        command, process = running.pop(0)
        output = process.communicate()[0]
        if process.returncode != 0:
            for _, other in running:
                other.kill()
            first = max(0, output.find("error"))
            print(output[max(0, first - 400) : first + 4000], file=sys.stderr)
            fail(f"this command failed with status {process.returncode}:\n  {' '.join(command)}")


def compile_library(torch: Path, cxx: list[str]) -> None:
    objects = TARGET / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    cache = ["ccache"] if shutil.which("ccache") else []
    include = torch / "include"
    includes = ["-isystem", str(include), "-isystem", str(include / "torch/csrc/api/include")]
    compiled = {source: str(objects / source.replace(".cc", ".o")) for source in UNITS}
    jobs = max(1, int(os.environ.get("JOBS") or os.cpu_count() or 1))
    run_together([[*cache, *cxx, *FLAGS, level, *includes, "-c", str(SOURCE / source), "-o",
                   compiled[source]] for source, level in UNITS.items()], jobs)
    libraries = ["-ltorch", "-ltorch_cpu", "-lc10"]
    run_together([[*cxx, "-shared", "-o", str(TARGET / PACKAGE / LIBRARY), *compiled.values(),
                   "-L", str(torch / "lib"), *libraries, f"-Wl,-rpath,{torch / 'lib'}"]], 1)


def write_package() -> None:
    """The Python files beside the library, and the metadata with the entry point."""
    for path in sorted((SOURCE / PACKAGE).glob("*.py")):
        shutil.copyfile(path, TARGET / PACKAGE / path.name)
    metadata = TARGET / f"{PACKAGE}-1.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        f"[torch.backends]\ntestdev = {PACKAGE}.backend:load\n")


def main() -> None:
    TARGET.parent.mkdir(exist_ok=True)
    with (TARGET.parent / "test_device.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may find it missing at once
        build_if_stale()


def build_if_stale() -> None:
    torch, cxx = torch_folder(), compiler()
    stamp = TARGET / "stamp"
    wanted = inputs_hash(cxx)
    if stamp.is_file() and stamp.read_text() == wanted:
        say("test device: up to date")
        return
    say("test device: building (half a minute)")
    shutil.rmtree(TARGET, ignore_errors=True)
    (TARGET / PACKAGE).mkdir(parents=True)
    compile_library(torch, cxx)
    write_package()
    stamp.write_text(wanted)


if __name__ == "__main__":
    main()
