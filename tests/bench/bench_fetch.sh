#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_fetch.sh: a gigabyte out of the archive, by tracectl and by curl, over TLS, plain HTTP and the unix socket. The
# peer is curl from nginx, which has the same files and, for TLS, the same certificates and cipher.
#
# Each round asks all of them in turn, the best of the rounds counts (BENCH_ROUNDS, 5). Files are in the page cache, and what comes
# goes to files in memory (/dev/shm): disks are no part of it. curl has a process and a connection for all files, tracectl
# makes one trace of them and compares their hashes.
. tests/bench/lib.sh
rounds=${BENCH_ROUNDS:-5}
command -v nginx >/dev/null || { say "no nginx here: left out"; exit 0; }
got=$(mktemp -d /dev/shm/tc-bench.XXXXXX)
nginx=''
trap 'end_nginx; end_collector; rm -rf "$dir" "$got"' EXIT

end_nginx() {
  [ -n "$nginx" ] || return 0
  kill "$nginx" && wait "$nginx"
  nginx=''
}

address() { sed -n "s/^$1=//p" "$dir/ready"; }

start_nginx() { # leaves its ports in $plain and $tls
  local i
  read -r plain tls < <(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in held))')
  cat >"$dir/nginx.conf" <<END
daemon off; pid $dir/nginx.pid; error_log stderr; user $(id -un);
events { }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
  client_body_temp_path $dir/body; proxy_temp_path $dir/proxy; fastcgi_temp_path $dir/fastcgi;
  uwsgi_temp_path $dir/uwsgi; scgi_temp_path $dir/scgi;
  server { listen 127.0.0.1:$plain; root $dir/state/archive; }
  server {
    listen 127.0.0.1:$tls ssl; root $dir/state/archive;
    ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_certificate $dir/certs/server.pem; ssl_certificate_key $dir/certs/server.key;
    ssl_client_certificate $dir/certs/ca.pem; ssl_verify_client on;
  }
}
END
  nginx -p "$dir" -c "$dir/nginx.conf" -e stderr >"$dir/nginx.log" 2>&1 &
  nginx=$!
  for ((i = 0; i < 100; i++)); do curl -s "http://127.0.0.1:$plain/" >/dev/null && return; sleep 0.1; done
  fail "nginx does not start: $(tail -1 "$dir/nginx.log")"
}

with_curl() { # BASE [OPTION]...: all files below it, by the names in $dir/names
  local base=$1 n=0 name
  shift
  while read -r name; do echo "url = \"$base$name\""; echo "output = \"$got/$((n++))\""; done <"$dir/names" >"$dir/curlrc"
  curl -fsS "$@" -K "$dir/curlrc"
}

with_tracectl() { # SERVER
  "$bin/tracectl" fetch --server "$1" --certs "$dir/certs" --service bench --no-progress -o "$got/trace" >/dev/null
}

measure() { # NAME COMMAND...: notes ms
  local name=$1 began bytes
  shift
  began=$(date +%s%N)
  "$@" 2>"$dir/said" || fail "$name: $(tail -1 "$dir/said")"
  echo "$name $((($(date +%s%N) - began) / 1000000))" >>"$dir/times"
  bytes=$(cat "$got"/* | wc -c)
  [ "$bytes" -ge "$archived" ] || [ "$name" != "${name#tracectl}" ] || fail "$name: $bytes of $archived bytes"
  rm -f "$got"/*
}

best() { awk -v name="$1" '$1 == name && (m == "" || $2 < m) { m = $2 } END { print m }' "$dir/times"; }

of_nginx() { # as find has them, and of the collector by their ids
  (cd "$dir/state/archive" && find . -name '*.trace' | sed 's/^\.//') >"$dir/names"
}

of_collector() {
  "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --json |
    sed -nE 's/.*"id": *"?([0-9]+).*/\/api\/v1\/segments\/\1/p' >"$dir/names"
}

trace=$(long_trace) || exit 1
start_collector
"$bin/tracectl" send "$trace" --to "@$dir/ready" --certs "$dir/certs" --service bench --no-progress >"$dir/send" 2>&1 ||
  fail "send failed: $(tail -1 "$dir/send")"
for ((i = 0; i < 1200; i++)); do
  "$bin/tracectl" list --server "@$dir/ready" --certs "$dir/certs" --json | grep -q '"analysis": *"pending"' || break
  sleep 0.1
done
archived=$(find "$dir/state/archive" -name '*.trace' -exec cat {} + | wc -c) # and now they are in the page cache
mb=$((archived / 1000000))
certs=(--cacert "$dir/certs/ca.pem" --cert "$dir/certs/reader.pem" --key "$dir/certs/reader.key")
start_nginx
for ((i = 0; i < rounds; i++)); do
  of_nginx
  measure nginx with_curl "http://127.0.0.1:$plain"
  of_collector
  measure curl with_curl "http://$(address http)"
  measure curl-unix with_curl http://localhost --unix-socket "$(address sock)"
  measure tracectl-unix with_tracectl "unix:$(address sock)"
done
end_collector
start_collector listen.http=0.0.0.0:0
here=https://localhost:$(address http | sed 's/.*://')
for ((i = 0; i < rounds; i++)); do
  of_nginx
  measure nginx-tls with_curl "https://localhost:$tls" "${certs[@]}"
  of_collector
  measure curl-tls with_curl "$here" "${certs[@]}"
  measure tracectl-tls with_tracectl "$here"
done
share() { # NAME PEER WORDS GOAL: rates, so that more is better
  local ours peer
  ours=$(awk -v mb="$mb" -v ms="$(best "$1")" 'BEGIN { printf "%.0f", mb * 1000 / ms }')
  peer=$(awk -v mb="$mb" -v ms="$(best "$2")" 'BEGIN { printf "%.0f", mb * 1000 / ms }')
  row "$3" "$ours" MB/s "$peer" "$4" "$([ -n "$5" ] && echo ">= $((peer * $5 / 100))" || echo -)"
}
share tracectl-tls nginx-tls "tracectl fetch of $mb MB over TLS" "curl from nginx over TLS" 80
share curl-tls nginx-tls "  curl over TLS" "curl from nginx over TLS" 80
share tracectl-unix nginx "tracectl fetch of $mb MB over the unix socket" "curl from nginx, plain" 80
share curl-unix nginx "  curl over the unix socket" "curl from nginx, plain" 80
share curl nginx "  curl, plain" "curl from nginx, plain" ""
