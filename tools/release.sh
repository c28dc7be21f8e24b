#!/usr/bin/env bash
# release.sh [DIRECTORY]: makes what is published in DIRECTORY (default: dist): source archives, wheels
# for any Linux whose glibc is 2.28 or newer, SHA256SUMS and an SBOM (CycloneDX).
#
# PYTHONS="python3.11 python3.13": one wheel for each version below 3.12; the first from 3.12 on serves
# all later ones (stable ABI). Default: python3. Native libraries are compiled from the sources of the
# distribution's packages (tools/release_dependencies.sh), about 20 minutes the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-dist}" && cd "${1:-dist}" && pwd)
prefix=$PWD/build/release-dependencies
cmake=$PWD/build/release-cmake  # one for all versions, which share all but the bindings
most=25000000  # bytes of a wheel
say() { printf 'release: %s\n' "$*" >&2; }

# tools_for PYTHON: leaves in $tools an environment of that version with requirements/release.txt.
tools_for() {
  tools=$PWD/build/release-tools-$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [ -e "$tools/ready" ] && return 0
  say "installing requirements/release.txt into ${tools##*/}"
  "$1" -m venv "$tools"
  "$tools/bin/pip" install -q --disable-pip-version-check -r requirements/release.txt
  touch "$tools/ready"
}

# make_wheel PYTHON: one wheel, held against what a machine with glibc 2.28 has.
make_wheel() {
  local work sabi=()
  work=$PWD/build/release-${tools##*-}
  if "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then sabi=(-C wheel.py-api=cp312); fi
  say "wheel for $("$1" --version) (log in ${work#"$PWD/"}.log)"
  rm -rf "$work/wheel" "$work/repaired"
  CC=$PWD/tools/zig_cc CXX=$PWD/tools/zig_c++ ZIG_PYTHON=$tools/bin/python CCACHE_DISABLE=1 \
    PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig \
    "$tools/bin/pip" wheel -v . --no-deps --no-build-isolation -w "$work/wheel" "${sabi[@]}" \
    -C build-dir="$cmake" -C "cmake.define.CMAKE_AR=$PWD/tools/zig_ar" \
    -C "cmake.define.CMAKE_RANLIB=$PWD/tools/zig_ranlib" -C "cmake.define.CMAKE_PREFIX_PATH=$prefix" \
    -C "cmake.define.CMAKE_FIND_ROOT_PATH=$prefix" -C "cmake.define.PLUMBLINE_BUNDLE=$prefix" \
    -C cmake.define.PLUMBLINE_AT_ONCE=ON -C "cmake.define.CMAKE_CXX_FLAGS=-isystem $prefix/include" \
    -C install.strip=true >"$work.log" 2>&1 || { tail -n 30 "$work.log" >&2; say "see $work.log"; exit 1; }
  # OpenSSL is in the wheel already, where its libraries find it once it is installed.
  PATH=$tools/bin:$PATH auditwheel repair --plat manylinux_2_28_x86_64 \
    --exclude libcrypto.so.3 --exclude libssl.so.3 -z 9 -w "$work/repaired" \
    "$work"/wheel/*.whl >>"$work.log" 2>&1 || { tail -n 30 "$work.log" >&2; exit 1; }
  [ ${#sabi[@]} -eq 0 ] || "$tools/bin/abi3audit" --strict "$work"/repaired/*.whl
  local size
  size=$(stat -c %s "$work"/repaired/*.whl)
  [ "$size" -le "$most" ] || { say "the wheel has $size bytes, and may have $most"; exit 1; }
  cp "$work"/repaired/*.whl "$out"
}

tools/bootstrap.sh web
say 'native libraries'
for python in ${PYTHONS:-python3}; do
  tools_for "$python"
  ZIG_PYTHON=$tools/bin/python tools/release_dependencies.sh "$prefix"
  "$tools/bin/python" tools/release_sbom.py "$prefix" --licences "$prefix/LICENSES.third-party"
  make_wheel "$python"
done
say 'source archives and the alias'
"$tools/bin/python" -m build -q --no-isolation --sdist -o "$out" .
"$tools/bin/python" -m build -q --no-isolation --wheel -o "$out" python/msprobe_alias  # its version stands in the checkout
"$tools/bin/python" tools/release_sbom.py "$prefix" >"$out/plumbline.cdx.json"
"$tools/bin/twine" check --strict "$out"/*.whl "$out"/*.tar.gz
for wheel in "$out"/plumbline_numerics-*.whl; do "$tools/bin/auditwheel" show "$wheel"; done
(cd "$out" && sha256sum -- *.whl *.tar.gz *.json >SHA256SUMS)
ls -l "$out" >&2
