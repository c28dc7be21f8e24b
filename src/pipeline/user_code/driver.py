"""Runs a user's own functions for plumb, which starts this text as `python -c`.

Descriptor 3 is a socket: a request is a line of JSON, a list of texts, and so is its answer. The
bytes of arrays lie in descriptor 4, those of a result in descriptor 5.
"""
import sys

sys.path[:] = [path for path in sys.path if path]  # nothing of the working directory
sys.dont_write_bytecode = True

import enum  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import mmap  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import socket  # noqa: E402
import types  # noqa: E402

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
    """A text without line breaks."""
    return " ".join(str(value).split())


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


def parameter_count(function):
    """How many arguments it takes by place."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in kinds for one in inspect.signature(function).parameters.values())


def load(path, name, function, count):
    """The function of a file; ValueError says why there is none."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ValueError(f"cannot be loaded: {type(error).__name__}: {error}") from error
    found = getattr(module, function, None)
    if found is None:
        raise ValueError(f"has no function '{function}'")
    if not callable(found):
        raise ValueError(f"'{function}' is no function")
    if parameter_count(found) != count:
        raise ValueError(
            f"'{function}' takes {parameter_count(found)} arguments (expected {count})")
    return found


def load_all(directory, folder, pattern, function):
    """The functions of a folder by name, and one warning for each file that has none."""
    functions, warnings = {}, []
    path = os.path.join(directory, folder)
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    for name in names:
        file = os.path.join(path, name)
        match = pattern.match(name)
        if not os.path.isfile(file) or name == "__init__.py":
            continue
        if not match:
            warnings.append(f"{file}: left out, the name is not of the form {pattern.pattern}")
            continue
        key = match.group(1)
        count = 4 if "_to_FRACTAL_Z" in key else 3
        try:
            functions[key] = load(file, f"{folder}.{name.split('.')[0]}", function, count)
        except ValueError as error:
            warnings.append(f"{file}: left out, {error}")
    return functions, warnings


def stored(dtype, count, offset):
    """An array of the caller, as a copy that may be changed."""
    if not count:
        return numpy.empty(0, dtype)
    memory = mmap.mmap(4, 0, access=mmap.ACCESS_COPY)
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
    x, y = stored(mine, int(count), 0), stored(golden, int(count), int(offset))
    parameters = AlgorithmParameter()
    parameters.__dict__ = {**PARAMETERS.get(name, {}), "my_output_dump_file": my_file,
                           "ground_truth_dump_file": golden_file,
                           "shape_type": ShapeType.Scalar if is_scalar else ShapeType.Tensor}
    try:
        x, y = as_number(x), as_number(y)
        if x.dtype != y.dtype:
            wider = numpy.promote_types(x.dtype, y.dtype)
            x, y = x.astype(wider), y.astype(wider)
        value, message = ALGORITHMS[name](x, y, parameters)
        for text in (value, message):
            if not isinstance(text, str):
                raise TypeError(f"The return value ({text!r}) is not string.")
    except (Exception, SystemExit) as error:
        return ["NaN", one_line(f"Failed to execute 'compare' in '{name}'. {error}")]
    return [one_line(value), one_line(message)]


def convert(request):
    """Runs a converter; its result lies in descriptor 5."""
    name, dtype, count, shape_from, shape_to, group = request
    sizes = [[int(size) for size in text.split(",") if size] for text in (shape_from, shape_to)]
    extra = [int(group)] if "_to_FRACTAL_Z" in name else []
    try:
        result = CONVERTERS[name](*sizes, stored(dtype, int(count), 0), *extra)
        if not isinstance(result, numpy.ndarray):
            raise TypeError(f"The return value is not numpy.ndarray but {type(result).__name__}.")
        if result.dtype.kind not in "biufc":
            raise TypeError(f"The return value has elements of type {result.dtype}.")
        result = numpy.ascontiguousarray(result, result.dtype.newbyteorder("=")).reshape(
            result.shape)
    except (Exception, SystemExit) as error:
        return ["error", one_line(f"Failed to execute 'convert' in '{name}'. {error}")]
    os.ftruncate(5, result.nbytes)
    rest, at = memoryview(result.reshape(-1).view(numpy.uint8)), 0
    while at < len(rest):
        at += os.pwrite(5, rest[at:at + (1 << 26)], at)
    return ["ok", result.dtype.name, ",".join(map(str, result.shape))]


def main():
    """Serves requests until the caller closes the socket."""
    channel = socket.socket(fileno=3)
    lines = channel.makefile("r", encoding="utf-8", newline="\n")

    def answer(texts):
        channel.sendall(json.dumps(texts).encode() + b"\n")

    answer(["ready", *map("a".__add__, ALGORITHMS), *map("c".__add__, CONVERTERS),
            *map("w".__add__, map(one_line, WARNINGS))])
    for line in lines:
        verb, *request = json.loads(line)
        answer({"compare": compare, "convert": convert}[verb](request))


def start_failed(error):
    """Tells the caller why nothing can be run."""
    with socket.socket(fileno=3) as channel:
        channel.sendall(json.dumps(["error", one_line(error)]).encode() + b"\n")
    os._exit(0)


try:
    import numpy
except Exception as error:
    start_failed(f"{sys.executable}: NumPy is needed: {error}")

numpy.seterr(divide="ignore", invalid="ignore")
DIRECTORY, WANTED = sys.argv[1:3]
PARAMETERS = {}
for place in range(3, len(sys.argv), 3):
    PARAMETERS.setdefault(sys.argv[place], {})[sys.argv[place + 1]] = sys.argv[place + 2]
sys.path.append(DIRECTORY)
known_modules()
ALGORITHMS, WARNINGS = load_all(DIRECTORY, "algorithm", ALGORITHM, "compare") if \
    WANTED == "all" else ({}, [])
CONVERTERS, MORE = load_all(DIRECTORY, "format_convert", CONVERTER, "convert")
WARNINGS += MORE
main()
os._exit(0)
