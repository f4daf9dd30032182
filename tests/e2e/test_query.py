# SPDX-License-Identifier: Apache-2.0
"""`tracectl query`: a trace as tables, against what `tracectl cat -d json` prints of the same trace."""
import collections
import csv
import io
import json

from harness import Case


class Query(Case):
    def rows(self, trace, sql, **options):
        return [json.loads(line) for line in self.tracectl("query", "--json", trace, sql, **options).out.splitlines()]

    def states(self, trace, unseen_too=False):
        """Of goroutines, from the printed events: (goroutine, state, from, until, ended by) in the order of their ends; unseen_too:
        those whose begin the trace does not show, too."""
        since, spans = {}, []
        for line in self.tracectl("cat", "-d", "json", trace).out.splitlines():
            event = json.loads(line)
            if "goroutine" not in event or event["from"] == event["to"]:
                continue
            g, known = event["goroutine"], event["from"] != "Undetermined"
            if g in since and known:
                state, begin, began_known = since.pop(g)
                if began_known or unseen_too:
                    spans.append((g, state, begin, event["time"], event.get("g")))
            if event["to"] != "NotExist":
                since[g] = (event["to"].lower(), event["time"], known)
        return spans

    def test_spans_are_those_of_the_events(self):
        for name in ("g22-mix", "g25-mix", "g26-gens", "g26-cgo"):
            trace = self.trace(name)
            want = self.states(trace)
            got = self.rows(trace, "SELECT subject, state, from_ns, until_ns FROM spans "
                                   "WHERE kind='goroutine' AND from_known AND until_known")
            self.assertGreater(len(want), 100)
            self.assertEqual([tuple(row.values()) for row in got], [span[:4] for span in want])

    def test_a_wait_names_its_waker_and_a_wait_for_a_p_who_ended_the_wait(self):
        trace = self.trace("g26-gens")
        want = {(g, until): by for g, state, _, until, by in self.states(trace) if state == "waiting" and by is not None}
        wakers = self.rows(trace, "SELECT s.subject, s.until_ns, w.id FROM spans s JOIN goroutines w ON w.life=s.by_life "
                                  "WHERE s.kind='goroutine' AND s.state='waiting' AND s.from_known")
        self.assertEqual({(row["subject"], row["until_ns"]): row["id"] for row in wakers}, want)
        runnable = self.rows(trace, "SELECT s.subject, s.from_ns, w.id FROM spans s JOIN goroutines w ON w.life=s.by_life "
                                    "WHERE s.kind='goroutine' AND s.state='runnable' AND s.cause='unblocked'")
        begun = {(row["subject"], row["from_ns"]): row["id"] for row in runnable}
        self.assertGreater(len(begun), 10)
        waits = self.states(trace, unseen_too=True)
        enders = {(g, until): by for g, state, _, until, by in waits if state == "waiting" and by is not None}
        self.assertEqual(begun, {key: by for key, by in enders.items() if key in begun})

    def test_goroutines_stacks_and_frames_are_found_by_their_numbers(self):
        trace = self.trace("g26-gens")
        born = self.rows(trace, "SELECT life, id, entry, created_ns, ended_ns FROM goroutines WHERE created_ns IS NOT NULL")
        events = [json.loads(line) for line in self.tracectl("cat", "-d", "json", trace).out.splitlines()]
        created = {event["time"]: event["goroutine"] for event in events if event["event"] == "GoCreate"}
        self.assertEqual({row["created_ns"]: row["id"] for row in born}, created)
        self.assertTrue(all(row["entry"] for row in born))
        frames = self.rows(trace, "SELECT s.stack, s.depth_max, count(*) AS n FROM stacks s JOIN frames f USING(stack) GROUP BY 1")
        self.assertGreater(len(frames), 10)
        self.assertTrue(all(row["depth_max"] == row["n"] for row in frames))
        one = frames[3]["stack"]
        alone = self.rows(trace, f"SELECT depth, function FROM frames WHERE stack={one}")
        self.assertEqual([row["depth"] for row in alone], list(range(len(alone))))
        self.assertEqual(self.rows(trace, "SELECT * FROM frames WHERE stack=99999999"), [])

    def test_a_system_call_is_a_whole_and_its_pieces(self):
        trace = self.trace("g26-gens")
        whole = self.rows(trace, "SELECT life, from_ns, until_ns FROM spans WHERE kind='goroutine' AND state='syscall'")
        pieces = collections.defaultdict(list)
        for row in self.rows(trace, "SELECT life, from_ns, until_ns, state FROM spans WHERE kind='syscall'"):
            pieces[row["life"]].append(row)
        self.assertGreater(len(whole), 100)
        self.assertGreater(sum(len(p) for p in pieces.values()), len(whole) - 1)
        lengths = sum((row["until_ns"] or 0) - row["from_ns"] for row in whole if row["until_ns"])
        ended = {(row["life"], row["until_ns"]) for row in whole}
        self.assertLessEqual({(life, p[-1]["until_ns"]) for life, p in pieces.items()}, ended)
        self.assertEqual(sum(row["until_ns"] - row["from_ns"] for p in pieces.values() for row in p if row["until_ns"]), lengths)

    def test_what_a_program_says_of_itself_are_tables(self):
        trace = self.trace("g26-annot")
        events = [json.loads(line) for line in self.tracectl("cat", "-d", "json", trace).out.splitlines()]
        count = collections.Counter(event["kind"] for event in events)
        for table, kind in (("logs", "Log"), ("samples", "StackSample"), ("metrics", "Metric")):
            self.assertEqual(self.rows(trace, f"SELECT count(*) AS n FROM {table}")[0]["n"], count[kind], table)
        ended = self.rows(trace, "SELECT type FROM tasks WHERE until_ns IS NOT NULL")
        self.assertEqual(len(ended), count["TaskEnd"])
        self.assertEqual(self.rows(trace, "SELECT count(*) AS n FROM regions WHERE until_ns IS NOT NULL")[0]["n"] >= count["RegionEnd"], True)

    def test_rows_come_as_text_json_and_csv(self):
        trace = self.trace("g25-mix")
        sql = 'SELECT 1 AS a, \'x,"y"\' AS b, NULL AS c UNION ALL SELECT 22, \'two\nlines\', 1.5'
        self.assertEqual(self.rows(trace, sql), [{"a": 1, "b": 'x,"y"', "c": None}, {"a": 22, "b": "two\nlines", "c": 1.5}])
        out = self.tracectl("query", "--csv", trace, sql).out
        self.assertEqual(list(csv.reader(io.StringIO(out, newline=""))), [["a", "b", "c"], ["1", 'x,"y"', ""], ["22", "two\nlines", "1.5"]])
        lines = self.tracectl("query", trace, sql).out.splitlines()
        self.assertEqual([line.split() for line in lines], [["a", "b", "c"], ["1", 'x,"y"'], ["22", "two?lines", "1.5"]])
        self.assertEqual(self.tracectl("query", "--csv", trace, "SELECT 1 AS one WHERE 0").out.split(), ["one"])

    def test_a_query_only_reads_and_errors_point_at_the_place(self):
        trace = self.trace("g25-mix")
        for sql, words in (("ATTACH 'x.db' AS x", "ATTACH is refused"), ("CREATE TABLE t(a)", "CREATE is refused"), ("DROP TABLE spans", "DROP is refused"),
                           ("CREATE TEMP TABLE t(a)", "is refused"), ("PRAGMA writable_schema=1", "PRAGMA is refused"),
                           ("SELECT load_extension('x')", "function is refused"), ("VACUUM INTO 'x.db'", "refused"),
                           ("SELECT * FORM spans", "SELECT * FORM spans\n           ^"), ("SELECT\n nope FROM spans", " nope FROM spans\n   ^"),
                           ("SELECT *\nFROM spanz", "FROM spanz\n       ^"),
                           ("SELECT 1; SELECT 2", "one statement at a time"), ("", "a SELECT is wanted")):
            done = self.tracectl("query", trace, sql, expect=2)
            self.assertIn(words, done.err, sql)
            self.assertEqual(done.out, "", sql)
        self.assertIn("may not be modified", self.tracectl("query", trace, "DELETE FROM spans", expect=1).err)
        self.assertEqual(list(self.folder.glob("x*")), [])
        self.assertIn("a file is wanted", self.tracectl("query", "-", "SELECT 1", expect=2).err)
        self.assertIn("No such file", self.tracectl("query", self.folder / "none", "SELECT 1 FROM spans", expect=1).err)

    def test_a_broken_trace_gives_the_rows_before_the_fault_then_the_fault(self):
        trace = self.trace("g26-gens")
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:60000])
        done = self.tracectl("query", "--json", torn, "SELECT gen FROM spans", expect=1)
        self.assertGreater(len(done.out.splitlines()), 100)
        self.assertIn("the trace ends in the middle of a batch", done.err)
        self.assertIn("offset ", done.err)
