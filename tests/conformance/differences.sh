#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# differences.sh TRACECTL DATA: where docs/FORMAT.md says that we answer otherwise than Go's tool, and both tools can be
# asked: that we do what it says, and, where a Go >= 1.26 is at hand, that Go still does what it says of Go.
set -u
export TZ=UTC LC_ALL=C
tracectl=$1 data=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
go=$("$top/tools/find-go.sh") || go=
case $([ -z "$go" ] || cd / && "$go" env GOVERSION) in go1.2[2-5]*) go= ;; esac
if [ -n "$go" ]; then
  go_trace=$("$top/tools/go-tool.sh" trace) || exit 1
else
  echo "SKIP what Go's own tool does: no Go >= 1.26 here"
fi

expect() { # CLAIM CODE STDERR STDOUT: ours, of $work/trace
  "$tracectl" cat -d parsed "$work/trace" >"$work/out" 2>"$work/err"
  local rc=$?
  if [ $rc = "$2" ] && { [ ! -s "$work/err" ] || grep -qE -- "$3" "$work/err"; } && cmp -s "$4" "$work/out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$1: exit $rc, wanted $2: $(cat "$work/err"); $(diff "$4" "$work/out" | head -3)"
  fi
}
expect_go() { # CLAIM CODE STDERR
  [ -n "$go" ] || return 0
  "$go_trace" -d=parsed "$work/trace" >"$work/out" 2>"$work/err"
  local rc=$?
  if [ $rc = "$2" ] && grep -qE -- "$3" "$work/err"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "Go on $1: exit $rc, wanted $2: $(head -2 "$work/err")"
  fi
}

zstd -dqf "$data/g26-midstart.trace.zst" -o "$work/whole"
size=$(stat -c %s "$work/whole")
"$tracectl" cat -d parsed "$work/whole" >"$work/whole.parsed"
before_end() { { head -c $((size - 1)) "$work/whole"; printf '%b' "$1"; printf '\64'; } >"$work/trace"; }

# 1. The older format.
printf 'go 1.21 trace\0\0\0' >"$work/trace"
: >"$work/nothing"
expect "format v1 is refused by name" 1 'go 1\.21 writes trace format v1' "$work/nothing"

# 2. What Go's printing panics on: an experiment it does not know (here 7; the batch has no thread's time) ...
before_end '\61\7\1\0\377\377\377\377\377\377\377\377\377\1\1\0'
expect "an unknown experiment is printed past" 0 'not a word' "$work/whole.parsed"
expect_go "an unknown experiment" 2 'index out of range'
# ... and a CPU sample whose stack is not there, at time 0: there the events end for both.
before_end '\1\1\1\0\10\6\7\0\1\0\1\377\177'
head -1 "$work/whole.parsed" | sed 's/Time=[0-9]* N=1/Time=1 N=1/' >"$work/one"
expect "a sample's missing stack is a fault" 1 'names stack 16383, which is not there' "$work/one"
expect_go "a sample's missing stack" 2 'expected id 16383'

# 3. A fault's words: ours name the place.
head -c $((size - 40)) "$work/whole" >"$work/trace"
head -1 "$work/whole.parsed" | sed 's/Time=.*/Time=1 N=1/' >"$work/one"
expect "a fault names its place" 1 'generation 1, offset [0-9]+: the trace ends in the middle of a batch' "$work/one"
expect_go "a cut" 1 'failed to read full batch'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
