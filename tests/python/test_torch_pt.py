"""The .pt files that plumbline writes, read by PyTorch and by zipfile.

The files in tests/data/torch_frames are compared byte for byte with the writer's output by the C++
test TorchPt.FramesAreTheFilesThatTorchLoads.
"""

from __future__ import annotations

import pathlib
import struct
import zipfile

import pytest

torch = pytest.importorskip("torch")

FRAMES = pathlib.Path(__file__).parents[1] / "data" / "torch_frames"
FILES = sorted(FRAMES.glob("*.pt"))


def dtype_and_shape(path: pathlib.Path) -> tuple[str, tuple[int, ...]]:
    parts = path.stem.split("_")
    sizes = []
    while parts[-1].isdigit():
        sizes.insert(0, int(parts.pop()))
    return "_".join(parts), tuple(sizes)


def test_there_is_a_file_of_every_dtype_and_rank() -> None:
    assert len({dtype_and_shape(path)[0] for path in FILES}) == 19
    assert {len(dtype_and_shape(path)[1]) for path in FILES} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_torch_loads_the_elements(path: pathlib.Path) -> None:
    dtype, shape = dtype_and_shape(path)
    if not hasattr(torch, dtype):
        pytest.skip(f"this PyTorch has no {dtype}")
    tensor = torch.load(path, weights_only=True)
    assert str(tensor.dtype) == f"torch.{dtype}"
    assert tuple(tensor.shape) == shape
    assert tensor.is_contiguous()
    assert not tensor.requires_grad
    raw = bytes(tensor.reshape(-1).view(torch.uint8).tolist())
    modulus = (lambda i: i % 2) if dtype == "bool" else (lambda i: (7 * i + 1) % 64)
    assert raw == bytes(modulus(i) for i in range(len(raw)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_archive_is_clean_and_its_data_aligned(path: pathlib.Path) -> None:
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.filename.split("/")[0] for info in archive.infolist()} == {"archive"}
        info = archive.getinfo("archive/data/0")
        name_size, extra_size = struct.unpack_from("<HH", data, info.header_offset + 26)
        assert (info.header_offset + 30 + name_size + extra_size) % 64 == 0


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "bool", "complex64"])
def test_pickle_is_the_one_of_torch_save(dtype: str, tmp_path: pathlib.Path) -> None:
    ours = FRAMES / f"{dtype}_2_3.pt"
    theirs = tmp_path / "x.pt"
    torch.save(torch.load(ours, weights_only=True), theirs)
    with zipfile.ZipFile(ours) as a, zipfile.ZipFile(theirs) as b:
        assert a.read("archive/data.pkl") == b.read("x/data.pkl")
        assert a.read("archive/data/0") == b.read("x/data/0")
        assert a.read("archive/version") == b.read("x/version")
