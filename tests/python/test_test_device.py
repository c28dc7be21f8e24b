"""The test device computes as the CPU does, counts, faults, and is wrong only where told.

Bodies marked `on_device` run in processes of their own, where `torch` has the device `testdev`.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from device_samples import outcomes
from device_server import Ended, device_environment, device_program, on_device
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "testdev"


def device() -> Any:
    """The Python module of the device; not on the path of pytest's own process."""
    import plumbline_test_device
    return plumbline_test_device


def same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    left, right = (tensor.detach().cpu().clone(
        memory_format=torch.contiguous_format).flatten() for tensor in (one, other))
    return (left.dtype == right.dtype and one.shape == other.shape
            and torch.equal(left.view(torch.uint8), right.view(torch.uint8)))


# ---------------------------------------------------------------- computing


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def convolutions() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.SiLU(),
                         nn.MaxPool2d(2), nn.Conv2d(6, 6, 3, groups=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(6, 4))


def transformer() -> nn.Module:
    return nn.Sequential(nn.Embedding(11, 16), nn.TransformerEncoderLayer(16, 4, 32, 0.1,
                                                                          batch_first=True),
                         nn.Linear(16, 4))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "perceptron": perceptron, "convolutions": convolutions, "transformer": transformer}


def batch(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    if name == "transformer":
        return (torch.randint(0, 11, (2, 5), generator=generator),
                torch.randn(2, 5, 4, generator=generator))
    shape = (4, 3, 8, 8) if name == "convolutions" else (4, 8)
    return torch.randn(shape, generator=generator), torch.randn(4, 4, generator=generator)


def train(name: str, where: str, dtype: torch.dtype | None = None, foreach: bool = False
          ) -> list[torch.Tensor]:
    """Three steps; the losses and what the parameters are after them."""
    torch.manual_seed(0)
    model = MODELS[name]().to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=foreach)
    inputs, wanted = (tensor.to(where) for tensor in batch(name))
    torch.manual_seed(1)  # dropout draws from the generator of the device
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        with sdpa_kernel(SDPBackend.MATH), torch.autocast(where, dtype, enabled=dtype is not None):
            loss = nn.functional.mse_loss(model(inputs).float(), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *model.state_dict().values()]


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", list(MODELS))
@on_device
def test_training_is_the_cpu_bit_for_bit(name: str, foreach: bool) -> None:
    for ours, cpus in zip(train(name, DEVICE, foreach=foreach), train(name, "cpu", foreach=foreach),
                          strict=True):
        assert ours.device.type == DEVICE and same_bytes(ours, cpus), (ours, cpus)


@on_device
def test_training_under_autocast_is_the_cpu_bit_for_bit() -> None:
    # Of the three models the one whose operators autocast treats alike on CPU and accelerators.
    ours = train("convolutions", DEVICE, torch.bfloat16)
    assert all(map(same_bytes, ours, train("convolutions", "cpu", torch.bfloat16)))
    assert not all(map(same_bytes, ours, train("convolutions", DEVICE)))


# Their values are no result of a computation, or come from memory outside the tensor.
NOT_COMPARED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
                "new_empty_strided", "as_strided.partial_views"}
# Sparse layouts, and one operator that wants an index tensor of the CPU.
NOT_SUPPORTED = {"sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse", "tensor_split"}
# Takes other steps on an accelerator.
OTHER_STEPS = {"nn.functional.linear_cross_entropy.chunked",
               "nn.functional.linear_cross_entropy.chunked_none"}


