"""Checks who includes whom: the layer table, cycles, private headers, forbidden file names.

The same for the modules of python/plumbline and their imports.

    python tools/check_layers.py [ROOT]

Prints one line per breach and exits 1 if there is any. docs/design/architecture.md explains the
layers; this table is their only exact statement.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Folder of src/ -> folders it may include. Every folder may include itself and include/plumbline.
GROUND = ("base", "tensor", "kernels", "record", "config", "formats")
LAYERS: dict[str, tuple[str, ...]] = {
    "base": (),
    "tensor": ("base",),
    "kernels": ("base", "tensor"),
    "record": ("base", "tensor", "kernels"),
    "config": ("base", "record"),
    "formats": ("base", "tensor", "record"),
    # The training: what an observed process runs.
    "store": ("base", "tensor", "record", "formats"),
    # Between both: what a training sends to the machine that checks its calls.
    "online": ("base", "tensor", "record", "store"),
    "capture": ("base", "tensor", "kernels", "record", "config", "store", "online"),
    # The stages of the analysis, each of which may know those before it.
    "load": ("base", "tensor", "kernels", "record", "formats"),
    "match": ("base", "record", "load"),
    "measure": ("base", "tensor", "kernels", "record"),
    "verdict": (*GROUND, "load", "match", "measure"),
    "tree": ("base", "record", "formats", "measure", "verdict"),
    "explain": (*GROUND, "load", "match", "measure", "verdict"),
    "report": ("base", "record", "formats", "match", "measure", "verdict", "tree", "explain"),
}
STAGES = (*GROUND, "load", "match", "measure", "verdict", "tree", "explain",
          "report")
# Products compose stages. None includes another, but ranks may use compare.
PRODUCTS = ("compare", "ranks", "operators", "graphs", "arrays", "overflow", "run_config",
            "inspect", "precheck", "watch", "view")
LAYERS |= {product: STAGES for product in PRODUCTS}
LAYERS["ranks"] += ("compare",)
LAYERS["precheck"] += ("online",)  # the machine that checks
LAYERS["inspect"] += ("store",)  # journals, and recordings recovered in a copy
LAYERS["watch"] += ("store",)  # names of directories; a probe writes while a training runs
# Verdicts, also over ranks; levels of nodes with NaN or Inf.
LAYERS["view"] += ("compare", "ranks", "overflow")
# All folders within a folder, from the bottom up: one may include those before it and files beside
# them.
INNER: dict[str, tuple[str, ...]] = {
    "base": ("memory", "file", "text", "process"),
    "formats": ("array", "image", "json", "sqlite", "hdf5", "acl", "pytorch", "table"),
    "config": ("graph_dump",),
    "precheck": ("grading", "overflow", "parts", "reference", "online"),
    "watch": ("rules", "live", "gradients", "perturb", "tracer", "points"),
    "view": ("merge", "unshard", "store", "query", "values", "trends", "tables", "serve"),
}
EVERYTHING = tuple(LAYERS)
# The outer edges: they may include every layer, and nobody may include them.
EDGES = ("cli", "python/bindings", "src/c_api")
# Programs around the library, which test or measure its inside.
TOOLS = ("benchmarks", "fuzz", "tests")
# Layers that the public headers stand for: what include/plumbline/x.h may itself include.
PUBLIC_HEADERS: dict[str, tuple[str, ...]] = {
    "result.h": (),
    "tensor.h": ("result.h",),
    "record.h": ("result.h", "tensor.h"),
    "reference_api.h": (),
    "shared_value.h": (),
    "recorded.h": ("shared_value.h",),
    "run.h": ("result.h", "tensor.h", "record.h", "shared_value.h"),
    "compare_options.h": ("result.h",),
    "detection_limit.h": (),
    "compare.h": ("result.h", "tensor.h", "record.h", "run.h", "compare_options.h",
                  "detection_limit.h", "recorded.h", "shared_value.h"),
    "c_api.h": (),
    "cxx_api.h": ("c_api.h",),
}
SOURCE_SUFFIXES = {".h", ".cc", ".inl", ".c"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
FORBIDDEN_NAME = re.compile(r"^(util|common|const|misc)", re.IGNORECASE)
NAME_REASON = "a file is named after the concept it owns"


def sources(root: Path) -> list[Path]:
    """All C++ sources that the rules cover, sorted, as paths below `root`."""
    found = []
    for top in ("include", "src", "cli", "python/bindings", "benchmarks", "fuzz", "tests"):
        folder = root / top
        found += [path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES]
    return sorted(path.relative_to(root) for path in found)


def includes_of(path: Path) -> list[tuple[int, str, bool]]:
    """Line number, name, and whether it was written with angle brackets."""
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(2), match.group(1) == "<"))
    return found


def owner_of(path: Path) -> str:
    """The layer, edge or tool folder a source belongs to; "src" for a file directly in src/."""
    text = path.as_posix()
    for prefix in (*EDGES, *TOOLS, "include"):
        if text.startswith(prefix + "/"):
            return prefix
    parts = path.parts
    return parts[1] if len(parts) > 2 else "src"


def resolve(root: Path, source: Path, name: str, is_angled: bool) -> Path | None:
    """The project file that an #include in `source` means, or None if it is a foreign one."""
    beside = [] if is_angled else [root / source.parent]
    for base in (*beside, root / "src", root / "include", root):
        path = base / name
        if path.is_file():
            try:
                return path.resolve().relative_to(root.resolve())
            except ValueError:
                return None
    return None


