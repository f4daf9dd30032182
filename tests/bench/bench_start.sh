#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_start.sh: a start after a kill, with 500 open runs of 8 MiB each that are in checkpoints: until the store takes
# records, until the first is acked, until every run is read back. There is no peer.
#
# BENCH_RUNS (500), BENCH_MB (8).
. tests/bench/lib.sh
build/release/tests/bench_start "${BENCH_RUNS:-500}" "${BENCH_MB:-8}" "$BENCH_DIR" >"$BENCH_DIR/start" ||
  fail "bench_start failed"
while IFS=$'\t' read -r how until ours unit; do
  [ "$until" = proven ] && goal=- || goal="<= 5000"
  row "start after a kill, $how: $until" "$ours" "$unit" - - "$goal"
done <"$BENCH_DIR/start"
