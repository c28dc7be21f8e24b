"""What the viewer says of the elements of tensors, against NumPy in float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plumbline import _compare

QUANTILES = (0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.999, 1)
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.float8_e4m3fn,
          torch.float8_e5m2)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
SMALLEST = {torch.float8_e4m3fn: 2.0 ** -6, torch.float8_e5m2: 2.0 ** -14}


def ask(tmp: Path, what: str, target: torch.Tensor | None, golden: torch.Tensor | None,
        **parameters: object) -> dict[str, Any]:
    """The answer for tensors that are saved first."""
    paths = []
    for name, tensor in (("target", target), ("golden", golden)):
        paths.append("" if tensor is None else str(tmp / f"{name}.pt"))
        if tensor is not None:
            torch.save(tensor, paths[-1])
    texts = {name: str(value) for name, value in parameters.items()}
    return json.loads(_compare.ValueReader().ask(*paths, what, texts))


def number(value: object) -> float:
    """A number of an answer."""
    return float(value)  # type: ignore[arg-type]  # "nan", "inf", "-inf" too


def wide(tensor: torch.Tensor) -> np.ndarray:
    """Elements as float64; complex ones by modulus."""
    if tensor.is_complex():
        return np.abs(tensor.to(torch.complex128).numpy())
    return tensor.to(torch.float64).numpy()


def mixed(dtype: torch.dtype, count: int = 5000, seed: int = 0) -> torch.Tensor:
    """Numbers of very different sizes, with all that is special in the type."""
    random = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(count, generator=random) < 0.3
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        low, high = max(info.min, -2 ** 40), min(info.max, 2 ** 40)
        return torch.randint(low, high, (count,), generator=random).to(dtype)
    values = torch.randn(count, generator=random, dtype=torch.float64)
    values *= 2.0 ** torch.randint(-12, 3, (count,), generator=random)
    values[:40] = 0
    if dtype.itemsize > 1:
        values[40:60] = torch.finfo(dtype).tiny * 0.5
        values[60:65], values[65:72] = torch.inf, -torch.inf
    values[72:75] = torch.nan
    return values[torch.randperm(count, generator=random)].to(dtype)


def noisy(tensor: torch.Tensor, seed: int = 1) -> torch.Tensor:
    """Nearly the same tensor."""
    random = torch.Generator().manual_seed(seed)
    if tensor.dtype == torch.bool:
        return tensor ^ (torch.rand(tensor.shape, generator=random) < 0.01)
    if not tensor.dtype.is_floating_point:
        return tensor + (torch.rand(tensor.shape, generator=random) < 0.1).to(tensor.dtype)
    noise = 1 + 0.01 * torch.randn(tensor.shape, generator=random, dtype=torch.float64)
    out = (tensor.to(torch.float64) * noise).to(tensor.dtype)
    far = torch.rand(tensor.shape, generator=random) < 0.05
    return torch.where(far, -3 * out.to(torch.float64), out.to(torch.float64)).to(tensor.dtype)


def check_distribution(answer: dict[str, Any], values: np.ndarray, smallest: float,
                       rounding: float = 0) -> None:
    """Counts, moments and quantiles of one side, whose elements may be rounded otherwise."""
    finite = values[np.isfinite(values)]
    assert answer["elements"] == values.size
    assert answer["nan"] == np.isnan(values).sum()
    assert answer["inf"] == (values == np.inf).sum()
    assert answer["minus_inf"] == (values == -np.inf).sum()
    assert answer["zero"] == (values == 0).sum()
    assert answer["subnormal"] == ((finite != 0) & (np.abs(finite) < smallest)).sum()
    assert answer["min"] == pytest.approx(finite.min(), rel=rounding, abs=0)
    assert answer["max"] == pytest.approx(finite.max(), rel=rounding, abs=0)
    np.testing.assert_allclose(answer["mean"], finite.mean(), rtol=1e-11,
                               atol=1e-12 * np.abs(finite).max())
    np.testing.assert_allclose(answer["norm"], np.linalg.norm(finite), rtol=1e-11)
    np.testing.assert_allclose(answer["quantiles"], np.quantile(finite, QUANTILES), rtol=1e-12,
                               atol=0)


def smallest_of(dtype: torch.dtype) -> float:
    """The smallest normal number."""
    if not dtype.is_floating_point:
        return 0
    return SMALLEST.get(dtype) or torch.finfo(dtype).tiny


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], ids=str)
def test_statistics_are_numpys(tmp_path: Path, dtype: torch.dtype) -> None:
    golden = mixed(dtype)
    target = noisy(golden)
    answer = ask(tmp_path, "stats", target, golden)
    assert answer["quantiles_at"] == list(QUANTILES)
    for side, tensor in (("target", target), ("golden", golden)):
        assert answer[side]["dtype"] == str(dtype).removeprefix("torch.")
        check_distribution(answer[side], wide(tensor), smallest_of(dtype))
    with np.errstate(invalid="ignore"):
        difference = wide(target) - wide(golden)
    check_distribution(answer["difference"], difference, 0)
    finite = np.isfinite(wide(target)) & np.isfinite(wide(golden))
    assert answer["metrics"]["element_count"] == golden.numel()
    if finite.all():
        assert answer["metrics"]["max_abs_error"] == np.abs(difference).max()


@pytest.mark.parametrize("scale", ["linear", "symlog"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], ids=str)
def test_histogram_counts_every_element_once(tmp_path: Path, dtype: torch.dtype,
                                             scale: str) -> None:
    golden = mixed(dtype)
    target = noisy(golden)
    answer = ask(tmp_path, "histogram", target, golden, scale=scale)
    edges = np.array(answer["edges"])
    assert len(edges) == 257 and (np.diff(edges) > 0).all()
    for side, tensor in (("target", target), ("golden", golden)):
        values = wide(tensor)
        plain = values[np.isfinite(values) & (values != 0)
                       & (np.abs(values) >= smallest_of(dtype))]
        assert answer[side]["counts"] == np.histogram(plain, edges)[0].tolist()
        bars = sum(answer[side][name] for name in ("nan", "inf", "minus_inf", "zero", "subnormal"))
        assert sum(answer[side]["counts"]) + bars == values.size == answer[side]["elements"]


def ordinals(tensor: torch.Tensor) -> np.ndarray:
    """Places of floats among the representable ones."""
    kind = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[tensor.dtype.itemsize]
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    bits = tensor.view(integer[tensor.dtype.itemsize]).numpy().view(kind).astype(object)
    sign = 1 << (8 * tensor.dtype.itemsize - 1)
    return np.where(bits & sign, -(bits & (sign - 1)), bits & (sign - 1))


def check_octaves(bins: dict[str, Any], values: np.ndarray) -> None:
    """A histogram of errors above 0."""
    if not values.size:
        assert bins == {"edges": [], "counts": []}
        return
    edges = np.array([number(edge) for edge in bins["edges"]])
    assert len(bins["counts"]) <= 256
    places = np.searchsorted(edges, values, side="right") - 1
    assert np.bincount(places, minlength=len(edges) - 1).tolist() == bins["counts"]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], ids=str)
def test_errors_by_size_ulp_and_magnitude(tmp_path: Path, dtype: torch.dtype) -> None:
    golden = mixed(dtype)
    target = noisy(golden)
    errors = ask(tmp_path, "histogram", target, golden)["errors"]
    a, b = wide(target), wide(golden)
    finite = np.isfinite(a) & np.isfinite(b)
    assert errors["nonfinite"] == (~finite).sum()
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    assert errors["nonfinite_mismatch"] == (~finite & ~same).sum()
    a, b = a[finite], b[finite]
    difference = np.abs(a - b)
    assert errors["equal"] == (difference == 0).sum()
    check_octaves(errors["absolute"], difference[difference > 0])
    with np.errstate(divide="ignore"):
        relative = difference[difference > 0] / np.abs(b[difference > 0])
    assert errors["relative_infinite"] == np.isinf(relative).sum()
    check_octaves(errors["relative"], relative[np.isfinite(relative)])
    if dtype.is_floating_point:
        ulp = np.abs(ordinals(target) - ordinals(golden))[finite].tolist()
        widths = np.bincount([int(distance).bit_length() for distance in ulp])
        assert errors["ulp"]["counts"] == widths.tolist()
        assert errors["ulp"]["edges"] == [0, *(2.0 ** k for k in range(len(widths)))]
    else:
        assert errors["ulp"] is None
    check_deciles(errors["deciles"], difference, b, wide(golden))


def check_deciles(deciles: list[dict[str, Any]], difference: np.ndarray, golden: np.ndarray,
                  whole: np.ndarray) -> None:
    """Errors by the magnitude of golden."""
    magnitudes = np.sort(np.abs(whole[np.isfinite(whole)]))
    bounds = [magnitudes[min(k * len(magnitudes) // 10, len(magnitudes) - 1)] for k in range(11)]
    bounds = sorted(set(bounds))
    assert [each["low"] for each in deciles] == bounds[:-1]
    places = np.clip(np.searchsorted(bounds, np.abs(golden), side="right") - 1, 0, len(deciles) - 1)
    for k, each in enumerate(deciles):
        inside = difference[places == k]
        assert each["count"] == len(inside)
        if not len(inside):
            continue
        assert each["absolute_max"] == inside.max()
        np.testing.assert_allclose(each["absolute_mean"], inside.mean(), rtol=1e-11)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers_count_by_modulus(tmp_path: Path, dtype: torch.dtype) -> None:
    golden = torch.randn(3000, dtype=dtype, generator=torch.Generator().manual_seed(3))
    target = golden + 0.01 * torch.randn(3000, dtype=dtype)
    answer = ask(tmp_path, "stats", target, golden)
    check_distribution(answer["golden"], wide(golden), 0, 1e-15)
    assert any("modulus" in note for note in answer["notes"])
    modulus = np.abs(target.numpy().astype(np.complex128) - golden.numpy().astype(np.complex128))
    check_distribution(answer["difference"], modulus, 0, 1e-12)
    worst = ask(tmp_path, "topk", target, golden, k=1)["worst"][0]
    at = int(modulus.argmax())
    assert worst["index"] == [at] and worst["difference"] == pytest.approx(modulus[at], rel=1e-12)
    assert worst["golden"] == [golden[at].real.item(), golden[at].imag.item()]


def test_quantiles_of_a_million_wide_numbers(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(5)
    for dtype in (torch.float32, torch.float64, torch.int64):
        values = torch.randn(1_000_003, generator=random, dtype=torch.float64) * 1e6
        golden = values.to(dtype)
        target = (values + 1).to(dtype)
        answer = ask(tmp_path, "stats", target, golden)
        check_distribution(answer["golden"], wide(golden), smallest_of(dtype))
        check_distribution(answer["difference"], wide(target) - wide(golden), 0)


def test_norm_of_extreme_numbers(tmp_path: Path) -> None:
    for scale in (1e300, 1e-300):
        answer = ask(tmp_path, "stats", None, scale * torch.ones(4, dtype=torch.float64))
        assert answer["golden"]["norm"] == pytest.approx(2 * scale, rel=1e-15)
        assert answer["golden"]["mean"] == pytest.approx(scale, rel=1e-15)


def test_large_integers_keep_their_difference(tmp_path: Path) -> None:
    golden = torch.tensor([2 ** 62, 2 ** 62, -2 ** 62])
    answer = ask(tmp_path, "topk", golden + torch.tensor([1, 0, 0]), golden)
    [worst] = answer["worst"]
    assert worst["difference"] == 1
    assert worst["target"] == str(2 ** 62 + 1) and worst["golden"] == str(2 ** 62)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3, 4, 5)])
def test_every_shape_has_answers(tmp_path: Path, shape: tuple[int, ...]) -> None:
    golden = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    for what in ("stats", "histogram", "slice", "topk"):
        answer = ask(tmp_path, what, golden + 1, golden)
        assert answer["golden"]["shape"] == list(shape)
    if shape:
        profile = ask(tmp_path, "profile", golden + 1, golden)
        assert sum(profile["elements"]) == golden.numel()
    else:
        with pytest.raises(ValueError, match="axis"):
            ask(tmp_path, "profile", golden, golden)
    if golden.numel():
        assert len(ask(tmp_path, "topk", golden + 1, golden)["worst"]) == min(golden.numel(), 20)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float32], ids=str)
def test_slice_at_full_size_is_the_elements(tmp_path: Path, dtype: torch.dtype) -> None:
    golden = mixed(dtype, 4 * 6 * 5 * 7).reshape(4, 6, 5, 7)
    target = noisy(golden)
    for axes, fixed in (("2,3", (1, 2)), ("0,2", (3, 6)), ("3,1", (2, 4))):
        i, j = map(int, axes.split(","))
        index = [slice(None)] * 4
        for axis, at in zip(sorted({0, 1, 2, 3} - {i, j}), fixed, strict=True):
            index[axis] = at
        for side, values in (("target", wide(target)), ("golden", wide(golden))):
            plane = values[tuple(index)]
            if i > j:
                plane = plane.T
            answer = ask(tmp_path, "slice", target, golden, axes=axes, side=side,
                         fixed=",".join(map(str, fixed)), rows="1:4", columns="0:3")
            assert answer["is_exact"] and answer["pooling"] == "none"
            cells = np.array([[number(cell) for cell in row] for row in answer["cells"]])
            np.testing.assert_array_equal(cells, plane[1:4, 0:3])


def test_slice_is_pooled_to_the_picture(tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(7)
    golden = torch.randn(37, 53, generator=random)
    target = golden + 0.1 * torch.randn(37, 53, generator=random)
    means = ask(tmp_path, "slice", target, golden, side="golden", width=10, height=4)
    errors = ask(tmp_path, "slice", target, golden, side="difference", width=10, height=4)
    assert (means["pooling"], errors["pooling"]) == ("mean", "largest")
    assert (means["width"], means["height"]) == (10, 4)
    truth, difference = wide(golden), wide(target) - wide(golden)
    rows = [37 * k // 4 for k in range(5)]
    columns = [53 * k // 10 for k in range(11)]
    for y in range(4):
        for x in range(10):
            cell = np.s_[rows[y]:rows[y + 1], columns[x]:columns[x + 1]]
            assert means["cells"][y][x] == pytest.approx(truth[cell].mean(), rel=1e-12)
            block = difference[cell].ravel()
            assert errors["cells"][y][x] == block[np.abs(block).argmax()]


def test_long_vector_is_one_row(tmp_path: Path) -> None:
    golden = torch.arange(100_000, dtype=torch.float64)
    answer = ask(tmp_path, "slice", None, golden, width=8)
    assert answer["axes"] == [0] and answer["height"] == 1
    assert answer["cells"][0] == golden.reshape(8, -1).mean(1).tolist()


def test_worst_elements_come_first(tmp_path: Path) -> None:
    golden = mixed(torch.float32, 6000).reshape(20, 300)
    target = noisy(golden)
    a, b = wide(target).ravel(), wide(golden).ravel()
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", divide="ignore"):
        badness = np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), np.inf)
        relative = np.where(np.isfinite(badness), badness / np.abs(b), np.inf)
    for by, key in (("absolute", badness), ("relative", relative)):
        key = np.where(same, 0, key)
        order = np.lexsort((np.arange(len(key)), -key))[:50]
        answer = ask(tmp_path, "topk", target, golden, k=50, by=by)
        found = [row["index"][0] * 300 + row["index"][1] for row in answer["worst"]]
        assert found == order.tolist()
        for row, at in zip(answer["worst"], order, strict=True):
            np.testing.assert_equal(number(row["target"]), a[at])
            np.testing.assert_equal(number(row["golden"]), b[at])


def test_profile_reduces_all_but_one_axis(tmp_path: Path) -> None:
    golden = mixed(torch.bfloat16, 6 * 40 * 25).reshape(6, 40, 25)
    target = noisy(golden)
    a, b = wide(target), wide(golden)
    for axis in (0, 1, 2):
        answer = ask(tmp_path, "profile", target, golden, axis=axis)
        assert answer["begins"] == list(range(golden.shape[axis]))
        for k in range(golden.shape[axis]):
            x, y = a.take(k, axis).ravel(), b.take(k, axis).ravel()
            finite = np.isfinite(x) & np.isfinite(y)
            assert answer["nonfinite"][k] == (~finite).sum()
            x, y = x[finite], y[finite]
            assert answer["absolute_max"][k] == np.abs(x - y).max()
            np.testing.assert_allclose(answer["target_mean"][k], x.mean(), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(answer["golden_norm"][k], np.linalg.norm(y), rtol=1e-11)
    short = ask(tmp_path, "profile", target, golden, axis=1, width=7)
    assert short["begins"] == [40 * k // 7 for k in range(7)]
    assert sum(short["elements"]) == golden.numel()


def test_strided_and_fortran_files(tmp_path: Path) -> None:
    golden = torch.randn(30, 50, generator=torch.Generator().manual_seed(9))
    plain = ask(tmp_path, "stats", None, golden)["golden"]
    turned = ask(tmp_path, "stats", None, golden.t().contiguous().t())["golden"]
    assert turned == plain
    np.save(tmp_path / "fortran.npy", np.asfortranarray(golden.numpy()))
    reader = _compare.ValueReader()
    answer = json.loads(reader.ask("", tmp_path / "fortran.npy", "slice", {}))
    assert answer["cells"] == golden.to(torch.float64).tolist()


def test_members_of_archives(tmp_path: Path) -> None:
    state = {"layer": {"weight": torch.arange(6.0).reshape(2, 3)}, "step": 3}
    torch.save(state, tmp_path / "state.pt")
    reader = _compare.ValueReader()
    path = f"{tmp_path / 'state.pt'}::layer.weight"
    assert json.loads(reader.ask("", path, "slice", {}))["cells"] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(FileNotFoundError, match="holds no tensor 'bias'"):
        reader.ask("", f"{tmp_path / 'state.pt'}::bias", "slice", {})


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    answer = ask(tmp_path, "histogram", a, b)
    assert answer["errors"] is None and any("[2, 3] and [3, 2]" in n for n in answer["notes"])
    assert ask(tmp_path, "stats", a, b)["difference"] is None
    for what, parameters in (("topk", {}), ("profile", {}), ("slice", {"side": "difference"})):
        with pytest.raises(ValueError, match="shapes differ"):
            ask(tmp_path, what, a, b, **parameters)
    alone = ask(tmp_path, "stats", a, None)
    assert alone["golden"] is None and alone["notes"] == [
        "golden has no elements of this value on disk"]


def test_bad_questions(tmp_path: Path) -> None:
    golden = torch.ones(4, 5, 6)
    for what, parameters in (("slice", {"axes": "1,1"}), ("slice", {"axes": "3"}),
                             ("slice", {"axes": "-1"}), ("slice", {"fixed": "9"}),
                             ("slice", {"fixed": "0,0"}), ("slice", {"rows": "3:2"}),
                             ("slice", {"columns": "0:7"}), ("slice", {"side": "left"}),
                             ("slice", {"width": "0"}), ("slice", {"width": "1e3"}),
                             ("histogram", {"scale": "log"}), ("topk", {"k": "0"}),
                             ("topk", {"by": "size"}), ("profile", {"axis": "3"}), ("sum", {})):
        with pytest.raises(ValueError, match=next(iter(parameters), "what")):
            ask(tmp_path, what, None, golden, **parameters)
    with pytest.raises(FileNotFoundError, match='task "tensor"'):
        ask(tmp_path, "stats", None, None)
    with pytest.raises(FileNotFoundError, match=r"gone\.pt"):
        _compare.ValueReader().ask("", str(tmp_path / "gone.pt"), "stats", {})


def test_kept_answers_follow_the_file(tmp_path: Path) -> None:
    reader = _compare.ValueReader()
    path = tmp_path / "x.pt"
    for value in (1.0, 2.0, 3.0):
        torch.save(torch.full((4,), value), path)
        assert json.loads(reader.ask("", path, "stats", {}))["golden"]["max"] == value
