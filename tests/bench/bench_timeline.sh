#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_timeline.sh: how long a picture takes, beside reading the same bytes (`tracectl check`): a generation that was not looked at before, the
# same once more, and all of a trace of 100 MB, which is more than stays in memory.
. tests/bench/lib.sh
trace=$(paced_trace) || exit 1
start_collector
"$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service shop --no-progress >"$dir/log" 2>&1 || fail "the trace is not sent"
list() { "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --json; }
until list >"$dir/segments" && ! grep -qv '"analysis":"ok"' "$dir/segments"; do sleep 0.2; done
http=$(sed -n 's/^http=//p' "$dir/ready")
stream=$(sed -n '1s/.*"stream":"\([0-9a-f]*\)".*/\1/p' "$dir/segments")

picture() { # QUERY: milliseconds
  curl -fsS -o "$dir/picture" -w '%{time_total}\n' "http://$http/api/v1/spans?format=binary&px=4500&stream=$stream&$1" | awk '{ printf "%.0f", 1000 * $1 }'
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }
milliseconds() { # COMMAND...
  local begin
  begin=$(date +%s%N)
  "$@" >"$dir/log" 2>&1
  echo $((($(date +%s%N) - begin) / 1000000))
}

curl -fsS -o "$dir/newest" "http://$http/api/v1/spans?px=1&lanes=count&stream=$stream" || fail "no picture"
# A generation in the middle, which no picture has shown.
read -r gen from to < <("$bin/tracectl" query --csv "$trace" "SELECT gen, wall_ns, wall_ns + until_ns - from_ns FROM generations WHERE gen=5" | tail -1 | tr -d '\r' | tr , ' ')
at() { echo "@${1:0:-9}.${1: -9}"; }
window="from=$(at "$((from + 50000000))")&to=$(at "$((to - 50000000))")"
first=$(picture "$window")
again=$(picture "$window")
"$bin/tracectl" fetch --server "@$dir/ready" --certs "$dir/certs" --stream "$stream" --gen "$gen" -o "$dir/one.trace" --no-progress >"$dir/log" 2>&1 ||
  fail "generation $gen is not fetched"
check=$(milliseconds "$bin/tracectl" check --no-progress "$dir/one.trace")
megabytes=$(stat -c %s "$dir/one.trace" | awk '{ printf "%.1f", $1 / 1e6 }')
row "timeline: first picture of a generation of $megabytes MB" "$first" "ms" "$check" "check" "<= 500"
row "  the same again, and finer or wider" "$again" "ms" "$(ratio "$first" "$again")" "x faster" "<= 50"

read -r begin end < <("$bin/tracectl" query --csv "$trace" "SELECT min(wall_ns), max(wall_ns + until_ns - from_ns) FROM generations" | tail -1 | tr -d '\r' | tr , ' ')
whole=$(picture "from=$(at "$begin")&to=$(at "$end")")
check=$(milliseconds "$bin/tracectl" check --no-progress "$trace")
row "timeline: all of it ($(stat -c %s "$trace" | awk '{ printf "%.0f", $1 / 1e6 }') MB)" "$whole" "ms" "$(ratio "$whole" "$check")" "x check" -
row "  what stays in memory" "$(awk '/VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$collector/status")" "MiB" - - "<= 300"
end_collector
