"""Checks the size caps of C++ and Python sources and prints the ten largest of each kind.

    python tools/check_sizes.py [ROOT]

A file over a cap passes only if its first comment holds a line `Size caps: <reason>`. Exit 1 if
any other file breaks a cap. C++ functions are found by braces, not by a compiler: after comments,
strings and preprocessor lines are blanked out, a brace that follows a parameter list opens a
function unless a control keyword stands before it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CAPS = {"file": 800, "header": 300, "function": 60, "test function": 40, "parameters": 5,
        "nesting": 3}
# Lines of Python: framework hook layers stay thin (docs/design/architecture.md).
FRAMEWORK_BUDGET = 1400
# python/plumbline/pytorch/device: what tensors on accelerators need beside the hooks.
DEVICE_BUDGET = 700
PACKAGE_BUDGET = 6500
FRAMEWORKS = ("pytorch", "mindspore")
# A folder of src/ holds few and full files: a unit is a header with its source and its test. The
# smallest header that may have a single includer.
UNITS_OF_FOLDER = 30
LONE_HEADER = 40
# Beside the hook layers: nothing of these runs while a training is recorded (perturbation.py takes
# the place of recording, and so does operator_check.py; point_saves.py is what a network of the
# user's calls, with or without a recording). The last five, cluster.py, which spreads a comparison
# over machines, and objects.py, which fetches what `plumb` reads from a store, only read recordings
# that are complete; precheck_run is the processes of a pre-check.
NOT_COUNTED = {"demo", "golden_ops", "config_check", "operator_dump", "precheck_run", "watch",
               "cluster.py", "objects.py", "comparison.py", "comparison_result.py",
               "rank_comparison.py", "graph_dumps.py", "operator_check.py", "perturbation.py",
               "point_saves.py", "precheck_result.py"}
EXCUSE = re.compile(r"Size caps: \S")
EXCUSE_LINES = 40
CXX_FOLDERS = ("include", "src", "cli", "python/bindings", "benchmarks", "fuzz", "tests")
WEB_FOLDER = "web"  # sources of the page: TypeScript, and its style
PYTHON_FOLDERS = ("python", "tools", "tests", "benchmarks", "examples")

CONTROL = ("if", "for", "while", "switch", "catch", "do", "else", "try")
CONTROL_BLOCK = re.compile(r"^(else\s+)?(if|for|while|switch|catch)\b|^(do|else|try)$")
FUNCTION_HEAD = re.compile(r"([~\w:<>]+|operator\s*\S+)\s*\($")
# A brace after a name in a constructor's initialisers: Thing::Thing(int a) : a_(a), b_{
MEMBER_BRACE = re.compile(r"\)\s*:[^:].*[\w>]$|\)\s*:\s*[\w:<>]+$", re.DOTALL)
TEST_HEAD = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST)\b")


@dataclass(frozen=True)
class Measure:
    """One measured thing: which cap it falls under, where it is, how large."""

    kind: str
    where: str
    size: int


def blank_cxx(text: str) -> str:
    """`text` with comments, literals and preprocessor lines turned into spaces."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
    return token.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def matching_open(text: str, close: int) -> int:
    """Index of the parenthesis that the one at `close` closes; -1 if there is none."""
    depth = 0
    for index in range(close, -1, -1):
        if text[index] == ")":
            depth += 1
        elif text[index] == "(":
            depth -= 1
            if depth == 0:
                return index
    return -1


def count_parameters(text: str) -> int:
    """Number of parameters in the text between a function's parentheses."""
    if not text.strip() or text.strip() == "void":
        return 0
    depth, count = 0, 1
    for char in text:
        if char in "(<[{":
            depth += 1
        elif char in ")>]}":
            depth -= 1
        elif char == "," and depth == 0:
            count += 1
    return count


