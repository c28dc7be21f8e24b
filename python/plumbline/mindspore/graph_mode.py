"""How MindSpore runs graphs here: mode, jit level, device, version."""

from __future__ import annotations

from typing import Any

import mindspore
from mindspore import context

_DEVICES = {"CPU": "cpu", "GPU": "gpu", "Ascend": "ascend"}
_LAST_WITH_MD5 = (2, 7, 0)  # later releases call the digest "hash:md5"


def version() -> tuple[int, ...]:
    """The release as numbers: (2, 10, 0) of "2.10.0"."""
    parts = mindspore.__version__.split(".")[:3]
    return tuple(int("".join(c for c in part if c.isdigit()) or "0") for part in parts)


def hash_is_named_md5() -> bool:
    """Whether this release calls the MD5 column of statistic.csv "md5" in its configuration."""
    return version() <= _LAST_WITH_MD5


def device() -> str:
    """What graphs run on: "cpu", "gpu" or "ascend"."""
    return _DEVICES.get(str(context.get_context("device_target")), "ascend")


def jit_level() -> str:
    """The compile level in force: "O0", "O1" or "O2"."""
    inner: Any = context._context()
    named = dict(inner.get_jit_config() or {}).get("jit_level")
    level = named or context.get_context("jit_level")
    if level:
        return str(level)
    return "O2" if _soc() == "ascend910" else "O0"


def execution_mode() -> str:
    """What a dump of graphs depends on.

    Returns:
        "graph_ge" (GRAPH_MODE at jit level O2), "graph_kbyk" (GRAPH_MODE) or "pynative".
    """
    if context.get_context("mode") != context.GRAPH_MODE:
        return "pynative"
    return "graph_ge" if jit_level() == "O2" else "graph_kbyk"


def set_first_iteration(number: int) -> None:
    """Iterations of graphs are counted from `number` on; nothing in releases that cannot."""
    from mindspore import _c_expression

    set_init_iter = getattr(_c_expression, "_set_init_iter", None)
    if set_init_iter is not None:
        set_init_iter(number)


def _soc() -> str:
    if device() != "ascend":
        return ""
    inner: Any = context._context()
    return str(inner._context_handle.get_ascend_soc_version()).lower()
