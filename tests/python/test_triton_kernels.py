"""Triton kernels launched by the user are entries, with their arguments before and after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recording import config, dump, run
from triton_programs import REAL, STAND_IN

# tools/bootstrap.sh optional
OPTIONAL = [str(path) for path in
            (Path(__file__).parents[2] / "build/optional/lib").glob("python3*/site-packages")]
LAUNCHES = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(sys.argv[1])
x, out, other = torch.arange(10.0), torch.zeros(10), torch.zeros(10)
early, kinds = scale[(2,)], (type(scale), type(tuned))
originals = [kind.run for kind in kinds]
debugger.start()
returned = scale[(2,)](x, out, 10, BLOCK=8)
scale.warmup(x, out, 10, BLOCK=8, grid=(2,))  # compiles, launches nothing
early(x, out=other, n=10, BLOCK=8)
tuned[(2,)](x, out, 10, BLOCK=8)
scale[lambda meta: (10 // meta["BLOCK"] + 1,)](out, other, 10, BLOCK=8)
assert type(scale).run.__name__ == "run" and type(scale).run is not originals[0]
try: scale[(2,)](x, out)
except Exception: pass
else: sys.exit("a wrong launch was none")
debugger.stop()
scale[(2,)](x, out, 10, BLOCK=8)
assert [kind.run for kind in kinds] == originals
debugger.start(); torch.relu(x); scale[(2,)](x, out, 10, BLOCK=8); debugger.stop(); debugger.step()
assert returned == {returned} and out.tolist() == [2.0 * one for one in range(10)]
"""


@pytest.mark.parametrize("kernels", ["stand-in", "real"])
def test_launches_are_entries(
    tmp_path: Path, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels == "real" and not OPTIONAL:
        pytest.skip("Triton is not installed (tools/bootstrap.sh optional)")
    source = tmp_path / "kernels.py"  # Triton reads the source of a kernel from its file
    source.write_text(REAL if kernels == "real" else STAND_IN)
    monkeypatch.setitem(os.environ, "TRITON_INTERPRET", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(
        [str(tmp_path), *OPTIONAL, *filter(None, [os.environ.get("PYTHONPATH")])]))
    returned = "None" if kernels == "real" else "'launched'"
    # A fresh interpreter: the variable is read when Triton is imported.
    run("import sys; sys.path.insert(0, sys.argv[1].rpartition('/')[0])\n"
        "from kernels import scale, tuned\n" + LAUNCHES.replace("{returned}", returned),
        config(tmp_path, summary_mode="md5"), fresh=True)
    data = dump(tmp_path)
    names = [f"Triton.scale.{number}.forward" for number in range(6)]
    assert list(data) == [*names[:5], "Torch.relu.0.forward", names[5]]
    first = data[names[0]]
    assert [arg.get("value") for arg in first["input_args"][2:]] == [10]
    assert (first["input_args"][0]["Max"], first["input_args"][1]["Max"]) == (9.0, 0.0)
    assert first["input_kwargs"]["BLOCK"]["value"] == 8
    assert [one["value"] for one in first["input_kwargs"]["grid"]] == [2]
    assert first["output"][0]["md5"] == first["input_args"][0]["md5"]
    assert (first["output"][1]["Max"], first["output"][1]["Norm"]) == (
        18.0, pytest.approx(2 * sum(one * one for one in range(10)) ** 0.5, rel=1e-6))
    by_name = data[names[1]]
    assert list(by_name["input_kwargs"]) == ["out", "n", "BLOCK", "grid"]
    assert (by_name["input_kwargs"]["out"]["Max"], by_name["output"][1]["Max"]) == (0.0, 18.0)
    assert data[names[2]]["output"][1]["Max"] == 18.0  # of the tuned one, with what it tried
    assert data[names[3]]["output"][1]["Max"] == 36.0
    assert data[names[3]]["input_kwargs"]["grid"]["value"] is None  # a function
    assert "output" not in data[names[4]]  # it raised


def test_only_the_outermost_call_is_an_entry(tmp_path: Path) -> None:
    run(STAND_IN + """
import torch
from plumbline.pytorch import PrecisionDebugger

@torch.library.custom_op("kernels::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    scale[(1,)](x, out, len(x), len(x))
    return out

debugger = PrecisionDebugger(sys.argv[1])
debugger.start(); twice(torch.ones(3)); debugger.stop(); debugger.step()
""", config(tmp_path), fresh=True)
    assert list(dump(tmp_path)) == ["Triton.scale.0.forward"]  # nobody asked for the operator
