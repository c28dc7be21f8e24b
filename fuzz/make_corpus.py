"""Writes the seeds of the fuzz targets to fuzz/corpus: the same bytes each time.

    python fuzz/make_corpus.py [DIRECTORY]

Needs the standard library only. The seeds are small: mutation does the rest. Targets of tensor
files also start from tests/data.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

Seeds = dict[str, bytes]


def dump_json() -> Seeds:
    """dump.json of every task, with odd values, cut, of MindSpore, nested; stacks of both forms."""
    seeds: Seeds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("sound", "sound_md5", "odd_golden", "truncated", "mindspore", "odd_names",
                     "broken_records", "structure_task"):
            directory = Path(folder, name)
            getattr(make_dumps, name)(str(directory))
            text = directory.joinpath("dump.json").read_text()
            if name != "truncated":
                text = json.dumps(json.loads(text))
            seeds[name] = text.replace(folder, "/d").encode()
            if name == "sound":
                seeds["stack"] = directory.joinpath("stack.json").read_bytes()
                seeds["construct"] = directory.joinpath("construct.json").read_bytes()
    seeds["stack_grouped"] = json.dumps(
        {"0": [["Torch.add.0.forward", "Torch.mul.0.forward"], ["File a.py, line 1, in f, \n x"]],
         "1": [[], []]}).encode()
    deep: object = {"type": "int", "value": 1}
    for level in range(12):
        deep = [deep] if level % 2 else {"k": deep}
    values = [deep, None, [], {}, {"type": "slice", "value": [None, 2, None]},
              {"type": "ellipsis", "value": "..."}, {"type": "torch.Size", "value": [1, 2]},
              {"type": "torch.ProcessGroup", "group_ranks": [0, 1]}, {"type": "str", "value": "=1"},
              {"type": "complex", "value": "1j"}, {"type": "torch.Tensor", "dtype": "torch.int64",
               "shape": [2], "Max": 2**63 - 1, "Min": -2**63, "Mean": float("nan"),
               "Norm": float("-inf"), "requires_grad": False, "data_name": "a.0.pt"}]
    seeds["zoo"] = json.dumps({"task": "tensor", "level": "L1", "dump_data_dir": "/d", "data": {
        "Torch.f.0.forward": {"input_args": values, "input_kwargs": {"k": values[-1]},
                              "output": []},
        "Module.a.A.parameters_grad": {"weight": [values[-1]]}}}).encode()
    seeds["numbers"] = b'{"task":"statistics","data":{"a.0.forward":{"input_args":[' + b",".join(
        b'{"type":"float","value":' + number + b"}" for number in (
            b"-0", b"1e400", b"5e-324", b"NaN", b"-Infinity", b"123456789012345678901234567890",
            b"0.1", b"1.7976931348623157e308")) + b"]}}}"
    return seeds


def compare() -> Seeds:
    """Single dumps, and pairs that differ in a value, a call, a name, a digest."""
    seeds: Seeds = {}
    pairs = [("wrong_scale", "sound"), ("missing_call", "extra_call"), ("other_names", "sound"),
             ("odd_target", "odd_golden"), ("wrong_scale_md5", "sound_md5"),
             ("mindspore", "sound"), ("truncated", "sound")]
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs:
            for name in pair:
                if not Path(folder, name).exists():
                    getattr(make_dumps, name)(str(Path(folder, name)))
            texts = [Path(folder, name, "dump.json").read_text().replace("\n", "").replace("  ", "")
                     for name in pair]
            seeds["_".join(pair)] = "\0".join(texts).encode()
    return seeds | {name: text for name, text in dump_json().items() if b'"data"' in text}


def npy_file(header: str, data: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    size = 2 if version == (1, 0) else 4
    header += " " * (-(len(header) + 1 + 8 + size) % 64) + "\n"
    length = len(header).to_bytes(size, "little")
    return b"\x93NUMPY" + bytes(version) + length + header.encode("utf-8") + data


def npy() -> Seeds:
    form = "{{'descr': {!r}, 'fortran_order': {}, 'shape': {}, }}"
    return {
        "float32": npy_file(form.format("<f4", False, (2, 3)), bytes(24)),
        "big": npy_file(form.format(">i8", True, (2,)), bytes(16)),
        "scalar": npy_file(form.format("|b1", False, ()), b"\1"),
        "empty": npy_file(form.format("<f2", False, (0, 5)), b"", (2, 0)),
        "records": npy_file("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, "
                            "'shape': (1,), }", bytes(8), (3, 0)),
        "huge": npy_file(form.format("<c16", False, (2**40, 2**40)), b""),
        "negative": npy_file(form.format("<u1", False, (-1,)), b"\0"),
    }


def safetensors_file(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors() -> Seeds:
    def one(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, object]:
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    return {
        "plain": safetensors_file({"__metadata__": {"format": "pt"}, "a": one("F32", [2], 0, 8),
                                   "b": one("BF16", [1, 2], 8, 12)}, bytes(12)),
        "overlap": safetensors_file({"a": one("F32", [2], 0, 8), "b": one("I8", [4], 4, 8)},
                                    bytes(8)),
        "outside": safetensors_file({"a": one("F64", [2], 0, 16)}, bytes(8)),
        "empty": safetensors_file({}, b""),
        "wrapped": safetensors_file({"a": one("U8", [2**62, 4], 0, 0)}, b""),
    }


def mindspore_ckpt() -> Seeds:
    def value(tag: bytes, sizes: list[int], kind: bytes, content: bytes) -> bytes:
        tensor = b"".join(b"\x08" + bytes([size]) for size in sizes)
        tensor += b"\x12" + bytes([len(kind)]) + kind + b"\x1a" + bytes([len(content)]) + content
        inside = b"\x0a" + bytes([len(tag)]) + tag + b"\x12" + bytes([len(tensor)]) + tensor
        return b"\x0a" + bytes([len(inside)]) + inside

    plain = value(b"w", [2, 1], b"Float32", bytes(8)) + value(b"n", [0], b"Int64", bytes(8))
    checked = b"crc_num" + zlib.crc32(plain).to_bytes(10, "big")
    return {"plain": plain, "checked": plain + checked,
            "parts": value(b"w", [4], b"Float16", bytes(4)) * 2,
            "text": value(b"t", [1], b"str", "ok".encode("utf-32-le")),
            "map": b"\x0a\x05\x0a\x01m\x1a\x00", "unknown": value(b"q", [4], b"QInt4x2", b"ab")}


def torch_pt() -> Seeds:
    """Archives as torch.save lays them out; files of PyTorch itself lie in tests/data/torch_pt."""
    seeds: Seeds = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.pt")
        for name, values, shape in (("vector", [1.0, 2.0], [2]), ("scalar", [0.5], []),
                                    ("empty", [], [0, 3])):
            make_dumps.write_pt(str(path), values, shape)
            seeds[name] = path.read_bytes()
        seeds["cut"] = seeds["vector"][:-100]
        make_dumps.write_archive(str(path), make_dumps.pickled({"a": [1, (2.5, "t")]}), b"")
        seeds["dictionary"] = path.read_bytes()
        code = make_dumps._Global("os", "system", ("true",))
        make_dumps.write_archive(str(path), make_dumps.pickled(code), b"")
        seeds["code"] = path.read_bytes()
    return seeds


SHEET = ('<worksheet><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>NPU Name</t></is></c>'
         '<c r="B1" t="s"><v>0</v></c></row>'
         '<row r="3"><c r="A3" t="str"><f>A1</f><v>x&amp;y</v></c>'
         '<c r="AB3"><v>1.5e-3</v></c><c t="b"><v>1</v></c><c/></row></sheetData></worksheet>')
SHARED = '<sst count="2"><si><t>Cosine</t></si><si><r><t>a</t></r><r><t>&#x41;</t></r></si></sst>'


def xlsx() -> Seeds:
    seeds = {
        "sheet": f"x{SHEET}\0{SHARED}".encode(),
        "no_texts": f"x{SHEET}".encode(),
        "far_cell": b'x<worksheet><sheetData><row><c r="XFD1"><v>1</v></c></row></sheetData>',
        "cut": f"x{SHEET[:200]}".encode(),
        "prefixed": b"x" + re.sub("<(/?)", "<\\1x:", SHEET).replace(
            "<x:worksheet", '<x:worksheet xmlns:x="http://schemas.openxmlformats.org/'
            'spreadsheetml/2006/main"').encode(),
    }
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        with tempfile.TemporaryFile() as file:
            with zipfile.ZipFile(file, "w", method) as archive:
                for member, text in (("xl/worksheets/sheet1.xml", SHEET),
                                     ("xl/sharedStrings.xml", SHARED)):
                    info = zipfile.ZipInfo(member)
                    info.compress_type = method
                    archive.writestr(info, text)
            file.seek(0)
            seeds[name] = file.read()
    return seeds


def mappings() -> Seeds:
    texts = {
        "data": "Cell.r.ReLU.forward.0.input.0: Module.a.ReLU.forward.0.input.0\nx.y: N/A\n",
        "api": "- ms_api: Functional.conv2d\n  pt_api: Functional.conv2d\n  ms_args: [0, 1, 2]\n"
               "  pt_args: [0, 2, 1]\n  ms_output: [0]\n  pt_output: [0]\n"
               "  ms_parameters: [weight]\n  pt_parameters: [weight]\n",
        "api_bare": "ms_api: Mint.add\npt_api: Torch.add\nms_outputs: [0]\npt_outputs: [1]\n",
        "cell": "fc2.Dense: fc2.Linear\nRowParallelLinear: TERowParallelLinear\n",
        "layer": "TopLayer:\n  network_with_loss: module\nMy:\n  encoder.blocks: decoder.layers\n",
        "anchors": "a: &x {b: c}\nd: *x\n<<: *x\n",
        "tags": "!!binary a: !!str \"\\x41\\u2028\"\n? [k]\n: |\n  text\n  more\n---\nb: c\n",
        "odd": "'it''s': \"q\\\"\\n\"\n~: null\n- : 1\n",
        "not_yaml": "a: [b\nc: {\n",
    }
    return {name: text.encode() for name, text in texts.items()}


def check_rules() -> Seeds:
    texts = {
        "rules": "rules:\n  - name: '*'\n    metric: verdict\n    limit: within noise\n"
                 "  - {name: 'Torch.a?d.*', metric: cosine, limit: 0.999}\n",
        "waivers": "rules: [{name: x, metric: error, limit: 1e-3}]\nwaivers:\n"
                   "  - {name: x, reason: known, expires: 2027-01-31}\n"
                   "  - {name: y, metric: max_ulp, reason: \"r\"}\n",
        "merge": "api:\n  - Distributed.all_reduce\n  - Torch.add.0.forward\n"
                 "compare_index:\n  - Max diff\n",
        "merge_default": "api: [Distributed]\ncompare_index: null\n",
        "wrong": "rules: {}\nwaivers: 3\napi: text\n",
        "limits": "rules: [{name: a, metric: error, limit: nan}, {name: b, metric: no, limit: 1}]",
    }
    return {name: text.encode() for name, text in texts.items()}


def csv() -> Seeds:
    return {
        "table": b"NPU Name,Result\nTorch.add.0,pass\n",
        "quotes": b'\xef\xbb\xbf"a ""b"" c","x,\ny"\r\n,,\r\n\r\n=1+1; -2,-1.5,+inf\rz\n',
        "open_quote": b'a,"b',
        "after_quote": b'"a"b\n',
        "wide": "\uff1d1,a;\uff20b\n".encode(),
    }


def debug_mode_log() -> Seeds:
    """The first byte chooses the form: 0 text, 1 JSON, 2 hashes, 3 torchtitan."""
    data = ROOT / "tests" / "data" / "debug_mode"

    def start(name: str, lines: int) -> bytes:
        return b"".join((data / name).read_bytes().splitlines(keepends=True)[:lines])

    return {
        "text": b"\0" + start("sound.log", 12), "kernels": b"\0" + start("kernels.log", 14),
        "functions": b"\0" + start("functions.log", 20),
        "dtensors": b"\0" + start("dtensors.log", 9),
        "json": b"\1" + (data / "kernels.json").read_bytes(),
        "hashes": b"\2" + start("sound_hashes.txt", 16).replace(b"ops: 154", b"ops: 2"),
        "torchtitan": b"\3" + start("rank_0_activations.log", 13).replace(b"ons: 62", b"ons: 1"),
    }


def journal() -> Seeds:
    """A header record, an entry and a loss, each with the checksum of its kind and payload."""
    def crc32c(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF

    def record(kind: int, payload: bytes) -> bytes:
        body = bytes([kind]) + payload
        return struct.pack("<II", len(payload), crc32c(body)) + body

    def text(value: str) -> bytes:
        return struct.pack("<I", len(value)) + value.encode()

    stack = record(3, struct.pack("<II", 1, 2) + text("File a.py, line 1") + text("b"))
    loss = record(4, text("calls_dropped") + struct.pack("<Q", 2) + text("disk full"))
    remove, seal = record(5, text("Torch.add.0.forward")), record(6, b"")
    return {
        "records": b"PLJRNL1\n" + stack + loss + remove + seal,
        "cut": b"PLJRNL1\n" + stack + loss[:-3],
        "damaged": b"PLJRNL1\n" + stack[:-1] + b"\xff" + loss,
        "empty": b"PLJRNL1\n",
    }


def precheck_plan() -> Seeds:
    """dump.json of calls whose arguments are of every kind, with ranges of every kind."""
    def tensor(dtype: str, shape: list[int], low: object, high: object, **more: object) -> object:
        return {"type": "torch.Tensor", "dtype": f"torch.{dtype}", "shape": shape, "Max": high,
                "Min": low, "Mean": 0, "Norm": 0, "requires_grad": True, **more}

    def dump(data: dict[str, object], where: str | None = None) -> bytes:
        return json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch",
                           "dump_data_dir": where, "data": data}).encode()

    def call(*args: object, **kwargs: object) -> object:
        return {"input_args": list(args), "input_kwargs": kwargs,
                "output": [tensor("float16", [2], 0, 1)]}

    nan, inf = float("nan"), float("inf")
    dtypes = ("bool", "uint8", "int8", "int64", "uint64", "float16", "bfloat16", "float32",
              "float64", "float8_e5m2", "complex64")
    ranges = ((0, 1), (nan, nan), (-inf, inf), (-3e38, 3e38), (None, 1), (True, False))
    zoo = [tensor(dtype, [3, 2], low, high) for dtype in dtypes for low, high in ranges]
    scalars = [{"type": kind, "value": value} for kind, value in (
        ("int", 3), ("float", nan), ("torch.Size", [2]), ("slice", [1, None, 2]),
        ("ellipsis", "..."), ("torch.dtype", "torch.half"), ("torch.device", "cpu"),
        ("numpy.float16", 1.5), ("function", None))]
    index = tensor("int64", [4], -100, 1e9)
    table = tensor("float32", [5, 7], -1, 1)
    return {
        "kinds": dump({"Torch.cat.0.forward": call(zoo, axis=1),
                       "Torch.add.0.forward": call(*scalars, [None, [True]], k={"x": "y"}),
                       "Torch.add.0.backward": {"input": [table, None], "output": []},
                       "Torch.huge.0.forward": call(tensor("float32", [2**40, 2**40], 0, 1))}),
        "ranges": dump({f"Torch.abs.{i}.forward": call(value) for i, value in enumerate(zoo)}),
        "indices": dump({
            "Functional.embedding.0.forward": call(index, table),
            "Tensor.scatter_.0.forward": call(table, 1, tensor("int64", [5, 7], 0, 6), 2.0),
            "Functional.cross_entropy.0.forward": call(table, tensor("int32", [5], -100, 6)),
            "Torch.take_along_dim.0.forward": call(table, index, None),
            "Functional.one_hot.0.forward": call(index, 6),
            "NPU.npu_fusion_attention.0.forward": call(
                table, atten_mask=table, sparse_mode={"type": "int", "value": 0},
                cu_seqlens_q=tensor("int32", [9], 0, 99)),
            "Functional.conv2d.0.forward": call(table, table)}),
        "recorded": dump({"Torch.abs.0.forward": call(
            tensor("float32", [2], 0, 1, data_name="a.pt"))}, "/d"),
        "others": dump({"Module.a.A.forward.0": call(), "Distributed.all_reduce.0.forward": call(),
                        "VF.lstm.0.forward": call(), "Torch.randn.0.forward": call()}),
        "bad_name": dump({"Foo.bar.0.sideways": call()}),
    }


def noise(seed: int, sizes: tuple[int, ...]) -> Seeds:
    generator = random.Random(seed)
    return {f"noise_{size}": bytes(generator.getrandbits(8) for _ in range(size))
            for size in sizes}


def kernels() -> Seeds:
    """Two dtypes, a shape and elements: zeros, NaN, infinities, subnormal numbers, noise."""
    single = struct.pack("<8f", 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45,
                         3.4e38, -1.0)
    seeds = {f"pair_{kind}": bytes([kind, kind, 3]) + single * 4 for kind in range(0, 20, 3)}
    return seeds | noise(5, (67, 300))


def packed_value() -> Seeds:
    return {"null": b"\0", "zeros": bytes(16)} | noise(6, (16, 64))


def online_frame() -> Seeds:
    """Records of the online pre-check: an entry, and a tensor at the next multiple of 64."""
    def record(packed: bytes, *tensors: tuple[bytes, int, tuple[int, ...], bytes]) -> bytes:
        table, elements = b"", b""
        fixed = 20 + sum(len(name) + 8 * len(shape) for name, _, shape, _ in tensors)
        start = -(-(8 + len(packed) + fixed * len(tensors)) // 64) * 64
        for name, dtype, shape, data in tensors:
            elements += bytes(-len(elements) % 64)
            table += struct.pack("<H", len(name)) + name + bytes([dtype, len(shape)])
            table += struct.pack(f"<{len(shape)}q", *shape)
            table += struct.pack("<2Q", start + len(elements), len(data))
            elements += data
        head = struct.pack("<2I", len(packed), len(tensors)) + packed + table
        return head + bytes(start - len(head)) + elements

    single = (b"a.pt", 11, (2, 2), bytes(16))
    return {"empty": record(b""), "one": record(b"entry", single),
            "two": record(b"entry", single, (b"b.pt", 1, (3,), b"abc"))} | noise(8, (64, 200))


def atb_bin() -> Seeds:
    """Tensor files of ATB: float32, bfloat16 (27), one value, none, of an unknown type."""
    seeds: Seeds = {}
    for name, code, dims, size in (("f4", 0, "2,3", 24), ("bf16", 27, "2,2", 8), ("i8", 2, "", 1),
                                   ("empty", 0, "0", 0), ("unknown", 99, "2", 8)):
        lines = (("$Version", "1.0"), ("$Object.Count", 1), ("$Object.Length", size),
                 ("format", 2), ("dtype", code), ("dims", dims), ("$Object.data", f"0,{size}"),
                 ("$End", 1))
        seeds[name] = "".join(f"{key}={value}\n" for key, value in lines).encode() + bytes(size)
    return seeds


def acl_dump() -> Seeds:
    """Device dumps of each container, cut; an overflow record; an operator in threads; a name."""
    sound, field = make_dumps.device_dump_bytes(), make_dumps.field

    def file(message: bytes, data: bytes) -> bytes:
        return struct.pack("<Q", len(message)) + message + data

    inline = field(1, 33) + field(3, field(1, bytes([4]))) + field(4, b"\x08\x6f\xef\x01")
    given = struct.pack("<3i3Q3IQ", 2, 2, 0, 0, 0, 2, 16, 0, 8, 2)
    nano = struct.pack("<5I", 0x5A5A5A5A, 1, 4, len(given) + 4, 1) + given
    record = struct.pack("<6I", 0x5A5A5A5A, 1, 1, 0, 0, 112) + bytes(112)
    threads = b'{"threadMode":true,"output_tensor_slice":[[[{"lower":0,"higher":1}]]]}'
    recorded = field(3, b"\x30\x88\x01") + field(7, field(2, threads))
    types = b"".join(field(3, field(1, code) + field(6, 1)) for code in range(28, 37))
    return {"sound": sound, "cut": sound[:-20], "version_1": field(1, b"1.0") + field(4, inline),
            "nano": file(nano, b"ab"), "record": file(recorded, record),
            "types": file(field(1, b"2.0") + types, bytes(range(120, 129))),
            "name": b"MatMul.a.1.2.1700000000000000.4.5.6.0"}


def device_dump() -> Seeds:
    """The first byte chooses: mapping.csv (m), the attribute of a cut operator's parts (s), chunks
    of a file (c), overflow records (r)."""
    rows = [[[{"lower": 2 * i, "higher": 2 * i + 2}, {"lower": 0, "higher": 3}]] for i in range(3)]
    facts = {"threadMode": True, "slice_instance_num": 3, "outputCutList": [[3, 1]],
             "input_tensor_slice": [], "output_tensor_slice": rows}
    seeds = {"slices": facts, "slices_uncut": facts | {"outputCutList": []},
             "slices_reversed": facts | {"output_tensor_slice": rows[::-1]},
             "slices_by_hand": facts | {"threadMode": 0, "output_tensor_slice": []},
             "slices_overlap": facts | {"output_tensor_slice": rows[:1] * 3}}
    field = make_dumps.field
    record = struct.pack("<6I", 0x5A5A5A5A, 1, 1, 0, 0, 112) + bytes(104) + b"\x01" + bytes(7)
    header = field(1, b"2.0") + field(3, b"\x30" + b"\x88\x01") * 2
    return {name: b"s" + json.dumps(one).encode() for name, one in seeds.items()} | {
        "mapping": b"m\xef\xbb\xbf1,Add.a,b.1.2.3\r\n2.npy,c\n\n,\n3\n",
        "mapping_quoted": b'm"1","a""b"\r\n2,"a\r\nb"\n3,"x" y\n4,"never\n',
        "chunks": b"c" + bytes([0, 0, 20, 1, 0, 255, 0, 20, 255, 2, 10, 20, 7, 0, 255]),
        "chunks_appended": b"c" + bytes([4, 0, 20, 4, 0, 20, 6, 20, 255, 10, 0, 255]),
        "records": b"r" + struct.pack("<Q", len(header)) + header + record + record[:-9]}


def graph_dump() -> Seeds:
    """The first byte chooses: table of MindSpore (0), of ATB (1), name of a kernel's file (2),
    compiled graph (3), dump configuration (4), execution order (5), text of a graph (6)."""
    mindspore = ("Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
                 "Max Value,Min Value,Avg Value,L2Norm Value\n"
                 'MatMul,Default_MatMul-op1,0,0,1,output,0,24,float32,"(2,3)",1.5,-2,0.1,3,\n'
                 'Abs,Default_Abs-op2,1,0,2,input,0,4,int32,"()",nan,inf,-inf,1e-39,\n')
    atb = ("Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Tensor Index,"
           "Data Type,Format,Shape,Max,Min,Mean,Norm,Tensor Path\n"
           'npu0_1,0,Decoder,Linear,0_1,output,0,bf16,nd,"2,3",1,-1,0.5,2,a.bin\n')
    name = "MatMul.Default_MatMul-op1.0.0.1700000000000000.output.0.DefaultFormat.Float32.npy"
    blank = atb.replace("\n", "\n\n", 1)
    older = mindspore.replace("L2Norm Value", "Count,NaN Count").replace(",3,\n", ",null,-nan\n")
    settings = json.dumps({
        "common_dump_settings": {
            "dump_mode": 1, "path": "/d", "net_name": "Net", "iteration": "0|5-8",
            "input_output": 0, "kernels": ["relu", "name-regex(D.+)"],
            "support_device": [0], "op_debug_mode": 3, "saved_data": "full",
            "statistic_category": ["max"], "overflow_number": 2},
        "e2e_dump_settings": {"enable": True, "trans_flag": True, "sample_num": 3}})
    node = b"\x0a\x03\x0a\x01x\x12\x018\x1a\x03Add\x42\x05D/A-o\x4a\x04# In"
    graph = b"\x0a" + bytes([len(node)]) + node + b"\x12\x02kg"
    order = "NodeExecutionOrder-FullNameWithScope\nDefault/MatMul-op1\r\n"
    text = ("# IR entry: @f\n\nsubgraph @f(%para1_x) {\n"
            "  %0(equiv_x) = PrimFunc_Add(%para1_x, Tensor(value=\n[[ 0.0]]))"
            ' cnode_primal_attrs: {unique_id: "7"}\n      : (<Tensor>) -> (<Tensor>)\n'
            "      # Fullname with scope: (Default/net/Add-op1)\n      # In file a.py:1/x/\n"
            '  %1(CNode_2) = Neg(%0) cnode_primal_attrs: {forward_unique_id: "7"}\n'
            "      : full_name_with_scope: (Gradients/Default/Neg-op2)\n"
            "      # In file a.py(2)/    y/\n  Return(%1)\n}\n# Order:\n")
    return {"text": b"\6" + text.encode(),
            "mindspore_older": b"\0" + older.encode(), "settings": b"\4" + settings.encode(),
            "graph": b"\3\x08\x01\x22" + bytes([len(graph)]) + graph,
            "order": b"\5" + order.encode(),
            "mindspore": b"\0" + mindspore.encode(), "atb": b"\1" + atb.encode(),
            "atb_blank_line": b"\1" + blank.encode(), "kernel": b"\2" + name.encode()}


def view_store() -> Seeds:
    """Changes of a store: section, place in it, number of bytes, bytes."""
    def change(section: int, offset: int, new: bytes) -> bytes:
        return struct.pack("<BHB", section, offset, len(new)) + new

    all_bits, far = b"\xff" * 4, b"\1\2\3\x7f"
    seeds = {f"section_{i}": change(i, 0, all_bits) + change(i, 8, far) for i in range(0, 46, 3)}
    return seeds | {"nothing": b"", "header": change(46, 16, bytes(8)), "facts": change(0, 1, b"x")}


def view_query() -> Seeds:
    texts = {
        "words": 'linear -"a \\"b\\"" Net \U0001f600',
        "choices": "level:error,warning worst:error overflow:high type:api dir:backward "
                   "side:golden flag:source is:leaf",
        "numbers": "rank:0,1 step:0 ms:-1 error>0.1 input_error<=1e-3 size>=2 depth<3 errors=0",
        "forms": "dtype:bf16,torch.float32 shape:[2,8] op:Linear",
        "faults": 'level:wrong error>nan "open',
    }
    return {name: text.encode() for name, text in texts.items()}


def vis_nodes(names: list[str], index: float | None) -> dict[str, object]:
    """Nodes below one another as a .vis has them."""
    nodes: dict[str, object] = {}
    for i, name in enumerate(names):
        value = {f"{name}.output.0": {"type": "torch.Tensor", "shape": "[2, 8]", "Max": "1.5",
                                      "dtype": "torch.float32", "MaxRelativeErr": "20.0%",
                                      "Err_message": ["error: exceeds-noise (words): relative "
                                                      "error 0.4, explained 0.014"]}}
        nodes[name] = {
            "node_type": 0, "upnode": names[i - 1] if i else "None", "subnodes": names[i + 1:i + 2],
            "matched_node_link": names[:i + 1], "micro_step_id": i % 2, "stack_info": ["File a.py"],
            "input_data": {}, "output_data": value,
            "data": {} if index is None else {"precision_index": index},
            "matched_distributed": {"communications_type": "send", "nodes_info": {
                "0": ["0.5", name]}} if i == 2 else {}}
    return nodes


def view_files() -> Seeds:
    """.vis: a comparison, one run, in a circle, cut; .vis.db: both sides with facts."""
    names = ["DefaultModel", "Module.net.Net.forward.0", "Distributed.send.0.forward"]
    colors = {"#FFFCF3": {"value": [0, 0.5]}, "#FF704D": {"value": [0.5, 1]}}
    circle = vis_nodes(names, None)
    circle[names[1]]["upnode"] = names[2]  # type: ignore[index]
    one = json.dumps({"root": names[0], "node": vis_nodes(names, None)}).encode()
    pair = {side: {"root": names[0], "dump_data_dir": "/d", "node": vis_nodes(names, index)}
            for side, index in (("NPU", 1.0), ("Bench", None))}
    more = {"Colors": colors, "MicroSteps": 2, "task": "summary", "OverflowCheck": True,
            "mp_meta": {"tool": "plumbline", "answer": "no wrong call"}}
    return {"one": one, "cut": one[:300], "circle": json.dumps({"node": circle}).encode(),
            "pair": json.dumps(pair | more).encode(), "database": vis_database(names, colors)}


def vis_database(names: list[str], colors: dict[str, object]) -> bytes:
    columns = ("node_order", "node_name", "node_type", "up_node", "sub_nodes", "precision_index",
               "micro_step_id", "matched_node_link", "input_data", "output_data", "data_source",
               "step", "rank")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.vis.db")
        database = sqlite3.connect(path)
        database.execute("PRAGMA page_size = 512")
        database.execute(f"CREATE TABLE tb_nodes ({', '.join(columns)})")
        database.execute("CREATE TABLE tb_config (graph_type, task, micro_steps, node_colors)")
        database.execute("CREATE TABLE mp_meta (key, value)")
        database.execute("INSERT INTO tb_config VALUES ('compare', 'summary', 1, ?)",
                         [json.dumps(colors)])
        database.execute("INSERT INTO mp_meta VALUES ('tool', 'plumbline')")
        for source in ("NPU", "Bench"):
            for i, (name, node) in enumerate(vis_nodes(names, 1.0).items()):
                row = (len(names) - i, name, 0, node["upnode"],  # type: ignore[index]
                       json.dumps(names[i + 1:i + 2]), 1.0, 0, json.dumps(names[:i + 1]), "{}",
                       json.dumps(node["output_data"]), source, 0, 0)  # type: ignore[index]
                database.execute(f"INSERT INTO tb_nodes VALUES ({', '.join('?' * 13)})", row)
        database.commit()
        database.close()
        content = path.read_bytes()
    return content[:92] + bytes(8) + content[100:]  # without the version of the library


CORPUS = {
    "acl_dump": acl_dump, "atb_bin": atb_bin, "device_dump": device_dump,
    "graph_dump": graph_dump,
    "check_rules": check_rules, "compare": compare, "csv": csv,
    "debug_mode_log": debug_mode_log, "dump_json": dump_json,
    "journal": journal, "kernels": kernels, "mappings": mappings,
    "mindspore_ckpt": mindspore_ckpt, "npy": npy, "online_frame": online_frame,
    "packed_value": packed_value, "precheck_plan": precheck_plan, "safetensors": safetensors,
    "torch_archive": torch_pt, "torch_pt": torch_pt, "view_files": view_files,
    "view_query": view_query, "view_store": view_store, "xlsx": xlsx,
}


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "fuzz" / "corpus"
    for target, make in CORPUS.items():
        shutil.rmtree(root / target, ignore_errors=True)
        (root / target).mkdir(parents=True)
        for name, content in make().items():
            (root / target / name).write_bytes(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
