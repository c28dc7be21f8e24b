"""Dumps a small network in GRAPH_MODE by calls on the class alone, and says what else it sees.

    python graph_classes.py PACKAGE

PACKAGE is plumbline or msprobe. Runs in the working directory, with the config.json there; prints a
JSON object of what the debugger is and what wrong use raised.
"""

import importlib
import json
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn


def raised(action) -> list[str]:
    try:
        action()
    except Exception as error:
        return [type(error).__name__, *(base.__name__ for base in type(error).__mro__[1:-2]),
                str(error)]
    return []


def main() -> None:
    debugger_class = importlib.import_module(f"{sys.argv[1]}.mindspore").PrecisionDebugger
    ms.set_context(mode=ms.GRAPH_MODE)
    facts = {"early": raised(debugger_class.start),
             "level": raised(lambda: debugger_class("config.json", level="L1")),
             "missing": raised(lambda: debugger_class("none.json")),
             "no_file": raised(lambda: debugger_class(task="tensor", level="L2"))}
    first = debugger_class("config.json") if facts["no_file"] else debugger_class()
    second = debugger_class("config.json", level="L2")
    facts["one"] = first is second and type(first) is debugger_class
    net = nn.Dense(3, 2)
    for _ in range(2):
        debugger_class.start(net)
        net(Tensor(np.ones((4, 3), np.float32)))
        debugger_class.save(1, "name")
        debugger_class.monitor(net)
        debugger_class.stop()
        debugger_class.step()
    debugger_class.forward_backward_dump_end()
    facts["init"] = raised(lambda: debugger_class.set_init_step(-1))
    facts["directory"] = first.run_directory
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
