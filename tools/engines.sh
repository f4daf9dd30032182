#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# engines.sh [list]: builds the real servers that tests talk to, once, into $TRACECOLLECT_ENGINES; `list` prints those that are there.
#
# `make test` never builds them: it uses those that are there or in PATH, and fakes for the others. `make soak` needs all.
#
#   prometheus  scrapes the collector, checks its rules      Debian's package, unpacked
#   otelcol     takes what `convert --otlp` posts            OpenTelemetry Collector, built by its own builder (Go; 2 CPU-minutes)
set -eu
cd "$(dirname "$0")/.."
engines=(prometheus otelcol)
otel_version=0.165.0 otel_providers=1.71.0

folder=${TRACECOLLECT_ENGINES:-}
place() { # NAME: prints its path, in the folder or in PATH
  if [ -n "$folder" ] && [ -x "$folder/bin/$1" ]; then echo "$folder/bin/$1"; else command -v "$1"; fi
}

if [ "${1:-}" = list ]; then
  missing=0
  for name in "${engines[@]}"; do
    if at=$(place "$name"); then echo "engine $name: $at"; else echo "engine $name: not there, tests use a fake"; missing=1; fi
  done
  exit $missing
fi
if [ -z "$folder" ]; then
  echo "engines: set TRACECOLLECT_ENGINES to a folder; what is built there is kept" >&2
  exit 2
fi
mkdir -p "$folder/bin"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

build_prometheus() {
  (cd "$work" && apt-get -q download prometheus >/dev/null && dpkg-deb -x prometheus_*.deb .)
  cp "$work"/usr/bin/{prometheus,promtool} "$folder/bin"
}

build_otelcol() {
  local go
  go=$(tools/find-go.sh)
  cat >"$work/builder.yaml" <<YAML
dist: { name: otelcol, output_path: $work/otelcol }
receivers: [{ gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v$otel_version }]
processors: [{ gomod: go.opentelemetry.io/collector/processor/batchprocessor v$otel_version }]
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter v$otel_version
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v$otel_version
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v$otel_providers
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v$otel_providers
  - gomod: go.opentelemetry.io/collector/confmap/provider/yamlprovider v$otel_providers
YAML
  GOBIN=$work "$go" install "go.opentelemetry.io/collector/cmd/builder@v$otel_version"
  PATH=$(dirname "$go"):$PATH GOFLAGS="-buildvcs=false -mod=mod" "$work/builder" --config "$work/builder.yaml"
  cp "$work/otelcol/otelcol" "$folder/bin"
}

for name in "${engines[@]}"; do
  place "$name" >/dev/null && continue
  echo "engines: building $name"
  "build_$name" >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; echo "engines: $name does not build" >&2; exit 1; }
done
"$0" list
