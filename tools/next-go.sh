#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# next-go.sh [--tables] TOOLCHAIN [TRACECTL]: what a new Go release means for us. TOOLCHAIN is what GOTOOLCHAIN takes
# ("go1.28.0", or "local"), TRACECTL the one to ask, build/release/bin/tracectl by default.
#
# First its tables against ours: header versions, events, why goroutines block and stop, why the world
# stops. A line with "<" is ours alone, one with ">" Go's alone. Then, unless --tables: fresh traces of that
# release, Go's own reader tests, the stored traces and a hundred thousand mutants, all against its reader.
#
# New rows go into lib/wire/events.def, lib/online/event/reasons.def and lib/online/event/stw_reasons.def; a new header into
# lib/wire/spec.c, with its traps into docs/FORMAT.md. Exit 1 if anything differs, 77 without a Go.
set -u
tables_only=
if [ "${1:-}" = --tables ]; then tables_only=1; shift; fi
[ $# -ge 1 ] || { echo "usage: next-go.sh [--tables] TOOLCHAIN [TRACECTL]" >&2; exit 2; }
toolchain=$1
cd "$(dirname "$0")/.." || exit 1
tracectl=$(realpath "${2:-build/release/bin/tracectl}")
[ -x "$tracectl" ] || { echo "next-go: no $tracectl: build it first" >&2; exit 1; }
go=$(tools/find-go.sh) || { echo "next-go: no Go here; tools/deps.sh fetches one" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(cd / && GOTOOLCHAIN=$toolchain "$go" env GOROOT 2>"$work/why") ||
  { echo "next-go: $toolchain cannot be had here: $(head -1 "$work/why")" >&2; exit 1; }
# A fetched toolchain is in the module cache, where Go refuses overlays: uses another cache.
export GO=$root/bin/go GOTOOLCHAIN=local GOMODCACHE=$work/modules GOFLAGS=-buildvcs=false TZ=UTC LC_ALL=C
bad=0

theirs() {
  printf '{"Replace": {"%s/src/cmd/tracetables/main.go": "%s/tools/next-go.go"}}' "$root" "$PWD" >"$work/overlay.json"
  (cd "$work" && "$GO" run -overlay "$work/overlay.json" cmd/tracetables) || return 1
  strings_of block traceBlockReasonStrings
  strings_of block traceGoStopReasonStrings
  strings_of stop stwReasonStrings
}

strings_of() { # WORD TABLE: prints the runtime's strings
  sed -n "/^var $2 = /,/^}/p" "$root"/src/runtime/*.go | sed -n "s/.*\"\\(.*\\)\",\$/$1 \\1/p"
}

ours() {
  "$tracectl" tables events reasons stw-reasons --json | python3 -c '
import json, sys
headers = set()
for line in sys.stdin:
    row = json.loads(line)
    if row["table"] == "reasons" and row["since_go"] == "-":
        pass  # used by the C agent
    elif row["table"] == "reasons":
        print("block", row["reason"])
    elif row["table"] == "stw-reasons":
        print("stop", row["reason"])
    else:
        experiment = row["kind"] == "experiment"
        headers.add(row["since"])
        print("event", row["number"], row["event"], "-" if experiment else row["since"], row["arguments"].replace(" ", ""))
for since in headers:
    print("header", since)'
}

case $("$GO" env GOVERSION) in go1.2[2-5]*) echo "next-go: its reader is older than 1.26: nothing to learn from it"; exit 77 ;; esac
theirs >"$work/theirs" 2>"$work/why" || { tail -5 "$work/why" >&2; exit 1; }
ours >"$work/ours"
sort -u "$work/theirs" -o "$work/theirs"
sort -u "$work/ours" -o "$work/ours"
if diff "$work/ours" "$work/theirs" | grep '^[<>]'; then bad=1; fi
echo "next-go: $("$GO" env GOVERSION): $(wc -l <"$work/theirs") rows of its tables, $(comm -3 "$work/ours" "$work/theirs" | wc -l) not as ours"
[ -z "$tables_only" ] || exit $bad

run() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@" >"$work/log" 2>&1; then echo "next-go: $what: $(tail -1 "$work/log")"; return; fi
  [ $? = 77 ] && { echo "next-go: $what: skipped: $(tail -1 "$work/log")"; return; }
  echo "next-go: $what:"
  tail -20 "$work/log"
  bad=1
}

run "fresh traces" env FRESH_TOOLCHAINS="$("$GO" env GOVERSION)" tests/conformance/fresh.sh "$tracectl"
run "Go's own tests" tests/conformance/go_tests.sh "$tracectl" ../shared
run "stored traces" tests/conformance/prints.sh "$tracectl" tests/data
compare=$(dirname "$(dirname "$tracectl")")/tests/oracle_compare
if [ -x "$compare" ]; then run "mutants" tests/oracle/run.sh "$compare" 100000; else echo "next-go: mutants: no $compare"; fi
exit $bad
