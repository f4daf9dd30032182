#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_agent.sh: what sending its trace costs a program.
#
# A Go server with the agent against the same work with its trace thrown away (io.Discard). A collector on the
# same two cores slows whatever runs beside it, by 4 % here, which is not the agent's doing: so while the trace
# is thrown away the collector takes the same bytes at the same rate from somebody else. Rounds alternate, and
# the median of their differences counts. A dense
# program's CPU differs by more than the agent uses: there what the kernel charges the two threads that do
# the agent's work is counted (bench_forward.c), and the median of the rounds taken.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-7}

load() { # [AGENT FLAGS...]: "CPU s, trace bytes, seconds, peak RSS"
  "$dir/server" -n 200000 "$@" 2>"$dir/log" || fail "the server failed"
}

# The median of an expression over a file's lines.
median() { # FILE AWK EXPRESSION
  awk "{ print $2 }" "$1" | sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

build_go agent-load "$dir/server"
start_collector
asks=(--server "@$dir/ready" --certs "$dir/certs")
read -r _ bytes seconds _ < <(load -server "@$dir/ready" -certs "$dir/certs")
rate=$(awk -v b="$bytes" -v s="$seconds" 'BEGIN { printf "%.1f", b / 1e6 / s }')
"$bin/tracectl" fetch "${asks[@]}" --service bench --no-progress -o "$dir/twin.trace" || fail "no trace to send beside"
for ((i = 0; i < rounds; i++)); do
  "$bin/tracectl" send "$dir/twin.trace" --to "@$dir/ready" --certs "$dir/certs" --service twin --rate "$rate" --no-progress >"$dir/log" &
  off=$(load)
  wait $! || fail "the sender beside failed"
  echo "$off $(load -server "@$dir/ready" -certs "$dir/certs")" >>"$dir/pairs"
done
row "Go server's CPU with the agent, net work" "$(median "$dir/pairs" '$5')" s "$(median "$dir/pairs" '$1')" "trace.Start(io.Discard), same run" "-"
row "  more CPU, at $rate MB/s of trace" "$(median "$dir/pairs" '($5 / $1 - 1) * 100')" % - - "<= 2"

forward() { # MORE FLAGS
  build/release/tests/bench_forward "@$dir/ready" "$dir/certs" "$trace" "$@" || fail "bench_forward failed"
}

forward_in_go() { # all CPU of its process, from the first batch on
  "$dir/agent_go" forward "@$dir/ready" "$dir/certs" "$trace" || fail "the agent in Go does not forward"
}

(cd agent/go && CGO_ENABLED=0 GOWORK=off "$GO" test -c -o "$dir/agent_go" .) >"$dir/log" 2>&1 || fail "agent/go does not build"
trace=$(dense_trace) || exit 1
for ((i = 0; i < rounds; i++)); do
  forward >>"$dir/dense"
  forward 1 >>"$dir/paced"
  forward_in_go >>"$dir/in_go"
  build/release/tests/bench_send_floor 132 >>"$dir/floor" || fail "bench_send_floor failed"
done
limit="copy, AES-128-GCM and loopback TCP alone, same run"
row "agent's CPU, dense trace, median of $rounds" "$(median "$dir/dense" '$1 + $2')" ms/MB "$(median "$dir/floor" '$1 + $2 + $3')" "$limit" "<= 1.2"
row "  in the program's write calls" "$(median "$dir/dense" '$1')" ms/MB "$(median "$dir/floor" '$1')" "a copy and a checksum" -
row "  in the agent's thread" "$(median "$dir/dense" '$2')" ms/MB "$(median "$dir/floor" '$2 + $3')" "AES $(median "$dir/floor" '$2'), send $(median "$dir/floor" '$3')" -
row "  both, one batch a millisecond" "$(median "$dir/paced" '$1 + $2')" ms/MB - - -
row "agent in Go, its process's CPU, dense trace" "$(median "$dir/in_go" '$1')" ms/MB "$(median "$dir/dense" '$1 + $2')" "the C agent, same run" -
