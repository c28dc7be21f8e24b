"""plumb parse: its verbs one by one, and the shell."""

from __future__ import annotations

import csv
import json
import os
import pty
import select
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchair_dumps
from recording import PLUMB


def parse(*words: Any, cwd: Path, lines: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PLUMB, "parse", *map(str, words)], cwd=cwd, capture_output=True, text=True, input=lines
    )


def save(path: Path, array: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.asarray(array))
    return path


def save_dump(path: Path, values: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(torchair_dumps.ge_bytes([], [values]))
    return path


@pytest.mark.parametrize("array, facts, rows", [
    (np.arange(6, dtype=np.float32).reshape(2, 3),
     "[Shape: (2, 3)] [Dtype: float32] [Max: 5.0] [Min: 0.0] [Mean: 2.5]", 1),
    (np.array(7), "[Shape: ()] [Dtype: int64] [Max: 7] [Min: 7] [Mean: 7]", 1),
    (np.arange(200), "[Shape: (200,)] [Dtype: int64] [Max: 199.0] [Min: 0.0] [Mean: 99.5]", 16),
    (np.array([2**60 + 1]), "[Shape: (1,)] [Dtype: int64]", 1),
])
def test_pt(array: np.ndarray, facts: str, rows: int, tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", array)
    done = parse("pt", "-n", path, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0].startswith(facts), done.stdout + done.stderr
    assert lines[1:3] == [f"Path: {path}", f"TextFile: {path}.txt"]
    assert len(lines) == 4 + rows
    assert lines[4].split("|")[1].split() == [str(value) for value in array.flatten()[:8]]
    text = Path(f"{path}.txt").read_text()
    assert np.allclose(np.loadtxt(f"{path}.txt").reshape(array.shape), array, rtol=1e-5)
    assert text.count("\n") == array.size // (array.shape[-1] if array.shape else 1)
    Path(f"{path}.txt").write_text("kept")
    parse("pt", "-n", path, cwd=tmp_path)
    assert Path(f"{path}.txt").read_text() == "kept"


def test_pt_of_bool_and_nothing(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", [True, False])
    assert "       0 | True False\n" in parse("pt", "-n", path, cwd=tmp_path).stdout
    empty = parse("pt", "-n", save(tmp_path / "b.npy", np.zeros((0, 2))), cwd=tmp_path)
    assert empty.returncode == 2 and "b.npy: the array has no elements" in empty.stderr
    assert parse("pt", "-n", tmp_path / "none.npy", cwd=tmp_path).returncode == 3


def test_cn(tmp_path: Path) -> None:
    ones, zeros = save(tmp_path / "1.npy", np.ones(4)), save(tmp_path / "0.npy", np.zeros(4))
    text = parse("cn", "-m", ones, "-g", zeros, "-s", cwd=tmp_path).stdout
    counts = "NumCnt: 4\nAllClose: False\nCosSim: nan\nErrorPer: 1.0  (rl= 0.001, al= 0.001)\n"
    assert counts in text
    assert Path(f"{ones}.txt").exists()
    wrong = text.split("Top Item Table")[0].splitlines()[2:]
    assert wrong == [f"{i:8} | 1.0 | 0.0 | 1.0" for i in range(4)]


def test_cn_of_nan_and_large_integers(tmp_path: Path) -> None:
    nan = float("nan")
    left = save(tmp_path / "l.npy", [nan, nan, 1.0])
    right = save(tmp_path / "r.npy", [nan, 1.0, 1.0])
    text = parse("cn", "-m", left, "-g", right, cwd=tmp_path).stdout
    assert "AllClose: False" in text and "ErrorPer: 0.3333333333333333 " in text
    big = save(tmp_path / "a.npy", [2**53]), save(tmp_path / "b.npy", [2**53 + 1])
    limits = ("-al", "0.5", "-rl", "1e-20")
    text = parse("cn", "-m", big[0], "-g", big[1], *limits, cwd=tmp_path).stdout
    assert "ErrorPer: 1.0" in text and f"{2**53} | {2**53 + 1} | 1.0" in text
    other = parse("cn", "-m", left, "-g", big[0], cwd=tmp_path)
    assert other.returncode == 2 and "expected equally many elements, got 3 and 1" in other.stderr
    assert parse("cn", "-m", left, "-g", right, "-al", "0", cwd=tmp_path).returncode == 2


def test_vc_of_arrays(tmp_path: Path) -> None:
    base = np.array([1.0, 0.0, 4.0], np.float32)
    for root, factor in (("a", 1.0), ("b", 1.5)):
        stamp = "100" if root == "a" else "200"
        add, mul = tmp_path / root / "add" / stamp, tmp_path / root / "mul" / stamp
        save(add / "Add.add.1.100.input.0.npy", base)
        save(add / "Add.add.1.100.output.0.npy", base * factor)
        save(mul / "Mul.mul.1.100.output.0.npy", base[: int(factor * 2)])
    save(tmp_path / "a" / "mul" / "100" / "Mul.mul.1.100.output.1.npy", base)
    done = parse("vc", "-m", "a", "-g", "b", "-out", "out", cwd=tmp_path)
    assert done.returncode == 0 and "4 rows, 3 differ" in done.stdout, done.stderr
    (table,) = (tmp_path / "out").glob("batch_compare_*.csv")
    raw = table.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfNPU File Name,Bench File Name,Mean,Bench Mean,Md5 Consis")
    assert raw.count(b"\r\n") == raw.count(b"\n") == 5
    same, changed, shape, alone = csv.reader(raw.decode("utf-8-sig").splitlines()[1:])
    assert same[4:8] == ["True", "0.0", "0.0", "same"]
    assert changed[4:7] == ["False", "2.0", "0.3333333333333333"] and changed[7] == "broken"
    assert shape[8] == "shape-differs" and alone[8] == "only-target" and alone[1] == ""
    assert parse("vc", "-m", "a", "-g", "a", cwd=tmp_path).returncode == 2


def test_a_wrong_phase_of_complex_numbers(tmp_path: Path) -> None:
    """Its distance is one in the plane, not of the moduli."""
    golden = np.array([1 + 2j, 3 - 4j, 5j], np.complex64)
    for root, array in (("a", golden.conj()), ("b", golden)):
        save(tmp_path / root / "fft" / "100" / "FFT.fft.1.100.output.0.npy", array)
    paths = [tmp_path / root / "fft/100/FFT.fft.1.100.output.0.npy" for root in ("a", "b")]
    text = parse("cn", "-m", paths[0], "-g", paths[1], cwd=tmp_path).stdout
    assert "AllClose: False" in text and "ErrorPer: 1.0 " in text
    assert "       1 | (3+4j) | (3-4j) | 8.0" in text
    parse("vc", "-m", "a", "-g", "b", "-out", "out", cwd=tmp_path)
    (table,) = (tmp_path / "out").glob("batch_compare_*.csv")
    (row,) = csv.DictReader(table.read_text("utf-8-sig").splitlines())
    assert (row["Max Abs Error"], row["Max Relative Error"]) == ("10.0", "2.0")
    assert row["Verdict"] == "broken"


def test_vc_compares_arrays_of_every_level(tmp_path: Path) -> None:
    places = ("top.npy", "add/beside.npy", "add/100/Add.add.1.100.output.0.npy",
              "add/100/more/x.npy")
    for root, factor in (("a", 1), ("b", 2)):
        for place in places:
            save(tmp_path / root / place, np.full(3, factor, np.float32))
    save(tmp_path / "b" / "mul" / "alone.npy", np.ones(3))
    done = parse("vc", "-m", "a", "-g", "b", "-out", "out", cwd=tmp_path)
    assert "5 rows, 5 differ" in done.stdout, done.stderr
    (table,) = (tmp_path / "out").glob("batch_compare_*.csv")
    rows = list(csv.DictReader(table.read_text("utf-8-sig").splitlines()))
    assert [row["Verdict"] for row in rows] == ["broken"] * 4 + ["not comparable"]


def test_vc_keeps_line_breaks_in_names(tmp_path: Path) -> None:
    paths = []
    for root in ("a", "b"):
        name = tmp_path / root / "two\nlines\r\n" / "100" / "Add.add.1.100.output.0.npy"
        paths.append(str(save(name, np.ones(3, np.float32))))
    done = parse("vc", "-m", "a", "-g", "b", "-out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (table,) = (tmp_path / "out").glob("batch_compare_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as file:
        _, row = csv.reader(file)
    assert row[:2] == paths
    assert table.read_bytes().endswith(b",same,,\r\n")


def test_dc_and_cad(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    name = "Relu.relu1.3.7.1735011096426349"
    save_dump(tmp_path / "dump/0" / name, values)
    done = parse("dc", "-n", f"dump/0/{name}", "-cmp_path", "/usr/local/x.py", cwd=tmp_path)
    assert done.returncode == 0 and "was ignored" in done.stderr
    (listed,) = [line.strip() for line in done.stdout.splitlines()[1:]]
    assert listed.startswith("parse_data/dump_convert/")
    assert np.array_equal(np.load(tmp_path / listed), values)
    save_dump(tmp_path / "dump/0/Relu.relu1.3.7.1735011096426350", values)
    (tmp_path / "dump/0/Relu.bad.3.7.1735011096426351").write_bytes(b"no dump")
    done = parse("cad", "-m", "dump/0", "-out", "all", cwd=tmp_path)
    assert done.returncode == 5 and "2 dump files converted, 1 failed" in done.stdout
    assert "Relu.bad.3.7.1735011096426351" in done.stderr
    root = tmp_path / "all"
    trees = sorted(path.relative_to(root).parent for path in root.glob("*/*/*"))
    assert list(map(str, trees)) == ["relu1/1735011096426349", "relu1/1735011096426350"]
    assert parse("cad", "-m", "none", cwd=tmp_path).returncode == 3


def test_cad_of_two_dumps_with_one_name(tmp_path: Path) -> None:
    """Outputs of both would have the same names: the second is an error, and nothing is mixed."""
    name = "Relu.relu1.3.7.1735011096426349"
    for i in range(2):
        save_dump(tmp_path / "dump" / str(i) / name, np.full(3, i, np.float32))
    done = parse("cad", "-m", "dump", "-out", "all", cwd=tmp_path)
    assert done.returncode == 6 and "1 dump files converted, 1 failed" in done.stdout
    assert f"dump/1/{name}: another dump has an output of this name (dump/0/{name})" in done.stderr
    (array,) = (tmp_path / "all").glob("*/*/*.npy")
    assert np.load(array).tolist() == [0, 0, 0]
    (line,) = (tmp_path / "all/convert_failed_file_list.txt").read_text().splitlines()
    assert line.startswith(f"dump/1/{name}\t")


def test_cad_finds_what_convert_finds(tmp_path: Path) -> None:
    """Names of digits by mapping.csv, dumps of any depth; what is no dump is counted."""
    values = np.arange(6, dtype=np.float32)
    save_dump(tmp_path / "dump/0/4711", values)
    (tmp_path / "dump/0/mapping.csv").write_text("4711,Relu.relu1.3.7.1735011096426349\nno row\n")
    save_dump(tmp_path / "dump/a/b/c/d/e/f/Add.add1.3.7.1735011096426350", values)
    (tmp_path / "dump/0/notes.txt").write_text("other")
    done = parse("cad", "-m", "dump", "-out", "all", cwd=tmp_path)
    assert done.returncode == 0 and "2 dump files converted, 0 failed" in done.stdout
    assert "1 file left out" in done.stderr and "mapping.csv: line 2 is no row" in done.stderr
    root = tmp_path / "all"
    trees = sorted(str(path.relative_to(root).parent) for path in root.glob("*/*/*.npy"))
    assert trees == ["add1/1735011096426350", "relu1/1735011096426349"]


def test_an_operator_whose_name_no_directory_can_have(tmp_path: Path) -> None:
    """Its dump fails, and no other."""
    values = np.arange(6, dtype=np.float32)
    save_dump(tmp_path / "dump/1", values)
    save_dump(tmp_path / "dump/Add.add1.3.7.1735011096426350", values)
    name = "x" * 300
    (tmp_path / "dump/mapping.csv").write_text(f"1,Relu.{name}.3.7.1735011096426349\n")
    done = parse("cad", "-m", "dump", "-out", "all", cwd=tmp_path)
    assert "1 dump files converted, 1 failed" in done.stdout and "File name too long" in done.stderr
    assert len(list((tmp_path / "all/add1").glob("*/*.npy"))) == 1
    assert (tmp_path / "all/convert_failed_file_list.txt").read_text().startswith("dump/1\t")


def test_every_error_of_a_conversion_has_its_status(tmp_path: Path) -> None:
    name = "Relu.relu1.3.7.1735011096426349"
    dump = save_dump(tmp_path / "dump" / name, np.ones(2, np.float32))
    assert parse("dc", "-n", "none", cwd=tmp_path).returncode == 3
    assert parse("dc", "-n", dump, "-f", "FOO", cwd=tmp_path).returncode == 2
    unsupported = parse("dc", "-n", dump, "-f", "NC1HWC0", cwd=tmp_path)
    assert unsupported.returncode == 4 and "Not supported" in unsupported.stderr
    (tmp_path / "full" / f"{name}.output.0.npy").mkdir(parents=True)
    taken = parse("dc", "-n", dump, "-out", "full", cwd=tmp_path)
    assert taken.returncode == 6 and f"{name}.output.0.npy" in taken.stderr
    (tmp_path / "empty").mkdir()
    assert parse("cad", "-m", "empty", cwd=tmp_path).returncode == 2


def test_a_second_conversion_lists_its_outputs_again(tmp_path: Path) -> None:
    name = "Relu.relu1.3.7.1735011096426349"
    dump = save_dump(tmp_path / "dump" / name, np.ones(2, np.float32))
    lines = [parse("dc", "-n", dump, "-out", "out", cwd=tmp_path).stdout for _ in range(2)]
    assert lines[0] == lines[1] == f"{dump}\n  out/{name}.output.0.npy\n"


def test_no_failure_of_many_files_is_lost(tmp_path: Path) -> None:
    """One list over dumps and tensor files of ATB, whatever fails first."""
    values = np.arange(6, dtype=np.float32)
    for i in range(3):
        save_dump(tmp_path / f"in/Relu.good{i}.3.7.173501109642634{i}", values)
        (tmp_path / f"in/Relu.bad{i}.3.7.173501109642634{i}").write_bytes(b"no dump")
    (tmp_path / "in/b.bin").write_bytes(b"no tensor")
    done = parse("-d", "in", "-t", "npy", "-o", "out", cwd=tmp_path)
    assert done.returncode == 5
    listed = (tmp_path / "out/convert_failed_file_list.txt").read_text().splitlines()
    assert [line.split("\t")[0] for line in listed] == [
        "in/Relu.bad0.3.7.1735011096426340", "in/Relu.bad1.3.7.1735011096426341",
        "in/Relu.bad2.3.7.1735011096426342", "in/b.bin"]
    assert done.stdout.count("good") == 3 and "4 files failed" in done.stderr
    assert len(list((tmp_path / "out").glob("*.npy"))) == 3


def test_vc_takes_what_cad_leaves(tmp_path: Path) -> None:
    """Lists of failures and of long names beside the arrays, and two arrays of one slot."""
    values = np.arange(6, dtype=np.float32)
    long_name = "x" * 220
    for side, last in (("a", 0.0), ("b", 1.0)):
        for kind, array in (("Add", values), ("Mul", values + last)):
            save_dump(tmp_path / side / f"{kind}.both.3.7.1735011096426349", array)
        save_dump(tmp_path / side / f"Relu.{long_name}.3.7.1735011096426349", values)
        (tmp_path / side / "Relu.bad.3.7.1735011096426351").write_bytes(b"no dump")
        assert parse("cad", "-m", side, "-out", f"out_{side}", cwd=tmp_path).returncode == 5
        assert list((tmp_path / f"out_{side}").glob("*/*/mapping.csv"))
    done = parse("vc", "-m", "out_a", "-g", "out_b", "-out", "result", cwd=tmp_path)
    assert done.returncode == 0 and "3 rows, 1 differ" in done.stdout, done.stderr
    (table,) = (tmp_path / "result").glob("batch_compare_*.csv")
    rows = list(csv.DictReader(table.read_text("utf-8-sig").splitlines()))
    verdicts = {Path(row["NPU File Name"]).name: row["Verdict"] for row in rows}
    assert verdicts["Add.both.3.7.1735011096426349.output.0.npy"] == "same"
    assert verdicts["Mul.both.3.7.1735011096426349.output.0.npy"] == "broken"


def test_files_by_what_they_are(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    name = "Relu.relu1.3.7.1735011096426349"
    save_dump(tmp_path / "mixed" / name, values)
    brain = b"format=2\ndtype=27\ndims=2\n$Version=1.0\n$Object.Count=1\n$Object.data=0,4\n$End=1\n"
    (tmp_path / "mixed" / "x.BIN").write_bytes(brain + bytes([0xC0, 0x3F, 0x00, 0xC0]))
    done = parse("-d", "mixed", "-t", "npy", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out/x.BIN.npy").tolist() == [1.5, -2.0]
    assert np.array_equal(np.load(tmp_path / f"out/{name}.output.0.npy"), values)
    done = parse("-d", "mixed/x.BIN", cwd=tmp_path)
    tensor = torch.load(tmp_path / "output/x.BIN.pt")
    assert tensor.dtype == torch.bfloat16 and tensor.tolist() == [1.5, -2.0]
    assert parse("-d", "none", cwd=tmp_path).returncode == 3
    assert parse("-d", "mixed", "-t", "bin", cwd=tmp_path).returncode == 2


def test_the_shell_takes_a_script(tmp_path: Path) -> None:
    save(tmp_path / "with blank.npy", np.ones(2))
    script = "\n".join([
        "pt -n 'with blank.npy'", "", "pt -n missing.npy", "pt", "echo  two   words",
        "run echo forced", "no-such-program x", "pt -n 'never ends", "help",
    ])
    done = parse(cwd=tmp_path, lines=script)
    assert done.returncode == 0
    out = done.stdout.splitlines()
    assert out[0].startswith("[Shape: (2,)]") and "two words" in out and "forced" in out
    assert any(line.startswith("  cad ") for line in out)
    errors = done.stderr
    assert "missing.npy" in errors and "-n (--name) is required" in errors
    assert errors.count("Command execution failed") == 2
    assert "no-such-program: command not found" in errors and "a quote never ends" in errors


def shown_until(terminal: int, text: bytes | None) -> bytes:
    """What appears on a terminal up to a line that begins with `text`, or to its end."""
    shown = b""
    while text is None or shown.rfind(text) <= shown.rfind(b"\n"):
        assert select.select([terminal], [], [], 60)[0], shown
        try:
            part = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other side is closed
            return shown
        if not part:
            return shown
        shown += part
    return shown


def test_the_shell_completes_verbs_and_keeps_history(tmp_path: Path) -> None:
    save(tmp_path / "only.npy", np.ones(2))
    main, side = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm"}
    process = subprocess.Popen([PLUMB, "parse"], cwd=tmp_path, stdin=side, stdout=side, stderr=side,
                               env=environment, close_fds=True)
    os.close(side)
    shown = shown_until(main, b"Parse >>> ")  # before that the terminal would take the tab
    os.write(main, b"pt\t-n on\t\n")  # the tabs add a blank, and ly.npy
    shown += shown_until(main, b"Parse >>> ")
    os.write(main, b"exit\n")
    shown += shown_until(main, None)
    assert process.wait(timeout=20) == 0
    assert b"Parse >>> " in shown and b"[Shape: (2,)]" in shown
    assert "only.npy" in (tmp_path / ".plumb_parse_history").read_text()


def test_the_line_of_msprobe(tmp_path: Path) -> None:
    save(tmp_path / "a.npy", np.ones(2))
    done = subprocess.run([PLUMB, "msprobe", "-f", "pytorch", "parse"], cwd=tmp_path, text=True,
                          input="pt -n a.npy\n", capture_output=True)
    assert done.returncode == 0 and done.stdout.startswith("[Shape: (2,)]"), done.stderr


def test_wrong_words(tmp_path: Path) -> None:
    wrong = parse("xy", cwd=tmp_path)
    assert wrong.returncode == 2 and "xy: is no verb" in wrong.stderr
    assert parse("pt", "-x", cwd=tmp_path).returncode == 2
    assert "--golden_dump_path" in parse("cn", "-h", cwd=tmp_path).stdout
    assert parse("--help", cwd=tmp_path).stdout.startswith("Convert, print and compare dump files")


def test_pk_of_an_old_file(tmp_path: Path) -> None:
    """Statistics and stacks of the text file that older releases wrote."""
    lines: list[Any] = [
        ["Torch_relu_0_forward_input.0", 1, [], "torch.float32", [2, 3], [1.5, -0.25, 1e-05], "x"],
        ["Torch_relu_0_forward_stack_info", [["/m.py", 12, "run", "y = relu(x)"],
                                             ["/main.py", 3, "<module>", "run()"]]],
        ["Torch_add_1_forward_output", 1, [], "torch.int64", [4], [3, 0, 1.5]],
        ["Torch_relu_2_forward_output", 1, [], "torch.bool", [], [True, False]],
    ]
    path = tmp_path / "dump.pkl"
    text = "\n".join(map(json.dumps, lines)) + "\n"
    path.write_text(text + "[]\nnot read any more\n")
    done = parse("pk", "-f", path, "-n", "Torch_relu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "Statistic Info:\n  [Torch_relu_0_forward_input.0][dtype: torch.float32][shape: [2, 3]]"
        "[max: 1.5][min: -0.25][mean: 1e-05]\n"
        "\nTrace back(Torch_relu_0_forward_stack_info):\n"
        '  File "/main.py", line 3, in <module>\n    run()\n'
        '  File "/m.py", line 12, in run\n    y = relu(x)\n')
    path.write_text(text + '["Torch_relu", 1\n')
    done = parse("pk", "-f", path, "-n", "Torch_relu", cwd=tmp_path)
    assert (done.returncode, "line 5" in done.stderr) == (5, True)
    for word in ("Nothing", "relu"):
        assert parse("pk", "-f", path.with_name("good.pkl"), "-n", word, cwd=tmp_path
                     ).returncode == 3
    path.write_text(text)
    assert "no call whose name" in parse("pk", "-f", path, "-n", "relu", cwd=tmp_path).stderr
    assert parse("pk", "-f", path, cwd=tmp_path).returncode == 2


def test_pk_of_a_dump_json(tmp_path: Path) -> None:
    """The same of a dump.json, with the stack.json beside it."""
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 2.0,
              "Min": -1.0, "Mean": 0.5, "Norm": 3.0, "requires_grad": False}
    calls = {name: {"input_args": [tensor, {"type": "int", "value": 3}], "input_kwargs": {},
                    "output": [tensor]} for name in ("Torch.relu.0.forward", "Torch.add.0.forward")}
    (tmp_path / "dump.json").write_text(json.dumps(
        {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
         "data": calls}))
    (tmp_path / "stack.json").write_text(json.dumps(
        {"Torch.relu.0.forward": ["File /m.py, line 12, in run, \n y = relu(x)",
                                  "File /main.py, line 3, in <module>, \n run()"]}))
    (tmp_path / "construct.json").write_text("{}")
    done = parse("pk", "-f", tmp_path / "dump.json", "-n", "Torch.relu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    facts = "[dtype: torch.float32][shape: [2, 3]][max: 2.0][min: -1.0][mean: 0.5]"
    assert lines[:3] == ["Statistic Info:", f"  [Torch.relu.0.forward.input.0]{facts}",
                         f"  [Torch.relu.0.forward.output.0]{facts}"]
    assert lines[4] == "Trace back(Torch.relu.0.forward):"
    assert lines[5].startswith("  File /main.py, line 3")
    assert lines[6].startswith("  File /m.py, line 12")
    assert len(lines) == 7
