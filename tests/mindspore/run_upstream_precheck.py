"""The real upstream tool with MindSpore, whose environment it is not installed in.

    python run_upstream_precheck.py SITE_PACKAGES record TASK DIRECTORY
    python run_upstream_precheck.py SITE_PACKAGES WORD ...     (msprobe's command line)

Packages of SITE_PACKAGES come last, but for msprobe itself.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import mint


def norm(tensor: ms.Tensor, *rest: Any) -> ms.Tensor:
    """MindSpore has no norm on a CPU, which upstream computes of every tensor."""
    values = tensor.astype(ms.float32).asnumpy()
    return ms.Tensor(np.float32(np.linalg.norm(values.ravel())))


def main(site_packages: str, *words: str) -> None:
    with tempfile.TemporaryDirectory() as first:
        (Path(first) / "msprobe").symlink_to(Path(site_packages) / "msprobe")
        sys.path.insert(0, first)
        sys.path.append(site_packages)
        if words[0] == "record":
            mint.norm = norm
            ms.set_context(mode=ms.PYNATIVE_MODE)
            network = importlib.import_module("ms_mint_network")
            network.main("msprobe.mindspore", *words[1:])
        else:
            sys.argv = ["msprobe", *words]
            importlib.import_module("msprobe.msprobe").main()


if __name__ == "__main__":
    main(*sys.argv[1:])
