#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_blobs.sh: what a row of a blob costs to write and to read, and what the same row costs as an event of its
# own (J11). Instructions, counted by callgrind: the figure that a busy machine leaves alone.
. tests/bench/lib.sh
rows=100000
command -v valgrind >/dev/null || fail "valgrind is missing (Debian package valgrind)"

count() { # FUNCTION events|blobs: instructions a row within it
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1*" \
    build/release/tests/bench_blobs "$2" $rows 2>&1 >"$dir/said" |
    awk -v rows=$rows '/Collected/ { printf "%.1f", $NF / rows }'
}

written=$(count write_blobs blobs) || fail "cannot count"
blob_bytes=$(cut -f 2 "$dir/said")
event=$(count write_events events)
event_bytes=$(cut -f 2 "$dir/said")
goal=$(awk -v e="$event" 'BEGIN { printf "<= %.1f", e }')
row "blob: write a row of three numbers" "$written" "instr." "$event" "as an event of its own" "$goal"
read=$(count read_rows blobs)
event=$(count read_rows events)
goal=$(awk -v e="$event" 'BEGIN { printf "<= %.1f", e }')
row "blob: read a row back" "$read" "instr." "$event" "as an event of its own" "$goal"
row "blob: bytes a row" "$(awk -v n="$blob_bytes" -v r=$rows 'BEGIN { printf "%.1f", n / r }')" "B" \
  "$(awk -v n="$event_bytes" -v r=$rows 'BEGIN { printf "%.1f", n / r }')" "as an event of its own" -
