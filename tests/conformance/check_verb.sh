#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check_verb.sh TRACECTL DATA: what `tracectl check` says and answers, as a user types it.
set -u
export LC_ALL=C
tracectl=$1 data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

expect() { # CLAIM CODE PATTERN ARGUMENT...: on both streams together
  local claim=$1 code=$2 pattern=$3 got rc
  shift 3
  got=$("$tracectl" "$@" 2>&1)
  rc=$?
  if [ "$rc" = "$code" ] && grep -qE -- "$pattern" <<<"$got"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$claim: exit $rc, wanted $code: $got"
  fi
}

good=$work/good.trace
zstd -dqf "$data/g26-midstart.trace.zst" -o "$good"
size=$(stat -c %s "$good")
head -c $((size - 40)) "$good" >"$work/cut.trace"
{ head -c 16 "$good"; printf '\143rest'; } >"$work/odd.trace"
printf 'go 1.21 trace\0\0\0' >"$work/old.trace"
: >"$work/empty.trace"
mkdir "$work/folder.trace"

expect "a whole trace" 0 "^$good: ok: 331 events, 1 generations, trace format of Go 1\.26\$" check "$good"
expect "packed with zstd" 0 "ok: 331 events" check "$data/g26-midstart.trace.zst"
expect "as JSON" 0 '"ok":true,"events":331,"generations":1,"version":"go 1.26"}$' check --json "$good"
expect "options after arguments" 0 '"ok":true' check "$good" --json
expect "cut off" 1 "^$work/cut.trace: broken at generation 1, offset [0-9]+: the trace ends in the middle of a batch\$" check "$work/cut.trace"
expect "cut off, as JSON" 1 '"ok":false.*"generation":1,"offset":[0-9]+,"code":"BROKEN","reason":"' check --json "$work/cut.trace"
expect "no batch" 1 "broken at offset 16: expected a batch, got event type 99" check "$work/odd.trace"
expect "format v1" 1 "go 1\.21 writes trace format v1" check "$work/old.trace"
expect "no bytes" 1 "not a Go execution trace" check "$work/empty.trace"
expect "one broken of two" 1 "good.trace: ok" check "$work/cut.trace" "$good"
expect "a missing file" 1 "no-such.trace: No such file" check "$work/no-such.trace"
expect "a folder" 1 "is a directory" check "$work/folder.trace"
expect "too little memory" 1 "broken.*more than --memory-max" check --memory-max 4K "$good"
expect "enough memory" 0 "ok" check --memory-max 64MiB "$good"
expect "no size" 2 "--memory-max needs a size" check --memory-max lots "$good"
expect "no file" 2 "FILE is required" check
expect "an unknown option" 2 "Try 'tracectl help check'" check --loud "$good"
expect "help" 0 "usage: tracectl check" help check
expect "--help" 0 "usage: tracectl check" check --help
# I5: whose each range is, what it holds up, since when.
expect "ranges" 0 '"begins":"STWBegin","ends":"STWEnd","restated":"","id":"/stw","owner":"Goroutine","affects":"Process","since_go":"1.22"' tables ranges --json
expect "ranges, as a table" 0 '^GCSweepBegin +GCSweepEnd +GCSweepActive +/gc/sweep +Proc +Goroutine +1\.22 ' tables ranges
expect "an unknown verb" 2 'no verb "chek"' chek

if [ "$("$tracectl" check - <"$good")" = "-: ok: 331 events, 1 generations, trace format of Go 1.26" ]; then passed=$((passed + 1)); else
  failed=$((failed + 1))
  echo "from standard input: differs"
fi
if "$tracectl" check - < <(zstd -q <"$good") >/dev/null; then passed=$((passed + 1)); else
  failed=$((failed + 1))
  echo "packed from a pipe: differs"
fi
words=$("$tracectl" cat -d parsed "$good" 2>&1 | head -1)
case $words in M=-1*) passed=$((passed + 1)) ;; *) failed=$((failed + 1)); echo "a broken pipe is not silent: $words" ;; esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
