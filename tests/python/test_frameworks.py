"""The examples of frameworks: recorded as they should be, and the same weights as without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def result_of(example: str, argument: str) -> str:
    environment = dict(os.environ, HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", PLUMBLINE_LOG_LEVEL="2")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(EXAMPLES / f"{example}.py"), argument],
        capture_output=True, text=True, timeout=180, check=False, env=environment,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return next(
        line for line in done.stdout.splitlines() if line.startswith(("weights ", "tokens "))
    )


def entries(directory: Path, step: int) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((directory / f"step{step}/rank/dump.json").read_text())
    return data["data"]


@pytest.mark.parametrize(
    ("example", "package", "steps", "forwards"),
    [
        ("record_trainer", "accelerate", 3, 2),  # two micro-batches to a step
        ("record_trainer_without_callback", "accelerate", 3, 1),
        ("record_accelerate", "accelerate", 4, 1),
        ("record_lightning", "lightning", 3, 1),
    ],
)
def test_training_is_recorded_and_unchanged(
    tmp_path: Path, example: str, package: str, steps: int, forwards: int
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip(package)
    assert result_of(example, str(tmp_path / "out")) == result_of(example, "none")
    assert len(list((tmp_path / "out").iterdir())) == steps
    for step in range(steps):
        data = entries(tmp_path / "out", step)
        layers = [n for n in data if ".layers.1.LlamaDecoderLayer.forward." in n]
        assert len(layers) == forwards
        assert all("output" in data[name] for name in layers)
        assert sum(".layers.1.LlamaDecoderLayer.backward." in n for n in data) == forwards
        weights = [n for n in data if n.endswith(".q_proj.Linear.parameters_grad")]
        assert len(weights) == 2 and all(data[n]["weight"][0]["Norm"] > 0 for n in weights)
        if example == "record_accelerate" and step % 2 == 1:
            stack = json.loads((tmp_path / f"out/step{step}/rank/construct.json").read_text())
            assert "optimizer" in stack and "clip_grad" in stack


def test_generation_records_the_tokens_of_the_range(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    recorded = result_of("record_generate", str(tmp_path / "out"))
    assert recorded == result_of("record_generate", "none")
    data = entries(tmp_path / "out", 0)
    layers = [e for n, e in data.items() if ".layers.0.LlamaDecoderLayer.forward." in n]
    # With a key-value cache each call after the prompt reads one token.
    assert [e["input_args"][0]["shape"] for e in layers] == [[1, 1, 16]] * 3
    assert not [n for n in data if "backward" in n]
    assert any(n.startswith("Functional.linear.") for n in data)
