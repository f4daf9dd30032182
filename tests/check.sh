#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check.sh ROOM: builds and runs the unit tests and fuzz corpora of all that is linked with a room, such as lib/online/order, in build/dev:
# the room's own first.
set -eu
cd "$(dirname "$0")/.."
room=${1:-}
room=${room%/}
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
mkdir -p build
cmake --preset dev >build/check.log || { tail -20 build/check.log; exit 1; }
rooms=$(cut -d '|' -f 1 build/dev/rooms.txt)
if ! grep -qxF -- "$room" <<<"$rooms"; then
  echo "check: no room '$room'; ROOM=FOLDER is one of: ${rooms//$'\n'/ }" >&2
  exit 2
fi

program_of() { # TEST
  case $1 in fuzz_*) echo "fuzz/$1" ;; *) echo "tests/$1" ;; esac
}

run() { # TEST...: builds and runs them
  local pattern targets=() name
  for name; do targets+=("$(program_of "$name")"); done
  cmake --build --preset dev --target "${targets[@]}" >build/check.log || { tail -60 build/check.log; return 1; }
  pattern=$(IFS='|'; echo "$*")
  ctest --test-dir build/dev -R "^($pattern)\$" "-j$((3 * $(nproc)))" --output-on-failure --no-tests=error </dev/null | grep -v '^ *Start '
  return "${PIPESTATUS[0]}"
}

# The tests whose program is made of the room's objects. Its own are in its folder of tests/unit: test_FOLDER, and what is a program
# by itself.
folder=${room#lib/}
own=() others=()
for name in $(ctest --test-dir build/dev -L unit -N | sed -n 's/^ *Test *#[0-9]*: //p'); do
  ninja -C build/dev -t inputs "$(program_of "$name")" 2>/dev/null | grep -q "/room_${room//\//_}\.dir/" || continue
  if [ "$name" = "test_${folder//\//_}" ] || [ -e "tests/unit/$folder/$name.c" ]; then own+=("$name"); else others+=("$name"); fi
done
if [ $((${#own[@]} + ${#others[@]})) -eq 0 ]; then
  echo "check: no unit test is linked with $room; tests/e2e has its tests" >&2
  exit 1
fi
failed=0
[ ${#own[@]} -eq 0 ] || run "${own[@]}" || failed=$?
[ ${#others[@]} -eq 0 ] || run "${others[@]}" || failed=$?
exit $failed
