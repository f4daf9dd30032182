# SPDX-License-Identifier: Apache-2.0
"""`tracectl convert`: each format read back by a reader that is not ours, and compared with `tracectl query` of the same traces."""
import collections
import csv
import io
import importlib
import json
import os
import sqlite3
import subprocess
import sys

from harness import DEADLINE, FULL, SANITIZE, SOURCE, TRACECTL, Case, Collector
from receiver import Receiver

WAKES = "kind='goroutine' AND state='runnable' AND cause='unblocked' AND by_life IS NOT NULL"


class Convert(Case):
    def reader(self, module):
        """Returns a reader from another project, out of the packages that tools/deps.sh fetches."""
        sys.path.append(str(SOURCE / "build/python"))
        try:
            return importlib.import_module(module)
        except ImportError:
            if os.environ.get("CI"):
                raise
            self.skipTest(f"no {module} here: tools/deps.sh fetches it")
        finally:
            sys.path.pop()

    def rows(self, trace, sql):
        return [json.loads(line) for line in self.tracectl("query", "--json", trace, sql).out.split("\n")[:-1]]

    def convert(self, to, *args, **options):
        out = self.folder / f"out.{to}"
        self.tracectl("convert", "--to", to, *args, "-o", out, **options)
        return out

    def goroutine_spans(self, trace):
        """(goroutine, title, from, until) on the wall clock or from the first span on."""
        rows = self.rows(trace, "SELECT s.subject, s.life, s.state, s.reason, s.from_ns, s.until_ns, s.wall_ns FROM spans s WHERE kind='goroutine' AND life IS NOT NULL")
        first = self.rows(trace, "SELECT from_ns AS at FROM generations LIMIT 1")[0]["at"]
        clock = next((row["wall_ns"] - row["from_ns"] for row in rows if row["wall_ns"] is not None), -first)
        return [(row["life"], row["reason"] or row["state"], row["from_ns"] + clock, row["until_ns"] and row["until_ns"] + clock) for row in rows]


    def few_generations(self):
        """The last eight of g26-gens, as a flight recorder would have them; all of them in a soak."""
        trace = self.trace("g26-gens")
        if FULL:
            return trace
        rows = [json.loads(line) for line in self.tracectl("index", "--json", trace).out.splitlines()]
        few, whole = self.folder / "g26-few", trace.read_bytes()
        few.write_bytes(whole[:rows[0]["offset"]] + whole[rows[-8]["offset"]:])
        self.assertIn(", 8 generations", self.tracectl("check", few).out)
        return few


