#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_attacks.sh: what the collector does under load that is hostile or odd: very short generations, very long ones,
# programs that are killed, connections that idle, dawdle or flood, little memory, a disk with no bytes or no inodes left.
# Needs seeded_agent; the disk rows and the cgroup need root, the idle connections 20,000 descriptors.
# BENCH_KILLED: how many programs are killed (2000). BENCH_IDLE: how many idle connections (10000). BENCH_SLOW: slow ones (5000).
# BENCH_ATTACKS: which ones, of "short long killed idle flood memory disk" (all).
. tests/bench/lib.sh
tests=build/release/tests
agent=$tests/seeded_agent
killed=${BENCH_KILLED:-2000} idle=${BENCH_IDLE:-10000} slow=${BENCH_SLOW:-5000}
wanted=" ${BENCH_ATTACKS:-short long killed idle flood memory disk} "
disk='' cgroup='' crowd=()
clean_up() {
  disperse
  end_collector
  [ -z "$disk" ] || umount -l "$disk" 2>/dev/null
  [ -z "$cgroup" ] || rmdir "$cgroup"
  rm -rf "$dir"
}
trap clean_up EXIT
ulimit -n "$(ulimit -Hn)"

wants() { [ "${wanted#* "$1" }" != "$wanted" ]; }

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

if wants short; then
  begin
  run_agent 10 short 1 40000 20 16777216
  row "generations of 2 ms at 20 MB/s for 10 s, bytes lost" "$lost" B - - -
  row "  bytes acked" "$acked" B - - -
  row "  until the rest was acked" "$drained" ms - - -
  row "  /healthz right after" "$(health_ms)" ms - - -
  fresh
fi

if wants long; then
  begin
  run_agent 20 long 2 200000000 20 268435456
  row "generations of 200 MB for 20 s, bytes lost" "$lost" B - - "<= 0"
  row "  bytes acked" "$acked" B - - -
  row "  collector's memory" "$(rss_mib)" MiB - - -
  fresh
fi

if wants killed; then
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
fi

# --- many connections

