#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh ORACLE_COMPARE COUNT [SEED]: that many mutants of seeds.pack through our reader and Go's, which must say the
# same of each. What differs is kept in build/oracle/ beside the oracle. Exit 77 (skipped) without a Go >= 1.26.
set -eu
compare=$(realpath "$1") count=$2 seed=${3:-1}
cd "$(dirname "$0")/../.."
GO=$(tools/find-go.sh) || { echo "oracle/run.sh: no Go here"; exit 77; }
export GO
case $("$GO" env GOVERSION) in go1.2[2-5]*) echo "oracle/run.sh: this Go's reader is older than 1.26"; exit 77 ;; esac
mkdir -p build/oracle
work=$(mktemp -d build/oracle/run.XXXXXX) # another suite may run beside this one
trap 'rm -f "$work/oracle"; rmdir --ignore-fail-on-non-empty "$work"' EXIT
tests/oracle/build.sh "$work/oracle"
"$compare" "$work/oracle" "$count" "$seed" tests/oracle/seeds.pack --keep "$work"
