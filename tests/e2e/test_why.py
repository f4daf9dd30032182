# SPDX-License-Identifier: Apache-2.0
"""`tracectl why`: the critical path of a task, a region or a wait, against the spans that `tracectl query` has of it."""
import json
import subprocess

from harness import TRACECTL, Case, Collector, wait_until


class Why(Case):
    def why(self, trace, *args):
        return json.loads(self.tracectl("why", "--json", trace, *args).out)

    def one(self, trace, sql):
        return json.loads(self.tracectl("query", "--json", trace, sql).out.splitlines()[0])

    def check_sums(self, answer):
        """The pieces tile the interval, and every table adds up to it."""
        figures, tables = answer["figures"], answer["tables"]
        at = figures["from_ns"]
        for piece in tables["path"]:
            self.assertEqual(piece["from_ns"], at)
            at = piece["until_ns"]
        self.assertEqual(at, figures["until_ns"])
        total = figures["until_ns"] - figures["from_ns"]
        self.assertEqual(total, figures["total_ns"])
        self.assertEqual(sum(row["total_ns"] for row in tables["path"]), total)
        self.assertEqual(sum(row["total_ns"] for row in tables["parts"]), total)
        self.assertEqual(sum(row["total_ns"] for row in tables["behind"]), figures["behind_ns"])

    def test_a_task_is_explained_to_the_nanosecond(self):
        trace = self.trace("g26-gens")
        task = self.one(trace, "SELECT from_ns, until_ns FROM tasks WHERE task=1")
        answer = self.why(trace, "--task", "1", "--top", "0")
        self.assertEqual(answer["kind"], "why")
        self.assertEqual((answer["figures"]["subject"], answer["figures"]["from_ns"], answer["figures"]["until_ns"]),
                         ("task 1 (whole run)", task["from_ns"], task["until_ns"]))
        self.check_sums(answer)
        self.assertEqual({row["goroutine"] for row in answer["tables"]["behind"]}, {7, 8, 9})
        text = self.tracectl("why", trace, "--task", "1", "--top", "2").out
        self.assertRegex(text, r"^task 1 \(whole run\) took 1\.00 s: 852 us its own CPU, 84\.2 ms waiting for a P \(\d+\.\d runnable, 2 Ps\), ")
        self.assertIn("15.2 us behind goroutine 7 main.runLong.func2 (", text)
        self.assertIn("and 165 more, ", text)

    def test_the_slowest_of_a_type_is_found(self):
        trace = self.trace("g26-annot")
        longest = self.one(trace, "SELECT from_ns, until_ns, until_ns-from_ns AS ns FROM tasks WHERE type='tail' AND until_ns ORDER BY 3 DESC")
        answer = self.why(trace, "--slow", "tail", "--top", "0")
        self.assertEqual((answer["figures"]["from_ns"], answer["figures"]["until_ns"]), (longest["from_ns"], longest["until_ns"]))
        self.check_sums(answer)

    def test_a_wait_is_the_time_of_its_waker(self):
        trace = self.trace("g26-gens")
        wait = self.one(trace, "SELECT s.subject, s.from_ns, s.until_ns, w.id AS waker FROM spans s JOIN goroutines w ON w.life=s.by_life "
                               "WHERE s.kind='goroutine' AND s.state='waiting' AND s.from_known AND s.until_known ORDER BY s.until_ns-s.from_ns DESC")
        answer = self.why(trace, "--goroutine", wait["subject"], "--at", (wait["from_ns"] + wait["until_ns"]) // 2, "--top", "0")
        self.assertEqual((answer["figures"]["from_ns"], answer["figures"]["until_ns"]), (wait["from_ns"], wait["until_ns"]))
        self.assertEqual(answer["tables"]["path"][-1]["goroutine"], wait["waker"])
        self.assertEqual(answer["tables"]["path"][-1]["state"], "Running")
        self.check_sums(answer)

    def test_related_goroutines_are_those_that_ended_its_waits_and_theirs(self):
        trace = self.trace("g26-gens")
        answer = self.why(trace, "--task", "1", "--top", "0")
        begin, end = answer["figures"]["from_ns"], answer["figures"]["until_ns"]
        rows = self.tracectl("query", "--json", trace, "SELECT life, by_life, from_ns, until_ns FROM spans WHERE kind='goroutine' AND state='waiting' "
                             f"AND until_known AND by_life AND until_ns <= {end} AND until_ns > {begin}").out.splitlines()
        waits = {}
        for row in map(json.loads, rows):
            waits.setdefault(row["life"], []).append((row["by_life"], row["until_ns"] - max(row["from_ns"], begin)))
        subject = answer["tables"]["path"][-1]["life"]
        want, known, lives = {}, {subject}, [subject]
        for depth in (1, 2):
            for life in lives:
                for by, length in waits.get(life, []):
                    if by not in known:
                        wakes, time = want.get(by, (depth, 0, 0))[1:]
                        want[by] = (depth, wakes + 1, time + length)
            lives = [life for life, (at, _, _) in want.items() if at == depth]
            known.update(lives)
        self.assertEqual({row["life"]: (row["depth"], row["wakes"], row["waited_ns"]) for row in answer["tables"]["related"]}, want)
        self.assertGreater(len(want), 2)
        self.assertIn("WAITS ENDED", self.tracectl("why", trace, "--task", "1").out)

    def test_it_describes_itself(self):
        schema = json.loads(self.tracectl("why", "--schema", "--json").out)
        answer = self.why(self.trace("g26-gens"), "--task", "1")
        self.assertEqual([field["name"] for field in schema["figures"]], list(answer["figures"]))
        self.assertEqual([table["name"] for table in schema["tables"]], list(answer["tables"]))
        for table in schema["tables"]:
            self.assertEqual([field["name"] for field in table["columns"]], list(answer["tables"][table["name"]][0]), table["name"])
        self.assertIn("table related: ", self.tracectl("why", "--schema").out)
        self.tracectl("why", "--schema", "--task", "1", expect=2)

    def test_what_is_not_there_is_said_with_what_is(self):
        annot, gens, none = self.trace("g26-annot"), self.trace("g26-gens"), self.trace("g23-alloc")
        for trace, args, code, words in (
                (annot, ("--task", "99999"), 1, "no task 99999; the nearest is 726"),
                (annot, ("--slow", "tial"), 1, 'no complete task or region "tial"; did you mean tail?'),
                (annot, ("--slow", "completely different"), 1, "; the trace has child goroutine, inner, "),
                (none, ("--task", "1"), 1, "the trace has no tasks: a Go program makes them with trace.NewTask()"),
                (none, ("--slow", "x"), 1, "the trace has no tasks: "),
                (gens, ("--goroutine", "1", "--at", "5"), 1, "the time is outside of the trace, which covers 2276455027456 to 2277459082561"),
                (gens, ("--goroutine", "99999", "--at", "2276455027457"), 1, "the trace has no goroutine 99999"),
                (gens, ("--goroutine", "1"), 2, "of what? One of --slow TYPE, --task ID, --goroutine N --at T"),
                (gens, ("--task", "1", "--slow", "x"), 2, "of what? One of"),
                (gens, ("--task", "x"), 2, "--task needs the number of a task, not 'x'"),
                (gens, ("--goroutine", "1", "--at", "soon"), 2, "--at needs a time"),
                (gens, ("--task", "1", "--csv"), 2, "no option --csv")):
            done = self.tracectl("why", trace, *args, expect=code)
            self.assertIn(words, done.err, args)
            self.assertEqual(done.out, "", args)
        self.assertIn("no option --task", self.tracectl("report", "stw", gens, "--task", "1", expect=2).err)
        self.assertIn("one FILE is needed", self.tracectl("why", "-", "--task", "1", expect=2).err)

    def test_it_is_a_kind_of_report_too(self):
        trace = self.trace("g26-annot")
        of_verb = self.tracectl("why", trace, "--task", "1", "--json").out
        self.assertEqual(self.tracectl("report", "why", trace, "--task", "1", "--json").out, of_verb)
        self.assertEqual(self.tracectl("report", "--json", "why", trace, "--task", "1").out, of_verb)

    def test_a_collectors_stream_is_explained_as_its_file_is(self):
        trace = self.trace("g26-gens")
        collector = Collector(self)
        collector.send(trace, "shop", "one")
        of_file = self.why(trace, "--task", "1", "--top", "0")
        asked = ("why", "--service", "shop", "--window", "all", "--task", "1")
        wait_until("all is acked", lambda: sum(s["last_gen"] - s["first_gen"] + 1 for s in collector.json_lines("list")) == 26)
        self.assertEqual(json.loads(collector.ask(*asked, "--json", "--top", "0").out), of_file)
        self.assertIn("no task 99999", collector.ask(*asked[:-1], "99999", expect=1).err)
        self.assertIn("shop/one/", collector.ask(*asked[:-1], "99999", expect=1).err)
        collector.send(trace, "shop", "two")
        wait_until("the other is there", lambda: len({s["stream"] for s in collector.json_lines("list")}) == 2)
        taken = collector.ask(*asked, "--json", "--top", "0")
        self.assertEqual(json.loads(taken.out), of_file)
        self.assertRegex(taken.err, r"2 streams match, this is the newest, none is live: shop/two, --stream [0-9a-f]{8}; others have something of that time:\n  tracectl why .* --stream [0-9a-f]{8}  # shop/one, closed, until ")
        self.assertIn('no service "shpo"; did you mean "shop"?', collector.ask("why", "--service", "shpo", "--task", "1", expect=1).err)

    def test_of_a_services_instances_the_slowest_is_explained(self):
        annot, gens, collector = self.trace("g26-annot"), self.trace("g26-gens"), Collector(self)
        collector.send(annot, "shop", "ended")
        self.live = [self.send_and_stay(collector, trace, "shop", instance) for trace, instance in ((annot, "a"), (gens, "b"))]
        wait_until("all is analysed", lambda: {r["instance"] for r in collector.json_lines("report", "tasks", "--service", "shop") if not r.get("instances")
                                               and r["tables"]["by_type"]} == {"ended", "a", "b"})
        streams = {s["instance"]: s["stream"] for s in collector.json_lines("status") if "stream" in s}
        for slow, instance, trace in (("tail", "a", annot), ("sleeper", "b", gens)):
            asked = ("why", "--service", "shop", "--window", "all", "--slow", slow)
            of_file = self.why(trace, "--slow", slow, "--top", "0")
            done = collector.ask(*asked, "--json", "--top", "0")
            self.assertIn(f"the slowest {slow} of 3 streams took ", done.err)
            self.assertIn(f": shop/{instance}, --stream {streams[instance][:8]}", done.err)
            self.assertEqual(json.loads(done.out)["figures"], of_file["figures"])
            answer = json.loads(collector.get(f"/api/v1/why?service=shop&window=all&slow={slow}"))
            self.assertEqual((answer["stream"], answer["figures"]), (streams[instance], of_file["figures"]))
        self.assertIn('no complete task or region "tial" then, in 3 streams; did you mean tail?',
                      collector.ask("why", "--service", "shop", "--window", "all", "--slow", "tial", expect=1).err)
        of_ended = collector.ask("why", "--service", "shop", "--instance", "ended", "--window", "all", "--slow", "tail")
        self.assertNotIn("slowest", of_ended.err)
        for query, words in (("service=shop&task=1", "a service comes with slow"), ("slow=tail", "stream or service is required"),
                             ("service=nope&slow=tail", "no complete task or region")):
            with self.assertRaisesRegex(AssertionError, words):
                collector.get(f"/api/v1/why?{query}")

    def send_and_stay(self, collector, trace, service, instance):
        """Sends the trace on a connection that stays."""
        sender = self.spawn(instance, TRACECTL, "send", "-", "--to", collector.to, "--certs", self.certs, "--service", service, "--instance", instance,
                            "--no-progress", stdin=subprocess.PIPE)
        sender.stdin.write(trace.read_bytes())
        sender.stdin.flush()
        self.addCleanup(sender.stdin.close)
        return sender
