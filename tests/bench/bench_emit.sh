#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_emit.sh: what an event costs a C program that streams its trace, beside the least it could cost (bench_emit.c).
. tests/bench/lib.sh
[ -x build/release/tests/bench_emit ] || { say "no processor's counter here: left out"; exit 0; }
start_collector
for threads in 1 2; do
  read -r least two region switch wait lock bytes slow dropped < <(build/release/tests/bench_emit "@$dir/ready" "$dir/certs" "$threads") ||
    fail "bench_emit failed"
  [ "$dropped" = 0 ] || fail "$dropped events were dropped: the figures are of something else"
  who="the floor: a counter's reading and two numbers, same run"
  times=$(awk -v a="$two" -v b="$least" 'BEGIN { printf "%.2f", a / b }')
  row "emit two numbers, CPU of $threads thread(s)" "$two" ns "$least" "$who" -
  row "  of the floor" "$times" times - - "<= 1.6"
  row "  begin or end of a region" "$region" ns "$least" "$who" -
  row "  switch to a fiber" "$switch" ns "$least" "$who" -
  row "  block or end of a wait" "$wait" ns "$least" "$who" -
  row "  the same for a known lock" "$lock" ns "$wait" "a wait that names none, same run" -
  row "  a region's event on the wire" "$bytes" B 5 "the floor's, without tables" "<= 6"
  row "  one event in 10,000 takes longer than" "$slow" ns - - -
done
for stacks in pointers tables; do
  read -r least _ _ _ wait _ _ _ dropped < <(build/release/tests/bench_emit "@$dir/ready" "$dir/certs" 1 "$stacks") ||
    fail "bench_emit $stacks failed"
  [ "$dropped" = 0 ] || fail "$dropped events were dropped: the figures are of something else"
  row "block and end of a wait, stack by $stacks" "$(awk -v w="$wait" 'BEGIN { printf "%.2f", 2 * w }')" ns "$least" "the floor, same run" -
done
