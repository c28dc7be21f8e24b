"""Writes the data mapping that upstream makes of a layer mapping.

    python run_upstream_layers.py TARGET_DUMP_JSON GOLDEN_DUMP_JSON RULES_YAML OUT_JSON
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from msprobe.core.compare.layer_mapping import generate_data_mapping_by_layer_mapping


def main() -> int:
    target, golden, rules, out = sys.argv[1:]
    sides = {"npu_json_path": target, "bench_json_path": golden}
    with tempfile.TemporaryDirectory() as folder:
        mapping = generate_data_mapping_by_layer_mapping(sides, rules, folder)
    Path(out).write_text(json.dumps(mapping))
    return 0


if __name__ == "__main__":
    sys.exit(main())
