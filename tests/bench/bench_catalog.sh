#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_catalog.sh: the catalog of a day of 2,000 streams, a run of 300 generations every 300 s: 577,000 rows, 173 million
# generations. The slowest of five calls each; there is no peer.
#
# BENCH_RUNS (577000), BENCH_STREAMS (2000).
. tests/bench/lib.sh
build/release/tests/bench_catalog "${BENCH_RUNS:-577000}" "${BENCH_STREAMS:-2000}" "$BENCH_DIR" >"$BENCH_DIR/catalog" ||
  fail "bench_catalog failed"
while IFS=$'\t' read -r words ours unit goal _; do
  [ "$goal" = 0 ] && goal=- || goal="<= $goal"
  row "$words" "$ours" "$unit" - - "$goal"
done <"$BENCH_DIR/catalog"