@pytest.mark.slow
@on_device
def test_samples_of_all_operators_are_the_cpu_bit_for_bit() -> None:
    for dtype, least in ((torch.float32, 600), (torch.bfloat16, 500)):
        found = outcomes(dtype, 1, DEVICE)
        wrong = {name: text for name, text in found.items() if text not in ("same", "none")}
        assert set(wrong) <= NOT_COMPARED | NOT_SUPPORTED | OTHER_STEPS, wrong
        assert sum(text == "same" for text in found.values()) > least


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@on_device
def test_recurrent_layers_agree_with_the_cpu(kind: str, bias: bool) -> None:
    results = []
    for where in ("cpu", DEVICE):
        torch.manual_seed(0)
        layer = getattr(nn, kind)(3, 5, num_layers=2, bias=bias, dtype=torch.float64).to(where)
        inputs = torch.randn(4, 2, 3, dtype=torch.float64).to(where).requires_grad_()
        outputs, state = layer(inputs)
        states = state if isinstance(state, tuple) else (state,)
        (outputs.square().sum() + sum(each.sum() for each in states)).backward()
        results.append([outputs, *states, inputs.grad, *(p.grad for p in layer.parameters())])
    # The fused cells add in another order than the CPU's layer does.
    for cpus, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours.cpu(), cpus, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_the_fused_cell_rounds_half_types_once(dtype: torch.dtype) -> None:
    cell_of_halves(name=str(dtype).removeprefix("torch."))


@on_device
def cell_of_halves(name: str) -> None:
    dtype = getattr(torch, name)
    ours, theirs, cx = torch.randn(3, 20).to(dtype), torch.randn(3, 20).to(dtype), torch.randn(
        3, 5).to(dtype)
    hy, cy, _ = torch.ops.aten._thnn_fused_lstm_cell(*(t.to(DEVICE) for t in (ours, theirs, cx)))
    i, f, g, o = (ours.double() + theirs.double()).chunk(4, 1)
    cell = f.sigmoid() * cx.double() + i.sigmoid() * g.tanh()
    half_ulp = torch.finfo(dtype).eps / 2 * 1.01  # and what float32 adds
    torch.testing.assert_close(cy.cpu().double(), cell, rtol=half_ulp, atol=1e-6)
    torch.testing.assert_close(hy.cpu().double(), o.sigmoid() * cell.tanh(), rtol=half_ulp,
                               atol=1e-6)


@on_device
def test_tensors_are_resized_viewed_and_conjugated() -> None:
    x = torch.arange(12.0).reshape(3, 4).to(DEVICE)
    assert x.t()[1:].flatten().tolist() == [1, 5, 9, 2, 6, 10, 3, 7, 11]
    x.unfold(1, 2, 2)[0, 0].fill_(7)
    assert x[0].tolist() == [7, 7, 2, 3]
    out = torch.empty(0, device=DEVICE)
    torch.cat([x, x], out=out)
    assert out.shape == (6, 4) and out.device.type == DEVICE and out[3, 2].item() == 2
    small = torch.ones(2, device=DEVICE).resize_(1000)
    assert small[:2].tolist() == [1, 1] and small.shape == (1000,)
    c = torch.tensor([1 + 2j, 3 - 1j]).to(DEVICE)
    assert (c.conj() * c).tolist() == [5, 10] and c.conj().imag.neg().cpu().tolist() == [2, -1]
    shared = torch.empty(0, device=DEVICE).set_(x.untyped_storage(), 4, (2,), (1,))
    assert shared.tolist() == [4, 5]
    shared.mul_(2)
    assert x[1, 0].item() == 8


@on_device
def test_integers_have_histograms_as_on_other_accelerators() -> None:
    counts = torch.tensor([0, 2, 2, 3], dtype=torch.int32, device=DEVICE).histc(4, 0, 3)
    assert counts.dtype == torch.int32 and counts.tolist() == [1, 0, 2, 1]
    assert torch.tensor([0.5, 2.5], device=DEVICE).histc(3, 0, 3).tolist() == [1, 0, 1]


@on_device
def test_a_tensor_of_another_device_is_refused() -> None:
    ours, cpus = torch.ones(2, device=DEVICE), torch.ones(2)
    for other in (cpus, torch.ones(2, device="testdev:1")):
        with pytest.raises(RuntimeError, match="all tensors to be on the same device"):
            ours.add(other)
    assert ours.add(torch.tensor(1.0)).tolist() == [2, 2]  # a number may come from the host
    assert ours[torch.tensor([0])].tolist() == [1]  # an index too


