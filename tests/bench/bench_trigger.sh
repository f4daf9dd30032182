#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_trigger.sh: what rules of triggers cost a quiet program's generation, beside ordering and analysing it: `tracectl trigger test` does
# what a collector does. CPU time of whole processes, the best of five in turn.
. tests/bench/lib.sh
trace=$(quiet_trace) || exit 1
generations=$("$bin/tracectl" index --json "$trace" 2>"$dir/log" | wc -l)
[ "$generations" -gt 0 ] || fail "no generation"

cpu() { # RULES: seconds of CPU, user and system
  local TIMEFORMAT='%U %S'
  printf '%b' "$1" >"$dir/rules"
  { time "$bin/tracectl" trigger test "@$dir/rules" --no-progress "$trace" >/dev/null 2>"$dir/log"; } 2>&1 | awk '{ print $1 + $2 }'
}
best() { # RULES: of five
  local i
  for i in 1 2 3 4 5; do cpu "$1"; done | sort -n | head -1
}
micros() { awk -v a="$1" -v b="$2" -v n="$generations" 'BEGIN { printf "%.0f", 1e6 * (a - b) / n }'; }

none=$(best '# none\n')
row "a generation of $(($(stat -c %s "$trace") / generations / 1000)) KB, ordered and analysed" "$(micros "$none" 0)" "us" - - -
each() { row "  and looked at by $1" "$(micros "$(best "$2")" "$none")" "us" "$(micros "$none" 0)" "the same without rules" -; }
each "a rule on a sum (stw.wall_share)" 'a WHEN stw.wall_share > 90% DO alert\n'
each "a rule on a quantile (sched.latency.p99)" 'a WHEN sched.latency.p99 > 50s DO alert\n'
each "a rule on a finding" 'a WHEN finding deadlock DO alert\n'
each "four rules of four reports" 'a WHEN stw.wall_share > 90% DO alert\nb WHEN sched.latency.p99 > 50s DO alert\nc WHEN syscall.blocked_now.age > 100s DO alert\nd WHEN goroutines.alive > 1000000 DO alert\n'
