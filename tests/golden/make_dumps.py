"""Builders of the small dumps that golden cases use. Standard library only; seeds are fixed.

Statistics are computed here from the values, so that they are what a recorder would have written.
`.pt` files are made with the pickle module and a stored zip, as torch.save lays them out.
"""

import dataclasses
import io
import json
import math
import os
import pickle
import random
import struct
import zipfile
import zlib

FRAME = "File /home/user/model.py, line {}, in forward, \n {}"


class _Storage:
    """Pickles as the persistent id of one float storage."""

    def __init__(self, count):
        self.count = count


class _Global:
    """Pickles as a reference to module.name, called with arguments."""

    def __init__(self, module, name, arguments):
        self.module, self.name, self.arguments = module, name, arguments


class _Pickler(pickle._Pickler):  # the Python implementation, whose save() can be extended
    def persistent_id(self, obj):
        if isinstance(obj, _Storage):
            return ("storage", _Name("torch", "FloatStorage"), "0", "cpu", obj.count)
        return None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, _Name):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, _Global):
            self.save(_Name(obj.module, obj.name))
            self.save(obj.arguments)
            self.write(pickle.REDUCE)
        else:
            super().save(obj, save_persistent_id)


class _Name:
    def __init__(self, module, name):
        self.module, self.name = module, name


def pickled(obj):
    out = io.BytesIO()
    _Pickler(out, protocol=2).dump(obj)
    return out.getvalue()


def write_pt(path, values, shape):
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    tensor = _Global("torch._utils", "_rebuild_tensor_v2",
                     (_Storage(len(values)), 0, tuple(shape), tuple(strides), False,
                      _Global("collections", "OrderedDict", ())))
    write_archive(path, pickled(tensor), struct.pack(f"<{len(values)}f", *values))


def write_archive(path, data_pkl, storage):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("data.pkl", data_pkl), ("byteorder", b"little"),
                              ("data/0", storage), ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), content)


