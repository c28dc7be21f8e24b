"""plumb convert: names, kinds, layouts, option rules and error numbers."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import time
import uuid

import device_dumps as dumps
import numpy as np
import pytest
import torch
from operator_dumps import device_tensor
from recording import PLUMB

CONV = "Conv2D.Default_network_Conv2D-op12.2.7.161243956333802"
MATMUL = "MatMul.Default_MatMul-op1.3.7.1612439563338021"


def convert(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(PLUMB), "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def names(directory: pathlib.Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def conv2d(batch: int = 2) -> tuple[dumps.Dump, list[np.ndarray]]:
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((batch, 17, 5, 3)).astype(np.float16),
              random.standard_normal((33, 20)).astype(np.float32)]
    tensors = [dumps.nc1hwc0(arrays[0]), dumps.fractal_nz(arrays[1])]
    return dumps.Dump(inputs=tensors, outputs=[tensors[0]], op_name="Default/net/Conv2D-op12",
                      buffers=[b"buf"], spaces=[b"log"]), arrays


def test_device_layout_under_upstreams_names(tmp_path: pathlib.Path) -> None:
    dump, _ = conv2d()
    path = dump.write(tmp_path / CONV)
    done = convert("-d", path, "-out", tmp_path / "out", "-v", 2)
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "out") == sorted(
        f"{CONV}.{end}" for end in ("input.0.npy", "input.1.npy", "output.0.npy",
                                    "l1buffer.0.bin", "space.0.bin"))
    raw = np.load(tmp_path / "out" / f"{CONV}.input.0.npy")
    assert raw.shape == (2, 2, 5, 3, 16) and raw.dtype == np.float16
    assert raw.tobytes() == dump.inputs[0].data
    assert (tmp_path / "out" / f"{CONV}.space.0.bin").read_bytes() == b"log"
    assert "5 outputs of 1 dump file" in done.stdout


def test_host_layout_under_upstreams_names(tmp_path: pathlib.Path) -> None:
    dump, arrays = conv2d(32)
    path = dumps.Dump([dump.inputs[0]], dump.outputs).write(tmp_path / CONV)
    done = convert("-d", path, "-out", tmp_path / "out", "-f", "NCHW", "-t", "npy")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "out") == [f"{CONV}.input.0.32x17x5x3.npy",
                                       f"{CONV}.output.0.32x17x5x3.npy"]
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / f"{CONV}.input.0.32x17x5x3.npy"), arrays[0])
    matrix = dumps.Dump(outputs=[dump.inputs[1]]).write(tmp_path / MATMUL)
    for layout in ("ND", "NCHW", "NHWC"):
        assert convert("-d", matrix, "-out", tmp_path / layout, "-f", layout).returncode == 0
        np.testing.assert_array_equal(
            np.load(tmp_path / layout / f"{MATMUL}.output.0.33x20.npy"), arrays[1])


def test_vectors_and_stacks_of_matrices(tmp_path: pathlib.Path) -> None:
    vector = dumps.plain(np.arange(32, dtype=np.float32))
    vector.format = dumps.FORMATS["FRACTAL_NZ"]
    stack = np.arange(2 * 20 * 18, dtype=np.float16).reshape(2, 1, 20, 18)
    parts = [dumps.fractal_nz(one[0]) for one in stack]
    both = dumps.Tensor(b"".join(one.data for one in parts), 2, (2, 1, *(parts[0].shape or ())),
                        dumps.FORMATS["FRACTAL_NZ"], stack.shape)
    path = dumps.Dump([vector, both]).write(tmp_path / CONV)
    done = convert("-d", path, "-out", tmp_path / "out", "-f", "NCHW")
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "out" / f"{CONV}.input.0.32.npy").tobytes() == vector.data
    np.testing.assert_array_equal(
        np.load(tmp_path / "out" / f"{CONV}.input.1.2x1x20x18.npy"), stack)


IMAGE = np.arange(2 * 3 * 4 * 5, dtype=np.float16).reshape(2, 3, 4, 5)
ORDERS = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 2, 3, 1), "HWCN": (2, 3, 1, 0)}


@pytest.mark.parametrize("original", ORDERS)
@pytest.mark.parametrize("wanted", ORDERS)
def test_original_shape_in_any_order(tmp_path: pathlib.Path, original: str, wanted: str) -> None:
    """(2, 3, 4, 5) as NHWC has a place in the blocks, and would cut the image."""
    blocked = dumps.nc1hwc0(IMAGE)
    plain = dumps.plain(IMAGE.transpose(ORDERS[original]))
    plain.format = {**dumps.FORMATS, "HWCN": 16}[original]
    for tensor in (blocked, plain):
        tensor.original = IMAGE.transpose(ORDERS[original]).shape
    dumps.Dump([blocked], [plain]).write(tmp_path / CONV)
    done = convert("-d", tmp_path / CONV, "-out", tmp_path / "out", "-f", wanted)
    assert done.returncode == 0, done.stderr
    expected = IMAGE.transpose(ORDERS[wanted])
    sizes = "x".join(map(str, expected.shape))
    for side in ("input", "output"):
        np.testing.assert_array_equal(
            np.load(tmp_path / "out" / f"{CONV}.{side}.0.{sizes}.npy"), expected)


@pytest.mark.parametrize("original", [(2,), (2, 3, 4, 4), (2, 17, 4, 5), (1, 3, 4, 5)])
def test_original_shape_that_would_cut_elements(tmp_path: pathlib.Path,
                                                original: tuple[int, ...]) -> None:
    blocked = dumps.nc1hwc0(IMAGE)
    plain = dumps.plain(IMAGE)
    plain.format = dumps.FORMATS["NCHW"]
    blocked.original = plain.original = original
    dumps.Dump([blocked], [plain]).write(tmp_path / CONV)
    done = convert("-d", tmp_path / CONV, "-out", tmp_path / "out", "-f", "NHWC")
    assert done.returncode == 23 and "original shape" in done.stderr
    assert names(tmp_path / "out") == ["convert_failed_file_list.txt"]


def test_original_shape_in_two_orders(tmp_path: pathlib.Path) -> None:
    """Weights of 8 channels and a 16 x 8 kernel, or of 16 x 8 in 8 channels: the same blocks."""
    weight = dumps.Tensor(bytes(128 * 256 * 2), dumps.CODES["float16"], (128, 1, 16, 16),
                          dumps.FORMATS["FRACTAL_Z"], (2, 8, 16, 8))
    dumps.Dump([weight]).write(tmp_path / CONV)
    done = convert("-d", tmp_path / CONV, "-out", tmp_path / "out", "-f", "HWCN")
    assert done.returncode == 23 and "exactly one order" in done.stderr
    told = convert("-d", tmp_path / CONV, "-out", tmp_path / "out", "-f", "HWCN", "-s", "16,8,8,2")
    assert told.returncode == 0


def test_empty_original_shape_is_none(tmp_path: pathlib.Path) -> None:
    blocked = dumps.nc1hwc0(IMAGE)
    blocked.original = ()
    dumps.Dump([blocked]).write(tmp_path / CONV)
    done = convert("-d", tmp_path / CONV, "-out", tmp_path / "out", "-f", "NCHW")
    assert done.returncode == 0, done.stderr
    padded = np.load(tmp_path / "out" / f"{CONV}.input.0.2x16x4x5.npy")
    np.testing.assert_array_equal(padded[:, :3], IMAGE)


@pytest.mark.parametrize(("kind", "plain", "converted"), [
    ("bin", "input.0.2_2_5_3_16.float16.NC1HWC0.bin", "input.0.2_17_5_3.float16.NCHW.bin"),
    ("pt", "input.0.pt", "input.0.2x17x5x3.pt"),
    ("txt", "input.0.txt", "input.0.2x17x5x3.txt"),
])
def test_kinds(tmp_path: pathlib.Path, kind: str, plain: str, converted: str) -> None:
    dump, arrays = conv2d()
    path = dumps.Dump([dump.inputs[0]]).write(tmp_path / CONV)
    assert convert("-d", path, "-out", tmp_path / "a", "-t", kind).returncode == 0
    assert convert("-d", path, "-out", tmp_path / "b", "-t", kind, "-f", "NCHW").returncode == 0
    assert names(tmp_path / "a") == [f"{CONV}.{plain}"]
    assert names(tmp_path / "b") == [f"{CONV}.{converted}"]
    result = tmp_path / "b" / f"{CONV}.{converted}"
    if kind == "bin":
        assert result.read_bytes() == arrays[0].tobytes()
    elif kind == "pt":
        assert torch.equal(torch.load(result, weights_only=True), torch.from_numpy(arrays[0]))
    else:
        np.savetxt(tmp_path / "expected.txt", arrays[0].flatten())
        assert result.read_text() == (tmp_path / "expected.txt").read_text()


def test_text_of_every_kind_of_number(tmp_path: pathlib.Path) -> None:
    arrays = [np.array([1.5, -np.inf, np.nan, 1e-300]), np.array([-7, 2**62]),
              np.array([True, False]), np.array([1 - 2j, complex(0.1, np.nan)], np.complex64)]
    path = dumps.Dump(outputs=[dumps.plain(one) for one in arrays]).write(tmp_path / MATMUL)
    assert convert("-d", path, "-out", tmp_path, "-t", "txt").returncode == 0
    for i, array in enumerate(arrays):
        np.savetxt(tmp_path / "expected.txt", array)
        assert (tmp_path / f"{MATMUL}.output.{i}.txt").read_text() == (
            tmp_path / "expected.txt").read_text()


def test_mindspore_names(tmp_path: pathlib.Path) -> None:
    dump, _ = conv2d()
    path = dumps.Dump([dump.inputs[0]], op_name=dump.op_name).write(tmp_path / CONV)
    stem = CONV.replace("Default_network_Conv2D-op12", "Conv2D-op12")
    assert convert("-d", path, "-out", tmp_path / "a", "-t", "msnpy").returncode == 0
    assert names(tmp_path / "a") == [f"{stem}.input.0.NC1HWC0.npy"]
    assert convert("-d", path, "-out", tmp_path / "b", "-t", "msnpy", "-f", "NCHW").returncode == 0
    assert names(tmp_path / "b") == [f"{stem}.input.0.NCHW.npy"]
    failed = convert("-d", path, "-out", tmp_path / "c", "-t", "msnpy", "-f", "FRACTAL_Z_3D")
    assert failed.returncode == 22, failed.stderr
    assert "convert_failed_file_list.txt" in names(tmp_path / "c")
    assert f"{stem}.input.0.NC1HWC0.npy" in names(tmp_path / "c")


def test_types_without_an_array_keep_their_bytes(tmp_path: pathlib.Path) -> None:
    wide = np.array([1.0, -2.5], np.float32)
    bf16 = (wide.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    path = dumps.Dump(outputs=[
        dumps.Tensor(bf16, dumps.BF16, (2,)), dumps.Tensor(b"ab", 37, (2,)),
        dumps.Tensor(b"text", 13, (1,)), dumps.Tensor(b"\x81", 29, (2, 4)),
        dumps.Tensor(b"abcd", 5)]).write(tmp_path / MATMUL)
    done = convert("-d", path, "-out", tmp_path / "npy")
    assert done.returncode == 21 and "FLOAT6_E3M2" in done.stderr
    load = [tmp_path / "npy" / f"{MATMUL}.output.{i}.npy" for i in range(5)]
    np.testing.assert_array_equal(np.load(load[0]), wide)
    assert not load[1].exists()
    assert np.load(load[2]).tobytes() == b"text"
    np.testing.assert_array_equal(np.load(load[3]), [[1, 0, 0, 0], [0, 0, 0, 1]])
    assert np.load(load[4]).shape == (2,)
    assert convert("-d", path, "-out", tmp_path / "bin", "-t", "bin").returncode == 0
    assert f"{MATMUL}.output.0.2.bfloat16.ND.bin" in names(tmp_path / "bin")
    assert f"{MATMUL}.output.1.2.float6_e3m2.ND.bin" in names(tmp_path / "bin")


def test_packed_types_over_several_blocks(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(1)
    stored = random.integers(0, 256, 200_001, dtype=np.uint8)
    count = 2 * stored.size - 1  # half of the last byte
    path = dumps.Dump(outputs=[
        dumps.Tensor(stored.tobytes(), 28, (count,)), dumps.Tensor(stored.tobytes(), 29),
        dumps.Tensor(stored[:-1].tobytes(), 32, (50_000,)),
        dumps.Tensor(np.tile(stored, 2).tobytes(), 35)]).write(tmp_path / MATMUL)
    assert convert("-d", path, "-out", tmp_path / "out").returncode == 0
    arrays = [np.load(tmp_path / "out" / f"{MATMUL}.output.{i}.npy") for i in range(4)]
    nibbles = np.stack([stored & 15, stored >> 4], axis=1).reshape(-1)[:count].astype(np.int8)
    np.testing.assert_array_equal(arrays[0], np.where(nibbles > 7, nibbles - 16, nibbles))
    np.testing.assert_array_equal(arrays[1], np.unpackbits(stored))
    halves = stored[:-1].view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(arrays[2].view(np.float32), halves)
    expected = torch.from_numpy(np.tile(stored, 2)).view(torch.float8_e4m3fn).float()
    np.testing.assert_array_equal(arrays[3], expected.numpy())


def test_shapes_of_no_and_one_dimension(tmp_path: pathlib.Path) -> None:
    data = np.array([1.5, -2], np.float32).tobytes()
    path = dumps.Dump(outputs=[
        dumps.Tensor(data, 1, ()), dumps.Tensor(data, 1), dumps.Tensor(b"", 1, (0, 3)),
        dumps.Tensor(data, 1, (2**64 - 1, 2))]).write(tmp_path / MATMUL)
    done = convert("-d", path, "-out", tmp_path / "out")
    assert done.returncode == 0 and "a size of its shape is unknown" in done.stderr
    arrays = [np.load(tmp_path / "out" / f"{MATMUL}.output.{i}.npy") for i in range(4)]
    assert [array.shape for array in arrays] == [(), (2,), (0, 3), (2,)]
    assert arrays[0] == 1.5 and arrays[1].tolist() == arrays[3].tolist() == [1.5, -2]


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize(("layout", "wanted", "shape"), [
    ("NC1HWC0", "NCHW", (2, 0, 3, 2)), ("FRACTAL_Z", "NCHW", (0, 0, 3, 2)),
    ("FRACTAL_NZ", "ND", (3, 0, 0)), ("NDC1HWC0", "NCDHW", (2, 0, 2, 3, 2)),
    ("FRACTAL_Z_3D", "NCDHW", (0, 0, 2, 1, 3))])
def test_layouts_packed_by_numpy(layout: str, wanted: str, shape: tuple[int, ...], dtype: str,
                                 tmp_path: pathlib.Path) -> None:
    """Sizes that are no multiples of the blocks stand where `shape` has a 0."""
    random = np.random.default_rng(3)
    arrays = [random.integers(-100, 100, [size or free for size in shape]).astype(dtype)
              for free in (1, 15, 16, 17, 33)]
    c0 = 32 if dtype == "int8" else 16
    path = dumps.Dump([device_tensor(array, layout, c0) for array in arrays]).write(tmp_path / CONV)
    done = convert("-d", path, "-out", tmp_path / "out", "-f", wanted)
    assert done.returncode == 0, done.stderr
    for i, array in enumerate(arrays):
        (result,) = (tmp_path / "out").glob(f"{CONV}.input.{i}.*.npy")
        np.testing.assert_array_equal(np.load(result), array)


def test_threads_have_their_own_shapes(tmp_path: pathlib.Path) -> None:
    part = {"lower": 0, "higher": 2}
    attribute = json.dumps({"threadMode": True, "slice_instance_num": 2, "input_tensor_slice": [],
                            "output_tensor_slice": [[[part]], [[part, {"lower": 1, "higher": 3}]]]})
    array = np.arange(4, dtype=np.int16)
    dump = dumps.Dump(outputs=[dumps.plain(array)], attribute=attribute)
    path = dump.write(tmp_path / f"{MATMUL}.4.5.1.0")
    assert convert("-d", path, "-out", tmp_path / "out").returncode == 0
    assert np.load(tmp_path / "out" / f"{path.name}.output.0.npy").shape == (2, 2)


@pytest.mark.parametrize("end", [253, 254, 255, 256])
def test_long_names_get_a_line_in_the_mapping(tmp_path: pathlib.Path, end: int) -> None:
    stem = "MatMul." + "x" * (end - len("MatMul..3.7.1612439563338021.output.0.npy"))
    name = f"{stem}.3.7.1612439563338021"
    path = dumps.Dump(outputs=[dumps.plain(np.ones(2))]).write(tmp_path / name)
    assert convert("-d", path, "-out", tmp_path / "out").returncode == 0
    full = f"{name}.output.0.npy"
    assert len(full) == end
    if end < 255:
        assert names(tmp_path / "out") == [full]
        return
    short = uuid.uuid3(uuid.NAMESPACE_DNS, full).hex + ".npy"
    assert names(tmp_path / "out") == sorted([short, "mapping.csv"])
    assert (tmp_path / "out" / "mapping.csv").read_text() == f"{short},{full}\n"


def test_names_of_digits_are_looked_up(tmp_path: pathlib.Path) -> None:
    dump = dumps.Dump(outputs=[dumps.plain(np.ones(2))])
    dump.write(tmp_path / "in" / "4711")
    dump.write(tmp_path / "in" / "4712")
    (tmp_path / "in" / "mapping.csv").write_text(f"4711,{MATMUL}\n")
    done = convert("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert done.returncode == 0 and "1 file left out" in done.stdout
    assert names(tmp_path / "out") == [f"{MATMUL}.output.0.npy"]


def test_one_broken_file_stops_no_other(tmp_path: pathlib.Path) -> None:
    dump = dumps.Dump(inputs=[dumps.plain(np.arange(4.0))], outputs=[dumps.plain(np.ones(2))])
    for i in range(6):
        dump.write(tmp_path / "in" / f"MatMul.op{i}.1.2.161243956333800{i}")
    cut = tmp_path / "in" / "MatMul.op3.1.2.1612439563338003"
    cut.write_bytes(cut.read_bytes()[:-4])
    (tmp_path / "in" / "readme").write_text("other")
    done = convert("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert done.returncode == 11 and "1 dump file failed" in done.stdout
    listed = (tmp_path / "out" / "convert_failed_file_list.txt").read_text()
    assert listed.count("\n") == 1 and listed.startswith(f"{cut},output:0\t")
    assert len(names(tmp_path / "out")) == 12  # five pairs, the input in front, the list
    dump.write(cut)
    again = convert("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert again.returncode == 0 and "1 file left out" in again.stdout
    assert "convert_failed_file_list.txt" not in names(tmp_path / "out")


def test_tree_keeps_its_directories(tmp_path: pathlib.Path) -> None:
    dump = dumps.Dump(outputs=[dumps.plain(np.ones(2))])
    for below in ("0/net/1/0", "1/net/1/0"):
        dump.write(tmp_path / "in" / below / MATMUL)
    dump.write(tmp_path / "in" / CONV)
    assert convert("-d", tmp_path / "in", "-out", tmp_path / "top").returncode == 0
    assert names(tmp_path / "top") == [f"{CONV}.output.0.npy"]
    assert convert("-d", tmp_path / "in", "-R", "-out", tmp_path / "out").returncode == 0
    for below in ("0/net/1/0", "1/net/1/0"):
        assert names(tmp_path / "out" / below) == [f"{MATMUL}.output.0.npy"]


def test_directory_of_a_run(tmp_path: pathlib.Path) -> None:
    """`-d {dump_path}`: time, device, model and step lie between it and the dumps."""
    dump, _ = conv2d()
    dump.write(tmp_path / "dump" / "20200808163566" / "0" / "1" / "0" / CONV)
    done = convert("-d", tmp_path / "dump", "-out", tmp_path / "out", "-v", 2)
    assert done.returncode == 0, done.stderr
    assert len(names(tmp_path / "out" / "20200808163566" / "0" / "1" / "0")) == 5
    dump.write(tmp_path / "dump" / CONV)
    assert "1 dump file" in convert("-d", tmp_path / "dump", "-out", tmp_path / "top").stdout
    assert not (tmp_path / "top" / "20200808163566").exists()


def test_list_of_files(tmp_path: pathlib.Path) -> None:
    dump = dumps.Dump(outputs=[dumps.plain(np.ones(2))])
    one, two = dump.write(tmp_path / CONV), dump.write(tmp_path / "with blank, and comma")
    done = convert("-d", f"{one},{tmp_path}/missing", "-out", tmp_path / "out")
    assert done.returncode == 3 and names(tmp_path / "out") == [
        f"{CONV}.output.0.npy", "convert_failed_file_list.txt"]
    assert convert("-d", two, "-out", tmp_path / "b").returncode == 0


def test_two_dumps_of_one_name_are_not_mixed(tmp_path: pathlib.Path) -> None:
    paths = [dumps.Dump(outputs=[dumps.plain(np.full(9, i))]).write(tmp_path / str(i) / CONV)
             for i in range(2)]
    done = convert("-d", f"{paths[0]},{paths[1]}", "-out", tmp_path / "out")
    assert done.returncode == 19 and "another dump has an output of this name" in done.stderr
    assert len(set(np.load(tmp_path / "out" / f"{CONV}.output.0.npy"))) == 1


def test_names_that_no_file_can_have(tmp_path: pathlib.Path) -> None:
    """A NUL would cut the names of both to the same."""
    for end in "bc":
        dump = dumps.Dump(outputs=[dumps.plain(np.ones(2))], op_name=f"net/a\0{end}")
        dump.write(tmp_path / "nul" / f"A.{end}.1.2.1612439563338021")
    done = convert("-d", tmp_path / "nul", "-out", tmp_path / "out", "-t", "msnpy")
    assert done.returncode == 19 and done.stderr.count("no file name") == 2
    assert names(tmp_path / "out") == ["convert_failed_file_list.txt"]
    dump.write(tmp_path / "slash" / "123")
    (tmp_path / "slash" / "mapping.csv").write_text(f"123,{tmp_path}/A.a.1.2.1612439563338021\n")
    (tmp_path / "out2" / f".{tmp_path}").mkdir(parents=True)
    done = convert("-d", tmp_path / "slash", "-out", tmp_path / "out2")
    assert done.returncode == 19 and "no file name" in done.stderr
    assert not list(tmp_path.glob("A.*"))


@pytest.mark.parametrize(("arguments", "code"), [
    (("-f", "NCHW", "-s", "5"), 23), (("-f", "NCHW", "-s", "1,0"), 23), (("-o", "0"), 6),
    (("-f", "NCHW", "-i", "x"), 6), (("-f", "NCHW", "-i", "99"), 12), (("-f", "FOO"), 6),
    (("-s", "1,2"), 6), (("-c", "."), 6), (("-f", "ND", "-c", "no-such-path"), 3),
    (("-v", "3"), 2),
    (("-t", "foo"), 2), (("-f", "ND", "-i", "0", "-o", "0"), 6),
    (("-f", "ND", "-o", "0"), 6),  # FRACTAL_NZ without an original shape
    (("-f", "ND", "-o", "0", "-s", "1,16"), 6), (("-f", "ND", "-o", "0", "-s", "17,30"), 0),
])
def test_option_rules(tmp_path: pathlib.Path, arguments: tuple[str, ...], code: int) -> None:
    matrix = dumps.fractal_nz(np.ones((20, 30), np.float16))
    matrix.original = None
    path = dumps.Dump([dumps.nc1hwc0(np.ones((1, 3, 2, 2), np.float16))], [matrix]).write(
        tmp_path / CONV)
    done = convert("-d", path, "-out", tmp_path / "out", *arguments)
    assert done.returncode == code, done.stderr
    assert (code == 0) == (done.stderr == "")


def test_damaged_containers(tmp_path: pathlib.Path) -> None:
    sound = dumps.Dump(outputs=[dumps.plain(np.ones(2))]).bytes()
    cases = {b"": 11, b"1234567": 39, b"12345678": 39, b"\0" * 9: 11, sound[:-1]: 11,
             b"\xff" * 8 + sound[8:]: 11, sound[:20] + b"\x07" + sound[21:]: 11,
             b"\0" * 7 + b"\x80" + sound[8:]: 11,
             (20).to_bytes(8, "little") + b"\x5a" * 4 + b"x" * 16: 47, sound + b"x": 0}
    for i, (content, code) in enumerate(cases.items()):
        path = tmp_path / f"MatMul.a.1.2.161243956333800{i}"
        path.write_bytes(content)
        done = convert("-d", path, "-out", tmp_path / f"out{i}")
        assert done.returncode == code, (i, done.stderr)
        arrays = list((tmp_path / f"out{i}").glob("*.npy"))
        assert bool(arrays) == (code == 0), i
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY")
    assert convert("-d", tmp_path / "a.npy", "-out", tmp_path / "bad").returncode == 11
    assert convert("-d", tmp_path / "missing", "-out", tmp_path / "none").returncode == 3
    (tmp_path / "empty").mkdir()
    empty = convert("-d", tmp_path / "empty", "-out", tmp_path / "none")
    assert empty.returncode == 6 and "The dump path is empty." in empty.stderr
    assert not (tmp_path / "none").exists()


def test_outputs_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    dump = dumps.Dump([dumps.plain(np.ones(2))], [dumps.plain(np.ones(3))])
    path = dump.write(tmp_path / CONV)
    (tmp_path / "file").write_text("kept")
    assert convert("-d", path, "-out", tmp_path / "file").returncode == 3
    assert (tmp_path / "file").read_text() == "kept"
    (tmp_path / "out" / f"{CONV}.input.0.npy").mkdir(parents=True)
    done = convert("-d", path, "-out", tmp_path / "out")
    assert done.returncode == 19 and "input:0" in done.stderr
    assert np.load(tmp_path / "out" / f"{CONV}.output.0.npy").size == 3
    assert not [name for name in names(tmp_path / "out") if name.startswith(".")]


def test_version_1_and_arrays(tmp_path: pathlib.Path) -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    (tmp_path / CONV).write_bytes(dumps.Dump([dumps.plain(array)]).message(inline=True))
    np.save(tmp_path / "b.npy", np.asfortranarray(array))
    assert convert("-d", f"{tmp_path / CONV},{tmp_path}/b.npy", "-out",
                   tmp_path / "out").returncode == 0
    for name in (f"{CONV}.input.0.npy", "b.npy.output.0.npy"):
        np.testing.assert_array_equal(np.load(tmp_path / "out" / name), array)


def test_overflow_records(tmp_path: pathlib.Path) -> None:
    name = "Opdebug.Node_OpDebug.7.10.1636595794731103"
    path = dumps.record_file(dumps.old_record(), dumps.new_record(), bytes(2047),
                             dumps.new_record(9)).write(tmp_path / name)
    done = convert("-d", path, "-out", tmp_path / "out")
    assert done.returncode == 11
    old = json.loads((tmp_path / "out" / f"{name}.output.0.json").read_text())
    assert list(old) == ["DHA Atomic Add", "L2 Atomic Add", "AI Core"]
    assert old["AI Core"]["status"] == 16 and old["AI Core"]["kernel_code"] == "0xabc"
    new = json.loads((tmp_path / "out" / f"{name}.output.1.json").read_text())
    assert new["acc_list"]["acc_type"] == "AIV" and new["acc_list"]["data"]["status"] == 16
    assert "output:3" in done.stderr and "(error 35)" in done.stderr


def test_killed_run_leaves_whole_files_and_is_continued(tmp_path: pathlib.Path) -> None:
    array = np.arange(1 << 19, dtype=np.float32)
    for i in range(40):
        dumps.Dump(outputs=[dumps.plain(array + i)]).write(
            tmp_path / "in" / f"MatMul.op{i}.1.2.16124395633380{i:02}")
    command = [PLUMB, "convert", "-d", tmp_path / "in", "-out", tmp_path / "out", "--jobs", "1"]
    with subprocess.Popen(command) as process:
        while process.poll() is None and len(list((tmp_path / "out").glob("*.npy"))) < 5:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    left = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.npy")}
    assert process.returncode == -signal.SIGKILL and 5 <= len(left) < 40
    for name in left:  # whatever stands there is whole
        assert np.load(tmp_path / "out" / name).size == array.size
    os.truncate(tmp_path / "out" / min(left, key=left.__getitem__), 1000)  # the journal has it
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "already done by a run that ended early" in done.stdout
    kept = sum((tmp_path / "out" / name).stat().st_mtime_ns == time for name, time in left.items())
    assert kept >= len(left) - 2
    assert len(names(tmp_path / "out")) == 40  # no temporary file and no journal
    for i in range(40):
        name = f"MatMul.op{i}.1.2.16124395633380{i:02}.output.0.npy"
        np.testing.assert_array_equal(np.load(tmp_path / "out" / name), array + i)


def test_another_request_does_not_continue(tmp_path: pathlib.Path) -> None:
    path = dumps.Dump([dumps.nc1hwc0(np.ones((3,) * 4, np.float16))]).write(tmp_path / CONV)
    out = tmp_path / "out"
    out.mkdir()
    stat = path.stat()
    (out / f"{CONV}.input.0.3x3x3x3.npy").write_bytes(b"of another layout")
    (out / ".plumb_convert_journal").write_text(
        f"plumb convert {path} type=0 format=NHWC shape= output= input= own=\n"
        f"{path},{stat.st_size},{stat.st_mtime_ns},{out}/{CONV}.input.0.3x3x3x3.npy\n")
    done = convert("-d", path, "-out", out, "-f", "NCHW")
    assert done.returncode == 0 and "already" not in done.stdout
    assert np.load(out / f"{CONV}.input.0.3x3x3x3.npy").shape == (3, 3, 3, 3)


def test_a_nano_dump_behind_digits_has_the_name_of_the_table(tmp_path: pathlib.Path) -> None:
    values = np.array([[3, -1, 7]], np.int32)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "12345").write_bytes(dumps.nano(values))
    (tmp_path / "in" / "mapping.csv").write_text(f"12345,{MATMUL}\n")
    done = convert("-d", tmp_path / "in", "-out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert names(tmp_path / "out") == [f"{MATMUL}.output.0.npy"]
    assert np.array_equal(np.load(tmp_path / "out" / f"{MATMUL}.output.0.npy"), values)
