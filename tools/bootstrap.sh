#!/usr/bin/env bash
# Installs what is missing and builds what is stale. Each part leaves a stamp that holds the hash of
# its inputs, so that a second run only compares hashes.
#
#   tools/bootstrap.sh [PART ...]     (no argument: packages python-native)
#
#   packages   Debian packages of tools/debian-packages.txt (needs root or sudo only if any is missing)
#   test-packages  those of tools/debian-packages-test.txt (missing ones stop nothing)
#   python     .venv with the locked requirements
#   release    the preset `release`, compiled without a word; who needs it says what fails
#   web        build/web/dist: the page of plumb view, which native embeds; installs nodejs and npm
#              only where a command is missing
#   native     plumbline and the program plumb, installed into .venv
#   python-native  the three at once
#   upstream   build/upstream/<version>: the real upstream tool, for compatibility tests, benchmarks
#   mindspore  build/mindspore: MindSpore for tests/mindspore, apart because it needs NumPy 1
#   optional   build/optional: Triton, TorchAO, diffusers, timm, ONNX Runtime, for one test each
#   parallel   build/parallel: DeepSpeed and Megatron-Core, for one test
#   cluster    build/cluster: Ray, for one test and one benchmark
#   objects    build/objects: s3fs and a server that speaks S3, for one test
#   test-device  build/test_device: a PyTorch device for tests on machines that have none
set -Eeuo pipefail
trap 'echo "setup: error: line $LINENO of tools/bootstrap.sh failed: $BASH_COMMAND" >&2' ERR
cd "$(dirname "$0")/.."
stamps=build/stamps
mkdir -p "$stamps"

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: error: %s\n' "$*" >&2
  local free
  free=$(df --output=avail -BM . 2>/dev/null | tr -dc '0-9')
  [ "${free:-10000}" -ge 4000 ] || printf 'setup: error: only %s MB are free on this disk; 12 GB are needed\n' "$free" >&2
  exit 3
}

# up_to_date NAME HASH: whether the stamp NAME holds HASH.
up_to_date() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }
hash_text() { sha256sum | cut -d' ' -f1; }

# Fuzzing needs clang; without it every other test runs, so its packages are a wish.
install_packages() { install_from tools/debian-packages.txt; }
install_test_packages() { (install_from tools/debian-packages-test.txt) || say 'going on without'; }

install_from() {
  command -v dpkg-query >/dev/null || {
    say "not a Debian system: packages are not checked; install what $1 names"
    return 0
  }
  local wanted missing=() as_root=()
  wanted=$(grep -v '^#' "$1")
  local package
  for package in $wanted; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "system packages of $1: complete"
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || {
      fail "these system packages are missing and this user may not install them:
  ${missing[*]}
Ask an administrator to run:
  apt-get install ${missing[*]}"
    }
    as_root=(sudo -n)
  fi
  say "installing system packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get update -qq || say 'apt-get update failed; trying with the lists at hand'
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

# Compiling every installed module would take longer than to compile those that are imported.
pip_install() { .venv/bin/python -m pip install -q --disable-pip-version-check --no-compile "$@"; }

python_hash() {
  { "${PYTHON:-python3}" -c 'import sys; print(sys.version)'; cat requirements/dev.txt; } | hash_text
}

python_is_up_to_date() { up_to_date python "$(python_hash)" && [ -x .venv/bin/python ]; }

# The page is built before the native build, which embeds it. Without Node.js everything else works,
# and `plumb view` says what is missing.
make_web() {
  local build_hash
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    (install_from tools/debian-packages-web.txt) || { without_web 'Node.js and npm are missing'; return; }
  fi
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 18 ? 1 : 0)' 2>/dev/null ||
    { without_web 'Node.js 18 or newer with npm is needed'; return; }
  build_hash=$(web_hash)
  if up_to_date web "$build_hash" && [ -f build/web/dist/index.html ]; then
    say 'the page build/web/dist: up to date'
    return 0
  fi
  fill_node_modules && build_web && printf '%s' "$build_hash" >"$stamps/web"
}

