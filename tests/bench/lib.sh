# SPDX-License-Identifier: Apache-2.0
# Sourced by the bench scripts: a folder, a collector, rows. Needs bash, from the repository's root.
# shellcheck shell=bash
set -u
bin=build/release/bin
bench_name=$(basename "$0" .sh)
dir=$(mktemp -d /tmp/tc-bench.XXXXXX)
collector=''
trap 'end_collector; rm -rf "$dir"' EXIT

say() { echo "$bench_name: $*" >&2; }
fail() { say "$*"; [ ! -e "$dir/log" ] || tail -5 "$dir/log" >&2; exit 1; }
row() { local IFS=$'\t'; echo "$*"; } # MEASURE OURS UNIT PEER WHO GOAL

build_go() { # FOLDER OUT: a program under tests/bench
  [ -n "${GO:-}" ] || fail "needs a Go program, and there is no Go"
  (cd "tests/bench/$1" && CGO_ENABLED=0 GOWORK=off "$GO" build -buildvcs=false -o "$2" .) >"$dir/log" 2>&1 ||
    fail "tests/bench/$1 does not build"
}

make_dense() { # NAME OPTION...: prints its path; made once
  local trace=$BENCH_DIR/$1.trace
  shift
  if [ ! -e "$trace" ]; then
    build_go dense-trace "$dir/dense-trace"
    "$dir/dense-trace" -o "$trace.part" "$@" || fail "no trace"
    mv "$trace.part" "$trace"
  fi
  echo "$trace"
}

dense_trace() { make_dense dense -passes 1500000; }            # of about 100 MB
long_trace() { make_dense long -passes 15000000; }             # of about 1 GB
paced_trace() { make_dense paced -passes 1500000 -burst 200; } # of about 10 MB a second, hence 10 MB a generation

quiet_trace() { # [NAME SECONDS RATE]: prints the path of one of some 46 KB and 120 requests a second, 90 generations
  local trace=$BENCH_DIR/${1:-quiet}.trace
  if [ ! -e "$trace" ]; then
    build_go quiet-trace "$dir/quiet-trace"
    say "making a quiet trace of ${2:-90} s"
    "$dir/quiet-trace" -o "$trace.part" -seconds "${2:-90}" -rate "${3:-120}" || fail "no trace"
    mv "$trace.part" "$trace"
  fi
  echo "$trace"
}

# Those of the shared benchmark where the folder "shared" lies beside the checkout (made once, in a minute or two),
# else one dense trace of our own.
bench_traces() {
  local make=../shared/bench/go-reader/bench.sh xl=$BENCH_DIR/xl
  if [ -e "$make" ] && [ ! -e "$xl/made" ]; then
    mkdir -p "$xl"
    say "making large traces in $xl"
    PATH=$(dirname "$GO"):$PATH bash "$make" --quick "$xl" >"$dir/log" 2>&1 && touch "$xl/made"
  fi
  if [ -e "$xl/made" ]; then
    for name in chan mutex net gc gcdeep manyg; do echo "$xl/xl-$name.trace"; done
  else
    dense_trace
  fi
}

start_collector() { # SETTING...: leaves $dir/ready, $dir/certs, $collector
  local sets=() setting i
  for setting in "state=$dir/state" "certs=$dir/certs" listen.agents=127.0.0.1:0 listen.http=127.0.0.1:0 "$@"; do
    sets+=(--set "$setting")
  done
  [ -d "$dir/certs" ] || "$bin/tracectl" certs init "$dir/certs" >"$dir/log" 2>&1 || fail "no certificates"
  rm -f "$dir/ready"
  "$bin/tracecollectd" --ready-file "$dir/ready" "${sets[@]}" </dev/null >"$dir/log" 2>&1 &
  collector=$!
  for ((i = 0; i < 200; i++)); do [ -e "$dir/ready" ] && return; sleep 0.1; done
  fail "the collector does not start"
}

end_collector() {
  [ -n "$collector" ] || return 0
  kill "$collector" 2>/dev/null && wait "$collector" 2>/dev/null
  collector=''
}

thread_ms() { # PID PREFIX [2]: of its threads whose names begin so, since it began; 2: that they waited for a core
  local task sum=0 name
  for task in "/proc/$1/task/"*; do
    read -r name <"$task/comm" && [ "${name#"$2"}" != "$name" ] &&
      sum=$((sum + $(cut -d' ' -f"${3:-1}" "$task/schedstat")))
  done
  echo $((sum / 1000000))
}

cpu_ms() { # PID: user and system, since it began
  awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1000 / hz }' "/proc/$1/stat"
}
