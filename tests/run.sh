#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [SUITE...]: builds and runs the suites (release asan tsan, or those named) and sums their cases.
#
#   release  every test, as users build it
#   asan     every test under AddressSanitizer and UBSan; a leak or an overflow fails its test
#   tsan     the unit tests and the threaded end-to-end ones under ThreadSanitizer
#
# One ctest entry is a binary or a script with many cases. tests/count.awk reads the closing line of each
# and prints what was skipped; the last line here is "N passed, N failed" over all of them.
# TEST_ARGS goes to ctest, for instance TEST_ARGS="-R store".
#
# A whole release suite ends with tests/requirements/check.py: the tests that docs/requirements.md names have run and
# passed. It counts as one case.
set -u
cd "$(dirname "$0")/.." || exit 1
suites=("$@")
[ $# -gt 0 ] || suites=(release asan tsan)
mkdir -p build
logs=$(mktemp -d build/test-logs.XXXXXX)
trap 'rm -rf "$logs"' EXIT
GO=$(tools/find-go.sh) && export GO
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"

# While a suite's tests run, the next one is built with what they leave of the cores: many tests mostly wait.
build() { # SUITE [COMMAND...]: with that command in front
  local suite=$1
  shift
  "$@" cmake --preset "$suite" && "$@" cmake --build --preset "$suite"
}

passed=0 failed=0 builder=
for i in "${!suites[@]}"; do
  suite=${suites[i]} next=${suites[i + 1]:-}
  echo "== $suite: building"
  if [ -z "$builder" ]; then
    build "$suite" >"$logs/build-$suite" 2>&1 &
    builder=$!
  fi
  wait "$builder"
  built=$?
  builder=
  if [ -n "$next" ]; then
    build "$next" nice -n 10 >"$logs/build-$next" 2>&1 &
    builder=$!
  fi
  if [ $built -ne 0 ]; then
    tail -60 "$logs/build-$suite"
    echo "== $suite: does not build"
    failed=$((failed + 1))
    continue
  fi
  started=$SECONDS
  select=()
  [ "$suite" = tsan ] && select=(-L 'unit|tsan')
  results=$PWD/build/$suite/results
  rm -f "$results"/*
  # shellcheck disable=SC2086 # TEST_ARGS is a list
  ctest --test-dir "build/$suite" -V --no-tests=error -j2 --output-junit "$results/ctest.xml" "${select[@]}" ${TEST_ARGS:-} >"$logs/ctest" 2>&1 </dev/null
  rc=$?
  awk -v suite="$suite" -v rc="$rc" -v counts="$logs/counts" -f tests/count.awk "$logs/ctest"
  read -r p f <"$logs/counts"
  echo "== $suite: $p passed, $f failed in $((SECONDS - started)) s"
  passed=$((passed + p)) failed=$((failed + f))
  if [ "$suite" = release ] && [ -z "${TEST_ARGS:-}" ]; then
    if tests/requirements/check.py --build "build/$suite" --results; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
