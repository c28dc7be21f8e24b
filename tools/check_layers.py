"""Checks who includes whom: the layer table, cycles, private headers, forbidden file names.

    python tools/check_layers.py [ROOT]

Prints one line per breach and exits 1 if there is any. docs/design/architecture.md explains the
layers; this table is their only exact statement.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# Folder of src/ -> folders it may include. Every folder may include itself and include/plumbline.
LAYERS: dict[str, tuple[str, ...]] = {
    "base": (),
    "tensor": ("base",),
    "kernels": ("base", "tensor"),
    "record": ("base", "tensor", "kernels"),
    "config": ("base", "record"),
    "formats": ("base", "tensor", "record"),
    "store": ("base", "tensor", "record", "formats"),
    "capture": ("base", "tensor", "kernels", "record", "config", "store"),
    "load": ("base", "tensor", "record", "formats"),
    "match": ("base", "record", "load"),
    "measure": ("base", "tensor", "kernels", "record"),
    "report": ("base", "record", "match", "measure", "formats"),
    "view": ("base", "record", "load", "match", "measure", "report", "formats"),
    "pipeline": ("base", "tensor", "kernels", "record", "config", "formats", "store", "load",
                 "match", "measure", "report"),
}
EVERYTHING = tuple(LAYERS)
# The outer edges: they may include every layer, and nobody may include them.
EDGES = ("cli", "python/bindings")
# Programs around the library, which test or measure its inside.
TOOLS = ("benchmarks", "fuzz", "tests")
# Layers that the public headers stand for: what include/plumbline/x.h may itself include.
PUBLIC_HEADERS: dict[str, tuple[str, ...]] = {
    "result.h": (),
    "tensor.h": ("result.h",),
    "record.h": ("result.h", "tensor.h"),
    "shared_value.h": (),
    "run.h": ("result.h", "tensor.h", "record.h", "shared_value.h"),
    "compare_options.h": ("result.h",),
    "detection_limit.h": (),
    "compare.h": ("result.h", "tensor.h", "record.h", "run.h", "compare_options.h",
                  "detection_limit.h", "shared_value.h"),
    "c_api.h": (),
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
    return None


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
        if source.parts[0] == "src" and owner != "src" and owner not in LAYERS:
            breaches.append(f"{where}: unknown layer {owner} (expected one of {', '.join(LAYERS)})")
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


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    breaches = check(root)
    for line in breaches:
        print(line)
    if not breaches:
        print(f"layers: {len(sources(root))} files, no breach")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
