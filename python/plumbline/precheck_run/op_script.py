"""Writes a program that runs one recorded call on a device and on the CPU and prints how far apart
they are; the program beside `plumb op_generate`.

    python -m plumbline.precheck_run.op_script

Descriptor 3 is a stream socket for lines, 4 is the memory of the inputs:

    <- {"target": REQUEST, "bytes": [N], "directory", "file": "Functional.softmax.3.forward",
        "standard": "benchmark", "is_backward", "repeats", "seed"}
    -> {"script": path} or {"error": text}
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from plumbline.precheck_run.case_script import GRADIENTS, TENSORS, call_text, function_text
from plumbline.precheck_run.extract import save, serve_one, write_all
from plumbline.precheck_run.extracted_case import load, names_in

# By the standard of an API: what the printed table is called, and its rows.
STANDARDS = ("binary_consistency", "absolute_threshold", "ulp_compare", "thousandth_threshold",
             "benchmark")
_PROGRAM = Path(__file__).with_name("op_program.txt")


def write(request: dict[str, Any], memories: list[memoryview],
          tell: Callable[[str], None]) -> dict[str, Any]:
    """Writes the program and its tensors; where they are.

    Raises:
        ValueError: the call is none of plain PyTorch.
        OSError: the files cannot be written.
    """
    case = load(request, memories[0], memoryview(b""))
    if not request["is_backward"]:
        case = replace(case, grads=[])
    grads = [None if grad is None else grad.name for grad in case.grads]
    wanted = [name for name in names_in([case.target.args, case.target.kwargs])
              if name in case.wants_grad]
    if request["is_backward"] and not grads:
        raise ValueError(request.get("backward_skip") or "no gradient came into its backward")
    name = request["file"]
    text = _PROGRAM.read_text(encoding="utf-8")
    values = {
        "NAME": name, "DATA": f"{name}.pt", "FUNCTION": function_text(case),
        "CALL": call_text(case, case.target, "device"),
        "RAISED": "{" + ", ".join(f"{one!r}: {case.raised[one]}" for one in case.tensors) + "}",
        "AUTOCAST": str(case.autocast),
        "STANDARD": request["standard"],
        "GRADS": repr(grads), "WANTED": repr(wanted if grads else []),
        "REPEATS": str(request["repeats"]), "SEED": str(request["seed"]),
        "TENSORS": TENSORS.strip(), "GRADIENTS": GRADIENTS.strip(),
    }
    text = re.sub("@([A-Z]+)@", lambda found: values[found[1]], text)
    directory = Path(request["directory"])
    script = directory / f"{name}.py"
    write_all({directory / f"{name}.pt": lambda path: save(case.tensors, path),
               script: lambda path: path.write_text(text, encoding="utf-8")})
    return {"script": str(script)}


if __name__ == "__main__":
    sys.exit(serve_one(write))
