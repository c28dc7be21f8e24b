"""Writes tests/data/torch_pt: files of the real torch.save and hostile variants, with the truth.

expected.txt has one line per file: name, dtype, shape ("-" for none), row-major bytes in hex
("-" for none); or name, "error", the error code, and a text its message must contain.
Run in an environment with PyTorch 2.3 or newer.
"""

import io
import os
import pathlib
import pickle
import struct
import zipfile

import torch

OUT = pathlib.Path(__file__).parent / "torch_pt"
SEED = 20260103
DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
).split()
SHAPES = [(), (0,), (1,), (2, 3), (0, 4), (5, 1, 2), (2, 1, 2, 3)]
LINES = []


def raw(t):
    return t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def expect(name, t):
    shape = ",".join(map(str, t.shape)) or "-"
    LINES.append(f"{name} {str(t.dtype)[6:]} {shape} {raw(t).hex() or '-'}")


def refuse(name, code, text):
    LINES.append(f"{name} error {code} {text}")


def save(name, t, **options):
    torch.save(t, OUT / name, **options)
    expect(name, t)


def random(dtype, shape):
    values = torch.randint(0, 50, shape)
    return values.to(getattr(torch, dtype)) if dtype != "bool" else values % 2 == 1


def rewrite(source, name, change):
    """Copies an archive, every member passed through change(name, data)."""
    with zipfile.ZipFile(OUT / source) as old, zipfile.ZipFile(OUT / name, "w") as new:
        for info in old.infolist():
            data = change(info.filename.split("/", 1)[1], old.read(info))
            if data is not None:
                new.writestr(zipfile.ZipInfo(info.filename), data)


def with_pickle(name, data):
    rewrite("float32.pt", name, lambda member, old: data if member == "data.pkl" else old)


class Call:
    def __init__(self, function, *arguments):
        self.pair = (function, arguments)

    def __reduce__(self):
        return self.pair


def good_files():
    for dtype in DTYPES:
        save(f"{dtype}.pt", random(dtype, (2, 3)))
    for shape in SHAPES:
        save(f"shape_{'x'.join(map(str, shape)) or 'scalar'}.pt", random("float32", shape))
    base = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    save("view_stride.pt", base[1:, ::2, 1::3])
    save("view_transposed.pt", base.permute(2, 0, 1))
    save("view_expanded.pt", torch.arange(3, dtype=torch.int16).reshape(3, 1).expand(3, 4))
    save("parameter.pt", torch.nn.Parameter(torch.arange(4.0)))
    save("protocol4.pt", random("float32", (2, 3)), pickle_protocol=4)
    save("protocol4_uint16.pt", random("uint16", (2, 3)), pickle_protocol=4)
    for dtype in ("float32", "bool", "complex64", "bfloat16", "uint32"):
        save(f"legacy_{dtype}.pt", random(dtype, (2, 3)), _use_new_zipfile_serialization=False)
    save("legacy_view.pt", base[:, 1], _use_new_zipfile_serialization=False)
    save("legacy_empty.pt", torch.zeros(0, 2), _use_new_zipfile_serialization=False)
    tensor = random("uint8", (70, 300))
    save("large_sizes.pt", tensor[:2, :3])
    stream = io.BytesIO()
    torch.save(random("float32", (2, 3)), stream)
    (OUT / "stream.pt").write_bytes(stream.getvalue())
    expect("stream.pt", torch.load(io.BytesIO(stream.getvalue()), weights_only=True))
    for dtype, width in (("float32", 4), ("complex64", 4), ("int16", 2)):

        def swap(member, data, width=width):
            if member == "byteorder":
                return b"big"
            if member != "data/0":
                return data
            parts = [data[i : i + width][::-1] for i in range(0, len(data), width)]
            return b"".join(parts)

        rewrite(f"{dtype}.pt", f"big_endian_{dtype}.pt", swap)
        expect(f"big_endian_{dtype}.pt", torch.load(OUT / f"{dtype}.pt", weights_only=True))
    for device in ("cuda:0", "npu:1"):
        old, new = b"X\x03\x00\x00\x00cpu", b"X" + struct.pack("<I", len(device)) + device.encode()
        name = f"device_{device[:-2]}.pt"

        def move(member, data, old=old, new=new):
            return data.replace(old, new) if member == "data.pkl" else data

        rewrite("float32.pt", name, move)
        expect(name, torch.load(OUT / "float32.pt", weights_only=True))