def breach_of(source: Path, target: Path) -> str | None:
    """What is wrong with `source` including `target`, or None."""
    owner, included = owner_of(source), owner_of(target)
    if included == "include":
        if owner == "include":
            allowed = PUBLIC_HEADERS.get(source.name, ())
            if target.name not in allowed:
                return f"public header may not include {target.name} " \
                       f"(allowed: {', '.join(allowed) or 'none'})"
        return None
    if owner == "include":
        return f"public header may not include the private header {target.as_posix()}"
    if included in (*EDGES, *TOOLS):
        return None if owner == included else f"{owner} may not include {included}"
    allowed = LAYERS.get(owner, EVERYTHING)
    if owner != included and included not in allowed:
        return f"{owner} may not include {included} (allowed: {', '.join(allowed) or 'none'})"
    return breach_inside(source, target) if owner == included else None


def inner_of(path: Path) -> str | None:
    """The folder within its layer that a source is in; None for a file beside those folders."""
    return path.parts[2] if path.parts[0] == "src" and len(path.parts) > 3 else None


def misplaced(source: Path) -> list[str]:
    """What is wrong with the folder that a source lies in, apart from its layer."""
    owner, inner = owner_of(source), inner_of(source)
    if source.parts[0] == "src" and owner == "src":
        return ["lies in no folder of src/ (every source belongs to a layer)"]
    if inner and owner in LAYERS and inner not in INNER.get(owner, ()):
        return [f"unknown folder {inner} within {owner} (name it in INNER of check_layers.py)"]
    return []


def breach_inside(source: Path, target: Path) -> str | None:
    """What is wrong with an include within one layer, or None."""
    inner, included = inner_of(source), inner_of(target)
    if included is None or inner == included:
        return None
    order = INNER.get(source.parts[1], ())
    below = order[: order.index(inner)] if inner in order else () if inner else order
    if included in below:
        return None
    layer = source.parts[1]
    who = f"{layer}/{inner}" if inner else f"a file beside the folders of {layer}"
    return f"{who} may not include {layer}/{included} (allowed: {', '.join(below) or 'none'})"


def find_cycle(edges: dict[Path, list[Path]]) -> list[Path] | None:
    """One cycle of the include graph, first file repeated at its end, or None."""
    state: dict[Path, int] = {}  # 1: on the current path, 2: done
    for start in sorted(edges):
        if start in state:
            continue
        path, stack = [start], [iter(edges[start])]
        state[start] = 1
        while stack:
            target = next(stack[-1], None)
            if target is None:
                state[path.pop()] = 2
                stack.pop()
            elif state.get(target) == 1:
                return [*path[path.index(target):], target]
            elif target not in state:
                state[target] = 1
                path.append(target)
                stack.append(iter(edges.get(target, [])))
    return None


