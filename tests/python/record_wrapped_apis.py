"""Calls every wrapped API once in a window and says which calls were made.

    python record_wrapped_apis.py OUT

OUT/dump is the recording. OUT/calls.json: "called" maps each name to [dtype, shape, maximum] of its
result (null if that is no tensor; the maximum is null where there is none), "failed" has those that
raised in the window only, "left" those without working arguments.
"""

from __future__ import annotations

import copy
import json
import sys
import warnings
from pathlib import Path

import torch
import wrapped_api_calls

from plumbline.pytorch import PrecisionDebugger
from plumbline.pytorch.api_hooks import wrapped_apis

warnings.simplefilter("ignore")
torch.set_num_threads(1)
out = Path(sys.argv[1])
calls, left = wrapped_api_calls.find_calls(wrapped_apis())
debugger = PrecisionDebugger(dump_path=str(out / "dump"), task="statistics", level="L1")
arguments = [copy.deepcopy(call.arguments) for call in calls]
results, failed = [], {}
debugger.start()
for call, (args, kwargs) in zip(calls, arguments, strict=True):
    try:
        results.append(getattr(call.owner, call.attribute)(*args, **kwargs))
    except Exception as error:
        results.append(None)
        failed[call.name] = repr(error)
debugger.stop()
debugger.step()
called = {}
for call, result in zip(calls, results, strict=True):
    called[call.name] = None
    if isinstance(result, torch.Tensor) and result.layout == torch.strided:
        has_maximum = result.is_floating_point() and result.numel() and not result.isnan().any()
        called[call.name] = [str(result.dtype), list(result.shape),
                             result.max().item() if has_maximum else None]
(out / "calls.json").write_text(json.dumps({"called": called, "failed": failed, "left": left}))