# Starts one of a crowd, whose words go to $dir/NAME.
gather() { # NAME bench_crowd's...
  local name=$1
  shift
  "$tests/bench_crowd" "$@" >"$dir/$name" 2>"$dir/$name.err" &
  crowd+=($!)
}
await_ready() { # NAME SECONDS
  local i
  for ((i = 0; i < 10 * $2; i++)); do
    grep -qs ready "$dir/$1" && return
    kill -0 "${crowd[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  fail "$1: $(tail -1 "$dir/$1.err")"
}
disperse() {
  [ ${#crowd[@]} -eq 0 ] || { kill "${crowd[@]}" 2>/dev/null; wait "${crowd[@]}" 2>/dev/null; }
  crowd=()
}
metric() { curl -s -m 30 "http://$http/metrics" | sed -n "s/^$1\\(\\|{[^}]*}\\) //p" | awk '{ n += $1 } END { print n + 0 }'; }
# 100 agents, each of which writes a generation of about 60 kB a second. Sets p50, p99.
active() { # SECONDS
  "$tests/bench_active" "$address" "$dir/certs" 100 "$1" 80000 1000 >"$dir/active" 2>"$dir/active.err" ||
    fail "active agents: $(tail -1 "$dir/active.err")"
  read -r _ p50 p99 _ <"$dir/active"
}

if wants idle; then
  many=(agents.connections_max=20000 agents.identity_connections_max=15000)
  begin "${many[@]}"
  active 20
  before=$(rss_mib) alone50=$p50 alone=$p99
  for ((n = 0; n < 20; n++)); do gather "idle$n" idle "$address" "$dir/certs" $((idle / 20)); done
  for ((n = 0; n < 20; n++)); do await_ready "idle$n" 300; done
  there=$(metric tracecollect_connections)
  after=$(rss_mib)
  cpu=$(cpu_ms "$collector")
  sleep 10
  cpu=$((($(cpu_ms "$collector") - cpu) / 10))
  active 20
  row "$idle idle connections, there" "$there" - - - ">= $idle"
  row "  collector's memory for each" "$(awk "BEGIN { printf \"%.1f\", ($after - $before) * 1024 / $idle }")" KiB - - "<= 28"
  row "  their heartbeats take of the collector's time" "$cpu" ms/s - - -
  row "  ack of 100 active ones, half" "$p50" ms "$alone50" "without the idle ones" -
  row "  p99" "$p99" ms "$alone" "without the idle ones" "<= $(awk "BEGIN { print 2 * $alone }")"
  row "  /healthz" "$(health_ms)" ms - - -
  kill -0 "${crowd[@]}" 2>/dev/null || fail "the idle ones were sent away: $(cat "$dir"/idle*.err | tail -1)"
  disperse
  fresh
fi

acked_in() { # FILE SECONDS: bytes acked meanwhile
  local from
  from=$(field "$1" acked_bytes)
  sleep "$2"
  echo $(($(field "$1" acked_bytes) - from))
}

if wants flood; then
  begin
  send flood 4 200000 20 67108864 >"$dir/out" 2>&1 &
  sender=$!
  sleep 3
  alone=$(acked_in "$dir/out" 10)
  gather slow slow "$address" "$slow"
  await_ready slow 60
  for n in 1 2; do
    gather "flood$n" flood "$address" "$dir/certs" "127.0.0.$((10 + n))"
    await_ready "flood$n" 60
  done
  sleep 3
  under=$(acked_in "$dir/out" 20)
  health=$(health_ms)
  disperse
  kill "$sender" && wait "$sender"
  row "20 MB/s beside a flood of two and $slow slow ones" "$((under / 20))" B/s "$((alone / 10))" "without them" ">= $((alone * 9 / 100))"
  row "  bytes lost" "$(field "$dir/out" lost_bytes)" B - - -
  row "  handshakes of the flood" "$(awk '/^handshakes/ { n += $2 } END { print n }' "$dir"/flood[12])" - - - -
  row "  connections of the slow ones" "$(awk '/^connections/ { print $2 }' "$dir/slow")" - - - -
  row "  /healthz" "$health" ms - - -
  fresh
fi

# --- little memory

make_cgroup() { # BYTES: sets cgroup, or why not
  local root why=''
  for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    cgroup=$root/tracecollect-bench-$$
    mkdir "$cgroup" 2>"$dir/cgroup" || { why=$(cat "$dir/cgroup"); continue; }
    for file in memory.max memory.limit_in_bytes; do
      [ -e "$cgroup/$file" ] && echo "$1" >"$cgroup/$file" && return 0
    done
    rmdir "$cgroup"
    why="$root: no limit of memory there"
  done
  cgroup=''
  say "memory limited by a cgroup: skipped: $why"
  return 1
}

if wants memory && make_cgroup $((64 << 20)); then
  begin agents.records_max=16MiB agents.identity_records_max=8MiB agents.memory_max=8MiB analysis.memory_max=16MiB
  echo "$collector" >"$cgroup/cgroup.procs"
  run_agent 20 limited 5 2000000 20 67108864
  row "64 MiB by a cgroup, 20 MB/s for 20 s, the collector runs on" "$(kill -0 "$collector" 2>/dev/null && echo 1 || echo 0)" - - - ">= 1"
  row "  bytes lost" "$lost" B - - "<= 0"
  row "  bytes acked" "$acked" B - - -
  row "  /healthz" "$(health_ms)" ms - - -
  fresh
  rmdir "$cgroup" && cgroup=''
fi

# --- a full disk

wants disk || exit 0
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
  local pid=$! i full=0
  for ((i = 0; i < 600 && full == 0; i++)); do
    sleep 0.1
    curl -s -m 30 "http://$http/readyz" | grep -q -e full -e acks && full=1
  done
  row "$what" "$full" - - - ">= 1"
  local used inodes
  used=$(df --output=pcent "$disk" | tail -1 | tr -dc 0-9)
  inodes=$(df --output=ipcent "$disk" | tail -1 | tr -dc 0-9)
  row "  space in use" "$used" % - - -
  row "  inodes in use" "$inodes" % - - -
  sleep 5
  row "  the collector runs on" "$(kill -0 "$collector" 2>/dev/null && echo 1 || echo 0)" - - - ">= 1"
  row "  /healthz" "$(health_ms)" ms - - -
  mount -o "remount,size=1g,nr_inodes=100000" "$disk" # there is room again
  kill "$pid" && wait "$pid"
  row "  bytes acked" "$(field "$dir/out" acked_bytes)" B - - -
  row "  bytes the agent dropped meanwhile, counted" "$(field "$dir/out" lost_bytes)" B - - -
  row "  acked bytes that are not there" "$(not_there full 3 200000)" B - - "<= 0"
  end_collector
  umount -l "$disk"
}

# Of what $dir/out says was acked: what the archive does not give back byte for byte.
not_there() { # INSTANCE SEED GENERATION_BYTES
  local got
  rm -f "$dir"/fetched*
  "$bin/tracectl" fetch --server "@$dir/ready" --certs "$dir/certs" --service fault --instance "$1" -o "$dir/fetched" --no-progress \
    2>"$dir/fetch" || { say "$(tail -1 "$dir/fetch")"; echo 1; return; }
  got=$("$agent" check "$2" "$3" "$dir"/fetched* | awk '{ n += $4 } END { print n }')
  echo $(($(field "$dir/out" acked_bytes) - got))
}
full_disk "disk full in bytes" size=96m log.file_bytes=4MiB disk.reserve_bytes=4MiB disk.free_min=8MiB
full_disk "disk full in inodes" size=512m,nr_inodes=80 log.file_bytes=4MiB disk.reserve_bytes=4MiB disk.free_min=8MiB
disk=''
