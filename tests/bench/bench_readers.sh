#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_readers.sh: what 64 readers that lease events over HTTP with TLS do to the acks of agents that stream meanwhile. The peer
# is the same fleet without readers, in turn with it; each side's best of the rounds counts (BENCH_ROUNDS, 3).
#
# Each reader is a process of its own (bench_lease) and takes each goroutine's begin: of 50 streams of 46 KB a second
# (BENCH_STREAMS) some 5,300 events a second, 64 times. BENCH_SECONDS (10). Agents, readers and collector share the machine: "loops waited
# for a core" says whether that is what acks wait for.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-3} streams=${BENCH_STREAMS:-50} seconds=${BENCH_SECONDS:-10} readers=64
pids=()
trap 'end_readers; end_collector; rm -rf "$dir"' EXIT

metric() { curl -s --unix-socket "$dir/state/http.sock" http://localhost/metrics | awk -v name="tracecollect_$1" '$1 == name { print $2 }'; }

start_readers() {
  local i
  for ((i = 0; i < readers; i++)); do
    build/release/tests/bench_lease --server "$here" --certs "$dir/certs" -k GoCreate >"$dir/reader.$i" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < 200; i++)); do [ "$(metric http_waits)" = $readers ] && return; sleep 0.1; done
  fail "the readers do not come: $(sort -u "$dir"/reader.* | tail -1)"
}

end_readers() {
  [ ${#pids[@]} -gt 0 ] || return 0
  kill "${pids[@]}" && wait "${pids[@]}" 2>/dev/null
  pids=()
}

run_fleet() { # NAME, alone or beside: notes p50, p99, events leased and lost, how long loops waited for a core
  start_collector listen.http=0.0.0.0:0 lease.max=128 lease.owner_max=$readers http.owner_requests_max=$readers
  here=https://localhost:$(sed -n 's/^http=.*://p' "$dir/ready")
  [ "$1" = alone ] || start_readers
  build/release/tests/fleet "@$dir/ready" "$dir/certs" "$trace" streams "$streams" seconds "$seconds" >"$dir/figures" ||
    fail "the fleet did not end well"
  echo "$1 $(awk '/^ack_p50_ms/ { a = $2 } /^ack_p99_ms/ { b = $2 } END { print a, b }' "$dir/figures")" \
    "$(metric lease_events_total) $(metric lease_events_lost_total) $(thread_ms "$collector" tc-loop 2)" >>"$dir/acks"
  end_readers
  end_collector
  rm -rf "$dir/state"
}

best() { awk -v name="$1" -v c="$2" '$1 == name && (m == "" || $c < m) { m = $c } END { print m }' "$dir/acks"; }

trace=$(quiet_trace) || exit 1
for ((i = 0; i < rounds; i++)); do
  run_fleet alone
  run_fleet beside
done
row "ack beside $readers leases over TLS, $streams streams, p99" "$(best beside 3)" ms "$(best alone 3)" "the same without readers" \
  "<= $(awk -v a="$(best alone 3)" 'BEGIN { print 1.1 * a + 1 }')"
row "  p50" "$(best beside 2)" ms "$(best alone 2)" "the same without readers" -
row "  events leased, of all readers" "$(awk '$1 == "beside" { n = $4 } END { print n }' "$dir/acks")" events - - ">= 1"
row "  lost" "$(awk '{ n += $5 } END { print n }' "$dir/acks")" events - - "<= 0"
row "  loops waited for a core" "$(best beside 6)" ms "$(best alone 6)" "the same without readers" -
