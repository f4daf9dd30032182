#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh TOOLCHAIN OUT [cgo]: the workload (tracegen) as that Go release builds it: "local", or "go1.22.12" and the
# like, which Go fetches where it can. Exit 1 and Go's words on stderr where it cannot be had.
set -eu
out=$(realpath -m "$2")
go=${GO:-go} flags=(-trimpath) cgo=0
if [ "${3:-}" = cgo ]; then cgo=1 flags+=(-tags tracegen_cgo); fi
cd "$(dirname "$0")"
# Kept, since Go links anew whatever is not there yet.
kept=$PWD/../../build/go-tools/tracegen-$1${3:+-$3}
mkdir -p "$(dirname "$kept")"
exec 9>"$kept.lock" # another test may want it now
flock 9
GOTOOLCHAIN=$1 GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=$cgo "$go" build "${flags[@]}" -o "$kept" .
cp "$kept" "$out"
