#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# find-go.sh: prints the path of a Go >= 1.22: $GO, the PATH's, a usual place, or the one deps.sh fetched.
# Exit 1, without output, if there is none.
top=$(cd "$(dirname "$0")/.." && pwd)

new_enough() { # go: checks its own version, ignoring a go.mod nearby
  local version
  version=$(cd / && GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $version =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 22 ]
}

for go in ${GO:+"$GO"} "$(command -v go)" /usr/local/go/bin/go /usr/lib/go/bin/go "$top/build/go/go/bin/go"; do
  [ -x "$go" ] && new_enough "$go" && echo "$go" && exit 0
done
exit 1
