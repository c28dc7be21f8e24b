"""Scripts that catch upstream's exceptions; prints what they saw."""

import json
import os
import sys

import torch

from msprobe.core.common.exceptions import MsprobeException, ScopeException
from msprobe.pytorch import PrecisionDebugger, module_dump


def caught(action):
    """One process each: upstream's debugger exists after its constructor has raised."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        action()
    except (MsprobeException, ScopeException) as error:
        print(type(error).__name__, error.code, bool(error.error_info))
    except Exception as error:
        print("other Exception", error)
    else:
        print("no error")
    sys.stdout.flush()
    os._exit(0)


def with_config(**options):
    path = "config.json"
    with open(path, "w") as file:
        json.dump({"task": "statistics", "dump_path": "./dump", "level": "L1", **options}, file)
    return lambda: PrecisionDebugger(path)


caught(lambda: PrecisionDebugger(dump_path=3))
caught(lambda: PrecisionDebugger(dump_path="./dump", level="L9"))
caught(lambda: PrecisionDebugger(dump_path="./dump", task="nothing"))
caught(with_config(rank=3))
caught(with_config(step=["5-3"]))
caught(with_config(statistics={"scope": ["Functional.linear.0.forward"]}))
caught(with_config(statistics={"data_mode": ["all", "forward"]}))
caught(with_config(async_dump=3))
caught(lambda: module_dump(torch.nn.Linear(1, 1), "one"))
caught(lambda: module_dump(3, "one"))
