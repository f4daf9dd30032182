#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_analyses.sh: what spans and all analyses cost over ordering, what the reports of one stream cost, and their memory;
# what `report all` of a file costs beside `check` (the peer).
# One core, CPU time, the best of five rounds in turn.
. tests/bench/lib.sh
order=build/release/tests/bench_order analyses=build/release/tests/bench_analyses
kinds=$(grep -c '^TO_ANALYSIS(' lib/online/analysis/analyses.def)
traces=$(bench_traces) || exit 1

tracectl_ms() { # ARGUMENT...: CPU time, the best of five
  local TIMEFORMAT='%U %S'
  for _ in 1 2 3 4 5; do
    { time "$bin/tracectl" "$@" --threads 1 >"$dir/out" 2>"$dir/log"; } 2>&1 || fail "tracectl $1 failed"
  done | awk '{ ms = 1000 * ($1 + $2) } NR == 1 || ms < best { best = ms } END { printf "%.0f", best }'
}

for trace in $traces; do
  name=$(basename "$trace" .trace)
  read -r _ _ plain _ < <("$order" -n 5 "$trace") || fail "bench_order failed"
  read -r _ _ states _ < <("$order" -n 5 --states "$trace") || fail "bench_order failed"
  read -r _ _ ordering more report memory _ < <("$analyses" "$trace" | tail -1) || fail "bench_analyses failed"
  row "spans of waits, $name" "$(awk -v s="$states" -v p="$plain" 'BEGIN { printf "%.1f", s - p }')" "ns/event" \
    "$plain" "ordering alone" "<= 4"
  row "ordered, $kinds analyses, $name" "$(awk -v o="$ordering" -v m="$more" 'BEGIN { printf "%.1f", o + m }')" "ns/event" \
    "$ordering" "ordering alone" "<= $(awk -v o="$ordering" 'BEGIN { printf "%.1f", 1.6 * o }')"
  row "  their reports, each in four windows, $name" "$(awk -v r="$report" 'BEGIN { printf "%.1f", r / 1000 }')" ms - - "<= 2"
  row "  their memory, $name" "$memory" KiB - - "<= 4096"
  row "report all, $name" "$(tracectl_ms report all --no-progress "$trace")" ms "$(tracectl_ms check "$trace")" "tracectl check" -
done