def check(root: Path) -> list[str]:
    """All breaches below `root`, as lines to print."""
    breaches = []
    edges: dict[Path, list[Path]] = {}
    for source in sources(root):
        where = source.as_posix()
        if FORBIDDEN_NAME.match(source.name):
            breaches.append(f"{where}: this file name is not allowed ({NAME_REASON})")
        owner = owner_of(source)
        if source.parts[0] == "src" and owner not in ("src", *EDGES, *LAYERS):
            breaches.append(f"{where}: unknown layer {owner} (expected one of {', '.join(LAYERS)})")
        breaches += [f"{where}: {reason}" for reason in misplaced(source)]
        edges[source] = []
        for number, name, is_angled in includes_of(root / source):
            target = resolve(root, source, name, is_angled)
            if target is None:
                continue
            edges[source].append(target)
            breach = breach_of(source, target)
            if breach:
                breaches.append(f"{where}:{number}: {breach}")
    for path in sorted((root / "python").rglob("*.py")) if (root / "python").is_dir() else []:
        if FORBIDDEN_NAME.match(path.name):
            where = path.relative_to(root).as_posix()
            breaches.append(f"{where}: this file name is not allowed ({NAME_REASON})")
    cycle = find_cycle(edges)
    if cycle:
        breaches.append("include cycle: " + " -> ".join(path.as_posix() for path in cycle))
    return breaches


# ---- Python: who imports whom in python/plumbline

# Groups of modules; a folder stands for all in it, unless a longer one is named. Inside a group
# everybody may import everybody, without a cycle.
PYTHON_GROUPS: dict[str, tuple[str, ...]] = {
    "native recorder": ("_core",),
    "native comparison": ("_compare",),
    "native HDF5": ("_hdf5",),
    "native references": ("_reference",),
    "hooks": ("adapter", "api_hooks", "api_list", "call_regions", "communication", "custom_apis",
              "custom_ops_file", "deliveries", "dropout", "guards", "module_hooks",
              "random_calls", "values"),
    "windows": ("call_window", "config_watch", "debugger", "launch", "module_dump",
                "operator_window", "token_window", "trace_window", "watch/grad_probe",
                "watch/perturbation"),
    "pytorch": ("pytorch",),
    "operator dumper": ("pytorch/operator_dump",),
    "operator checker": ("pytorch/operator_check",),
    "mindspore": ("mindspore",),
    "comparison": ("arguments", "checkpoint_comparison", "comparison", "comparison_result",
                   "graph_dumps", "notebook", "parallel_layout", "precheck_result",
                   "rank_comparison", "training_comparison"),
    "viewer": ("viewer",),
    "cluster": ("cluster",),
    "objects": ("objects",),
    "watch": ("watch",),
    "watch on pytorch": ("watch/on_pytorch",),
    "watch files": ("watch/__init__", "watch/conditions", "watch/csv2tb", "watch/debugger",
                    "watch/grad_comparator", "watch/tensor_statistics"),
    "configuration check": ("config_check",),
    "pre-check executors": ("precheck_run",),
    "demonstration": ("demo",),
    "package": ("__init__",),
}
# Group -> groups that it may import. A training loads no comparison and no HDF5 library: only what
# it never needs may import these.
PYTHON_LAYERS: dict[str, tuple[str, ...]] = {
    "native recorder": (),
    "native comparison": (),
    "native HDF5": (),
    "native references": (),
    "hooks": ("native recorder",),
    "windows": ("native recorder", "hooks"),
    "pytorch": ("native recorder", "hooks", "windows", "operator dumper", "watch on pytorch"),
    "operator dumper": ("native HDF5", "windows", "pytorch"),
    # It judges instead of recording.
    "operator checker": ("native comparison", "comparison"),
    # MindSpore dumps its graphs itself; planning that is a part of the native comparison.
    "mindspore": ("native recorder", "native comparison", "hooks", "windows", "watch"),
    "comparison": ("native comparison",),
    "viewer": ("native recorder", "comparison"),
    "cluster": ("comparison", "objects"),
    "objects": (),
    "watch": ("native recorder", "hooks"),
    "watch on pytorch": ("native recorder", "hooks", "pytorch", "watch"),
    "watch files": ("native comparison",),
    "configuration check": ("native recorder", "native comparison", "pytorch", "mindspore"),
    # Processes of their own, which need nothing of the recorder: only what they run.
    "pre-check executors": ("native references",),
    # Lazily.
    "demonstration": ("pytorch",),
    "package": ("native recorder", "comparison", "operator checker", "viewer", "watch",
                "watch files", "configuration check"),
}
# What an import inside a function may load: a framework or a compiler, or what brings one, or a
# native library or the drivers of a store, that most processes do not need.
LAZY_IMPORTS = ("torch", "mindspore", "triton", "ray", "fsspec.core",
                "plumbline.pytorch.device.triton_statistics", "plumbline._compare",
                "plumbline._hdf5", "plumbline.pytorch.operator_dump.session",
                "plumbline.watch.on_pytorch.transformers_callback",
                "plumbline.watch.on_pytorch.lightning_callback")


