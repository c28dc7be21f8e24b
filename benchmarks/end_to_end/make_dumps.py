"""Records one step of the reference model with one tool: dumps for the comparison benchmarks.

Run it with the Python of the environment that holds the tool:

    python make_dumps.py --tool upstream --out DIR [--mode mix_stat ...]

writes DIR/<mode>/a (sound) and DIR/<mode>/b (one wrong epsilon in layer 2).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

MODES = {
    "L0_stat": ("L0", "statistics", "statistics"),
    "L1_stat": ("L1", "statistics", "statistics"),
    "mix_stat": ("mix", "statistics", "statistics"),
    "L0_md5": ("L0", "statistics", "md5"),
    "L1_md5": ("L1", "statistics", "md5"),
    "mix_md5": ("mix", "statistics", "md5"),
    "L1_tensor": ("L1", "tensor", "statistics"),
}
REFERENCE_MODES = ("mix_stat", "mix_md5", "L1_tensor", "L0_stat", "L1_stat")


def write_config(path: Path, mode: str, dump_path: Path) -> None:
    """Writes a config.json for one of MODES."""
    level, task, summary = MODES[mode]
    section: dict[str, object] = {"scope": [], "list": [], "data_mode": ["all"]}
    section["summary_mode"] = summary
    config = {
        "task": task,
        "dump_path": str(dump_path),
        "rank": [],
        "step": [],
        "level": level,
        "enable_dataloader": False,
        task: section,
    }
    path.write_text(json.dumps(config, indent=2))


def load_tool(tool: str):
    """PrecisionDebugger and seed_all of `tool` ("plumbline" or "upstream")."""
    if tool == "plumbline":
        from plumbline.pytorch import PrecisionDebugger, seed_all
    else:
        from msprobe.pytorch import PrecisionDebugger, seed_all
    return PrecisionDebugger, seed_all


def record(tool: str, mode: str, out: Path, defect: bool) -> None:
    """Records one step into `out`, which is emptied first."""
    import reference_model  # before the recorder: it imports transformers

    debugger_class, seed_all = load_tool(tool)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    config = out.parent / f"{out.name}.config.json"
    write_config(config, mode, out)
    os.chmod(config, 0o640)
    seed_all(reference_model.SEED)
    debugger = debugger_class(config_path=str(config))
    training = reference_model.build(defect)
    debugger.start(training.model)
    training.forward_backward(0)
    debugger.stop()
    training.update()
    debugger.step()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", choices=("plumbline", "upstream"), required=True)
    parser.add_argument("--out", type=Path, default=Path("build/bench/dumps"))
    parser.add_argument("--mode", action="append", choices=MODES, help="default: the reference set")
    parser.add_argument("--side", choices=("a", "b"), help="one side only (used internally)")
    args = parser.parse_args()
    if args.side:
        record(args.tool, args.mode[0], args.out.resolve() / args.mode[0] / args.side,
               defect=args.side == "b")
        return 0
    # A recorder is one per process, so each recording has its own.
    for mode in args.mode or REFERENCE_MODES:
        for side in ("a", "b"):
            command = [sys.executable, "-W", "ignore", __file__, "--tool", args.tool,
                       "--out", str(args.out), "--mode", mode, "--side", side]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            print(f"{args.out / mode / side}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
