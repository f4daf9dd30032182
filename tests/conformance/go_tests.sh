#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# go_tests.sh TRACECTL SHARED: the test data and fuzz inputs of Go's own trace reader, as SHARED's traces/go-testdata.sh turns
# them into files: our verdict, number of events, parsed and wire text against Go's. Traces of format v1 are left out: Go
# converts them, we refuse them by name.
#
# Exit 77 (skipped) without a Go >= 1.26 or without SHARED; in CI a missing SHARED is a failure.
set -u
export TZ=UTC LC_ALL=C
tracectl=$1 make=$2/traces/go-testdata.sh
if [ ! -e "$make" ]; then
  echo "go_tests.sh: no $make"
  [ -n "${CI:-}" ] && { echo "0 passed, 1 failed"; exit 1; }
  exit 77
fi
go=$("$(dirname "$0")/../../tools/find-go.sh") || { echo "go_tests.sh: no Go here"; exit 77; }
case $("$go" env GOVERSION) in go1.2[2-5]*) echo "go_tests.sh: this Go's reader is older than 1.26"; exit 77 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GO=$go "$make" "$work" >"$work/log" 2>&1 || { tail -5 "$work/log"; echo "0 passed, 1 failed"; exit 1; }

passed=0 failed=0
while IFS=$'\t' read -r name _ state events sha _ _ _ wire_sha _; do
  file=$work/$name
  [ -e "$file" ] || file=$work/$name.trace
  case $(head -c 8 "$file" | tr -d '\0') in 'go 1.11 '* | 'go 1.19 '* | 'go 1.21 '*) continue ;; esac
  # What the reader delivers, as Go counts: `check` counts what the program wrote, which is less.
  ours="$("$tracectl" check --json "$file" | sed -E 's/.*"ok":true.*/ok/; s/.*"ok":false.*/err/') $("$tracectl" cat --json "$file" 2>/dev/null | wc -l)"
  printed=$("$tracectl" cat -d parsed "$file" 2>/dev/null | sha256sum | cut -d' ' -f1)
  wire=$("$tracectl" cat -d wire "$file" 2>/dev/null | sha256sum | cut -d' ' -f1)
  if [ "$ours $printed $wire" = "$state $events $sha $wire_sha" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "differs: $name: $ours $printed $wire, Go: $state $events $sha $wire_sha"
  fi
done < <(tail -n +2 "$work/verdicts.tsv")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
