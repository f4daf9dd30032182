#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# flake.sh: runs each entry of a build 20 times beside four processes that spin, and lists each case that ever failed. Entries that
# take more than 5 s run three times. Those that mostly wait run together, as in `make test`.
#
#   PART=1/4        every fourth entry, from the first on: an hour at most
#   SUITE=tsan      instead of release
#   TEST_ARGS       selects entries as ctest does, for instance TEST_ARGS="-R store"
#   FLAKE_TIMES     instead of 20
#
# The output of each failed entry stays in build/flake. The last line is "N entries, N failed".
set -u
cd "$(dirname "$0")/.." || exit 1
part=${PART:-1/1}
if ! [[ $part =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || [ "${part%/*}" -gt "${part#*/}" ]; then
  echo "flake: PART=K/N takes the K-th of N parts, not '$part'" >&2
  exit 2
fi
times=${FLAKE_TIMES:-20}
GO=$(tools/find-go.sh) && export GO
export GOFLAGS="${GOFLAGS:-} -buildvcs=false" CI=${CI:-true} LC_ALL=C.UTF-8
export TC_PATIENCE=${TC_PATIENCE:-4} # a spinning process takes more than half of each core
build=build/${SUITE:-release} out=build/flake/${SUITE:-release}
rm -rf "$out" && mkdir -p "$out"
results=$PWD/$build/results

run() { # NAME CTEST-ARGUMENT...: a log and a table of it
  local name=$1
  shift
  ctest --test-dir "$build" -V "-j$((4 * $(nproc)))" --output-junit "$PWD/$out/$name.xml" "$@" >"$out/$name.log" 2>&1 </dev/null
  awk -v suite="$name" -v rc=0 -v counts="$out/$name.counts" -f tests/count.awk "$out/$name.log" >"$out/$name.table"
}

# Names of the entries of this part, in the order of ctest's list.
# shellcheck disable=SC2086 # TEST_ARGS is a list
mapfile -t entries < <(ctest --test-dir "$build" -N ${TEST_ARGS:-} | sed -n 's/^ *Test *#[0-9]*: //p' | awk -v k="${part%/*}" -v n="${part#*/}" 'NR % n == k % n')
[ ${#entries[@]} -gt 0 ] || { echo "flake: no entry" >&2; exit 1; }
among() { local IFS='|'; echo "^($*)\$"; }

# How long each takes on a machine that is otherwise idle: of the last run of all, else of one that is made now.
[ -e "$results/ctest.xml" ] && cp "$results/ctest.xml" "$out/quiet.xml" || run quiet -R "$(among "${entries[@]}")"
mapfile -t long < <(grep -o '<testcase name="[^"]*" classname="[^"]*" time="[0-9.]*"' "$out/quiet.xml" | awk -F '"' '$6 > 5 { print $2 }' | grep -xF -f <(printf '%s\n' "${entries[@]}"))
mapfile -t short < <(printf '%s\n' "${entries[@]}" | grep -vxF -f <(printf '%s\n' "${long[@]:-}"))

spinners=()
trap 'kill "${spinners[@]}" 2>/dev/null; wait 2>/dev/null' EXIT
for _ in 1 2 3 4; do
  (while :; do :; done) &
  spinners+=($!)
done
started=$SECONDS
[ ${#short[@]} -eq 0 ] || run short --repeat "until-fail:$times" -R "$(among "${short[@]}")"
[ ${#long[@]} -eq 0 ] || run long --repeat "until-fail:$((times < 3 ? times : 3))" -R "$(among "${long[@]}")"

echo "part $part: ${#short[@]} entries $times times, ${#long[@]} of more than 5 s 3 times, in $(((SECONDS - started) / 60)) min"
cat "$out"/{short,long}.table 2>/dev/null | grep -E '^(short|long): .* (FAILED|skipped)$' # a line an entry
cat "$out"/{short,long}.log 2>/dev/null | grep -E '(^[0-9]+: |^)(FAIL |ERROR|not ok|\[FAIL\])' | sort | uniq -c | sort -rn
bad=$(cat "$out"/{short,long}.table 2>/dev/null | grep -cE '^(short|long): .* FAILED$')
echo "${#entries[@]} entries, $bad failed"
[ "$bad" -eq 0 ]