@on_device
def test_random_numbers_are_the_devices_own() -> None:
    torch.manual_seed(5)
    drawn = [torch.rand(3), torch.nn.functional.dropout(torch.ones(64)), torch.randn(5)]
    torch.manual_seed(5)
    before = torch.get_rng_state()
    ours = [torch.rand(3, device=DEVICE), nn.functional.dropout(torch.ones(64, device=DEVICE)),
            torch.randn(5, device=DEVICE)]
    assert torch.equal(before, torch.get_rng_state())  # the CPU's generator has not moved
    assert all(same_bytes(a, b) for a, b in zip(drawn, ours, strict=True))
    state = torch.testdev.get_rng_state()
    again = torch.randn(5, device=DEVICE)
    torch.testdev.set_rng_state(state)
    assert same_bytes(again, torch.randn(5, device=DEVICE))
    own = torch.Generator(device=DEVICE).manual_seed(9)
    assert same_bytes(torch.rand(4, device=DEVICE, generator=own),
                      torch.rand(4, generator=torch.Generator().manual_seed(9)))


@on_device
def test_tensors_are_saved_and_loaded() -> None:
    x = torch.arange(6.0, device=DEVICE).reshape(2, 3)[:, 1:]
    file = io.BytesIO()
    torch.save({"x": x, "layer": nn.Linear(2, 2).to(DEVICE).state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].device == torch.device("testdev:0") and loaded["x"].tolist() == x.tolist()
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu")
    assert on_cpu["x"].device.type == "cpu" and on_cpu["x"].tolist() == [[1, 2], [4, 5]]
    file.seek(0)
    assert torch.load(file, map_location="testdev:1")["x"].get_device() == 1


@on_device
def test_autocast_lowers_products_and_raises_sums() -> None:
    a = torch.ones(2, 2, device=DEVICE)
    with torch.autocast(DEVICE, torch.float16):
        low = a @ a
        assert low.dtype == torch.float16
        assert torch.softmax(low, 0).dtype == torch.float32
        assert torch.nn.functional.linear(a, a).dtype == torch.float16
        assert (low + a).dtype == torch.float32
    assert (a @ a).dtype == torch.float32


# ---------------------------------------------------------------- memory


@device_program
def touch_from_host(index: int) -> None:
    import ctypes
    tensor = torch.ones(4, device=f"testdev:{index}")
    print("before", flush=True)
    print(ctypes.cast(tensor.data_ptr(), ctypes.POINTER(ctypes.c_float))[0])


@pytest.mark.parametrize("index", [0, 1])
def test_host_access_faults_and_names_the_device(index: int) -> None:
    ended = touch_from_host(index=index)
    assert ended.status == -signal.SIGSEGV
    assert "before" in ended.text and f"touched memory of testdev:{index} directly" in ended.text


@on_device
def test_without_protection_the_host_may_read() -> None:
    import ctypes
    device().set_protect(False)
    tensor = torch.full((4,), 2.5, device=DEVICE)
    assert ctypes.cast(tensor.data_ptr(), ctypes.POINTER(ctypes.c_float))[3] == 2.5
    with pytest.raises(RuntimeError, match="only before the first tensor"):
        device().set_protect(True)


@on_device
def test_memory_is_given_back_and_counted() -> None:
    start = device().counters()["live_bytes"]
    x = torch.empty(3 << 20, dtype=torch.uint8, device=DEVICE)
    y = x[:10]
    del x
    assert device().counters()["live_bytes"] - start == 3 << 20  # the view keeps it
    address = y.data_ptr()
    del y
    assert device().counters()["live_bytes"] == start
    assert device().counters()["peak_bytes"] - start == 3 << 20
    assert torch.empty(3 << 20, dtype=torch.uint8, device=DEVICE).data_ptr() == address


@on_device
def test_many_small_tensors_are_read_at_once() -> None:
    parts = [torch.full((1,), float(i), device=DEVICE) for i in range(2000)]
    assert torch.cat(parts).sum().item() == 1999 * 1000


# ---------------------------------------------------------------- counters


def counted(work: Callable[[], object]) -> dict[str, int]:
    """The counters that `work` moved."""
    device().reset_counters()
    before = device().counters()
    work()
    return {name: value - before[name] for name, value in device().counters().items()
            if value != before[name] and name not in ("allocations", "live_bytes", "peak_bytes",
                                                      "page_changes")}


@on_device
def test_copies_and_waits_are_counted() -> None:
    x, host, pinned = (torch.ones(4, device=DEVICE), torch.ones(4),
                       torch.empty(4, pin_memory=True))
    assert pinned.is_pinned() and not host.is_pinned()
    assert counted(lambda: host.to(DEVICE)) == {"h2d_copies": 1, "h2d_bytes": 16, "copy_syncs": 1,
                                                "syncs": 1}
    assert counted(x.cpu) == {"d2h_copies": 1, "d2h_bytes": 16, "copy_syncs": 1, "syncs": 1}
    assert counted(lambda: pinned.copy_(x, non_blocking=True)) == {"d2h_copies": 1, "d2h_bytes": 16}
    # Without pinned memory the host waits, whatever it asked for.
    assert counted(lambda: host.copy_(x, non_blocking=True))["syncs"] == 1
    assert counted(x.clone) == {"d2d_copies": 1, "d2d_bytes": 16}
    assert counted(lambda: x.add(1)) == {"kernels": 1}
    assert counted(x.view(2, 2).t) == {}
    assert counted(x[0].item) == {"scalar_reads": 1, "syncs": 1}
    assert counted(lambda: bool(x[0] > 0)) == {"kernels": 1, "scalar_reads": 1, "syncs": 1}
    assert counted(x.nonzero) == {"kernels": 1, "shape_reads": 1, "syncs": 1}
    assert counted(torch.testdev.synchronize) == {"device_syncs": 1, "syncs": 1}
    device().reset_counters()
    x.mul_(2).add_(1)
    assert device().op_counts() == {"mul_.Tensor": 1, "add_.Tensor": 1}


@on_device
def test_streams_and_events_are_counted() -> None:
    stream, event = torch.Stream(DEVICE), torch.Event(DEVICE, enable_timing=True)

    def wait() -> None:
        event.record()
        stream.wait_event(event)
        event.synchronize()
        stream.synchronize()
    assert counted(wait) == {"event_records": 1, "event_waits": 1, "event_syncs": 1,
                             "stream_syncs": 1, "syncs": 2}
    with stream:
        assert torch.testdev.current_stream() == stream
    later = torch.Event(DEVICE, enable_timing=True)
    later.record()
    assert event.elapsed_time(later) >= 0


# ---------------------------------------------------------------- deferred copies


@on_device
def test_a_deferred_copy_arrives_with_the_wait_and_not_before() -> None:
    with device().deferred_copies():
        x = torch.arange(4.0, device=DEVICE)
        whole = torch.arange(4, device=DEVICE)
        host, number = torch.zeros(4).pin_memory(), torch.zeros(4, dtype=torch.int64).pin_memory()
        host.copy_(x, non_blocking=True)
        number.copy_(whole, non_blocking=True)
        x.fill_(9)  # later work of the stream does not reach the copy
        assert host.isnan().all() and number.tolist() == [-1] * 4
        torch.testdev.synchronize()
        assert host.tolist() == [0, 1, 2, 3] and number.tolist() == [0, 1, 2, 3]
        host.copy_(x, non_blocking=True)
        x[0].item()  # waits for the stream
        assert host.tolist() == [9] * 4
        host.copy_(x + 1, non_blocking=True)
    assert host.tolist() == [10] * 4  # the end of deferral
    assert device().counters()["deferred_copies"] == 4


@on_device
def test_only_the_right_wait_brings_a_deferred_copy() -> None:
    with device().deferred_copies():
        x = torch.ones(2, device=DEVICE)
        host = torch.zeros(2).pin_memory()
        side, early, late = torch.Stream(DEVICE), torch.Event(DEVICE), torch.Event(DEVICE)
        with side:
            early.record()
            host.copy_(x, non_blocking=True)
            late.record()
        early.synchronize()
        torch.testdev.current_stream().synchronize()
        assert host.isnan().all()  # neither is behind the copy
        torch.testdev.current_stream().wait_event(late)
        assert host.isnan().all()  # the device waits for it, the host does not
        torch.testdev.current_stream().synchronize()
        assert host.tolist() == [1, 1]
        host.copy_(x * 2, non_blocking=True)
        late.record()
        polls = 0
        while not late.query():
            assert host.isnan().all()
            polls += 1
        assert polls > 0 and host.tolist() == [2, 2]


def unordered(work: Callable[[], object]) -> tuple[int, int]:
    moved = counted(work)
    return moved.get("unordered_accesses", 0), moved.get("unordered_frees", 0)


@on_device
def test_a_forgotten_wait_between_streams_is_counted() -> None:
    side = torch.Stream(DEVICE)
    x = torch.ones(4, device=DEVICE)

    def read_beside(waits: bool) -> torch.Tensor:
        x.add_(1)
        done = torch.Event(DEVICE)
        done.record()
        with side:
            if waits:
                side.wait_event(done)
            return x.sum()
    assert unordered(lambda: read_beside(waits=False)) == (1, 0)
    total = read_beside(waits=True)
    assert unordered(lambda: read_beside(waits=True)) == (1, 0)  # add_ after the read beside it
    side.synchronize()
    assert unordered(lambda: read_beside(waits=True)) == (0, 0)
    torch.testdev.synchronize()
    assert unordered(lambda: total + 1) == (0, 0)


@on_device
def test_memory_freed_under_another_stream_is_counted() -> None:
    side = torch.Stream(DEVICE)

    def free_early(records: bool) -> None:
        x = torch.ones(4, device=DEVICE)
        torch.testdev.synchronize()
        with side:
            x.sum()
            if records:
                x.record_stream(side)
        del x
    assert unordered(lambda: free_early(records=False)) == (0, 1)
    assert unordered(lambda: free_early(records=True)) == (0, 0)


@on_device
def test_a_training_on_one_stream_has_no_unordered_access() -> None:
    assert unordered(lambda: train("convolutions", DEVICE)) == (0, 0)


# ---------------------------------------------------------------- defects


def every_result() -> dict[str, torch.Tensor]:
    """Results of several operators on the same values, forward and backward."""
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(6, 8, generator=generator) for _ in range(2))
    image, weight = torch.randn(1, 4, 5, 5, generator=generator), torch.randn(
        3, 4, 3, 3, generator=generator)
    left = a.to(DEVICE).requires_grad_()
    kernel = weight.to(DEVICE).requires_grad_()
    other = b.to(DEVICE)
    results = {"mm": torch.mm(left, other.t()), "_softmax": torch.softmax(left, 1),
               "sum": left.sum(1), "mul": left * other, "native_layer_norm":
               nn.functional.layer_norm(left, (8,)), "_log_softmax": torch.log_softmax(left, 1),
               "convolution": nn.functional.conv2d(image.to(DEVICE), kernel)}
    results["_softmax_backward_data"] = torch.autograd.grad(
        results["_softmax"], left, other, retain_graph=True)[0]
    results["convolution_backward"] = torch.autograd.grad(
        results["convolution"], kernel, torch.ones_like(results["convolution"]))[0]
    return {name: tensor.detach().cpu() for name, tensor in results.items()}


