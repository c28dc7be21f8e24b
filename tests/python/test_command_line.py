"""The command line as one thing: every help page, wrong use, completion in real shells, manual
pages, and what is said about recordings that are not two runs of the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from recording import PLUMB


def run(*words: object, width: int = 80) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PLUMB, *map(str, words)], capture_output=True, text=True, check=False,
                          env=os.environ | {"COLUMNS": str(width)}, timeout=60)


def commands_on(page: str) -> list[str]:
    """The names below "Commands:"."""
    section = page.partition("\nCommands:\n")[2].partition("\n\n")[0]
    return [line.split()[0] for line in section.split("\n") if line[:3].strip() and line[2] != " "]


def pages(words: tuple[str, ...] = (), width: int = 80) -> Iterator[tuple[tuple[str, ...], str]]:
    done = run(*words, "--help", width=width)
    assert done.returncode == 0, (words, done.stderr)
    yield words, done.stdout
    for name in commands_on(done.stdout):
        yield from pages((*words, name), width)


def test_every_help_page() -> None:
    seen = 0
    for words, page in pages():
        seen += 1
        assert "Usage: " in page and "\nExamples:\n" in page and "\nExit status:\n" in page, words
        assert run("help", *words).stdout == page
    assert seen > 30


@pytest.mark.parametrize("width", [60, 100])
def test_pages_are_as_wide_as_the_terminal(width: int) -> None:
    for words, page in pages(width=width):
        for line in page.split("\n"):
            assert len(line) <= width or not line.strip().count(" "), (words, line)


@pytest.mark.parametrize(("words", "said"), [
    (("compre", "a", "b"), "compre: no such command. Did you mean compare?"),
    (("compare", "--fuzy_match", "a", "b"), "--fuzy_match: no such option. Did you mean --fuzzy_"),
    (("dump-config", "chck", "x"), "chck: no such command. Did you mean check?"),
    (("bogus", "--help"), "bogus: no such command."),
    (("help", "comprae"), "Did you mean compare?"),
    (("msaccucmp", "comprae"), "Did you mean compare?"),
    (("msprobe", "comprae"), "Did you mean compare?"),
    (("parse", "cn", "--my_dmp_path", "x"), "Did you mean --my_dump_path?")])
def test_wrong_words_are_named(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_version() -> None:
    assert run("-V").stdout == run("--version").stdout == run("msprobe", "-V").stdout != ""


def write_dump(directory: Path, names: list[str], level: str = "L1",
               value: float = 1.0) -> Path:
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": value,
              "Min": value, "Mean": value, "Norm": 2.0 * value, "requires_grad": False}
    directory.mkdir(parents=True)
    (directory / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": level, "framework": "pytorch", "dump_data_dir": None,
         "data": {name: {"input_args": [tensor], "input_kwargs": {}, "output": [tensor]}
                  for name in names}}))
    return directory


def said_of(target: Path, golden: Path, out: Path) -> str:
    return run("compare", target, golden, "-o", out, "--format", "csv").stdout


def test_unlike_recordings_have_a_line(tmp_path: Path) -> None:
    names = [f"Torch.f{i}.0.forward" for i in range(8)]
    others = [names[0], *(f"Functional.g{i}.0.forward" for i in range(9))]
    good = write_dump(tmp_path / "a" / "step0" / "rank0", names)
    out = tmp_path / "out"
    same = write_dump(tmp_path / "b" / "step0" / "rank0", names)
    assert "warning" not in said_of(good, same, out)
    said = said_of(good, write_dump(tmp_path / "c" / "step3" / "rank0", names), out)
    assert "warning: target is step 0, golden is step 3" in said
    said = said_of(good, write_dump(tmp_path / "d", names, "L0"), out)
    assert "warning: target was recorded at level L1, golden at level L0" in said
    said = said_of(good, write_dump(tmp_path / "e", others, value=3.0), out)
    assert "warning: 1 of 10 calls paired: are these the same model?" in said
    said = said_of(write_dump(tmp_path / "golden", names), write_dump(tmp_path / "target", names),
                   out)
    assert "are they swapped?" in said


def test_a_mistyped_directory(tmp_path: Path) -> None:
    good = write_dump(tmp_path / "runs" / "good", ["Torch.f.0.forward"])
    done = run("compare", tmp_path / "runs" / "godo", good)
    assert done.returncode == 3
    assert f"Did you mean {good}?" in done.stderr


def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "plumb.bash"
    script.write_text(run("completion", "bash").stdout)
    (tmp_path / "runs").mkdir()
    for line, wanted in (("plumb compar", ["compare"]), ("plumb compare --mode ", ["auto", "atb"]),
                         ("plumb compare --fuzz", ["--fuzzy_match"]),
                         ("plumb compare ru", ["runs"]),
                         ("plumb dump-config check-", ["check-acl"])):
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        done = subprocess.run(
            ["bash", "--norc", "-c", f"source {script}; COMP_WORDS=({quoted}); "
             f"COMP_CWORD={len(words) - 1}; _plumb; printf '%s\\n' \"${{COMPREPLY[@]}}\""],
            capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60)
        assert set(wanted) <= set(done.stdout.split()), (line, done.stdout, done.stderr)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_the_script(tmp_path: Path, shell: str) -> None:
    script = tmp_path / f"plumb.{shell}"
    script.write_text(run("completion", shell).stdout)
    assert "dump-config" in script.read_text()
    if shutil.which(shell) is None:
        print(f"{shell} is not installed: its script is not run")
        return
    subprocess.run([shell, "-n", script], check=True, timeout=60)
    if shell == "fish":
        done = subprocess.run([shell, "-c", f"source {script}; complete -C 'plumb compar'"],
                              capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.startswith("compare\t") and not done.stderr


def test_manual_pages(tmp_path: Path) -> None:
    assert run("man-pages", tmp_path / "man").returncode == 0
    names = {path.name for path in (tmp_path / "man").iterdir()}
    assert {"plumb.1", "plumb-compare.1", "plumb-dump-config-check.1", "plumb-parse-cn.1"} <= names
    text = (tmp_path / "man" / "plumb-compare.1").read_text()
    for section in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", '"EXIT STATUS"'):
        assert f".SH {section.strip(chr(34))}\n" in text