web_hash() {
  { node --version
    find web -name node_modules -prune -o -type f ! -path 'web/dev/*' -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum; } | hash_text
}

without_web() {
  [ -z "${CI:-}" ] || fail "$1"
  say "$1: the page of plumb view is not built; all else is"
}

fill_node_modules() {
  local hash log=build/web.log
  hash=$({ node --version; cat web/package.json web/package-lock.json; } | hash_text)
  up_to_date node-modules "$hash" && [ -d web/node_modules ] && return 0
  say "web/node_modules: installing web/package-lock.json (log in $log)"
  rm -f "$stamps/node-modules"
  # The lock file names what is to be run: of all packages only esbuild has anything, which it can
  # do without.
  if ! (cd web && npm ci --ignore-scripts --no-progress) >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    without_web "npm could not install web/package-lock.json; is a package registry reachable? The log is $log"
    return 1
  fi
  printf '%s' "$hash" >"$stamps/node-modules"
}

build_web() {
  local log=build/web.log
  say "the page build/web/dist: building (log in $log)"
  rm -f "$stamps/web"
  if ! (cd web && npm run --silent check && npm run --silent build) >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "the page was not built; the whole log is $log"
  fi
}

# An interrupted pip leaves a broken environment; its stamp is removed first and written last.
make_venv() {
  local python=${PYTHON:-python3}
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail "$python: Python 3.10 or newer is needed; set PYTHON to one"
  rm -f "$stamps/python"
  [ -x .venv/bin/python ] && .venv/bin/python -m pip --version >/dev/null 2>&1 ||
    "$python" -m venv --clear .venv || fail 'cannot create .venv (package python3-venv)'
}

fill_venv() {
  say 'Python environment .venv: installing requirements/dev.txt (about 1 GB, some minutes)'
  pip_install -r requirements/dev.txt ||
    fail 'pip could not install requirements/dev.txt; is a package index reachable?'
  python_hash >"$stamps/python"
}

make_python() {
  if python_is_up_to_date; then
    say 'Python environment .venv: up to date'
    return 0
  fi
  make_venv
  fill_venv
}

# The two together: the compiler needs a few small packages, and works while the large ones come.
make_python_and_native() {
  local filling tools web
  if python_is_up_to_date; then
    make_python
    make_web || [ -z "${CI:-}" ]
    build_native
    return 0
  fi
  make_web &
  web=$!
  make_venv
  tools=$(grep -E '^(nanobind|scikit[-_]build[-_]core|packaging|pathspec)==' requirements/dev.txt)
  # shellcheck disable=SC2086
  pip_install --no-deps $tools || fail 'pip could not install the build tools; is a package index reachable?'
  wait "$web" || [ -z "${CI:-}" ] || fail 'the page was not built'
  fill_venv &
  filling=$!
  build_native
  wait "$filling"
}

native_hash() {
  { python_hash
    find CMakeLists.txt pyproject.toml README.md LICENSE cmake include src cli python tests/CMakeLists.txt \
      $([ -d build/web/dist ] && echo build/web/dist) \
      -name __pycache__ -prune -o -type f -print0 2>/dev/null |
      LC_ALL=C sort -z | xargs -0 sha256sum; } | hash_text
}

