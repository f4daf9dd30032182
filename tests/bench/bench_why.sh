#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_why.sh: what an explanation costs once the spans of its interval are there.
. tests/bench/lib.sh

read -r spans pieces ms < <(build/release/tests/bench_why) || fail "bench_why failed"
row "critical path over $spans spans, $pieces pieces" "$ms" "ms CPU" - - "<= 5"
