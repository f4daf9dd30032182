#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_instructions.sh [--update]: instructions an event takes to be read, ordered and printed, counted by
# callgrind on small traces of tests/data: the one figure that a busy machine leaves alone.
#
# instructions.tsv holds what they were (first line: compiler and processor, as others count otherwise). A count
# more than 3 % above misses its goal; one more than 3 % below wants --update, so that it is kept.
. tests/bench/lib.sh
kept=tests/bench/instructions.tsv
traces=(g22-mix g26-annot g26-cgo g26-gens)
compiler=$(cc -dumpfullversion 2>/dev/null || cc -dumpversion)-$(uname -m)
grep -qw bmi2 /proc/cpuinfo && compiler+=-bmi2
command -v valgrind >/dev/null || fail "valgrind is missing (Debian package valgrind)"

count() { # FUNCTION COMMAND...: instructions within it, the least of three: hash tables draw their seed in each run
  for _ in 1 2 3; do
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1" "${@:2}" \
      2>&1 >/dev/null | awk '/Collected/ { print $NF }'
  done | sort -n | head -1
}

per_event() { # PHASE TRACE: instructions within the phase an event
  local function=to_reader_feed command=(build/release/tests/bench_order -n 1)
  case $1 in
  order) function=to_reader_run ;;
  text) function=tk_print_parsed command=("$bin/tracectl" cat -d parsed) ;;
  esac
  awk -v n="$(count "$function" "${command[@]}" "$2")" -v events="$3" 'BEGIN { printf "%.1f", n / events }'
}

[ "$(head -1 "$kept" 2>/dev/null)" = "# $compiler" ] || say "$kept is not of $compiler: no goals"
echo "# $compiler" >"$dir/now"
for name in "${traces[@]}"; do
  zstd -dqf "tests/data/$name.trace.zst" -o "$dir/$name.trace"
  events=$(build/release/tests/bench_order -n 1 "$dir/$name.trace" | cut -f 2)
  for phase in read order text; do
    n=$(per_event "$phase" "$dir/$name.trace" "$events")
    printf '%s\t%s\t%s\n' "$name" "$phase" "$n" >>"$dir/now"
    was=$(awk -v c="# $compiler" -v t="$name" -v p="$phase" \
      'NR == 1 && $0 != c { exit } $1 == t && $2 == p { print $3 }' "$kept" 2>/dev/null)
    awk -v n="$n" -v was="${was:-0}" 'BEGIN { exit !(n < 0.97 * was) }' && say "$name, $phase: $was is now $n: --update"
    goal=-
    [ -z "$was" ] || goal="<= $(awk -v w="$was" 'BEGIN { printf "%.1f", 1.03 * w }')"
    row "instructions: $phase, $name" "$n" "an event" "${was:--}" "kept from before" "$goal"
  done
done
[ "${1:-}" != --update ] || cp "$dir/now" "$kept"
