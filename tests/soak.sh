#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# soak.sh: what `make test` samples, whole: each entry of the release build with TC_FULL=1, lint over all files, the simulator at length, a million broken traces
# beside Go's reader, each fuzz target for a minute. Hours. It needs the real servers of `make engines`.
#
#   SOAK_ARGS  goes on to ctest, for instance SOAK_ARGS="-L fault": that part alone
#
# Its table, a line an entry, stays in build/soak.txt. The last line is "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
if ! tools/engines.sh list; then
  echo "soak: an engine is missing: TRACECOLLECT_ENGINES=FOLDER make engines" >&2
  exit 1
fi
GO=$(tools/find-go.sh) && export GO
export GOFLAGS="${GOFLAGS:-} -buildvcs=false" CI=${CI:-true} TC_FULL=1 LC_ALL=C.UTF-8
logs=$(mktemp -d build/soak-logs.XXXXXX)
trap 'rm -rf "$logs"' EXIT
: >build/soak.txt
passed=0 failed=0

cmake --preset release -DTC_FULL=ON >"$logs/cmake" || exit 1
# shellcheck disable=SC2086 # SOAK_ARGS is a list
ctest --test-dir build/release -V --no-tests=error "-j$((3 * $(nproc)))" ${SOAK_ARGS:-} >"$logs/ctest" 2>&1 </dev/null
rc=$?
cmake --preset release -DTC_FULL=OFF >"$logs/cmake"
awk -v suite=soak -v rc=$rc -v counts="$logs/counts" -f tests/count.awk "$logs/ctest" | tee -a build/soak.txt
read -r passed failed <"$logs/counts"

alone() { # NAME COMMAND...
  local name=$1 began=$SECONDS verdict=ok
  shift
  if "$@" >"$logs/$name" 2>&1; then passed=$((passed + 1)); else
    failed=$((failed + 1)) verdict=FAILED
    tail -40 "$logs/$name"
  fi
  printf 'soak: %-34s %7s s  %s  %s\n' "$name" $((SECONDS - began)) "$verdict" "$(tail -1 "$logs/$name")" | tee -a build/soak.txt
}
if [ -z "${SOAK_ARGS:-}" ]; then
  alone lint make lint
  alone sim make sim
  alone oracle make oracle
  alone fuzz tests/fuzz/run.sh 60
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
