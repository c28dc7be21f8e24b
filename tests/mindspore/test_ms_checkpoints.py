"""plumb compare on the .ckpt files that MindSpore itself writes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Parameter, Tensor, nn
from mindspore.train import serialization

import plumbline

PLUMB = os.environ.get("PLUMB") or str(Path(__file__).parents[2] / ".venv/bin/plumb")


class Net(nn.Cell):  # type: ignore[misc]
    """Parameters of several types and shapes, a scalar among them."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        random = np.random.default_rng(seed)
        self.fc = nn.Dense(7, 5)
        self.fc.weight.set_data(Tensor(random.standard_normal((5, 7)).astype(np.float32)))
        self.half = Parameter(Tensor(random.standard_normal(9).astype(np.float16)), name="half")
        self.scale = Parameter(Tensor(np.float32(random.standard_normal())), name="scale")
        self.table = Parameter(Tensor(random.integers(0, 9, (3, 2, 2)).astype(np.int64)),
                               name="table")
        self.used = Parameter(Tensor(np.array([True, False, True])), name="used")
        self.brain = Parameter(Tensor(random.standard_normal((4, 3)), ms.bfloat16), name="brain")


def rows(result: Any) -> dict[str, Any]:
    return {row["name"]: row for row in result.rows}


def save(net: Any, path: Path, **options: Any) -> str:
    ms.save_checkpoint(net, str(path), **options)
    return str(path)


def test_equal_and_different_parameters(tmp_path: Path) -> None:
    net = Net()
    first = save(net, tmp_path / "a.ckpt")
    result = plumbline.compare(first, save(net, tmp_path / "b.ckpt", crc_check=True))
    found = rows(result)
    assert set(found) == {"fc.weight", "fc.bias", "half", "scale", "table", "used", "brain"}
    # fc.bias is zeros on both sides.
    assert {row["verdict"] for name, row in found.items() if name != "fc.bias"} == {"same"}
    assert (found["scale"]["shape"], found["table"]["shape"]) == ([], [3, 2, 2])
    weight = net.fc.weight.asnumpy().astype(np.float64)
    changed = weight.astype(np.float32)
    changed[2, 3] += 0.5
    net.fc.weight.set_data(Tensor(changed))
    other = rows(plumbline.compare(save(net, tmp_path / "c.ckpt"), first))
    assert other["fc.weight"]["verdict"] == "broken" and other["half"]["verdict"] == "same"
    assert other["fc.weight"]["max_abs"] == pytest.approx(
        np.abs(changed - weight).max(), rel=1e-9)
    cosine = (changed * weight).sum() / np.linalg.norm(changed) / np.linalg.norm(weight)
    assert other["fc.weight"]["cos"] == pytest.approx(cosine, rel=1e-6)


def test_the_same_values_in_other_files(tmp_path: Path) -> None:
    net = Net(3)
    del net._params["brain"]  # NumPy, through which the others are written, has no bfloat16
    path = save(net, tmp_path / "a.ckpt")
    values = {name: torch.from_numpy(value.asnumpy().copy())
              for name, value in net.parameters_dict().items()}
    torch.save(values, tmp_path / "b.pt")
    for other in (save(net, tmp_path / "b.safetensors", format="safetensors"),
                  str(tmp_path / "b.pt")):
        found = rows(plumbline.compare(path, other))
        assert set(found) == set(values)
        assert {row["verdict"] for name, row in found.items() if name != "fc.bias"} == {"same"}


def test_large_parameters_lie_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(5).standard_normal((1000, 3)).astype(np.float32)
    whole = [{"name": "w", "data": Tensor(values)}]
    path = save(whole, tmp_path / "whole.ckpt")
    monkeypatch.setattr(serialization, "SLICE_SIZE", 1)  # KiB: the writer's own way, on less
    parts = save(whole, tmp_path / "parts.ckpt")
    assert Path(parts).stat().st_size > Path(path).stat().st_size + 100
    assert rows(plumbline.compare(parts, path))["w"]["verdict"] == "same"
    values[999, 2] = 7
    changed = save([{"name": "w", "data": Tensor(values)}], tmp_path / "changed.ckpt")
    assert rows(plumbline.compare(changed, parts))["w"]["verdict"] == "broken"


def test_what_is_beside_the_parameters(tmp_path: Path) -> None:
    net = Net()
    first, second = (
        save(net, tmp_path / f"{epoch}.ckpt",
             append_dict={"epoch_num": epoch, "lr": 0.5, "note": f"run {epoch} é"})
        for epoch in (1, 2))
    result = plumbline.compare(first, second)
    assert result.differing_values == {"note": ["run 1 é", "run 2 é"]}
    found = rows(result)
    assert (found["epoch_num"]["verdict"], found["lr"]["verdict"]) == ("broken", "same")


def test_damaged_and_encrypted_files_are_one_line(tmp_path: Path) -> None:
    net = Net()
    good = save(net, tmp_path / "good.ckpt", crc_check=True)
    content = bytearray(Path(good).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "bad.ckpt").write_bytes(content)
    (tmp_path / "cut.ckpt").write_bytes(content[:-30])
    save(net, tmp_path / "secret.ckpt", enc_key=b"0123456789abcdef")
    for name in ("bad", "cut", "secret"):
        done = subprocess.run([PLUMB, "compare", str(tmp_path / f"{name}.ckpt"), good],
                              capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode in (4, 5), done.stderr
        [line] = [line for line in done.stderr.splitlines() if f"{name}.ckpt" in line]
        assert line
