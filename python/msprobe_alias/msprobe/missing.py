"""What to tell a script that asks for a name of upstream's that plumbline does not have."""

from __future__ import annotations

from typing import NoReturn

# Longest match first wins: upstream's name, then what it is and what to do.
_NOT_BUILT = {
    "msprobe.mindspore.api_accuracy_checker": "use `plumb precheck` or plumbline.precheck()",
    "msprobe.pytorch.parse": "no module to import here. Use the command `plumb parse`",
    "msprobe.pytorch.parse_tool": "no module to import here. Use the command `plumb parse`",
    "msprobe.pytorch.save": (
        "no such function, in upstream neither. Use PrecisionDebugger.save(variable, name) at "
        "level debug"
    ),
    "msprobe.pytorch.api_accuracy_checker": "use `plumb precheck` or plumbline.precheck()",
    "msprobe.pytorch.free_benchmark": (
        "no module to import here. Use task free_benchmark of PrecisionDebugger"
    ),
    "msprobe.mindspore.free_benchmark": (
        "no module to import here. Use task free_benchmark of PrecisionDebugger"
    ),
    "msprobe.pytorch.grad_probe": "use task grad_probe and PrecisionDebugger.monitor(model)",
    "msprobe.pytorch.online_dispatch": "use PtdbgDispatch of msprobe.pytorch.online_dispatch or "
    "plumbline.check_operators()",
    "msprobe.pytorch.set_fx_dump_config": "setting up torchair's dump is not built yet. Such dumps "
    "are compared by `plumb compare`",
    "msprobe.pytorch.set_ge_dump_config": "setting up torchair's dump is not built yet. Such dumps "
    "are compared by `plumb compare`",
    "msprobe.pytorch.acl_save": "saving inside captured device graphs is not built yet",
    "msprobe.pytorch.AclGraphDumper": "saving inside captured device graphs is not built yet",
    "msprobe.visualization": "graph building is not built yet",
    "msprobe.core.compare": "use `plumb compare` or plumbline.compare()",
    "msprobe.mindspore.compare": "use `plumb compare` or plumbline.compare()",
    "msprobe.core.overflow_check": "use `plumb overflow`",
    "msprobe.core.parse": "use `plumb parse`",
    "msprobe.core.acc_check": "use `plumb precheck` or plumbline.precheck()",
    "msprobe.core.monitor": "use `plumb anomaly_analyse`, plumbline.csv2tensorboard_by_step() or "
    "plumbline.pytorch.TrainerMon",
    "msprobe.core.grad_probe": "use task grad_probe and GradComparator",
    "msprobe.mindspore.grad_probe": "use task grad_probe and PrecisionDebugger.monitor(optimizer)",
    "msprobe.infer": "running offline models is not built yet",
}


def explain(name: str) -> str:
    """The message for upstream's `name`, a module or an attribute with its module."""
    for known in sorted(_NOT_BUILT, key=len, reverse=True):
        if name == known or name.startswith(f"{known}."):
            return f"{name}: {_NOT_BUILT[known]} (plumbline stands in for msprobe here)"
    return (
        f"{name}: plumbline has no counterpart of this name (it stands in for msprobe here). "
        "Only what docs/how-to/moving-from-msprobe.md lists is provided"
    )


def refuse(module: str, name: str) -> NoReturn:
    """For `__getattr__` of modules: names that only upstream has are refused with what to do."""
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    # An AttributeError would be replaced by "cannot import name" in `from msprobe.x import`.
    raise ImportError(explain(f"{module}.{name}"))
