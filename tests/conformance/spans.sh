#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spans.sh WHERE-TIME-GOES|TRACECTL FOLDER|--fresh: how long goroutines, Ps and ranges were in which state, for which reason: the sums
# of our spans (examples/where-time-goes) against those of a plain program on Go's own public reader
# (tests/conformance/span-sums), equal to the nanosecond. FOLDER holds traces (NAME.trace.zst); --fresh makes some here and now.
# With a TRACECTL: the time of goroutines by entry function, `tracectl report goroutines` against the definitions of Go's own
# summaries, worked out once more in span-sums.
#
# FOLDER may be a sister of the checkout that is not there: that is a failure in CI and a skip (77) elsewhere.
set -u
export TZ=UTC LC_ALL=C
ours=$(realpath "$1") folder=$2
cd "$(dirname "$0")/../.." || exit 1
GO=$(tools/find-go.sh) || { echo "spans.sh: no Go here"; exit 77; }
export GO
if [ "$folder" != --fresh ] && ! ls "$folder"/*.trace.zst >/dev/null 2>&1; then
  echo "spans.sh: no traces in $folder"
  [ -n "${CI:-}" ] && { echo "0 passed, 1 failed"; exit 1; }
  exit 77
fi
mkdir -p build
work=$(mktemp -d build/spans.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p build/go-tools
theirs=$PWD/build/go-tools/span-sums # Go leaves alone what is up to date
if ! (cd tests/conformance/span-sums && GOWORK=off flock "$theirs.lock" "$GO" build -buildvcs=false -o "$theirs" .) >"$work/log" 2>&1; then
  echo "spans.sh: span-sums does not build: $(tail -1 "$work/log")"
  [ -n "${CI:-}" ] && { echo "0 passed, 1 failed"; exit 1; }
  exit 77
fi
passed=0 failed=0
our_sums() { "$ours" "$1"; }
their_sums() { "$theirs" "$1"; }
if [ "$(basename "$ours")" = tracectl ]; then
  our_sums() { python3 tests/conformance/goroutine_sums.py "$ours" "$1"; }
  their_sums() { "$theirs" --goroutines "$1"; }
fi

judge() { # NAME TRACE
  if our_sums "$2" >"$work/ours.raw" 2>"$work/why" && their_sums "$2" >"$work/theirs" 2>>"$work/why" &&
    sort "$work/ours.raw" >"$work/ours" && cmp -s "$work/ours" "$work/theirs"; then
    passed=$((passed + 1))
    return
  fi
  failed=$((failed + 1))
  echo "differs: $1: $(cat "$work/why")"
  diff "$work/ours" "$work/theirs" | head -6
}

make_traces() { # some of several generations: what goes on from one to the next is one span
  local n=0 scenarios
  tests/workload/build.sh local "$work/tracegen" 2>"$work/log" || { echo "spans.sh: $(tail -1 "$work/log")"; return; }
  for scenarios in chan,mutex,gc,stw syscall,net,annot longrun,labels,manyg midstart,sleep,gc; do
    n=$((n + 1))
    GODEBUG=traceadvanceperiod=20000000 timeout 60 "$work/tracegen" -scenario "$scenarios" -ops 300 -seconds 0.15 \
      -o "$work/trace" 2>"$work/log" || { echo "SKIP $scenarios: $(head -1 "$work/log")"; continue; }
    judge "fresh $scenarios" "$work/trace"
  done
}

if [ "$folder" = --fresh ]; then
  make_traces
else
  for trace in $(tests/conformance/sample.sh "$folder"); do
    zstd -dqf "$trace" -o "$work/trace" && judge "$(basename "$trace")" "$work/trace"
  done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
