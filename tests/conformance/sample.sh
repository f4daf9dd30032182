#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sample.sh FOLDER: the traces of FOLDER (NAME.trace.zst) that a comparison reads, a line each. Of the corpus these are the small ones
# that tests/data does not have as well; all of it with TC_FULL=1 (`make soak`).
set -eu
folder=$1 data=$(cd "$(dirname "$0")/../data" && pwd)
for trace in "$folder"/*.trace.zst; do
  [ -e "$trace" ] || continue
  if [ -z "${TC_FULL:-}" ] && [ "$(realpath "$folder")" != "$data" ]; then
    [ "$(stat -c %s "$trace")" -le 50000 ] || continue
    [ ! -e "$data/$(basename "$trace")" ] || continue
  fi
  echo "$trace"
done
