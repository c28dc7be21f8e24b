"""PyTorch itself, also where MindTorch stands before it on the module path.

MindTorch (MSAdapter) is enabled by a directory on PYTHONPATH that has a package of PyTorch's name.
The benchmark side must not find that one.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from pathlib import Path

from plumbline.precheck_run.executor import Framework


def load(device: str) -> Framework:
    """See plumbline.precheck_run.pytorch.

    Raises:
        RuntimeError: no package `torch` on the module path is PyTorch.
    """
    sys.path[:] = path_without_adapters(sys.path)
    pytorch = importlib.import_module("plumbline.precheck_run.pytorch")
    framework: Framework = pytorch.load(device)
    return framework


def path_without_adapters(path: list[str]) -> list[str]:
    """The module path without directories whose package `torch` is not PyTorch.

    Raises:
        RuntimeError: as load().
    """
    rest = list(path)
    while True:
        package = package_on_path(rest)
        if package is None:
            raise RuntimeError("no PyTorch on the module path: install it where this interpreter"
                               " finds it")
        if is_pytorch(package):
            return rest
        # An empty text is the working directory.
        rest = [entry for entry in rest
                if (Path(entry or ".") / "torch").resolve() != package.resolve()]


def package_on_path(path: list[str] | None = None) -> Path | None:
    """The directory of the package `torch` that is found first; None: there is none."""
    spec = importlib.machinery.PathFinder.find_spec("torch", path)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def is_pytorch(package: Path) -> bool:
    """Whether a package directory `torch` has PyTorch's native module, without importing it."""
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    return any((package / f"_C{suffix}").is_file() for suffix in suffixes)
