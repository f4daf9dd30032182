#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_attacks.sh: what the collector does under load that is hostile or odd: very short generations, very long ones,
# programs that are killed, a disk with no bytes or no inodes left. Needs seeded_agent; the disk rows need root.
# Not here yet: idle connections by the thousand, a flood of handshakes, a memory limit by a cgroup; and the disk rows do not
# check what was acked while the disk was full (tests/fault/test_disk.py does).
# BENCH_KILLED: how many programs are killed (2000).
. tests/bench/lib.sh
agent=build/release/tests/seeded_agent
killed=${BENCH_KILLED:-2000}
disk=''
trap 'end_collector; [ -z "$disk" ] || umount -l "$disk"; rm -rf "$dir"' EXIT

send() { exec "$agent" send "$address" "$dir/certs" "$@"; } # INSTANCE SEED GENERATION_BYTES MB_S SPOOL_BYTES
field() { tail -1 "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }
rss_mib() { awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$collector/status"; }
health_ms() { curl -s -o /dev/null -m 30 -w '%{time_total}' "http://$http/healthz" | awk '{ printf "%.1f", $1 * 1000 }'; }
begin() {
  start_collector "$@"
  address=$(sed -n 's/^agents=//p' "$dir/ready")
  http=$(sed -n 's/^http=//p' "$dir/ready")
}
fresh() { end_collector; rm -rf "$dir/state"; }

# Sends for SECONDS, then ends it and waits for the acks; sets lost, drained.
run_agent() { # SECONDS SEND...
  local seconds=$1 began pid
  shift
  send "$@" >"$dir/out" 2>&1 &
  pid=$!
  sleep "$seconds"
  began=$(date +%s%N)
  kill "$pid" && wait "$pid"
  drained=$((($(date +%s%N) - began) / 1000000))
  lost=$(field "$dir/out" lost_bytes)
  acked=$(field "$dir/out" acked_bytes)
}

begin
run_agent 10 short 1 40000 20 16777216
row "generations of 2 ms at 20 MB/s for 10 s, bytes lost" "$lost" B - - -
row "  bytes acked" "$acked" B - - -
row "  until the rest was acked" "$drained" ms - - -
row "  /healthz right after" "$(health_ms)" ms - - -
fresh

begin
run_agent 20 long 2 200000000 20 268435456
row "generations of 200 MB for 20 s, bytes lost" "$lost" B - - "<= 0"
row "  bytes acked" "$acked" B - - -
row "  collector's memory" "$(rss_mib)" MiB - - -
fresh

begin
before=$(rss_mib)
for ((i = 0; i < killed; i += 50)); do
  pids=()
  for ((k = i; k < i + 50 && k < killed; k++)); do
    (send "k$k" "$k" 20000 0.1 1048576) >/dev/null 2>&1 &
    pids+=($!)
  done
  sleep 0.5
  kill -9 "${pids[@]}"
  wait "${pids[@]}" 2>/dev/null
done
row "$killed programs killed, /healthz right after" "$(health_ms)" ms - - -
row "  collector's memory before" "$before" MiB - - -
row "  collector's memory after" "$(rss_mib)" MiB - - -
fresh

disk=$dir/disk
mkdir "$disk"
full_disk() { # WHAT MOUNT_OPTIONS SETTING...
  local what=$1
  if ! mount -t tmpfs -o "$2" none "$disk" 2>"$dir/mount"; then
    say "$what: skipped, because no tmpfs can be mounted: $(cat "$dir/mount")"
    return
  fi
  shift 2
  begin "state=$disk/state" retention.free_bytes=0 retention.age=0 "$@"
  send full 3 200000 10 4194304 >"$dir/out" 2>&1 &
  local pid=$!
  sleep 15
  row "$what, the collector runs on" "$(kill -0 "$collector" 2>/dev/null && echo 1 || echo 0)" - - - ">= 1"
  row "  /healthz" "$(health_ms)" ms - - -
  kill -9 "$pid"
  wait "$pid" 2>/dev/null
  end_collector
  umount -l "$disk"
}
full_disk "disk full in bytes" size=96m log.file_bytes=4MiB disk.reserve_bytes=4MiB disk.free_min=8MiB
full_disk "disk full in inodes" size=512m,nr_inodes=80 log.file_bytes=4MiB disk.reserve_bytes=4MiB disk.free_min=8MiB
disk=''
