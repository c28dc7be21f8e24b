"""Runs a user's own functions for plumb, which starts this text as `python -c`.

Descriptor 3 is a socket: a request is a line of JSON, a list of texts, and so is its answer. The
bytes of arrays lie in descriptor 4, those of a result in descriptor 5. All three are moved to
higher numbers, so that no file of the user's gets the number of one that a function closed.
"""
import sys

sys.path[:] = [path for path in sys.path if path]  # nothing of the working directory
sys.dont_write_bytecode = True

import enum  # noqa: E402
import fcntl  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import mmap  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import socket  # noqa: E402
import types  # noqa: E402

FIRST_OWN = 100  # of this program's descriptors
MOST_TEXT = 2000  # characters of a message or a value
PIECE = 1 << 26  # bytes that are copied and written at once
ALGORITHM = re.compile(r"^alg_([A-Za-z0-9_]+)\.pyc?$")
CONVERTER = re.compile(r"^(convert_[A-Za-z0-9_]{1,128}_to_[A-Za-z0-9_]{1,128})\.pyc?$")


class AlgorithmParameter:
    """What an algorithm is told beside the arrays: attributes."""

    def get(self):
        """All of them."""
        return self.__dict__

    get_dict = get


class ShapeType(enum.Enum):
    """Whether a tensor has more than one element."""

    Scalar = 0
    Vector = 1
    Matrix = 2
    Tensor = 3


class CompareError(Exception):
    """What scripts raise, with one of upstream's numbers."""

    MSACCUCMP_INVALID_PARAM_ERROR = 6
    MSACCUCMP_INVALID_DUMP_DATA_ERROR = 11
    MSACCUCMP_INDEX_OUT_OF_BOUNDS_ERROR = 12
    MSACCUCMP_INVALID_FORMAT_ERROR = 22
    MSACCUCMP_INVALID_SHAPE_ERROR = 23

    def __init__(self, code, message=""):
        """With the number and a text."""
        super().__init__(message or f"error {code}")
        self.code = code
        self.message = message


class ConstManager:
    """Numbers and texts that upstream's own algorithms use."""

    FLOAT_EPSILON = sys.float_info.epsilon
    MINIMUM_VALUE = 0.001
    NAN = "NaN"


def one_line(value):
    """A text without line breaks, cut where nobody would read on."""
    text = " ".join(str.split(value))  # not of a subclass
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "..."


def told(error):
    """What an exception says, whatever its own class does."""
    try:
        return str(error)
    except BaseException:
        return type(error).__name__


def moved(descriptor):
    """The same file under a number above those that new files get."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN)
    os.close(descriptor)
    return copy


class Call:
    """A call of the user's code: ends in the directory and with NumPy's settings of its start."""

    def __enter__(self):
        """Keeps them."""
        self.errors = numpy.seterr(divide="ignore", invalid="ignore")

    def __exit__(self, *_error):
        """Puts them back."""
        if os.getpid() != PROCESS:
            os._exit(0)  # a fork that a function made and forgot must not answer too
        numpy.seterr(**self.errors)
        try:
            os.chdir(HOME)
        except OSError:
            pass  # it was removed


def log(level):
    """A function of upstream's log module."""
    return lambda text: print(f"[{level}] {text}", file=sys.stderr)


