"""An inference program of ONNX Runtime, recorded through the C interface and held against the
PyTorch model that it was exported from.

    python examples/c_api/record_onnx_runtime.py DIRECTORY LIBRARY [EPSILON]

Needs the packages onnx and onnxruntime. Every value between the nodes becomes an output of the
program, whose nodes are told by the modules that the exporter names them after:
"/2/LayerNormalization" is module "2". EPSILON takes the place of that of the normalisation: the
answer names it.
"""

import ctypes
import io
import json
import os
import sys
from pathlib import Path

import compare
import onnx
import onnxruntime
import torch

from plumbline.pytorch import PrecisionDebugger

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import small_model

INPUT, PARAMETER, OUTPUT = 0, 1, 2  # plumb_role
FLOAT32 = (2, 32, 1)  # DLDataType


class Options(compare.Struct):
    _fields_ = (("size", ctypes.c_uint64), ("dump_path", ctypes.c_char_p),
                ("config_path", ctypes.c_char_p), ("task", ctypes.c_char_p),
                ("level", ctypes.c_char_p), ("framework", ctypes.c_char_p),
                ("rank", ctypes.c_int32), ("reserved", ctypes.c_int32))


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


def record_pytorch(model, inputs, directory):
    config = {"task": "tensor", "level": "L0", "dump_path": str(directory)}
    path = directory.with_suffix(".json")
    path.write_text(json.dumps(config))
    debugger = PrecisionDebugger(config_path=str(path))
    debugger.start(model)
    with torch.no_grad():
        model(inputs)
    debugger.stop()
    debugger.step()


def exported(model, inputs, epsilon):
    """The program, with every value between its nodes as an output."""
    file = io.BytesIO()
    torch.onnx.export(model, (inputs,), file, dynamo=False, opset_version=20)
    program = onnx.load_from_string(file.getvalue())
    known = {output.name for output in program.graph.output}
    for node in program.graph.node:
        missing = [name for name in node.output if name not in known]
        program.graph.output.extend(onnx.ValueInfoProto(name=name) for name in missing)
        if epsilon is not None and node.op_type == "LayerNormalization":
            [attribute] = [one for one in node.attribute if one.name == "epsilon"]
            attribute.f = epsilon
    return program


class Recorder:
    def __init__(self, library, directory):
        self.library = library
        self.handle = ctypes.c_void_p()
        options = Options(dump_path=os.fsencode(directory), task=b"tensor", level=b"L0", rank=-1)
        library("plumb_recorder_begin", ctypes.byref(options), ctypes.byref(self.handle))
        library("plumb_step_begin", self.handle, None)

    def tell(self, name, values):
        """One call; `values`: (role, name of a parameter or None, array)."""
        call = ctypes.c_void_p()
        self.library("plumb_call_begin", self.handle, name.encode(), None, ctypes.byref(call))
        for role, word, array in values:
            shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, *FLOAT32, shape, None, 0)
            self.library("plumb_call_add", call, role, word, ctypes.byref(tensor))
        self.library("plumb_call_end", call)

    def finish(self):
        self.library("plumb_step_end", self.handle)
        self.library.native.plumb_recorder_finish(self.handle)


def record_onnx(program, model, inputs, recorder):
    session = onnxruntime.InferenceSession(program.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    [given] = [one.name for one in session.get_inputs()]
    names = [one.name for one in session.get_outputs()]
    values = dict(zip(names, session.run(names, {given: inputs.numpy()}), strict=True))
    values[given] = inputs.numpy()
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in program.graph.initializer}
    for node in program.graph.node:
        path = node.name.split("/")[1]
        class_name = type(model.get_submodule(path)).__name__
        recorder.tell(f"Module.{path}.{class_name}",
                      [(INPUT, None, values[node.input[0]]),
                       *((OUTPUT, None, values[name]) for name in node.output),
                       *((PARAMETER, name.split(".")[-1].encode(), weights[name])
                         for name in node.input if name in weights)])


def main(directory, library_path, epsilon=None):
    directory = Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    model, inputs, _ = small_model.make()
    model.eval()
    record_pytorch(model, inputs, directory / "pytorch")
    library = compare.Library(library_path)
    recorder = Recorder(library, directory / "onnx")
    program = exported(model, inputs, None if epsilon is None else float(epsilon))
    record_onnx(program, model, inputs, recorder)
    recorder.finish()
    return compare.main(directory / "onnx" / "step0", directory / "pytorch" / "step0",
                        library_path)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
