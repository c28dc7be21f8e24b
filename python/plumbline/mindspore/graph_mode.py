"""How MindSpore runs graphs here: mode, jit level, device, and the names of cells in graphs."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import _c_expression, context

from plumbline import _compare


def jit_level() -> str:
    """The compile level in force: "O0", "O1" or "O2"."""
    inner: Any = context._context()
    named = dict(inner.get_jit_config() or {}).get("jit_level")
    level = named or context.get_context("jit_level")
    if level:
        return str(level)
    if context.get_context("device_target") != "Ascend":
        return "O0"
    return "O2" if inner._context_handle.get_ascend_soc_version().lower() == "ascend910" else "O0"


def execution_mode() -> str:
    """ "graph_ge" (GRAPH_MODE at jit level O2), "graph_kbyk" (GRAPH_MODE) or "pynative".

    Only Ascend has an engine for whole graphs: at O2 elsewhere kernels run one by one, too.
    """
    if context.get_context("mode") != context.GRAPH_MODE:
        return "pynative"
    has_engine = context.get_context("device_target") == "Ascend"
    return "graph_ge" if has_engine and jit_level() == "O2" else "graph_kbyk"


def place() -> _compare.GraphPlace:
    """Where graphs run."""
    device = context.get_context("device_target")
    return _compare.GraphPlace(execution_mode(), device, mindspore.__version__)


def _keep_apart(targets: list[Any]) -> None:
    """Makes every primitive of the targets unlike all others. Of equal ones MindSpore derives one
    gradient, and names it after the cell of any."""
    cells = [cell for one in targets if isinstance(one, mindspore.nn.Cell)
             for _, cell in one.cells_and_names()]  # fmt: skip
    alone = [one for one in targets if not isinstance(one, mindspore.nn.Cell)]
    held = [primitive for cell in cells for primitive in cell._primitives.values()]
    for number, primitive in enumerate([*held, *alone]):
        primitive.add_prim_attr("plumbline_dump", str(number))


def set_first_iteration(number: int) -> bool:
    """Iterations of graphs are counted from `number` on. False: not here; on CPU MindSpore 2.10
    would give every later iteration that number."""
    set_init_iter = getattr(_c_expression, "_set_init_iter", None)
    if set_init_iter is None or context.get_context("device_target") == "CPU":
        return False
    set_init_iter(number)
    return True


def scopes_of(model: Any, targets: list[Any]) -> list[str]:
    """How full names of kernels begin that cells and primitives of `model` run, below its own
    scope: "block-Block/fc1-Dense/", "relu-ReLU/ReLU-op" and "relu-ReLU/Grad_ReLU/"; "" for itself.

    The graphs that MindSpore compiles from here on name the gradients of these primitives after
    their own cells.
    """
    _keep_apart(targets)
    names, found = {"": ""}, []
    for name, cell in model.cells_and_names():
        if name:
            parent, _, own = name.rpartition(".")
            names[name] = f"{names[parent]}{own}-{type(cell).__name__}/"
        held = [([f"{one.name}-op", f"Grad_{one.name}/"], one) for one in cell._primitives.values()]
        for beginnings, candidate in [([""], cell), *held]:
            if any(candidate is target for target in targets):
                found += [names[name] + beginning for beginning in beginnings]
    return found
