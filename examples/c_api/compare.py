"""Compares two recordings through the C interface, without the Python package: any language that
calls C can do the same.

    python examples/c_api/compare.py TARGET GOLDEN [LIBRARY]

Prints the first line of the answer, the cause, and what was recorded of the first wrong call. Exits
with 1 if a call is wrong.
"""

import ctypes
import os
import sys


class Struct(ctypes.Structure):
    """Structs of c_api.h begin with their own size."""

    def __init__(self, **values):
        super().__init__(size=ctypes.sizeof(self), **values)


class Error(Struct):
    _fields_ = [("size", ctypes.c_uint64), ("code", ctypes.c_int32),
                ("message", ctypes.c_char * 1012)]


class Verdict(Struct):
    _fields_ = [("size", ctypes.c_uint64), ("exit_state", ctypes.c_int32),
                ("is_complete", ctypes.c_int32), ("answer", ctypes.c_char_p),
                ("first_wrong", ctypes.c_char_p), ("first_item", ctypes.c_char_p),
                ("what", ctypes.c_char_p), ("cause", ctypes.c_char_p),
                ("cause_text", ctypes.c_char_p), ("confidence", ctypes.c_char_p),
                ("rows", ctypes.c_uint64 * 5), ("calls", ctypes.c_uint64),
                ("unmatched", ctypes.c_uint64 * 2)]


class Number(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("text", ctypes.c_char_p)]


class CallInfo(Struct):
    _fields_ = [("size", ctypes.c_uint64), ("name", ctypes.c_char_p), ("parent", ctypes.c_char_p),
                ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("slot_count", ctypes.c_uint64)]


class Slot(Struct):
    _fields_ = [("size", ctypes.c_uint64), ("name", ctypes.c_char_p), ("role", ctypes.c_int32),
                ("is_tensor", ctypes.c_int32), ("dtype", ctypes.c_char_p),
                ("ndim", ctypes.c_uint64), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("max", Number), ("min", Number), ("mean", Number), ("norm", Number),
                ("digest", ctypes.c_char_p), ("data_name", ctypes.c_char_p)]


class Library:
    """The functions, each of which raises what it reports."""

    def __init__(self, path):
        self.native = ctypes.CDLL(path)

    def __call__(self, name, *arguments):
        error = Error()
        if getattr(self.native, name)(*arguments, ctypes.byref(error)) != 0:
            raise SystemExit(f"{name}: {error.message.decode()}")


def show_call(library, path, name):
    """What the recording at `path` has of a call."""
    run, number, call = ctypes.c_void_p(), ctypes.c_uint64(), CallInfo()
    library("plumb_run_open", os.fsencode(path), ctypes.byref(run))
    library("plumb_run_find", run, name, ctypes.byref(number))
    library("plumb_run_call", run, number, ctypes.byref(call))
    for index in range(call.slot_count):
        slot = Slot()
        library("plumb_run_slot", run, number, ctypes.c_uint64(index), ctypes.byref(slot))
        print(f"  {slot.name.decode()} {slot.dtype.decode()} {slot.shape[:slot.ndim]}"
              f" max {slot.max.real:.6g} mean {slot.mean.real:.6g}")
    library.native.plumb_run_close(run)


def main(target, golden, path="libplumbline.so.0"):
    library = Library(path)
    comparison, verdict = ctypes.c_void_p(), Verdict()
    library("plumb_compare", os.fsencode(target), os.fsencode(golden), None,
            ctypes.byref(comparison))
    library("plumb_comparison_verdict", comparison, ctypes.byref(verdict))
    print(verdict.answer.decode())
    if verdict.first_wrong:
        print(f"cause: {verdict.cause_text.decode()} ({verdict.confidence.decode()})")
        show_call(library, target, verdict.first_wrong)
    state = verdict.exit_state
    library.native.plumb_comparison_close(comparison)
    return state


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
