#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_query.sh: what rows, conversions and a moment cost, beside reading the same bytes (`tracectl check`). CPU time of whole processes,
# the best of three in turn.
. tests/bench/lib.sh
trace=$(paced_trace) || exit 1
"$bin/tracectl" index --write "$trace" --no-progress >"$dir/log" 2>&1 || fail "no index"

cpu() { # COMMAND...: seconds of CPU, user and system
  local TIMEFORMAT='%U %S'
  { time "$@" >/dev/null 2>"$dir/log"; } 2>&1 | awk '{ print $1 + $2 }'
}
best() { # COMMAND...: of three
  local i
  for i in 1 2 3; do cpu "$@"; done | sort -n | head -1
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'; }

check=$(best "$bin/tracectl" check --no-progress "$trace")
read -r spans < <("$bin/tracectl" query --csv "$trace" "SELECT count(*) FROM spans" | tail -1 | tr -d '\r')
megabytes=$(stat -c %s "$trace" | awk '{ printf "%.0f", $1 / 1e6 }')

pass=$(best "$bin/tracectl" query "$trace" "SELECT count(*) FROM spans WHERE kind='goroutine'")
row "query: spans of $megabytes MB, counted" "$(ratio "$pass" "$check")" "x check" 1 "check" -

read -r goroutine < <("$bin/tracectl" query --csv "$trace" "SELECT goroutine FROM events WHERE goroutine IS NOT NULL AND gen=3 LIMIT 1" | tail -1 | tr -d '\r')
gens=$("$bin/tracectl" index --json --goroutine "$goroutine" "$trace" | wc -l)
needed=$(best "$bin/tracectl" cat -d json --goroutine "$goroutine" "$trace")
events=$(best "$bin/tracectl" query "$trace" "SELECT count(*) FROM events WHERE goroutine=$goroutine")
row "query: events of a goroutine that is in $gens generations" "$(ratio "$events" "$check")" "x check" \
  "$(ratio "$needed" "$check")" "cat --goroutine" "<= 1.5"

for format in perfetto chrome collapsed otlp csv; do
  seconds=$(best "$bin/tracectl" convert --to "$format" "$trace" -o /dev/null)
  row "convert --to $format" "$(awk -v n="$spans" -v s="$seconds" 'BEGIN { printf "%.2f", n / s / 1e6 }')" "M spans/s" - - ">= 1"
done

read -r last < <("$bin/tracectl" query --csv "$trace" "SELECT max(until_ns) FROM generations" | tail -1 | tr -d '\r')
state=$(best "$bin/tracectl" state --at "$last" --json "$trace")
row "state at the end of $megabytes MB" "$(ratio "$state" "$check")" "x check" 1 "check" -
read -r begin until < <("$bin/tracectl" query --csv "$trace" "SELECT from_ns, until_ns FROM generations WHERE gen=4" | tail -1 | tr -d '\r' | tr , ' ')
alone=$(best "$bin/tracectl" state --at "$(((begin + until) / 2))" --gen 3..4 --json "$trace")
row "state of one moment, two generations read" "$(awk -v s="$alone" 'BEGIN { printf "%.0f", 1000 * s }')" "ms CPU" - - "<= 100"
row "  each of some" "$(awk -v m="$megabytes" -v g="$("$bin/tracectl" index --json "$trace" | wc -l)" 'BEGIN { printf "%.1f", m / g }')" "MB" - - -
