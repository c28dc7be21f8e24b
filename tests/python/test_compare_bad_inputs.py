"""Bad input of `plumb compare`: one line that names it, the right status, and no file anywhere.

The rows are those of the second table of the acceptance ideas for comparing
(docs/design/acceptance.md). Every case lists the working directory before and after.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

NOBODY = 65534
USAGE, MISSING, UNSUPPORTED, DAMAGED, WRITING = 2, 3, 4, 5, 6
FORMATS = "xlsx csv json jsonl html sqlite junit sarif".split()


def listing(folder: Path) -> list[tuple[str, int]]:
    """Every path below `folder`, with its size."""
    return sorted((str(path.relative_to(folder)), path.lstat().st_size if path.is_file() else -1)
                  for path in folder.rglob("*"))


def plumb(folder: Path, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PLUMB), *map(str, words)], cwd=folder, text=True,
                          capture_output=True, timeout=60, check=False, **options)


def refuses(folder: Path, status: int, texts: list[str], *words: Any, **options: Any) -> None:
    """The command ends with `status` and one line that holds `texts`, and leaves no trace."""
    before = listing(folder)
    done = plumb(folder, *words, **options)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, done.stderr
    for text in texts:
        assert text in done.stderr, (text, done.stderr)
    assert listing(folder) == before


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A directory with the sound recordings `target` and `golden`."""
    for name in ("target", "golden"):
        make_dumps.sound(str(tmp_path / name))
    return tmp_path


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes a JSON file in place."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


# ---- compare.json and the paths

