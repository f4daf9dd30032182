#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packages.sh [BUILD [FOLDER]]: makes the Debian packages of a build (build/product) in a folder (build/packages).
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/product}
out=$(realpath -m "${2:-build/packages}")
rm -rf "$out" && mkdir -p "$out"
umask 022 # lintian and dpkg look at the folders' rights
if ! cpack --config "$build/CPackConfig.cmake" -B "$out" -D CPACK_OUTPUT_FILE_PREFIX="$out" >"$out/cpack.log" 2>&1; then
  tail -20 "$out/cpack.log" >&2
  exit 1
fi
rm -rf "$out/_CPack_Packages" "$out/cpack.log"
ls "$out"/*.deb
