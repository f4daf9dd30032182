#!/bin/bash
# build.sh OUT: builds the oracle (Go's own trace reader behind a pipe) with the Go tree that $GO or
# PATH names. The reader is internal to that tree, so an overlay places our two files in it; the tree
# itself is not touched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
go=${GO:-go}
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
root=$("$go" env GOROOT)
cat >"$tmp/overlay.json" <<EOF
{"Replace": {"$root/src/cmd/traceoracle/oracle.go": "$here/oracle.go",
             "$root/src/internal/trace/oracle_export.go": "$here/export.go"}}
EOF
cd "$tmp"
"$go" build -overlay "$tmp/overlay.json" -o "$out" cmd/traceoracle
