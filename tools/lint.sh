#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh [recent] [BUILD]: shellcheck, typos, our own words (words.py) and clang-format over everything, clang-tidy and cppcheck over all
# C files of the build (build/release), or, with "recent", over the 100 that changed last, within the last 20 commits.
#
#   .shellcheckrc .typos.toml .clang-tidy .cppcheck   checks, and exceptions with their reasons
#   LINT_JOBS                                         processes at a time (one a core)
#
# tools/deps.sh installs the tools; with "recent" a tool that is missing is skipped. What is printed was found; the last line counts:
# "N passed, N failed", a case a tool. Without git's list of files nothing is looked at: exit 77.
set -u
cd "$(dirname "$0")/.." || exit 1
git rev-parse -q --verify HEAD >/dev/null || { echo "SKIP lint: git does not list the files of $PWD" && exit 77; }
most=1000000
if [ "${1:-}" = recent ]; then most=100 && shift; fi
build=${1:-build/release}
jobs=${LINT_JOBS:-$(nproc)}
export PATH=$PWD/build/python/clang_format/data/bin:$PWD/build/python/bin:$PATH
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The C files that the build compiles, and its flags without gcc's own.
mkdir "$work/flags"
sed -E 's/ -ftrivial-auto-var-init=zero| -ffixed-[a-z0-9]+//g' "$build/compile_commands.json" >"$work/flags/compile_commands.json" || exit 1
sed -nE 's/^ *"file": "(.*)",?$/\1/p' "$work/flags/compile_commands.json" | sort -u >"$work/built"
changed() { if [ $most = 100 ]; then git log -20 --name-only --format= -- '*.c' | awk '!seen[$0]++'; else git ls-files '*.c'; fi; }
changed | sed "s|^|$PWD/|" | grep -Fxf "$work/built" | awk "NR <= $most" >"$work/files"

tidy() { xargs -r -a "$work/files" -P "$jobs" -n 4 clang-tidy -p "$work/flags" --quiet --extra-arg=-w 2>"$work/tidy.log" || grep -v ' warnings\? generated' "$work/tidy.log"; }
# Without the system's headers, except for macros that change the meaning of a line.
queue=$(cc -E -x c -include sys/queue.h /dev/null | sed -nE 's/^# 1 "(.*sys\/queue.h)".*/\1/p' | head -1)
echo '#define ElfW(type) Elf64_##type
#define json_object_foreach(object, key, value) for (key = "", value = object; value != 0; value = 0)' >"$work/macros.h"
check() {
  sed "s|^$PWD/||" "$work/files" | grep -v ^tests/ >"$work/product" || return 0
  cppcheck -q -j "$jobs" --enable=warning,performance,portability --inline-suppr --suppressions-list=.cppcheck \
    -D_GNU_SOURCE -D__x86_64__ --include="$queue" --include="$work/macros.h" -I. -Ilib --file-list="$work/product"
}

look() { # NAME COMMAND...: fails if the command prints anything
  local name=$1
  shift
  if [ $most = 100 ] && [ "$name" != words ] && ! command -v "$name" >/dev/null; then echo "SKIP lint: no $name here" && return; fi
  if ! "$@" >"$work/found" 2>&1 && [ ! -s "$work/found" ]; then echo "$name failed" >"$work/found"; fi
  if [ ! -s "$work/found" ]; then passed=$((passed + 1)) && return; fi
  failed=$((failed + 1))
  echo "== $name"
  cat "$work/found"
}
git ls-files '*.sh' .ci/run >"$work/scripts"
look shellcheck xargs -r -a "$work/scripts" shellcheck
look typos typos --format brief
look words tools/words.py
git ls-files '*.c' '*.h' >"$work/sources"
look clang-format xargs -r -a "$work/sources" -P "$jobs" -n 40 clang-format --dry-run --Werror
look clang-tidy tidy
look cppcheck check
echo "$passed passed, $failed failed"
[ $failed = 0 ]
