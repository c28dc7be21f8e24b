"""`plumb compare` on arrays and checkpoints, against PyTorch and NumPy; and what is refused."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
import torch
from checkpoint_files import megatron, safetensors, state
from ranks import PROLOGUE, run_ranks
from recording import PLUMB


def compare(*words: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PLUMB), "compare", *map(str, words)], text=True,
                          capture_output=True, check=False, timeout=60)


def similarity(target: Path, golden: Path, status: int) -> dict[str, Any]:
    """Every row of the result file of two checkpoints."""
    path = target.parent / "result.json"
    path.unlink(missing_ok=True)
    done = compare(target, golden, "-o", path)
    assert done.returncode == status, done
    rows: dict[str, Any] = json.loads(path.read_text())
    assert list(rows) == sorted(rows)
    return rows


def refused(done: subprocess.CompletedProcess[str], status: int, *texts: object) -> None:
    assert done.returncode == status and done.stdout == "", done
    (line,) = done.stderr.splitlines()
    assert all(str(text) in line for text in texts), line


# ---- values


def expected(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    x, y = (t.detach().double().numpy().ravel() for t in (a, b))
    norms = np.linalg.norm(x) * np.linalg.norm(y)
    return float(np.linalg.norm(x - y)), float(x @ y / norms) if norms else 1.0


def nested(values: dict[str, torch.Tensor]) -> dict[str, Any]:
    """With an optimizer's state, settings and things that are no tensors around the model."""
    import argparse

    return {"model": values, "args": argparse.Namespace(lr=0.1, name="x"), "epoch": 3,
            "optimizer": {"state": {0: {"exp_avg": torch.full((2, 3), 0.5), "step": 7}},
                          "param_groups": [{"params": [0], "betas": (0.9, 0.99)}]},
            "rng": [torch.get_rng_state(), np.float64(1.5), b"bytes", {1, 2}]}


@pytest.mark.parametrize("kind", ["zip", "legacy", "safetensors"])
def test_metrics_are_those_of_numpy(tmp_path: Path, kind: str) -> None:
    golden, target = state(0), state(0)
    target["b.weight"] = target["b.weight"] + 1e-3 * torch.randn(
        8, 16, generator=torch.Generator().manual_seed(5))
    target["half"] = target["half"] * 2
    ends = {"zip": ".pt", "legacy": ".pth", "safetensors": ".safetensors"}
    paths = [tmp_path / (side + ends[kind]) for side in ("target", "golden")]
    for path, values in zip(paths, (target, golden), strict=True):
        if kind == "safetensors":
            safetensors(path, values)
        else:
            torch.save(nested(values), path, _use_new_zipfile_serialization=kind == "zip")
    rows = similarity(*paths, 1)
    prefix = "" if kind == "safetensors" else "model."
    for name in golden:
        row = rows[prefix + name]
        l2, cosine = expected(target[name], golden[name])
        assert row["l2"] == pytest.approx(l2, rel=1e-9, abs=1e-300), name
        assert row["cos"] == pytest.approx(cosine, abs=2e-6), name
        assert row["shape"] == list(golden[name].shape) and row["numel"] == golden[name].numel()
        wanted = {"b.weight": "suspicious", "half": "broken", "zeros": "not comparable"}
        assert row["verdict"] == wanted.get(name, "same"), (name, row)
    if prefix:
        assert {"optimizer.state.0.exp_avg", "rng.0"} <= rows.keys()
        assert len(rows) == len(golden) + 2


def test_formats_agree_with_each_other(tmp_path: Path) -> None:
    values = state(1)
    torch.save(values, tmp_path / "a.pt")
    torch.save(values, tmp_path / "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save({k: torch.nn.Parameter(v) for k, v in values.items() if v.is_floating_point()}
               | {k: v for k, v in values.items() if not v.is_floating_point()},
               tmp_path / "parameters.bin")
    safetensors(tmp_path / "a.safetensors", values)
    for other in ("legacy.pth", "parameters.bin", "a.safetensors"):
        rows = similarity(tmp_path / "a.pt", tmp_path / other, 0)
        assert {row["l2"] for row in rows.values()} == {0.0} and len(rows) == len(values)


