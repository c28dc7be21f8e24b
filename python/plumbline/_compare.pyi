"""Native comparison of plumbline."""

from collections.abc import Iterator, Mapping, Sequence
import enum
import os


class RowTable:
    """
    The rows of a comparison as columns: a read-only mapping of name to column.
    """

    def __len__(self) -> int: ...

    @property
    def row_count(self) -> int:
        """Of every column."""

    @property
    def names(self) -> list[str]:
        """Of the columns, in order."""

    def keys(self) -> list[str]:
        """The same as names: dict(table) has every column by its name."""

    def __iter__(self) -> Iterator: ...

    def __contains__(self, name: object) -> bool: ...

    def values(self) -> list:
        """The columns, in order."""

    def items(self) -> list:
        """Pairs of name and column, in order."""

    def __getitem__(self, name: str) -> object:
        """
        Numbers as a read-only NumPy view (no number: NaN or 0); texts as a list.
        """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """For pyarrow.table(), polars.DataFrame() and others; nothing is copied."""

class CompareOptions:
    """What compare_runs and write_comparison do."""

    def __init__(self) -> None: ...

    @property
    def output_dir(self) -> str: ...

    @output_dir.setter
    def output_dir(self, arg: str | bytes | os.PathLike, /) -> None: ...

    def set_formats(self, names: Sequence[str]) -> None:
        """Which result files are written: names as `--format` takes them."""

    @property
    def write_advice(self) -> bool: ...

    @write_advice.setter
    def write_advice(self, arg: bool, /) -> None: ...

    @property
    def fuzzy_match(self) -> bool: ...

    @fuzzy_match.setter
    def fuzzy_match(self, arg: bool, /) -> None: ...

    @property
    def suffix(self) -> str: ...

    @suffix.setter
    def suffix(self, arg: str, /) -> None: ...

    def set_mappings(self, data: str | bytes | os.PathLike, api: str | bytes | os.PathLike | None, cell: str | bytes | os.PathLike | None, layer: str | bytes | os.PathLike | None) -> None:
        """
        The mapping files: paths; "" is no data mapping, and of the others the built-in one.
        """

    @property
    def show_stack(self) -> bool: ...

    @show_stack.setter
    def show_stack(self, arg: bool, /) -> None: ...

    @property
    def stack_path(self) -> str: ...

    @stack_path.setter
    def stack_path(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def noise_path(self) -> str: ...

    @noise_path.setter
    def noise_path(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def salvage(self) -> bool: ...

    @salvage.setter
    def salvage(self, arg: bool, /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

class Comparison:
    """The result of one comparison."""

    def __init__(self) -> None: ...

    @property
    def next_config(self) -> str: ...

    def summary_text(self) -> str:
        """The answer as `plumb compare` prints it."""

    def summary_json(self) -> str:
        """What `plumb compare --json` prints."""

    def result_json(self) -> str:
        """The machine form with every row."""

    def row_table(self) -> RowTable:
        """The rows as columns; made on every call."""

    def fails_on(self, conditions: Sequence[str]) -> bool:
        """Whether it meets one of the conditions of `--fail-on`."""

class PairKind(enum.Enum):
    """What two paths hold."""

    RECORDING = 0

    RANKS = 1

    CHECKPOINTS = 2

    ATB = 3

    HDF5 = 4

    TORCHAIR = 5

    DEVICE_DUMPS = 6

    MIXED = 7

    @property
    def text(self) -> str:
        """In words."""

def kind_of_pair(target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, options: CompareOptions) -> PairKind:
    """As `plumb compare` takes the two."""

class CheckpointReport:
    """What two arrays or checkpoints gave."""

    def summary_text(self) -> str:
        """The answer as `plumb compare` prints it."""

    def result_json(self) -> str:
        """What `plumb compare --json` prints."""

    def files(self) -> list[str]:
        """Paths of the result files."""

    def fails_on(self, conditions: Sequence[str]) -> bool:
        """Whether it meets one of the conditions of `--fail-on`."""

def compare_checkpoints(target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, options: CompareOptions) -> CheckpointReport:
    """
    Compares two arrays or checkpoints; an empty output_dir: writes nothing.
    """

class TrainingRules:
    """Which module of an inference stands against one of a training."""

    def __init__(self, backend: str, module_map: str | bytes | os.PathLike) -> None: ...

def compare_training(training: str | bytes | os.PathLike, inference: str | bytes | os.PathLike, rules: TrainingRules, options: CompareOptions) -> Comparison:
    """Reads and compares a training and an inference; writes nothing."""

def compare_runs(target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, options: CompareOptions) -> Comparison:
    """Reads and compares two runs; writes nothing."""

def write_comparison(comparison: Comparison, options: CompareOptions) -> None:
    """Writes the result files that `options` selects."""

class RankOptions:
    """Which ranks and steps compare_ranks looks at."""

    def __init__(self) -> None: ...

    @property
    def ranks(self) -> list[int]: ...

    @ranks.setter
    def ranks(self, arg: Sequence[int], /) -> None: ...

    @property
    def steps(self) -> list[int]: ...

    @steps.setter
    def steps(self, arg: Sequence[int], /) -> None: ...

    @property
    def resume(self) -> bool: ...

    @resume.setter
    def resume(self, arg: bool, /) -> None: ...

    @property
    def diff_analyze(self) -> bool: ...

    @diff_analyze.setter
    def diff_analyze(self, arg: bool, /) -> None: ...

    @property
    def check_collectives(self) -> bool: ...

    @check_collectives.setter
    def check_collectives(self, arg: bool, /) -> None: ...

    @property
    def fail_on(self) -> list[str]: ...

    @fail_on.setter
    def fail_on(self, arg: Sequence[str], /) -> None: ...

    def pair_training(self, rules: TrainingRules) -> None:
        """The target is a training, the golden side an inference."""

def compare_ranks(target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, options: CompareOptions, ranks: RankOptions) -> tuple[str, str, bool]:
    """
    Compares all ranks and writes their files: JSON, text, whether a condition is met.
    """

def write_config_pack(path: str, files: Sequence[str], all_environment: bool, python_prefix: str) -> None:
    """Writes a pack of what can be seen from outside: `config_check -d`."""

def compare_config_packs(bench: str | bytes | os.PathLike, cmp: str | bytes | os.PathLike, directory: str | bytes | os.PathLike) -> str:
    """
    Compares two packs, writes result.xlsx, returns the answer as text: `config_check -c`.
    """

class GraphPlace:
    """Where graphs run, as MindSpore spells it."""

    def __init__(self, mode: str, device: str, version: str) -> None: ...

class GraphRun:
    """The dump of one process's static graphs."""

    @property
    def tree(self) -> str:
        """What MindSpore writes of this rank."""

    def select_scopes(self, scopes: Sequence[str]) -> None:
        """Also selects kernels below these scopes, such as "fc1-Dense/"."""

    def set_first_iteration(self, number: int) -> bool:
        """Numbers the first iteration; False: too late."""

    def start(self) -> tuple[list[tuple[str, str]], list[str]]:
        """Writes the dump configuration; returns variables to set and to remove."""

    def step(self) -> None:
        """Begins a pass over what is complete, in the background."""

    def close(self) -> None:
        """Makes the statistics that are left."""

    def take_problems(self) -> list[str]:
        """Warnings since the last time."""

def plan_graph_dump(config_path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None, place: GraphPlace) -> GraphRun:
    """
    Reads config.json for static graphs; the arguments behind it win over it.
    """

def asks_for_kernels(config_path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None) -> bool:
    """Whether config.json, with the arguments over it, has level L2."""

def asks_for_api(config_path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None) -> bool:
    """Whether it has level L2 and a list that names an API."""

class GraphIndex:
    """Every tensor of a static-graph dump."""

    @property
    def left_out(self) -> int: ...

    def __len__(self) -> int: ...

    def path(self, index: int) -> str:
        """File of one tensor, or the table that has its row."""

def index_graph_dump(root: str | bytes | os.PathLike) -> GraphIndex:
    """Lists every tensor of a static-graph dump; opens no tensor."""

def find_source_tensors(root: str | bytes | os.PathLike, text: str, is_regex: bool, ranks: Sequence[int] | None, steps: Sequence[int] | None) -> list[tuple[str, int, int, bool, str]]:
    """
    Tensors of the kernels whose source trace holds a text: kernel, rank, step, is_output, path.
    """

def write_graph_sheets(root: str | bytes | os.PathLike, directory: str | bytes | os.PathLike) -> str:
    """Writes the compiled graphs of a dump as a workbook; returns its path."""

def convert_tree_to_host(root: str | bytes | os.PathLike) -> list[str]:
    """
    Writes the tensors of every device file below a directory as arrays beside it; returns a line for each file that failed.
    """

def compare_gradients(target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, output: str | bytes | os.PathLike, plot: str, threads: int) -> tuple[str, list[str]]:
    """
    Writes the files of `plumb grad-compare`; the answer as text, and warnings.
    """

def monitor_to_tensorboard(data: str | bytes | os.PathLike, output: str | bytes | os.PathLike, time_start: str, time_end: str, kinds: Sequence[str], threads: int) -> tuple[str, list[str]]:
    """
    Writes event files; the directory that they are in, and warnings. Empty texts: the default.
    """

class LayoutGrid:
    """Which ranks hold which layers."""

    def __init__(self, ranks: int, layers: int, tensor: int, pipeline: int, layers_of_part: int | None, order: str, standalone_embedding: bool) -> None: ...

    @property
    def virtual_stages(self) -> int: ...

    @property
    def data_parallel_size(self) -> int: ...

    @property
    def transformer_stages(self) -> int: ...

    @property
    def rows(self) -> list[tuple[list[int], str, int, list[str]]]: ...

    def path_of(self, output: str | bytes | os.PathLike) -> str:
        """Where the picture is written."""

    def write(self, output: str | bytes | os.PathLike) -> str:
        """Writes the picture; its path."""

class ValueReader:
    """Answers about the elements of tensor files."""

    def __init__(self) -> None: ...

    def ask(self, target: str | bytes | os.PathLike, golden: str | bytes | os.PathLike, what: str, parameters: Mapping[str, str] = {}) -> str:
        """The JSON text of an answer; an empty path is no side."""

class TrendDatabase:
    """A .trend.db, opened read-only."""

    @staticmethod
    def open(path: str | bytes | os.PathLike) -> TrendDatabase: ...

    def ask(self, question: str, parameters: Mapping[str, str] = {}, against: TrendDatabase | None = None) -> str:
        """The JSON text of an answer."""

class WatchedRecording:
    """Every tensor of a recording, by number."""

    @property
    def tensors(self) -> list:
        """(step, rank, graph, name, io, slot, operation) of each."""

    @property
    def nodes(self) -> list:
        """
        (rank, graph, root graph, name, operation, stack, inputs) of compiled graphs.
        """

    def stack(self, number: int) -> list[str]:
        """Call stack of a tensor's call, innermost frame first."""

    def value(self, number: int) -> object:
        """Its elements as (bytes, dtype, shape), or None."""

    def check(self, watchpoints: Sequence[tuple[str, Sequence[int]]]) -> list:
        """
        Holds expressions against the tensors named beside each: (watchpoint, tensor, code, reasons, [(parameter, threshold, hit, actual)]) for hits and what is not evaluated.
        """

def open_watched(path: str | bytes | os.PathLike) -> WatchedRecording:
    """Reads what a recording holds; no elements of tensors."""

class OperatorCheck:
    """Judges operators while they run."""

    def __init__(self, directory: str | bytes | os.PathLike, tag: str, rank: int, dump: tuple[str, Sequence[str]], workers: int) -> None:
        """`dump`: when, and which operators."""

    def wants_inputs(self, op: str) -> bool:
        """Whether inputs of this operator could be written."""

    def add(self, name: tuple[str, str], inputs: list, device: list, bench: list) -> None:
        """
        A call: operator and place; leaves as (path, value), tensors as (owner, dtype, shape, address).
        """

    def add_unchecked(self, op: str, reason: str) -> None: ...

    def finish(self, left_alone: int) -> dict:
        """What was found."""

def is_left_alone(aten_operator: str) -> bool:
    """Whether this operator is never checked."""

class PrecheckOptions:
    """What run_precheck does."""

    def __init__(self) -> None: ...

    @property
    def dump(self) -> str: ...

    @dump.setter
    def dump(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def output_dir(self) -> str: ...

    @output_dir.setter
    def output_dir(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def python(self) -> str: ...

    @python.setter
    def python(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def resume_path(self) -> str: ...

    @resume_path.setter
    def resume_path(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def error_data_path(self) -> str: ...

    @error_data_path.setter
    def error_data_path(self, arg: str | bytes | os.PathLike, /) -> None: ...

    @property
    def device_type(self) -> str: ...

    @device_type.setter
    def device_type(self, arg: str, /) -> None: ...

    @property
    def devices(self) -> list[int]: ...

    @devices.setter
    def devices(self, arg: Sequence[int], /) -> None: ...

    @property
    def workers(self) -> int: ...

    @workers.setter
    def workers(self, arg: int, /) -> None: ...

    @property
    def bench_workers(self) -> int: ...

    @bench_workers.setter
    def bench_workers(self, arg: int, /) -> None: ...

    @property
    def threads(self) -> int: ...

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def api_timeout(self) -> float:
        """In seconds."""

    @api_timeout.setter
    def api_timeout(self, arg: float, /) -> None: ...

    @property
    def retry_skipped(self) -> bool: ...

    @retry_skipped.setter
    def retry_skipped(self, arg: bool, /) -> None: ...

    @property
    def sorted(self) -> bool: ...

    @sorted.setter
    def sorted(self, arg: bool, /) -> None: ...

    @property
    def save_error_data(self) -> bool: ...

    @save_error_data.setter
    def save_error_data(self, arg: bool, /) -> None: ...

    @property
    def max_abs_error(self) -> float: ...

    @max_abs_error.setter
    def max_abs_error(self, arg: float, /) -> None: ...

    @property
    def dedupe(self) -> bool: ...

    @dedupe.setter
    def dedupe(self, arg: bool, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    def load_settings(self, path: str | bytes | os.PathLike) -> list[str]:
        """Takes a config.json over ("": none); returns warnings."""

class PrecheckReport:
    """What a pre-check found."""

    def summary_text(self) -> str:
        """The answer as `plumb precheck` prints it."""

    def summary_json(self) -> str:
        """What `plumb precheck --json` prints."""

    def calls_json(self) -> str:
        """The result file: an array of objects."""

    def details_json(self) -> str:
        """The details file: an array of objects."""

    def row_table(self) -> RowTable:
        """The details file as columns; read on every call."""

    def files(self) -> list[str]:
        """Paths of the files that were written."""

    @property
    def warnings(self) -> list[str]: ...

    def fails_on(self, conditions: Sequence[str]) -> bool:
        """Whether it meets one of the conditions of `--fail-on`."""

    @staticmethod
    def check_formats(words: Sequence[str]) -> None:
        """Raises ValueError if one is unknown."""

    def write_files(self, formats: Sequence[str]) -> None:
        """Writes files beside the csv files."""

    def write(self, format: str, path: str | bytes | os.PathLike) -> None:
        """Writes one file."""

def run_precheck(options: PrecheckOptions) -> PrecheckReport:
    """Runs every recorded call again; writes the csv files."""