build_native() {
  local hash log=build/wheel.log precompiled=ON at_once=ON
  hash=$(native_hash)
  if up_to_date native "$hash" && [ -x .venv/bin/plumb ]; then
    say 'plumbline and plumb: up to date'
    return 0
  fi
  say "plumbline and plumb: building (log in $log)"
  rm -rf "$stamps/native" build/dist
  # Alone, the wheel is compiled in the quick way. Beside the preset release it is compiled as that
  # is, by the same compiler's name: ccache has the objects then.
  if [ -d build/release ]; then
    precompiled=OFF
    grep -q '^PLUMBLINE_AT_ONCE:BOOL=ON' build/release/CMakeCache.txt 2>/dev/null || at_once=OFF
  fi
  if ! CXX=${CXX:-c++} CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} .venv/bin/python -m pip wheel -v \
      --config-settings="cmake.define.PLUMBLINE_PRECOMPILE=$precompiled" \
      --config-settings="cmake.define.PLUMBLINE_AT_ONCE=$at_once" \
      --config-settings="cmake.define.PLUMBLINE_WERROR=${CI:+ON}" \
      --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir build/dist . >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "the native build failed; the whole log is $log"
  fi
  # The name of the distribution until version 0.1.0: two would own the same files.
  .venv/bin/python -m pip uninstall -q -y --disable-pip-version-check plumbline >>"$log" 2>&1
  pip_install --no-deps --no-index --force-reinstall build/dist/*.whl
  printf '%s' "$hash" >"$stamps/native"
}

compile_release() {
  local log=build/release.log
  say "the preset release: compiling (log in $log)"
  { cmake --preset release --log-level=WARNING ${CI:+-DPLUMBLINE_AT_ONCE=ON} &&
    cmake --build --preset release; } >"$log" 2>&1 ||
    say "the preset release: not all of it compiles"
}

# make_beside NAME ENV LIST CHECK [OPTION ...]: ENV, an environment that has the packages of LIST and shares all
# others with .venv through a .pth file: own packages come first on sys.path, so an older NumPy wins
# where it is pinned. CHECK is a Python statement that has to run in it; pip gets the options.
make_beside() {
  local name=$1 env=$2 list=$3 check=$4 hash site
  shift 4
  hash=$({ cat "$stamps/python" "$list"; pwd; } | hash_text)
  if up_to_date "$name" "$hash" && [ -x "$env/bin/python" ]; then
    say "$env: up to date"
    return 0
  fi
  say "installing $list into $env"
  rm -rf "$env" "$stamps/$name"
  .venv/bin/python -m venv --without-pip "$env"
  site=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$site/shared_with_main_environment.pth"
  .venv/bin/python -m pip --python "$env/bin/python" install -q --disable-pip-version-check \
    --no-compile --no-deps "$@" -r "$list" || fail "pip could not install $list"
  "$env/bin/python" -W ignore -c "$check" >/dev/null || fail "$env: \"$check\" does not run"
  printf '%s' "$hash" >"$stamps/$name"
}

make_upstream() {
  local version
  for version in 1.2.2 26.2.0; do
    make_beside "upstream-$version" "build/upstream/$version" "requirements/upstream-$version.txt" \
      'import transformers, msprobe.pytorch'
  done
}

make_mindspore() {
  make_beside mindspore build/mindspore requirements/mindspore.txt \
    'import mindspore; mindspore.Tensor([1.0]).asnumpy()'
}

make_optional() {
  make_beside optional build/optional requirements/optional.txt \
    'import triton, torch, diffusers, timm, onnx, onnxruntime'
}

# DeepSpeed comes as source: it asks the installed torch what to build, which is nothing here.
make_parallel() {
  DS_BUILD_OPS=0 DS_ACCELERATOR=cpu make_beside parallel build/parallel requirements/parallel.txt \
    'import deepspeed, megatron.core' --no-build-isolation
}

make_cluster() {
  make_beside cluster build/cluster requirements/cluster.txt 'import ray, ray.cluster_utils'
}

make_objects() {
  make_beside objects build/objects requirements/objects.txt 'import s3fs, moto.server'
}

# Its program knows itself what is stale: tests call it too.
build_test_device() {
  .venv/bin/python tests/test_device/build.py || fail 'the test device was not built'
}

[ $# -gt 0 ] || set -- packages python-native
for part in "$@"; do
  case $part in
    packages) install_packages ;;
    test-packages) install_test_packages ;;
    python) make_python ;;
    web) make_web ;;
    release) compile_release ;;
    native) build_native ;;
    python-native) make_python_and_native ;;
    upstream) make_upstream ;;
    mindspore) make_mindspore ;;
    optional) make_optional ;;
    parallel) make_parallel ;;
    cluster) make_cluster ;;
    objects) make_objects ;;
    test-device) build_test_device ;;
    *) fail "unknown part \"$part\" (expected packages, test-packages, python, web, release, native," \
      "python-native, upstream, mindspore, optional, parallel, cluster, objects, test-device)" ;;
  esac
done