def test_rounding_to_another_dtype_is_noise(tmp_path: Path) -> None:
    values = {"w": torch.randn(64, 64, generator=torch.Generator().manual_seed(0))}
    torch.save(values, tmp_path / "a.pt")
    for dtype, status in ((torch.bfloat16, 0), (torch.float16, 0), (torch.float64, 0)):
        torch.save({"w": values["w"].to(dtype)}, tmp_path / "b.pt")
        similarity(tmp_path / "b.pt", tmp_path / "a.pt", status)
    torch.save({"w": values["w"].bfloat16().float()}, tmp_path / "b.pt")
    rows = similarity(tmp_path / "b.pt", tmp_path / "a.pt", 1)
    assert rows["w"]["verdict"] == "suspicious", "float32 that holds bfloat16 values"


def test_the_same_model_under_wrappers(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    safetensors(tmp_path / "plain.safetensors", model.state_dict())
    torch.save({"state_dict": {"module." + k: v for k, v in model.state_dict().items()}},
               tmp_path / "wrapped.pt")
    rows = similarity(tmp_path / "wrapped.pt", tmp_path / "plain.safetensors", 0)
    assert sorted(rows) == sorted(model.state_dict())
    done = compare(tmp_path / "wrapped.pt", tmp_path / "plain.safetensors", "-o", tmp_path / "o")
    assert '"state_dict.module." in names of the target is left out' in done.stdout


def test_tensors_that_are_not_plain(tmp_path: Path) -> None:
    """Read where they can be; otherwise a row, never left out."""
    marked, parameter = torch.ones(2), torch.nn.Parameter(torch.ones(3))
    marked.mark = parameter.mark = 1  # type: ignore[attr-defined]
    torch.save({"marked": marked, "parameter": parameter, "sparse": torch.eye(2).to_sparse(),
                "conj": [torch.ones(2)]}, tmp_path / "a.pt")
    rows = similarity(tmp_path / "a.pt", tmp_path / "a.pt", 1)
    assert {name: row["reason"] for name, row in rows.items()} == {
        "conj.0": "", "marked": "", "parameter": "", "sparse": "unreadable"}


def test_tensors_far_down(tmp_path: Path) -> None:
    """Found at any depth, or refused; a container that holds itself is met once."""
    for depth, status in ((70, 1), (300, 4)):
        for name, value in (("a.pt", 1.0), ("b.pt", 2.0)):
            inner: dict[str, Any] = {"w": torch.full((3,), value)}
            inner["self"] = inner
            for _ in range(depth):
                inner = {"k": inner}
            torch.save(inner, tmp_path / name)
        done = compare(tmp_path / "a.pt", tmp_path / "b.pt", "-o", tmp_path / f"o{depth}")
        assert done.returncode == status, done.stderr
        assert ("differs: 1 of 1 parameter" in done.stdout) == (status == 1)
        assert ("nested more than 256 deep" in done.stderr) == (status == 4)


def test_names_and_shapes_of_one_side(tmp_path: Path) -> None:
    torch.save({"both": torch.ones(2), "mine": torch.ones(3)}, tmp_path / "a.pt")
    torch.save({"both": torch.ones(2), "yours": torch.ones(1), }, tmp_path / "b.pt")
    rows = similarity(tmp_path / "a.pt", tmp_path / "b.pt", 1)
    assert [rows[name].get("only_in") for name in ("both", "mine", "yours")] == [None, 1, 2]
    done = compare(tmp_path / "a.pt", tmp_path / "b.pt", "-o", tmp_path / "o")
    assert done.stdout.startswith("not judged completely: 2 of 3 parameters, first mine")
    torch.save({"both": torch.ones(2, 1), "mine": torch.ones(3)}, tmp_path / "b.pt")
    rows = similarity(tmp_path / "a.pt", tmp_path / "b.pt", 1)
    assert rows["both"] == {"l2": None, "cos": None, "numel": [2, 2], "shape": [[2], [2, 1]],
                            "verdict": "not comparable", "reason": "shape-differs",
                            "max_abs": None}


# ---- two arrays


INF, NAN = np.inf, np.nan
ARRAYS: list[tuple[Any, Any, str, int]] = [
    ([1.0, 2.0], [1.0, 2.0], "same: ", 0),
    ([1.0, 2.0], [1.0, 3.0], "broken: relative error 0.316", 1),
    ([1.0, NAN], [1.0, NAN], "not comparable: nonfinite-both", 1),
    ([1.0, NAN], [NAN, 1.0], "broken: nonfinite-position", 1),
    ([1.0, INF], [1.0, -INF], "broken: nonfinite-position", 1),
    ([NAN, 1.0], [NAN, 2.0], "broken: relative error 0.5", 1),
    ([NAN, 1.0, 1.0], [NAN, 1.0, 1.0 + 1e-15], "not comparable: ", 1),
    ([0.0, 0.0], [0.0, 0.0], "not comparable: zero-both", 1),
    ([0.0, -0.0], [0.0, -0.0], "not comparable: zero-both", 1),
    ([0.0, 0.0], [0.0, 1.0], "broken: relative error 1", 1),
    ([0.0, 1.0], [0.0, 0.0], "broken: zero-golden", 1),
    ([], [], "not comparable: empty", 1),
    ([1.0], [1.0, 2.0], "not comparable: shape [1], expected [2]", 1),
    (5.0, 5.0, "same: ", 0),
    (np.arange(4), np.arange(4), "same: ", 0),
    (np.arange(4), np.arange(4) + (np.arange(4) == 3), "broken: ", 1),
    (np.uint8([1, 255]), np.uint8([2, 254]), "broken: ", 1),
    (np.array([True, False]), np.array([True, True]), "broken: ", 1),
    (np.float64([1e300, 1.0]), np.float64([1e300, 1.0 + 1e-9]), "", 0),
    (np.float64([1e-300, 2e-300]), np.float64([1e-300, 3e-300]), "broken: ", 1),
    (np.float16([1, 2]), np.float32([1, 2]), "same: ", 0),
    (np.ones((3, 2)), np.asfortranarray(np.ones((3, 2))), "same: ", 0),
]


@pytest.mark.parametrize("row", range(len(ARRAYS)))
def test_two_arrays(tmp_path: Path, row: int) -> None:
    target, golden, answer, status = ARRAYS[row]
    np.save(tmp_path / "a.npy", np.asarray(target))
    np.save(tmp_path / "b.npy", np.asarray(golden))
    done = compare(tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "out")
    assert done.stdout.startswith(answer) and done.returncode == status, done
    if not (np.isfinite(target).all() and np.isfinite(golden).all()):
        assert "accuracy reached or not: No\n" in done.stdout
    assert not (tmp_path / "out").exists()
    torch.save(torch.from_numpy(np.ascontiguousarray(golden)), tmp_path / "b.pt")
    if np.asarray(golden).shape:  # NumPy makes a 0-d array 1-d there
        mixed = compare(tmp_path / "a.npy", tmp_path / "b.pt", "-o", tmp_path / "out")
        assert (mixed.stdout.split(";")[0], mixed.returncode) == (done.stdout.split(";")[0], status)


def test_fail_on_chooses_the_status(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.float32([1, 2]))
    np.save(tmp_path / "b.npy", np.float32([1, 2.0001]))
    words = (tmp_path / "a.npy", tmp_path / "b.npy")
    assert compare(*words).stdout.startswith("suspicious: ")
    assert compare(*words).returncode == 1
    assert compare(*words, "--fail-on", "suspicious").returncode == 1
    assert compare(*words, "--fail-on", "broken").returncode == 0


def test_machine_form(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.float32([1, 2]))
    np.save(tmp_path / "b.npy", np.float32([1, 3]))
    done = compare(tmp_path / "a.npy", tmp_path / "b.npy", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1 and result["good"] is False
    assert result["answer"].startswith("broken: ") and result["counts"]["broken"] == 1
    assert result["parameters"]["a"]["max_abs"] == 1.0
    torch.save({"w": torch.ones(2)}, tmp_path / "c.pt")
    mixed = json.loads(compare(tmp_path / "c.pt", tmp_path / "b.npy", "--json", "-o",
                               tmp_path / "o").stdout)
    assert sorted(mixed["parameters"]) == ["b", "w"]


def test_trees_of_arrays(tmp_path: Path) -> None:
    for side in ("a", "b"):
        for step in (0, 1):
            folder = tmp_path / side / "data" / "loss" / f"step{step}" / "rank0"
            folder.mkdir(parents=True)
            np.save(folder / "x_0.npy", np.float32([1, 2 + step * (side == "a")]))
    np.save(tmp_path / "a" / "data" / "only.npy", np.float32([1]))
    (tmp_path / "b" / "data" / "loss" / "cut.npy").write_bytes(b"\x93NUMPY")
    rows = similarity(tmp_path / "a", tmp_path / "b", 1)
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert verdicts == {"data/loss/cut": "not comparable", "data/loss/step0/rank0/x_0": "same",
                        "data/loss/step1/rank0/x_0": "broken", "data/only": "not comparable"}


def numpy_row(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> list[float | None]:
    x, y = a.astype(float).ravel(), b.astype(float).ravel()
    size = np.maximum(np.abs(x), np.abs(y))
    error = np.abs(x - y)
    relative = np.divide(error, size, out=np.zeros_like(error), where=size > 0)
    first = np.flatnonzero(x != y)
    return [100 * float((x == y).mean()), int(first[0]) if first.size else None,
            float(error.max()), float(relative.max()),
            *(100 * float((error <= limit * size).mean()) for limit in (0.001, 0.01))]


def test_workbooks_of_single_comparator(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values: dict[tuple[int, int, int, int], list[np.ndarray[Any, Any]]] = {}
    for step in (0, 1, 10):
        for micro_step, number in ((0, 2), (1, 3)):
            a = random.standard_normal((3, 4)).astype("f4")
            b = a * np.where(random.random((3, 4)) < 0.5, 1, 1 + step * 0.004).astype("f4")
            values[step, 0, micro_step, number] = [a, b]
    values[0, 1, 0, 0] = [np.uint8([1, 255, 7]), np.uint8([2, 254, 7])]
    for (step, rank, micro_step, number), pair in values.items():
        for side, value in zip("ab", pair, strict=True):
            folder = tmp_path / side / "data" / "loss" / f"step{step}" / f"rank{rank}"
            name = f"x_{number}.npy"
            if micro_step:
                folder, name = folder / f"micro_step{micro_step}", f"x.{number}.npy"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / name, value)
    np.save(tmp_path / "a/data/loss/step0/rank0/y_9.npy", np.ones((2, 3)))
    np.save(tmp_path / "b/data/loss/step0/rank0/y_9.npy", np.ones((2, 2)))
    done = compare(tmp_path / "a", tmp_path / "b", "-o", tmp_path / "out")
    assert done.returncode == 1 and f"written: {tmp_path / 'out' / 'loss.xlsx'}" in done.stdout
    sheet = openpyxl.load_workbook(tmp_path / "out" / "loss.xlsx").active
    rows = [list(row) for row in sheet.iter_rows(values_only=True, min_row=2)]
    assert [tuple(row[:4]) for row in rows] == sorted([*values, (0, 0, 0, 9)])
    for row in rows:
        if row[3] == 9:
            assert row[4:6] == ["[2, 3]", "[2, 2]"] and row[12].startswith("shapes differ")
            continue
        a, b = values[tuple(row[:4])]  # type: ignore[index]
        for found, wanted in zip(row[6:12], numpy_row(a, b), strict=True):
            assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-12)), row


# ---- shards


def test_hugging_face_shards(tmp_path: Path) -> None:
    values = state(2)
    names = sorted(values)
    safetensors(tmp_path / "whole.safetensors", values)
    shards = tmp_path / "shards"
    shards.mkdir()
    files = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    for file in set(files.values()):
        safetensors(shards / file, {n: values[n] for n in names if files[n] == file})
    index = shards / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    rows = similarity(shards, tmp_path / "whole.safetensors", 0)
    assert sorted(rows) == names
    index.write_text(json.dumps({"weight_map": files | {"absent": files[names[0]]}}))
    refused(compare(shards, shards, "-o", tmp_path / "o"), 5, files[names[0]], '"absent"')
    index.write_text(json.dumps({"weight_map": files | {"x": "../whole.safetensors"}}))
    refused(compare(shards, shards, "-o", tmp_path / "o"), 5, index, "no file name")
    index.write_text(json.dumps({"weight_map": files}))
    (shards / files[names[0]]).unlink()
    refused(compare(shards, shards, "-o", tmp_path / "o"), 3, files[names[0]])
    index.write_text("{")
    refused(compare(shards, shards, "-o", tmp_path / "o"), 5, index)
    assert not (tmp_path / "o").exists()


STAGES = [(0, 0, [0, 1]), (0, 1, [2]), (1, 0, [3]), (1, 1, [4])]


def test_megatron_ranks_are_merged(tmp_path: Path) -> None:
    """Uneven stages, virtual ones, a gated MLP, grouped experts: the same model as one rank's."""
    megatron(tmp_path / "one", (1, 1, 1), [(0, 0, [0, 1, 2, 3, 4])])
    megatron(tmp_path / "many", (2, 2, 2), STAGES)
    rows = similarity(tmp_path / "many", tmp_path / "one", 0)
    assert {row["l2"] for row in rows.values()} == {0.0}
    assert rows["decoder.layers.4.mlp.experts.linear_fc1.weight3"]["shape"] == [32, 8]
    assert len(rows) == 73
    iteration = tmp_path / "many" / "iter_0000100"
    assert similarity(iteration, tmp_path / "one", 0) == rows
    (tmp_path / "many" / "latest_checkpointed_iteration.txt").write_text("release\n")
    refused(compare(tmp_path / "many", iteration, "-o", tmp_path / "o"), 3, "many/release")
    iteration.rename(tmp_path / "many" / "release")
    assert similarity(tmp_path / "many", tmp_path / "one", 0) == rows
    (tmp_path / "many" / "latest_checkpointed_iteration.txt").write_text("soon")
    refused(compare(tmp_path / "many", tmp_path / "one", "-o", tmp_path / "o"), 5, '"soon"')


def test_megatron_ranks_that_are_missing_or_cut(tmp_path: Path) -> None:
    megatron(tmp_path / "many", (2, 2, 2), STAGES)
    iteration = tmp_path / "many" / "iter_0000100"
    path = iteration / "mp_rank_01_001_000" / "model_optim_rng.pt"
    whole = path.read_bytes()
    path.write_bytes(whole[:len(whole) // 2])
    refused(compare(iteration, iteration, "-o", tmp_path / "o"), 5, path)
    shutil.rmtree(path.parent)
    refused(compare(iteration, iteration, "-o", tmp_path / "o"), 3,
            "7 rank directories (expected 8 = 2 tensor x 2 pipeline x 2 expert ranks)")
    assert not (tmp_path / "o").exists()


FSDP = PROLOGUE + """
import os
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
join()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
if rank == 0: torch.save({"model": model.state_dict()}, sys.argv[4] + "/whole.pt")
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
dcp.save({"model": model.state_dict(), "step": 3}, checkpoint_id=sys.argv[4] + "/sharded")
finish()
os._exit(0)  # the files are there; torch's own end of a sharded run sometimes aborts
"""


def test_fsdp_shards_are_put_together(tmp_path: Path) -> None:
    run_ranks(tmp_path, FSDP, tmp_path)
    rows = similarity(tmp_path / "sharded", tmp_path / "whole.pt", 0)
    assert sorted(rows) == ["model.0.bias", "model.0.weight", "model.1.bias", "model.1.weight"]
    assert {row["l2"] for row in rows.values()} == {0.0}
    shards = sorted((tmp_path / "sharded").glob("*.distcp"))
    assert len(shards) == 2
    cut = shards[1].read_bytes()
    shards[1].write_bytes(cut[:-600])
    rows = similarity(tmp_path / "sharded", tmp_path / "whole.pt", 1)
    assert {row["reason"] for row in rows.values()} >= {"unreadable"}
    metadata = tmp_path / "sharded" / ".metadata"
    whole = metadata.read_bytes()
    for at in range(0, len(whole), 29):
        metadata.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:])
        done = compare(tmp_path / "sharded", tmp_path / "whole.pt", "-o", tmp_path / f"o{at}")
        assert 0 <= done.returncode <= 6, (at, done)  # no crash; some bytes do not matter
        metadata.write_bytes(whole[:at])
        assert 4 <= compare(tmp_path / "sharded", tmp_path / "whole.pt").returncode <= 5, at
    metadata.write_bytes(whole)
    shards[1].unlink()
    refused(compare(tmp_path / "sharded", tmp_path / "whole.pt", "-o", tmp_path / "o"), 3,
            shards[1])


# ---- bad input


class Evil:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("legacy", [True, False])
def test_pickles_with_code_are_refused(tmp_path: Path, legacy: bool) -> None:
    import os

    mark = tmp_path / "executed"
    for function, argument in ((os.system, f"touch {mark}"), (eval, f"open({str(mark)!r}, 'w')"),
                               (print, "x"), (getattr, "x")):
        torch.save({"w": torch.ones(2), "e": Evil(function, argument)}, tmp_path / "evil.pt",
                   _use_new_zipfile_serialization=not legacy)
        refused(compare(tmp_path / "evil.pt", tmp_path / "evil.pt", "-o", tmp_path / "o"), 4,
                tmp_path / "evil.pt", "Nothing was executed")
    assert not mark.exists() and not (tmp_path / "o").exists()


def raw(header: str | bytes, data: bytes = b"", size: int | None = None) -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(text) if size is None else size) + text + data


