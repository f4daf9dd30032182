#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_collector.sh: the collector's whole CPU for a dense trace, from TLS to disk, ordering and both
# analyses included, and how long until all of it is acked. Rows as tests/bench/run.sh wants them.
#
# The peers' figures are receivers that only store (no ordering, no analysis), measured once on a machine
# of the same kind (2 cores, Zen 4 class, Debian 12): they are a scale, not a race of this run.
set -u
bin=build/release/bin
dir=$(mktemp -d /tmp/tc-bench.XXXXXX)
collector=''
trap 'kill $collector 2>/dev/null; rm -rf "$dir"' EXIT

fail() { echo "bench_collector: $*" >&2; tail -5 "$dir/log" >&2; exit 1; }

cpu_ms() { # of a process, user and system, since it began
  awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / hz }' "/proc/$1/stat"
}

resident_mb() { awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }

all_judged() {
  ! "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --service bench --json | grep -q '"analysis": *"pending"'
}

trace=$BENCH_DIR/dense.trace
if [ ! -e "$trace" ]; then
  [ -n "${GO:-}" ] || fail "the trace is made by a Go program, and there is no Go"
  (cd tests/bench/dense-trace && CGO_ENABLED=0 "$GO" build -buildvcs=false -o "$dir/dense-trace" .) || fail "does not build"
  "$dir/dense-trace" -o "$trace.part" -passes 1500000 && mv "$trace.part" "$trace" || fail "no trace"
fi
bytes=$(stat -c %s "$trace")

"$bin/tracectl" certs init "$dir/certs" >"$dir/log" 2>&1 || fail "no certificates"
"$bin/tracecollectd" --ready-file "$dir/ready" --set "state=$dir/state" --set "certs=$dir/certs" \
  --set listen.agents=127.0.0.1:0 --set listen.http=127.0.0.1:0 </dev/null >"$dir/log" 2>&1 &
collector=$!
for ((i = 0; i < 200; i++)); do [ -e "$dir/ready" ] && break; sleep 0.1; done
[ -e "$dir/ready" ] || fail "the collector does not start"

before=$(cpu_ms $collector)
started=$(date +%s%N)
"$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress >"$dir/log" 2>&1 || fail "send failed"
acked=$(date +%s%N)
for ((i = 0; i < 600; i++)); do all_judged && break; sleep 0.1; done
all_judged || fail "generations are still not analysed"
judged=$(date +%s%N)
used=$(($(cpu_ms $collector) - before))

row() { printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@"; }
per_mb() { awk -v ms="$used" -v b="$bytes" 'BEGIN { printf "%.2f", ms / (b / 1e6) }'; }
rate() { awk -v ns="$1" -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e6 / (ns / 1e9) }'; }
row "collector CPU, TLS to disk, ordered, analysed" "$(per_mb)" ms/MB 13.7 "OpenTelemetry Collector, mTLS to file, stores only (quoted)" "<= 8"
row "same" "$(per_mb)" ms/MB 5.2 "rsyslog TLS to file, stores only (quoted)" -
row "same" "$(per_mb)" ms/MB 0.5 "LTTng relayd, plain TCP, stores only (quoted)" -
row "sent and acked durable, one stream" "$(rate $((acked - started)))" MB/s 49 "OpenTelemetry Collector, one core (quoted)" -
row "sent, acked, ordered and analysed" "$(rate $((judged - started)))" MB/s - - -
row "collector's peak memory ($((bytes / 1000000)) MB trace)" "$(resident_mb $collector)" MB - - -
