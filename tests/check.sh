#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check.sh ROOM: builds and runs the unit tests and fuzz corpora of all that is linked with a room, such as lib/order, in build/dev.
set -eu
cd "$(dirname "$0")/.."
room=${1:-}
room=${room%/}
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
mkdir -p build
cmake --preset dev >build/check.log || { tail -20 build/check.log; exit 1; }
rooms=$(cut -d '|' -f 1 build/dev/rooms.txt)
if ! grep -qxF -- "$room" <<<"$rooms"; then
  echo "check: no room '$room'; ROOM=FOLDER is one of:" $rooms >&2
  exit 2
fi

# The tests whose program is made of the room's objects.
tests=() targets=()
for name in $(ctest --test-dir build/dev -L unit -N | sed -n 's/^ *Test *#[0-9]*: //p'); do
  case $name in fuzz_*) program=fuzz/$name ;; *) program=tests/$name ;; esac
  if ninja -C build/dev -t inputs "$program" 2>/dev/null | grep -q "/room_${room//\//_}\.dir/"; then
    tests+=("$name") targets+=("$program")
  fi
done
if [ ${#tests[@]} -eq 0 ]; then
  echo "check: no unit test is linked with $room; tests/e2e has its tests" >&2
  exit 1
fi
cmake --build --preset dev --target "${targets[@]}" >build/check.log || { tail -60 build/check.log; exit 1; }
pattern=$(IFS='|'; echo "${tests[*]}")
ctest --test-dir build/dev -R "^($pattern)\$" "-j$((3 * $(nproc)))" --output-on-failure --no-tests=error </dev/null | grep -v '^ *Start '
exit "${PIPESTATUS[0]}"
