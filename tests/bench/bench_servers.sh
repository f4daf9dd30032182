#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_servers.sh: what the preload library costs nginx, memcached and postgres in requests a second, their forked processes
# traced, too (preload_servers.py; load.c are the clients of two of them).
. tests/bench/lib.sh
start_collector
address=$(sed -n 's/^agents=//p' "$dir/ready") # a server's other user does not see the file
tests/bench/preload_servers.py "$address" "$dir/certs" build/release/lib/libtraceagent-preload.so build/release/tests/load ||
  fail "preload_servers.py failed"
