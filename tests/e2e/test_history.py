# SPDX-License-Identifier: Apache-2.0
"""Reports that a collector keeps: their content, and that they outlast the traces."""
import collections
import json
import urllib.error
import urllib.request

from harness import Case, Collector, suites, wait_until

EVERY_NS = 100_000_000
ROWS = 16  # of a table in a kept report
OPEN_TOO = {("goroutines", "by_entry"), ("goroutines", "by_entry_reason")}  # with what is open, in the window "all" alone


class History(Case):
    def keeping(self, *settings, **options):
        return Collector(self, "reports.every=100ms", "reports.age=0", "retention.every=100ms", *settings, **options)

    def history(self, collector, kind, *args):
        return [json.loads(line) for line in collector.ask("history", kind, *args, "--json").out.splitlines()]

    def get(self, collector, path):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/api/v1/{path}") as answer:
            return [json.loads(line) for line in answer.read().splitlines()]

    def kept(self, collector, service, instances=1):
        """A sched report a stretch, when the one of each stream's end is there, too."""
        found = []

        def is_whole():
            done = collector.ask("history", "sched", "--service", service, "--json", expect=None)
            found[:] = map(json.loads, done.out.splitlines())
            return len({report["instance"] for report in found if report["last_gen"] == 26}) == instances
        wait_until(f"the reports of {service} are kept", is_whole)
        return found

    @suites("release")
    def test_they_say_what_reports_say_at_their_time(self):
        collector = self.keeping()
        collector.send(self.trace("g26-gens"), "shop")
        stretches = self.kept(collector, "shop")
        self.assertGreater(len(stretches), 4)
        ends = [report["until_wall_ns"] for report in stretches]
        for before, after in zip(ends, ends[1:-1]):  # the last is that of the stream's end
            self.assertGreaterEqual(after - before, EVERY_NS)
        kept = self.history(collector, "all", "--service", "shop")
        self.assertEqual(len(kept) % len(stretches), 0)
        for report in kept:
            self.assertEqual((report["service"], report["instance"], report["window"]), ("shop", "one", "stretch"))
            for rows in report["tables"].values():
                self.assertLessEqual(len([row for row in rows if not row.get("other")]), ROWS)
        part = self.folder / "part.trace"
        schemas = self.schemas(collector)
        for i in (0, 2, len(stretches) - 1):
            end = stretches[i]
            collector.ask("fetch", "--service", "shop", "--gen", f"1..{end['last_gen']}", "-o", part, "--no-progress")
            lines = self.tracectl("report", "all", part, "--json", "--top", "0").out.splitlines()
            of_file = {report["kind"]: report for report in map(json.loads, lines)}
            at = f"@{end['until_wall_ns'] // 10**9}.{end['until_wall_ns'] % 10**9:09d}"
            sums = {report["kind"]: report for report in self.past(collector, "all", "--service", "shop", "--until", at)}
            self.assertEqual(set(sums), set(of_file))
            for kind, want in of_file.items():
                if kind == "gc":  # the mutator's share is made of files alone
                    want["figures"].pop("mutator_10ms_share")
                with self.subTest(kind=kind, until=i):
                    self.same_figures(schemas[kind], want, sums[kind], len(stretches))

    def schemas(self, collector):
        """The schemas of all kinds; figures and tables by name."""
        schemas = json.loads(collector.get("/api/v1/reports"))["reports"]
        return {s["name"]: {part: {f["name"]: f for f in s[part]} for part in ("figures", "tables")} for s in schemas}

    def past(self, collector, kind, *args):
        """The sums of kept reports."""
        return collector.json_lines("report", kind, *args, "--since", "@1", "--top", "0")

    @suites("release", "asan")
    def test_their_sum_is_the_report_of_all_events(self):
        """Each stretch begins where the last one ended, so the sum has what one report of the whole stream has."""
        collector = self.keeping("reports.bytes=0")
        for instance in ("one", "two"):
            collector.send(self.trace("g26-gens"), "shop", instance)
        stretches = self.kept(collector, "shop", 2)
        self.assertGreater(len(stretches), 8)
        self.assertEqual({r["window"] for r in stretches}, {"stretch"})
        of_one = [r for r in stretches if r["instance"] == "one"]
        for before, after in zip(of_one, of_one[1:]):
            self.assertEqual(after["from_ns"], before["until_ns"] + 1)
        self.assertTrue(of_one[-1]["ended_wall_ns"] > 0 and not any(r["ended_wall_ns"] for r in of_one[:-1]))
        whole = {r["kind"]: r for r in collector.json_lines("report", "all", "--service", "shop", "--instance", "one", "--top", "0")}
        parts = {r["kind"]: r for r in self.past(collector, "all", "--service", "shop", "--instance", "one")}
        self.assertEqual(set(parts), set(whole))
        schemas = self.schemas(collector)
        for kind, want in whole.items():
            with self.subTest(kind=kind):
                self.same_figures(schemas[kind], want, parts[kind], len(of_one))
        sums = {r["kind"]: r for r in self.past(collector, "all", "--service", "shop", "--sum")}
        live = {r["kind"]: r for r in collector.json_lines("report", "all", "--service", "shop", "--sum", "--top", "0")}
        for kind, want in live.items():
            with self.subTest(kind=kind, of="both"):
                self.assertEqual(sums[kind]["instances"], 2)
                self.same_figures(schemas[kind], want, sums[kind], len(of_one))

    def same_figures(self, schema, want, have, stretches):
        """Counts, sums, extremes and buckets are the same; means by time are rounded."""
        self.assertEqual(have["events"], want["events"])
        for end in ("from_wall_ns", "until_wall_ns"):  # each generation has its own clock
            self.assertLess(abs(have[end] - want[end]), 10**6)
        time_ns = want["time_ns"] or want["until_ns"] - want["from_ns"]
        self.assertLessEqual(abs(time_ns - (have["time_ns"] or have["until_ns"] - have["from_ns"])), 2 * stretches)
        for name, value in want["figures"].items():
            field = schema["figures"][name]
            over_time = field.get("over_time", "sum")
            if over_time == "none" or (field["type"] == "share" and not field.get("of_time")):
                self.assertIn(have["figures"][name], (None, value), name)  # a single stretch is its own sum
            elif over_time == "mean" and value is not None:
                self.assertLessEqual(abs(have["figures"][name] - value), 1 + value / 100, name)
            elif field["type"] == "share" and value is not None:
                self.assertAlmostEqual(have["figures"][name], value, 6, name)
            else:
                self.assertEqual(have["figures"][name], value, name)
        for table, rows in want["tables"].items():
            if not schema["tables"][table]["list"] and (want["kind"], table) not in OPEN_TOO:
                self.assertEqual(self.all_rows(schema["tables"][table], have["tables"][table]), self.all_rows(schema["tables"][table], rows), table)

    @staticmethod
    def all_rows(table, rows):
        """All rows together, the one of those left out included: counts and sums by column."""
        totals = collections.Counter()
        for row in rows:
            for column in table["columns"][table["keys"]:]:
                value = row[column["name"]]
                if column["type"] == "distribution" and value is not None:
                    totals.update({(column["name"], part): value[part] for part in ("count", "total_ns", "lower_bounds")})
                elif column["type"] in ("count", "ns", "bytes") and column.get("over_time", "sum") in ("sum", "last") and not column.get("greatest") and value is not None:
                    totals[column["name"]] += value
        return +totals

    @suites("release", "asan")
    def test_they_stay_when_the_traces_have_gone(self):
        collector = self.keeping()
        collector.send(self.trace("g26-gens"), "shop")
        stretches = self.kept(collector, "shop")
        collector.settings += ["retention.age=1ms"]
        self.assertEqual(collector.stop(), 0)
        collector.start()
        wait_until("retention has taken all",
                   lambda: [row.get("expired") for row in collector.json_lines("list", "--service", "shop")] == [True])
        collector.restart()
        self.assertEqual(self.history(collector, "sched", "--service", "shop"), stretches)
        text = collector.ask("history", "sched", "--service", "shop").out.splitlines()
        self.assertRegex(text[0], r"^TIME +STREAM +latency\.count +latency\.p99 +latency\.max +waiting +wasted_share")
        self.assertEqual(len(text), 1 + len(stretches))
        self.assertRegex(text[1], r"^\S+Z +shop/one +[\d,]+ ")
        collector.ask("verify")

    @suites("release")
    def test_a_sample_of_the_traces_stays_too(self):
        collector = self.keeping("retention.sample_every=1s")
        collector.send(self.trace("g26-gens"), "shop")  # a second begins in it
        part = collector.fetch(self.folder / "part.trace", "shop", "one", "--gen", "24..26")
        collector.send(part, "till")
        for service in ("shop", "till"):
            wait_until("it is archived", lambda s=service: [row.get("open", False) for row in collector.json_lines("list", "--service", s)] == [False])
            self.kept(collector, service)
        rows = {row["service"]: row for row in collector.json_lines("list")}
        crosses = {name: row["first_wall_ns"] // 10**9 != row["last_wall_ns"] // 10**9 for name, row in rows.items()}
        self.assertEqual(crosses, {"shop": True, "till": False})
        collector.settings += ["retention.age=1ms"]
        self.assertEqual(collector.stop(), 0)
        collector.start()

        def expired(service):
            return [row.get("expired", False) for row in collector.json_lines("list", "--service", service)]
        wait_until("retention has taken what is no sample", lambda: expired("till") == [True])
        self.assertEqual(expired("shop"), [False])
        self.assertGreater(len(self.history(collector, "sched", "--service", "till")), 0)
        collector.settings += ["retention.kept_age=1ms"]
        self.assertEqual(collector.stop(), 0)
        collector.start()
        wait_until("the sample is too old, too", lambda: expired("shop") == [True])

    def test_they_are_chosen_by_stream_and_time_and_come_in_pieces(self):
        collector = self.keeping()
        for instance in ("one", "two", "three"):
            collector.send(self.trace("g26-gens"), "shop", instance)
        collector.send(self.trace("g26-gens"), "till")
        self.kept(collector, "shop", 3)
        self.kept(collector, "till")
        shop = self.history(collector, "sched", "--service", "shop")
        two = self.history(collector, "sched", "--service", "shop", "--instance", "two")
        self.assertEqual(two, [report for report in shop if report["instance"] == "two"])
        self.assertEqual(self.history(collector, "sched", "--stream", two[0]["stream"]), two)
        third = two[2]
        at = f"@{third['until_wall_ns'] // 10**9}.{third['until_wall_ns'] % 10**9:09d}"
        late = self.history(collector, "sched", "--service", "shop", "--instance", "two", "--since", at)
        self.assertEqual(late, two[2:])  # a stretch of 10 s reaches into what came before
        self.assertEqual(self.get(collector, f"history/sched?service=shop&instance=two&since={at}&top=0"), late + [{"more": False, "damaged": 0}])
        summed = self.get(collector, "history/sched?service=shop&sum=1&top=0")
        self.assertEqual(summed[-1], {"more": False, "damaged": 0})
        of_all, *of_each = self.past(collector, "sched", "--service", "shop")
        self.assertEqual(sorted(r["instance"] for r in of_each), ["one", "three", "two"])
        self.assertEqual(summed[0], of_all)
        self.assertEqual({r["stream"]: r for r in summed[1:-1]}, {r["stream"]: r for r in of_each})
        self.assertEqual((of_all["instances"], of_all["figures"]["latency"]["count"]), (3, sum(r["figures"]["latency"]["count"] for r in shop)))
        titles = [line.split("  (")[0] for line in collector.ask("report", "sched", "--service", "shop", "--since", "@1", "--each").out.splitlines() if line.startswith("sched  ")]
        self.assertEqual((titles[0], len(titles)), ("sched  shop: 3 instances", 4))
        figures = self.get(collector, "history/sched?service=shop&figures=1")
        self.assertEqual([r["figures"] for r in figures[:-1]], [r["figures"] for r in shop])
        self.assertTrue(all(r["tables"] == {} for r in figures[:-1]))
        # All that there is, a piece at a time.
        everything, place = [], ""
        pieces = 0
        while place is not None:
            *reports, end = self.get(collector, f"history/all?top=0{place}")
            everything += reports
            place = f"&after={end['after']}&after_ns={end['after_ns']}" if end["more"] else None
            pieces += 1
        self.assertGreater(pieces, 1)
        self.assertEqual(everything, self.history(collector, "all"))
        self.assertEqual(len({json.dumps(r, sort_keys=True) for r in everything}), len(everything))

    @suites("release", "asan")
    def test_bad_questions_and_damage(self):
        collector = self.keeping()
        self.assertIn("no report is archived for that", collector.ask("history", "sched", expect=1).err)
        self.assertIn("no report is kept of that time, and none of another: ", collector.ask("report", "sched", "--since", "-1h", expect=1).err)
        collector.send(self.trace("g26-gens"), "shop")
        stretches = self.kept(collector, "shop")
        self.assertIn('no service "shopp"; did you mean "shop"?', collector.ask("history", "sched", "--service", "shopp", expect=1).err)
        self.assertIn("'shced' is not a kind of report", collector.ask("history", "shced", expect=2).err)
        self.assertIn("all kinds together need --json", collector.ask("history", "all", expect=2).err)
        self.assertIn("one KIND of report is required", collector.ask("history", expect=2).err)
        past = ("report", "sched", "--service", "shop", "--since")
        self.assertIn("--since is after --until", collector.ask(*past, "@9", "--until", "@1", expect=2).err)
        self.assertIn("cannot be combined with --watch or --window", collector.ask(*past, "@1", "--window", "10s", expect=2).err)
        self.assertIn("FILE cannot be combined", self.tracectl("report", "sched", self.trace("g26-gens"), "--since", "@1", expect=2).err)
        self.assertIn("no option --since", self.tracectl("report", "why", "--since", "@1", "--task", "1", expect=2).err)
        self.assertRegex(collector.ask(*past, "@1", "--until", "@2", expect=1).err, r"no report is kept of that time; there are some of 2026-11-21T09:30:5\S+Z to 2026-11-21T09:30:53\S+Z\n")
        self.assertIn('no service "shopp"; did you mean "shop"?', collector.ask("report", "sched", "--service", "shopp", "--since", "@1", expect=1).err)
        for query, words in (("history/sched?since=@9&until=@1", "since is after until"), ("history/sched?sum=2", "sum"), ("history/shced", 'no report "shced"; there are'), ("history/sched?stream=1", "stream=1 is not an id of 32"),
                             ("history/sched?after=zz", "after=zz is not an id of 32"), ("history/sched?figures=2", "figures"),
                             ("history/sched?window=10s", "window")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(collector, query)
            self.assertIn(words, json.loads(refused.exception.read())["error"], query)
        files = list((collector.state / "reports").rglob("*.reports"))
        self.assertEqual(len(files), 1)
        damaged = bytearray(files[0].read_bytes())
        damaged[-20] ^= 0xff  # in the newest
        files[0].write_bytes(damaged)
        done = collector.ask("history", "sched", "--service", "shop", "--json")
        self.assertEqual([json.loads(line) for line in done.out.splitlines()], stretches[:-1])
        self.assertIn("1 stretch left out, whose records are damaged", done.err)
        done = collector.ask(*past, "@1", "--json", "--sum")  # its stream has ended, and is the only one
        of_rest = json.loads(done.out)
        self.assertIn("1 stretch left out, whose records are damaged", done.err)
        self.assertEqual((of_rest["instance"], of_rest["last_gen"]), ("one", stretches[-2]["last_gen"]))
        self.assertEqual(of_rest["figures"]["latency"]["count"], sum(r["figures"]["latency"]["count"] for r in stretches[:-1]))

    @suites("release")
    def test_none_are_kept_where_the_key_says_so(self):
        collector = Collector(self, "reports.every=0")
        collector.send(self.trace("g26-gens"), "shop")
        self.assertIn("no report is archived for that", collector.ask("history", "sched", expect=1).err)
        self.assertEqual(list((collector.state / "reports").rglob("*.reports")), [])
        self.assertEqual(collector.stop(), 0)
        self.assertEqual(list((collector.state / "reports").rglob("*.reports")), [])
