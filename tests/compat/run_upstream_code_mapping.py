"""Runs upstream 1.2.2's own code_mapping, which needs no MindSpore, where there is none.

    python run_upstream_code_mapping.py --ir FILE --dump_data PATH [--output DIR]
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
import types
from pathlib import Path


def main() -> int:
    # The packages above the command import MindSpore when they are imported.
    place = Path(importlib.util.find_spec("msprobe").submodule_search_locations[0])
    package = types.ModuleType("msprobe.mindspore")
    package.__path__ = [str(place / "mindspore")]
    log = types.ModuleType("msprobe.mindspore.common.log")
    log.logger = logging.getLogger("msprobe")
    sys.modules["msprobe.mindspore"] = package
    sys.modules["msprobe.mindspore.common.log"] = log
    from msprobe.mindspore.code_mapping.cmd_parser import add_ir_parser_arguments
    from msprobe.mindspore.code_mapping.main import code_mapping_main

    parser = argparse.ArgumentParser()
    add_ir_parser_arguments(parser)
    code_mapping_main(parser.parse_args())
    return 0


if __name__ == "__main__":
    sys.exit(main())
