#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_lease.sh: every event of a dense trace to one reader over a lease, while the trace is sent as fast as
# it goes. Nobody waits for the reader; what it does not fetch in time is lost, and counted.
#
# The peer in the same run is the file: the same events printed by `cat -d json`. What a lease costs the
# loops is the difference to the same send without a reader; what it costs when nobody asks is a test of
# one pointer a slice of events (collector/analysis/scheduler.c), below what can be measured.
. tests/bench/lib.sh

send() {
  "$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress "$@" \
    >"$dir/send" 2>&1 || fail "send failed: $(tail -1 "$dir/send")"
}

ordered() { # generations so far, of all sends
  "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --service bench --json | grep -c '"analysis": *"ok"'
}

wait_ordered() { # COUNT
  for ((i = 0; i < 1200; i++)); do [ "$(ordered)" -ge "$1" ] && return; sleep 0.1; done
  fail "generations are still not analysed"
}

per_event() { awk -v ms="$1" -v n="$events" 'BEGIN { printf "%.0f", ms * 1e6 / n }'; }

trace=$(dense_trace) || exit 1
read -r events generations < <("$bin/tracectl" check --no-progress "$trace" |
  sed -nE 's/.*ok: ([0-9]+) events, ([0-9]+) generations.*/\1 \2/p')
[ -n "${events:-}" ] || fail "what is in the trace?"
events=$((events - 1)) # a live stream has no Sync at its end

start_collector lease.window=512MiB lease.memory_max=1GiB
send
wait_ordered "$generations"
before=$(thread_ms "$collector" tc-loop)
send
wait_ordered $((2 * generations))
alone=$(($(thread_ms "$collector" tc-loop) - before))

build/release/tests/bench_lease --server "@$dir/ready" --certs "$dir/certs" -n "$events" >"$dir/reader" &
reader=$!
for ((i = 0; i < 300; i++)); do grep -q leased "$dir/reader" && break; sleep 0.1; done
before=$(thread_ms "$collector" tc-loop)
send
wait "$reader" || fail "the reader failed"
wait_ordered $((3 * generations))
leased=$(($(thread_ms "$collector" tc-loop) - before))
windows=$(thread_ms "$collector" tc-leases)
read -r got lost wall_ns cpu_ns sent < <(tail -1 "$dir/reader")

TIMEFORMAT='%U %S'
printed=$({ time "$bin/tracectl" cat -d json --no-progress "$trace" >/dev/null; } 2>&1 | awk '{ printf "%d", ($1 + $2) * 1000 }')

rate=$(awk -v n="$got" -v ns="$wall_ns" 'BEGIN { printf "%.0f", n / (ns / 1e9) }')
row "leased events to one reader, wall clock" "$rate" events/s - "everything at once on this machine's cores" ">= 300000"
row "  lost, of $events" "$lost" events - - "<= 0"
row "  reader's CPU" "$(per_event $((cpu_ns / 1000000)))" ns/event "$(per_event "$printed")" "cat -d json of the same file" -
row "  loops' CPU for it, beside ordering and analyses" "$(per_event $((leased - alone)))" ns/event "$(per_event "$alone")" "the loops without a lease: TLS, order, analyses" -
row "  windows' thread" "$(per_event "$windows")" ns/event - - -
row "  bytes" "$(awk -v b="$sent" -v n="$got" 'BEGIN { printf "%.1f", b / n }')" B/event "$(awk -v b="$(stat -Lc %s "$trace")" -v n="$events" 'BEGIN { printf "%.1f", b / n }')" "the trace itself" -
end_collector
