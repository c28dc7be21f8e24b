"""Native core of plumbline."""

from collections.abc import Callable, Sequence
import os


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
    def traces_frames(self) -> bool: ...

    @property
    def max_frames(self) -> int: ...

    @property
    def traced_batches(self) -> list[int]: ...

    @property
    def abort_after_batch(self) -> int | None: ...

    @property
    def raises_on_overflow(self) -> bool | None: ...

    def wants(self, step: int, rank: int | None) -> bool:
        """Whether a step of a rank is selected."""

    @property
    def warnings(self) -> list[str]: ...

def load_config(path: str | None, task: str | None, dump_path: str | None, level: str | None, step_json: str | None) -> Config:
    """
    Reads and checks a configuration; ValueError names field, value and what was expected.
    """

class Recorder:
    """Turns hook events into entries of the open step."""

    def start(self, rank: int | None) -> str: ...

    def use_batch(self, schedule: object | None) -> bool:
        """
        Which rows belong to which request from here on: a dict request -> number of tokens, or None. False: the request that is recorded has none.
        """

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
    def custom_op_namespaces(self) -> list[str]: ...

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

    @property
    def wants_digest(self) -> bool: ...

    @property
    def is_async(self) -> bool: ...

    def add_rows(self, first: int, address: int, count: int) -> None:
        """
        What a device computed of the tensors with the numbers from `first` on: rows of 10 float64 and 3 int64 in host memory. May write the files of a step.
        """

    def add_tensor(self, number: int, tensor: object) -> bool:
        """
        Every element of the tensor of that number, on the host. False: it cannot be read.
        """

    def drop_values(self, first: int, count: int, why: str) -> None:
        """
        The statistics of these tensors will not come: they are counted as lost.
        """

def new_recorder(config: Config, framework: dict) -> Recorder:
    """
    Makes the recorder of this process; `framework` is Adapter.framework_parts() and a name.
    """

def log_info(arg: str, /) -> None: ...

def log_warning(arg: str, /) -> None: ...

def log_error(arg: str, /) -> None: ...

class GatheringRegion:
    """A region whose calls start together."""

    def __init__(self, calls: Collectives | None, original: object, *args: object, **kwargs: object) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(self, type: object | None, error: object | None, traceback: object | None) -> object: ...

