"""Trainings that tests hold against the CPU, each in a process of its own: NAME OUT.

Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

import plumbline


def forever(out: str) -> dict[str, Any]:
    """Checks until it is killed."""
    layer = nn.Linear(8, 8)
    with plumbline.check_operators(out, device="cpu", dump="all", workers=2):
        print("running", flush=True)
        while True:
            layer(torch.randn(4, 8)).sum().backward()


def full_disk(out: str) -> dict[str, Any]:
    """More rows than the file system holds; the program goes on."""
    layer = nn.Linear(64, 64)
    with plumbline.check_operators(out, device="cpu", dump="all") as check:
        for _ in range(40):
            layer(torch.randn(64, 64)).sum().backward()
    text = Path(check.files[0]).read_bytes()
    return {"answer": check.answer, "warnings": check.warnings, "whole": text.endswith(b"\r\n"),
            "gradient": layer.weight.grad is not None, "counts": check.counts}


def main() -> None:
    name, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    found = {"forever": forever, "full_disk": full_disk}[name](out)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
