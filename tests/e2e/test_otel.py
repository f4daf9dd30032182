# SPDX-License-Identifier: Apache-2.0
"""`tracectl convert --otlp` to a real OpenTelemetry Collector, which passes on the content of the file.

The Collector is an engine (tools/engines.sh). Without it test_convert.py posts to a receiver of our own.
"""
import os
import pathlib
import re
import sys
import unittest

from harness import SANITIZE, SOURCE, Case, engine, wait_until
from receiver import Receiver

CONFIG = """receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters: {{otlphttp: {{endpoint: "{url}", compression: none}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlphttp]}}
    metrics: {{receivers: [otlp], exporters: [otlphttp]}}
"""


def listening_port(pid):
    """The TCP port on which a process listens, or None."""
    sockets = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        if match := re.match(r"socket:\[(\d+)\]", os.readlink(link)):
            sockets.add(match.group(1))
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and words[9] in sockets:
            return int(words[1].split(":")[1], 16)
    return None


@unittest.skipIf(SANITIZE, "the posts are the same")
@unittest.skipUnless(engine("otelcol"), "no engine otelcol here: test_convert.py posts to a receiver of our own")
class OpenTelemetryCollector(Case):
    def setUp(self):
        super().setUp()
        sys.path.append(str(SOURCE / "build/python"))
        self.addCleanup(sys.path.remove, str(SOURCE / "build/python"))
        self.receiver = Receiver(self)
        config = self.folder / "otelcol.yaml"
        config.write_text(CONFIG.format(url=self.receiver.url("")))
        process = self.spawn("otelcol", engine("otelcol"), "--config", config)
        wait_until("it is ready", lambda: process.poll() is not None or "Everything is ready" in self.log("otelcol"))
        self.assertIsNone(process.poll(), self.log("otelcol"))
        self.url = f"http://127.0.0.1:{listening_port(process.pid)}"
        self.traced = self.trace("g26-annot")

    def test_it_passes_every_span_on(self):
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
        file = self.folder / "file"
        self.tracectl("convert", "--to", "otlp", self.traced, "-o", file)
        self.tracectl("convert", "--otlp", self.url, self.traced)
        want = self.spans(TracesData, file.read_bytes())
        self.assertGreater(len(want), 10)
        got = wait_until("as many spans as the file has", lambda: len(g := self.passed_on(TracesData, "/v1/traces", self.spans)) >= len(want) and g)
        self.assertEqual(sorted(got), sorted(want))

    def test_it_passes_every_metric_on(self):
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
        file = self.folder / "file"
        self.tracectl("convert", "--to", "otlp-metrics", self.traced, "-o", file)
        self.tracectl("convert", "--to", "otlp-metrics", "--otlp", self.url, self.traced)
        want = self.metrics(MetricsData, file.read_bytes())
        self.assertGreater(len(want), 10)
        got = wait_until("as many metrics as the file has", lambda: len(g := self.passed_on(MetricsData, "/v1/metrics", self.metrics)) >= len(want) and g)
        self.assertEqual(sorted(got), sorted(want))

    def passed_on(self, kind, path, read):
        return [item for post in self.receiver.of(path) for item in read(kind, post["body"])]

    @staticmethod
    def spans(kind, data):
        message = kind()
        message.ParseFromString(data)
        for span in (span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans):
            if not span.status.ByteSize():
                span.ClearField("status")  # the Collector writes an empty one
        return [span.SerializeToString(deterministic=True) for resource in message.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    @staticmethod
    def metrics(kind, data):
        message = kind()
        message.ParseFromString(data)
        return [metric.SerializeToString(deterministic=True) for resource in message.resource_metrics
                for scope in resource.scope_metrics for metric in scope.metrics]