def python_modules(root: Path) -> list[Path]:
    """All modules of the package, stubs of native ones too, as paths below `root`."""
    found = (root / "python" / "plumbline").rglob("*.py*")
    return sorted(path.relative_to(root) for path in found if path.suffix in (".py", ".pyi"))


def group_of(module: Path) -> str | None:
    """The group of a module of the package, or None if the table has none for it."""
    place = module.relative_to("python/plumbline").with_suffix("")
    for part in (place, *place.parents):
        for group, members in PYTHON_GROUPS.items():
            if part.as_posix() in members:
                return group
    return None


def imported_names(tree: ast.Module, package: str) -> Iterator[tuple[int, list[str], bool]]:
    """(line, candidates, is inside a function) of every import; of the candidates, dotted names,
    the first one that is a module is meant.

    `package`: dotted name of the folder of the module, which relative imports start from.
    """
    def visit(node: ast.AST, is_inside: bool) -> Iterator[tuple[int, list[str], bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield child.lineno, [alias.name], is_inside
            elif isinstance(child, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - child.level + 1]
                parts = [*(above if child.level else []), *([child.module] if child.module else [])]
                base = ".".join(parts)
                for alias in child.names:
                    yield child.lineno, [f"{base}.{alias.name}", base], is_inside
            else:
                is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from visit(child, is_inside or is_function)

    return visit(tree, False)


def module_named(root: Path, name: str) -> Path | None:
    """The file of the package that has this dotted name, or None."""
    if name.split(".")[0] != "plumbline":
        return None
    place = Path("python", *name.split("."))
    for path in (place.with_suffix(".py"), place.with_suffix(".pyi"), place / "__init__.py"):
        if (root / path).is_file():
            return path
    return None


def is_lazy(name: str) -> bool:
    """Whether an import inside a function may load this."""
    return any(name == lazy or name.startswith(lazy + ".") for lazy in LAZY_IMPORTS)


def check_python(root: Path) -> list[str]:
    """All breaches of the package's imports, as lines to print."""
    breaches = []
    edges: dict[Path, list[Path]] = {}
    for module in python_modules(root):
        where, group = module.as_posix(), group_of(module)
        if group is None:
            breaches.append(f"{where}: in no group (name it in PYTHON_GROUPS of check_layers.py)")
            continue
        edges[module] = []
        if module.suffix == ".pyi":
            continue
        package = ".".join(module.parent.parts[1:])
        allowed = PYTHON_LAYERS[group]
        tree = ast.parse((root / module).read_text())
        for line, names, is_inside in imported_names(tree, package):
            target = next(filter(None, (module_named(root, name) for name in names)), None)
            if is_inside and not any(is_lazy(name) for name in names):
                breaches.append(f"{where}:{line}: imports {names[-1]} inside a function (allowed: "
                                f"{', '.join(LAZY_IMPORTS)})")
            if target is None:
                continue
            edges[module].append(target)
            other = group_of(target)
            if other is not None and other != group and other not in allowed:
                breaches.append(f"{where}:{line}: {group} may not import {other} "
                                f"(allowed: {', '.join(allowed) or 'none'})")
    cycle = find_cycle(edges)
    if cycle:
        breaches.append("import cycle: " + " -> ".join(path.as_posix() for path in cycle))
    return breaches


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    breaches = check(root) + check_python(root)
    for line in breaches:
        print(line)
    if not breaches:
        files = len(sources(root)) + len(python_modules(root))
        print(f"layers: {files} files, no breach")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