def single(value):
    """The value rounded to float32."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Recording:
    """Collects entries and writes one rank directory."""

    def __init__(self, directory, task="statistics", digests=False):
        self.directory, self.task, self.digests = directory, task, digests
        self.data, self.stack, self.construct = {}, {}, {}
        os.makedirs(os.path.join(directory, "dump_tensor_data") if task == "tensor" else directory)

    def tensor(self, values, shape, name):
        finite = [v for v in values if not math.isnan(v)]
        bad = len(finite) < len(values)
        entry = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape)}
        if values:
            nan = float("nan")
            entry["Max"] = nan if bad else max(values)
            entry["Min"] = nan if bad else min(values)
            entry["Mean"] = nan if bad else single(math.fsum(values) / len(values))
            entry["Norm"] = nan if bad else single(math.sqrt(math.fsum(v * v for v in values)))
        else:
            entry.update({"Max": None, "Min": None, "Mean": None, "Norm": None})
        entry["requires_grad"] = False
        if self.digests:
            entry["md5"] = f"{zlib.crc32(struct.pack(f'<{len(values)}f', *values)):08x}"
        if self.task == "tensor":
            entry["data_name"] = name + ".pt"
            write_pt(os.path.join(self.directory, "dump_tensor_data", name + ".pt"), values, shape)
        return entry

    def call(self, name, inputs, outputs, parent=None, line=1):
        """inputs and outputs: lists of (values, shape), numbers, texts or None."""
        def convert(value, part, index):
            if value is None:
                return None
            if isinstance(value, tuple):
                return self.tensor(value[0], value[1], f"{name}.{part}.{index}")
            return {"type": type(value).__name__, "value": value}
        self.data[name] = {
            "input_args": [convert(v, "input", i) for i, v in enumerate(inputs)],
            "input_kwargs": {}, "is_recompute": False,
            "output": [convert(v, "output", i) for i, v in enumerate(outputs)],
        }
        self.construct[name] = parent
        self.stack[name] = [FRAME.format(line, f"call {name.split('.')[1]}")]

    def write(self):
        data_dir = os.path.join(self.directory, "dump_tensor_data")
        header = {"task": self.task, "level": "mix", "framework": "pytorch",
                  "dump_data_dir": data_dir if self.task == "tensor" else None, "data": self.data}
        for name, content in (("dump", header), ("stack", self.stack),
                              ("construct", self.construct)):
            with open(os.path.join(self.directory, name + ".json"), "w", encoding="ascii") as file:
                json.dump(content, file, indent=1)


@dataclasses.dataclass
class Knobs:
    """What can be changed about the model; every knob changes one thing."""

    task: str = "statistics"
    digests: bool = False
    eps: float = 1e-6
    scale: float = 1.0
    extra: bool = False
    missing: bool = False
    second: tuple = (2, 3)


def model(directory, **changes):
    """Two normalised layers and an activation."""
    knobs = Knobs(**changes)
    random.seed(7)
    x = [single(random.uniform(-1, 1)) for _ in range(6)]
    out = Recording(directory, knobs.task, knobs.digests)
    parent = None
    for layer in range(2):
        parent = f"Module.layers.{layer}.Norm.forward.0"
        mean = single(math.fsum(v * v for v in x) / len(x))
        use = knobs.eps if layer == 1 else 1e-6
        shifted = single(mean + use)
        out.call(f"Torch.add.{layer}.forward", [([mean], [1]), use], [([shifted], [1])], parent, 11)
        gain = knobs.scale if layer == 1 else 1.0
        y = [single(gain * v / math.sqrt(shifted)) for v in x]
        out.call(f"Torch.mul.{layer}.forward", [(x, [2, 3]), ([shifted], [1])], [(y, [2, 3])],
                 parent, 12)
        out.call(parent, [(x, [2, 3])], [(y, [2, 3])], None, 20)
        x = y
    if knobs.extra:
        out.call("Torch.abs.0.forward", [(x, [2, 3])], [([abs(v) for v in x], [2, 3])])
    if not knobs.missing:
        out.call("Functional.relu.0.forward", [(x, [2, 3])],
                 [([max(v, 0.0) for v in x], list(knobs.second))])
    out.write()
    return out


def sound(directory):
    model(directory)


def wrong_eps(directory):
    model(directory, eps=1e-2)


def wrong_scale(directory):
    model(directory, scale=1.5)


def other_shape(directory):
    model(directory, second=(3, 2))


def extra_call(directory):
    model(directory, extra=True)


def missing_call(directory):
    model(directory, missing=True)


def sound_md5(directory):
    model(directory, digests=True)


def wrong_scale_md5(directory):
    model(directory, digests=True, scale=1.5)


def sound_tensor(directory):
    model(directory, task="tensor")


def wrong_scale_tensor(directory):
    model(directory, task="tensor", scale=1.5)


def two_thirds(directory):
    """A matrix that undoes the scale of 1.5."""
    os.makedirs(directory)
    write_pt(os.path.join(directory, "back.pt"),
             [single(2 / 3) * (i == j) for i in range(3) for j in range(3)], [3, 3])


def truncated(directory):
    model(directory)
    path = os.path.join(directory, "dump.json")
    with open(path, "rb+") as file:
        text = file.read()
        file.truncate(text.index(b"Torch.mul.1.forward") + 60)


def not_json(directory):
    os.makedirs(directory)
    with open(os.path.join(directory, "dump.json"), "w", encoding="ascii") as file:
        file.write("this is no dump\n")


def structure_task(directory):
    model(directory)
    path = os.path.join(directory, "dump.json")
    with open(path, encoding="ascii") as file:
        text = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(text.replace('"statistics"', '"structure"'))


def broken_files(directory):
    """A truncated archive, a pickle with code, a dictionary, and a missing file."""
    model(directory, task="tensor")
    files = os.path.join(directory, "dump_tensor_data")
    first = os.path.join(files, "Torch.mul.0.forward.output.0.pt")
    with open(first, "rb+") as file:
        file.truncate(os.path.getsize(first) // 2)
    marker = os.path.join(directory, "executed")
    code = pickled(_Global("os", "system", (f"touch {marker}",)))
    write_archive(os.path.join(files, "Torch.mul.1.forward.output.0.pt"), code, b"")
    write_archive(os.path.join(files, "Torch.add.1.forward.output.0.pt"), pickled({"a": 1}), b"")
    os.remove(os.path.join(files, "Functional.relu.0.forward.output.0.pt"))


def odd_values(directory, target=False):
    """NaN, zeros, empty, infinite and negative values, scalars and formula-like texts."""
    inf, nan = float("inf"), float("nan")
    out = Recording(directory)
    x = ([1.0, 2.0], [2])
    out.call("Torch.nan.0.forward", [x], [([nan if target else 1.0, 1.0], [2])])
    out.call("Torch.zero.0.forward", [x], [([0.0, 0.0] if target else [1.0, 2.0], [2])])
    out.call("Torch.zeros.0.forward", [x], [([0.0, 0.0], [2])])
    out.call("Torch.inf.0.forward", [x], [([inf, 1.0], [2])])
    out.call("Torch.none.0.forward", [x, None, "=1+1", True, 3], [([], [0])])
    out.call("Torch.negative.0.forward", [x], [([-5.001 if target else -5.0, -6.0], [2])])
    out.write()


def odd_target(directory):
    odd_values(directory, target=True)


def odd_golden(directory):
    odd_values(directory)


def ranks(directory, numbers=(0, 1, 2), wrong=None):
    """A step directory; `wrong` is the rank with another scale."""
    for number in numbers:
        model(os.path.join(directory, f"rank{number}"), scale=1.5 if number == wrong else 1.0)


def sound_ranks(directory):
    ranks(directory)


def wrong_rank(directory):
    ranks(directory, wrong=1)


def fewer_ranks(directory):
    ranks(directory, numbers=(0, 2))


def ranks_with_junk(directory):
    """A file in the place of a rank, a text, and a rank without dump.json."""
    ranks(directory)
    os.remove(os.path.join(directory, "rank2", "dump.json"))
    for name in ("rank3", "notes.txt"):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write("junk\n")


def sound_steps(directory):
    for step in range(2):
        ranks(os.path.join(directory, f"step{step}"))


def empty_directory(directory):
    os.makedirs(directory)


def linked_rank(directory):
    ranks(directory)
    os.symlink("rank0", os.path.join(directory, "rank3"))


def renamed(directory, rename, **changes):
    """The model with every name and text of its files passed through rename()."""
    model(directory, **changes)
    for name in ("dump", "stack", "construct"):
        path = os.path.join(directory, name + ".json")
        with open(path, encoding="ascii") as file:
            text = file.read()
        with open(path, "w", encoding="ascii") as file:
            file.write(rename(text))


def wrapped(directory):
    """The model inside DistributedDataParallel and torch.compile."""
    renamed(directory, lambda text: text.replace("Module.", "Module.module._orig_mod."))


def other_names(directory):
    """Another name for the module list, and a number too many for the second addition."""
    renamed(directory, lambda text: text.replace("Module.layers.", "Module.blocks.")
            .replace("Torch.add.1.", "Torch.add.2."))


def mindspore(directory, scale=1.0):
    """The model as MindSpore names it."""
    def rename(text):
        for torch, other in (("Module.layers", "Cell.network.layers"), (".Norm.", ".LayerNorm."),
                             ("Torch.", "Mint."), ("Functional.relu", "MintFunctional.relu"),
                             ("torch.float32", "Float32"), ("torch.Tensor", "mindspore.Tensor"),
                             ('"framework": "pytorch"', '"framework": "mindspore"')):
            text = text.replace(torch, other)
        return text
    renamed(directory, rename, scale=scale)


def mindspore_wrong_scale(directory):
    mindspore(directory, scale=1.5)


def odd_names(directory):
    """A call without forward or backward in its name."""
    renamed(directory, lambda text: text.replace("Functional.relu.0.forward", "relu_alone"))


def broken_records(directory):
    """A shape that is a text."""
    renamed(directory, lambda text: text.replace('"shape": [\n      2,\n      3\n     ]',
                                                 '"shape": "2x3"'))


def two_ranks(directory):
    for rank in range(2):
        model(os.path.join(directory, f"rank{rank}"))


def empty(root):
    os.makedirs(root)


def graph_order(root):
    """What MindSpore says about the kernels of a graph, without tensors."""
    place = os.path.join(root, "rank_0", "execution_order")
    os.makedirs(place)
    with open(os.path.join(place, "ms_execution_order_graph_0.csv"), "w", encoding="utf-8") as file:
        file.write("NodeExecutionOrder-FullNameWithScope\nDefault/fc1-Dense/MatMul-op4\n"
                   "Default/relu-ReLU/ReLU-op0\nDefault/fc2-Dense/MatMul-op5\n"
                   "Gradients/Default/fc2-Dense/BiasAddGrad-op1\n")


def field(number, value):
    """One field of a protobuf message below 128 bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def device_dump_bytes():
    """A dump file: int16 (2, 3) in ND, and float16 (1, 3, 1, 2) in NC1HWC0."""
    image = b"".join(struct.pack("<16e", *range(4 * i + 1, 4 * i + 4), *[0] * 13)
                     for i in range(2))
    given = field(1, 5) + field(2, 2) + field(3, field(1, bytes([2, 3]))) + field(5, 12)
    result = (field(1, 2) + field(2, 3) + field(3, field(1, bytes([1, 1, 1, 2, 16])))
              + field(6, 64) + field(7, field(1, bytes([1, 3, 1, 2]))))
    message = (field(1, b"2.0") + field(3, result) + field(4, given)
               + field(6, b"Default/net/Conv2D-op1"))
    return struct.pack("<Q", len(message)) + message + struct.pack("<6h", *range(6)) + image


def device_dump(path):
    """A sound dump file and one of another kind."""
    os.makedirs(path)
    name = "Conv2D.Default_net_Conv2D-op1.1.2.1700000000000001"
    with open(os.path.join(path, name), "wb") as file:
        file.write(device_dump_bytes())
    with open(os.path.join(path, "notes.txt"), "w", encoding="ascii") as file:
        file.write("no dump\n")


def overflow_records(path):
    """An old record of status 16 on the AI core; its operator was not dumped."""
    os.makedirs(path)
    record = bytearray(2048)
    struct.pack_into("<6Q", record, 256, 3, 10, 7, 0, 0x1200, 0x3400)
    struct.pack_into("<3Q", record, 1024, 0xABC, 2, 16)
    message = field(1, b"2.0") + field(3, b"\x30\x80\x10")  # size 2048
    with open(os.path.join(path, "Opdebug.Node_OpDebug.7.10.1636595794731103"), "wb") as file:
        file.write(struct.pack("<Q", len(message)) + message + bytes(record))
