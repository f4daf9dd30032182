# SPDX-License-Identifier: Apache-2.0
# Where the time of a test run went. Its files are, of each suite, what bash's time wrote of the build (built-SUITE) and of the
# tests (tested-SUITE): seconds passed, of CPU, of the kernel's CPU; and the results of the cases (build/SUITE/results/ENTRY.tap),
# whose lines end in the seconds that each case took, as Criterion writes them:
#   ok - suite::case  (0.03s)

FNR == 1 && FILENAME ~ /\/(built|tested)-[a-z]+$/ {
  suite = FILENAME; sub(/.*-/, "", suite)
  what = FILENAME ~ /\/built-/ ? "build" : "test"
  line = sprintf("%-8s %-6s %6.1f min %8.1f core-minutes", suite, what, $1 / 60, ($2 + $3) / 60)
  print line
  next
}
match($0, /^(not )?ok - [^ ]+ *\([0-9.]+s\)/) {
  split(FILENAME, part, "/")
  took = $0; sub(/.*\(/, "", took); sub(/s\).*/, "", took)
  name = $0; sub(/^(not )?ok - /, "", name); sub(/ .*/, "", name)
  cases++
  slow[cases] = sprintf("%9.2f s  %-8s %s", took, part[2], name)
}
END {
  print "the 30 slowest of " cases + 0 " cases:"
  sort = "sort -rn | head -30"
  for (i = 1; i <= cases; i++) print slow[i] | sort
  close(sort)
}
