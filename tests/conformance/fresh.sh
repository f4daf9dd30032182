#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh TRACECTL [--short]: makes traces of the workload (tests/workload) here and now, under Go 1.22 to 1.27, and compares
# what `TRACECTL cat -d parsed|wire|footprint` prints of each with `go tool trace -d=MODE`: standard output and exit code.
#
# Every scenario alone, some together over several generations, AllocFree and cgo; --short: three traces of the Go at
# hand. The reader beside us is that of the Go at hand and of the newest toolchain. A toolchain that cannot be had
# is printed as skipped, and so is a scenario that a release does not know. What differs is kept in build/fresh/.
# FRESH_TOOLCHAINS="go1.28.0 ..." asks for other toolchains. Exit 77 (skipped) without a Go >= 1.26.
set -u
export TZ=UTC LC_ALL=C
tracectl=$(realpath "$1") short=${2:-}
cd "$(dirname "$0")/../.." || exit 1
GO=$(tools/find-go.sh) || { echo "fresh.sh: no Go here"; exit 77; }
export GO
here=$(cd / && GOTOOLCHAIN=local "$GO" env GOVERSION)
case $here in go1.2[2-5]*) echo "fresh.sh: this Go's reader is older than 1.26"; exit 77 ;; esac
toolchains=${FRESH_TOOLCHAINS:-go1.22.12 go1.23.12 go1.24.11 go1.25.5 go1.26.8 go1.27.3}
[ -z "$short" ] || toolchains=$here
mkdir -p build
work=$(mktemp -d build/fresh.XXXXXX)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 traces=0
readers=()

minor() { [[ $1 =~ ^go1\.([0-9]+) ]] && echo "${BASH_REMATCH[1]}"; }

add_reader() { # TOOLCHAIN: its own `go tool trace`
  local program
  program=$(tools/go-tool.sh trace "$1" 2>"$work/log") || return 1
  readers+=("$program")
}

judge() { # CLAIM TRACE: all readers, all modes
  local reader mode theirs ours
  traces=$((traces + 1))
  for reader in "${readers[@]}"; do
    for mode in parsed wire footprint; do
      "$reader" -d="$mode" "$2" >"$work/theirs" 2>/dev/null
      theirs=$?
      "$tracectl" cat -d "$mode" "$2" >"$work/ours" 2>"$work/why"
      ours=$?
      if [ $ours = $theirs ] && cmp -s "$work/theirs" "$work/ours"; then
        passed=$((passed + 1))
        continue
      fi
      failed=$((failed + 1))
      mkdir -p build/fresh
      cp "$2" "build/fresh/$1.trace"
      echo "differs: $1 -d $mode, $reader: exit $ours, theirs $theirs; $(cat "$work/why")"
      diff "$work/theirs" "$work/ours" | head -4
    done
  done
}

# What the runtime itself writes broken (AllocFree over generations) is as good: both sides say the same.
try() { # PROGRAM NAME GODEBUG ARGUMENTS...
  local program=$1 name=$2 debug=$3 rc
  shift 3
  GODEBUG=$debug timeout 60 "$program" "$@" -o "$work/trace" 2>"$work/log"
  rc=$?
  if [ $rc = 3 ]; then return; fi # not in this release's build
  if [ $rc != 0 ]; then
    echo "SKIP $name: the program ended with $rc: $(head -1 "$work/log")"
    return
  fi
  judge "$name" "$work/trace"
}

try_all() { # PROGRAM TOOLCHAIN
  local scenario gens=traceadvanceperiod=20000000
  for scenario in $("$1" -scenario list | cut -d' ' -f1); do
    try "$1" "$2-$scenario" "" -scenario "$scenario" -ops 300 -seconds 0.2
  done
  try "$1" "$2-gens" $gens -scenario longrun,net,annot,syscall -ops 1500 -seconds 0.3
  try "$1" "$2-gcgens" $gens -scenario gc,sleep,labels -ops 300 -seconds 0.3
  try "$1" "$2-midgens" $gens -scenario midstart,nilwait,stw -ops 30 -seconds 0.2
  try "$1" "$2-allocfree" traceallocfree=1 -scenario alloc -ops 600
  try "$1" "$2-allocgens" traceallocfree=1,traceadvanceperiod=4000000 -scenario alloc -ops 6000
}

add_reader local || { tail -5 "$work/log"; echo "0 passed, 1 failed"; exit 1; }
newest=${toolchains##* }
if [ "$newest" != "$here" ] && ! add_reader "$newest"; then echo "SKIP the reader of $newest: cannot be had here"; fi

for toolchain in $toolchains; do
  program=$work/tracegen-$toolchain
  if ! tests/workload/build.sh "$toolchain" "$program" 2>"$work/log"; then
    # The Go at hand stands in for its own release.
    if [ "$(minor "$toolchain")" != "$(minor "$here")" ] || ! tests/workload/build.sh local "$program" 2>"$work/log"; then
      echo "SKIP $toolchain: $(head -c 200 "$work/log" | tr '\n' ' ')"
      continue
    fi
  fi
  if [ -n "$short" ]; then
    try "$program" "$toolchain-mix" "" -scenario chan,mutex,syscall,annot,gc,stw -ops 300 -seconds 0.1
    try "$program" "$toolchain-gens" traceadvanceperiod=20000000 -scenario longrun,labels,net -ops 600 -seconds 0.15
    try "$program" "$toolchain-allocfree" traceallocfree=1 -scenario alloc -ops 200
    continue
  fi
  try_all "$program" "$toolchain"
  if tests/workload/build.sh "$toolchain" "$program-cgo" cgo 2>"$work/log"; then
    try "$program-cgo" "$toolchain-cgo" "" -scenario cgo,syscall -ops 200 -seconds 0.3
  else
    echo "SKIP $toolchain with cgo: $(head -c 200 "$work/log" | tr '\n' ' ')"
  fi
done
echo "$traces fresh traces"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
