#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_flat.sh: what an event costs to be read and ordered where the trace grows, and where its threads do. The
# traces are made for it and go when the script ends.
#
# Length: CPU time, rounds in turn, the best of each; BENCH_MB (default 1000) is the longest, and of a shorter one as
# many bytes are read in a round, again and again, so that a busy machine is in the way of both. Threads: instructions,
# counted by callgrind. The steps of a heap are what may grow with them: from 20 threads on each doubling may cost no
# more than from 2 to 20, and a fifth.
. tests/bench/lib.sh
make=build/release/tests/make_trace order=build/release/tests/bench_order
rounds=${BENCH_ROUNDS:-3}
lengths=(10 100 "${BENCH_MB:-1000}")
threads=(2 20 200 2000)
command -v valgrind >/dev/null || fail "valgrind is missing (Debian package valgrind)"

for mb in "${lengths[@]}"; do "$make" "$dir/$mb.trace" "$mb" 8 || fail "no trace"; done
again() { # MB: the same trace so many times
  for ((n = 0; n < lengths[-1]; n += $1)); do echo "$dir/$1.trace"; done
}

declare -A best=()
for ((i = 0; i < rounds; i++)); do
  for mb in "${lengths[@]}"; do
    # shellcheck disable=SC2046
    ns=$("$order" -n 1 $(again "$mb") | awk '{ sum += $3 } END { print sum / NR }')
    best[$mb]=$(awk -v n="$ns" -v b="${best[$mb]:-1e9}" 'BEGIN { printf "%.2f", n < b ? n : b }')
  done
done
for mb in "${lengths[@]:1}"; do
  row "an event of a trace of $mb MB" "${best[$mb]}" "ns CPU" "${best[10]}" "the same, of 10 MB" \
    "<= $(awk -v b="${best[10]}" 'BEGIN { printf "%.2f", 1.1 * b }')"
done
rm -f "$dir"/*.trace

declare -A count=()
for n in "${threads[@]}"; do
  "$make" "$dir/threads.trace" 3 "$n" || fail "no trace"
  events=$("$order" -n 1 "$dir/threads.trace" | cut -f 2)
  count[$n]=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=to_reader_run \
    "$order" -n 1 "$dir/threads.trace" 2>&1 >/dev/null | awk -v e="$events" '/Collected/ { printf "%.1f", $NF / e }')
done
row "order of an event, 2 threads in turn" "${count[2]}" instr. - - -
row "  20 threads" "${count[20]}" instr. - - -
for n in 200 2000; do
  row "  $n threads" "${count[$n]}" instr. - - \
    "<= $(awk -v a="${count[2]}" -v b="${count[20]}" -v n="$n" 'BEGIN { printf "%.1f", b + 1.2 * (b - a) * log(n / 20) / log(10) }')"
done
