#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# check.sh ROOM: builds and runs the unit tests and fuzz corpora of all that is linked with a room, such as lib/online/order, in build/dev:
# the room's own first; if one fails, the others are not run. ROOM may also be a file of the room, or a folder above rooms: then all of them.
# The last line is `check: N entries passed` or `check: FAILED: NAMES`.
set -eu
cd "$(dirname "$0")/.."
room=${1:-}
room=${room#"$PWD/"}
room=${room#./}
[ ! -f "$room" ] || room=$(dirname "$room")
room=${room%/}
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
mkdir -p build

choose() { # sets chosen, the rooms that ROOM names
  local rooms best
  rooms=$(cut -d '|' -f 1 build/dev/rooms.txt)
  mapfile -t chosen < <(awk -v room="$room" '$0 == room || (room != "" && index($0, room "/") == 1)' <<<"$rooms")
  [ ${#chosen[@]} -eq 0 ] || return 0
  # Nearest first: by the parts of the path that are also in ROOM.
  best=$(awk -v room="$room" '{ n = split($0, part, "/"); same = 0
    for (i = 1; i <= n; i++) if (index("/" room "/", "/" part[i] "/")) same++
    print same, $0 }' <<<"$rooms" | sort -s -k1,1nr | cut -d ' ' -f 2-)
  printf 'check: no room %s; ROOM=FOLDER is one of:\n%s\n' "'$room'" "$best" >&2
  exit 2
}

[ ! -e build/dev/rooms.txt ] || choose
cmake --preset dev >build/check.log || { tail -20 build/check.log; exit 1; }
choose

program_of() { # TEST
  case $1 in fuzz_*) echo "fuzz/$1" ;; *) echo "tests/$1" ;; esac
}

passed=0
run() { # TEST...: builds and runs them
  [ $# -gt 0 ] || return 0
  local pattern targets=() name failed
  for name; do targets+=("$(program_of "$name")"); done
  echo "check: building $# tests..."
  if ! cmake --build --preset dev --target "${targets[@]}" >build/check.log; then
    tail -60 build/check.log
    echo "check: FAILED: the build"
    exit 1
  fi
  pattern=$(IFS='|'; echo "$*")
  rm -f build/dev/check.xml
  if ctest --test-dir build/dev -R "^($pattern)\$" "-j$((3 * $(nproc)))" --output-on-failure --no-tests=error --output-junit check.xml \
    </dev/null >build/check.log 2>&1; then
    sed -n '/^ *[0-9]*\/[0-9]* Test/p' build/check.log
    passed=$((passed + $#))
    return 0
  fi
  sed -e '/^Internal ctest changing/d' -e '/^Test project/d' -e '/^ *Start /d' -e '/^[0-9]*% tests passed/,$d' build/check.log
  failed=$(sed -nE 's/.*<testcase name="([^"]*)".* status="fail".*/\1/p' build/dev/check.xml | paste -sd ' ')
  echo "check: FAILED: ${failed:-ctest, see build/check.log}"
  exit 1
}

# The tests whose program is made of the rooms' objects. A room's own are in its folder of tests/unit: test_FOLDER, and what is a program
# by itself.
own=() others=()
for name in $(ctest --test-dir build/dev -L unit -N | sed -n 's/^ *Test *#[0-9]*: //p'); do
  inputs=$(ninja -C build/dev -t inputs "$(program_of "$name")" 2>/dev/null) || continue
  place=
  for room in "${chosen[@]}"; do
    case $inputs in *"/room_${room//\//_}.dir/"*) ;; *) continue ;; esac
    folder=${room#lib/}
    if [ "$name" = "test_${folder//\//_}" ] || [ -e "tests/unit/$folder/$name.c" ]; then place=own; else place=${place:-others}; fi
  done
  case $place in own) own+=("$name") ;; others) others+=("$name") ;; esac
done
if [ $((${#own[@]} + ${#others[@]})) -eq 0 ]; then
  echo "check: no unit test is linked with ${chosen[*]}; tests/e2e has its tests" >&2
  exit 1
fi
run "${own[@]}"
run "${others[@]}"
echo "check: $passed entries passed"
