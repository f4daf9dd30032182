# SPDX-License-Identifier: Apache-2.0
"""`tracectl query`: traces as tables, against what `tracectl cat -d json`, index and report print of the same traces."""
import collections
import csv
import io
import json
import math
import statistics

from harness import FULL, SANITIZE, Case, Collector, local_go


class Query(Case):
    def rows(self, trace, sql, more=(), **options):
        return [json.loads(line) for line in self.tracectl("query", "--json", trace, sql, *more, **options).out.splitlines()]

    def states(self, trace, unseen_too=False):
        """Returns the states of goroutines from the printed events: (goroutine, state, from, until, ended by) in the order of their
        ends; unseen_too: include those whose begin is not in the trace."""
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
        for name in (*(("g22-mix", "g26-gens") if not SANITIZE else ()), "g26-cgo", *(("g25-mix",) if FULL else ())):
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

    def test_any_value_is_valid_json(self):
        trace = self.trace("g25-mix")
        hostile = "".join(map(chr, (*range(1, 160), 0xD7FF, 0xFFFD, 0x1F600)))
        sql = f"""SELECT '{hostile.replace("'", "''")}' AS t, x'ff00' AS b, 1 AS twice, 2.0 AS r, 9e999 AS i, -9223372036854775808 AS n, '' AS e, 3 AS twice,
                  '{"long " * 1000}' AS long, 4 AS "a ""name" """
        line = self.tracectl("query", "--json", trace, sql).out
        self.assertTrue(line.isascii())
        self.assertEqual(json.loads(line), {"t": hostile, "b": "\ufffd", "twice": 3, "r": 2.0, "i": None, "n": -2**63, "e": "", "long": "long " * 1000, 'a "name': 4})

    def test_a_statement_that_only_chooses_columns_gives_what_sql_gives(self):
        trace = self.trace("g26-annot")
        for what in ("* FROM spans", "duration_ns,kind FROM spans;", "args, event, Goroutine FROM events", "stack /* its number */ FROM stacks", "* FROM logs",
                     "kind, kind FROM spans", "rowid, kind FROM spans", "* FROM stops", "* FROM generations"):
            for form in ("--csv", "--json"):
                direct = self.tracectl("query", form, trace, "SELECT " + what).out
                self.assertEqual(direct, self.tracectl("query", form, trace, f"SELECT {what.rstrip(';')} WHERE 1").out, what)
                self.assertGreater(direct.count("\n"), form == "--csv", what)

    def test_a_query_only_reads_and_errors_point_at_the_place(self):
        trace = self.trace("g25-mix")
        for sql, words in (("ATTACH 'x.db' AS x", "ATTACH is refused"), ("CREATE TABLE t(a)", "CREATE is refused"), ("DROP TABLE spans", "DROP is refused"),
                           ("CREATE TEMP TABLE t(a)", "is refused"), ("PRAGMA writable_schema=1", "PRAGMA is refused"),
                           ("SELECT load_extension('x')", "function is refused"), ("VACUUM INTO 'x.db'", "refused"),
                           ("SELECT * FORM spans", "SELECT * FORM spans\n           ^"), ("SELECT\n nope FROM spans", " nope FROM spans\n   ^"),
                           ("SELECT *\nFROM spanz", "FROM spanz\n       ^\n  There are generations, "),
                           ("SELECT 1; SELECT 2", "one statement at a time"), ("", "a SELECT is required")):
            done = self.tracectl("query", trace, sql, expect=2)
            self.assertIn(words, done.err, sql)
            self.assertEqual(done.out, "", sql)
        self.assertIn("may not be modified", self.tracectl("query", trace, "DELETE FROM spans", expect=2).err)
        self.assertEqual(list(self.folder.glob("x*")), [])
        self.assertIn("FILE may be read more than once", self.tracectl("query", "-", "SELECT 1", expect=2).err)
        self.assertIn("No such file", self.tracectl("query", self.folder / "none", "SELECT 1 FROM spans", expect=1).err)

    def test_a_guess_is_led_to_what_there_is(self):
        trace = self.trace("g25-mix")
        tables = "  There are generations, spans, tasks, regions, logs, samples, metrics, goroutines, stacks, frames, events, reports, syscalls, stops, waits"
        for sql, lines in (("SELECT * FROM mutex", [tables + "; did you mean waits?"]),
                           ("SELECT * FROM syscall", [tables + "; did you mean syscalls?"]),
                           ("SELECT * FROM gc_pauses", [tables + "; did you mean stops?"]),
                           ("SELECT * FROM xyzzyx", [tables + "."]),
                           ("SELECT dur FROM spans", ["  spans has stream, kind, ", "; did you mean duration_ns?"]),
                           ("SELECT function FROM stacks", ["  stacks has stream, stack, depth_max.\n  function is a column of frames.\n"]),
                           ("SELECT s.functon FROM spans s JOIN frames USING(stack)", ["  spans has ", "  frames has ", "; did you mean function?"]),
                           ("SELECT goroutine FROM spans", ["did you mean life", "goroutine is a column of events, syscalls, waits."]),
                           ("SELECT duration_ns", ["  The statement names no table.\n  duration_ns is a column of spans, tasks, regions, syscalls, stops, waits."]),
                           ("SELECT percentile(1, 2) FROM spans", ["no such function: percentile", "  There are p(x, 99), median(x), place(stack), call(stack), and SQLite's own; did you mean p(x, 99)?"]),
                           *((sql, ["syntax error", "  tracectl query --schema [TABLE] shows tables and columns."])
                             for sql in ("SHOW TABLES", ".tables", ".schema spans", "DESCRIBE spans"))):
            err = self.tracectl("query", trace, sql, expect=2).err
            for words in lines:
                self.assertIn(words, err, sql)
        self.assertNotIn("--schema", self.tracectl("query", trace, "SELECT FORM spans WHERE WHERE", expect=2).err)

    def test_a_comparison_with_a_word_that_does_not_exist_is_said_once(self):
        trace = self.trace("g25-mix")
        for sql, said in (("SELECT 1 FROM spans WHERE kind='xyz'", 'no kind is known as "xyz"; there are goroutine, syscall, proc, thread, range'),
                          ("SELECT 1 FROM spans WHERE kind='gc'", 'no kind is known as "gc"; kind=\'range\' has the collector\'s work: state LIKE \'GC %\''),
                          ("SELECT 1 FROM spans WHERE kind='stw'", 'no kind is known as "stw"; the view stops has stop-the-world pauses'),
                          ('SELECT 1 FROM spans WHERE kind="stw"', 'no kind is known as "stw"; the view stops has stop-the-world pauses'),
                          ("SELECT 1 FROM spans WHERE 'wating'=spans.state", 'no state is known as "wating"; did you mean "waiting"?'),
                          ("SELECT 1 FROM waits w WHERE w.reason IN ('mutex', 'mutex')", 'no reason is known as "mutex"; did you mean "sync"?'),
                          ("SELECT 1 FROM spans WHERE life<0 AND kind NOT IN ('goroutine', /* not there */ 'gorutine')", 'no kind is known as "gorutine"; did you mean "goroutine"?'),
                          ("SELECT 1 FROM spans WHERE life<0 AND (kind='goroutine' OR state IS NOT 'runing')", 'no state is known as "runing"; did you mean "running"?'),
                          ("SELECT 1 FROM waits WHERE reason='mutex'", 'no reason is known as "mutex"; did you mean "sync"?'),
                          ("SELECT 1 FROM spans WHERE reason='I/O wait'", 'no reason is known as "I/O wait"; did you mean "network"?'),
                          ("SELECT 1 FROM spans a JOIN spans b USING(life) WHERE a.state='wating'", 'no state is known as "wating"; did you mean "waiting"?'),
                          ("SELECT 1 FROM spans WHERE state<>'Running' LIMIT 0", 'no state is known as "Running"; did you mean "running"?'),
                          ("SELECT 1 FROM events WHERE kind='GoBlock'", 'no kind is known as "GoBlock"; there are '),
                          ("SELECT 1 FROM reports WHERE kind='sycall'", 'no kind is known as "sycall"; did you mean "syscall"?')):
            done = self.tracectl("query", trace, sql, "--json")
            self.assertEqual(done.out, "", sql)
            self.assertIn("tracectl query: " + said, done.err)
            self.assertEqual(done.err.count(" is known as "), 1, sql)
        for sql, said in (("SELECT 1 FROM waits WHERE reason LIKE '%mutex%'", 'no reason is like "%mutex%"; did you mean "sync"? It has Mutex, RWMutex and WaitGroup: call(stack) tells which'),
                          ("SELECT 1 FROM waits WHERE reason LIKE 'I/O%'", 'no reason is like "I/O%"; did you mean "network"?'),
                          ("SELECT 1 FROM spans WHERE state GLOB 'wating*'", 'no state is like "wating*"; did you mean "waiting"?')):
            self.assertEqual(self.tracectl("query", trace, sql, "--json").err, f"tracectl query: {said}\n")
        for sql in ("SELECT 1 FROM spans WHERE kind='range' AND state='GC mark assist' AND reason=''", "SELECT 1 FROM waits WHERE reason='chan receive' LIMIT 1",
                    "SELECT 1 FROM waits WHERE reason LIKE 'CHAN %' OR reason IN ('sync') LIMIT 1", "SELECT 1 FROM spans -- kind='stw'",
                    "WITH t(kind) AS (VALUES('stw')) SELECT 1 FROM t WHERE kind='stw'", "SELECT 'kind=''stw''' FROM spans LIMIT 1",
                    "SELECT 1 FROM spans JOIN generations USING(gen) WHERE spans.kind='goroutine' AND verdict='ok' LIMIT 0"):
            self.assertEqual(self.tracectl("query", trace, sql, "--csv").err, "", sql)

    def test_goroutines_are_found_by_their_id_too(self):
        """Without that, a join by id reads all goroutines for each row: hours, in a trace with many."""
        ask = "SELECT g.entry, count(*), sum(w.duration_ns) FROM waits w JOIN goroutines g %s GROUP BY 1 ORDER BY 1"
        for name in ("g26-gens", "g22-mix"):
            trace = self.trace(name)
            by_life, by_id = (self.tracectl("query", "--csv", trace, ask % how).out for how in ("USING(life)", "ON g.id=w.goroutine"))
            self.assertGreater(by_life.count("\n"), 3)
            self.assertEqual(by_id, by_life)
        trace = self.trace("g26-gens")
        one = self.tracectl("query", "--csv", trace, "SELECT id, life FROM goroutines WHERE id=1").out.split()
        self.assertEqual(one, ["id,life", "1,1"])
        for where in ("id=1.5", "id='x'", "id=-7", "id IS NULL", "id=1 AND life=2", "id=1 AND id=2"):
            self.assertEqual(self.tracectl("query", "--csv", trace, f"SELECT count(*) FROM goroutines WHERE {where}").out.split(), ["count(*)", "0"], where)
        two = self.tracectl("query", "--csv", trace, trace, "SELECT count(*) FROM goroutines WHERE id=1").out.split()
        self.assertEqual(two, ["count(*)", "2"])

    def test_numbers_of_stacks_and_lives_are_those_of_other_statements_and_exports(self):
        trace = self.trace("g26-gens")

        def ask(sql):
            return list(csv.DictReader(io.StringIO(self.tracectl("query", "--csv", trace, sql).out)))

        def exported(table):
            return list(csv.DictReader(io.StringIO(self.tracectl("convert", "--to", "csv", "--table", table, "-o", "-", trace, "--no-progress").out)))

        own = {(row["life"], row["from_ns"]): row["stack"] for row in ask("SELECT life, from_ns, stack FROM waits")}
        more = ask("SELECT life, from_ns, end_stack, by_stack, stack FROM spans WHERE kind='goroutine' AND state='waiting'")
        self.assertEqual(own, {(row["life"], row["from_ns"]): row["stack"] for row in more})
        places = {row["stack"]: row["place"] for row in ask("SELECT DISTINCT stack, place(stack) AS place FROM waits WHERE stack IS NOT NULL")}
        innermost = {row["stack"]: row["function"] for row in exported("frames") if row["depth"] == "0"}
        functions = {row["stack"]: row["function"] for row in ask("SELECT stack, function FROM frames WHERE depth=0 ORDER BY function")}
        self.assertGreater(len(places), 10)
        self.assertEqual(innermost, functions)
        self.assertLessEqual(set(places), set(innermost))
        for stack, place in places.items():
            self.assertEqual(ask(f"SELECT function FROM frames WHERE stack={stack} AND depth=0")[0]["function"], innermost[stack])
            self.assertEqual(ask(f"SELECT place(stack) AS place FROM stacks WHERE stack={stack}")[0]["place"], place)
        spans = [row for row in exported("spans") if row["kind"] == "goroutine" and row["state"] == "waiting"]
        self.assertEqual(own, {(row["life"], row["from_ns"]): row["stack"] for row in spans})
        self.assertEqual(ask("SELECT count(*) AS n FROM frames WHERE stack IN (-1, 0, 1, 2, 1<<43, 1<<44, 1<<60)"), [{"n": "0"}])

    def test_the_schema_is_what_the_tables_have(self):
        schema = {name: columns.split() for name, _, columns in (line.partition(" ") for line in self.tracectl("query", "--schema").out.splitlines()[:-1])}
        trace, calls = self.trace("g26-annot"), self.trace("g26-gens")

        def rows_of_both(sql):
            return self.rows(trace, calls, (sql,))
        self.assertEqual([row["name"] for row in self.rows(trace, "SELECT name FROM sqlite_master")], [name for name in schema if name != "findings"])
        hidden = {"spans": ["duration_ns", "idle"], "tasks": ["duration_ns"], "regions": ["duration_ns"]}
        for table, columns in schema.items():
            lines = self.tracectl("query", "--schema", table).out.splitlines()
            if "" in lines:  # reasons of waits follow, each with its meaning
                self.assertIn("  sync                        A mutex, RWMutex, WaitGroup or semaphore of package sync.", lines)
                del lines[lines.index(""):]
            types = {words[0]: words[1] for words in (line.split() for line in lines[1:])}
            self.assertEqual(list(types), columns)
            rows = [] if table == "findings" else rows_of_both(f"SELECT * FROM {table} LIMIT 1")
            if not rows:  # the traces have no samples
                self.assertIn(table, ("findings", "samples"))
                continue
            self.assertEqual([*rows[0], *hidden.get(table, [])], columns)
            for column, kind in types.items():
                has = {row["t"] for row in rows_of_both(f"SELECT DISTINCT typeof({column}) AS t FROM {table}")} - {"null"}
                self.assertLessEqual(has, {kind}, (table, column))
        for table, column in (("spans", "kind"), ("spans", "state"), ("spans", "reason"), ("waits", "reason"), ("stops", "reason"), ("events", "kind"), ("reports", "kind")):
            line = next(line for line in self.tracectl("query", "--schema", table).out.splitlines() if line.split()[:1] == [column])
            words = set(line.split(None, 2)[2].split(", "))
            for name in ("g26-annot", *(("g22-mix", "g26-gens") if not SANITIZE else ())):
                found = {row["w"] for row in self.rows(self.trace(name), f"SELECT DISTINCT {column} AS w FROM {table} WHERE {column}<>''")}
                self.assertLessEqual(found, words, (table, column))
        self.assertIn("did you mean waits?", self.tracectl("query", "--schema", "wait", expect=2).err)
        self.assertIn("--schema is text", self.tracectl("query", "--schema", "--json", expect=2).err)
        self.assertIn("takes one table at most", self.tracectl("query", "--schema", trace, "spans", expect=2).err)

    def test_idle_is_what_reports_take_for_idle(self):
        trace = self.trace("g26-gens")
        for view, kind in (("waits", "block"), ("syscalls", "syscall")):
            for more in ((), ("--idle", "main.runLong*,os.*"), ("--idle", "!*")):
                with self.subTest(view=view, more=more):
                    figure = json.loads(self.tracectl("report", kind, trace, "--json", *more).out)["figures"]["idle"]
                    row = self.rows(trace, f"SELECT count(*) AS n, total(duration_ns) AS ns FROM {view} WHERE idle AND until_ns IS NOT NULL", more)[0]
                    self.assertEqual((row["n"], row["ns"]), (figure["count"], figure["total_ns"]))
                    self.assertEqual(row["n"] > 0, {(): view == "waits"}.get(more, "!*" not in more))
        self.assertIn("is neither", self.tracectl("query", trace, "SELECT 1", "--idle", "ma*n.f", expect=2).err)

    def test_a_place_is_the_programs_own_and_what_was_called_there_is_not_lost(self):
        trace = self.trace("g26-gens")
        rows = self.rows(trace, "SELECT DISTINCT place(stack) AS place, call(stack) AS call FROM waits WHERE reason='sleep' AND NOT idle ORDER BY 1")
        self.assertIn({"place": "main.runLong:119", "call": "time.Sleep"}, rows)
        self.assertEqual({row["call"] for row in rows}, {"time.Sleep"})
        self.assertEqual({row["place"].partition(".")[0] for row in rows}, {"main"})
        self.assertEqual(self.rows(trace, "SELECT call(stack) AS call FROM waits WHERE stack IS NULL LIMIT 1"), [{"call": None}])
        for row in self.rows(trace, "--saved", ["longest-waits"]):
            self.assertRegex(row["entry"], r"^main\.", "the runtime's and idle ones are left out")

    def test_views_are_the_spans_that_they_name(self):
        trace = self.trace("g26-gens")
        for view, condition in (("syscalls", "kind='goroutine' AND state='syscall'"), ("waits", "kind='goroutine' AND state='waiting'"),
                                ("stops", "kind='range' AND state='stop-the-world'")):
            sums = "count(*) AS n, count(until_ns) AS ended, sum(duration_ns) AS ns, sum(stack) AS stacks"
            mine = self.rows(trace, f"SELECT {sums} FROM {view}")
            self.assertEqual(mine, self.rows(trace, f"SELECT {sums.replace('duration_ns', 'until_ns-from_ns')} FROM spans WHERE {condition}"))
            self.assertGreater(mine[0]["ended"], 2, view)

    def test_quantiles_are_exact(self):
        trace = self.trace("g26-gens")
        values = sorted(row["duration_ns"] for row in self.rows(trace, "SELECT duration_ns FROM waits WHERE until_ns IS NOT NULL"))
        asked = (0, 1, 50, 90, 99, 99.9, 100)
        row = self.rows(trace, "SELECT " + ", ".join(f'p(duration_ns, {p}) AS "{p}"' for p in asked) + " FROM waits")[0]
        self.assertEqual(row, {str(p): values[max(0, math.ceil(p * len(values) / 100) - 1)] for p in asked})
        self.assertEqual(self.rows(trace, "SELECT median(duration_ns) AS m FROM waits")[0]["m"], statistics.median(values))
        by = self.rows(trace, "SELECT reason, p(duration_ns, 99) AS p, median(duration_ns) AS m, count(duration_ns) AS n FROM waits GROUP BY 1")
        self.assertEqual(sum(row["n"] for row in by), len(values))
        few = "WITH t(x) AS (VALUES (4), (NULL), (1), (9223372036854775807), (2)) SELECT p(x, 100) AS most, median(x) AS m FROM t"
        self.assertEqual(self.rows(trace, few), [{"most": 2**63 - 1, "m": 3.0}])
        self.assertEqual(self.rows(trace, "WITH t(x) AS (VALUES (1), (2.5)) SELECT p(x, 1) AS p, median(x) AS m FROM t"), [{"p": 1.0, "m": 1.75}])
        self.assertEqual(self.rows(trace, "SELECT p(x, 9) AS p, median(x) AS m FROM (SELECT 1 AS x WHERE 0)"), [{"p": None, "m": None}])
        for sql, why in (("SELECT p(1, 101)", "a percentage, 0 to 100"), ("SELECT p(1, 0.99)", "write 99, not 0.99"), ("SELECT p(1, 'x')", "a percentage, 0 to 100"), ("SELECT median('x')", "are of numbers")):
            self.assertIn(why, self.tracectl("query", trace, sql, expect=1).err)

    def test_a_broken_trace_gives_the_rows_before_the_fault_then_the_fault(self):
        trace = self.trace("g26-gens")
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:60000])
        done = self.tracectl("query", "--json", torn, "SELECT gen FROM spans", expect=1)
        self.assertGreater(len(done.out.splitlines()), 100)
        self.assertIn("the trace ends in the middle of a batch", done.err)
        self.assertIn("offset ", done.err)

    def events(self, trace, *options):
        return [json.loads(line) for line in self.tracectl("cat", "-d", "json", *options, trace).out.splitlines()]

    def test_events_are_those_that_cat_prints(self):
        for name in (*(("g22-mix", "g26-blobs") if not SANITIZE else ()), "g26-annot", "c-locks"):
            trace = self.trace(name)
            rows = self.rows(trace, "SELECT time_ns, kind, event, thread, proc, goroutine, args, stack FROM events")
            depths = {row["stack"]: row["depth_max"] for row in self.rows(trace, "SELECT stack, depth_max FROM stacks")}
            printed = self.events(trace)
            self.assertEqual(len(rows), len(printed))
            for row, event in zip(rows, printed):
                self.assertEqual([row[key] for key in ("time_ns", "kind", "event", "thread", "proc", "goroutine")],
                                 [event[key] for key in ("time", "kind", "event", "m", "p", "g")])
                known = ("time", "kind", "event", "m", "p", "g", "stack")
                self.assertEqual({pair["name"]: pair["value"] for pair in json.loads(row["args"])},
                                 {key: value for key, value in event.items() if key not in known})
                self.assertEqual(row["stack"] is not None, bool(event.get("stack")))
            self.assertEqual(bool(depths), any(row["stack"] is not None for row in rows))

    def test_a_stack_has_one_number_in_all_tables(self):
        trace = self.trace("g26-gens")
        rows = self.rows(trace, "SELECT e.time_ns, f.function, f.line FROM events e JOIN frames f ON f.stack=e.stack AND f.depth=0 WHERE e.event='GoBlock'")
        want = [(event["time"], event["stack"][0]["func"], event["stack"][0]["line"]) for event in self.events(trace)
                if event["event"] == "GoBlock" and event.get("stack")]
        self.assertGreater(len(want), 100)
        self.assertEqual([tuple(row.values()) for row in rows], want)
        blocks = self.rows(trace, "WITH s AS MATERIALIZED (SELECT from_ns, stack FROM spans WHERE state='waiting' AND kind='goroutine') "
                                  "SELECT count(*) AS n FROM events e JOIN s ON s.from_ns=e.time_ns AND s.stack=e.stack WHERE e.event='GoBlock'")
        self.assertEqual(blocks[0]["n"], len(want))

    def test_conditions_choose_generations_and_change_no_row(self):
        """A + before a column keeps the condition from choosing."""
        trace = self.trace("g26-gens")
        middle = self.rows(trace, "SELECT min(wall_ns) AS a, max(wall_ns) AS b FROM events WHERE +gen BETWEEN 9 AND 11")[0]
        conditions = ("{}gen=7", "{}gen>=20", "{}gen<3", "{}gen BETWEEN 4 AND 6", "{}gen IN (2, 9)", "{}gen=0", "{}gen>'x'", "{}gen<2.5",
                      f"{{0}}wall_ns BETWEEN {middle['a']} AND {middle['b']}", "{}goroutine=23", "{0}goroutine=23 AND {0}gen>10", "{}goroutine=999999")
        if SANITIZE:
            conditions = conditions[::3]
        everything, some = "*", "gen, time_ns, event, thread, proc, goroutine, stack, wall_ns"

        def asked(columns, condition, plus=""):
            return self.tracectl("query", "--csv", trace, f"SELECT {columns} FROM events WHERE {condition.format(plus)}").out
        looked_at = {(columns, condition): asked(columns, condition, "+") for condition in conditions for columns in (everything, some)}
        for indexed in (False, True):
            if indexed:
                self.tracectl("index", "--write", trace)
            for columns, condition in looked_at:
                if FULL or (columns == some) == indexed:
                    self.assertEqual(asked(columns, condition), looked_at[columns, condition], condition)
        self.assertGreater(len(self.rows(trace, "SELECT 1 AS x FROM events WHERE goroutine=23")), 10)
        self.assertEqual(self.rows(trace, "SELECT * FROM generations WHERE gen=7"), self.rows(trace, "SELECT * FROM generations WHERE +gen=7"))

    def test_generations_are_those_of_the_index(self):
        trace = self.trace("g26-gens")
        rows = self.rows(trace, "SELECT gen, bytes, verdict, from_ns, until_ns, events FROM generations")
        index = [json.loads(line) for line in self.tracectl("index", "--json", trace).out.splitlines()]
        self.assertEqual([(row["gen"], row["bytes"]) for row in rows], [(line["gen"], line["bytes"]) for line in index])
        self.assertEqual({row["verdict"] for row in rows}, {"ok"})
        counts = self.rows(trace, "SELECT gen, count(*) AS n, max(time_ns) AS last FROM events WHERE gen IS NOT NULL GROUP BY 1")
        self.assertEqual([(row["gen"], row["events"], row["until_ns"]) for row in rows], [tuple(row.values()) for row in counts])

    def test_a_broken_generation_is_a_row(self):
        trace = self.trace("g26-gens")
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:80000])
        rows = self.rows(torn, "SELECT gen, verdict, reason FROM generations")
        self.assertEqual([row["verdict"] for row in rows[:-1]], ["ok"] * (len(rows) - 1))
        self.assertGreater(len(rows), 2)
        self.assertEqual(rows[-1]["verdict"], "broken")
        self.assertIn("the trace ends in the middle of a batch", rows[-1]["reason"])

    def test_reports_are_those_that_report_prints(self):
        trace = self.trace("g26-annot")
        rows = collections.defaultdict(lambda: collections.defaultdict(list))
        for row in self.rows(trace, "SELECT kind, window, name, row FROM reports"):
            self.assertEqual(row["window"], "all")
            rows[row["kind"]][row["name"]].append(json.loads(row["row"]))
        for line in self.tracectl("report", "all", trace, "--json", "--top", "0", "--no-progress").out.split("\n")[:-1]:
            report = json.loads(line)
            if report["kind"] == "gc":  # alone it has two more tables
                report = json.loads(self.tracectl("report", "gc", trace, "--json", "--top", "0", "--no-progress").out)
            mine = rows.pop(report["kind"])
            self.assert_alike(mine.pop("figures"), [report["figures"]])
            self.assert_alike(mine, {name: table for name, table in report["tables"].items() if table})
        self.assertEqual(rows, {})
        alone = self.rows(trace, "SELECT DISTINCT kind FROM reports WHERE kind='sched'")
        self.assertEqual(alone, [{"kind": "sched"}])
        self.assertEqual(self.rows(trace, "SELECT * FROM reports WHERE kind='nothing'"), [])

    def assert_alike(self, one, other):
        """Shares to nine digits."""
        def plain(value):
            if isinstance(value, float):
                return float(f"{value:.9g}")
            if isinstance(value, dict):
                return {key: plain(inner) for key, inner in value.items()}
            return [plain(inner) for inner in value] if isinstance(value, list) else value
        self.assertEqual(plain(one), plain(other))

    def test_parts_of_a_file(self):
        trace = self.trace("g26-gens")
        gens = [row["gen"] for row in self.rows(trace, "SELECT DISTINCT gen FROM spans WHERE gen IS NOT NULL", more=("--gen", "5..8"))]
        self.assertEqual(gens, [5, 6, 7, 8])
        times = self.rows(trace, "SELECT wall_ns FROM generations")
        moment = f"@{times[9]['wall_ns'] / 1e9 + 0.001:.9f}"
        around = self.rows(trace, "SELECT gen FROM generations", more=("--since", moment, "--until", moment))
        self.assertEqual([row["gen"] for row in around], [10])
        self.assertEqual(self.rows(trace, "SELECT gen FROM generations WHERE gen>6", more=("--gen", "5..8")), [{"gen": 7}, {"gen": 8}])
        self.assertIn("no such generation: this trace has ", self.tracectl("query", trace, "SELECT 1", "--gen", "900..", expect=1).err)
        self.assertEqual(self.rows(trace, "SELECT count(*) AS n FROM reports WHERE kind='stw' AND name='by_reason'", more=("--gen", "5..8")), [{"n": 0}])

    def test_several_files_are_streams_with_lives_and_stacks_of_their_own(self):
        one, two = self.trace("g26-gens"), self.trace("g26-annot")
        sql = "SELECT s.stream, g.stream AS of, count(*) AS n, sum(g.id=s.subject) AS same FROM spans s JOIN goroutines g USING(life) WHERE kind='goroutine' GROUP BY 1, 2"
        rows = [json.loads(line) for line in self.tracectl("query", "--json", one, two, sql).out.splitlines()]
        self.assertEqual({row["stream"] for row in rows}, {str(one), str(two)})
        self.assertTrue(all(row["stream"] == row["of"] and row["n"] == row["same"] for row in rows), rows)
        for trace in (one, two):
            alone = self.rows(trace, "SELECT count(*) AS n FROM spans WHERE kind='goroutine' AND life IS NOT NULL")[0]["n"]
            self.assertEqual([row["n"] for row in rows if row["stream"] == str(trace)], [alone])
        places = "SELECT stream, place(stack) AS p, count(*) AS n FROM spans WHERE state='waiting' GROUP BY 1, 2 ORDER BY 1, 2"
        both = [json.loads(line) for line in self.tracectl("query", "--json", one, two, places).out.splitlines()]
        self.assertEqual(both, sorted(self.rows(one, places) + self.rows(two, places), key=lambda row: (row["stream"], row["p"] or "")))

    def test_arguments_are_taken_apart_as_the_manual_says(self):
        trace = self.trace("g26-annot")
        sql = "SELECT j.value->>'name' AS name, count(*) AS n FROM events, json_each(args) j WHERE kind='Log' GROUP BY 1"
        logs = self.rows(trace, "SELECT count(*) AS n FROM logs")[0]["n"]
        self.assertEqual(self.rows(trace, sql), [{"name": name, "n": logs} for name in ("category", "message", "task")])

    def test_a_profile_is_of_rows_with_a_stack(self):
        trace, profile = self.trace("g26-annot"), self.folder / "logs.pb.gz"
        logs = self.rows(trace, "SELECT count(*) AS n FROM logs")[0]["n"]
        go = local_go()
        for sql, kind in (("SELECT event, stack, place(stack) AS place FROM events WHERE kind='Log'", "rows"),
                          ("SELECT stack, event, count(*) AS logs FROM events WHERE kind='Log' GROUP BY 1", "logs")):
            self.tracectl("query", trace, sql, "--pprof", profile)
            if go is not None:
                top = self.run_program(go.tool("pprof"), "-top", profile, env=go.environment).out
                self.assertIn(f"Type: {kind}\n", top)
                self.assertRegex(top, rf"(?m)^ +{logs} +100% +100% +{logs} +100% +UserLog$")
        self.tracectl("query", trace, "SELECT stack FROM events WHERE 0", "--pprof", profile)
        profile.unlink()
        for more, why in ((("SELECT event FROM events",), "a column with the name stack"), (("SELECT stack FROM events", "--json"), "one of --json")):
            self.assertIn(why, self.tracectl("query", trace, *more, "--pprof", profile, expect=2).err)
            self.assertFalse(profile.exists())

    def test_saved_queries_have_answers(self):
        saved = [json.loads(line) for line in self.tracectl("query", "--list", "--json").out.splitlines()]
        self.assertGreaterEqual(len(saved), 20)
        traces = [self.trace(name) for name in (("g26-annot", "c-locks") if SANITIZE else ("g22-mix", "g26-annot", "g26-gens", "c-locks"))]
        for query in saved:
            rows = self.tracectl("query", *traces, "--json", "--saved", query["name"]).out
            if not SANITIZE:  # these two have no rows for some
                self.assertNotEqual(rows, "", query["name"])
                self.assertEqual(rows, self.tracectl("query", "--json", *traces, query["sql"]).out)
        query = saved[0]
        self.assertEqual(self.tracectl("query", "--csv", *traces, "--saved", query["name"]).out, self.tracectl("query", "--csv", *traces, query["sql"]).out)
        listed = self.tracectl("query", "--list").out
        self.assertTrue(all(query["name"] in listed and query["about"] in listed for query in saved))
        self.assertIn('did you mean "states"', self.tracectl("query", traces[0], "--saved", "stats", expect=2).err)


