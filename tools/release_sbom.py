"""Prints the software bill of materials of a release as CycloneDX 1.5 JSON.

    python tools/release_sbom.py PREFIX

PREFIX: where tools/release_dependencies.sh left sources and libraries.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Source package -> SPDX licence.
LIBRARIES = {
    "cli11": "BSD-3-Clause", "cpp-httplib": "MIT", "expat": "MIT", "fmtlib": "MIT",
    "hdf5": "BSD-3-Clause", "jemalloc": "BSD-2-Clause", "libedit": "BSD-3-Clause",
    "libisal": "BSD-3-Clause", "ncurses": "MIT", "onetbb": "Apache-2.0", "openssl": "Apache-2.0",
    "spdlog": "MIT", "sqlite3": "blessing", "xxhash": "BSD-2-Clause", "yaml-cpp": "MIT",
    "zlib": "Zlib",
}


def version_of(prefix: Path, package: str) -> str:
    """The version of a source package that was unpacked in PREFIX."""
    found = [re.search(r"^Version: (\S+)$", path.read_text(), re.M)
             for path in (prefix / "sources").glob(f"{package}_*.dsc")]
    if len(found) != 1 or found[0] is None:
        raise SystemExit(f"release_sbom.py: {prefix}/sources has no one {package}_*.dsc")
    return found[0].group(1)


def component(prefix: Path, package: str, licence: str) -> dict[str, object]:
    """One library."""
    version = version_of(prefix, package)
    return {"type": "library", "name": package, "version": version,
            "purl": f"pkg:deb/debian/{package}@{version}?arch=source",
            "licenses": [{"license": {"id": licence}}]}


def main() -> None:
    """Reads the versions and prints the document."""
    prefix = Path(sys.argv[1])
    header = (ROOT / "include/plumbline/c_api.h").read_text()
    version = re.search(r'#define PLUMBLINE_VERSION "([^"]+)"', header)
    assert version is not None
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "name": "plumbline-numerics", "version": version.group(1),
            "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [component(prefix, package, licence)
                       for package, licence in LIBRARIES.items()],
    }, indent=2))


if __name__ == "__main__":
    main()
