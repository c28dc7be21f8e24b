"""A PyTorch accelerator called `testdev`, for tests on machines without one.

`import torch` loads it by itself where this package is on the path (entry point group
`torch.backends`). Its memory faults when the host touches it, its kernels are the CPU's, it counts
copies and waits, and single operators can be made wrong:

    with plumbline_test_device.inject("mm", "scale", 1.01, dtype="bfloat16") as defect:
        model(x)
    assert defect.hits == 3

Three environment variables are read when the backend loads, so that they reach child processes:
PLUMBLINE_TEST_DEVICE_DEFECTS, a JSON list of objects with the arguments of `inject`;
PLUMBLINE_TEST_DEVICE_DEFERRED=1; PLUMBLINE_TEST_DEVICE_PROTECT=0.
"""

from __future__ import annotations

import torch  # noqa: F401 - loads the backend, unless the user switched that off

from plumbline_test_device.backend import (
    Defect,
    clear_defects,
    counters,
    defects_from_environment,
    deferred_copies,
    inject,
    load,
    op_counts,
    reset_counters,
    set_deferred,
    set_protect,
)

load()

__all__ = [
    "Defect",
    "clear_defects",
    "counters",
    "defects_from_environment",
    "deferred_copies",
    "inject",
    "load",
    "op_counts",
    "reset_counters",
    "set_deferred",
    "set_protect",
]
