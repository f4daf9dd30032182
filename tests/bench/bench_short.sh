#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_short.sh: what the preload library costs programs that end soon, and a program that forks (short_programs.py): with
# the collector up, with a port that is closed, with a peer that accepts and says nothing, and with the collector stopped.
. tests/bench/lib.sh
short() { # WHEN SERVER
  tests/bench/short_programs.py "$1" "$2" "$dir/certs" build/release/lib/libtraceagent-preload.so "${@:3}" || fail "short_programs.py failed: $1"
}
start_collector
trap 'kill -CONT "$collector" 2>/dev/null; end_collector; rm -rf "$dir"' EXIT
address=$(sed -n 's/^agents=//p' "$dir/ready")
short up "$address"
short refused refused true bash make
short silent silent true bash make
kill -STOP "$collector"
short stopped "$address" true bash make
