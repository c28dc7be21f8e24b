"""The adapter contract, against MindSpore."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mindspore import Tensor, nn, ops

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from adapter_contract import AdapterContract, Framework

import plumbline.mindspore


class Inner(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.abs(x)


class Layer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def construct(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = Layer()

    def construct(self, x: Tensor) -> Tensor:
        return self.first(x)


@pytest.fixture
def framework() -> Framework:
    return Framework(
        plumbline.mindspore._adapter, Net(), lambda values: Tensor(np.array(values, np.float32)),
        lambda tensor: tensor.asnumpy().tolist(), ("Functional.abs", lambda x: ops.abs(x)),
        lambda: float(ops.standard_normal((1,)).asnumpy()[0]), "mindspore.Tensor", "Float32",
    )


class TestAdapterContract(AdapterContract):
    pass


def test_importing_it_calls_nothing_deprecated() -> None:
    code = "import plumbline.mindspore, plumbline.config_check.on_mindspore"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "deprecated" not in done.stdout + done.stderr
