# SPDX-License-Identifier: Apache-2.0
"""tracectl send of stored traces: every byte comes back, and each generation has its verdict."""
import gzip
import os

from harness import FULL, SANITIZE, Case, Collector, corpus, local_go, suites, wait_until


def analysis_of(collector, instance):
    """The verdicts of an instance's segments in order of generation, once none is pending."""
    def verdicts():
        rows = collector.json_lines("list", "--service", "send", "--instance", instance)
        rows.sort(key=lambda row: row["first_gen"])
        return rows if rows and all(row["analysis"] != "pending" for row in rows) else None
    return wait_until(f"all segments of {instance} are judged", verdicts)


class Send(Case):
    def test_without_certificates_it_says_which_option(self):
        done = self.tracectl("send", self.trace("g26-iter"), "--to", "127.0.0.1:1", "--service", "send", expect=2)
        self.assertIn("--certs DIR is required", done.err)

    def test_every_stored_trace_comes_back_byte_for_byte_and_is_judged_ok(self):
        collector = Collector(self)
        most = float("inf") if FULL else 40_000 if not SANITIZE else 20_000  # small ones there are of each version
        for packed in (trace for trace in corpus() if trace.stat().st_size <= most):
            trace = self.unpack(packed)
            name = trace.stem
            with self.subTest(trace=name):
                collector.send(trace, "send", name)
                self.assert_same_bytes(collector.fetch(self.folder / "fetched", "send", name), trace)
                self.assertEqual({row["analysis"] for row in analysis_of(collector, name)}, {"ok"})
            trace.unlink()
        self.assertEqual(collector.stop(), 0)

    @suites("release")  # Go's tool would read what the release build archives
    def test_each_segment_is_a_trace_of_its_own_to_go(self):
        go = local_go()
        if go is None:
            self.skipTest("no Go >= 1.22 here")
        for most, segments_of_all in (1000, 3), (1, 28):
            with self.subTest(generations_max=most):
                self._expect_segments_are_traces(go, most, segments_of_all)

    def _expect_segments_are_traces(self, go, most, segments_of_all):
        collector = Collector(self, f"segment.generations_max={most}", name=f"most-{most}")
        utc = {**os.environ, "TZ": "UTC"}
        for name in ("g22-mix", "g25-mix", "g26-gens"):
            collector.send(self.trace(name), "send", name)
            analysis_of(collector, name)
        self.assertEqual(collector.stop(), 0)
        segments = sorted(collector.state.glob("archive/*/*/*.trace"))
        self.assertEqual(len(segments), segments_of_all)
        verdicts = self.tracectl("check", *segments).out.splitlines()
        self.assertEqual([verdict for verdict in verdicts if ": ok:" not in verdict], [])
        for segment in segments[::6] if most == 1 else segments:
            with self.subTest(segment=segment.name):
                ours = self.tracectl("cat", "-d", "parsed", segment, env=utc).out
                self.assertTrue(go.parsed(self, segment).out == ours, "Go's tool prints it otherwise")

    def test_a_broken_generation_is_kept_as_it_came_and_the_next_stream_is_untouched(self):
        whole = self.trace("g26-gens")
        bytes_ = bytearray(whole.read_bytes())
        middle = len(bytes_) // 2
        bytes_[middle:middle + 64] = b"\xff" * 64
        broken = self.folder / "broken.trace"
        broken.write_bytes(bytes_)
        self.assertEqual(self.tracectl("check", broken, expect=1).returncode, 1)

        for most in 1, 1000:
            with self.subTest(generations_max=most):
                self._expect_kept(broken, whole, most)

    def _expect_kept(self, broken, whole, most):
        collector = Collector(self, f"segment.generations_max={most}", name=f"most-{most}")
        collector.send(broken, "send", "broken")
        collector.send(whole, "send", "whole")
        rows = analysis_of(collector, "broken")
        bad = [row for row in rows if row["analysis"] == "broken"]
        self.assertEqual(len(bad), 1, rows)
        self.assertTrue(bad[0]["reason"], bad)
        self.assertEqual(len(rows) > 1, most == 1, rows)
        if most == 1:
            self.assertEqual(rows[0]["analysis"], "ok")
        fetched = self.folder / "fetched"
        done = collector.ask("fetch", "--service", "send", "--instance", "broken", "-o", fetched)
        self.assertIn("broken", done.err)
        self.assert_same_bytes(fetched, broken)
        self.assert_same_bytes(collector.fetch(fetched, "send", "whole"), whole)
        self.assertEqual({row["analysis"] for row in analysis_of(collector, "whole")}, {"ok"})
        self.assertEqual(collector.stop(), 0)

    @suites("release")
    def test_what_is_no_trace_is_not_sent(self):
        collector = Collector(self)
        old = self.folder / "old.trace"
        old.write_bytes(self.trace("g26-labels").read_bytes().replace(b"go 1.26 trace", b"go 1.21 trace", 1))
        files = {"plain text": (b"root:x:0:0\n" * 500, 'no "go 1.NN trace" header'), "empty": (b"", "it is empty"),
                 "short": (b"go 1.2", "it ends within its header"), "packed": (gzip.compress(b"x" * 100), "this is gzip data"),
                 "program": (b"\x7fELF\x02" + bytes(100), "this is a program"), "v1": (old.read_bytes(), "trace format v1")}
        for name, (content, reason) in files.items():
            path = self.folder / name.replace(" ", "-")
            path.write_bytes(content)
            for source in (path, "-"):
                with self.subTest(name=name, source=source):
                    done = self.tracectl("send", source, "--to", collector.to, "--certs", self.certs, "--service", "send", "--no-progress",
                                         expect=1, given=content)
                    self.assertTrue(done.err.startswith(f"tracectl send: {source}: not a Go execution trace" if name != "v1"
                                                        else f"tracectl send: {source}: go 1.21"), done.err)
                    self.assertIn(reason, done.err)
                    self.assertIn("nothing was sent (--force sends it as it is)", done.err)
        self.assertEqual([row for row in collector.json_lines("status") if row["type"] == "stream"], [])
        forced = self.folder / "plain-text"
        self.tracectl("send", forced, "--to", collector.to, "--certs", self.certs, "--service", "send", "--instance", "forced", "--force")
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "send", "forced"), forced)
        self.assertEqual(collector.stop(), 0)

    @suites("release")
    def test_a_service_that_is_mistyped_is_recognised(self):
        collector = Collector(self)
        collector.send(self.trace("g26-labels"), "checkout", "one")
        for verb, more in (("report", ["syscall"]), ("fetch", ["-o", self.folder / "none"]), ("list", [])):
            for service, reason in (("chekcout", 'no service "chekcout"; did you mean "checkout"?'),
                                    ("payments", 'no service "payments"; known services: checkout')):
                done = collector.ask(verb, *more, "--service", service, expect=1)
                self.assertEqual(done.err, f"tracectl {verb}: {reason}\n")
        self.assertEqual(collector.ask("list", "--service", "checkout", "--instance", "two", expect=1).err, 'tracectl list: no instance "two" of checkout; known instances: one\n')
        self.assertEqual(collector.stop(), 0)

    def test_an_unknown_trace_version_is_archived_without_analysis(self):
        future = self.folder / "future.trace"
        future.write_bytes(self.trace("g26-labels").read_bytes().replace(b"go 1.26 trace", b"go 1.99 trace", 1))
        collector = Collector(self)
        collector.send(future, "send", "future")
        self.assertEqual({row["analysis"] for row in analysis_of(collector, "future")}, {"unsupported"})
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "send", "future"), future)
        self.assertEqual(collector.stop(), 0)
