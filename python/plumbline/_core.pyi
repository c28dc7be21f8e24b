"""Native core of plumbline."""

from collections.abc import Sequence


class UnsupportedError(RuntimeError):
    """Valid input that plumbline cannot handle."""

class CorruptDataError(RuntimeError):
    """A file whose bytes contradict its own format."""

class InternalError(RuntimeError):
    """A defect of plumbline itself."""

class Config:
    """A checked config.json with the constructor's overrides."""

    @property
    def task(self) -> str: ...

    @property
    def level(self) -> str: ...

    @property
    def dump_path(self) -> str: ...

    @property
    def listed(self) -> list[str]: ...

    @property
    def enable_dataloader(self) -> bool: ...

    @property
    def dump_enable(self) -> bool | None: ...

    @property
    def wants_backward(self) -> bool: ...

    @property
    def warnings(self) -> list[str]: ...

def load_config(path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None) -> Config:
    """
    Reads and checks a configuration; ValueError names field, value and what was expected.
    """

class Recorder:
    """Turns hook events into entries of the open step."""

    def start(self, rank: int | None) -> str: ...

    def stop(self) -> None: ...

    def step(self) -> None: ...

    def set_step(self, arg: int, /) -> None: ...

    def close(self) -> None: ...

    @property
    def is_step_open(self) -> bool: ...

    @property
    def is_collecting(self) -> bool: ...

    @property
    def current_step(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def run_directory(self) -> str: ...

    def probe(self, arg0: object, arg1: str, arg2: bool, /) -> object: ...

    def save_variable(self, name: str, variable: object | None, with_gradients: bool) -> bool: ...

    @property
    def api_depth(self) -> int:
        """How many listed APIs this thread is inside of."""

    def begin_operator(self) -> int:
        """
        The next probe called is an operator's (level L2). Returns what end_operator() takes.
        """

    def end_operator(self, arg: int, /) -> None: ...

    def push_region(self, arg: str, /) -> None: ...

    def pop_region(self, arg: str, /) -> None: ...

    def set_function_mode(self, mode: object | None) -> None:
        """
        Tells the function mode that was put on this thread's stack, which the caller keeps.
        """

    def count_loss(self, arg0: str, arg1: str, /) -> None: ...

    def set_own_directory(self, arg: str, /) -> None: ...

def new_recorder(config: Config, framework: dict) -> Recorder:
    """
    Makes the recorder of this process; `framework` is Adapter.framework_parts() and a name.
    """

def log_info(arg: str, /) -> None: ...

def log_warning(arg: str, /) -> None: ...

def log_error(arg: str, /) -> None: ...

class Collectives:
    """Records communication calls."""

    def __init__(self, recorder: Recorder, handle_type: object, has_succeeded: object, postponed: dict) -> None: ...

    def probe(self, original: object, name: str, masked_inputs: Sequence[int], masked_names: Sequence[str], masked_outputs: Sequence[int], gives_result: bool = False) -> object:
        """
        Masked arguments are recorded as null; the output is the arguments afterwards, or the result.
        """

    def completed(self, arg: object, /) -> None:
        """
        The user has waited for `handle`: records the call that returned it, once.
        """

    def is_pending(self, arg: object, /) -> bool:
        """Whether the call that returned `handle` is still to be recorded."""

    def finish(self) -> None:
        """Records the calls that nobody waited for."""

class Autograd:
    """Functions of the framework that BackwardCall needs."""

    def __init__(self, *, is_grad_enabled: object, sequence_number: object | None, gradient_edge: object | None, queue_callback: object, watch_all: object | None, add: object, reduces_in_place: object, opens_containers: bool = False) -> None: ...

class ModuleHook:
    """Hooks around the calls of one module."""

    def __init__(self, arg0: Recorder, arg1: Autograd, arg2: str, arg3: bool, /) -> None: ...

    def before(self, arg0: object, arg1: object, arg2: object, /) -> None:
        """A forward pre hook (with_kwargs)."""

    def after(self, arg0: object, arg1: object, arg2: object, arg3: object | None, /) -> None:
        """A forward hook (with_kwargs, always_call)."""

    def forget_parameters(self) -> None: ...

class PatchSet:
    """Attribute replacements applied and taken back as a whole."""

    def __init__(self) -> None: ...

    def add(self, arg0: object, arg1: str, arg2: object, /) -> None: ...

    def apply(self) -> None: ...

    def restore(self) -> int: ...

    @property
    def is_applied(self) -> bool: ...

    @property
    def skipped(self) -> int: ...

    def __len__(self) -> int: ...

def original_of(arg: object, /) -> object:
    """The wrapped callable of a probe, or None."""

class GradProbe:
    """Records gradients when optimizers step."""

    def __init__(self, config: Config, framework: dict) -> None: ...

    def add_parameters(self, arg: Sequence[str], /) -> None: ...

    def begin(self, optimizer: int, own: Sequence[int], rank: int | None) -> list[int]:
        """
        An optimizer, by its id, is about to step; the numbers of the parameters to take().
        """

    def take(self, parameters: Sequence[int], gradients: Sequence) -> None:
        """Gradients, or None, of parameters by their numbers."""

    def end(self) -> None: ...

    def set_first_step(self, arg: int, /) -> bool: ...

    def drain(self) -> None: ...

    def close(self) -> None: ...

    @property
    def directory(self) -> str: ...

def asks_for_grad_probe(path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None) -> bool:
    """
    Whether config.json, with the arguments over it, has task grad_probe. Checks nothing else.
    """

class MonitorConfig:
    """A checked configuration of a monitor."""

    @property
    def targets(self) -> list[str]: ...

    @property
    def watches_all_modules(self) -> bool: ...

    @property
    def activations(self) -> bool: ...

    @property
    def forward_only(self) -> bool: ...

    @property
    def backward_only(self) -> bool: ...

    @property
    def gradients(self) -> bool: ...

    @property
    def moments(self) -> bool: ...

    @property
    def parameters(self) -> bool: ...

    @property
    def updated_parameters(self) -> bool: ...

    @property
    def directions(self) -> bool: ...

    @property
    def micro_batch_gradients(self) -> bool: ...

    @property
    def stack_info(self) -> bool: ...

    @property
    def print_struct(self) -> bool: ...

    @property
    def communication(self) -> bool: ...

    @property
    def before_communication(self) -> bool: ...

    @property
    def logs_communication(self) -> bool: ...

    @property
    def code_lines(self) -> list[str]: ...

    @property
    def ops(self) -> list[str]: ...

    @property
    def format(self) -> str: ...

    @property
    def ranks(self) -> list[int]: ...

    @property
    def start_step(self) -> int: ...

    @property
    def step_interval(self) -> int: ...

    @property
    def collect_times(self) -> int: ...

    @property
    def dynamic_on(self) -> bool: ...

    @property
    def warnings(self) -> list[str]: ...

    def set_ops(self, arg: Sequence[str], /) -> None: ...

    def printed_name(self, arg: str, /) -> str:
        """The name of a module or parameter as rows have it."""

def read_monitor_config(arg: str, /) -> MonitorConfig:
    """ValueError has one line for every fault."""

class WatchedName:
    """What rows of a monitor are called."""

    @property
    def text(self) -> str: ...

class LiveMonitor:
    """The values of a training, step by step."""

    @property
    def directory(self) -> str: ...

    def name(self, text: str, vpp_stage: int = 0, group: int = 0) -> WatchedName: ...

    def add(self, kind: str, name: WatchedName, value: object | None) -> None: ...

    def add_all(self, arg0: str, arg1: list, arg2: list, /) -> None:
        """One row for each value that is not None."""

    def add_direction(self, name: WatchedName, gradient: object | None, momentum: object | None) -> bool: ...

    def parameter_hook(self, autograd: Autograd, name: WatchedName, micro_batches: int, takes_every: bool, is_accumulated: bool, adds_to: object | None) -> object: ...

    def commit(self, step: int) -> None: ...

    def drop(self) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def write_rows(self, name: str, rows: Sequence[Sequence[str]]) -> None:
        """A small csv file beside those of the values."""

    def metrics(self, kind: str, config: MonitorConfig, rank: int) -> dict: ...

    def take_messages(self) -> list[str]: ...

class MicroBatches:
    """Counts the calls of one outermost module."""

    def __init__(self) -> None: ...

class ModuleWatch:
    """Hooks around the calls of one watched module."""

    def __init__(self, monitor: LiveMonitor, autograd: Autograd, is_recomputing: object | None, config: MonitorConfig, name: str, target: str, place: tuple[int, int], batches: object, is_root: bool, is_watched: bool) -> None: ...

    def before(self, arg0: object, arg1: object, arg2: object, /) -> None:
        """A forward pre hook (with_kwargs)."""

    def after(self, arg0: object, arg1: object, arg2: object, arg3: object | None, /) -> None:
        """A forward hook (with_kwargs, always_call)."""

def new_live_monitor(framework: dict, config: MonitorConfig, output: str, rank: int | None, pipeline: tuple[int, list[int]], first_step: int, directory: str) -> LiveMonitor: ...

class BlackBox:
    """Samples of the last steps of a training."""

    @property
    def live(self) -> object: ...

    @property
    def is_frozen(self) -> bool: ...

    @property
    def first(self) -> tuple[str, int, str, str, str] | None: ...

    def norm(self, gradients: list) -> float: ...

    def add_input(self, name: WatchedName, args: object, kwargs: object) -> None: ...

    def take_seconds(self) -> float:
        """Spent in hooks since the last call."""

    def write(self, text: str) -> None:
        """How the training is and how it ended, as JSON."""

class OutputSample:
    """Samples the output of one module."""

    def __init__(self, box: BlackBox, is_recomputing: object, module: str) -> None: ...

    def after(self, arg0: object, arg1: object, arg2: object | None, /) -> None:
        """A forward hook."""

def new_black_box(framework: dict, output: str, rank: int | None, steps: int) -> BlackBox: ...
