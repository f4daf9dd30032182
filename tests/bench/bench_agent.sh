#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_agent.sh: what sending its trace costs a Go server, against the same work with its trace thrown
# away (io.Discard), in the same run. Rounds alternate, the smallest CPU time of each side counts.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-5}

load() { # WORK N [AGENT FLAGS...]: "CPU s, trace bytes, seconds, peak RSS"
  local work=$1 n=$2
  shift 2
  "$dir/agent-load" -work "$work" -n "$n" "$@" || fail "agent-load failed"
}

compare() { # WORK N: sets off, on (CPU s), bytes, seconds
  local i
  rm -f "$dir/off" "$dir/on"
  for ((i = 0; i < rounds; i++)); do
    load "$1" "$2" >>"$dir/off"
    load "$1" "$2" -server "@$dir/ready" -certs "$dir/certs" >>"$dir/on"
  done
  read -r off _ < <(sort -n "$dir/off")
  read -r on bytes seconds _ < <(sort -n "$dir/on")
}

build_go agent-load "$dir/agent-load"
start_collector
compare net 200000
row "Go server's CPU with the agent, net work" "$on" s "$off" "trace.Start(io.Discard), same run" "-"
row "  more CPU, at $(awk -v b="$bytes" -v s="$seconds" 'BEGIN { printf "%.1f", b / 1e6 / s }') MB/s of trace" \
  "$(awk -v a="$on" -v b="$off" 'BEGIN { printf "%.2f", (a / b - 1) * 100 }')" % - - "<= 2"
compare chan 1000000
row "agent CPU, dense trace" "$(awk -v a="$on" -v b="$off" -v n="$bytes" 'BEGIN { printf "%.2f", (a - b) * 1000 / (n / 1e6) }')" ms/MB 0.592 "TLS alone, receiving, libuv and memory BIO (quoted)" "<= 1.2"
