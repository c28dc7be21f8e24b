"""Runs semantics_scenarios.py once:  python run_semantics.py none|CONFIG RESULT.json

The k-th scenario is step k. The file receives {name: fingerprint}; equal files mean that recording
changed nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from typing import Any

import torch
import torch.nn as nn
from semantics_scenarios import SCENARIOS


def fingerprint(value: Any) -> Any:
    """JSON of a value; of tensors dtype, shape and a hash of their bits."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().as_subclass(torch.Tensor).contiguous().cpu()
        bits = bytes(plain.clone().untyped_storage())
        return f"{plain.dtype}{list(plain.shape)} {hashlib.sha1(bits).hexdigest()[:16]}"
    if isinstance(value, dict):
        return {key: fingerprint(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [fingerprint(item) for item in value]
    return value


def main(config: str, result: str) -> None:
    torch.set_num_threads(1)
    debugger = None
    if config != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(config)

    @contextlib.contextmanager
    def window(model: nn.Module) -> Any:
        if debugger is not None:
            debugger.start(model)
        try:
            yield
        finally:
            if debugger is not None:
                debugger.stop()
                debugger.step()

    results = {}
    for name, function in SCENARIOS.items():
        torch.manual_seed(11)
        try:
            results[name] = fingerprint(function(window))
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    with open(result, "w", encoding="utf-8") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