def entry(begin: int, end: int, dtype: str = "F32", shape: str = "[2]") -> str:
    return f'{{"dtype": "{dtype}", "shape": {shape}, "data_offsets": [{begin}, {end}]}}'


BAD = [
    (b"", "ends early"), (b"\x10", "ends early"), (raw("{}", size=1 << 40), "a header of"),
    (raw("{}", size=200_000_000), "a header of"), (raw("{"), "header"), (raw("[]"), "header"),
    (raw(b"{\xff}"), "header"), (raw('{"a": 1}'), "header"), (raw('{"a": {}}'), '"a"'),
    (raw(f'{{"a": {entry(0, 8)}}}', b"1234567"), "ends behind the file"),
    (raw(f'{{"a": {entry(0, 8)}}}', b"123456789"), "1 bytes belong to no tensor"),
    (raw(f'{{"a": {entry(0, 8)}, "b": {entry(4, 12)}}}', b"1" * 12), "overlaps"),
    (raw(f'{{"a": {entry(0, 8)}, "b": {entry(12, 20)}}}', b"1" * 20), "gap"),
    (raw(f'{{"a": {entry(0, 8)}, "a": {entry(8, 16)}}}', b"1" * 16), "twice"),
    (raw(f'{{"a": {entry(8, 0)}}}', b"1" * 8), '"a"'),
    (raw(f'{{"a": {entry(0, 8, shape="[3]")}}}', b"1" * 8), "8 bytes of data for 3 elements"),
    (raw(f'{{"a": {entry(0, 8, shape="[-2]")}}}', b"1" * 8), "no length"),
    (raw(f'{{"a": {entry(0, 8, shape="[4611686018427387904, 4]")}}}', b"1" * 8), ""),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_damaged_safetensors(tmp_path: Path, number: int) -> None:
    content, text = BAD[number]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    refused(compare(path, path, "-o", tmp_path / "o"), 5, path, text)
    assert not (tmp_path / "o").exists()


def test_element_types_that_are_not_read_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "new.safetensors"
    path.write_bytes(raw(f'{{"a": {entry(0, 8)}, "b": {entry(8, 9, "F4")}}}', b"1" * 9))
    rows = similarity(path, path, 1)
    assert [rows[name]["verdict"] for name in "ab"] == ["same", "not comparable"]


def test_damaged_elements_are_a_row(tmp_path: Path) -> None:
    torch.save({"a": torch.full((1000,), 7.5), "b": torch.ones(3)}, tmp_path / "good.pt")
    data = (tmp_path / "good.pt").read_bytes()
    at = data.index(struct.pack("<f", 7.5) * 100)
    (tmp_path / "bad.pt").write_bytes(data[:at] + b"\1" + data[at + 1:])
    rows = similarity(tmp_path / "bad.pt", tmp_path / "good.pt", 1)
    assert rows["a"]["reason"] == "unreadable" and rows["b"]["verdict"] == "same"


def test_nothing_is_overwritten_and_nothing_is_left(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    (tmp_path / "result.json").write_text("mine")
    words = (tmp_path / "a.pt", tmp_path / "a.pt", "-o", tmp_path / "result.json")
    refused(compare(*words), 6, "exists already")
    assert (tmp_path / "result.json").read_text() == "mine"
    for count in (1, 2, 3):  # in a directory every result has a name of its own
        compare(tmp_path / "a.pt", tmp_path / "a.pt", "-o", tmp_path / "results")
        found = list((tmp_path / "results").iterdir())
        assert len(found) == count
        assert all(json.loads(path.read_text())["a"]["cos"] == 1.0 for path in found)
    refused(compare(tmp_path / "a.pt", tmp_path / "none.pt", "-o", tmp_path / "o"), 3, "none.pt")
    torch.save({"step": 3}, tmp_path / "empty.pt")
    refused(compare(tmp_path / "a.pt", tmp_path / "empty.pt", "-o", tmp_path / "o"), 2,
            "no tensors")
    assert not (tmp_path / "o").exists()


def test_upstream_spelling(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    words = [str(PLUMB), "msprobe", "config_check", "-c", tmp_path / "a.pt", tmp_path / "a.pt"]
    done = subprocess.run(words, cwd=tmp_path, text=True, capture_output=True, check=False,
                          timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "ckpt_similarity.json").read_text())["a"]["cos"] == 1.0
    bad = subprocess.run([str(PLUMB), "msprobe", "config_check", "--odd", "x.log"], text=True,
                         capture_output=True, check=False, timeout=60)
    assert bad.returncode == 4 and "config_check --odd: not built yet" in bad.stderr
