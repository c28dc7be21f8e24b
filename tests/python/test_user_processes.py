"""-c: what functions of the user do to the interpreter that runs them, and to plumb."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from msaccucmp_cases import PLUMB, normal, rows_of, run
from operator_dumps import dump_name, write_dump
from test_user_functions import functions

COUNT = 3
START = "import os, signal, subprocess, sys, time\nimport numpy as np\n"


def dumps(directory: Path) -> list[str | Path]:
    """Two recordings of three operators; the words for compare."""
    for side in ("mine", "golden"):
        for i in range(COUNT):
            write_dump(directory / side / dump_name("Add", f"op{i}", i), [],
                       [(normal((4, i + 2)), "ND")])
    return ["compare", "-m", directory / "mine", "-g", directory / "golden", "-out", directory]


def algorithm(directory: Path, body: str) -> Path:
    """An algorithm `Own` of these lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return functions(directory / "own", algorithm__alg_Own=f"{START}def compare(x, y, args):\n"
                     f"{lines}")


def values(directory: Path, body: str) -> list[str]:
    """What the algorithm gives for the three operators."""
    run(*dumps(directory), "-c", algorithm(directory, body), "-alg", "Own")
    return [row["Own"] for row in rows_of(directory)]


SIZES = [str(4 * (i + 2)) for i in range(COUNT)]


@pytest.mark.parametrize("body", [
    "[os.close(n) for n in (3, 4, 5) if os.path.exists(f'/proc/self/fd/{n}')]",
    "sys.stdout.write('[\"1\", \"\"]\\n'); os.write(1, b'[\"1\", \"\"]\\n')",
    "os.chdir('/')",
    "np.seterr(all='raise')",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "os.fork()",  # both go on: only one may answer
    "if os.fork() == 0: time.sleep(60)",
    "subprocess.Popen(['sleep', '60'])",
    "subprocess.Popen(['sleep', '60'], start_new_session=True, stderr=subprocess.DEVNULL,"
    " stdout=subprocess.DEVNULL, close_fds=False)",
    "x[:] = 0; y[:] = 0",
], ids=["close", "print", "chdir", "seterr", "ignore", "fork", "sleeping-fork", "program",
        "other-session", "in-place"])
def test_what_a_function_does_harms_no_other_call(tmp_path: Path, body: str) -> None:
    """Every call has its own answer, and plumb ends when it is done."""
    start = time.monotonic()
    check = "assert os.getcwd() != '/' and np.geterr()['over'] != 'raise'\n"
    assert values(tmp_path, f"{check}{body}\nreturn str(x.size), ''") == SIZES
    assert time.monotonic() - start < 30


def test_relative_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that changes the directory finds its helpers, and the files by their names."""
    dumps(tmp_path)
    own = algorithm(tmp_path, "import helper\nsize = os.path.getsize(args.my_output_dump_file)\n"
                    "os.chdir('/')\nimport other\nreturn str(size > 0), ''")
    functions(own, helper="", other="")
    monkeypatch.chdir(tmp_path)
    run("compare", "-m", "mine", "-g", "golden", "-c", "own", "-alg", "Own")
    assert [row["Own"] for row in rows_of(tmp_path)] == ["True"] * COUNT


def alive(marker: str) -> list[str]:
    """Processes whose command line has this text."""
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            words = (directory / "cmdline").read_bytes()
            state = (directory / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in words and state != "Z":
            found.append(directory.name)
    return found


def wait_until_none(marker: str) -> None:
    """Waits up to ten seconds; what is left then fails the test and is ended."""
    end = time.monotonic() + 10
    while alive(marker) and time.monotonic() < end:
        time.sleep(0.05)
    left = alive(marker)
    for number in left:
        os.kill(int(number), signal.SIGKILL)
    assert not left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_hung_function_ends_with_plumb(tmp_path: Path, number: signal.Signals) -> None:
    """The interpreter, deaf to signals, and what it started; nobody is left of it."""
    seconds = str(70000 + os.getpid() % 10000)
    started = "" if number == signal.SIGKILL else f"subprocess.Popen(['sleep', '{seconds}'])\n"
    own = algorithm(tmp_path, "for one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\n"
                    f"{started}open({str(tmp_path / 'hangs')!r}, 'w').close()\nwhile True: pass")
    words = [PLUMB, "msaccucmp", *map(str, dumps(tmp_path)), "-c", str(own)]
    # Programs in the background of a script inherit that SIGINT is ignored.
    plumb = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)
                             if number != signal.SIGKILL else None)
    end = time.monotonic() + 30
    try:
        while not (tmp_path / "hangs").exists() and time.monotonic() < end:
            time.sleep(0.02)
        assert len(alive(str(own))) >= 2
        plumb.send_signal(number)
        plumb.communicate(timeout=10)
    finally:
        plumb.kill()
    assert plumb.returncode == -number
    wait_until_none(str(own))
    if started:
        wait_until_none(seconds)


def test_a_program_that_a_function_leaves_ends(tmp_path: Path) -> None:
    """At the end of the run, and when the function ends the interpreter."""
    seconds = str(80000 + os.getpid() % 10000)
    body = (f"subprocess.Popen(['sleep', '{seconds}'])\n"
            "if x.size == 8: os._exit(3)\nreturn str(x.size), ''")
    assert values(tmp_path, body) == ["NaN", *SIZES[1:]]
    assert not alive(seconds)


def test_closed_channel(tmp_path: Path) -> None:
    """All descriptors closed: that call fails, and those behind it are run again."""
    own = algorithm(tmp_path, "if x.size == 8:\n    os.closerange(3, 1000)\n    time.sleep(1000)\n"
                    "return str(x.size), ''")
    start = time.monotonic()
    run(*dumps(tmp_path), "-c", own, "-alg", "Own")
    rows = rows_of(tmp_path)
    assert [row["Own"] for row in rows] == ["NaN", *SIZES[1:]]
    assert "ended with a closed channel" in rows[0]["CompareFailReason"]
    assert time.monotonic() - start < 30


def test_very_large_results(tmp_path: Path) -> None:
    """More than 4 GiB, of which almost nothing is wanted; NumPy's memory is small."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    file = tmp_path / "dump" / dump_name("Add", "a", 1)
    write_dump(file, [], [(x, "NC1HWC0" if x.ndim == 4 else "ND")])
    own = functions(tmp_path / "own", format_convert__convert_ND_to_NCHW="""
import numpy as np
def convert(shape_from, shape_to, array):
    wide = np.zeros((2, 1), np.int8)
    wide[1] = 5
    return np.broadcast_to(wide, (2, (1 << 31) + 1))
""")
    done = subprocess.run([PLUMB, "convert", "-d", file, "-out", tmp_path, "-f", "NCHW", "-s",
                           "2,3", "-c", own], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.npy")
    assert np.load(path).tolist() == [[0, 0, 0], [5, 5, 5]]
