#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# seeds.sh CORPUS_PROGRAM: makes seeds.pack anew: twenty real traces of at most 8 KB, of Go 1.22 to 1.27, that the
# oracle's mutants are made of. CORPUS_PROGRAM is build/PRESET/fuzz/corpus. A run's size varies, so each is tried
# until it fits. Needs every toolchain of the table.
set -eu
corpus=$(realpath "$1")
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
GO=$(../../tools/find-go.sh) && export GO
gens=traceadvanceperiod=10000000

n=0
while IFS='|' read -r toolchain debug generations arguments; do
  program=$tmp/tracegen-$toolchain
  case $arguments in *cgo*) cgo=cgo program+=-cgo ;; *) cgo= ;; esac
  [ -e "$program" ] || ../workload/build.sh "$toolchain" "$program" $cgo
  n=$((n + 1))
  file=$tmp/$(printf %02d $n).trace
  for ((try = 1; ; try++)); do
    # shellcheck disable=SC2086 # the arguments are words
    GODEBUG=$debug "$program" -procs 2 -scenario $arguments -o "$file"
    # A border between generations shows as that many first batches' numbers; Go's reader counts them as Syncs.
    syncs=$(TZ=UTC "$GO" tool trace -d=parsed "$file" 2>/dev/null | grep -c '^M=-1 P=-1 G=-1 Sync') || syncs=0
    [ "$(stat -c %s "$file")" -le 8192 ] && [ "$syncs" -gt "$generations" ] && break
    [ $try -lt 60 ] || { echo "seeds.sh: $toolchain $arguments: does not fit" >&2; exit 1; }
  done
done <<EOF_TABLE
go1.22.12||1|chan -ops 12
go1.22.12||1|syscall -ops 12
go1.22.12|$gens|2|midstart -seconds 0.03
go1.23.12||1|annot -ops 3
go1.23.12||1|iter -ops 12
go1.23.12|traceallocfree=1|1|nilwait -ops 2
go1.24.11||1|weak -ops 12
go1.24.11|$gens|2|longrun -ops 3 -seconds 0.03
go1.25.5||1|flight -ops 3 -seconds 0.05
go1.25.5||1|gcdeep -ops 3
go1.25.5||1|select -ops 12
go1.26.8|$gens|2|midstart -seconds 0.03
go1.26.8||1|gc -ops 1
go1.26.8|traceallocfree=1|1|nilwait -ops 1
go1.26.8||1|cgo -ops 2
go1.26.8||1|labels -ops 1 -seconds 0.02
go1.26.8||1|annot,mutex -ops 4
go1.27.3|$gens|2|midstart -seconds 0.03
go1.27.3||1|gc -ops 2
go1.27.3||1|syscall -ops 3
EOF_TABLE
"$corpus" pack seeds.pack "$tmp"/??.trace
stat -c "%n: %s bytes" seeds.pack
