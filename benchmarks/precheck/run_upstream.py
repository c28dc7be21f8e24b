"""Upstream 1.2.2's program, whose pre-check asks for a GPU, with that device being the CPU.

    python run_upstream.py -f pytorch run_ut -api_info dump.json -o DIR

To be run by the interpreter that has mindstudio-probe 1.2.2. Nothing else of it is changed.
"""

import sys

import torch

torch.cuda.set_device = lambda *_: None
torch.cuda.empty_cache = lambda: None

from msprobe import msprobe  # noqa: E402
from msprobe.pytorch.api_accuracy_checker.run_ut import run_ut, run_ut_utils  # noqa: E402

for module in (run_ut, run_ut_utils):
    module.current_device = "cpu"

if __name__ == "__main__":
    sys.exit(msprobe.main())