def refused_files():
    values = {"dict": {"a": torch.zeros(2)}, "list": [torch.zeros(1)], "int": 3}
    for kind, value in values.items():
        torch.save(value, OUT / f"refused_{kind}.pt")
        refuse(f"refused_{kind}.pt", "unsupported", "expected one tensor")
    torch.save(torch.zeros(2, dtype=torch.complex64).conj(), OUT / "refused_conj.pt")
    refuse("refused_conj.pt", "unsupported", '"conj"')
    torch.save(torch.eye(2).to_sparse(), OUT / "refused_sparse.pt")
    refuse("refused_sparse.pt", "unsupported", "_rebuild_sparse_tensor")
    torch.save(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), OUT / "refused_q.pt")
    refuse("refused_q.pt", "unsupported", "_rebuild_qtensor")
    torch.save(torch.zeros(2, device="meta"), OUT / "refused_meta.pt")
    refuse("refused_meta.pt", "unsupported", "_rebuild_meta_tensor_no_storage")
    hostile = {
        "system": (Call(os.system, "touch /tmp/plumbline_was_here"), "system"),
        "eval": (Call(eval, "1"), "builtin"),
        "getattr": (Call(getattr, 1, "real"), "builtin"),
    }
    for kind, (value, text) in hostile.items():
        for protocol in (2, 4):
            with_pickle(f"hostile_{kind}{protocol}.pt", pickle.dumps(value, protocol))
            refuse(f"hostile_{kind}{protocol}.pt", "unsupported", text)
    with_pickle("hostile_size.pt", b"\x80\x02ctorch\nfloat32\n)R.")
    refuse("hostile_size.pt", "corrupt", "without arguments")
    with_pickle("hostile_memo.pt", b"\x80\x02Kar\xff\xff\xff\xffj\xfe\xff\xff\xff.")
    refuse("hostile_memo.pt", "corrupt", "memo 4294967294")
    with_pickle("hostile_length.pt", b"\x80\x02X\xff\xff\xff\xffab.")
    refuse("hostile_length.pt", "corrupt", "ends early")
    with_pickle("hostile_stack.pt", b"\x80\x02tR.")
    refuse("hostile_stack.pt", "corrupt", "mark is missing")
    source = zipfile.ZipFile(OUT / "float32.pt").read("float32/data.pkl")
    assert source.count(b"K\x06tq\x05QK\x00K\x02K\x03\x86") == 1
    for kind, new, text in (
        ("short", b"K\x07tq\x05QK\x00K\x02K\x03\x86", "wrong length"),
        ("offset", b"K\x06tq\x05QK\x01K\x02K\x03\x86", "too short"),
        ("negative", b"K\x06tq\x05QK\x00J\xff\xff\xff\xffK\x03\x86", "negative"),
        ("overflow", b"K\x06tq\x05QK\x00\x8a\x08" + b"\xff" * 7 + b"\x7fK\x03\x86", ""),
    ):
        name = f"hostile_{kind}.pt"
        with_pickle(name, source.replace(b"K\x06tq\x05QK\x00K\x02K\x03\x86", new))
        refuse(name, "corrupt", text)
    rewrite("float32.pt", "no_data.pt", lambda m, d: None if m == "data/0" else d)
    refuse("no_data.pt", "corrupt", "has no float32/data/0")
    data = (OUT / "float32.pt").read_bytes()
    with zipfile.ZipFile(OUT / "float32.pt") as archive:
        info = archive.getinfo("float32/data/0")
        at = info.header_offset + 26
        at += 4 + sum(struct.unpack_from("<HH", data, at))
    (OUT / "wrong_crc.pt").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    refuse("wrong_crc.pt", "corrupt", "checksum differs")
    with zipfile.ZipFile(OUT / "compressed.pt", "w", zipfile.ZIP_DEFLATED) as new:
        with zipfile.ZipFile(OUT / "float32.pt") as old:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info))
    refuse("compressed.pt", "unsupported", "compressed")
    (OUT / "empty.pt").write_bytes(b"")
    refuse("empty.pt", "corrupt", "got nothing")
    (OUT / "text.pt").write_bytes(b"not a tensor")
    refuse("text.pt", "corrupt", "no file of torch.save")


def main():
    torch.manual_seed(SEED)
    OUT.mkdir(exist_ok=True)
    for old in OUT.glob("*.pt"):
        old.unlink()
    good_files()
    refused_files()
    (OUT / "expected.txt").write_text("\n".join(LINES) + "\n")


if __name__ == "__main__":
    main()
