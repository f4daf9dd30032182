#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_preload.sh: what the preload library costs a redis-server under redis-benchmark (preload_redis.py), beside the
# same server without it, in turns. On a machine that does other things the CPU of the thread that serves is the
# steadier figure: requests a second also feel who else wants the cores, the collector and redis-benchmark among them.
. tests/bench/lib.sh
command -v redis-benchmark >/dev/null || { say "no redis-tools here: left out"; exit 0; }
start_collector
for pipeline in 1 16; do
  read -r every every_traced own own_traced rate rate_traced rate_ratio own_ratio every_ratio < <(
    tests/bench/preload_redis.py "@$dir/ready" "$dir/certs" build/release/lib/libtraceagent-preload.so "$pipeline" \
      $((pipeline * 10000)) 10) || fail "preload_redis.py failed"
  who="not traced, same minute, 10 pairs"
  row "redis-server traced, -P $pipeline, its thread's CPU" "$own_traced" us/req "$own" "$who" -
  row "  of what it was, median of the pairs" "$own_ratio" times - - "<= 1.03"
  row "  with the agent's threads" "$every_traced" us/req "$every" "$who" -
  row "  of what it was, median of the pairs" "$every_ratio" times - - -
  row "  requests" "$rate_traced" 1/s "$rate" "$who" -
  row "  of what they were, median of the pairs" "$rate_ratio" times - - ">= 0.98"
done
