# SPDX-License-Identifier: Apache-2.0
"""Figures of a live stream and of its fetched file are the same figures."""
import collections
import csv
import gzip
import io
import json
import re
import shlex
import subprocess
import urllib.error
import urllib.request

from harness import DEADLINE, SOURCE, TRACECTL, Case, Collector, wait_until


class Report(Case):
    def test_live_and_file_agree(self):
        trace = self.trace("g26-gens")
        collector = Collector(self)
        collector.send(trace, "report")
        fetched = collector.fetch(self.folder / "fetched", "report")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "report")))
        offline, live = (
            [json.loads(line) for line in out.splitlines()]
            for out in (self.tracectl("report", "all", fetched, "--json").out,
                        collector.ask("report", "all", "--service", "report", "--json").out))
        self.assertGreater(len(offline), 1)
        self.assertEqual(len(offline), len(live))
        for of_file, of_stream in zip(offline, live):
            with self.subTest(kind=of_file["kind"]):
                if of_file["kind"] == "goroutines":
                    self._expect_near(of_stream["tables"], of_file["tables"], of_file["figures"]["alive"])
                    del of_stream["tables"], of_file["tables"]
                if of_file["kind"] == "gc":  # only of a file it says where the tables are that neither has
                    self.assertEqual(of_stream["notes"], [])
                    self.assertIn("report gc FILE", of_file.pop("notes")[0])
                    del of_stream["notes"]
                self.assertEqual(self._figures(of_stream), self._figures(of_file))
        self.assertEqual(collector.stop(), 0)

    def test_a_service_is_the_sum_of_its_instances(self):
        traces = {"one": self.trace("g26-gens"), "two": self.trace("g26-cgo")}
        collector = Collector(self)
        for instance, trace in traces.items():
            collector.send(trace, "shop", instance)
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "shop")))
        merged, *parts = collector.json_lines("report", "sched", "--service", "shop", "--top", "0")
        self.assertEqual([(r["instances"], r["instance"]) for r in (merged, *parts)], [(2, ""), (0, "one"), (0, "two")])
        self.assertEqual(merged["events"], sum(r["events"] for r in parts))
        self._expect_exact(merged["figures"]["latency"], traces.values())
        whole = {row["entry"]: row["latency"] for row in merged["tables"]["by_entry"]}
        entries = collections.Counter()
        for part in parts:
            entries.update({row["entry"]: row["latency"]["total_ns"] for row in part["tables"]["by_entry"]})
        self.assertEqual({entry: row["total_ns"] for entry, row in whole.items()}, entries)
        self.assertEqual([row["total_ns"] for row in whole.values()], sorted(entries.values(), reverse=True))
        self.assertEqual({row["instance"] for row in merged["tables"]["longest"]}, {"one", "two"})
        ends = {r["instance"]: r["until_wall_ns"] - r["until_ns"] for r in parts}
        self.assertEqual({row["start_ns"] for row in merged["tables"]["longest"]},
                         {row["start_ns"] + ends[part["instance"]] for part in parts for row in part["tables"]["longest"]})
        ns = [r["until_ns"] - r["from_ns"] for r in parts]
        self.assertEqual(merged["time_ns"], sum(ns))
        shares = [r["figures"]["wasted_share"] for r in parts]
        self.assertAlmostEqual(merged["figures"]["wasted_share"], (ns[0] * shares[0] + ns[1] * shares[1]) / sum(ns))
        self._expect_first(collector, merged)
        self._expect_over_http(collector, merged, parts)
        self.assertEqual(collector.stop(), 0)

    def test_the_last_minute_of_a_killed_program_is_not_that_of_its_service(self):
        """It is waited for, and its stream has not ended."""
        older, newer = sorted((self.trace("g26-gens"), self.trace("g26-cgo")), key=self._newest)
        collector = Collector(self)
        killed = self.spawn("killed", TRACECTL, "send", "-", "--to", collector.to, "--certs", self.certs, "--service", "shop", "--instance", "killed",
                            "--no-progress", stdin=subprocess.PIPE)
        self.addCleanup(killed.stdin.close)
        killed.stdin.write(older.read_bytes())
        killed.stdin.flush()
        wait_until("it has figures", lambda: collector.json_lines("list", "--service", "shop") and all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "shop")))
        collector.send(newer, "shop", "closed")
        of_instances = lambda *more: [(r["instance"], r["notes"]) for r in collector.json_lines(
            "report", "sched", "--service", "shop", "--sum", *more)]
        wait_until("both have figures", lambda: len(collector.json_lines("report", "sched", "--service", "shop")) == 2)
        self.assertEqual(of_instances("--window", "10s")[0][0], "killed", "it is connected, and only quiet")
        killed.kill()
        killed.wait()
        wait_until("it is waited for", lambda: "waiting" in {s["state"] for s in collector.json_lines("status") if "stream" in s})
        (instance, notes), = of_instances("--window", "10s")
        self.assertEqual(instance, "closed")
        self.assertRegex(" ".join(notes), r"1 stream is not in it: killed \(nothing since \d{4}-\d\d-\d\dT[\d:.]+Z\)\.")
        self.assertEqual(of_instances("--window", "all")[0][0], "killed")
        self.assertRegex(collector.ask("report", "--service", "shop").out.splitlines()[0],
                         r"^shop, the last 1m before \d{4}-\d\d-\d\dT[\d:.]+Z \(nothing since\): .*, [\d,]+ events$")

    def _newest(self, trace):
        return json.loads(self.tracectl("report", "sched", trace, "--json").out)["until_wall_ns"]

    def _expect_exact(self, latency, traces):
        """Expects the figures of all waits for a P in these traces, as query has them."""
        sql = "SELECT until_ns - from_ns AS ns FROM spans WHERE kind='goroutine' AND state='runnable' AND until_known"
        lengths = sorted(int(ns) for ns in self.tracectl("query", "--csv", *traces, sql).out.split()[1:])
        self.assertEqual((latency["count"], latency["total_ns"]), (len(lengths), sum(lengths)))
        self.assertEqual((latency["min_ns"], latency["max_ns"]), (lengths[0], lengths[-1]))
        for name, permille in ("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("p999_ns", 999):
            exact = lengths[-(-len(lengths) * permille // 1000) - 1]
            self.assertLessEqual(abs(latency[name] - exact), latency["error_share"] * exact + 1, name)
        self.assertLessEqual(latency["error_share"], 0.0109)

    def _expect_first(self, collector, merged):
        """Expects the sum before its parts as text and CSV, and only parts in lists, conditions and when an instance is named."""
        ask = ("report", "sched", "--service", "shop")
        titles = [line for line in collector.ask(*ask, "--each").out.splitlines() if line.startswith("sched  shop")]
        self.assertEqual([title.split("  (")[0] for title in titles], ["sched  shop: 2 instances", "sched  shop/one", "sched  shop/two"])
        streams = {s["instance"]: s["stream"][:8] for s in collector.json_lines("status") if "stream" in s}
        self.assertIn(f"sched  shop/one  (stream {streams['one']}, ended ", titles[1])
        alone = collector.ask(*ask).out
        self.assertEqual([line.split("  (")[0] for line in alone.splitlines() if line.startswith("sched  shop")], ["sched  shop: 2 instances"])
        self.assertIn("\n2 streams are added up; --each shows each of them, --stream ID one:\n", alone)
        self.assertIn("this stream, since it began", collector.ask("report", "--stream", streams["one"], "--window", "all").out)
        for instance, stream in streams.items():
            self.assertRegex(alone, rf"\n  {stream}  {instance} +closed ")
        self.assertNotIn("added up", collector.ask(*ask, "--instance", "one").out)
        self.assertIn("contradict", collector.ask(*ask, "--each", "--sum", expect=2).err)
        rows = list(csv.DictReader(io.StringIO(collector.ask(*ask, "--csv", "--table", "by_entry").out)))
        self.assertEqual(rows[0]["instance"], "")
        self.assertEqual(rows[0]["latency_count"], str(merged["tables"]["by_entry"][0]["latency"]["count"]))
        self.assertEqual({row["instance"] for row in rows}, {"", "one", "two"})
        rows = list(csv.DictReader(io.StringIO(collector.ask(*ask, "--csv", "--table", "longest").out)))
        self.assertEqual({row["instance"] for row in rows}, {"one", "two"})
        collector.ask(*ask, "--fail-on", f"sched.latency.count >= {merged['figures']['latency']['count']}")
        self.assertEqual([r["instance"] for r in collector.json_lines(*ask, "--instance", "one")], ["one"])

    def _expect_over_http(self, collector, merged, parts):
        """Expects the same in answers to GET, and words for what cannot be answered."""
        def answers(query):
            return [json.loads(line) for line in collector.get(f"/api/v1/report/{query}&top=0").splitlines()]
        self.assertEqual(answers("sched?service=shop"), [merged, *parts])
        self.assertEqual(answers("sched?service=shop&sum=only"), [merged])
        self.assertEqual(answers("sched?service=shop&sum=none"), parts)
        self.assertEqual(answers("sched?service=shop&instance=two"), parts[1:])
        every = answers("all?service=shop&sum=only")
        self.assertEqual(len({r["kind"] for r in every}), len(every))
        self.assertEqual({r["instances"] for r in every}, {2})
        self.assertEqual(collector.json_lines("report", "sched", "--service", "shop", "--sum", "--top", "0"), [merged])
        self.assertEqual(collector.ask("report", "sched", "--service", "shop", "--sum", "--fail-on", "sched.latency.count > 0", expect=3).out.count("sched  shop: 2 instances"), 1)
        for query, status, words in (("sched?service=shop&sum=all", 400, "sum=all"), ("sched?sum=only", 400, "sum=only needs a service"),
                                     ("sched?service=shopp&sum=only", 404, "no stream matches")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://{collector.ready['http']}/api/v1/report/{query}", timeout=DEADLINE)
            self.assertEqual(refused.exception.code, status)
            self.assertIn(words, json.loads(refused.exception.read())["error"])
        self.assertIn("--sum needs --service", collector.ask("report", "sched", "--sum", expect=2).err)
        self.assertIn('no service "shopp"; did you mean "shop"?', collector.ask("report", "sched", "--service", "shopp", "--sum", expect=1).err)

    def test_what_is_idle_is_a_key_of_the_collector_and_an_option_for_a_file(self):
        trace = self.trace("g26-gens")
        idle = "chan receive:main.runLong*,!runtime.*"
        collector = Collector(self, f"analysis.idle={idle}")
        collector.send(trace, "report")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "report")))
        fetched = collector.fetch(self.folder / "fetched", "report")
        for kind in ("block", "sync", "net"):
            with self.subTest(kind=kind):
                usual, of_file = (json.loads(self.tracectl("report", kind, fetched, "--json", *more).out)
                                  for more in ((), ("--idle", idle)))
                live = json.loads(collector.ask("report", kind, "--service", "report", "--json").out)
                self.assertEqual(self._figures(live), self._figures(of_file))
                if kind == "block":
                    self.assertNotEqual(of_file["figures"]["idle"], usual["figures"]["idle"])
                    self._expect_metric(collector, of_file["tables"]["by_reason"])
        self.assertEqual(collector.stop(), 0)

    def _expect_metric(self, collector, rows):
        """Expects one counter for each reason; only the report block has them."""
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics", timeout=DEADLINE) as answer:
            text = answer.read().decode()
        self.assertIn("# TYPE trace_block_seconds_total counter\n", text)
        shown = dict(re.findall(r'^trace_block_seconds_total\{service="report",instance="one",reason="(.*)"\} (.*)$', text, re.M))
        self.assertEqual(shown, {row["id"].lstrip("/").replace("/", "."): f"{row['blocked_ns'] // 10**9}.{row['blocked_ns'] % 10**9:09}"
                                 for row in rows})

    def _expect_near(self, one, other, ns):
        """A file ends with a Sync of its own, 1 ns later: so much longer is each goroutine that lives there."""
        if isinstance(one, dict):
            self.assertEqual(one.keys(), other.keys())
            one, other = list(one.values()), list(other.values())
        if isinstance(one, list):
            self.assertEqual(len(one), len(other))
            for a, b in zip(one, other):
                self._expect_near(a, b, ns)
        elif isinstance(one, int):
            self.assertLessEqual(abs(one - other), ns)
        else:
            self.assertEqual(one, other)

    @staticmethod
    def _figures(report):
        """A report without the names of where it came from."""
        return {key: value for key, value in report.items()
                if key not in ("service", "instance", "stream", "file", "source", "ended_wall_ns")}


class Verb(Case):
    """`tracectl report` on files: what it prints, writes, refuses and answers."""

    def test_kinds_that_are_not_there_are_refused_with_those_that_are(self):
        done = self.tracectl("report", "weather", self.trace("g26-labels"), expect=2)
        for kind in ("syscall", "stw", "all"):
            self.assertIn(f"  {kind} ", done.err)
        self.assertEqual(done.out, "")

    def test_what_is_idle_is_taken_where_it_may_mean_something(self):
        trace = self.trace("g26-gens")
        done = self.tracectl("report", "block", trace, "--idle", "main.f,nett:main.f")
        self.assertIn('--idle: "nett" is not in `tracectl tables reasons`', done.err)
        self.assertIn('"ma*n.f" is neither', self.tracectl("report", "block", trace, "--idle", "ma*n.f", expect=2).err)
        self.assertIn("analysis.idle", self.tracectl("report", "block", "--idle", "main.f", expect=2).err)

    def test_rows_differ_by_the_programs_own_line(self):
        text = self.tracectl("report", "block", self.trace("g25-mix"), "--frames", "1", "--table", "by_stack").out
        for place in ("main.runChan.func1  sched.go:37", "main.runChan.func2  sched.go:44"):
            self.assertIn(f"  {place}\n", text.replace("  (in runtime.chansend1)", ""))

    def test_conditions_are_told_by_the_exit_code(self):
        trace = self.trace("g26-gens")
        self.tracectl("report", "all", trace, "--fail-on", "syscall.blocked.count > 4")
        done = self.tracectl("report", "all", trace, "--fail-on", "syscall.blocked.count >= 4", expect=3)
        self.assertIn("syscall.blocked.count >= 4", done.err)
        self.assertNotIn("off by", done.err, "a count is exact")
        done = self.tracectl("report", "syscall", trace, "--fail-on", "syscall.calls.p99 > 1ns", expect=3)
        self.assertRegex(done.err, r"condition met: syscall\.calls\.p99 > 1ns \([0-9.]+ [mu]?s, off by at most 0\.55 %\)\n")
        self.tracectl("report", "stw", trace, "--fail-on", "syscall.blocked.count > 4", expect=2)
        self.tracectl("report", "stw", trace, "--fail-on", "stw.nothing > 4", expect=2)
        done = self.tracectl("report", "all", trace, "--fail-on", "syscall.blockd_now > 4", expect=2)
        self.assertIn("near: syscall.blocked_now", done.err)
        done = self.tracectl("report", "leak", trace, "--fail-on", "leak.suspect > 0", expect=2)
        self.assertIn("near: leak.suspects, leak.suspects.rise", done.err, "a figure and a table have this name; once is enough")

    def test_conditions_have_the_same_verdict_whatever_is_shown(self):
        trace = self.trace("g26-gens")
        row = json.loads(self.tracectl("report", "syscall", trace, "--json", "--top", "0").out)["tables"]["by_stack"]
        most = max(one["calls"]["count"] for one in row)
        self.assertLess(row[0]["calls"]["count"], most, "the first row is not the one that is asked for")
        for top in ("0", "1", "3", "20"):
            with self.subTest(top=top):
                self.tracectl("report", "syscall", trace, "--top", top, "--fail-on", f"syscall.by_stack.calls.count > {most}")
                self.tracectl("report", "syscall", trace, "--top", top,
                              "--fail-on", f"syscall.by_stack.calls.count == {most}", expect=3)

    def test_conditions_see_the_rows_that_are_not_shown(self):
        trace = self.trace("g26-gens")
        whole = json.loads(self.tracectl("report", "syscall", trace, "--json", "--top", "0").out)
        stacks = len(whole["tables"]["by_stack"])
        self.assertGreater(stacks, 3)
        for top in ("0", "1", "3", "20"):
            with self.subTest(top=top):
                limits = ("--top", top, "--fail-on", f"syscall.by_stack >= {stacks}", "--fail-on", "syscall.by_stack < 2")
                done = self.tracectl("report", "all", trace, *limits, expect=3)
                self.assertIn(f"condition met: syscall.by_stack >= {stacks}", done.err)
                self.assertNotIn("syscall.by_stack < 2", done.err)
                self.tracectl("report", "all", trace, "--top", top, "--fail-on", f"syscall.by_stack > {stacks}")

    def test_rows_that_are_cut_are_summed_in_the_last_one(self):
        whole, cut = (json.loads(self.tracectl("report", "syscall", self.trace("g26-gens"), "--json", "--top", top).out)
                      for top in ("0", "3"))
        stacks = cut["tables"]["by_stack"]
        self.assertEqual(["other" in row for row in stacks], [False, False, False, True])
        self.assertEqual(stacks[:3], whole["tables"]["by_stack"][:3])
        self.assertEqual(sum(row["calls"]["total_ns"] for row in stacks), whole["figures"]["calls"]["total_ns"])
        self.assertEqual(cut["rows_total"], whole["rows_total"])

    def test_a_schema_names_all_that_a_report_has(self):
        schemas = [json.loads(line) for line in self.tracectl("report", "all", "--schema", "--json").out.splitlines()]
        reports = [json.loads(line) for line in
                   self.tracectl("report", "all", self.trace("g26-gens"), "--json").out.splitlines()]
        self.assertEqual([schema["name"] for schema in schemas], [report["kind"] for report in reports])
        for schema, report in zip(schemas, reports):
            self.assertEqual([field["name"] for field in schema["figures"]], list(report["figures"]))
            self.assertEqual([field["name"] for field in schema["options"]], list(report["options"]))
            self.assertEqual([table["name"] for table in schema["tables"]], list(report["tables"]))
            for table in schema["tables"]:
                for row in report["tables"][table["name"]]:
                    self.assertEqual([column["name"] for column in table["columns"]],
                                     [name for name in row if name != "other"])
        text = self.tracectl("report", "stw", "--schema").out
        self.assertIn("\ntable by_reason: By reason, most time first\n", text)
        self.tracectl("report", "stw", self.trace("g26-gens"), "--schema", expect=2)

    def test_csv_has_the_figures_of_json(self):
        trace = self.trace("g26-gens")
        out = self.tracectl("report", "syscall", trace, "--csv", "--table", "by_stack", "--top", "5").out
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        whole = json.loads(self.tracectl("report", "syscall", trace, "--json", "--top", "5").out)["tables"]["by_stack"]
        self.assertEqual(len(rows), 6)
        for line, row in zip(rows, whole):
            self.assertEqual(line["other"], "true" if "other" in row else "false")
            for name in ("blocked", "calls"):
                for field, value in row[name].items():
                    self.assertEqual(line[f"{name}_{field}"], "" if value is None else str(value))
            self.assertEqual(line["stack"], "; ".join(f"{frame['function']} {frame['file']}:{frame['line']}"
                                                      for frame in row["stack"] or []))
        self.tracectl("report", "all", trace, "--csv", expect=2)
        self.tracectl("report", "syscall", trace, "--csv", "--json", expect=2)
        done = self.tracectl("report", "syscall", trace, "--table", "by_stak", expect=2)
        self.assertIn("did you mean by_stack?", done.err)

    def test_one_table_alone(self):
        trace = self.trace("g26-gens")
        text = self.tracectl("report", "stw", trace, "--table", "by_reason").out
        self.assertIn("By reason: ", text)
        self.assertNotIn("Goroutines that stopped the world", text)
        lines = self.tracectl("report", "all", trace, "--table", "by_goroutine", "--json").out.splitlines()
        self.assertEqual([(report["kind"], list(report["tables"])) for report in map(json.loads, lines)], [("stw", ["by_goroutine"])])

    def test_it_is_the_same_each_time(self):
        """The order of rows with equal figures is the same, too: types of tasks that have not ended."""
        trace = self.trace("g26-gens")
        second = [json.loads(line) for line in self.tracectl("index", "--json", trace).out.splitlines()][1]
        few = self.folder / "few"
        few.write_bytes(trace.read_bytes()[:second["offset"]])
        said = {self.tracectl("report", "all", few, "--json", "--top", "0").out for _ in range(10)}
        self.assertEqual(len(said), 1)
        self.assertGreater(sum(row["open"] for line in said.pop().splitlines() for report in [json.loads(line)] if report["kind"] == "tasks"
                               for row in report["tables"]["by_type"]), 1)

    def test_tables_that_cost_much_are_in_a_report_of_gc_alone(self):
        trace, tables = self.trace("g26-gens"), ("mmu_with_sweep", "mmu_per_proc")
        alone = json.loads(self.tracectl("report", "gc", trace, "--json").out)
        every = [json.loads(line) for line in self.tracectl("report", "all", trace, "--json").out.splitlines()]
        within = next(report for report in every if report["kind"] == "gc")
        for table in tables:
            self.assertEqual(len(alone["tables"].pop(table)), 10)
            self.assertEqual(within["tables"].pop(table), [])
        self.assertEqual(alone["tables"], within["tables"])
        self.assertEqual(alone["figures"], within["figures"])
        self.assertEqual(alone["notes"], [])
        self.assertIn("report gc FILE", within["notes"][0])
        for table in tables:  # whoever names them gets them from every kind, too
            self.assertEqual(*(self.tracectl("report", kind, trace, "--csv", "--table", table).out for kind in ("gc", "all")))
            self.tracectl("report", "all", trace, "--fail-on", f"gc.{table} > 9", expect=3)

    def test_a_broken_trace_is_reported_up_to_its_fault(self):
        cut = self.folder / "cut.trace"
        cut.write_bytes(self.trace("g26-gens").read_bytes()[:100_000])
        done = self.tracectl("report", "stw", cut, "--json", expect=1)
        self.assertEqual(json.loads(done.out)["broken_generations"], 1)
        self.assertIn("generation", done.err)
        nothing = self.folder / "nothing"
        nothing.write_bytes(b"hello")
        self.assertEqual(self.tracectl("report", "stw", nothing, expect=1).out, "")

    def test_an_empty_profile_is_written_too(self):
        profile = self.folder / "empty.pb.gz"
        for kind in ("syscall", "sched"):
            self.tracectl("report", kind, self.trace("g26-blobs"), "--pprof", profile)
            self.assertIn(b"contentions", gzip.decompress(profile.read_bytes()))
            profile.unlink()
        self.tracectl("report", "stw", self.trace("g26-iter"), "--pprof", profile, expect=2)

    def test_pprof_shows_the_measure_that_was_asked_for(self):
        """Not the last one, which is pprof's own choice: of block, the idle time."""
        pprof = subprocess.run([SOURCE / "tools/go-tool.sh", "pprof"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
        if not pprof:
            self.skipTest("there is no Go here")
        profile = self.folder / "shown.pb.gz"
        for kind, table, shown in (("block", None, "blocked_total"), ("syscall", "by_stack", "blocked_total"), ("leak", None, "count"),
                                   ("sync", None, "delay"), ("cpu", None, "samples")):
            self.tracectl("report", kind, self.trace("g26-gens"), "--pprof", profile, *(("--table", table) if table else ()))
            said = subprocess.run([pprof, "-top", profile], capture_output=True, text=True, check=True, timeout=60).stdout
            self.assertIn(f"Type: {shown}\n", said, kind)
            profile.unlink()

    def test_a_wrong_kind_is_answered_with_the_right_one(self):
        trace = self.trace("g26-iter")
        for said, *args in (('no report and no file "sycall"; did you mean "syscall"?', "sycall", trace), ('did you mean "syscall"?', "sycall"), ('did you mean "goroutines"?', "goroutine", trace),
                            ('did you mean "leak"?', "leaks"), (f"tracectl report syscall {trace}", trace, "syscall"),
                            ("Each of them", "weather"), ("--csv needs a KIND, or all, before FILE", "--csv", trace), ("one FILE at a time", trace, trace),
                            ("FILE cannot be combined", trace, "--service", "shop")):
            with self.subTest(args=args):
                self.assertIn(said, self.tracectl("report", *args, expect=2).err)

    def test_without_a_kind_what_stands_out_is_told_in_fifteen_lines(self):
        """Each command that is offered shows more of it. `report all` begins with the same lines."""
        for trace in map(self.trace, ("g26-gens", "g26-cgo", "g26-annot", "g22-mix", "g23-alloc")):
            with self.subTest(trace=trace):
                lines = self.tracectl("report", trace).out.splitlines()
                self.assertTrue(2 <= len(lines) <= 15, lines)
                self.assertRegex(lines[0], r"^\S+: [\d.]+ \S+, \d+ generations?, [\d,]+ events$")
                self.assertRegex(lines[1], r"^1\. [A-Z]|^Nothing stands out: ")
                self.assertEqual(self.tracectl("report", "all", trace).out.splitlines()[:len(lines) + 1], [*lines, ""])
                sentences = [json.loads(line) for line in self.tracectl("report", trace, "--json").out.splitlines()]
                self.assertEqual(sorted((s["weight"] for s in sentences), reverse=True), [s["weight"] for s in sentences])
                for sentence in sentences:
                    self.assertEqual(sentence["kind"] == "nothing", sentence["more"] == "")
                    if sentence["more"]:
                        self.assertNotEqual(self.tracectl(*shlex.split(sentence["more"])[1:]).out, "")
        piped = self.tracectl("report", "-", given=trace.read_bytes())
        self.assertNotIn("tracectl", piped.out, "it cannot be read again")

    def test_where_nothing_stands_out_it_is_said_how_busy_the_program_was_and_short_waits_to_run_are_not(self):
        for name, how in (("g26-annot", "idle"), ("g26-iter", "busy")):
            with self.subTest(trace=name):
                trace = self.trace(name)
                sentences = {s["kind"]: s["text"] for s in map(json.loads, self.tracectl("report", trace, "--json").out.splitlines())}
                self.assertIn("nothing", sentences)
                self.assertNotIn("latency", sentences)
                said = re.fullmatch(rf"The program was {how} for ([\d.]+) % of the time; of its goroutines those of main\.\S+ ran most", sentences["busy"])
                rows = json.loads(self.tracectl("report", "procs", trace, "--json").out)["tables"]["by_busy"]
                self.assertAlmostEqual(float(said[1]), 100 * sum(row["time_share"] for row in rows if (row["busy"] == 0) == (how == "idle")), delta=0.6)

    def test_lines_fit_a_page_and_carry_no_control_characters(self):
        lines = self.tracectl("report", "all", self.trace("g26-cgo")).out.splitlines()
        self.assertGreater(len(lines), 50)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertTrue(all(line.isprintable() for line in lines))
