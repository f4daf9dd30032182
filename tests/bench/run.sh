#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...]: runs tests/bench/bench_*.sh (or those named) on the release build and prints one table.
#
# A bench script prints rows on stdout, its words on stderr:
#   MEASURE<TAB>OURS<TAB>UNIT<TAB>PEER<TAB>WHO THE PEER IS<TAB>GOAL
# OURS and PEER are numbers ("-": not measured here), GOAL is "<= N", ">= N" or "-". A peer measured in the
# same run is named alone; a figure from elsewhere says so in the fifth column. Exit 1 if a goal is missed.
set -u
cd "$(dirname "$0")/../.." || exit 1
names=("$@")
[ $# -gt 0 ] || for script in tests/bench/bench_*.sh; do
  name=${script##*/bench_}
  names+=("${name%.sh}")
done
GO=$(tools/find-go.sh) && export GO
export BENCH_DIR=${BENCH_DIR:-$PWD/build/bench}
mkdir -p "$BENCH_DIR"
{ cmake --preset release && cmake --build --preset release; } >"$BENCH_DIR/build.log" 2>&1 ||
  { tail -30 "$BENCH_DIR/build.log" >&2; echo "bench: does not build" >&2; exit 1; }

failed=0
: >"$BENCH_DIR/rows"
for name in "${names[@]}"; do
  echo "bench: $name" >&2
  "tests/bench/bench_$name.sh" >>"$BENCH_DIR/rows" || { echo "bench: $name failed" >&2; failed=1; }
done
awk -F '\t' '
  function verdict(ours, goal, n) {
    split(goal, n, " ")
    if (goal == "-" || ours == "-") return ""
    if (n[1] == "<=" ? ours + 0 <= n[2] + 0 : ours + 0 >= n[2] + 0) return "met"
    missed = 1
    return "MISSED"
  }
  function ratio(a, b) { return a == "-" || b == "-" || b + 0 == 0 ? "-" : sprintf("%.2f", a / b) }
  BEGIN {
    form = "%-46s %10s %-9s %10s %7s  %-9s %-7s %s\n"
    printf form, "measure", "ours", "unit", "peer", "ratio", "goal", "", "peer is"
  }
  NF >= 6 { printf form, $1, $2, $3, $4, ratio($2, $4), $6, verdict($2, $6), $5 }
  END { exit missed }
' "$BENCH_DIR/rows" || failed=1
printf '# %s, %s cores, %s, commit %s\n' "$(uname -sr)" "$(nproc)" "$(gcc --version | head -1)" "$(git rev-parse --short HEAD)"
exit $failed
