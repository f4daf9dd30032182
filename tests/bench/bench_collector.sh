#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_collector.sh: the collector's whole CPU for a dense trace, from TLS to disk, ordering and both
# analyses included, and how long until all of it is acked and analysed.
#
# The peers' figures are receivers that only store (no ordering, no analysis), measured once on a machine
# of the same kind (2 cores, Zen 4 class, Debian 12): they are a scale, not a race of this run.
. tests/bench/lib.sh

all_judged() {
  ! "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --service bench --json | grep -q '"analysis": *"pending"'
}

trace=$(dense_trace) || exit 1
bytes=$(stat -c %s "$trace")
start_collector
before=$(cpu_ms "$collector")
started=$(date +%s%N)
"$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress >"$dir/send" 2>&1 ||
  fail "send failed: $(tail -1 "$dir/send")"
acked=$(date +%s%N)
for ((i = 0; i < 600; i++)); do all_judged && break; sleep 0.1; done
all_judged || fail "generations are still not analysed"
judged=$(date +%s%N)
used=$(($(cpu_ms "$collector") - before))

per_mb=$(awk -v ms="$used" -v b="$bytes" 'BEGIN { printf "%.2f", ms / (b / 1e6) }')
rate() { awk -v ns="$1" -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e6 / (ns / 1e9) }'; }
row "collector CPU, TLS to disk, ordered, analysed" "$per_mb" ms/MB 13.7 "OpenTelemetry Collector, mTLS to a file, stores only (quoted)" "<= 8"
row "  same" "$per_mb" ms/MB 5.2 "rsyslog, TLS to a file, stores only (quoted)" -
row "  same" "$per_mb" ms/MB 0.5 "LTTng relayd, plain TCP, stores only (quoted)" -
row "one stream sent and acked durable" "$(rate $((acked - started)))" MB/s 49 "OpenTelemetry Collector, one core (quoted)" -
row "one stream sent, acked, ordered, analysed" "$(rate $((judged - started)))" MB/s - - -
row "collector's peak memory, trace of $((bytes / 1000000)) MB" "$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$collector/status")" MiB - - -
