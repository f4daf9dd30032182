#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_http.sh: what readers over HTTP cost the collector with 200 streams, and when the page is there.
#
# CPU time of a scrape and of an update in the process itself (bench_http.c); how long /healthz waits beside live readers
# (bench_live.c); CPU time of the whole daemon while one
# reader follows 200 streams; and the browser's own first paint of the page on loopback, the best of five,
# where there is a browser.
. tests/bench/lib.sh
streams=200

measure() { # TRACE: both figures of bench_http
  local name ms bytes
  while read -r name ms bytes; do
    case $name in
    metrics) row "/metrics, $streams streams" "$ms" "ms CPU" - "$bytes bytes" "<= 20" ;;
    overview) row "page update, $streams streams" "$ms" "ms CPU" - "$bytes bytes, all readers share it" "<= 50" ;;
    esac
  done < <(build/release/tests/bench_http "$1" "$streams")
}

health() { # what 64 live readers do to the answer beside them
  local half p99 most events
  read -r half p99 most events < <(build/release/tests/bench_live 64 200 10) || fail "bench_live"
  row "/healthz p99, 64 live readers, 200 generations/s" "$p99" ms - "median $half, most $most ms; $events events" "<= 5"
}

follow() { # the daemon's CPU in ten seconds, with a live reader less without one
  local i before after quiet
  for ((i = 0; i < streams; i++)); do
    "$bin/tracectl" send "$1" --to "@$dir/ready" --certs "$dir/certs" --service bench --instance "host-$i" \
      --no-progress >>"$dir/log" 2>&1 || fail "cannot send"
  done
  for ((i = 0; i < 60; i++)); do # what came is ordered and published first
    before=$(cpu_ms "$collector"); sleep 1
    [ $(($(cpu_ms "$collector") - before)) -ge 20 ] || break
  done
  before=$(cpu_ms "$collector"); sleep 10; quiet=$(($(cpu_ms "$collector") - before))
  before=$(cpu_ms "$collector")
  curl -sN -m 10 "http://$http/api/v1/live" >"$dir/live"
  after=$(($(cpu_ms "$collector") - before))
  row "a live reader, $streams streams" "$(awk -v ms=$((after - quiet)) 'BEGIN { printf "%.2f", ms / 100 }')" \
    "% core" - "$(grep -c '^event: overview' "$dir/live") updates in 10 s" "<= 5"
}

zstd -qdf tests/data/g26-gens.trace.zst -o "$dir/gens.trace" || fail "no trace"
measure "$dir/gens.trace"
health
start_collector
http=$(sed -n 's/^http=//p' "$dir/ready")
follow "$dir/gens.trace"
paint=$(python3 tests/bench/first_paint.py "http://$http/" 5) && row "first paint, $streams streams" "$paint" ms - - "<= 300"
exit 0