def function_head(head: str) -> tuple[str, int] | None:
    """Name and parameter count if `head`, the text before a brace, declares a function."""
    head = re.sub(r"\s+", " ", head).strip()
    head = re.sub(r"\)\s*:\s*[\w:]+\s*[({].*$", ")", head)  # constructor initialisers
    head = re.sub(r"\)\s*->[^)]*$", ")", head)
    head = re.sub(r"(\s*(const|noexcept|override|final|mutable|&&?|requires [^)]*\)))+$", "", head)
    if not head.endswith(")"):
        return None
    opening = matching_open(head, len(head) - 1)
    match = FUNCTION_HEAD.search(head[: opening + 1])
    if opening < 0 or not match:
        return None
    name = match.group(1)
    before = head[: match.start()]
    if name in CONTROL or name in ("constexpr",) or "=" in before.replace("==", ""):
        return None
    parameters = head[opening + 1 : -1]
    if TEST_HEAD.match(name):
        return f"{name}({parameters})", 0
    return name, count_parameters(parameters)


def cxx_functions(path: Path, where: str) -> Iterator[Measure]:
    """Length, parameters and nesting of every function in a C++ file."""
    text = blank_cxx(path.read_text(errors="replace"))
    blocks: list[str] = []  # "function", "control", "other"
    head_start, parens, line = 0, 0, 1
    current, first_line, deepest = "", 0, 0
    for index, char in enumerate(text):
        if char == "\n":
            line += 1
        elif char in "()":
            parens += 1 if char == "(" else -1
        elif char == ";" and parens == 0:
            head_start = index + 1
        elif parens > 0 and "function" not in blocks:
            continue  # braces of a default argument
        elif char == "{":
            head = text[head_start:index].strip()
            if "function" not in blocks and MEMBER_BRACE.search(head):
                blocks.append("member")
                continue
            found = None if "function" in blocks or parens else function_head(head)
            if found:
                blocks.append("function")
                current, first_line, deepest = found[0], line - head.count("\n"), 0
                yield Measure("parameters", f"{where}: {current}", found[1])
            elif "function" in blocks and CONTROL_BLOCK.match(re.sub(r"\s+", " ", head)):
                blocks.append("control")
                deepest = max(deepest, blocks.count("control"))
            else:
                blocks.append("other")
            head_start = index + 1
        elif char == "}" and blocks:
            closed = blocks.pop()
            if closed == "member":
                continue
            if closed == "function":
                kind = "test function" if TEST_HEAD.match(current) else "function"
                yield Measure(kind, f"{where}: {current}", line - first_line + 1)
                yield Measure("nesting", f"{where}: {current}", deepest)
            head_start = index + 1


def python_nesting(node: ast.AST, depth: int = 0) -> int:
    """Deepest nesting of control statements below `node`."""
    control = (ast.If, ast.For, ast.While, ast.Try)
    deepest = depth
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef):
                continue
            # An elif is an If alone in the orelse of an If; it does not nest deeper.
            is_elif = isinstance(node, ast.If) and field == "orelse" and len(value) == 1
            deeper = isinstance(child, control) and not (is_elif and isinstance(child, ast.If))
            deepest = max(deepest, python_nesting(child, depth + deeper))
    return deepest


def python_functions(path: Path, where: str) -> Iterator[Measure]:
    """Length, parameters and nesting of every function in a Python file."""
    for node in ast.walk(ast.parse(path.read_text())):  # nested functions too
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = f"{where}: {node.name}"
        kind = "test function" if node.name.startswith("test_") else "function"
        yield Measure(kind, name, (node.end_lineno or node.lineno) - node.lineno + 1)
        arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        if "fixture" not in ast.dump(ast.Module(node.decorator_list, [])) and kind == "function":
            own = [name for name in arguments if name not in ("self", "cls")]
            yield Measure("parameters", name, len(own))
        yield Measure("nesting", name, python_nesting(node))


def measures_of(root: Path) -> list[tuple[Path, list[Measure]]]:
    """Every measured file below `root` with what was measured in it."""
    found = []
    cxx = [path for top in CXX_FOLDERS for path in sorted((root / top).rglob("*"))
           if path.suffix in (".h", ".cc", ".inl", ".c")]
    python = [path for top in PYTHON_FOLDERS for path in sorted((root / top).rglob("*.py"))]
    for path in (*cxx, *python):
        where = path.relative_to(root).as_posix()
        lines = len(path.read_text(errors="replace").splitlines())
        of_file = [Measure("header" if path.suffix == ".h" else "file", where, lines)]
        parser = python_functions if path.suffix == ".py" else cxx_functions
        of_file += parser(path, where)
        found.append((path, of_file))
    for path in sorted((root / WEB_FOLDER).rglob("*")):
        if path.suffix in (".ts", ".tsx", ".mjs", ".css") and "node_modules" not in path.parts:
            where = path.relative_to(root).as_posix()
            lines = len(path.read_text(errors="replace").splitlines())
            found.append((path, [Measure("file", where, lines)]))
    return found