class Collectives:
    """Records communication calls."""

    def __init__(self, recorder: Recorder, handle_type: object, has_succeeded: object, postponed: dict, before: object | None = None) -> None: ...

    def probe(self, original: object, name: str, masked_inputs: Sequence[int], masked_names: Sequence[str], masked_outputs: Sequence[int], gives_result: bool = False) -> object:
        """
        Masked arguments are recorded as null or as `before` of them; the output is the arguments afterwards, or the result.
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

class OptimizerSteps:
    """Records what optimizers make of parameters."""

    def __init__(self, arg: Recorder, /) -> None: ...

    def use_models(self, arg: list, /) -> None:
        """The models that name the parameters."""

    def before(self, arg: object, /) -> None:
        """An optimizer is about to step."""

    def after(self, arg: object, /) -> None:
        """It has."""

    def clear(self) -> None:
        """Forgets steps under way."""

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

class SecondForm:
    """What a TrainerMonitorV2 is told beside."""

    @property
    def framework(self) -> str: ...

    @property
    def output(self) -> str: ...

    @property
    def follows_optimizer(self) -> bool | None: ...

    @property
    def communication_ranks(self) -> list[int]: ...

    @property
    def micro_batches(self) -> int: ...

    @micro_batches.setter
    def micro_batches(self, arg: int, /) -> None: ...

def read_second_form(path: str, framework: str) -> MonitorConfig:
    """As read_monitor_config, of a TrainerMonitorV2."""

class MonitorConfig:
    """A checked configuration of a monitor."""

    @property
    def is_latest(self) -> bool:
        """Whether its profile is "latest"."""

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
    def adam_updates(self) -> bool: ...

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
    def second(self) -> SecondForm: ...

    @property
    def ops(self) -> list[str]: ...

    @property
    def format(self) -> str: ...

    @property
    def features(self) -> bool: ...

    @property
    def ranks(self) -> list[int]: ...

    @property
    def start_step(self) -> int: ...

    @property
    def step_interval(self) -> int: ...

    @property
    def collect_times(self) -> int: ...

    @property
    def stop_step(self) -> int: ...

    @property
    def moments_after(self) -> bool: ...

    @property
    def dynamic_on(self) -> bool: ...

    @property
    def apply_at_step(self) -> int: ...

    @property
    def warnings(self) -> list[str]: ...

    def features_of(self, arg0: int, arg1: Sequence[str], /) -> list[str]:
        """Kinds of features of a module by its names."""

    def set_ops(self, arg: Sequence[str], /) -> None: ...

    def printed_name(self, arg: str, /) -> str:
        """The name of a module or parameter as rows have it."""

def read_monitor_config(arg: str, /) -> MonitorConfig:
    """ValueError has one line for every fault."""

class MonitorPlace:
    """Where a monitor writes, and of which process."""

    def __init__(self, output: str, rank: int | None, pipeline: tuple[int, Sequence[int]], first_step: int, goes_on: bool) -> None: ...

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

    def add_feature(self, kind: str, name: WatchedName, weight: object) -> None:
        """Of a matrix of weights."""

    def add_adam(self, name: WatchedName, first: object | None, second: object | None, rule: tuple[float, float, float, float]) -> bool:
        """`rule`: both betas, eps and how many steps the moments hold."""

    def parameter_hook(self, autograd: Autograd, name: WatchedName, micro_batches: int, takes_every: bool, is_accumulated: bool, adds_to: object | None) -> object: ...

    def metrics(self, kind: str, config: MonitorConfig, rank: int) -> dict: ...

    def commit(self, step: int) -> None: ...

    def drop(self) -> None: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def write_rows(self, name: str, rows: Sequence[Sequence[str]]) -> None:
        """A small csv file beside those of the values, unless it is there."""

    def write_names(self, names: Sequence[tuple[str, str, str]], config: MonitorConfig) -> None:
        """names.json, of (kind, printed name with its stage, full name)."""

    def take_messages(self) -> list[str]: ...

class MicroBatches:
    """Counts the calls of one outermost module."""

    def __init__(self) -> None: ...

class ModuleWatch:
    """Hooks around the calls of one watched module."""

    def __init__(self, monitor: LiveMonitor, autograd: Autograd, is_recomputing: object | None, config: MonitorConfig, name: str, target: str, place: tuple[int, int], batches: object, is_root: bool, is_watched: bool) -> None: ...

    def before(self, arg0: object, arg1: object, arg2: object, /) -> None:
        """A forward pre hook (with_kwargs)."""

    def add_feature(self, kind: str, name: WatchedName) -> None:
        """Of each call; before the first one."""

    def after(self, arg0: object, arg1: object, arg2: object, arg3: object | None, /) -> None:
        """A forward hook (with_kwargs, always_call)."""

def new_live_monitor(framework: dict, config: MonitorConfig, place: MonitorPlace, directory: str) -> LiveMonitor: ...

class BlackBox:
    """Samples of the last steps of a training."""

    @property
    def live(self, /) -> LiveMonitor: ...

    @property
    def is_frozen(self) -> bool: ...

    @property
    def first(self) -> tuple[str, int, str, str, str] | None: ...

    def norm(self, gradients: list) -> float: ...

    def take_seconds(self) -> float:
        """Spent in hooks since the last call."""

    def write(self, text: str) -> None:
        """How the training is and how it ended, as JSON."""

class InputSample:
    """Samples what a model gets."""

    def __init__(self, box: BlackBox, name: str) -> None: ...

    def before(self, arg0: object, arg1: object, arg2: object, /) -> None:
        """A forward pre hook."""

class CallCount:
    """Counts calls of a model that trains."""

    def __init__(self, at_limit: Callable[[], None]) -> None: ...

    @property
    def calls(self) -> int: ...

    @calls.setter
    def calls(self, arg: int, /) -> None: ...

    @property
    def limit(self) -> int:
        """At this many calls `at_limit` is called."""

    @limit.setter
    def limit(self, arg: int, /) -> None: ...

    def forget(self) -> None:
        """`at_limit` is called no more."""

    def before(self, arg0: object, arg1: object, /) -> None:
        """A forward pre hook."""

class OutputSample:
    """Samples the output of one module."""

    def __init__(self, box: BlackBox, is_recomputing: object, module: str) -> None: ...

    def after(self, arg0: object, arg1: object, arg2: object | None, /) -> None:
        """A forward hook."""

def new_black_box(framework: dict, output: str, rank: int | None, steps: int) -> BlackBox: ...

class CheckedCall:
    """A call, as rows name it."""

    @property
    def api(self) -> str: ...

    @property
    def name(self) -> str: ...

    def backward(self) -> CheckedCall:
        """The same call under the name of its way back."""

class PerturbedOutput:
    """The two runs of a call, compared."""

    @property
    def is_consistent(self) -> bool: ...

    @property
    def problem(self) -> str: ...

class PerturbationCheck:
    """Runs of calls with changed inputs, compared and written down."""

    def __init__(self, recorder: Recorder, config: Config, framework: str) -> None: ...

    @property
    def modes(self) -> list[str]: ...

    @property
    def fixes(self) -> bool: ...

    @property
    def is_backward(self) -> bool: ...

    @property
    def warnings(self) -> list[str]: ...

    def begin(self, step: int, rank: int | None) -> None: ...

    def end_step(self) -> None: ...

    def close(self) -> None: ...

    def watch(self, before: object, after: object) -> None:
        """From now on the recorder's probes call these around the original."""

    def set_open(self, arg: bool, /) -> None: ...

    def preheat(self, arg: CheckedCall, /) -> int:
        """0: the call is only counted; 1: compared; 2: with the CPU, too."""

    def add_sample(self, arg0: PerturbedOutput, arg1: bool, /) -> None: ...

    def perturb(self, mode: str, source: object, target: object, seed: int) -> str:
        """
        Writes the perturbed values of `source` into `target`, a CPU tensor of the same shape; why that cannot be done, or an empty text.
        """

    def compare(self, call: CheckedCall, mode: str, original: object | None, second: object | None) -> PerturbedOutput: ...

    def compare_cpu(self, call: CheckedCall, mode: str, original: object | None, golden: object | None) -> PerturbedOutput: ...

    def wants_expected(self, arg: PerturbedOutput, /) -> bool: ...

    def explain(self, comparison: PerturbedOutput, exact: object | None, changed: object | None) -> None: ...

    def report(self, arg: PerturbedOutput, /) -> None: ...

    def skip(self, arg0: CheckedCall, arg1: str, arg2: str, /) -> None: ...

    def fixed(self, call: CheckedCall, original: list, replacement: list) -> None: ...

    def guarded(self, work: Callable) -> None:
        """Calls it as plumbline's own work, which raises nothing."""

