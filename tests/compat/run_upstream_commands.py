"""Runs command lines of upstream's program, each in a child process forked after the slow imports.

    python run_upstream_commands.py REQUESTS.json

REQUESTS is a list of {"words": [...], "log": file}. What a command prints goes to its log, its exit
status to the log's name with ".status".
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

import transformers  # noqa: F401  before any recorder

from msprobe.msprobe import main as msprobe
from msprobe.pytorch import PrecisionDebugger  # noqa: F401


def run(words: list[str], log: str) -> int:
    """Status of one command, in this process."""
    stream = os.open(log, os.O_CREAT | os.O_WRONLY)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.argv = ["msprobe", *words]
    try:
        msprobe()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> int:
    for request in json.loads(Path(sys.argv[1]).read_text()):
        child = os.fork()
        if child == 0:
            status = run(request["words"], request["log"])
            sys.stdout.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        Path(request["log"] + ".status").write_text(str(status))
    return 0


if __name__ == "__main__":
    sys.exit(main())
