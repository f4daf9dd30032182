# SPDX-License-Identifier: Apache-2.0
# Reads the output of `ctest -V` and counts test cases instead of ctest's entries.
#
# Under -V each line of entry 7 starts with "7: ". Three runners close with a line of their own:
#   Criterion           [====] Synthesis: Tested: 11 | Passing: 11 | Failing: 0 | Crashing: 0
#   tests/support/standin  11 passed, 0 failed
#   tests/e2e           11 passed, 0 failed
# An entry without such a line counts as one case. An entry that ctest failed although its cases passed
# (a sanitizer's report, a crash at exit, a time-out) counts as one failure more, and so does one that ran
# nothing and skipped nothing. Lines that begin with "SKIP" are printed, since a runner's totals do not
# show them, and the whole output of what failed.

match($0, /^[0-9]+: /) {
  id = substr($0, 1, RLENGTH - 2)
  line = substr($0, RLENGTH + 1)
  text[id] = text[id] line "\n"
  if (match(line, /Tested: [0-9]+ \| Passing: [0-9]+ \| Failing: [0-9]+ \| Crashing: [0-9]+/)) {
    split(substr(line, RSTART, RLENGTH), n, /[^0-9]+/)
    counted[id] = 1; passed[id] += n[3]; failed[id] += n[4] + n[5]
  } else if (line ~ /^[0-9]+ passed, [0-9]+ failed$/) {
    split(line, n, " ")
    counted[id] = 1; passed[id] += n[1]; failed[id] += n[3]
  }
  if (line ~ /^SKIP/) { print suite ": " line; skips[id]++ }
  next
}

# " 3/12 Test  #7: test_store ....   Passed    0.52 sec"
match($0, /Test +#[0-9]+: /) {
  id = substr($0, RSTART, RLENGTH)
  gsub(/[^0-9]/, "", id)
  name = $0
  sub(/.*Test +#[0-9]+: /, "", name)
  sub(/ .*/, "", name)
  good = $0 ~ /   Passed /
  skipped = $0 ~ /\*\*\*Skipped/
  if (skipped) {
    print suite ": SKIP " name
  } else if (!counted[id]) {
    if (good) passed[id] = 1
    else failed[id] = 1
  } else if (good && passed[id] + failed[id] + skips[id] == 0) {
    print suite ": " name " ran no case"
    failed[id] = 1
  } else if (!good && failed[id] == 0) {
    failed[id] = 1
  }
  p += passed[id]; f += failed[id]
  verdict = failed[id] ? "FAILED" : skipped ? "skipped" : "ok"
  took = $(NF - 1)
  printf "%s: %-34s %4d passed %3d failed %7s s  %s\n", suite, name, passed[id], failed[id], took, verdict
  if (failed[id]) printf "---- output of %s\n%s---- its verdict: %s\n", name, text[id], $0
}

END {
  if (rc != 0 && f == 0) { # ctest itself: no tests, or it was killed
    print suite ": ctest ended with " rc " and no failed test"
    f = 1
  }
  print p + 0, f + 0 > counts
}