class CommunicationWatch:
    """Values around communication calls, step by step."""

    def __init__(self, monitor: LiveMonitor, handle_type: object, operation_type: object, before: bool) -> None: ...

    def begin(self, name: str, args: tuple, kwargs: dict, masked: list, is_asked_for: bool) -> None:
        """Before every call of a function."""

    def end(self, result: object | None) -> None:
        """After the call has returned."""

    def fail(self) -> None:
        """After the call has raised."""

    @property
    def is_inside(self) -> bool:
        """Whether a call now is within another one."""

    def completed(self, handle: object) -> None:
        """The user has waited for this handle."""

    def end_step(self) -> None: ...

    def forget(self) -> None: ...

class TraceReport:
    """What a forward gave cause to say."""

    @property
    def text(self) -> str:
        """To be printed, with its line breaks."""

    @property
    def error(self) -> str:
        """Why the training should end, or empty."""

    @property
    def is_found(self) -> bool:
        """NaN or Inf; the trace is over."""

    @property
    def is_written(self) -> bool:
        """write() has something new to say."""

class ModelTracer:
    """The last forward calls before the first NaN or Inf."""

    def __init__(self, *, framework: dict, max_frames: int, traced_batches: Sequence[int], abort_after: int | None) -> None:
        """
        `framework`: parts as of new_recorder(), and magnitudes(tensor) and read(magnitudes).
        """

    def frame(self, name: str, is_root: bool, module: object, args: object | None, output: object | None) -> TraceReport | None:
        """The call of a module is over."""

    def end_early(self) -> TraceReport | None:
        """The forward of the model raised."""

    def write(self, directory: str | bytes | os.PathLike, model: str, rank: int) -> None:
        """Writes overflow_trace_rank{R}.json."""
