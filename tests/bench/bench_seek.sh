#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_seek.sh: what it costs to go to the middle of a trace of 1 GB, from opening it and its index on. The trace is
# made for it and goes when the script ends. Go's reader has no such way: it reads from the beginning.
. tests/bench/lib.sh
seek=build/release/tests/bench_seek trace=$dir/long.trace

build/release/tests/make_trace "$trace" 1000 8 || fail "no trace"
"$bin/tracectl" index --write --no-progress "$trace" >"$dir/log" 2>&1 || fail "no index"
read -r generations first < <("$seek" "$trace") || fail "bench_seek failed"
row "first event in the middle of 1 GB, $generations generations" "$first" "ms CPU" - - "<= 5"
