#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_fuzz.sh: how many mutants each fuzz target looks at in a second of CPU, optimised and under ASAN+UBSAN, by the
# plain mutator. Some targets read an input two ways and compare: that is one mutant. Beside each stands the floor:
# a target that looks at nothing, with the same mutator, sanitizer and corpus, in the same run.
. tests/bench/lib.sh
build=$BENCH_DIR/asan
declare -A goal=([batch]=300000 [frame]=150000 [control]=150000 [sections]=50000 [reader]=20000 [session]=5000 [json]=300000 [http]=200000)

{ cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTC_SANITIZE=address,undefined &&
  cmake --build "$build" --target fuzz; } >"$dir/log" 2>&1 || fail "the targets do not build"
rate() { # TARGET CORPUS
  "$build/fuzz/fuzz_$1" --seconds 2 "tests/fuzz/corpus/$2.pack" | sed -n 's/.* \([0-9]*\) a second$/\1/p'
}
for target in $(sed -n 's/^tc_add_fuzz(\([a-z_]*\).*/\1/p' tests/fuzz/CMakeLists.txt); do
  ours=$(rate "$target" "$target")
  [ -n "$ours" ] || fail "fuzz_$target: a finding"
  want=${goal[$target]:-}
  row "fuzz_$target under ASAN+UBSAN" "$ours" "runs/s" "$(rate floor "$target")" "a target that does nothing" "${want:+>= }${want:--}"
done
