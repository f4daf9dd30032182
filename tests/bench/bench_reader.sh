#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_reader.sh: what reading, ordering and both analyses cost, beside Go's own reader on the same traces
# in the same run: one core each, CPU time, rounds in turn, the best of each side.
#
# The traces are those of the shared benchmark where the folder "shared" lies beside the checkout (made
# once, in a minute or two), else one dense trace of our own.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-3}

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

peak_mib() { # COMMAND...: of a child's resident memory
  python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1))' "$@"
}

ours=build/release/tests/bench_order
build_go go-reader "$dir/go-reader"
traces=$(bench_traces) || exit 1
for trace in $traces; do
  name=$(basename "$trace" .trace)
  best_plain=0 best_full=0 best_go=0
  for ((i = 0; i < rounds; i++)); do
    read -r _ _ _ plain _ _ largest < <("$ours" -n 1 "$trace") || fail "bench_order failed"
    read -r _ _ _ full _ < <("$ours" -n 1 --analyses "$trace") || fail "bench_order failed"
    read -r _ events cpu < <("$dir/go-reader" -n 1 "$trace") || fail "go-reader failed"
    read -r best_plain best_full best_go < <(awk -v p="$plain" -v bp="$best_plain" -v f="$full" -v bf="$best_full" \
      -v g="$(awk -v e="$events" -v c="$cpu" 'BEGIN { print e / c }')" -v bg="$best_go" \
      'BEGIN { print (p > bp ? p : bp), (f > bf ? f : bf), (g > bg ? g : bg) }')
  done
  million() { awk -v v="$1" 'BEGIN { printf "%.2f", v / 1e6 }'; }
  row "ordered, both analyses, $name" "$(million "$best_full")" Mev/s "$(million "$best_go")" \
    "Go's reader (x/exp/trace), ordered only" ">= $(awk -v g="$best_go" 'BEGIN { printf "%.2f", 4 * g / 1e6 }')"
  row "  ordered only" "$(million "$best_plain")" Mev/s "$(million "$best_go")" "the same" -
  row "  peak memory of tracectl check, largest generation $largest MB" "$(peak_mib "$bin/tracectl" check "$trace")" MiB - - \
    "<= $(awk -v l="$largest" 'BEGIN { printf "%.1f", l * 1e6 * 2 / 1048576 + 16 }')"
done
