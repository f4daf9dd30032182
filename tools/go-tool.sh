#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# go-tool.sh NAME [TOOLCHAIN]: prints the path of the program behind `go tool NAME` (trace, pprof), built once for each
# version of Go. `go tool` itself looks at every package of the tool before each run, which costs more than most runs.
# Exit 1, with Go's error on stderr, if it is not available.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
go=$("$top/tools/find-go.sh") || { echo "go-tool: no Go 1.22 or later found; tools/deps.sh fetches one" >&2; exit 1; }
export GOTOOLCHAIN=${2:-local} GOFLAGS=-buildvcs=false
cd / # so that no go.mod is used
program=$("$go" env GOTOOLDIR)/$1
if [ -x "$program" ]; then # before Go 1.25
  echo "$program"
  exit
fi
folder=$top/build/go-tools/$("$go" env GOVERSION)
mkdir -p "$folder"
exec 9>"$folder/lock" # the second caller waits, and finds it
flock 9
if [ ! -x "$folder/$1" ]; then
  "$go" build -o "$folder/$1.part" "cmd/$1" >&2
  mv "$folder/$1.part" "$folder/$1"
fi
echo "$folder/$1"
