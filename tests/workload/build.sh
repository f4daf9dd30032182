#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh TOOLCHAIN OUT [cgo]: the workload (tracegen) as that Go release builds it: "local", or "go1.22.12" and the
# like, which Go fetches where it can. Exit 1 and Go's words on stderr where it cannot be had.
set -eu
out=$(realpath -m "$2")
go=${GO:-go} flags=(-trimpath) cgo=0
if [ "${3:-}" = cgo ]; then cgo=1 flags+=(-tags tracegen_cgo); fi
cd "$(dirname "$0")"
GOTOOLCHAIN=$1 GOWORK=off GOFLAGS=-buildvcs=false CGO_ENABLED=$cgo "$go" build "${flags[@]}" -o "$out" .
