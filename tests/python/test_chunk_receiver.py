"""The C interface that receives dump files in pieces, by replayed streams of chunks."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import device_dumps
import numpy as np
import pytest
import torchair_dumps

import plumbline

LIBRARY = Path(plumbline.__file__).parent / "libplumbline_receiver.so"
NAME_BYTES = 4096
FLOAT, BF16, UINT8 = 1, 27, 4
NCHW, NHWC, ND, FRACTAL_NZ = 0, 1, 2, 29


def output_field(array: bytes, kind: int, layout: int, device: tuple[int, ...],
                 host: tuple[int, ...]) -> bytes:
    def shape(sizes: tuple[int, ...]) -> bytes:
        packed = b"".join(torchair_dumps.varint(size) for size in sizes)
        return torchair_dumps.field(1, packed)

    field = torchair_dumps.field
    return (field(1, kind) + field(2, layout) + field(3, shape(device))
            + field(6, len(array)) + field(7, shape(host)))


def dump_bytes(outputs: list[tuple[bytes, int, int, tuple[int, ...], tuple[int, ...]]]) -> bytes:
    header = torchair_dumps.field(1, b"2.0")
    for data, kind, layout, device, host in outputs:
        part = output_field(data, kind, layout, device, host)
        header += torchair_dumps.field(3, part)
    return struct.pack("<Q", len(header)) + header + b"".join(one[0] for one in outputs)


def plain_dump(values: np.ndarray) -> bytes:
    return dump_bytes([(values.tobytes(), FLOAT, ND, values.shape, values.shape)])


def name_of(number: int) -> str:
    return f"Add.Default_Add-op{number}.{number}.7.1735011096{number:06}"


class Receiver:
    def __init__(self, dump_path: Path) -> None:
        self.native = ctypes.CDLL(str(LIBRARY))
        self.native.plumbline_dump_problems.restype = ctypes.c_uint64
        self.root = dump_path
        assert self.native.plumbline_dump_open(os.fsencode(dump_path)) == 0, self.problems()

    def send(self, name: str, data: bytes, last: bool, offset: int = -1) -> int:
        path = os.fsencode(self.root / name)
        head = struct.pack("<4096sIIqi", path, len(data), int(last), offset, 0)
        assert len(head) == NAME_BYTES + 20
        return self.native.plumbline_dump_chunk(head + data, len(head) + len(data))

    def problems(self) -> str:
        text = ctypes.create_string_buffer(1 << 16)
        self.native.plumbline_dump_problems(text, ctypes.c_uint64(len(text)))
        return text.value.decode()

    def close(self) -> int:
        return self.native.plumbline_dump_close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    one = Receiver(tmp_path / "dump")
    yield one
    one.close()


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_single_bytes_and_interleaved_files(receiver: Receiver) -> None:
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3) + i for i in range(3)]
    data = [plain_dump(array) for array in arrays]
    for at in range(len(data[0])):
        for number in range(3):
            last = at == len(data[0]) - 1
            assert receiver.send(name_of(number), data[number][at : at + 1], last) == 0
    assert receiver.close() == 0, receiver.problems()
    assert files_below(receiver.root) == [f"{name_of(i)}.output.0.ND.FLOAT.npy" for i in range(3)]
    for number in range(3):
        path = receiver.root / f"{name_of(number)}.output.0.ND.FLOAT.npy"
        assert np.array_equal(np.load(path), arrays[number])


def test_many_files_in_flight_from_many_threads(receiver: Receiver) -> None:
    count, piece = 400, 50
    data = {name_of(i): plain_dump(np.full(40, i, np.float32)) for i in range(count)}
    starts = range(0, len(data[name_of(0)]), piece)

    def send(names: list[str]) -> None:
        for start, name in itertools.product(starts, names):
            receiver.send(name, data[name][start : start + piece], start == starts[-1])

    names = list(data)
    threads = [threading.Thread(target=send, args=(names[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert receiver.close() == 0, receiver.problems()
    for number in range(count):
        array = np.load(receiver.root / f"{name_of(number)}.output.0.ND.FLOAT.npy")
        assert np.array_equal(array, np.full(40, number, np.float32))


def test_layouts_types_and_paths(receiver: Receiver) -> None:
    flat = np.arange(20 * 18, dtype=np.float32).reshape(20, 18)
    padded = np.zeros((32, 32), np.float32)
    padded[:20, :18] = flat
    nz = padded.reshape(2, 16, 2, 16).transpose(2, 0, 1, 3).copy()
    image = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    nhwc = image.transpose(0, 2, 3, 1).copy()
    brain = np.array([1.5, -2.0], np.float32)
    brain_bytes = (brain.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    data = dump_bytes([
        (nz.tobytes(), FLOAT, FRACTAL_NZ, nz.shape, flat.shape),
        (nhwc.tobytes(), FLOAT, NHWC, nhwc.shape, nhwc.shape),
        (brain_bytes, BF16, ND, (2,), (2,)),
        (b"", UINT8, ND, (0,), (0,)),
    ])
    place = "rank_0/20240101000000/step_3"
    name = "Cast.op.9.10.1735011096426349"
    deep = f"{place}/20240101000001/0/model/1/0/{name}"
    assert receiver.send(deep, data, last=True) == 0
    assert receiver.close() == 0, receiver.problems()
    root = receiver.root / place
    assert np.array_equal(np.load(root / f"{name}.output.0.ND.FLOAT.npy"), flat)
    (converted,) = root.glob(f"{name}.output.1.*")
    shown = np.load(converted)
    assert np.array_equal(shown, image) or np.array_equal(shown, nhwc)
    assert (".NCHW." in converted.name) == (shown.shape == image.shape)
    assert np.array_equal(np.load(root / f"{name}.output.2.ND.BF16.npy"), brain)
    assert len(files_below(receiver.root)) == 3


def test_offsets_beyond_4_gib(receiver: Receiver) -> None:
    # A workspace of 4.5 GiB behind a small output, of which only the last byte comes: where a chunk
    # belongs is told to the byte, and the file is never converted with a hole in it.
    size = 9 << 29
    output = output_field(np.arange(4, dtype=np.float32).tobytes(), FLOAT, ND, (4,), (4,))
    header = (torchair_dumps.field(1, b"2.0") + torchair_dumps.field(3, output)
              + torchair_dumps.field(8, torchair_dumps.field(3, size)))
    start = struct.pack("<Q", len(header)) + header + bytes(16)
    assert receiver.send(name_of(1), start, last=False) == 0
    assert receiver.send(name_of(1), b"!", last=True, offset=len(start) + size - 1) == 0
    assert receiver.close() == 1
    assert f"bytes {len(start)} to {len(start) + size - 2} never came" in receiver.problems()
    assert not files_below(receiver.root)


def test_nano_dumps(receiver: Receiver) -> None:
    # Their own name is only in the path; one comes without a last chunk.
    values = np.array([[3, -1, 7]], np.int32)
    for number, last in ((1, True), (2, False)):
        assert receiver.send(name_of(number), device_dumps.nano(values), last) == 0
    assert receiver.close() == 0, receiver.problems()
    for number in (1, 2):
        path = receiver.root / f"{name_of(number)}.output.0.ND.INT32.npy"
        assert np.array_equal(np.load(path), values)


def test_tables_of_many_threads(receiver: Receiver) -> None:
    table = (b"Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value\n"
             b"Input,0,24,float32,ND,(2,3),1.5\nOutput,0,4,float32,ND,(1),2\n")

    def send(first: int) -> None:
        for number in range(first, first + 25):
            receiver.send(name_of(number), table, last=True)

    threads = [threading.Thread(target=send, args=(25 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert receiver.close() == 0, receiver.problems()
    lines = (receiver.root / "statistic.csv").read_text().splitlines()
    assert len(set(lines)) == len(lines) == 201


def test_a_missing_last_chunk(receiver: Receiver) -> None:
    whole, cut = plain_dump(np.ones(3, np.float32)), plain_dump(np.ones(30, np.float32))[:-1]
    assert receiver.send(name_of(1), whole, last=False) == 0
    assert receiver.send(name_of(2), cut, last=False) == 0
    assert receiver.close() == 1
    assert f"{name_of(2)}: its last chunk never came" in receiver.problems()
    assert files_below(receiver.root) == [f"{name_of(1)}.output.0.ND.FLOAT.npy"]


def test_statistics_of_the_device(receiver: Receiver) -> None:
    for number in (1, 2):
        table = ("Input/Output,Index,Data Size,Data Type,Format,Shape,Count,Max Value,l2norm\n"
                 f"Input,0,24,float32,ND,(2,3),6,{number}.5,9\nOutput,0,4,float32,ND,(1),1,2,3\n")
        assert receiver.send(name_of(number), table.encode(), last=True) == 0
    assert receiver.close() == 0, receiver.problems()
    lines = (receiver.root / "statistic.csv").read_text().splitlines()
    assert lines[0] == ("Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,"
                        "Data Type,Format,Shape,Max Value,L2 Norm Value")
    operator = "Add,Default_Add-op1,1,7,1735011096000001"
    assert lines[1] == f'{operator},Input,0,24,float32,ND,"(2,3)",1.5,9'
    assert len(lines) == 5


def test_wrong_calls(receiver: Receiver, tmp_path: Path) -> None:
    assert receiver.send("../outside/Add.a.1.2.3", b"x", last=False) == 1
    assert receiver.native.plumbline_dump_open(os.fsencode(tmp_path / "other")) == 1  # one only
    assert not (tmp_path / "other").exists()
    assert receiver.send(name_of(1), b"", last=False) == 1
    assert receiver.send(name_of(1), b"damaged file", last=True) == 0
    assert receiver.close() == 1
    assert "not below the dump path" in receiver.problems()  # before the second open
    assert f"{tmp_path / 'other'}: another receiver is open" in receiver.problems()
    assert name_of(1) in receiver.problems()
    assert receiver.send(name_of(1), b"x", last=True) == 1


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
import numpy as np
from pathlib import Path
from test_chunk_receiver import Receiver, name_of, plain_dump
receiver = Receiver(Path(sys.argv[1]))
data = plain_dump(np.arange(50000, dtype=np.float32))
for number in range(100000):
    for start in range(0, len(data), 30000):
        receiver.send(name_of(number), data[start:start + 30000], start + 30000 >= len(data))
    print(number, flush=True)
"""


def test_a_killed_process_leaves_whole_files(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    command = [sys.executable, "-c", KILLED, str(root), str(Path(__file__).parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    arrays = list(root.glob("*.npy"))
    assert len(arrays) >= 20
    for path in arrays:
        assert np.array_equal(np.load(path), np.arange(50000, dtype=np.float32))
    assert [path.name for path in root.iterdir() if path.name.startswith(".receiving-")]
    Receiver(root).close()  # clears up after it
    assert not [path.name for path in root.iterdir() if path.name.startswith(".receiving-")]
