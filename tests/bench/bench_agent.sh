#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_agent.sh: what sending its trace costs a program.
#
# A Go server with the agent against the same work with its trace thrown away (io.Discard), in the same
# run: rounds alternate, the smallest CPU time of each side counts. A dense program's own CPU differs by more
# than the agent uses; there what the kernel charges the two threads that do the agent's work is counted
# (bench_forward.c), and the median of the rounds taken.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-7}

load() { # [AGENT FLAGS...]: "CPU s, trace bytes, seconds, peak RSS"
  "$dir/agent-load" -n 200000 "$@" || fail "agent-load failed"
}

build_go agent-load "$dir/agent-load"
start_collector
for ((i = 0; i < rounds; i++)); do
  load >>"$dir/off"
  load -server "@$dir/ready" -certs "$dir/certs" >>"$dir/on"
done
read -r off _ < <(sort -n "$dir/off")
read -r on bytes seconds _ < <(sort -n "$dir/on")
row "Go server's CPU with the agent, net work" "$on" s "$off" "trace.Start(io.Discard), same run" "-"
row "  more CPU, at $(awk -v b="$bytes" -v s="$seconds" 'BEGIN { printf "%.1f", b / 1e6 / s }') MB/s of trace" \
  "$(awk -v a="$on" -v b="$off" 'BEGIN { printf "%.2f", (a / b - 1) * 100 }')" % - - "<= 2"

# The median of an expression over the runs' lines "WRITER SENDER".
median() { # FILE AWK EXPRESSION
  awk "{ print $2 }" "$1" | sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

forward() { # MORE FLAGS
  build/release/tests/bench_forward "@$dir/ready" "$dir/certs" "$trace" "$@" || fail "bench_forward failed"
}

trace=$(dense_trace) || exit 1
for ((i = 0; i < rounds; i++)); do
  forward >>"$dir/dense"
  forward 1 >>"$dir/paced"
done
row "agent's CPU, dense trace, median of $rounds" "$(median "$dir/dense" '$1 + $2')" ms/MB 0.592 "TLS alone, receiving, libuv and memory BIO (quoted)" "<= 1.2"
row "  in the program's write calls" "$(median "$dir/dense" '$1')" ms/MB - - -
row "  in the agent's thread" "$(median "$dir/dense" '$2')" ms/MB - - -
row "  both, one batch a millisecond" "$(median "$dir/paced" '$1 + $2')" ms/MB - - -