class Perfetto(Convert):
    def packets(self, path):
        trace = self.reader("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
        trace.ParseFromString(path.read_bytes())
        return trace.packet

    def slices(self, packets):
        """(sequence, track, name, from, until), as its reader makes them: events by time, on each track one within the other."""
        open_ones, slices = collections.defaultdict(list), []
        for packet in sorted((p for p in packets if p.HasField("track_event")), key=lambda p: p.timestamp):
            event = packet.track_event
            stack = open_ones[event.track_uuid]
            if event.type == event.TYPE_SLICE_BEGIN:
                stack.append((packet.trusted_packet_sequence_id, event.track_uuid, event.name, packet.timestamp))
            elif event.type == event.TYPE_SLICE_END:
                slices.append((*stack.pop(), packet.timestamp))
        return slices + [(*begun, None) for stack in open_ones.values() for begun in stack]

    def tracks(self, packets):
        return {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}

    def test_goroutines_have_the_spans_that_query_has(self):
        for trace in (self.few_generations(), *map(self.trace, ("c-locks",) if SANITIZE else ("g22-mix", "g26-cgo", "c-locks"))):
            packets = self.packets(self.convert("perfetto", trace))
            tracks = self.tracks(packets)
            want = collections.Counter(self.goroutine_spans(trace))
            goroutines = {uuid for uuid, track in tracks.items() if track.name.startswith("G") and track.parent_uuid in tracks
                          and tracks[track.parent_uuid].parent_uuid and tracks[tracks[track.parent_uuid].parent_uuid].name == "goroutines"}
            got = collections.Counter((uuid & (1 << 40) - 1, title, begin, end) for _, uuid, title, begin, end in self.slices(packets) if uuid in goroutines)
            self.assertEqual(got, want, trace)
            self.assertGreater(len(want), 30)
            ids = {row["life"]: row for row in self.rows(trace, "SELECT life, id, entry FROM goroutines")}
            for uuid in goroutines:
                row = ids[uuid & (1 << 40) - 1]
                self.assertIn(tracks[uuid].name, (f"G{row['id']} {row['entry']}", f"G{row['id']}"))
                self.assertEqual(tracks[tracks[uuid].parent_uuid].name, row["entry"] or "not known")

    def test_ps_wake_ups_stacks_and_metrics(self):
        trace = self.few_generations()
        packets = self.packets(self.convert("perfetto", trace))
        tracks = self.tracks(packets)
        procs = {uuid for uuid, track in tracks.items() if track.parent_uuid in tracks and tracks[track.parent_uuid].name == "Ps"}
        ran = self.rows(trace, "SELECT count(*) AS n, sum(until_ns-from_ns) AS ns FROM spans WHERE kind='goroutine' AND state='running' AND proc IS NOT NULL")[0]
        on_procs = [(begin, end) for _, uuid, _, begin, end in self.slices(packets) if uuid in procs]
        self.assertEqual((len(on_procs), sum(end - begin for begin, end in on_procs if end)), (ran["n"], ran["ns"]))
        events = [p.track_event for p in packets if p.HasField("track_event")]
        begun = collections.Counter(flow for event in events for flow in event.flow_ids)
        ended = collections.Counter(flow for event in events for flow in event.terminating_flow_ids)
        self.assertEqual(begun, ended)
        self.assertEqual(sum(begun.values()), self.rows(trace, f"SELECT count(*) AS n FROM spans WHERE {WAKES}")[0]["n"])
        self.assertEqual(max(begun.values()), 1)
        self.check_stacks(trace, packets)
        counted = [(tracks[p.track_event.track_uuid].name, p.track_event.counter_value) for p in packets if p.track_event.type == p.track_event.TYPE_COUNTER]
        self.assertEqual(counted, [(row["name"], row["value"]) for row in self.rows(trace, "SELECT name, value FROM metrics")])

    def check_stacks(self, trace, packets):
        """Compares the stacks of waits: the innermost functions, through the interned frames."""
        functions, frames, stacks, got = {}, {}, {}, collections.Counter()
        for packet in packets:
            functions.update((text.iid, text.str.decode()) for text in packet.interned_data.function_names)
            frames.update((frame.iid, (functions[frame.function_name_id], frame.line_number)) for frame in packet.interned_data.frames)
            stacks.update((stack.iid, [frames[frame] for frame in stack.frame_ids]) for stack in packet.interned_data.callstacks)
            event = packet.track_event
            if event.name == "sync" and event.callstack_iid:
                got[stacks[event.callstack_iid][-1]] += 1
        want = self.rows(trace, "SELECT f.function, f.line, count(*) AS n FROM spans s JOIN frames f ON f.stack=s.stack AND f.depth=0 "
                                "WHERE kind='goroutine' AND state='waiting' AND reason='sync' GROUP BY 1, 2")
        self.assertEqual(got, {(row["function"], row["line"]): row["n"] for row in want})

    def test_traces_lie_beside_each_other_by_the_wall_clock(self):
        one, two = self.trace("g26-gens"), self.trace("g26-annot")
        packets = self.packets(self.convert("perfetto", one, two))
        names = {p.track_descriptor.process.process_name: p.trusted_packet_sequence_id for p in packets if p.track_descriptor.HasField("process")}
        self.assertEqual(set(names), {str(one), str(two)})
        for trace in (one, two):
            first = self.rows(trace, "SELECT min(wall_ns) AS at FROM (SELECT wall_ns FROM spans UNION ALL SELECT wall_ns FROM metrics)")[0]["at"]
            mine = min(p.timestamp for p in packets if p.trusted_packet_sequence_id == names[str(trace)] and p.timestamp)
            self.assertLess(abs(mine - first), 10_000)  # each generation has a clock of its own
        done = self.tracectl("convert", "--to", "perfetto", one, self.trace("g22-mix"), "-o", self.folder / "mixed")
        self.assertIn("1 of the traces have no wall clock (before Go 1.25): they begin at zero", done.err)

    def test_tasks_regions_and_hostile_names_come_as_text(self):
        trace = self.trace("g26-annot")
        packets = self.packets(self.convert("perfetto", trace))
        named = collections.Counter((p.track_event.categories[0], p.track_event.name) for p in packets if len(p.track_event.categories) > 0)
        for category, sql in (("task", "SELECT type AS name FROM tasks"), ("region", "SELECT type AS name FROM regions"), ("log", "SELECT message AS name FROM logs")):
            want = sum(1 for row in self.rows(trace, sql))
            self.assertEqual(sum(n for (kind, _), n in named.items() if kind == category), want, category)
        self.assertGreater(len(named), 20)


class OtherFormats(Convert):
    def test_chrome(self):
        trace = self.trace("g26-gens")
        events = json.loads(self.convert("chrome", trace).read_text())["traceEvents"]
        goroutines = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
        want = [span for span in self.goroutine_spans(trace) if span[3] is not None]
        self.assertEqual(len(goroutines), len(want))
        self.assertEqual(round(sum(e["dur"] for e in goroutines) * 1000), sum(end - begin for _, _, begin, end in want))
        names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 1}
        self.assertLessEqual({e["tid"] for e in goroutines}, set(names))
        wakes = self.rows(trace, f"SELECT count(*) AS n FROM spans WHERE {WAKES}")[0]["n"]
        self.assertEqual([sum(e["ph"] == phase for e in events) for phase in "sf"], [wakes, wakes])
        for name in ("g26-annot", "c-locks") if SANITIZE else ("g26-annot", "g26-blobs", "c-locks", "g22-mix"):
            json.loads(self.convert("chrome", self.trace(name)).read_text())

    def test_collapsed_stacks(self):
        trace = self.trace("g26-gens")
        for of, sql in (("samples", "SELECT count(*) AS n FROM samples"), ("waiting", "SELECT sum(until_ns-from_ns) AS n FROM spans WHERE kind='goroutine' AND state='waiting' AND until_ns IS NOT NULL")):
            lines = [line.rsplit(" ", 1) for line in self.convert("collapsed", trace, "--of", of).read_text().splitlines()]
            self.assertTrue(all(" " not in stack for stack, _ in lines))
            got = sum(int(n) for _, n in lines)
            self.assertGreaterEqual(got, self.rows(trace, sql)[0]["n"])
        leaves = collections.Counter()
        for stack, n in (line.rsplit(" ", 1) for line in self.convert("collapsed", trace).read_text().splitlines()):
            leaves[stack.split(";")[-1]] += int(n)
        want = self.rows(trace, "SELECT f.function, count(*) AS n FROM samples s JOIN frames f ON f.stack=s.stack AND f.depth=0 GROUP BY 1")
        self.assertEqual(leaves, {row["function"]: row["n"] for row in want})

    def test_opentelemetry(self):
        trace = self.trace("g26-annot")
        data = self.reader("opentelemetry.proto.trace.v1.trace_pb2").TracesData()
        data.ParseFromString(self.convert("otlp", trace).read_bytes())
        spans = [span for resource in data.resource_spans for scope in resource.scope_spans for span in scope.spans]
        counts = self.rows(trace, "SELECT (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM regions) AS regions")[0]
        self.assertEqual(len(spans), counts["tasks"] + counts["regions"])
        self.assertTrue(all(len(span.trace_id) == 16 and len(span.span_id) == 8 and span.end_time_unix_nano >= span.start_time_unix_nano for span in spans))
        self.assertEqual(len({span.span_id for span in spans}), len(spans))
        by_id = {span.span_id: span for span in spans}
        below = [span for span in spans if span.parent_span_id in by_id]
        self.assertGreater(len(below), 10)
        self.assertTrue(all(span.trace_id == by_id[span.parent_span_id].trace_id for span in below))
        rows = self.rows(trace, "WITH t AS MATERIALIZED (SELECT task, parent, from_ns FROM tasks) SELECT task, min(parent) AS parent, min(from_ns) AS from_ns FROM t GROUP BY 1 HAVING count(*)=1")
        clock = self.rows(trace, "SELECT wall_ns-from_ns AS at FROM generations LIMIT 1")[0]["at"]
        begun = {span.start_time_unix_nano: span for span in spans}
        task = {row["task"]: begun[row["from_ns"] + clock] for row in rows if row["from_ns"] + clock in begun}
        checked = [task[row["task"]].parent_span_id == task[row["parent"]].span_id for row in rows if row["task"] in task and row["parent"] in task]
        self.assertGreater(len(checked), 10)
        self.assertTrue(all(checked))
        self.assertEqual({a.value.string_value for r in data.resource_spans for a in r.resource.attributes if a.key == "service.name"}, {trace.name})

    def test_opentelemetry_has_what_reports_say(self):
        trace = self.trace("g26-annot")
        data = self.reader("opentelemetry.proto.metrics.v1.metrics_pb2").MetricsData()
        data.ParseFromString(self.convert("otlp-metrics", trace).read_bytes())
        points = {}
        for metric in (m for resource in data.resource_metrics for scope in resource.scope_metrics for m in scope.metrics):
            kind = metric.WhichOneof("data")
            for point in getattr(metric, kind).data_points:
                labels = [(a.key, a.value.string_value) for a in point.attributes]
                points[metric.name, *labels] = point, kind, metric.unit
        reports = [json.loads(line) for line in self.tracectl("report", "all", trace, "--window", "all", "--json", "--top", "0").out.split("\n") if line]
        checked = collections.Counter()
        for report in (r for r in reports if "kind" in r):
            for name, value in report["figures"].items():
                checked[self.same_point(points.get((f"go.trace.{report['kind']}.{name}",)), value)] += 1
            for row in report["tables"].get("by_reason", []) if report["kind"] in ("stw", "block") else []:
                for name in ("stopped", "blocked_ns"):
                    if name in row:
                        checked[self.same_point(points[f"go.trace.{report['kind']}.by_reason.{name}", ("reason", row.get("id", row["reason"]))], row[name])] += 1
        self.assertGreater(min(checked["gauge"], checked["summary"]), 10, checked)
        spans = [report for report in reports if report.get("kind") == "sched"][0]
        point = points["go.trace.sched.latency",][0]
        self.assertEqual(point.time_unix_nano - point.start_time_unix_nano, spans["until_ns"] - spans["from_ns"])
        self.assertLess(abs(point.time_unix_nano - spans["until_wall_ns"]), 1000)
        torn = self.folder / "torn"
        torn.write_bytes(self.trace("g26-gens").read_bytes()[:80000])
        said = self.tracectl("convert", "--to", "otlp-metrics", torn, "-o", self.folder / "torn.out", expect=1).err
        self.assertEqual(said.count("the trace ends in the middle of a batch"), 1, said)
        self.assertGreater((self.folder / "torn.out").stat().st_size, 1000)
        receiver = Receiver(self)
        self.tracectl("convert", "--to", "otlp-metrics", "--otlp", receiver.url(""), trace)
        self.assertEqual([post["body"] for post in receiver.of("/v1/metrics")], [(self.folder / "out.otlp-metrics").read_bytes()])

    def same_point(self, found, value):
        """Returns the kind of point; None if the report does not have the figure, or it is not a
        number."""
        if value is None or isinstance(value, (str, list)):
            self.assertIsNone(found)
            return None
        point, kind, unit = found
        if isinstance(value, dict):
            self.assertEqual((point.count, point.sum, unit), (value["count"], value["total_ns"], "ns"))
            names = {0: "min_ns", 0.5: "p50_ns", 0.9: "p90_ns", 0.99: "p99_ns", 0.999: "p999_ns", 1: "max_ns"}
            want = {q: value[name] for q, name in names.items() if name in value} if value["count"] else {}
            self.assertEqual({q.quantile: q.value for q in point.quantile_values}, want)
        else:
            self.assertAlmostEqual(getattr(point, point.WhichOneof("value")), value, places=9)
        return kind

    def test_opentelemetry_over_http(self):
        """A collector of OpenTelemetry gets the content of the file; the request is repeated if the answer asks for that."""
        receiver = Receiver(self)
        trace = self.trace("g26-annot")
        receiver.answers["/v1/traces"] = [503]
        headers = {**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20a%2Cb, x-team=shop"}
        self.tracectl("convert", "--otlp", receiver.url(""), trace, env=headers)
        posts = receiver.of("/v1/traces")
        self.assertEqual(posts[0]["body"], posts[1]["body"])
        self.assertEqual(b"".join(post["body"] for post in posts[1:]), self.convert("otlp", trace).read_bytes())
        for post in posts:
            self.assertEqual({name: post["headers"][name] for name in ("content-type", "authorization", "x-team")},
                             {"content-type": "application/x-protobuf", "authorization": "Bearer a,b", "x-team": "shop"})
        self.tracectl("convert", "--otlp", receiver.url("/mine/v1/traces"), trace)
        self.assertEqual(len(receiver.of("/mine/v1/traces")), len(posts) - 1)
        receiver.answers["/bad/v1/traces"] = [400]
        self.assertIn("/bad/v1/traces: the answer is 400", self.tracectl("convert", "--otlp", receiver.url("/bad/"), trace, expect=1).err)
        self.assertIn("connect", self.tracectl("convert", "--otlp", "http://127.0.0.1:1", trace, expect=1).err)
        for value, words in (("x", '"x" is not NAME=VALUE'), ("a=%1", 'the value of "a" is wrong'), ("a=%0Ab", 'the value of "a" is wrong')):
            said = self.tracectl("convert", "--otlp", receiver.url(""), trace, env={**os.environ, "OTEL_EXPORTER_OTLP_HEADERS": value}, expect=1).err
            self.assertIn(f"OTEL_EXPORTER_OTLP_HEADERS: {words}", said)
        for words, says in ((("--otlp", "host:4318"), "not 'host:4318'"), (("--otlp", "http://h", "-o", "x"), "--otlp cannot be combined with -o"),
                            (("--otlp", "http://h", "--to", "csv"), "--otlp sends otlp or otlp-metrics only")):
            self.assertIn(says, self.tracectl("convert", *words, trace, expect=2).err)

    def test_tables(self):
        trace = self.few_generations()
        for table in ("spans", "goroutines", "events"):
            want = self.tracectl("query", trace, f"SELECT * FROM {table}", "--json").out
            self.assertEqual(self.convert("json", trace, "--table", table).read_text(), want)
        rows = list(csv.reader(io.StringIO(self.convert("csv", trace).read_text(), newline="")))
        self.assertEqual(len(rows), 1 + self.rows(trace, "SELECT count(*) AS n FROM spans")[0]["n"])
        database = sqlite3.connect(self.convert("sqlite", trace))
        for table in ("generations", "spans", "goroutines", "events", "stacks", "frames", "tasks", "regions", "logs", "samples", "metrics", "reports"):
            rows = self.rows(trace, f"SELECT * FROM {table} LIMIT 1")
            columns = ", ".join(column for column in rows[0] if not column.endswith("stack")) if rows else "1"
            want = [list(row.values()) for row in self.rows(trace, f"SELECT {columns} FROM {table}")]
            got = [list(row) for row in database.execute(f"SELECT {columns} FROM {table}")]
            self.assertEqual(sorted(got, key=str) if table in ("stacks", "frames") else got, sorted(want, key=str) if table in ("stacks", "frames") else want, table)
        where = "SELECT f.function, f.line, count(*) FROM spans s JOIN frames f ON f.stack=s.stack AND f.depth=0 GROUP BY 1, 2 ORDER BY 1, 2"
        self.assertEqual([list(row) for row in database.execute(where)], [list(row.values()) for row in self.rows(trace, where)])

    def test_columns_are_chosen(self):
        trace = self.trace("g26-annot")
        for to, form in (("csv", "--csv"), ("json", "--json")):
            got = self.convert(to, trace, "--columns", "duration_ns, kind,state").read_bytes()
            self.assertEqual(got, self.tracectl("query", form, trace, "SELECT duration_ns, kind, state FROM spans WHERE 1").stdout)
            got = self.convert(to, trace, "--table", "events", "--columns", "args").read_bytes()
            self.assertEqual(got, self.tracectl("query", form, trace, "SELECT args FROM events WHERE 1").stdout)
            got = self.convert(to, trace, "--table", "stops").read_bytes()
            self.assertEqual(got, self.tracectl("query", form, trace, "SELECT * FROM stops").stdout)

    def test_what_comes_before_a_fault_is_written(self):
        trace = self.trace("g26-gens")
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:80000])
        for to in ("perfetto", "chrome", "collapsed", "otlp", "csv"):
            done = self.tracectl("convert", "--to", to, torn, "-o", self.folder / f"torn.{to}", expect=1)
            self.assertIn("the trace ends in the middle of a batch", done.err)
            self.assertGreater((self.folder / f"torn.{to}").stat().st_size, 0)
        json.loads((self.folder / "torn.chrome").read_text())
        self.assertIn("middle of a batch", self.tracectl("convert", "--to", "sqlite", torn, "-o", self.folder / "torn.sqlite", expect=1).err)
        self.assertEqual(list(self.folder.glob("torn.sqlite*")), [])

    def test_a_pipe_that_nothing_reads_any_more_ends_it(self):
        trace = self.trace("g26-gens")
        for to in ("csv", "json", "chrome", "perfetto"):
            with subprocess.Popen([TRACECTL, "convert", "--to", to, trace, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
                self.assertEqual(len(child.stdout.read(100)), 100)
                child.stdout.close()
                self.assertEqual((child.stderr.read(), child.wait(DEADLINE)), (b"", 0), to)

    def test_collapsed_says_why_it_is_empty(self):
        """A trace without CPU samples has stacks of waits."""
        out = self.folder / "stacks"
        done = self.tracectl("convert", "--to", "collapsed", self.trace("g26-iter"), "-o", out)
        self.assertEqual((out.read_bytes(), done.err), (b"", "tracectl convert: no CPU samples in it, so no stacks: try --of waiting\n"))
        self.assertEqual(self.tracectl("convert", "--to", "collapsed", "--of", "waiting", self.trace("g26-iter"), "-o", out).err, "")
        self.assertGreater(out.stat().st_size, 0)

    def test_mistakes(self):
        trace = self.trace("g26-gens")
        for words, says in ((("--to", "gif"), "--to 'gif': use perfetto, chrome"), ((), "--to is required"), (("--to", "chrome", "--table", "spans"), "--table is for json and csv"),
                            (("--to", "csv", "--table", "x y"), "no table 'x y'"), (("--to", "csv", "--of", "waiting"), "--of is for collapsed"),
                            (("--to", "chrome", "--columns", "kind"), "--columns is for json and csv only"),
                            (("--to", "csv", "--columns", "kind,stat"), "spans has no column 'stat'; 'tracectl query --schema spans' lists them"),
                            (("--to", "csv", "--columns", "kind,,state"), "spans has no column ''"), (("--to", "json", "--columns", "kind state"), "spans has no column"),
                            (("--to", "csv", "--columns", "kind,KIND"), "'KIND' is given twice"), (("--to", "csv", "--columns", "reason", "--table", "stops"), "stops is a view"),
                            (("--to", "pprof"), "tracectl report KIND FILE --pprof OUT"),
                            (("--to", "collapsed", "--of", "all"), "--of 'all': use samples, waiting")):
            self.assertIn(says, self.tracectl("convert", *words, trace, "-o", self.folder / "x", expect=2).err)
        self.assertIn("-o OUT is required", self.tracectl("convert", "--to", "csv", trace, expect=2).err)
        self.assertIn("no table 'spanz'; did you mean 'spans'?", self.tracectl("convert", "--to", "csv", trace, "--table", "spanz", "-o", self.folder / "x", expect=2).err)
        self.assertIn("No such file", self.tracectl("convert", "--to", "chrome", self.folder / "none", "-o", self.folder / "x", expect=1).err)
        self.assertFalse((self.folder / "x").exists() and (self.folder / "x").stat().st_size > 100)

    def test_of_a_collector(self):
        collector = Collector(self)
        trace = self.trace("g26-gens")
        collector.send(trace, "shop")
        collector.ask("convert", "--to", "csv", "--service", "shop", "--all", "-o", self.folder / "live.csv")
        want = self.convert("csv", trace).read_text().splitlines()
        got = (self.folder / "live.csv").read_text().splitlines()
        self.assertEqual([line.split(",", 1)[1] for line in got], [line.split(",", 1)[1] for line in want])
        self.assertTrue(got[1].startswith("shop/one/"))
        self.assertEqual(collector.stop(), 0)
