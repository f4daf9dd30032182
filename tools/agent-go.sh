#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# agent-go.sh BUILD ARG...: runs `go ARG...` with the C agent of a build folder, installed nowhere.
#
# Go's build cache does not look at what pkg-config answers: a program built against another checkout's
# agent would be taken from the cache, with that checkout's library path in it. Flags in the environment
# do count, so a digest of header, library path and flags goes in as one.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath "$1")
shift
pc=$build/pkgconfig/traceagent.pc
[ -r "$pc" ] || { echo "agent-go: no $pc: build the agent first (cmake --build)" >&2; exit 1; }
go=$("$top/tools/find-go.sh") || { echo "agent-go: no Go 1.22 or later found; tools/deps.sh fetches one" >&2; exit 1; }
key=$(cat "$pc" "$top/agent/include/traceagent.h" | sha256sum)
# The shared library is what tests and the demo want: always the last one built, with the build folder as its run path.
export CGO_ENABLED=1 GOWORK=off GOFLAGS="$("$go" env GOFLAGS) -tags=traceagent_cgo,traceagent_shared"
export PKG_CONFIG_PATH="$build/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
export CGO_CFLAGS="${CGO_CFLAGS:--O2 -g} -DTRACEAGENT_BUILD=${key:0:16}"
exec "$go" "$@"
