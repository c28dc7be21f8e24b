"""What does not need a library does not load it: only work on .h5 files loads the module that needs
HDF5, only `plumb view` the one that needs the HTTP library, and what is loaded into a training
brings nothing of the analysis."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from recording import PLUMB

import plumbline

H5_LINES = {
    "h5copy": (["h5copy", "-i", "a.h5", "-o", "b.h5", "-s", "/relu", "-d", "/relu"], 4),
    "compare": (["compare", "a.h5", "a.h5"], 4),
    "msaccucmp compare": (["msaccucmp", "compare", "-m", "a.h5", "-g", "a.h5"], 30),
}


def needed(program: Path) -> str:
    return subprocess.run(["ldd", str(program)], check=True, capture_output=True, text=True).stdout


def test_the_program_does_not_load_the_library() -> None:
    assert "libsqlite3" in needed(PLUMB)
    for library in ("hdf5", "httplib", "ssl", "brotli"):
        assert library not in needed(PLUMB), library


@pytest.mark.parametrize("pattern", ["_core*.so", "libplumbline_receiver.so"])
def test_what_a_training_loads_brings_no_library_of_the_analysis(pattern: str) -> None:
    (module,) = Path(plumbline.__file__).parent.glob(pattern)
    assert "libisal" in needed(module)
    for library in ("sqlite3", "expat", "yaml", "hdf5", "edit"):
        assert f"lib{library}" not in needed(module), library


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The program without its module, beside a file that starts as HDF5 files do."""
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    return Path(shutil.copy(str(PLUMB), tmp_path / "plumb"))


@pytest.mark.parametrize("name", H5_LINES)
def test_a_missing_module_is_one_clear_error(name: str, alone: Path) -> None:
    words, status = H5_LINES[name]
    done = subprocess.run([alone, *words], cwd=alone.parent, capture_output=True, text=True)
    assert done.returncode == status and not done.stdout, done.stderr
    (line,) = done.stderr.splitlines()
    program = name if name.startswith("msaccucmp") else f"plumb {name}"
    assert line.startswith(f"{program}: .h5 files: the part of plumb that reads them cannot be ")
    assert "(plumb_hdf5-" in line and line.endswith("Install plumbline and the HDF5 library again")
    assert sorted(path.name for path in alone.parent.iterdir()) == ["a.h5", "plumb"]


def test_the_page_without_its_module_is_one_clear_error(alone: Path) -> None:
    (alone.parent / "dump.json").write_text('{"task": "statistics", "data": {}}')
    done = subprocess.run([alone, "view", alone.parent], capture_output=True, text=True)
    assert done.returncode == 4 and not done.stdout, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("plumb view: the page: the part of plumb that serves it cannot be ")
    assert "(plumb_view-" in line and line.endswith("the library cpp-httplib again")


def test_help_needs_no_module(alone: Path) -> None:
    done = subprocess.run([alone, "h5copy", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "Copy operators of an HDF5 dump" in done.stdout
