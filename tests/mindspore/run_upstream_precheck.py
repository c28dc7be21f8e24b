"""The real upstream tool with MindSpore, whose environment it is not installed in.

    python run_upstream_precheck.py SITE_PACKAGES JOBS

JOBS is a list of lists in JSON: ["record", TASK, DIRECTORY], or words of msprobe's command line, in
which a * stands for the only path that there is. A forked process runs each, in order. Packages of
SITE_PACKAGES come last, but for msprobe itself.
"""

from __future__ import annotations

import glob
import importlib
import json
import os
import shutil
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


def run(words: list[str]) -> None:
    """One job."""
    if words[0] == "record":
        mint.norm = norm
        ms.set_context(mode=ms.PYNATIVE_MODE)
        network = importlib.import_module("ms_mint_network")
        network.main("msprobe.mindspore", *words[1:])
        return
    sys.argv = ["msprobe", *(glob.glob(word)[0] if "*" in word else word for word in words)]
    importlib.import_module("msprobe.msprobe").main()


def main(site_packages: str, jobs: str) -> int:
    first = Path(tempfile.mkdtemp())
    (first / "msprobe").symlink_to(Path(site_packages) / "msprobe")
    sys.path.insert(0, str(first))
    sys.path.append(site_packages)
    for name in ("torch", "msprobe.msprobe"):  # once for all
        importlib.import_module(name)
    failures = 0
    for words in json.loads(jobs):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            run(words)
            return 0  # an ordinary end, at which upstream writes files
        failures += os.waitpid(child, 0)[1] != 0
    shutil.rmtree(first)
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
