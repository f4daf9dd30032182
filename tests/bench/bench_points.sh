#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_points.sh: what a tracepoint costs, off and looked at (bench_points.c).
. tests/bench/lib.sh
read -r empty off looked recorded < <(build/release/tests/bench_points) || fail "bench_points failed"
row "pass a tracepoint that is off" "$off" ns 0.55 "LTTng-UST 2.13, off (quoted)" "<= 0.605"
row "  more than the same loop without" "$(awk -v a="$off" -v b="$empty" 'BEGIN { printf "%.3f", (a > b ? a - b : 0) }')" ns - - "<= 0.3"
row "  with a probe that does nothing" "$looked" ns - - -
row "  with the probe that records, no session" "$recorded" ns - - -
