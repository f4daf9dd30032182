#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [SUITE...]: builds and runs the suites (release asan tsan, or those named) and sums their cases.
#
#   release  every test, as users build it
#   asan     what reads bytes or manages memory, under AddressSanitizer and UBSan; a leak or an overflow fails its test
#   tsan     what has threads, under ThreadSanitizer
#
# docs/TESTING.md says which test goes where. One ctest entry is a binary or a script with many cases. tests/count.awk reads
# the closing line of each and prints what was skipped. The end is a table of where the time went (tests/times.awk), and
# "N passed, N failed" over all suites.
#
#   TEST_ARGS  goes on to ctest, for instance TEST_ARGS="-R store"
#   TEST_JOBS  entries at a time (four a core): most of them mostly wait, and one that computes takes several places (PROCESSORS)
#
# A whole release suite ends with tests/requirements/check.py: the tests that docs/requirements.md names have run and
# passed. It counts as one case.
set -u
cd "$(dirname "$0")/.." || exit 1
suites=("$@")
[ $# -gt 0 ] || suites=(release asan tsan)
jobs=${TEST_JOBS:-$((4 * $(nproc)))}
mkdir -p build
logs=$(mktemp -d build/test-logs.XXXXXX)
trap 'rm -rf "$logs"' EXIT
GO=$(tools/find-go.sh) && export GO
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
TIMEFORMAT='%R %U %S'

# The suites are built one after the other, while those that are built are tested; tests come first.
build_all() {
  local suite first=1
  for suite in "${suites[@]}"; do
    if { time nice -n $((first ? 0 : 10)) bash -c "cmake --preset $suite && cmake --build --preset $suite" >"$logs/build-$suite" 2>&1; } 2>"$logs/built"; then
      mv "$logs/built" "$logs/built-$suite"
    else
      mv "$logs/built" "$logs/broken-$suite"
    fi
    first=0
  done
}
tools/engines.sh list
echo "== building ${suites[*]}, one after the other"
build_all &
builder=$!

wait_for_build() { # SUITE; false if it does not build
  until [ -e "$logs/built-$1" ] || [ -e "$logs/broken-$1" ]; do
    kill -0 $builder 2>/dev/null || [ -e "$logs/built-$1" ] || return 1
    sleep 0.2
  done
  [ -e "$logs/built-$1" ]
}

passed=0 failed=0
for suite in "${suites[@]}"; do
  if ! wait_for_build "$suite"; then
    tail -60 "$logs/build-$suite"
    echo "== $suite: does not build"
    failed=$((failed + 1))
    continue
  fi
  results=$PWD/build/$suite/results
  rm -f "$results"/*
  # shellcheck disable=SC2086 # TEST_ARGS is a list
  { time ctest --test-dir "build/$suite" -V --no-tests=error "-j$jobs" --output-junit "$results/ctest.xml" ${TEST_ARGS:-} >"$logs/ctest" 2>&1 </dev/null; } 2>"$logs/tested-$suite"
  rc=$?
  awk -v suite="$suite" -v rc="$rc" -v counts="$logs/counts" -f tests/count.awk "$logs/ctest"
  read -r p f <"$logs/counts"
  echo "== $suite: $p passed, $f failed"
  passed=$((passed + p)) failed=$((failed + f))
  if [ "$suite" = release ] && [ -z "${TEST_ARGS:-}" ]; then
    if tests/requirements/check.py --build "build/$suite" --results; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  fi
done
wait $builder
echo "== where the time went: $((SECONDS / 60)) min $((SECONDS % 60)) s in all; suites are built while others are tested"
# shellcheck disable=SC2046 # each name is a word
awk -f tests/times.awk $(for suite in "${suites[@]}"; do ls "$logs/built-$suite" "$logs/tested-$suite" "build/$suite/results"/*.tap 2>/dev/null; done)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