NUMERIC = [("scale", 1.01), ("nan", 0.0), ("bf16acc", 0.0), ("lost_carry", 0.0)]


@pytest.mark.parametrize(("kind", "value"), NUMERIC)
@on_device
def test_a_defect_changes_its_operator_and_nothing_else(kind: str, value: float) -> None:
    clean = every_result()
    assert all(same_bytes(clean[name], again) for name, again in every_result().items())
    for op in clean:
        with device().inject(op, kind, value) as defect:
            spoiled = every_result()
        changed = {name for name in clean if not same_bytes(clean[name], spoiled[name])}
        assert changed == {op} | ({"_softmax_backward_data"} if op == "_softmax" else set()), op
        assert defect.hits == 1
    assert all(same_bytes(clean[name], again) for name, again in every_result().items())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@on_device
def test_scale_and_nan_change_what_they_say(dtype: str) -> None:
    x = torch.arange(1, 41, dtype=getattr(torch, dtype)).to(DEVICE)
    with device().inject("add", "scale", 2.0):
        assert same_bytes(x + 0, x.cpu() * 2)
        assert torch.arange(4, device=DEVICE).add(1).tolist() == [1, 2, 3, 4]  # integers are spared
    with device().inject("add_", "nan", lane=3):  # the in-place form has the same kernel
        where = (x + 1).isnan().nonzero().flatten().tolist()
        assert where == [3, 19, 35]
    with device().inject("add", "scale", 0.5, lane=0):
        got = (x + 0).cpu()
    assert got[16] == 8.5 and got[17] == 18


