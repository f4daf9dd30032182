#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_malloc.sh: what the preload library costs a program's malloc() and free(), where nobody asked for them to be told
# and where somebody did (bench_malloc.c), in turns with the same program alone.
. tests/bench/lib.sh
start_collector
preloaded() { # SETTING...: the program under the library
  env LD_PRELOAD=build/release/lib/libtraceagent-preload.so TRACEAGENT_SERVER="@$dir/ready" TRACEAGENT_CERTS="$dir/certs" \
    "$@" build/release/tests/bench_malloc
}
median() { sort -n | sed -n 3p; } # of five
for round in 1 2 3 4 5; do
  build/release/tests/bench_malloc >>"$dir/alone" && preloaded TRACEAGENT_DISABLE=1 >>"$dir/off" &&
    preloaded TRACEAGENT_MALLOC=0 >>"$dir/other" && preloaded TRACEAGENT_MALLOC=1 >>"$dir/on" || fail "round $round"
done
alone=$(median <"$dir/alone") who="the same program alone, same run"
row "malloc and free, library switched off" "$(median <"$dir/off")" ns "$alone" "$who" -
row "  with all else traced" "$(median <"$dir/other")" ns "$alone" "$who" -
row "  with each of them told (TRACEAGENT_MALLOC)" "$(median <"$dir/on")" ns "$alone" "$who" -