def is_excused(path: Path) -> bool:
    """Whether the head of the file gives a reason for breaking a cap."""
    head = path.read_text(errors="replace").splitlines()[:EXCUSE_LINES]
    return any(EXCUSE.search(line) for line in head)


def check_budgets(root: Path) -> list[str]:
    """Breaches of the line budgets of the Python package."""
    package = root / "python" / "plumbline"
    breaches = []
    lines = {path: len(path.read_text().splitlines()) for path in package.rglob("*.py")
             if NOT_COUNTED.isdisjoint(path.parts)}
    device = package / "pytorch" / "device"
    for room, budget in (*((package / name, FRAMEWORK_BUDGET) for name in FRAMEWORKS),
                         (device, DEVICE_BUDGET)):
        own = {path: count for path, count in lines.items()
               if room in path.parents and (room == device or device not in path.parents)}
        where = room.relative_to(root).as_posix()
        print(f"{where}: {sum(own.values())} lines (budget {budget})")
        if sum(own.values()) > budget:
            breaches.append(f"{where}: {sum(own.values())} lines (expected at most {budget})")
        for path in own:
            if re.search(r"(?<![\w.])open\(", path.read_text()):
                breaches.append(f"{path.relative_to(root)}: opens a file; files belong to _core")
    if sum(lines.values()) > PACKAGE_BUDGET:
        breaches.append(f"python/plumbline: {sum(lines.values())} lines "
                        f"(expected at most {PACKAGE_BUDGET})")
    return breaches


def check_folders(root: Path) -> list[str]:
    """Folders of src/ with too many units, and headers too small for the one file they serve."""
    breaches = []
    units: dict[Path, set[str]] = {}
    includers: dict[str, set[str]] = {}
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cc", ".inl"):
            continue
        stem = re.sub(r"(_for)?_test$", "", path.stem)
        units.setdefault(path.parent, set()).add(stem)
    for top in CXX_FOLDERS:
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".cc", ".inl", ".c"):
                for name in re.findall(r'#include "([^"]+)"', path.read_text(errors="replace")):
                    includers.setdefault(name, set()).add(path.relative_to(root).as_posix())
    for folder, names in sorted(units.items()):
        if len(names) > UNITS_OF_FOLDER:
            breaches.append(f"{folder.relative_to(root)}: {len(names)} units "
                            f"(at most {UNITS_OF_FOLDER})")
    for path in sorted((root / "src").rglob("*.h")):
        name = path.relative_to(root / "src").as_posix()
        own = {f"src/{name[:-2]}.cc", f"src/{name[:-2]}_test.cc"}
        lines = len(path.read_text(errors="replace").splitlines())
        users = includers.get(name, set()) - own
        if len(users) == 1 and lines < LONE_HEADER and not is_excused(path):
            user = users.pop()
            if user.endswith(".h") and Path(user).parent == Path("src", name).parent:
                breaches.append(f"src/{name}: {lines} lines for {user} alone; merge them")
    return breaches


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    measured = measures_of(root)
    breaches = check_budgets(root) + check_folders(root)
    for kind, cap in CAPS.items():
        of_kind = [measure for _, group in measured for measure in group if measure.kind == kind]
        largest = sorted(of_kind, key=lambda measure: -measure.size)[:10]
        print(f"\nlargest {kind} (cap {cap}, {len(of_kind)} measured)")
        for measure in largest:
            print(f"{measure.size:6}  {measure.where}")
    for path, group in measured:
        over = [measure for measure in group if measure.size > CAPS[measure.kind]]
        if over and not is_excused(path):
            breaches += [f"{m.where}: {m.kind} {m.size} (cap {CAPS[m.kind]})" for m in over]
    print()
    for breach in breaches:
        print(breach)
    if not breaches:
        print(f"sizes: {len(measured)} files, no breach")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
