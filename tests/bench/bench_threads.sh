#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_threads.sh: what programs of many quiet threads lose and cost (bench_threads.c): nothing may be lost in the
# default memory up to 2,000 threads, in 64 MiB at 10,000.
. tests/bench/lib.sh
seconds=${BENCH_SECONDS:-8}
start_collector
for pair in "16 16" "200 16" "2000 16" "10000 64"; do
  read -r threads mib <<<"$pair"
  read -r plain _ < <(build/release/tests/bench_threads "$threads" "$seconds") || fail "bench_threads failed"
  read -r cpu generations lost dropped bytes rss < <(build/release/tests/bench_threads "$threads" "$seconds" "@$dir/ready" "$dir/certs" "$mib") ||
    fail "bench_threads failed with $threads threads"
  [ "$generations" -gt 1 ] || fail "no generation ended"
  row "$threads threads at 20 calls/s: generations lost" "$lost" of "$generations" "generations" "<= 0"
  row "  events dropped, in $mib MiB" "$dropped" events - - "<= 0"
  row "  CPU of the program in a second" "$cpu" ms "$plain" "the same program untraced" -
  row "  trace" "$(awk -v b="$bytes" 'BEGIN { printf "%.1f", b / 1000 }')" KB/s - - -
  row "  resident memory at most" "$(awk -v r="$rss" 'BEGIN { printf "%.1f", r / 1024 }')" MiB - - -
done
