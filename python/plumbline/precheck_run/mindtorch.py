"""Calls with PyTorch's names that MindTorch (MSAdapter) answers, and PyTorch as their benchmark.

MindTorch is a package `torch` that stands before PyTorch on the module path. No process can have
both, so each executor imports the one that it needs.
"""

from __future__ import annotations

import importlib
from typing import Any

import mindspore as ms

from plumbline.precheck_run import native_torch
from plumbline.precheck_run.mindspore import MindSporeFramework


def load(device: str) -> MindSporeFramework:
    """MindTorch and PyTorch, in executors; here MindSpore alone.

    Raises:
        RuntimeError: the package `torch` that is found first is PyTorch.
    """
    package = native_torch.package_on_path()
    if package is not None and native_torch.is_pytorch(package):
        raise RuntimeError(f"the package torch ({package}) is PyTorch, not MindTorch. Put MindTorch"
                           " (MSAdapter) first on PYTHONPATH, as in the training")
    return MindSporeFramework(_owners, lambda: native_torch.load("cpu"))


def _owners() -> dict[str, Any]:
    torch = importlib.import_module("torch")
    if not issubclass(torch.Tensor, ms.Tensor):
        raise RuntimeError(f"the tensors of the package torch ({torch.__file__}) are not"
                           " MindSpore's: it is no MindTorch")
    functional = importlib.import_module("torch.nn.functional")
    return {"Torch": torch, "Functional": functional, "Tensor": torch.Tensor}
