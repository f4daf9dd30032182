#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_fleet.sh: a fleet of quiet programs on one collector: so many streams, each with a generation of some 46 KB a
# second, sent by the real agent library. The peer is the same collector with a file for each generation
# (segment.generations_max=1), in the same run.
#
# A third run is of a restless fleet: as many streams as there are leave within a minute and others join, a process is
# killed six times and takes its spool over, a day passes. In each run the books must close: what agents say was acked is in the
# archive, what they say is lost is told as lost (check_books.py).
#
# A fourth run is an overload: 2,000 streams with some 150 KB a second each. Nothing is lost, generations are thinned or
# left out of the analysis, and after the load all are analysed again soon.
#
# BENCH_STREAMS (300), BENCH_SECONDS (30), BENCH_OVERLOAD (2000 streams). Agents and collector share the machine.
. tests/bench/lib.sh
streams=${BENCH_STREAMS:-300} seconds=${BENCH_SECONDS:-30}
fleet=build/release/tests/fleet
trace=$(quiet_trace) || exit 1

# SETTING...: leaves the fleet's figures in $dir/figures, the collector's in $used_ms, $rss_mib and $files
run_fleet() {
  local before after
  start_collector "$@"
  before=$(cpu_ms "$collector")
  "$fleet" "@$dir/ready" "$dir/certs" "$trace" streams "$streams" seconds "$seconds" books "$dir/books" "${ways[@]}" \
    >"$dir/figures" || fail "the fleet did not end well"
  tests/bench/check_books.py "$dir/books" "$bin/tracectl" "@$dir/ready" "$dir/certs" >"$dir/checked" ||
    fail "books do not close: $(cat "$dir/checked")"
  after=$(cpu_ms "$collector")
  used_ms=$((after - before))
  rss_mib=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$collector/status")
  files=$(find "$dir/state/archive" -type f | wc -l)
  local from to
  from=$(date +%s%N)
  end_collector
  to=$(date +%s%N)
  stop_s=$(awk -v ns="$((to - from))" 'BEGIN { printf "%.1f", ns / 1e9 }')
  rm -rf "$dir/state"
}
ways=()
figure() { awk -v name="$1" '$1 == name { print $2 }' "$dir/figures"; }
per_generation() { awk -v ms="$used_ms" -v n="$(figure acked_generations)" 'BEGIN { printf "%.2f", ms / n }'; }
acked_share() { awk -v a="$(figure acked_generations)" -v w="$(figure written_generations)" 'BEGIN { printf "%.1f", 100 * a / w }'; }

run_fleet segment.generations_max=1
one=("$(per_generation)" "$(figure ack_p99_ms)" "$rss_mib" "$files" "$(acked_share)" "$stop_s")
run_fleet
row "$streams streams: generations acked" "$(acked_share)" "%" "${one[4]}" "a file each" ">= 100"
row "$streams streams: CPU of the collector" "$(per_generation)" "ms/gen" "${one[0]}" "a file each" -
row "$streams streams: ack, 99th percentile" "$(figure ack_p99_ms)" "ms" "${one[1]}" "a file each" "<= 50"
row "$streams streams: memory, at most" "$rss_mib" "MiB" "${one[2]}" "a file each" "<= 1536"
row "$streams streams: files in ${seconds} s" "$files" "" "${one[3]}" "a file each" "<= $((40 * seconds))"
row "$streams streams: SIGTERM to exit" "$stop_s" "s" "${one[5]}" "a file each" "<= 5"

ways=(spool "$dir/spool" leave_percent 100 kill_s "$(((seconds + 6) / 7))" curve_s "$seconds")
run_fleet agents.heartbeat=1s agents.abandon_after=3s
row "$streams restless streams: opened" "$(figure streams_opened)" "" - - -
row "$streams restless streams: left" "$(figure streams_left)" "" - - -
row "$streams restless streams: processes killed" "$(figure kills)" "" - - ">= 1"
row "$streams restless streams: generations lost" "$(figure lost_generations)" "" - - "<= 0"
row "$streams restless streams: streams whose books close" "$(python3 -c 'import json,sys; print(json.load(sys.stdin)["streams"])' <"$dir/checked")" "" - - ">= $streams"
row "$streams restless streams: ack, 99th percentile" "$(figure ack_p99_ms)" "ms" - - -
row "$streams restless streams: memory, at most" "$rss_mib" "MiB" - - "<= 1536"

loops_that() { grep -c "$1" "$dir/log"; }
metric() { awk -v name="tracecollect_$1" '$1 == name { print $2 }' "$dir/metrics"; }
part_of() { awk -v part="$1" -v all="$2" 'BEGIN { printf "%.1f", all > 0 ? 100 * part / all : 0 }'; }

# Leaves the fleet's figures in $dir/figures, the collector's in $dir/metrics and $rss_mib, and the time until all is analysed again in $back_s
run_overload() {
  local from
  start_collector
  "$fleet" "@$dir/ready" "$dir/certs" "$(quiet_trace triple 30 400)" streams "$overload" seconds 20 >"$dir/figures" ||
    fail "the fleet did not end well"
  from=$(date +%s%N)
  for ((i = 0; i < 1200; i++)); do
    [ "$(loops_that 'some are thinned')" -eq "$(loops_that 'are analysed again')" ] && break
    sleep 0.1
  done
  back_s=$(awk -v ns="$(($(date +%s%N) - from))" 'BEGIN { printf "%.1f", ns / 1e9 }')
  rss_mib=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$collector/status")
  curl -s "http://$(sed -n 's/^http=//p' "$dir/ready")/metrics" >"$dir/metrics"
  end_collector
  rm -rf "$dir/state"
}

overload=${BENCH_OVERLOAD:-2000}
run_overload
row "$overload streams, an overload: generations acked" "$(acked_share)" "%" - - ">= 100"
row "$overload streams, an overload: ordered generations that were thinned" "$(part_of "$(metric generations_thinned_total)" "$(metric generations_ordered_total)")" "%" - - -
row "$overload streams, an overload: generations left out" "$(part_of "$(metric generations_left_out_total)" "$(figure acked_generations)")" "%" - - -
row "$overload streams, an overload: until all is analysed again" "$back_s" "s" - - "<= 5"
row "$overload streams, an overload: memory, at most" "$rss_mib" "MiB" - - "<= 1536"
