"""The same as `mindspore` for calls with PyTorch's names, which MindTorch (MSAdapter) answers."""

from __future__ import annotations

from plumbline.precheck_run.mindspore import MindSporeFramework, load_mindtorch


def load(device: str) -> MindSporeFramework:
    """MindTorch.

    Raises:
        RuntimeError: the package `torch` of this process is PyTorch.
    """
    return load_mindtorch()