SIDES = {"npu_path": "target/dump.json", "bench_path": "golden/dump.json"}
REQUESTS = {
    "no_target": ({"bench_path": "golden/dump.json"}, USAGE, "npu_path"),
    "no_golden": ({"npu_path": "target/dump.json"}, USAGE, "bench_path"),
    "empty": ({**SIDES, "npu_path": ""}, USAGE, "npu_path"),
    "number": ({**SIDES, "npu_path": 1}, USAGE, "npu_path"),
    "mixed": ({**SIDES, "npu_path": "target"}, USAGE, "not of one kind"),
    "missing_side": ({**SIDES, "npu_path": "nowhere/dump.json"}, MISSING, "nowhere/dump.json"),
    "log_switch": ({**SIDES, "is_print_compare_log": "yes"}, USAGE, "is_print_compare_log"),
    "not_json": ("{npu_path", DAMAGED, "compare.json"),
    "empty_file": ("", DAMAGED, "compare.json"),
    "list": ([1], USAGE, "compare.json"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_request_file(name: str, pair: Path) -> None:
    content, status, text = REQUESTS[name]
    (pair / "compare.json").write_text(content if isinstance(content, str)
                                       else json.dumps(content))
    refuses(pair, status, [text], "compare", "-i", "compare.json", "-o", "out")


PATHS = {
    "other_name": (("target/stack.json", "golden"), USAGE, "target/stack.json"),
    "missing": (("nowhere", "golden"), MISSING, "nowhere"),
    "device": (("/dev/null", "golden"), USAGE, "/dev/null"),
    "empty_directory": (("empty", "golden"), MISSING, "empty"),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths(name: str, pair: Path) -> None:
    words, status, text = PATHS[name]
    (pair / "empty").mkdir()
    refuses(pair, status, [text], "compare", *words, "-o", "out")


# ---- what dump.json holds

def first_output(dump: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = dump["data"]["Torch.mul.1.forward"]["output"][0]
    return found


def nested(levels: int) -> Any:
    value: Any = {"type": "int", "value": 1}
    for _ in range(levels):
        value = [value]
    return value


DUMPS: dict[str, tuple[Callable[[dict[str, Any]], Any], int, list[str]]] = {
    "number_as_task": (lambda dump: dump.update(task=3), DAMAGED, ["target/dump.json", "task"]),
    "unequal_task": (lambda dump: dump.update(task="tensor"), USAGE, ["task"]),
    "structure": (lambda dump: dump.update(task="structure"), USAGE, ["structure"]),
    "unknown_task": (lambda dump: dump.update(task="dance"), USAGE, ["dance"]),
    "no_data": (lambda dump: dump.pop("data"), DAMAGED, ["target/dump.json", "data"]),
    "data_is_a_list": (lambda dump: dump.update(data=[]), DAMAGED, ["target/dump.json"]),
    "md5_on_one_side": (
        lambda dump: [value.update(md5="0" * 8) for call in dump["data"].values()
                      for value in call["output"]], USAGE, ["md5"]),
    "shape_is_a_text": (lambda dump: first_output(dump).update(shape="2x3"), DAMAGED,
                        ["target/dump.json", "Torch.mul.1.forward", "shape"]),
    "requires_grad_is_a_number": (lambda dump: first_output(dump).update(requires_grad=1), DAMAGED,
                                  ["target/dump.json", "Torch.mul.1.forward", "requires_grad"]),
    "too_deep": (lambda dump: dump["data"]["Torch.mul.1.forward"].update(output=nested(450)),
                 UNSUPPORTED, ["target/dump.json", "Torch.mul.1.forward", "nested deeper"]),
}


@pytest.mark.parametrize("name", DUMPS)
def test_dump(name: str, pair: Path) -> None:
    change, status, texts = DUMPS[name]
    edit(pair / "target" / "dump.json", change)
    refuses(pair, status, texts, "compare", "target", "golden", "-o", "out")
    assert plumb(pair, "compare", "golden", "golden", "-o", "out").returncode == 0


def test_missing_task_is_inferred(pair: Path) -> None:
    """The reader follows the chapter on dumps (repair); what it infers must still be equal."""
    edit(pair / "target" / "dump.json", lambda dump: dump.pop("task"))
    assert plumb(pair, "compare", "target", "golden", "-o", "out").returncode == 0
    shutil.rmtree(pair / "out")
    edit(pair / "target" / "dump.json", lambda dump: first_output(dump).update(data_name="a.pt"))
    refuses(pair, USAGE, ["target/dump.json", "task is tensor"], "compare", "target", "golden",
            "-o", "out")


def test_truncated_dump_has_a_byte_offset_and_is_salvaged(pair: Path) -> None:
    path = pair / "target" / "dump.json"
    text = path.read_bytes()
    cut = text.index(b"Torch.mul.1.forward") + 60
    path.write_bytes(text[:cut])
    refuses(pair, DAMAGED, ["target/dump.json", f"byte {cut}"], "compare", "target", "golden",
            "-o", "out")
    done = plumb(pair, "compare", "target", "golden", "-o", "out", "--salvage", "--json",
                 "--format", "json")
    assert done.returncode == 0, done
    facts = json.loads(done.stdout)
    assert facts["complete"] is False
    [result] = (pair / "out").iterdir()
    complete = [name for name in json.loads(text)["data"]
                if text.index(f'"{name}": {{'.encode()) < cut][:-1]
    rows = json.loads(result.read_text())["rows"]
    compared = {row["call"] for row in rows if row["verdict"] != "not comparable"}
    assert len(complete) == 4 and compared == set(complete)


# ---- stack.json

STACKS: dict[str, tuple[str | None, list[str]]] = {
    "missing": (None, ["stack.json"]),
    "not_json": ("{", ["stack.json"]),
    "entry_no_list": ('{"Torch.add.0.forward": 3}', ["stack.json", "Torch.add.0.forward"]),
}


@pytest.mark.parametrize("name", STACKS)
def test_stack(name: str, pair: Path) -> None:
    content, texts = STACKS[name]
    (pair / "stack.json").unlink(missing_ok=True)
    if content is not None:
        (pair / "stack.json").write_text(content)
    (pair / "compare.json").write_text(json.dumps({**SIDES, "stack_path": "stack.json"}))
    refuses(pair, MISSING if content is None else DAMAGED, texts,
            "compare", "-i", "compare.json", "-o", "out", "-s")


# ---- mapping files

MAPPINGS = {
    "missing": (None, MISSING, ""), "empty": ("", USAGE, "empty"),
    "comment": ("# nothing\n", USAGE, "empty"), "not_yaml": ("a: [b\n", DAMAGED, "not YAML"),
    "text": ("hello\n", USAGE, "holds a text"), "numbers": ("- 1\n- 2\n", USAGE, "line 1"),
}


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("option", ["-dm", "-cm", "-am", "-lm"])
def test_mapping(option: str, name: str, pair: Path) -> None:
    content, status, text = MAPPINGS[name]
    shutil.rmtree(pair / "target")
    make_dumps.mindspore(str(pair / "target"))
    if content is not None:
        (pair / "mapping.yaml").write_text(content)
    refuses(pair, status, ["mapping.yaml", text], "compare", "target", "golden", "-o", "out",
            option, "mapping.yaml")


# ---- ranks

def test_ranks_without_counterpart_are_named(tmp_path: Path) -> None:
    """Upstream refuses other numbers of ranks; they are paired by number and reported (repair)."""
    make_dumps.sound_ranks(str(tmp_path / "target"))
    make_dumps.fewer_ranks(str(tmp_path / "golden"))
    (tmp_path / "target" / "rank3").write_text("x")
    done = plumb(tmp_path, "compare", "target", "golden", "-o", "out", "--fail-on", "unmatched")
    assert done.returncode == MISSING, done
    assert "rank 1: only the target has it" in done.stdout
    assert "rank3" in done.stdout


# ---- pipes in a recording

@pytest.mark.parametrize("name", ["stack.json", "construct.json", "dump_error_info.log",
                                  "journal.bin"])
def test_a_pipe_beside_the_dump_is_not_waited_for(name: str, pair: Path) -> None:
    (pair / "target" / name).unlink(missing_ok=True)
    os.mkfifo(pair / "target" / name)
    done = plumb(pair, "compare", "target", "golden", "-o", "out", "--json", "--format", "csv")
    assert done.returncode == 0 and done.stderr == "", done
    warnings = json.loads(done.stdout)["warnings"]
    assert [text for text in warnings if "stack.json: not a regular file" in text] == (
        warnings if name == "stack.json" else [])


def test_a_pipe_in_place_of_a_tensor_is_not_waited_for(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0,
             "Min": 1.0, "Mean": 1.0, "Norm": 1.4142135, "data_name": "a.pt"}
    for side in ("target", "golden"):
        tensors = tmp_path / side / "dump_tensor_data"
        tensors.mkdir(parents=True)
        torch.save(torch.ones(2), tensors / "a.pt")
        call = {"input_args": [], "input_kwargs": {}, "output": [value]}
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "tensor", "level": "L1", "data": {"Torch.a.0.forward": call}}))
    (tmp_path / "target/dump_tensor_data/a.pt").unlink()
    os.mkfifo(tmp_path / "target/dump_tensor_data/a.pt")
    done = plumb(tmp_path, "compare", "target", "golden", "-o", "out", "--format", "json")
    assert done.returncode == 0 and "not judged" in done.stdout, done
    (row,) = json.loads(next((tmp_path / "out").iterdir()).read_text())["rows"]
    assert (row["verdict"], row["reason"]) == ("not comparable", "unreadable")


NAMED_FILES: dict[str, list[str]] = {
    "request": ["compare", "-i", "PIPE", "-o", "out"],
    "data_mapping": ["compare", "target", "golden", "-dm", "PIPE", "-o", "out"],
    "cell_mapping": ["compare", "target", "golden", "-cm", "PIPE", "-o", "out"],
    "api_mapping": ["compare", "target", "golden", "-am", "PIPE", "-o", "out"],
    "layer_mapping": ["compare", "target", "golden", "-lm", "PIPE", "-o", "out"],
    "module_map": ["compare", "target", "golden", "--consistent_check", "--module-map", "PIPE",
                   "--backend", "fsdp", "-o", "out"],
    "target": ["compare", "PIPE", "golden/dump.json", "-o", "out"],
    "golden": ["compare", "target/dump.json", "PIPE", "-o", "out"],
    "noise": ["compare", "target", "golden", "--noise", "PIPE", "-o", "out"],
    "npy": ["compare", "PIPE.npy", "PIPE.npy", "-o", "out"],
    "checkpoint": ["compare", "PIPE.safetensors", "PIPE.safetensors", "-o", "out"],
    "merge": ["merge", "target", "-o", "out", "-config", "PIPE"],
}


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", NAMED_FILES)
def test_a_named_file_that_is_none_is_refused_at_once(name: str, kind: str, pair: Path) -> None:
    words = []
    for word in NAMED_FILES[name]:
        if word.startswith("PIPE"):
            place = pair / word.replace("PIPE", "named")
            if kind == "pipe" and not place.exists():
                os.mkfifo(place)
            elif kind == "device" and not place.is_symlink():
                place.symlink_to("/dev/zero")
            word = place.name
        words.append(word)
    if name == "api_mapping":
        edit(pair / "target" / "dump.json", lambda dump: dump.update(framework="mindspore"))
    refuses(pair, USAGE, ["named"], *words)


@pytest.mark.parametrize("key", ["npu_path", "bench_path", "stack_path"])
def test_a_pipe_in_the_request_is_not_waited_for(key: str, pair: Path) -> None:
    os.mkfifo(pair / "named")
    (pair / "compare.json").write_text(json.dumps({**SIDES, key: "named"}))
    refuses(pair, USAGE, ["named: "], "compare", "-i", "compare.json", "-o", "out", "-s")


# ---- output

def test_output_is_a_file(pair: Path) -> None:
    (pair / "out").write_text("x")
    refuses(pair, WRITING, ["out"], "compare", "target", "golden", "-o", "out")
    refuses(pair, WRITING, ["out"], "compare", "target", "golden", "-o", "out/below")


def test_output_is_no_regular_file(pair: Path) -> None:
    recording = pair / "target" / "dump.json"
    recording.write_text(re.sub(r'"Max": [0-9.]+', '"Max": 99.0', recording.read_text()))
    os.mkfifo(pair / "next.json")
    done = plumb(pair, "compare", "target", "golden", "-o", "out", "--next-config", "next.json")
    assert done.returncode == USAGE, done
    assert "next.json: exists and is no regular file" in done.stderr
    assert done.stdout, "the answer is printed all the same"
    assert (pair / "next.json").is_fifo()


@pytest.mark.parametrize("words", [("compare", "target", "golden", "-o", "out", "--format", "csv"),
                                   ("inspect", "target")])
def test_answer_that_cannot_be_printed_is_no_success(words: tuple[str, ...], pair: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([str(PLUMB), *words], cwd=pair, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)
    assert done.returncode == WRITING, done
    assert done.stderr == "plumb: cannot write to standard output\n"


def test_output_is_not_writable(pair: Path) -> None:
    (pair / "out").mkdir(mode=0o555)
    if os.geteuid() == 0:  # may write everywhere, so that the command must be somebody else
        pair.chmod(0o755)
        options: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        for parent in pair.parents[:-2]:
            parent.chmod(0o755)
    else:
        options = {}
    refuses(pair, WRITING, ["out"], "compare", "target", "golden", "-o", "out", **options)


def limit_of(size: int) -> Callable[[], None]:
    """A limit on the size of files: writing ends as on a full disk."""
    def apply() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return apply


@pytest.mark.parametrize("size", [0, 150])
@pytest.mark.parametrize("name", FORMATS)
def test_disk_full(name: str, size: int, pair: Path) -> None:
    (pair / "out").mkdir()
    refuses(pair, WRITING, ["out"], "compare", "target", "golden", "-o", "out", "--format", name,
            preexec_fn=limit_of(size))


def test_disk_full_on_a_later_file_leaves_the_earlier_complete(pair: Path) -> None:
    whole = plumb(pair, "compare", "target", "golden", "-o", "whole", "--format", "csv")
    assert whole.returncode == 0
    done = plumb(pair, "compare", "target", "golden", "-o", "out", "--format", "csv,junit,html",
                 preexec_fn=limit_of(20_000))
    assert done.returncode == WRITING and "out" in done.stderr
    assert done.stderr.count("\n") == 1
    names = sorted(path.name.split(".", 1)[1] for path in (pair / "out").iterdir())
    assert names == ["csv", "junit.xml"]
    [expected], [found] = ((pair / name).glob("*.csv") for name in ("whole", "out"))
    assert found.read_bytes() == expected.read_bytes()


# ---- secure mode

def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def odd_name(path: Path) -> None:
    path.with_name("a;b").mkdir()


SECURE: dict[str, tuple[Callable[[Path], Any], list[str], str]] = {
    "link": (lambda pair: linked(pair / "target" / "stack.json"), ["target", "golden"],
             "target/stack.json: a symbolic link"),
    "linked_directory": (lambda pair: linked(pair / "golden"), ["target", "golden"],
                         "golden: a symbolic link"),
    "link_beside_the_dump": (lambda pair: linked(pair / "target" / "construct.json"),
                             ["target/dump.json", "golden/dump.json"],
                             "target/construct.json: a symbolic link"),
    "odd_name_below": (lambda pair: odd_name(pair / "target" / "x"), ["target", "golden"],
                       "target/a;b: an odd character"),
    "odd_path": (lambda pair: (pair / "target").rename(pair / "a b"), ["a b", "golden"],
                 "a b: an odd character"),
    "odd_output": (lambda pair: None, ["target", "golden", "-o", "o:ut"],
                   "o:ut: an odd character"),
    "linked_output": (lambda pair: (pair / "out").symlink_to("target"), ["target", "golden"],
                      "out: a symbolic link"),
    "linked_mapping": (lambda pair: (pair / "m.yaml").symlink_to("x.yaml")
                       or (pair / "x.yaml").write_text("a.b: c.d\n"),
                       ["target", "golden", "-dm", "m.yaml"], "m.yaml: a symbolic link"),
}


@pytest.mark.parametrize("name", SECURE)
def test_secure_mode(name: str, pair: Path) -> None:
    change, words, text = SECURE[name]
    change(pair)
    output = [] if "-o" in words else ["-o", "out"]
    refuses(pair, USAGE, [text], "compare", *words, *output, "--secure")
    assert plumb(pair, "compare", *words, *output).returncode == 0


def test_secure_mode_and_other_users(pair: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for parent in [pair, *pair.parents[:-2]]:
        parent.chmod(0o755)
    for path in [*pair.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o755)
    (pair / "out").mkdir(mode=0o777)
    os.chown(pair / "out", NOBODY, NOBODY)
    os.chown(pair / "golden" / "dump.json", 0, 0)
    options: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    words = ("compare", "target", "golden", "-o", "out")
    refuses(pair, USAGE, ["golden/dump.json: belongs to another user"], *words, "--secure",
            **options)
    assert plumb(pair, *words, **options).returncode == 0
    shutil.rmtree(pair / "out")
    assert plumb(pair, *words, "--secure").returncode == 0  # root reads what is anybody's


# ---- options of another mode

OPTIONS = {
    "unknown_mode": (["-m", "dance"], "dance"),
    "unknown_option": (["--nothing"], "--nothing"),
    "format": (["--format", "pdf"], "pdf"),
    "threads": (["--threads", "-1"], "threads"),
    "two_mappings": (["-cm", "-dm", "target/dump.json"], "stands alone"),
    "fail_on": (["--fail-on", "worse"], "worse"),
    "api_mapping_of_pytorch": (["-am"], "MindSpore"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name: str, pair: Path) -> None:
    words, text = OPTIONS[name]
    refuses(pair, USAGE, [text], "compare", "target", "golden", "-o", "out", *words)


@pytest.mark.parametrize("option", ["--rank", "--step"])
@pytest.mark.parametrize("value", ["0-1", "-1", "1e400", "99999999999999999999", "a", "1.5"])
def test_numbers_of_ranks_and_steps(tmp_path: Path, option: str, value: str) -> None:
    done = plumb(tmp_path, "compare", "a", "b", f"{option}={value}")
    assert done.returncode == USAGE
    assert option in done.stderr and f'"{value}" is no number (expected 0, 1, 2' in done.stderr
    assert len(done.stderr) < 200


def test_side_without_a_recording_is_named(pair: Path) -> None:
    """Also where the other side would be refused first, for several steps."""
    (pair / "empty").mkdir()
    for step in range(2):
        shutil.copytree(pair / "golden", pair / "steps" / f"step{step}" / "rank0")
    for other, text in (("empty", "empty: no dump.json"), ("nowhere", "nowhere: no such file")):
        for sides in (("steps", other), (other, "steps")):
            refuses(pair, MISSING, [f"plumb compare: {text}"], "compare", *sides)


# ---- odd construct.json

@pytest.mark.parametrize("shape", ["circle", "itself", "deep"])
def test_modules_that_nest_oddly_end_with_an_answer(shape: str, tmp_path: Path) -> None:
    """A circle of parents ran without end, and time grew with the third power of the depth."""
    names = [f"Module.m{i}.M.forward.0" for i in range(2000 if shape == "deep" else 2)]
    parents = {"circle": dict(zip(names, reversed(names), strict=True)),
               "itself": dict(zip(names, names, strict=True)),
               "deep": dict(zip(names, [None, *names], strict=False))}[shape]
    for side, most in (("target", 1.5), ("golden", 1.0)):
        leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": most,
                "Min": -1.0, "Mean": 0.25, "Norm": 2.0}
        call = {"input_args": [], "input_kwargs": {}, "output": [leaf]}
        (tmp_path / side).mkdir()
        (tmp_path / side / "construct.json").write_text(json.dumps(parents))
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "mix", "data": dict.fromkeys(names, call)}))
    done = plumb(tmp_path, "compare", "target", "golden", "-o", "out", "--format", "csv")
    named = {"circle": names[1], "itself": names[0], "deep": names[-1]}[shape]
    assert done.stdout.splitlines()[0] == f"first wrong call: {named}", done
