#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh [-v]: which part of lib/ the unit tests and the corpora of the fuzz targets run.
#
# Builds the tests of lib/ with clang's counters (Debian: clang, llvm) in build/coverage, runs them, and prints
# a line for each file and one for all: regions, lines, and branches taken both ways. -v adds the source of
# every function with a part never run, to build/coverage/lib.txt.
set -eu
cd "$(dirname "$0")/.."
for tool in clang llvm-profdata llvm-cov; do
  command -v $tool >/dev/null || { echo "coverage.sh: no $tool (Debian: clang, llvm)" >&2; exit 1; }
done
build=build/coverage
mkdir -p $build
{ cmake --preset coverage && cmake --build --preset coverage --target lib_tests; } >$build.log 2>&1 || { tail -40 $build.log; exit 1; }

rm -rf $build/profiles
LLVM_PROFILE_FILE=$PWD/$build/profiles/%12m.profraw \
  ctest --test-dir $build -L '^lib$' -j2 --no-tests=error --output-on-failure >$build.log 2>&1 || { tail -60 $build.log; exit 1; }
llvm-profdata merge -sparse $build/profiles/*.profraw -o $build/lib.profdata

objects=()
for program in "$build"/tests/test_* "$build"/fuzz/fuzz_*; do
  [ ! -x "$program" ] || objects+=(-object "$program")
done
# A name is whole, or, where ccache made it, starts at the build folder.
others="^$PWD/($build/\.\./\.\./)?(agent|collector|examples|proto|tests|tools)/|^$PWD/$build/[^.]"
report() {
  llvm-cov "$@" -instr-profile=$build/lib.profdata -ignore-filename-regex="$others" "${objects[@]:1}" 2>$build/llvm-cov.log
}
report report | awk '
  function percent(missed, all) { return all ? 100 * (all - missed) / all : 100 }
  function line(name, r, rm, l, lm, b, bm) {
    printf "%-24s %6.1f %% of %5d regions %6.1f %% of %5d lines %6.1f %% of %5d branches\n",
      name, percent(rm, r), r, percent(lm, l), l, percent(bm, b), b
  }
  NF == 13 && $1 ~ /\.[ch]$/ && $2 > 0 {
    sub(/.*lib\//, "", $1)
    line($1, $2, $3, $8, $9, $11, $12)
    r += $2; rm += $3; l += $8; lm += $9; b += $11; bm += $12
  }
  END { line("lib", r, rm, l, lm, b, bm) }'
if [ "${1:-}" = -v ]; then
  report show -show-branches=count >$build/lib.txt
  echo "the source with counts: $build/lib.txt"
fi
