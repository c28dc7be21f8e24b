"""Many recordings of one program: torch is imported once, then a child process runs each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from recording import PLUMB, config, run

_PROLOGUE = """
import gc, json, os, signal, sys
import torch
from torch import nn
import torch.nn.functional as F
import plumbline.pytorch
torch.set_num_threads(1)
def program(name, PrecisionDebugger):
    path = sys.argv[1] + "/" + name + "/config.json"
"""
_EPILOGUE = """
gc.freeze()  # the children's last collections leave alone what is imported
codes = {}
for name in json.loads(sys.argv[2]):
    child = os.fork()
    if child == 0:
        program(name, plumbline.pytorch.PrecisionDebugger)
        sys.stdout.flush()
        sys.exit(0)  # an ordinary end: the debugger finishes when the interpreter does
    codes[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("\\ncodes " + json.dumps(codes))
"""


def run_forked(
    directory: Path, body: str, settings: dict[str, dict[str, Any]]
) -> tuple[dict[str, int], str]:
    """Runs `body` once per name of `settings`, with the config.json made of these options.

    In `body`, `name`, `path` (of the config.json) and PrecisionDebugger are defined. The output
    of a name lies in directory/name/out. Returns exit codes, negative ones for signals, and what
    all of them printed.
    """
    for name, options in settings.items():
        (directory / name).mkdir()
        config(directory / name, **options)
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    done = run(_PROLOGUE + indented + _EPILOGUE, directory, json.dumps(list(settings)))
    line = next(line for line in done.stdout.splitlines() if line.startswith("codes "))
    codes: dict[str, int] = json.loads(line.removeprefix("codes "))
    return codes, done.stdout + done.stderr


def record_all(
    directory: Path, body: str, settings: dict[str, dict[str, Any]]
) -> Path:
    """run_forked() where every name must end well. Returns the directory."""
    codes, text = run_forked(directory, body, settings)
    assert not any(codes.values()), text
    return directory


def answer(target: Path, golden: Path, output: Path) -> list[str]:
    """The lines that `plumb compare` prints; of an error, those."""
    done = subprocess.run([PLUMB, "compare", target, golden, "-o", output], text=True,
                          capture_output=True, check=False, timeout=60)
    return (done.stdout or done.stderr).splitlines()
