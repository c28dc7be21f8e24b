"""Writes tests/data/config_packs: two packs of `config_check` and what release 26.2.0 says of them.

    python make_config_packs.py OUT

needs torch and mindstudio-probe 26.2.0. bench.zip and cmp.zip are collected in two short trainings
(`ConfigChecker`), static.zip by `config_check -d` from two files; result.xlsx compares the first
two. The runs differ in environment, launch script, seed, one weight, and one call for random
numbers.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

LAUNCH = """#!/bin/bash
# --never 1
export LR=0.001
GPT_ARGS="
    --hidden-size 1024 \\
    --lr $LR \\
    --use-flash
"
torchrun --nproc_per_node 8 train.py \\
    $GPT_ARGS \\
    --batch-size {batch} --{decay} 0.1 --neg -1 | tee log.txt
"""
YAML = """model:
  lr: {lr}
  layers: [1, 2]
  name: None
  parts:
    - kind: a
    - kind: b
empty:
"""


def collect(script: str, pack: str, is_cmp: bool) -> None:
    from msprobe.core.config_check import ConfigChecker
    ConfigChecker.apply_patches("pytorch")
    import random

    import numpy as np
    import torch

    torch.manual_seed(2 if is_cmp else 1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    ConfigChecker(model, shell_path=[script], output_zip_path=pack, fmk="pytorch")
    if is_cmp:
        random.random()
    batch = torch.rand(5, 4)
    np.random.rand(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
        if is_cmp:
            model[1].bias.fill_(0.75)
    model(batch)


def run(*words: object, **environment: str) -> None:
    subprocess.run([str(word) for word in words], check=True, timeout=300,
                   env={**os.environ, **environment})


def keep_compared(pack: pathlib.Path, to: pathlib.Path) -> None:
    """A copy without most of the environment and the packages, which are nobody's business."""
    with zipfile.ZipFile(pack) as source, zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as out:
        for name in sorted(source.namelist()):
            data = source.read(name)
            if name == "pip":
                keep = (b"numpy", b"torch=", b"transformers")
                data = b"\n".join(x for x in data.splitlines() if x.startswith(keep)) + b"\n"
            if name == "env":
                known = {key: value for key, value in json.loads(data).items()
                         if key.startswith(("NCCL", "CUDA"))}
                data = json.dumps(known, indent=4).encode()
            data = data.replace(str(pathlib.Path(__file__).resolve()).encode(), b"/job/train.py")
            out.writestr(name, data)


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp())
    plain = {"PATH": os.environ["PATH"], "HOME": str(work)}
    os.environ.clear()
    os.environ.update(plain)
    sides = {"bench": ({"NCCL_ALGO": "ring"}, 4, "weight-decay", 0.1),
             "cmp": ({"NCCL_DETERMINISTIC": "True", "CUDA_LAUNCH_BLOCKING": "0"}, 8, "wd", 0.2)}
    for name, (environment, batch, decay, lr) in sides.items():
        place = work / name
        place.mkdir()
        (place / "train.sh").write_text(LAUNCH.format(batch=batch, decay=decay))
        (place / "train.yaml").write_text(YAML.format(lr=lr))
        run(sys.executable, __file__, "collect", place / "train.sh", work / f"{name}.zip",
            name == "cmp", **environment)
        keep_compared(work / f"{name}.zip", out / f"{name}.zip")
    msprobe = pathlib.Path(sys.executable).parent / "msprobe"
    run(msprobe, "config_check", "-d", work / "bench/train.sh", work / "bench/train.yaml", "-o",
        work / "static.zip", NCCL_ALGO="ring")
    keep_compared(work / "static.zip", out / "static.zip")
    run(msprobe, "config_check", "-c", out / "bench.zip", out / "cmp.zip", "-o", work / "result")
    shutil.copy(work / "result/result.xlsx", out / "result.xlsx")
    for name in ("train.sh", "train.yaml"):
        shutil.copy(work / "bench" / name, out / name)
    shutil.rmtree(work)


if __name__ == "__main__":
    if sys.argv[1] == "collect":
        collect(sys.argv[2], sys.argv[3], sys.argv[4] == "True")
    else:
        main()
