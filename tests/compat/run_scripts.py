"""Runs scripts written for upstream, unmodified, each in a child process and a folder of its own.

    python run_scripts.py OUT SCRIPT ...

Which tool `msprobe` is depends on the interpreter and PYTHONPATH. It is imported once, before the
children are forked, because that takes seconds; what a script prints goes to OUT/<name>/stdout.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
import traceback
from pathlib import Path

import msprobe.pytorch  # noqa: F401


def main() -> int:
    gc.freeze()  # the children's last collections leave alone what is imported
    out, failures = Path(sys.argv[1]), 0
    for script in map(Path, sys.argv[2:]):
        folder = out / script.stem
        folder.mkdir(parents=True)
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            sys.stdout.flush()
            os.dup2(os.open("stdout", os.O_CREAT | os.O_WRONLY), 1)
            try:
                runpy.run_path(str(script.resolve()), run_name="__main__")
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            sys.exit(0)  # an ordinary exit: recorders finish in atexit handlers
        failures += os.waitpid(child, 0)[1] != 0
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
