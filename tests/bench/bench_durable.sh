#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_durable.sh: what it costs that an ack means stored. One stream of a dense trace as fast as it is taken, at
# both levels in turn, beside what the disk does with the same bytes (a write and a sync for each MiB, into a file
# that is there) and what one core does (a second over the collector's CPU per MB, of the same run); then how
# long a program that writes 10 MB/s waits for its acks, beside a sync of the same bytes.
#
# Rates are of the clock on the wall, so they mean something on a machine that does nothing else: "its loop waited
# for a core" says whether it did. The best of the rounds counts on every side.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-3}

best() { # COLUMN: of $dir/rates, the largest
  awk -v c="$1" '$c > m { m = $c } END { printf "%.1f", m }' "$dir/rates"
}

times4() { awk -v v="$1" 'BEGIN { printf "<= %.3f", 4 * v }'; }

rate_of() { awk -v ns="$1" -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e6 / (ns / 1e9) }'; }

send_once() {
  "$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress >"$dir/send" 2>&1 ||
    fail "send failed: $(tail -1 "$dir/send")"
}

all_judged() {
  ! "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --service bench --json | grep -q '"analysis": *"pending"'
}

# LEVEL: sets rate, limit and waited. The collector has taken the trace once before: what is measured is not its start.
ingest() {
  local started cpu wait i
  rm -rf "$dir/state"
  start_collector sync="$1"
  send_once
  for ((i = 0; i < 600; i++)); do all_judged && break; sleep 0.1; done
  cpu=$(cpu_ms "$collector") wait=$(thread_ms "$collector" tc-loop 2)
  started=$(date +%s%N)
  send_once
  rate=$(rate_of "$(($(date +%s%N) - started))")
  waited=$(($(thread_ms "$collector" tc-loop 2) - wait))
  for ((i = 0; i < 600; i++)); do all_judged && break; sleep 0.1; done
  limit=$(awk -v ms="$(($(cpu_ms "$collector") - cpu))" -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e3 / ms }')
  end_collector
}

disk() { # prints MB/s
  local started
  started=$(date +%s%N)
  dd if="$trace" of="$dir/plain" bs=1M oflag=dsync conv=notrunc status=none || fail "dd failed"
  rate_of "$(($(date +%s%N) - started))"
}

trace=$(dense_trace) || exit 1
bytes=$(stat -Lc %s "$trace")
{ cp "$trace" "$dir/plain" && sync "$dir/plain"; } || fail "no room in $dir"
for ((i = 0; i < rounds; i++)); do
  ingest process && process=$rate
  ingest durable
  echo "$rate $process $(disk) $limit $waited" >>"$dir/rates"
done
rm "$dir/plain"
durable=$(best 1) process=$(best 2) plain=$(best 3) limit=$(best 4)
lesser=$(awk -v d="$plain" -v c="$limit" 'BEGIN { print (d < c ? d : c) }')
row "one stream, acked durable" "$durable" MB/s "$lesser" "the lesser of disk ($plain) and one core ($limit), same run" \
  ">= $(awk -v l="$lesser" 'BEGIN { printf "%.1f", 0.6 * l }')"
goal=-
awk -v d="$plain" -v p="$process" 'BEGIN { exit !(d > p) }' && goal=">= $(awk -v p="$process" 'BEGIN { printf "%.1f", 0.9 * p }')"
row "  same" "$durable" MB/s "$process" "level process, same run" "$goal"
row "  its loop waited for a core" "$(awk '{ s += $5 } END { printf "%.0f", s / NR }' "$dir/rates")" ms - - -

start_collector
read -r _ ack50 ack99 sync50 sync99 < <(build/release/tests/bench_ack "@$dir/ready" "$dir/certs" "$trace" "$dir" 10 8) ||
  fail "bench_ack failed"
row "ack of a batch at 10 MB/s, p99" "$ack99" ms "$sync99" "p99 of fdatasync of the same bytes, same run" "$(times4 "$sync99")"
row "  p50" "$ack50" ms "$sync50" "p50 of the same" "$(times4 "$sync50")"
