#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_collector.sh: the collector's whole CPU for a dense trace, from TLS to disk, ordering and both
# analyses included, and how long until all of it is acked and analysed.
#
# The split is by thread. What a second run without ordering takes is what store alone costs.
# The peers' figures are receivers that only store (no ordering, no analysis), measured once on a machine
# of the same kind (2 cores, Zen 4 class, Debian 12): they are a scale, not a race of this run.
. tests/bench/lib.sh

all_judged() {
  ! "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --service bench --json | grep -q '"analysis": *"pending"'
}

per_mb() { awk -v ms="$1" -v b="$bytes" 'BEGIN { printf "%.2f", ms / (b / 1e6) }'; }
rate() { awk -v ns="$1" -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e6 / (ns / 1e9) }'; }

# Sends the trace and waits until each generation has its verdict; sets used, acked, judged, of_loops,
# of_commit and of_segment. The collector has taken it once before: what is measured is not its start.
measure() {
  local before started i
  send_all
  before=$(cpu_ms "$collector")
  of_loops=$(thread_ms "$collector" tc-loop)
  of_commit=$(thread_ms "$collector" tc-commit)
  of_segment=$(thread_ms "$collector" tc-sealer)
  started=$(date +%s%N)
  send_all
  used=$(($(cpu_ms "$collector") - before))
  of_loops=$(($(thread_ms "$collector" tc-loop) - of_loops))
  of_commit=$(($(thread_ms "$collector" tc-commit) - of_commit))
  of_segment=$(($(thread_ms "$collector" tc-sealer) - of_segment))
  acked=$((acked - started))
  judged=$((judged - started))
}

send_all() {
  "$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress >"$dir/send" 2>&1 ||
    fail "send failed: $(tail -1 "$dir/send")"
  acked=$(date +%s%N)
  for ((i = 0; i < 600; i++)); do all_judged && break; sleep 0.1; done
  all_judged || fail "generations are still not analysed"
  judged=$(date +%s%N)
}

trace=$(dense_trace) || exit 1
bytes=$(stat -Lc %s "$trace")
start_collector
measure
row "collector CPU, TLS to disk, ordered, analysed" "$(per_mb "$used")" ms/MB 13.7 "OpenTelemetry Collector, mTLS to a file, stores only (quoted)" "<= 5"
row "  same" "$(per_mb "$used")" ms/MB 5.2 "rsyslog, TLS to a file, stores only (quoted)" -
row "  same" "$(per_mb "$used")" ms/MB 0.5 "LTTng relayd, plain TCP, stores only (quoted)" -
row "  loops: TLS, records, order, analyses" "$(per_mb "$of_loops")" ms/MB - - -
row "  commit thread: log" "$(per_mb "$of_commit")" ms/MB - - -
row "  segment thread: files, hashes, metas" "$(per_mb "$of_segment")" ms/MB - - -
row "one stream sent and acked durable" "$(rate "$acked")" MB/s 49 "OpenTelemetry Collector, one core (quoted)" -
row "one stream sent, acked, ordered, analysed" "$(rate "$judged")" MB/s - - -
row "collector's peak memory, trace of $((bytes / 1000000)) MB" "$(awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$collector/status")" MiB - - -
end_collector

# The parts that must be there, each alone and warm, on this machine now: the collector's own is all that goes beyond their sum.
build/release/tests/bench_parts "$trace" "$dir" >"$dir/parts" || fail "bench_parts failed"
read -r _ events order more _ < <(build/release/tests/bench_analyses --no-reports "$trace" | tail -1) || fail "bench_analyses failed"
awk -v e="$events" -v o="$order" -v m="$more" -v b="$bytes" 'BEGIN { printf "order+analyses %.3f\n", e * (o + m) / b }' >>"$dir/parts"
parts=$(awk '{ sum += $2 } END { printf "%.2f", sum }' "$dir/parts")
while read -r part took; do row "  part alone: $part" "$took" ms/MB - - -; done <"$dir/parts"
row "collector CPU, beside the sum of its parts" "$(per_mb "$used")" ms/MB "$parts" "the parts alone" "<= $(awk -v p="$parts" 'BEGIN { printf "%.2f", 1.3 * p }')"

start_collector archive.hash=sha256
measure
row "collector CPU, the same with archive.hash: sha256" "$(per_mb "$used")" ms/MB - - -
row "  segment thread: files, hashes, metas" "$(per_mb "$of_segment")" ms/MB - - -
end_collector

# What the quoted ones do: the same without ordering, because no generation is small enough for it.
start_collector agents.generation_bytes_max=1MiB
measure
row "collector CPU, TLS to disk, stored only" "$(per_mb "$used")" ms/MB 5.2 "rsyslog, TLS to a file (quoted)" -
row "  loops: TLS, records" "$(per_mb "$of_loops")" ms/MB - - -
