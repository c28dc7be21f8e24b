"""The ways to train in PyNative mode, each recorded: who calls the network and its gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from ms_recording import assert_nothing_lost, entries, new_debugger, read

FORWARD = [
    "Primitive.shape_op.Shape.0.forward", "Primitive.matmul.MatMul.0.forward",
    "Primitive.bias_add.BiasAdd.0.forward", "Cell.fc.Dense.forward.0",
    "Cell.fc.Dense.parameters_grad", "Primitive.tanh.Tanh.0.forward", "Cell.act.Tanh.forward.0",
]
BACKWARD = [
    "Primitive.tanh.Tanh.0.backward", "Cell.act.Tanh.backward.0",
    "Primitive.bias_add.BiasAdd.0.backward", "Primitive.matmul.MatMul.0.backward",
    "Cell.fc.Dense.backward.0",
]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = nn.Dense(4, 3), nn.Tanh()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x))


def floats(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def record(directory: Path, model: Any, work: Any, **options: Any) -> list[str]:
    debugger = new_debugger(directory, **{"level": "mix", **options})
    debugger.start(model)
    work()
    debugger.stop()
    debugger.step()
    return list(entries(directory))


def test_grad_operation(tmp_path: Path) -> None:
    net = Net()
    gradient = ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple(net.trainable_params()))
    assert record(tmp_path, net, lambda: gradient(floats(5, 4))) == FORWARD + BACKWARD
    assert_nothing_lost(tmp_path)


def test_a_cell_that_was_told_to_set_grad_is_not_called_again(tmp_path: Path) -> None:
    net = Net()
    net.set_grad()
    gradient = ops.GradOperation(get_by_list=True)(net, ms.ParameterTuple(net.trainable_params()))
    expected = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    names = record(tmp_path, net, lambda: gradient(floats(5, 4)))
    assert [name for name in names if name.endswith((".backward", ".backward.0"))] == BACKWARD
    weight = entries(tmp_path)["Cell.fc.Dense.parameters_grad"]["weight"][0]
    assert np.isclose(weight["Max"], expected(floats(5, 4))[1][0].asnumpy().max(), rtol=1e-6)


def test_model_train_with_the_callback(tmp_path: Path) -> None:
    import mindspore.dataset as ds
    from mindspore.train import Model

    from plumbline.mindspore import MsprobeStep

    net = Net()
    rows = {"x": np.ones((4, 4), np.float32), "y": np.zeros((4, 3), np.float32)}
    data = ds.NumpySlicesDataset(rows, shuffle=False).batch(2)
    debugger = new_debugger(tmp_path, level="mix")
    debugger.start(net)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1))
    model.train(1, data, callbacks=[MsprobeStep(debugger)], dataset_sink_mode=False)
    for step in range(2):
        names = list(entries(tmp_path, step))
        assert [name for name in names if name in FORWARD] == FORWARD
        assert [name for name in names if name in BACKWARD] == BACKWARD
        assert names[-1] == "Jit.SGD.0.forward"  # its construct is compiled
    assert not (tmp_path / "out/step2").exists()


def test_compiled_functions_and_cells_are_one_entry_each(tmp_path: Path) -> None:
    @ms.jit
    def scaled(x: Tensor, y: Tensor) -> Tensor:
        return ops.relu(x) * y

    class Inner(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Dense(4, 3)

        @ms.jit
        def construct(self, x):  # compiled source
            return ops.sigmoid(self.fc(x))

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, x: Tensor) -> Tensor:
            return scaled(self.inner(x), Tensor(2.0))

    net = Outer()
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    expected = gradient(floats(5, 4))
    got: list[Any] = []
    names = record(tmp_path, net, lambda: got.append(gradient(floats(5, 4))))
    assert got[0][0].asnumpy() == expected[0].asnumpy()
    assert names[:3] == ["Jit.Inner.0.forward", "Cell.inner.Inner.forward.0",
                         "Jit.scaled.0.forward"]
    assert names[-3:] == ["Jit.scaled.0.backward", "Jit.Inner.0.backward",
                          "Cell.inner.Inner.backward.0"]
    assert_nothing_lost(tmp_path)


def test_a_recomputed_cell_is_called_again_in_the_backward_pass(tmp_path: Path) -> None:
    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = Net(), nn.Dense(3, 2)
            self.first.recompute()

        def construct(self, x: Tensor) -> Tensor:
            return self.last(self.first(x))

    net = Outer()
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    expected = gradient(floats(5, 4))[1]
    got: list[Any] = []
    names = record(tmp_path, net, lambda: got.extend(gradient(floats(5, 4))[1]))
    assert all(np.array_equal(a.asnumpy(), b.asnumpy()) for a, b in zip(got, expected, strict=True))
    again = names.index("Cell.first.fc.Dense.forward.1")
    assert names.index("Cell.last.Dense.backward.0") < again
    assert names.index("Cell.first.fc.Dense.backward.1") > again
    assert not any("_recompute_cell" in name for name in names)
    assert_nothing_lost(tmp_path)


def test_a_call_that_raises_is_an_entry_without_output(tmp_path: Path) -> None:
    net = Net()

    def work() -> None:
        with pytest.raises(TypeError):
            ops.matmul(floats(2, 3), "text")
        net(floats(5, 4))

    record(tmp_path, net, work)
    assert "output" not in entries(tmp_path)["Functional.matmul.0.forward"]
    assert "output" in entries(tmp_path)["Cell.fc.Dense.forward.0"]


def test_every_dtype(tmp_path: Path) -> None:
    kinds = ["bool_", "int8", "int64", "uint8", "uint16", "float16", "float64", "bfloat16",
             "complex64", "float8_e4m3fn"]

    def work() -> None:
        for kind in kinds:
            mint.reshape(Tensor([1, 0, 1], getattr(ms, kind)), (3, 1))
        mint.reshape(Tensor(np.zeros((0, 3), np.float32)), (3, 0))
        mint.add(Tensor(1.5), 2)
        mint.zeros((2,), dtype=ms.int32)

    names = record(tmp_path, None, work, level="L1", task="tensor")
    data = entries(tmp_path)
    assert len(names) == len(kinds) + 3
    found = [data[f"Mint.reshape.{i}.forward"]["input_args"][0] for i in range(len(kinds) + 1)]
    assert [tensor["dtype"] for tensor in found] == [
        "Bool", "Int8", "Int64", "UInt8", "UInt16", "Float16", "Float64", "BFloat16", "Complex64",
        "Float8E4M3FN", "Float32"]
    assert (found[0]["Max"], found[0]["Mean"]) == (True, None)
    assert all(tensor["Max"] == 1 and tensor["Min"] == 0 for tensor in found[:-1])
    assert found[-1]["Max"] is None
    scalar = data["Mint.add.0.forward"]["input_args"]
    assert [scalar[0][key] for key in ("Max", "Min", "Mean", "Norm")] == [1.5] * 4
    assert scalar[1] == {"type": "int", "value": 2}
    dtype = data["Mint.zeros.0.forward"]["input_kwargs"]["dtype"]
    assert dtype == {"type": "mindspore.dtype", "value": "Int32"}
    folder = tmp_path / "out/step0/rank/dump_tensor_data"
    assert np.load(folder / found[7]["data_name"]).dtype == np.float32  # NumPy has no bfloat16
    assert np.load(folder / found[5]["data_name"]).dtype == np.float16
    assert_nothing_lost(tmp_path)


def test_save_with_gradients(tmp_path: Path) -> None:
    weight = ms.Parameter(floats(3), name="weight")
    debugger = new_debugger(tmp_path, level="debug", task="tensor")

    def loss(x: Tensor) -> Tensor:
        hidden = x * weight
        debugger.save({"hidden": hidden, "step": 3}, "state")
        return (hidden * 3).sum()

    ms.value_and_grad(loss, None, [weight])(floats(3))
    debugger.step()
    saved = (tmp_path / "out/rank/debug.json").read_text()
    assert '"framework": "mindspore"' in saved
    gradient = np.load(tmp_path / "out/rank/dump_tensor_data/state_grad.0.tensor.hidden.npy")
    assert gradient.tolist() == [3.0, 3.0, 3.0]


def test_overflow_check_names_the_call(tmp_path: Path) -> None:
    def work() -> None:
        ops.abs(floats(3))
        ops.log(Tensor(np.array([-1.0, 1.0], np.float32)))
        ops.abs(floats(3))

    names = record(tmp_path, None, work, level="L1", task="overflow_check")
    assert names == ["Functional.log.0.forward"]
    assert read(tmp_path)["data"][names[0]]["output"][0]["overflow_reason"] == "nan"


def test_the_window_leaves_no_trace(tmp_path: Path) -> None:
    net = Net()
    owners = [ops, mint, mint.nn.functional, ms.Tensor, net.fc, net.act]
    net(floats(2, 4))  # cells make their tables of hooks when they are first needed
    before = [dict(vars(owner)) for owner in owners]
    record(tmp_path, net, lambda: net(floats(2, 4)))
    for owner, attributes in zip(owners, before, strict=True):
        now = {name: value for name, value in vars(owner).items() if "_hook" not in name}
        assert now.keys() == {name for name in attributes if "_hook" not in name}
        changed = [name for name, value in now.items() if value is not attributes[name]]
        assert changed == []
    assert not net.fc._forward_pre_hook and not net.fc._forward_hook
    assert isinstance(ms.Tensor.from_numpy(np.ones(2)), Tensor)


def test_seed_all_makes_dropout_keep_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbline.mindspore import seed_all

    replaced = [(ops, "Dropout"), (ops, "Dropout2D"), (ops, "Dropout3D"), (ops, "dropout"),
                (nn, "Dropout"), (mint.nn, "Dropout"), (mint.nn.functional, "dropout")]
    for owner, name in replaced:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back at the end
    with pytest.raises(ValueError, match="seed must be an integer"):
        seed_all(-1)
    drawn = []
    for _ in range(2):
        seed_all(3)
        drawn.append((ops.standard_normal((4,)).asnumpy().tolist(), np.random.rand()))
    assert drawn[0] == drawn[1]
    x = floats(5, 5)
    for layer in (nn.Dropout(p=0.9), mint.nn.Dropout(0.9)):
        layer.set_train()
        assert np.array_equal(layer(x).asnumpy(), x.asnumpy())
    assert np.array_equal(ops.dropout(x, 0.9).asnumpy(), x.asnumpy())


def test_the_example_of_the_how_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import runpy

    from plumbline.debugger import DebuggerBase

    monkeypatch.setattr(DebuggerBase, "_instance", None)
    path = Path(__file__).parents[2] / "examples/record_mindspore.py"
    main = runpy.run_path(str(path))["main"]
    for out in ("none", str(tmp_path / "out")):
        main(out)
    weights = [line for line in capsys.readouterr().out.splitlines() if line.startswith("weights")]
    assert len(weights) == 2 and weights[0] == weights[1]
    assert len(list(tmp_path.rglob("dump.json"))) == 2
    data = read(tmp_path)["data"]
    assert data["Cell.hidden.Dense.backward.0"]["output"] == [None]  # its input needs no gradient
