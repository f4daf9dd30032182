#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [SECONDS [TARGET...]]: every fuzz target (or those named) for so long, ten seconds by default.
#
# With clang and its libFuzzer (Debian: clang, libclang-rt-14-dev) in build/fuzz, else with the plain
# mutator in build/asan. What libFuzzer finds new is kept in build/fuzz/found/TARGET; FUZZ_MERGE=1 makes
# the corpora anew from that, the smallest inputs that reach every edge.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=tests/fuzz seconds=${1:-10}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^tc_add_fuzz(\([a-z_]*\).*/\1/p' $here/CMakeLists.txt)

has_libfuzzer() {
  command -v clang >/dev/null &&
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n == 1; }' |
    clang -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null
}

if has_libfuzzer; then preset=fuzz; else preset=asan; fi
mkdir -p build
if ! { cmake --preset $preset && cmake --build --preset $preset --target fuzz; } >build/fuzz.log 2>&1; then
  tail -40 build/fuzz.log
  exit 1
fi
bin=$PWD/build/$preset/fuzz

run_libfuzzer() { # target, its folder
  "$bin/fuzz_$1" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 -max_len="${FUZZ_MAX_LEN:-16384}" \
    -artifact_prefix="$2/../$1-" -print_final_stats=1 -verbosity=0 "$2" >"$2/../$1.log" 2>&1
}

merge() { # target, its folder
  local small
  small=$(mktemp -d)
  "$bin/fuzz_$1" -merge=1 -use_counters=0 -max_len=4096 "$small" "$2" >"$2/../$1.merge.log" 2>&1
  "$bin/corpus" pack "$here/corpus/$1.pack" "$small"/*
  rm -rf "$small"
}

failed=0
for target in "${targets[@]}"; do
  if [ $preset = asan ]; then
    (cd build/asan && "$bin/fuzz_$target" --seconds "$seconds" "$OLDPWD/$here/corpus/$target.pack") ||
      failed=$((failed + 1))
    continue
  fi
  found=build/fuzz/found/$target
  mkdir -p "$found"
  [ -f "$here/corpus/$target.pack" ] && "$bin/corpus" unpack "$here/corpus/$target.pack" "$found"
  if run_libfuzzer "$target" "$found"; then
    printf 'fuzz_%-10s no finding in %s s; runs a second: %s\n' "$target" "$seconds" \
      "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$found/../$target.log")"
    [ -n "${FUZZ_MERGE:-}" ] && merge "$target" "$found"
  else
    failed=$((failed + 1))
    echo "fuzz_$target: a finding"
    tail -40 "$found/../$target.log"
  fi
done
[ $failed -eq 0 ]
