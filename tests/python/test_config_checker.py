"""ConfigChecker: the pack of a training script is that of release 26.2.0, what that cannot tell
apart is told apart, and the training is the same with it as without.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest
import torch
from recording import PLUMB, config, run, run_script

from plumbline import ConfigChecker
from plumbline.config_check.pack import PackFile

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"

TRAINING = """
import sys
import numpy
import random
from plumbline import ConfigChecker
import torch
used = sys.argv[1]
if used != "none":
    ConfigChecker.apply_patches("pytorch")
torch.manual_seed(1)
random.seed(2)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
@torch.jit.script
def noise(x):
    return x + torch.randn(2, 2).sum()
if used != "none":
    ConfigChecker(model, output_zip_path=used, max_steps=2)
for step in range(4):
    x = torch.randn(5, 4) * random.random() + float(numpy.random.RandomState(3).rand())
    loss = noise(model(x)).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert type(torch.randn).__name__ == "builtin_function_or_method"
print(loss.item(), model[0].weight.sum().item(), torch.rand(1).item(), random.random())
"""


def members(pack: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(pack) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def compared(bench: Path, cmp: Path, out: Path) -> tuple[str, dict[str, list[tuple[object, ...]]]]:
    done = subprocess.run([PLUMB, "config_check", "-c", bench, cmp, "-o", out], text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    book = openpyxl.load_workbook(out / "result.xlsx")
    return done.stdout, {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book}


def test_pack_of_the_newest_release(tmp_path: Path) -> None:
    """The script that made the fixtures, unmodified, on the alias package."""
    script = DATA / "make_config_packs.py"
    paths = os.pathsep.join([str(ROOT / "python" / "msprobe_alias"), *sys.path])
    subprocess.run(
        [sys.executable, script, "collect", DATA / "config_packs" / "train.sh",
         tmp_path / "ours.zip", "True"],
        check=True, timeout=120, env={**os.environ, "PYTHONPATH": paths})
    ours = members(tmp_path / "ours.zip")
    theirs = members(DATA / "config_packs" / "cmp.zip")
    for name in ("dataset/step0/rank0/dataset.json", "weights/step0/rank0/weight.json"):
        assert json.loads(ours[name]) == json.loads(theirs[name]), name
    stacks = re.sub(r"File [^,]*make_config_packs.py", "File /job/train.py",
                    ours["random/rank0.json"].decode())
    assert json.loads(stacks) == json.loads(theirs["random/rank0.json"])
    assert f"torch={torch.__version__}" in ours["pip"].decode().splitlines()
    assert set(theirs) < set(ours)


def test_training_is_the_same(tmp_path: Path) -> None:
    script = tmp_path / "training.py"
    script.write_text(TRAINING)  # torch.jit reads its source
    without = run_script(script, "none").stdout
    assert run_script(script, tmp_path / "pack.zip").stdout == without
    found = members(tmp_path / "pack.zip")
    assert {"weights/step0/rank0/weight.json", "weights/step1/rank0/weight.json"} <= set(found)
    assert "weights/step2/rank0/weight.json" not in found
    counts = {name: [call["count"] for call in calls]
              for name, calls in json.loads(found["random/rank0.json"]).items()}
    assert counts == {"torch.manual_seed": [1], "torch.randn": [1], "random.random": [1]}
    (tmp_path / "file").write_text("")
    failed = run_script(script, tmp_path / "file" / "pack.zip")  # no directory can be made there
    assert failed.stdout.splitlines()[-1] == without.strip()
    assert failed.stdout.count("is not recorded") == 3


def test_a_damaged_pack_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "pack.zip").write_bytes(b"PK\3\4 cut")
    ConfigChecker(output_zip_path=str(tmp_path / "pack.zip"))
    assert set(members(tmp_path / "pack.zip")) == {"env", "pip"}


COMPILED = """
import sys
from plumbline import ConfigChecker
ConfigChecker.apply_patches()
import torch
model = torch.nn.Linear(2, 2)
class Noisy(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(2)
model = torch.compile(Noisy(), backend="eager", fullgraph=True)
ConfigChecker(model, output_zip_path=sys.argv[1])
model(torch.rand(2))
inner = Noisy()
ConfigChecker(inner, output_zip_path=sys.argv[1])
torch.compile(inner, backend="eager", fullgraph=True)(torch.rand(2))
print("fine")
"""


def test_compiled_models(tmp_path: Path) -> None:
    assert "fine" in run(COMPILED, tmp_path / "p.zip").stdout
    found = members(tmp_path / "p.zip")
    assert json.loads(found["dataset/step0/rank0/dataset.json"])["args"]["0"]["max"] > 0


RECORDED = """
import sys
import torch
from plumbline import ConfigChecker
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(config_path=sys.argv[1])
model = torch.nn.Linear(2, 2)
ConfigChecker(model, output_zip_path=sys.argv[2])
debugger.start(model)
model(torch.ones(2, 2))
debugger.stop()
debugger.step()
"""


def test_a_recorder_sees_nothing_of_it(tmp_path: Path) -> None:
    run(RECORDED, config(tmp_path, level="mix"), tmp_path / "pack.zip")
    data = json.loads((tmp_path / "out/step0/rank/dump.json").read_text())["data"]
    assert list(data) == ["Functional.linear.0.forward"]
    assert "weights/step0/rank0/weight.json" in members(tmp_path / "pack.zip")


class Kinds(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        parameter = torch.nn.Parameter
        self.small = parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).bfloat16())
        self.turned = parameter(torch.arange(6.0).reshape(2, 3).t())
        self.empty = parameter(torch.zeros(0, 3))
        self.bad = parameter(torch.tensor([1.0, float("nan")]))

    def forward(self, *args: object, **kwargs: object) -> int:
        return 1


def test_values_of_every_kind(tmp_path: Path) -> None:
    model = Kinds()
    ConfigChecker([model, None], output_zip_path=str(tmp_path / "p.zip"))
    loop: list[object] = [1]
    loop.append(loop)
    values = [torch.ones(2, dtype=torch.complex64), torch.tensor([True, False]), "text"]
    model(torch.arange(4), values, loop, {"k": torch.zeros(2, 2).to_sparse()},
          x=torch.tensor(3.0), empty=torch.zeros(0))
    found = members(tmp_path / "p.zip")
    inputs = json.loads(found["dataset/step0/rank0/dataset.json"])
    three = {"max": 3.0, "min": 3.0, "mean": 3.0, "norm": 3.0}
    assert inputs["kwargs"] == {"x": three, "empty": ""}
    assert inputs["args"]["0"]["mean"] == 1.5
    assert inputs["args"]["1"]["0"] == "" and inputs["args"]["1"]["2"] == ""
    assert inputs["args"]["1"]["1"]["max"] == 1.0
    assert inputs["args"]["2"] == {"0": "", "1": ""}
    weights = json.loads(found["weights/step0/rank0/weight.json"])
    assert list(weights) == ["small", "turned", "bad"]
    assert weights["small"]["norm"] == pytest.approx(30**0.5)
    assert weights["bad"]["max"] != weights["bad"]["max"]
    digests = json.loads(found["digests/step0/rank0/digests.json"])["weights"]
    assert digests["turned"].startswith("float32[3, 2]:")
    assert digests["small"].startswith("bfloat16[2, 2]:")
    # NaN on both sides proves nothing.
    text, sheets = compared(tmp_path / "p.zip", tmp_path / "p.zip", tmp_path / "out")
    assert {row[2]: row[3] for row in sheets["weights"][1:]} == {
        "small": "True", "turned": "True", "bad": "False"}
    assert "bad of step 0 rank 0: differs" in text


def test_permuted_values_are_told_apart(tmp_path: Path) -> None:
    """Their four statistics are equal."""
    packs = []
    for turned in (False, True):
        packs.append(tmp_path / f"{turned}.zip")
        model = torch.nn.Linear(2, 2, bias=False)
        with torch.no_grad():
            values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
            model.weight.copy_(values.t() if turned else values)
        ConfigChecker(model, output_zip_path=str(packs[-1]))
        model(torch.tensor([3.0, 1.0] if turned else [1.0, 3.0]))
    text, sheets = compared(*packs, tmp_path / "out")
    assert "weight of step 0 rank 0: other elements with the same statistics" in text
    assert sheets["weights"][1][:4] == (0, 0, "weight", "False")
    assert sheets["dataset"][1][:4] == (0, 0, "args.0", "False")
    text, sheets = compared(packs[0], packs[0], tmp_path / "same")
    assert {row[3] for name in ("weights", "dataset") for row in sheets[name][1:]} == {"True"}
    ConfigChecker.compare(str(packs[0]), str(packs[1]), str(tmp_path / "api"))
    assert (tmp_path / "api/result.xlsx").exists()
    with pytest.raises(FileNotFoundError):
        ConfigChecker.compare("missing.zip", str(packs[1]), str(tmp_path / "api"))


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    pack = str(tmp_path / "p.zip")
    for words, error in (
            ({"model": 3}, ValueError), ({"output_zip_path": "p.tar"}, ValueError),
            ({"shell_path": "a.sh"}, ValueError), ({"max_steps": 0}, ValueError),
            ({"fmk": "jax"}, ValueError)):
        with pytest.raises(error):
            ConfigChecker(**{"output_zip_path": pack, **words})  # type: ignore[arg-type]
    assert not Path(pack).exists()


def test_ranks_share_one_pack(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from plumbline.config_check.pack import PackFile\n"
        "for i in range(20):\n"
        "    PackFile(sys.argv[1]).add({f'weights/step{i}/rank{sys.argv[2]}/weight.json': '{}'})\n")
    started = [subprocess.Popen([sys.executable, "-c", script, tmp_path / "p.zip", str(rank)])
               for rank in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert len(members(tmp_path / "p.zip")) == 60
    assert [path.name for path in tmp_path.iterdir()] == ["p.zip"]


def test_an_older_pack_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "p.zip"
    PackFile(str(path)).add({"env": "{}", "weights/step7/rank3/weight.json": "{}"})
    PackFile(str(path)).add({"pip": ""})
    assert len(members(path)) == 3
    os.utime(path, (1e9, 1e9))
    PackFile(str(path)).add({"pip": ""})
    assert list(members(path)) == ["pip"]