def rounded(value: np.ndarray) -> np.ndarray:
    """Values of float64 rounded to bfloat16, ties to even; an own implementation on bits."""
    bits = value.astype(np.float32).view(np.uint32)
    up = ((bits >> 16) & 1) + 0x7FFF
    return ((bits + up) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


@on_device
def test_bf16acc_rounds_after_each_term() -> None:
    generator = torch.Generator().manual_seed(2)
    a, b, c = (torch.randn(3, 16, generator=generator), torch.randn(16, 4, generator=generator),
               torch.randn(3, 4, generator=generator))
    wide_a, wide_b = a.double().numpy(), b.double().numpy()
    total = np.zeros((3, 4))
    for k in range(16):
        total = rounded(total + wide_a[:, k:k + 1] * wide_b[k:k + 1])
    with device().inject("mm", "bf16acc"), device().inject("addmm", "bf16acc"):
        mm = torch.mm(a.to(DEVICE), b.to(DEVICE)).cpu()
        addmm = torch.addmm(c.to(DEVICE), a.to(DEVICE), b.to(DEVICE), beta=2, alpha=0.5).cpu()
    assert np.array_equal(mm.double().numpy(), total)
    np.testing.assert_allclose(addmm.double().numpy(), 2 * c.double().numpy() + total / 2,
                               rtol=1e-6)
    ones = torch.ones(1000, device=DEVICE)
    with device().inject("sum", "bf16acc"), device().inject("mean", "bf16acc"):
        assert ones.sum().item() == 256  # 256 + 1 rounds to 256
        assert abs(ones.mean().item() - 0.256) < 1e-6


@on_device
def test_lost_carry_forgets_the_first_half_of_a_sum() -> None:
    generator = torch.Generator().manual_seed(2)
    a, b = torch.randn(2, 3, 7, generator=generator), torch.randn(2, 7, 4, generator=generator)
    image, weight = torch.randn(1, 4, 5, 5), torch.randn(2, 4, 3, 3)
    with device().inject("bmm", "lost_carry"), device().inject("convolution", "lost_carry"), \
            device().inject("sum", "lost_carry"):
        bmm = torch.bmm(a.to(DEVICE), b.to(DEVICE)).cpu()
        convolved = nn.functional.conv2d(image.to(DEVICE), weight.to(DEVICE)).cpu()
        total = torch.arange(6.0, device=DEVICE).reshape(2, 3).sum(0)
    torch.testing.assert_close(bmm, a[:, :, 3:] @ b[:, 3:])
    torch.testing.assert_close(convolved, nn.functional.conv2d(image[:, 2:], weight[:, 2:]))
    assert total.tolist() == [3, 4, 5]


@pytest.mark.parametrize(("dtype", "bit"), [("float32", 12), ("bfloat16", 4), ("float16", 5),
                                            ("float64", 26), ("int32", 8)])
@on_device
def test_lost_carry_clears_one_bit_elsewhere(dtype: str, bit: int) -> None:
    x = (torch.randn(256, dtype=torch.float64) * 1000).to(getattr(torch, dtype))
    width = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    with device().inject("abs", "lost_carry"):
        spoiled = x.to(DEVICE).abs().cpu()
    changed = spoiled.view(width) ^ x.abs().view(width)
    assert set(changed.tolist()) == {0, 1 << bit}


@on_device
def test_a_defect_waits_stops_and_keeps_to_a_dtype() -> None:
    x = torch.ones(2, device=DEVICE)
    with device().inject("mul", "scale", 2.0, skip=1, times=2) as defect:
        assert [(x * 1)[0].item() for _ in range(5)] == [1, 2, 2, 1, 1]
        assert defect.hits == 2
    with device().inject("mul", "scale", 2.0, dtype="bfloat16") as defect:
        assert (x * 1).tolist() == [1, 1] and (x.bfloat16() * 1).tolist() == [2, 2]
    assert defect.hits == 1
    with device().inject("mul", "scale", 1.0) as nothing:
        x * 3
    assert nothing.hits == 0  # no byte changed
    with device().inject("_copy_from", "scale", 3.0):
        assert x.clone().tolist() == [3, 3] and x.cpu().tolist() == [1, 1]
    device().inject("mul", "scale", 2.0)
    device().clear_defects()
    assert (x * 1).tolist() == [1, 1]


@pytest.mark.parametrize(("arguments", "message"), [
    (("no_such", "scale"), "there is no operator"), (("linear", "scale"), "never reaches"),
    (("mm", "slow"), "unknown kind"), (("mm", "nan", 0, 16), "expected 0 to 15"),
    (("empty", "scale"), "never reaches")])
@on_device
def test_a_defect_that_could_never_act_is_refused(arguments: list[Any], message: str) -> None:
    op, kind, *rest = arguments
    with pytest.raises(ValueError, match=message):
        device().inject(op, kind, *rest[:1], **({"lane": rest[1]} if len(rest) > 1 else {}))
    with pytest.raises(ValueError, match="unknown dtype"):
        device().inject("mm", "scale", dtype="fp32")


@device_program
def suffer(kind: str, value: float) -> None:
    x = torch.ones(2, 2, device=DEVICE)
    device().inject("mm", kind, value)
    print((x + 1).sum().item(), flush=True)
    try:
        torch.mm(x, x)
    except RuntimeError as error:
        print(error)


@pytest.mark.parametrize(("kind", "status"), [
    ("abort", -signal.SIGABRT), ("error", 0), ("crash", -signal.SIGSEGV)])
def test_deadly_defects_end_the_process_at_their_operator(kind: str, status: int) -> None:
    ended: Ended = suffer(kind=kind, value=0.0)
    assert ended.status == status and ended.text.startswith("8.0")
    assert ("device error in aten::mm" in ended.text) == (kind == "error")


@on_device
def test_a_sleeping_operator_takes_its_time() -> None:
    x = torch.ones(2, 2, device=DEVICE)
    with device().inject("mm", "sleep", 0.2):
        began = time.monotonic()
        x @ x
        assert time.monotonic() - began >= 0.2


# ---------------------------------------------------------------- processes


def start(program: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program], env=device_environment(**environment),
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_a_program_that_only_imports_torch_has_the_device_and_its_defects() -> None:
    defects = [{"op": "mm", "kind": "scale", "value": 2.0}, {"op": "add", "kind": "hang"}]
    program = ("import os, torch\nx = torch.ones(1, 1, device='testdev')\n"
               "print(torch.mm(x, x).item(), flush=True)\nx + x")
    process = start(program, PLUMBLINE_TEST_DEVICE_DEFECTS=json.dumps(defects))
    try:
        assert process.stdout is not None and process.stdout.readline() == "2.0\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    finally:
        process.kill()
        process.wait()


def test_a_wrong_list_of_defects_stops_the_import() -> None:
    process = start("import torch", PLUMBLINE_TEST_DEVICE_DEFECTS='[{"op": "mmm", "kind": "nan"}]')
    text = process.communicate()[0]
    assert process.returncode == 1
    assert 'PLUMBLINE_TEST_DEVICE_DEFECTS: defect: there is no operator "mmm"' in text


def test_processes_forked_after_the_import_use_the_device() -> None:
    program = """
import os, torch, plumbline_test_device
def child(value):
    x = torch.full((2, 2), value, device="testdev").requires_grad_()
    (x @ x).sum().backward()
    os._exit(0 if x.grad.sum().item() == 16 * value else 1)
for value in (1.0, 2.0):
    if (pid := os.fork()) == 0:
        child(value)
    assert os.waitpid(pid, 0)[1] == 0
x = torch.ones(2, device="testdev")  # the parent's device is still unused
assert plumbline_test_device.counters()["allocations"] == 1
"""
    process = start(program)
    assert process.communicate()[0] == "" and process.returncode == 0


def test_the_device_is_built_once() -> None:
    environment = device_environment()
    again = subprocess.run([sys.executable, "tests/test_device/build.py"], text=True, check=True,
                           capture_output=True, cwd=os.path.dirname(__file__) + "/../..",
                           env=environment)
    assert "up to date" in again.stdout