def known_modules():
    """The modules that scripts written for upstream's program import from it."""
    contents = {
        "algorithm_manager": {},
        "algorithm_manager.algorithm_parameter": {"AlgorithmParameter": AlgorithmParameter},
        "cmp_utils": {},
        "cmp_utils.utils": {"format_value": "{:.6f}".format,
                            "ceiling_divide": lambda a, b: -(-a // b),
                            "least_common_multiple": lambda a, b: a * b // math.gcd(a, b)},
        "cmp_utils.utils_type": {"ShapeType": ShapeType},
        "cmp_utils.log": {f"print_{name}_log": log(level) for name, level in (
            ("info", "INFO"), ("warn", "WARNING"), ("error", "ERROR"))},
        "cmp_utils.constant": {},
        "cmp_utils.constant.compare_error": {"CompareError": CompareError},
        "cmp_utils.constant.const_manager": {"ConstManager": ConstManager},
    }
    if any(map(importlib.util.find_spec, ("algorithm_manager", "cmp_utils"))):
        return  # upstream's program itself can be imported, or the user brought these modules
    for name, members in contents.items():
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(members)
        sys.modules[name] = module
        package, _, last = name.rpartition(".")
        if package:
            setattr(sys.modules[package], last, module)


def check_arguments(name, function, count):
    """ValueError: it cannot be called with that many."""
    signature = inspect.signature(function)
    try:
        signature.bind(*range(count))
    except TypeError as error:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        takes = sum(one.kind in kinds for one in signature.parameters.values())
        raise ValueError(f"'{name}' takes {takes} arguments (expected {count})") from error


def load(path, name, function, count):
    """The function of a file; ValueError says why there is none."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with Call():
            spec.loader.exec_module(module)
    except BaseException as error:
        raise ValueError(f"cannot be loaded: {type(error).__name__}: {told(error)}") from error
    found = getattr(module, function, None)
    if found is None:
        raise ValueError(f"has no function '{function}'")
    if not callable(found):
        raise ValueError(f"'{function}' is no function")
    check_arguments(function, found, count)
    return found


def load_all(directory, folder, pattern, function):
    """The functions of a folder by name; of files that hold none what is wrong with them.

    The texts begin with "b" for a broken one, with "w" for one whose name is another one.
    """
    functions, notes = {}, []
    path = os.path.join(directory, folder)
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    for name in names:
        file = os.path.join(path, name)
        match = pattern.match(name)
        if not os.path.isfile(file) or name == "__init__.py":
            continue
        if not match:
            notes.append(f"w{file}: left out, the name is not of the form {pattern.pattern}")
            continue
        key = match.group(1)
        count = 4 if "_to_FRACTAL_Z" in key else 3
        try:
            functions[key] = load(file, f"{folder}.{name.split('.')[0]}", function, count)
        except ValueError as error:
            notes.append(f"b{file}: {error}")
    return functions, notes


def stored(dtype, count, offset):
    """An array of the caller, as a copy that may be changed."""
    if not count:
        return numpy.empty(0, dtype)
    memory = mmap.mmap(ARRAYS, 0, access=mmap.ACCESS_COPY)
    return numpy.frombuffer(memory, dtype, count, offset)


def as_number(array):
    """float32 where it holds every value of the type, else float64; complex as they are."""
    if array.dtype.kind == "c":
        return array
    exact = numpy.can_cast(array.dtype, numpy.float32, "safe") or array.dtype == numpy.bool_
    return array.astype(numpy.float32 if exact else numpy.float64)


def compare(request):
    """The two texts of one algorithm."""
    name, mine, golden, offset, count, my_file, golden_file, is_scalar = request
    try:
        x, y = stored(mine, int(count), 0), stored(golden, int(count), int(offset))
        parameters = AlgorithmParameter()
        parameters.__dict__ = {**PARAMETERS.get(name, {}), "my_output_dump_file": my_file,
                               "ground_truth_dump_file": golden_file,
                               "shape_type": ShapeType.Scalar if is_scalar else ShapeType.Tensor}
        x, y = as_number(x), as_number(y)
        if x.dtype != y.dtype:
            wider = numpy.promote_types(x.dtype, y.dtype)
            x, y = x.astype(wider), y.astype(wider)
        with Call():
            texts = ALGORITHMS[name](x, y, parameters)
        if not isinstance(texts, (tuple, list)) or len(texts) != 2:
            raise TypeError(f"The return value is a {type(texts).__name__} (expected two texts).")
        for text in texts:
            if not isinstance(text, str):
                raise TypeError(f"The return value has a {type(text).__name__} (not string).")
        return list(map(one_line, texts))
    except BaseException as error:
        return ["NaN", one_line(f"Failed to execute 'compare' in '{name}'. {told(error)}")]


def elements_of(result):
    """The array that a converter gave, without what subclasses add; TypeError: it is none."""
    kind = type(result)
    if not issubclass(kind, numpy.ndarray):
        raise TypeError(f"The return value is not numpy.ndarray but {kind.__name__}.")
    if kind is numpy.ma.MaskedArray:
        masked = numpy.ma.count_masked(result)
        if masked:
            raise TypeError(f"The return value has {masked} masked elements, which have no value. "
                            "Give them one, as with filled().")
    elif kind not in (numpy.ndarray, numpy.memmap, numpy.matrix):
        raise TypeError(f"The return value is of type {kind.__name__}, a subclass of numpy.ndarray "
                        "of which the elements may be no plain values. Return numpy.asarray() of "
                        "it.")
    result = numpy.asarray(result)
    if result.dtype.kind not in "biufc":
        raise TypeError(f"The return value has elements of type {result.dtype}.")
    return result


def write_result(array):
    """The elements, row-major, in pieces: a view of little memory may have very many."""
    os.ftruncate(RESULT, 0)
    os.ftruncate(RESULT, array.nbytes)
    pieces = numpy.nditer(array, ["external_loop", "buffered", "zerosize_ok"], ["readonly"],
                          [array.dtype.newbyteorder("=")], "C", "equiv",
                          buffersize=PIECE // array.itemsize)
    at = 0
    for piece in pieces:
        rest = memoryview(numpy.ascontiguousarray(piece).view(numpy.uint8))
        while rest:
            written = os.pwrite(RESULT, rest, at)
            rest, at = rest[written:], at + written


def convert(request):
    """Runs a converter; its result lies in RESULT."""
    name, dtype, count, shape_from, shape_to, group = request
    sizes = [[int(size) for size in text.split(",") if size] for text in (shape_from, shape_to)]
    extra = [int(group)] if "_to_FRACTAL_Z" in name else []
    try:
        array = stored(dtype, int(count), 0)
        with Call():
            result = CONVERTERS[name](*sizes, array, *extra)
        result = elements_of(result)
        write_result(result)
    except BaseException as error:
        return ["error", one_line(f"Failed to execute 'convert' in '{name}'. {told(error)}")]
    return ["ok", result.dtype.newbyteorder("=").name, ",".join(map(str, result.shape))]


def main():
    """Serves requests until the caller closes the socket."""
    lines = CHANNEL.makefile("r", encoding="utf-8", newline="\n")

    def answer(texts):
        CHANNEL.sendall(json.dumps(texts).encode() + b"\n")

    answer(["ready", *map("a".__add__, ALGORITHMS), *map("c".__add__, CONVERTERS),
            *map(one_line, NOTES)])
    for line in lines:
        verb, *request = json.loads(line)
        answer({"compare": compare, "convert": convert}[verb](request))


def start_failed(error):
    """Tells the caller why nothing can be run."""
    CHANNEL.sendall(json.dumps(["error", one_line(error)]).encode() + b"\n")
    os._exit(0)


PROCESS = os.getpid()
try:
    HOME = os.getcwd()
except OSError:
    HOME = "/"  # it was removed
CHANNEL, ARRAYS, RESULT = socket.socket(fileno=moved(3)), moved(4), moved(5)
try:
    import numpy
except BaseException as error:
    start_failed(f"{sys.executable}: NumPy is needed: {told(error)}")

numpy.seterr(divide="ignore", invalid="ignore")
DIRECTORY, WANTED = os.path.abspath(sys.argv[1]), sys.argv[2]
PARAMETERS = {}
for place in range(3, len(sys.argv), 3):
    PARAMETERS.setdefault(sys.argv[place], {})[sys.argv[place + 1]] = sys.argv[place + 2]
sys.path.append(DIRECTORY)
known_modules()
ALGORITHMS, NOTES = load_all(DIRECTORY, "algorithm", ALGORITHM, "compare") if \
    WANTED == "all" else ({}, [])
CONVERTERS, MORE = load_all(DIRECTORY, "format_convert", CONVERTER, "convert")
NOTES += MORE
try:
    main()
except OSError as error:
    print(f"plumb: the user's functions closed what this program needs: {error}", file=sys.stderr)
    os._exit(1)
os._exit(0)
