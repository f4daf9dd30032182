#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_page.sh: what a browser takes that shows the page of 200 programs, each with a generation of some 46 KB a second. Collector,
# agents and browser share the machine.
. tests/bench/lib.sh
streams=${BENCH_STREAMS:-200} seconds=${BENCH_SECONDS:-30}
trace=$(quiet_trace) || exit 1
start_collector
build/release/tests/fleet "@$dir/ready" "$dir/certs" "$trace" streams "$streams" seconds "$((seconds + 30))" >"$dir/figures" &
fleet=$!
live() { "$bin/tracectl" status --server "@$dir/ready" --certs "$dir/certs" --json | grep -c '"state":"live"'; }
for ((i = 0; i < 300; i++)); do [ "$(live)" -ge "$streams" ] && break; sleep 0.1; done
[ "$(live)" -ge "$streams" ] || fail "the programs do not all come"
read -r renderer all < <(python3 tests/bench/page_cpu.py "http://$(sed -n 's/^http=//p' "$dir/ready")/" "$dir" "$seconds")
wait "$fleet" || fail "the fleet did not end well"
percent() { awk -v share="$1" 'BEGIN { printf "%.1f", 100 * share }'; }
row "page: $streams streams, all of the browser" "$(percent "$all")" "% of a core" "$(percent "$renderer")" "its renderer" "<= 5"
end_collector
