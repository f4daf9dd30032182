#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_lttng.sh: LTTng-UST's event and ours, on and off, one after the other in the same minute (lttng_loop.c, bench_emit.c,
# bench_points.c). Wants liblttng-ust-dev and lttng-tools; its session daemon is one of our own, in a folder of our own.
. tests/bench/lib.sh
command -v lttng lttng-sessiond >/dev/null && pkg-config --exists lttng-ust ||
  { say "no liblttng-ust-dev and lttng-tools here: left out"; exit 0; }
[ -x build/release/tests/bench_emit ] || { say "no processor's counter here: left out"; exit 0; }

export LTTNG_HOME=$dir/lttng
mkdir -p "$LTTNG_HOME"
cc -O2 -Itests/bench -o "$dir/loop" tests/bench/lttng_loop.c -llttng-ust -ldl -pthread || fail "lttng_loop.c does not build"
lttng-sessiond --no-kernel >"$dir/log" 2>&1 &
sessiond=$!
end_sessiond() { kill "$sessiond" 2>/dev/null && wait "$sessiond" 2>/dev/null; }
trap 'end_sessiond; end_collector; rm -rf "$dir"' EXIT
for ((i = 0; i < 100; i++)); do lttng list >/dev/null 2>&1 && break; sleep 0.1; done

ask() { lttng "$@" >"$dir/log" 2>&1 || fail "lttng $1 failed"; }
measure() { # THREADS EVENTS: ns an event with a session that writes to files
  ask create bench --output="$dir/out"
  ask enable-channel -u c --discard --subbuf-size=1M --num-subbuf=8
  ask enable-event -u tracecollect_bench:two_numbers -c c
  ask start
  "$dir/loop" "$1" "$2"
  ask stop
  discarded=$(lttng list bench | awk '/Discarded events/ { print $3 }')
  ask destroy
  rm -rf "$dir/out"
  [ "${discarded:-0}" = 0 ] || say "LTTng discarded $discarded events: its figure is that of some that were not written"
}

start_collector
who="LTTng-UST $(pkg-config --modversion lttng-ust), same minute"
for threads in 1 2; do
  read -r theirs _ < <(measure "$threads" 20000) || fail "lttng_loop failed"
  read -r _ ours _ < <(build/release/tests/bench_emit "@$dir/ready" "$dir/certs" "$threads") || fail "bench_emit failed"
  row "an event of two numbers, CPU of $threads thread(s)" "$ours" ns "$theirs" "$who" -
  row "  of what it costs there" "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.3f", a / b }')" times - - "<= 0.2"
done
read -r _ theirs < <("$dir/loop" 1 1000000) || fail "lttng_loop failed"
read -r _ ours _ < <(build/release/tests/bench_points) || fail "bench_points failed"
row "pass a tracepoint that is off" "$ours" ns "$theirs" "$who" -
row "  of what it costs there" "$(awk -v a="$ours" -v b="$theirs" 'BEGIN { printf "%.2f", a / b }')" times - - "<= 1.1"