class QueryOfACollector(Case):
    def test_a_service_is_asked_as_its_files_are(self):
        trace = self.trace("g26-gens")
        self.collector = Collector(self)
        self.collector.send(trace, "shop")
        self.collector.send(self.trace("g26-annot"), "desk")
        states = "SELECT state, reason, count(*) AS n, sum(until_ns-from_ns) AS ns FROM spans WHERE kind='goroutine' AND from_known AND until_known GROUP BY 1, 2"
        want = self.tracectl("query", trace, states, "--json").out
        got = self.collector.ask("query", "--service", "shop", "--all", states, "--json")
        self.assertEqual(got.out, want)
        self.assertRegex(got.err, r"26 generations of 1 stream, [\d.]+ KiB")
        some = self.collector.ask("query", "--service", "shop", "--gen", "5..8", "SELECT gen FROM generations", "--csv")
        self.assertEqual(some.out.split(), ["gen", "5", "6", "7", "8"])
        self.assertRegex(some.err, r"4 generations of 1 stream")
        both = self.collector.ask("query", "--all", "SELECT DISTINCT stream FROM goroutines", "--csv").out.split()[1:]
        self.assertEqual(sorted(name.split("/")[0] for name in both), ["desk", "shop"])
        refused = self.collector.ask("query", "--service", "shop", states, expect=2)
        self.assertRegex(refused.err, r"that is the whole archive of 1 streams?, [\d.]+ KiB: name a time \(--since, --last\) or generations \(--gen\), or give --all")
        self.assertIn('did you mean "shop"', self.collector.ask("query", "--service", "shp", "--all", states, expect=1).err)
        self.assertIn("FILE cannot be combined", self.collector.ask("query", trace, "--service", "shop", states, expect=2).err)
        self.assertEqual(self.collector.stop(), 0)
