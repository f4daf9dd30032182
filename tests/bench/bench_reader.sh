#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_reader.sh: what reading, ordering and all analyses cost, beside Go's own reader on the same traces
# in the same run: one core each, CPU time, rounds in turn, the best of each side.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-3}
declare -A faster=([xl-chan]=11 [xl-mutex]=8 [xl-net]=14 [xl-gc]=12 [xl-gcdeep]=26 [xl-manyg]=13) # than Go's, at least

peak_mib() { # COMMAND...: of a child's resident memory. (Not by Python, whose own a child begins with.)
  /usr/bin/time -f %M -o "$dir/peak" "$@" >/dev/null && awk '{ printf "%.1f", $1 / 1024 }' "$dir/peak"
}

cpu_s() { # COMMAND...: user and system seconds, the best of three
  local i
  for i in 1 2 3; do /usr/bin/time -f '%U %S' -o "$dir/cpu" "$@" >/dev/null && cat "$dir/cpu"; done |
    awk '{ t = $1 + $2; if (NR == 1 || t < best) best = t } END { printf "%.2f", best }'
}

wall_s() { # COMMAND...: the time that passes, the best of three
  local i
  for i in 1 2 3; do /usr/bin/time -f %e -o "$dir/wall" "$@" >/dev/null && cat "$dir/wall"; done | sort -n | head -1
}

# What a second core brings to a file of several generations. A plain one leaves it the tables alone: little where
# the order is all there is to do, so that has no goal (docs/decisions/062-reading-ahead.md).
two_cores() { # TRACE NAME
  local one two
  [[ $("$bin/tracectl" check --no-progress "$1") != *" 1 generations"* ]] || return 0
  read -r _ _ one _ < <("$ours" -n "$rounds" "$1")
  read -r _ _ two _ < <("$ours" -n "$rounds" --ahead "$1")
  row "  two cores, $2 (reckoned)" "$two" "ns/event" "$one" "one core" -
  zstd -qf -3 "$1" -o "$dir/packed.zst" || fail "cannot pack"
  one=$(wall_s "$bin/tracectl" check --no-progress "$dir/packed.zst")
  two=$(wall_s "$bin/tracectl" check --no-progress --threads 2 "$dir/packed.zst")
  row "  two cores, packed, check --threads 2" "$two" s "$one" "--threads 1" \
    "<= $(awk -v o="$one" 'BEGIN { printf "%.2f", o / 1.5 }')"
}

ours=build/release/tests/bench_order
[ -x /usr/bin/time ] || fail "/usr/bin/time is missing (Debian package time)"
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
  row "ordered, all analyses, $name" "$(million "$best_full")" Mev/s "$(million "$best_go")" \
    "Go's reader (x/exp/trace), ordered only" ">= $(awk -v g="$best_go" 'BEGIN { printf "%.2f", 4 * g / 1e6 }')"
  row "  ordered only" "$(million "$best_plain")" Mev/s "$(million "$best_go")" "the same" \
    ">= $(awk -v g="$best_go" -v n="${faster[$name]:-0}" 'BEGIN { printf "%.2f", n * g / 1e6 }')"
  most=$(awk -v l="$largest" 'BEGIN { printf "%.1f", (l * 1e6 * 1.3) / 1048576 + 8 }')
  for verb in check "cat -d parsed" "cat -d wire"; do
    # shellcheck disable=SC2086
    row "  peak memory of tracectl $verb, largest generation $largest MB" "$(peak_mib "$bin/tracectl" $verb "$trace")" \
      MiB - - "<= $most"
  done
  two_cores "$trace" "$name"
done

# Text, on the trace that Go prints in a few seconds: it writes each line by a call of its own.
case $traces in
*gc.trace*)
  trace=$(grep 'gc\.trace' <<<"$traces")
  for form in parsed:20 wire:15; do
    go_s=$(cpu_s "$GO" tool trace -d="${form%:*}" "$trace")
    row "cat -d ${form%:*}, gc" "$(cpu_s "$bin/tracectl" cat -d "${form%:*}" "$trace")" s "$go_s" "go tool trace" \
      "<= $(awk -v g="$go_s" -v n="${form#*:}" 'BEGIN { printf "%.3f", g / n }')"
  done
  ;;
esac
