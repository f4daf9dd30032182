#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# prints.sh TRACECTL FOLDER: every trace that FOLDER/goldens.sha256 names (NAME.trace.zst) through `TRACECTL cat -d parsed` and `-d wire`, by the
# SHA-256 of what Go 1.26's own tool prints, and through `TRACECTL check`; parsed by one thread and by two.
# G3, G9: every version, and the same answer as the tools users have.
#
# FOLDER may be a sister of the checkout that is not there: that is a failure in CI and a skip (77) elsewhere.
set -u
export TZ=UTC LC_ALL=C
tracectl=$1 folder=$2
if [ ! -e "$folder/goldens.sha256" ]; then
  echo "prints.sh: no traces in $folder"
  [ -n "${CI:-}" ] && { echo "0 passed, 1 failed"; exit 1; }
  exit 77
fi
sample=$("$(dirname "$0")/sample.sh" "$folder")
passed=0 failed=0
judge() { # WHAT GOT WANTED
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "differs: $1: $2, wanted $3"; fi
}
for name in $(awk 'sub(/\.parsed$/, "", $2) { print $2 }' "$folder/goldens.sha256"); do
  trace=$folder/$name.trace.zst
  grep -qxF "$trace" <<<"$sample" || [ ! -e "$trace" ] || continue
  for mode in parsed wire; do
    want=$(awk -v name="$name.$mode" '$2 == name { print $1 }' "$folder/goldens.sha256")
    got=$("$tracectl" cat -d "$mode" "$trace" 2>/dev/null | sha256sum | cut -d' ' -f1)
    judge "$name -d $mode" "$got" "$want"
    [ $mode = parsed ] || continue
    got=$("$tracectl" cat --threads 2 "$trace" 2>/dev/null | sha256sum | cut -d' ' -f1)
    judge "$name by two threads" "$got" "$want"
  done
  lines=$(zstd -dcq "$trace" | "$tracectl" check - | sed -E 's/^-: ok: [0-9]+ events, [0-9]+ generations, trace format of Go 1\.[0-9]+$/whole/')
  judge "$name check" "$lines" whole
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
