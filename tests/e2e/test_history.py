# SPDX-License-Identifier: Apache-2.0
"""Reports that a collector keeps: their content, and that they outlast the traces."""
import json
import urllib.error
import urllib.request

from harness import Case, Collector, suites, wait_until

EVERY_NS = 100_000_000
ROWS = 16  # of a table in a kept report


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
        part = self.folder / "part.trace"
        for stretch in (stretches[2], stretches[-1]):
            collector.ask("fetch", "--service", "shop", "--gen", f"1..{stretch['last_gen']}", "-o", part, "--no-progress")
            lines = self.tracectl("report", "all", part, "--window", "10s", "--json", "--top", "0").out.splitlines()
            of_file = {report["kind"]: report for report in map(json.loads, lines)}
            here = [report for report in kept if report["last_gen"] == stretch["last_gen"]]
            self.assertEqual({report["kind"] for report in here}, set(of_file))
            for report in here:
                want = of_file[report["kind"]]
                self.assertEqual((report["service"], report["instance"], report["window"]), ("shop", "one", "10s"))
                if report["kind"] == "gc":  # the mutator's share is made of files alone
                    want["figures"].pop("mutator_10ms_share"), report["figures"].pop("mutator_10ms_share")
                self.assertEqual(report["figures"], want["figures"], report["kind"])
                for name, rows in report["tables"].items():
                    self.assertLessEqual(len([row for row in rows if not row.get("other")]), ROWS)

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
        collector.send(self.trace("g26-gens"), "shop")
        stretches = self.kept(collector, "shop")
        self.assertIn('no service "shopp"; did you mean "shop"?', collector.ask("history", "sched", "--service", "shopp", expect=1).err)
        self.assertIn("'shced' is not a kind of report", collector.ask("history", "shced", expect=2).err)
        self.assertIn("all kinds together need --json", collector.ask("history", "all", expect=2).err)
        self.assertIn("one KIND of report is required", collector.ask("history", expect=2).err)
        for query, words in (("history/shced", 'no report "shced"; there are'), ("history/sched?stream=1", "stream=1 is not an id of 32"),
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

    @suites("release")
    def test_none_are_kept_where_the_key_says_so(self):
        collector = Collector(self, "reports.every=0")
        collector.send(self.trace("g26-gens"), "shop")
        self.assertIn("no report is archived for that", collector.ask("history", "sched", expect=1).err)
        self.assertEqual(list((collector.state / "reports").rglob("*.reports")), [])
        self.assertEqual(collector.stop(), 0)
        self.assertEqual(list((collector.state / "reports").rglob("*.reports")), [])
