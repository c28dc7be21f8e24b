"""What is inside a release: a CycloneDX 1.5 document on standard output.

    python tools/release_sbom.py PREFIX [--licences FILE]

PREFIX: where tools/release_dependencies.sh left sources and libraries. With --licences the texts of
their licences are written to FILE instead, which the wheels carry.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Debian source package -> SPDX licence. Its debian/copyright has the text.
LIBRARIES = {
    "cli11": "BSD-3-Clause", "cpp-httplib": "MIT", "expat": "MIT", "fmtlib": "MIT",
    "hdf5": "BSD-3-Clause", "jemalloc": "BSD-2-Clause", "libedit": "BSD-3-Clause",
    "libisal": "BSD-3-Clause", "ncurses": "MIT", "onetbb": "Apache-2.0", "openssl": "Apache-2.0",
    "spdlog": "MIT", "sqlite3": "blessing", "xxhash": "BSD-2-Clause", "yaml-cpp": "MIT",
    "zlib": "Zlib",
}
# PyPI package -> SPDX licence of what it puts into the wheel: ziglang brings LLVM's libc++.
FROM_PYPI = {"nanobind": "BSD-3-Clause", "ziglang": "Apache-2.0 WITH LLVM-exception"}
FROM_NPM = {"preact": "MIT", "uplot": "MIT"}
TL_EXPECTED = Path("/usr/share/doc/libexpected-dev/copyright")  # CC0-1.0


def debian_version(prefix: Path, package: str) -> str:
    """The version of a source package that was unpacked in PREFIX."""
    found = [re.search(r"^Version: (\S+)$", path.read_text(), re.M)
             for path in (prefix / "sources").glob(f"{package}_*.dsc")]
    if len(found) != 1 or found[0] is None:
        raise SystemExit(f"release_sbom.py: {prefix}/sources has no one {package}_*.dsc")
    return found[0].group(1)


def component(name: str, version: str, licence: str, kind: str) -> dict[str, object]:
    """One library; `kind` is the type of its package URL."""
    qualifier = "?arch=source" if kind == "deb/debian" else ""
    return {"type": "library", "name": name, "version": version,
            "purl": f"pkg:{kind}/{name}@{version}{qualifier}",
            "licenses": [{"expression": licence}]}


def document(prefix: Path) -> dict[str, object]:
    """The bill of materials."""
    header = (ROOT / "include/plumbline/c_api.h").read_text()
    version = re.search(r'#define PLUMBLINE_VERSION "([^"]+)"', header)
    assert version is not None
    npm = json.loads((ROOT / "web/package.json").read_text())["dependencies"]
    parts = [component(name, debian_version(prefix, name), licence, "deb/debian")
             for name, licence in LIBRARIES.items()]
    parts += [component(name, importlib.metadata.version(name), licence, "pypi")
              for name, licence in FROM_PYPI.items()]
    parts += [component(name, npm[name], licence, "npm") for name, licence in FROM_NPM.items()]
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "metadata": {"component": {
                "type": "application", "name": "plumbline-numerics", "version": version.group(1),
                "licenses": [{"expression": "Apache-2.0"}]}},
            "components": parts}


def licences(prefix: Path) -> str:
    """The licence texts of everything that is compiled into a wheel or lies in it."""
    texts = {name: prefix / "work" / name / "debian/copyright" for name in LIBRARIES}
    texts["tl-expected"] = TL_EXPECTED
    for name in FROM_NPM:
        texts[name] = ROOT / "web/node_modules" / name / "LICENSE"
    for name in FROM_PYPI:
        files = importlib.metadata.files(name) or []
        texts[name] = next(Path(str(path.locate())) for path in files
                           if path.name.startswith("LICENSE"))
    return "\n".join(f"==== {name} ====\n\n{path.read_text()}" for name, path in texts.items())


def main() -> None:
    """Prints the document, or writes the licences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--licences", type=Path)
    options = parser.parse_args()
    if options.licences is not None:
        options.licences.write_text(licences(options.prefix))
    else:
        print(json.dumps(document(options.prefix), indent=2))


if __name__ == "__main__":
    main()
