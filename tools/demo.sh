#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh: a collector, a traced Go server under load, and its figures live in this terminal.
#
# Everything is made on the spot and lies in build/demo: certificates, archive, logs. ^C ends it all, and
# so do DEMO_SECONDS if set; the archive stays until the next demo. Exit 0, or 1 with the reason.
set -u
cd "$(dirname "$0")/.." || exit 1
bin=build/release/bin
demo=build/demo
[ "${#PWD}" -lt 70 ] || demo=$(mktemp -d /tmp/tracecollect-demo.XXXXXX) # a Unix socket's path is short
collector='' server=''
# A session of its own, so that this shell gets ^C and ends the two in order. If this shell is killed, they end with it, or do
# not begin.
alone=(setsid)
setpriv --pdeathsig TERM true 2>/dev/null && alone+=(setpriv --pdeathsig TERM sh -c '[ "$PPID" = "$0" ] && exec "$@"' $$)

say() { printf '%s\n' "$*"; }

die() {
  say "demo: $*" >&2
  clean_up
  exit 1
}

clean_up() { # the server first, so that its last records are acked
  trap '' INT TERM HUP
  local pid
  for pid in $server $collector; do
    kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
  done
  server='' collector=''
}

finish() {
  clean_up
  say
  say "demo: ended; the archive stays in $demo/state/archive"
  exit 0
}

wait_for() { # SECONDS COMMAND...: until it succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# The build's output goes to the log, its progress to the terminal, or every tenth of it as a line.
show_progress() {
  local line n of tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    n=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]}
    if [ -t 2 ]; then
      printf '\rdemo: building (%s of %s)' "$n" "$of" >&2
    elif [ $((10 * n / of)) -gt $tenth ]; then
      tenth=$((10 * n / of))
      say "demo: building ($n of $of)" >&2
    fi
  done >build/demo-build.log
  if [ -n "${of:-}" ] && [ -t 2 ]; then say >&2; fi
}

build() {
  tools/deps.sh demo || die "could not install what is missing"
  go=$(tools/find-go.sh) || die "the traced server needs Go 1.22 or later, and none is found or could be fetched"
  say "demo: building"
  mkdir -p build
  { cmake --preset release && cmake --build --preset release --target tracecollectd tracectl; } 2>&1 | show_progress
  [ "${PIPESTATUS[0]}" -eq 0 ] || { tail -30 build/demo-build.log >&2; die "does not build"; }
  rm -rf "$demo"
  mkdir -p "$demo"
  say "demo: building the traced server"
  (cd examples/go-server && CGO_ENABLED=0 GOWORK=off "$go" build -buildvcs=false -o "$OLDPWD/build/release/bin/go-server" .) \
    >>build/demo-build.log 2>&1 ||
    { tail -30 build/demo-build.log >&2; die "the traced server does not build"; }
}

start_collector() {
  "$bin/tracectl" certs init "$demo/certs" >"$demo/certs.log" || die "no certificates"
  "${alone[@]}" "$bin/tracecollectd" --ready-file "$demo/ready" --set "state=$(realpath "$demo")/state" --set "certs=$(realpath "$demo")/certs" \
    --set listen.agents=127.0.0.1:0 --set listen.http=127.0.0.1:0 --set alert.syscall_blocked=10ms --set alert.stw=1ms --set segment.seconds_max=3s </dev/null >"$demo/collector.log" 2>&1 &
  collector=$!
  wait_for 20 test -e "$demo/ready" || { tail -n 5 -- "$demo/collector.log" >&2; die "the collector does not start"; }
  http=$(sed -n 's/^http=//p' "$demo/ready")
}

start_server() {
  # Without it some versions of Go end a traced program; the guide's part on Go lists them.
  GODEBUG=${GODEBUG:+$GODEBUG,}tracefpunwindoff=1 "${alone[@]}" "$bin/go-server" -server "@$demo/ready" -certs "$demo/certs" -service demo \
    </dev/null >"$demo/server.log" 2>&1 &
  server=$!
  wait_for 30 segments_there || { tail -n 5 -- "$demo/server.log" "$demo/collector.log" >&2; die "no trace arrives; logs: $demo/server.log, $demo/collector.log"; }
}

# shellcheck disable=SC2317 # wait_for calls it
segments_there() { find "$demo/state/archive" -name '*.trace' | grep -q .; }

next_commands() {
  say
  say "segments   $demo/state/archive ($(find "$demo/state/archive" -name '*.trace' | wc -l) so far; each opens in go tool trace)"
  say "page       http://$http/"
  say "metrics    http://$http/metrics"
  say "next, in another terminal in $PWD:"
  say "  $bin/tracectl top --server @$demo/ready --certs $demo/certs"
  say "  $bin/tracectl tail --server @$demo/ready --certs $demo/certs demo/"
  say "  $bin/tracectl fetch --server @$demo/ready --certs $demo/certs --service demo --last 5s -o t.trace"
  say "  $go tool trace t.trace"
  say "  $bin/tracectl list --server @$demo/ready --certs $demo/certs --service demo"
  say "^C ends the demo."
}

show_figures() {
  local kind text=''
  for kind in syscall stw; do
    text+=$("$bin/tracectl" report "$kind" --server "@$demo/ready" --certs "$demo/certs" --service demo --window 10s --top 4 --frames 2 2>&1)$'\n\n'
  done
  [ -t 1 ] && printf '\033[H\033[2J'
  say "$text"
}

build
trap finish INT TERM HUP # HUP: the terminal was closed
start_collector
start_server
end=$((SECONDS + ${DEMO_SECONDS:-1000000000}))
while [ $SECONDS -lt "$end" ]; do
  kill -0 "$collector" 2>/dev/null || { tail -n 5 -- "$demo/collector.log" >&2; die "the collector ended by itself"; }
  kill -0 "$server" 2>/dev/null || { tail -n 5 -- "$demo/server.log" >&2; die "the server ended by itself"; }
  show_figures
  next_commands
  sleep 2 &
  wait $! # a signal ends this wait at once
done
finish
