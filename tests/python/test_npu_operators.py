"""Operators of vendors' devices, where their package is loaded: a stand-in for torch_npu."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from device_server import device_environment

# As torch_npu does it: operators in the namespace npu, and functions of the module that call them.
_STAND_IN = """
import json, os, sys, types, torch
library = torch.library.Library("npu", "DEF")
library.define("fast_gelu(Tensor self) -> Tensor")
library.define("npu_rotary_mul(Tensor self, Tensor r1, Tensor r2) -> Tensor")
library.impl("fast_gelu", torch.sigmoid, "CompositeExplicitAutograd")
library.impl("npu_rotary_mul", lambda x, a, b: x * a + b, "CompositeExplicitAutograd")
torch_npu = types.ModuleType("torch_npu")
torch_npu.fast_gelu = lambda x: torch.ops.npu.fast_gelu(x)
torch_npu.npu_rotary_mul = torch.ops.npu.npu_rotary_mul
sys.modules["torch_npu"] = torch_npu
"""
_RECORDED = _STAND_IN + """
from plumbline.pytorch import PrecisionDebugger
earlier = torch_npu.npu_rotary_mul
debugger = PrecisionDebugger(task="statistics", level="L1", dump_path=sys.argv[1])
x = torch.ones(4, device=sys.argv[2])
debugger.start()
torch_npu.fast_gelu(x)
torch_npu.npu_rotary_mul(x, x, x)
earlier(x, x, x)
torch.ops.npu.fast_gelu(x)
debugger.stop()
debugger.step()
assert torch_npu.npu_rotary_mul is earlier
"""


def run(program: str, *arguments: str) -> str:
    ended = subprocess.run([sys.executable, "-c", program, *arguments], check=False,
                           env=device_environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("device", ["cpu", "testdev"])
def test_functions_and_operators_are_entries(tmp_path: Path, device: str) -> None:
    run(_RECORDED, str(tmp_path), device)
    data = json.loads((tmp_path / "step0/rank/dump.json").read_text())["data"]
    assert list(data) == ["NPU.fast_gelu.0.forward", "NPU.npu_rotary_mul.0.forward",
                          "NPU.npu_rotary_mul.1.forward", "NPU.fast_gelu.1.forward"]
    assert data["NPU.npu_rotary_mul.0.forward"]["output"][0]["Max"] == 2.0


def test_seed_all_reaches_devices_and_their_libraries(tmp_path: Path) -> None:
    text = run(_STAND_IN + """
from plumbline.pytorch import seed_all
drawn = []
for _ in range(2):
    seed_all(77, mode=True)
    drawn.append(torch.rand(5, device="testdev").tolist() + torch.rand(2).tolist())
print(json.dumps([drawn, {name: os.environ.get(name) for name in (
    "LCCL_DETERMINISTIC", "CLOSE_MATMUL_K_SHIFT", "ATB_LLM_LCOC_ENABLE", "HCCL_DETERMINISTIC")}]))
""")
    (one, other), environment = json.loads(text)
    assert one == other and len(set(one)) >= 5
    assert environment == {"LCCL_DETERMINISTIC": "1", "CLOSE_MATMUL_K_SHIFT": "1",
                           "ATB_LLM_LCOC_ENABLE": "0", "HCCL_DETERMINISTIC": "True"}
    assert "LCCL_DETERMINISTIC" not in os.environ
