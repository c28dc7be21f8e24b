"""PrecisionDebugger.save() at level debug: values, gradients and names, step after step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor
from ms_recording import new_debugger

W = np.arange(6, dtype=np.float32).reshape(3, 2)


def forward(debugger: Any, x: Tensor) -> Tensor:
    h = ms.ops.matmul(x, Tensor(W))
    debugger.save({"h": h, "parts": (h, [x * 2, 3])}, "hidden")
    debugger.save(0.5, "rate", save_backward=True)
    debugger.save(h, "alone", save_backward=False)
    debugger.save(h, 3)  # no name: a warning
    return (h * h).sum()


def test_values_and_gradients_of_two_steps(tmp_path: Path, capfd: Any) -> None:
    debugger = new_debugger(tmp_path, level="debug", task="tensor")
    x = np.array([[1, 2, 3]], np.float32)
    for _ in range(2):
        ms.value_and_grad(lambda value: forward(debugger, value))(Tensor(x))
        debugger.step()
    debugger._close()
    data = json.loads((tmp_path / "out/rank/debug.json").read_text())["data"]
    assert list(data) == [f"{name}.{number}" for number in (0, 1)
                          for name in ("hidden", "hidden_grad", "rate", "rate_grad", "alone")]
    folder = tmp_path / "out/rank/dump_tensor_data"
    hidden = x.astype(np.float64) @ W

    def values(record: Any) -> Any:
        return np.load(folder / record["data_name"])

    for number in (0, 1):
        saved, grads = data[f"hidden.{number}"], data[f"hidden_grad.{number}"]
        assert np.allclose(values(saved["h"]), hidden)
        assert np.allclose(values(saved["parts"][1][0]), 2 * x)
        assert saved["parts"][1][1] == {"type": "int", "value": 3}
        assert np.allclose(values(grads["h"]), 2 * hidden)
        assert grads["parts"][1] == [None, None]
        assert data[f"rate.{number}"] == {"type": "float", "value": 0.5}
        assert data[f"rate_grad.{number}"] is None
        assert saved["h"]["data_name"] == f"hidden.{number}.tensor.h.npy"
    assert "name is 3 (expected a string). Skipped" in capfd.readouterr().out
