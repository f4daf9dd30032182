#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_feed.sh: how soon the live feed tells of a generation, and what subscribers that have stopped cost.
#
# Latency is from the agent's sight of a generation's end to the message in a subscriber, at 10 MB/s in
# generations of about a second. The cost of subscribers is the collector's CPU for the dense trace with
# and without eight that are stopped, in turns, each the median of its runs; that of the feed with one
# that reads stands beside it. Throughput likewise.
. tests/bench/lib.sh
set -o pipefail

subscribers=()
trap 'end_subscribers; end_collector; rm -rf "$dir"' EXIT

feed_url() { sed -n 's/^feed=//p' "$dir/ready"; }
metric() { curl -s "http://$(sed -n 's/^http=//p' "$dir/ready")/metrics" | awk -v name="tracecollect_$1" '$1 == name { print $2 }'; }

start_subscribers() { # N: and waits until the collector counts them
  local i
  for ((i = 0; i < $1; i++)); do
    build/release/tests/feed_latency "$(feed_url)" >/dev/null 2>&1 &
    subscribers+=($!)
  done
  for ((i = 0; i < 200; i++)); do [ "$(metric feed_subscribers)" = "$1" ] && return; sleep 0.05; done
  fail "the subscribers do not come"
}

end_subscribers() {
  [ ${#subscribers[@]} -gt 0 ] || return 0
  kill -KILL "${subscribers[@]}" && wait "${subscribers[@]}" 2>/dev/null
  subscribers=()
}

send() { # TRACE [OPTION]...
  local trace=$1
  shift
  "$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress "$@" >"$dir/send" 2>&1 ||
    fail "send failed: $(tail -1 "$dir/send")"
}

# --- latency

latency() { # TRACE: prints feed_latency's lines
  local generations i
  generations=$("$bin/tracectl" check "$1" | sed -n 's/.* \([0-9]*\) generations.*/\1/p')
  build/release/tests/feed_latency "$(feed_url)" $((4 * generations)) >"$dir/latency" &
  local reader=$!
  for ((i = 0; i < 200; i++)); do [ "$(metric feed_subscribers)" = 1 ] && break; sleep 0.05; done
  for ((i = 0; i < 4; i++)); do tests/bench/pace.py 10 "$1" | send - || fail "pacing failed"; done
  wait "$reader" || fail "the reader failed"
}

trace=$(paced_trace) || exit 1
start_collector
latency "$trace"
while IFS=$'\t' read -r name n p50 p99 max; do
  say "$name: $n generations, max $max ms"
  row "agent's end of generation to its $name, p50" "$p50" ms - - -
  row "  p99, 10 MB/s" "$p99" ms - - "<= 100"
done <"$dir/latency"
end_collector

# --- stopped subscribers

# One run: CPU ms and wall ms until all is acked and analysed.
run() {
  local before started ordered
  ordered=$(($(metric generations_ordered_total) + generations))
  before=$(cpu_ms "$collector")
  started=$(date +%s%N)
  send "$trace"
  while [ "$(metric generations_ordered_total)" -lt "$ordered" ]; do sleep 0.02; done
  echo "$(($(cpu_ms "$collector") - before)) $((($(date +%s%N) - started) / 1000000))"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

trace=$(dense_trace) || exit 1
generations=$("$bin/tracectl" check "$trace" | sed -n 's/.* \([0-9]*\) generations.*/\1/p')
start_collector
run >/dev/null
for ((turn = 0; turn < 5; turn++)); do
  run >>"$dir/without"
  start_subscribers 8
  kill -STOP "${subscribers[@]}"
  run >>"$dir/stopped"
  end_subscribers
  start_subscribers 1
  run >>"$dir/reading"
  end_subscribers
done
for what in stopped reading; do
  cpu=$(ratio "$(cut -d' ' -f1 "$dir/without" | median)" "$(cut -d' ' -f1 "$dir/$what" | median)")
  wall=$(ratio "$(cut -d' ' -f2 "$dir/without" | median)" "$(cut -d' ' -f2 "$dir/$what" | median)")
  goal=$([ $what = stopped ] && echo ">= 0.98" || echo -)
  row "ingest with $([ $what = stopped ] && echo "8 stopped subscribers" || echo "1 subscriber"), MB a CPU second" "$cpu" "of none" - - "$goal"
  row "  same, throughput" "$wall" "of none" - - -
done
row "  feed messages dropped inside the collector" "$(metric feed_dropped_total)" messages - - "<= 0"
