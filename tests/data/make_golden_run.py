"""Writes tests/data/upstream_1.2.2/golden_run/step{0,1}.json: the golden run of a small MLP.

    python make_golden_run.py OUT {upstream|plumbline}

records two training steps at level L1 with statistics and checksums. OUT gets a copy of each
step's dump.json. The stored files come from release 1.2.2; tests/python/test_golden_run.py runs
this file with plumbline. All numbers are small multiples of a power of two, so that every product
and sum is exact and each processor gives the same bytes.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
from torch import nn

SEED = 1234


def main() -> None:
    out, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
    if tool == "upstream":
        from msprobe.pytorch import PrecisionDebugger
    else:
        from plumbline.pytorch import PrecisionDebugger
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(3, 4, bias=False), nn.ReLU(inplace=True), nn.Linear(4, 2))
    values = torch.randint(-16, 17, (5, 3)) / 8
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randint(-16, 17, weight.shape) / 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    with tempfile.TemporaryDirectory() as work:
        config = pathlib.Path(work) / "config.json"
        section = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "md5"}
        config.write_text(json.dumps({
            "task": "statistics", "dump_path": f"{work}/out", "level": "L1", "rank": [],
            "step": [], "statistics": section}))
        config.chmod(0o640)
        debugger = PrecisionDebugger(config_path=str(config))
        for _ in range(2):
            debugger.start()
            model(values).sum().backward()
            debugger.stop()
            debugger.step()
            optimizer.step()
            optimizer.zero_grad()
        for step in range(2):
            source = pathlib.Path(work, "out", f"step{step}", "rank", "dump.json")
            shutil.copyfile(source, out / f"step{step}.json")


if __name__ == "__main__":
    main()
