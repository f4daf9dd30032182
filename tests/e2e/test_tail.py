# SPDX-License-Identifier: Apache-2.0
"""tracectl tail: leased events are those of the file, each once, whatever is killed meanwhile."""
import json
import re
import signal
import time
import urllib.request

from harness import DEADLINE, SANITIZE, TRACECTL, Case, Collector, suites, wait_until

# Whose an event is, and what a lease knows beyond the file.
BESIDE = ("record", "service", "instance", "stream", "generation", "position", "wall_ns", "duration_ns", "lower_bound")
STATES = ("StateTransition",)
TRACES = ("g22-mix", "g23-mix", "g25-mix", "g26-gens", "g26-annot", "g26-midstart") if not SANITIZE else ("g22-mix", "g26-midstart")


def plain(event):
    """An event as `cat` and `tail` both say it."""
    event = {key: value for key, value in event.items() if key not in BESIDE}
    event.pop("clock", None)
    return event


def place(event):
    """Identifies an event, even if its generation was ordered without the one before: the goroutine and P of a
    thread are then known later, and a time may be a little earlier."""
    return event["generation"], event["position"], event["event"], event["m"]


def moment(event):
    return (*place(event), event["time"], event["p"], event["g"])


class Tail(Case):
    def setUp(self):
        super().setUp()
        self.read = {}  # name: size of what was read last, and its lines

    def cat(self, trace):
        """The file's events, with generation and position; a live stream has no Sync at its end."""
        text = self.tracectl("cat", "--json", trace).out.replace("\\u0000", "\ufffd")  # no message holds a NUL
        events = [json.loads(line) for line in text.split("\n")[:-2]]
        generation = position = 0
        for event in events:
            if event["event"] == "Sync":
                generation, position = event["generation"], 0
            event["generation"], event["position"] = generation, position
            position += 1
        return events

    def assert_same(self, got, want, what=""):
        """Lists of thousands: assertEqual would take minutes for its message."""
        for i, (a, b) in enumerate(zip(got, want)):
            if a != b:
                self.fail(f"{what}: item {i} is {a}, not {b}")
        self.assertEqual(len(got), len(want), what)

    def tail(self, collector, *args, name="tail"):
        """Starts one; its lines go to NAME.out."""
        with open(self.folder / f"{name}.out", "wb") as out:
            return self.spawn(name, TRACECTL, "tail", "--server", collector.to, "--certs", self.certs, *args, stdout=out)

    def lines(self, name="tail"):
        text = (self.folder / f"{name}.out").read_bytes()
        if self.read.get(name, (0,))[0] != len(text):
            self.read[name] = len(text), [json.loads(line) for line in text.split(b"\n")[:-1]]  # a string may hold other ends of lines
        return self.read[name][1] if text else []

    def metric(self, collector, name):
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics") as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"tracecollect_{name} "):
                    return float(line.split()[1])
        return None

    def wait_leases(self, collector, n=1):
        """Whose readers ask for events: one that has not yet may take what comes now for older than itself."""
        wait_until(f"{n} leases", lambda: [self.metric(collector, name) for name in ("leases", "leases_polled")] == [n, n])

    def wait_lines(self, n, name="tail"):
        with open(self.folder / f"{name}.out", "rb") as out:
            seen = 0

            def count():
                nonlocal seen
                seen += out.read().count(b"\n")
                return seen >= n
            wait_until(f"{n} lines of {name}", count)

    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(DEADLINE), 130)

    @suites("release", "asan")
    def test_leased_events_are_those_of_the_file(self):
        collector = Collector(self)
        for name in TRACES:
            trace = self.trace(name)
            want = self.cat(trace)
            tail = self.tail(collector, f"{name}/one/", "--kind", "all", "--json", "-n", len(want), name=name)
            self.wait_leases(collector)
            collector.send(trace, name)
            self.assertEqual(tail.wait(DEADLINE), 0, self.log(name))
            got = self.lines(name)
            self.assert_same([plain(event) for event in got], [plain(event) for event in want], name)
            self.assert_same([moment(event) for event in got], [moment(event) for event in want], name)
            self.assertEqual({event["service"] for event in got}, {name})
            self.wait_leases(collector, 0)  # who has enough gives the lease back

    @suites("release")
    def test_objects_of_the_heap_have_the_names_of_their_types(self):
        """Go's AllocFree experiment: live, from the archive and of the file; `-d parsed` has Go's numbers alone."""
        collector, trace = Collector(self), self.trace("g23-alloc")
        want = [event for event in self.cat(trace) if event["event"] in ("HeapObject", "HeapObjectAlloc")]
        named = [event for event in want if event["args"]["type"] != 0]
        self.assertGreater(len(named), 1000)
        self.assertEqual([event for event in want if ("type_name" in event) != (event["args"]["type"] != 0)], [])
        by_type = {event["args"]["type"]: event["type_name"] for event in named}
        self.assertIn("string", by_type.values())
        self.assertGreater(len(by_type), 20)
        ask = ("shop/", "--kind", "HeapObject", "--kind", "HeapObjectAlloc", "-n", len(want))
        live = self.tail(collector, *ask, "--json")
        self.wait_leases(collector)
        collector.send(trace, "shop")
        self.assertEqual(live.wait(DEADLINE), 0, self.log("tail"))
        self.assert_same([plain(event) for event in self.lines()], [plain(event) for event in want])
        later = [json.loads(line) for line in collector.ask("tail", *ask, "--since", "@1", "--json").out.splitlines()]
        self.assert_same([plain(event) for event in later], [plain(event) for event in want])
        people = collector.ask("tail", *ask, "--since", "@1").out.splitlines()
        shown = [line.split(" type=", 1)[1].split("  at ")[0] for line in people]
        self.assert_same(shown, [event.get("type_name", str(event["args"]["type"])) for event in want])
        parsed = self.tracectl("cat", "-d", "parsed", trace).out
        self.assertIn("Name=HeapObjectAlloc ", parsed)
        self.assertNotIn("type_name", parsed)

    @suites("release", "asan")
    def test_filters_take_what_they_say(self):
        collector, trace = Collector(self), self.trace("g26-gens")
        collector.send(trace, "shop")
        total = len(self.cat(trace))

        def ask(n, *args):
            done = collector.ask("tail", "shop/", "--since", "@1", "--json", "-n", n, *args)
            return [json.loads(line) for line in done.out.split("\n")[:-1]]

        every = ask(total, "--kind", "all")
        self.check_durations(every)
        for args, want in (
                (("--kind", "GoBlock"), [e for e in every if e["event"] == "GoBlock"]),
                (("--kind", "stw", "--kind", "tasks"), [e for e in every if e["event"].startswith(("STW", "UserTask"))]),
                (("--kind", "procs"), [e for e in every if re.fullmatch("Proc(Start|Stop|Steal|Status)", e["event"])]),
                (("--goroutine", "22"), [e for e in every if 22 in (e["g"], e.get("goroutine"))]),
                (("--min-duration", "50us"), [e for e in every if e.get("duration_ns", 0) >= 50000]),
                (("--min-duration", "10us", "--kind", "syscalls"),
                 [e for e in every if "Syscall" in e["event"] and e.get("duration_ns", 0) >= 10000])):
            self.assertGreater(len(want), 0, args)
            self.assert_same(ask(len(want), *args), want, args)
        # The same selection, made by the collector as it orders.
        blocks = [e for e in every if e["event"] == "GoBlock" and e.get("duration_ns", 0) >= 20000]
        live = self.tail(collector, "live/", "--json", "--kind", "GoBlock", "--min-duration", "20us", "-n", len(blocks))
        self.wait_leases(collector)
        collector.send(trace, "live")
        self.assertEqual(live.wait(DEADLINE), 0, self.log("tail"))
        self.assert_same([place(e) for e in self.lines()], [place(e) for e in blocks])

    @suites("release")
    def test_reasons_have_a_lasting_id_and_people_read_the_usual_word(self):
        """As `tracectl tables reasons` has them; Go calls a wait for a socket "network"."""
        known = {row["reason"]: row for row in map(json.loads, self.tracectl("tables", "reasons", "--json").out.splitlines())}
        collector, trace = Collector(self), self.trace("g26-gens")
        collector.send(trace, "shop")
        events = [json.loads(line) for line in self.tracectl("cat", "-d", "json", trace).out.splitlines()]
        blocks = [event for event in events if event["event"] == "GoBlock"]
        for event in events:
            if "reason" in event and event["kind"] == "StateTransition":
                self.assertEqual(event["reason_id"], known[event["reason"]]["id"], event)
        self.assertGreater(len({event["reason_id"] for event in blocks}), 3)
        self.assertIn("/io", {event["reason_id"] for event in blocks})
        self.assertEqual(known["network"]["shown_as"], "I/O wait")
        told = collector.ask("tail", "shop/", "--since", "@1", "--kind", "GoBlock", "-n", len(blocks)).out.splitlines()
        self.assertEqual(len(told), len(blocks))
        for line, event in zip(told, blocks):
            self.assertIn(f"->Waiting: {known[event['reason']]['shown_as']}", line)
        self.assertEqual(collector.stop(), 0)

    def check_durations(self, events):
        """Goroutines' states, measured here once more."""
        since = {}
        for event in events:
            if event["kind"] not in STATES or "goroutine" not in event:
                continue
            g, status = event["goroutine"], event["event"].startswith("GoStatus")
            if status:
                since.setdefault(g, (events[0]["time"], True))
                self.assertNotIn("duration_ns", event)
                continue
            if event["from"] != "NotExist" and g in since:
                begin, lower_bound = since[g]
                self.assertEqual(event.get("duration_ns", 0), event["time"] - begin, event)
                self.assertEqual(event.get("lower_bound", False), lower_bound, event)
            since[g] = (event["time"], False)
            if event["to"] == "NotExist":
                del since[g]

    @suites("release", "asan")
    def test_a_tail_survives_kills_of_the_collector_and_shows_each_event_once(self):
        trace = self.trace("g26-gens")
        want = [place(event) for event in self.cat(trace)]
        collector = Collector(self)
        tail = self.tail(collector, "shop/", "--kind", "all", "--json", "-n", len(want))
        self.wait_leases(collector)
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", collector.ready["agents"], "--certs", self.certs,
                            "--service", "shop", "--rate", f"{trace.stat().st_size / 6e6:.6f}", "--no-progress")
        for part in range(1, 3 if SANITIZE else 4):
            self.wait_lines(len(want) * part // 5)
            collector.restart()
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assertEqual(tail.wait(DEADLINE), 0, self.log("tail"))
        self.assert_same([place(event) for event in self.lines()], want)

    @suites("release", "asan")
    def test_since_goes_on_live_without_a_gap_or_a_double(self):
        trace = self.trace("g26-gens")
        want = [moment(event) for event in self.cat(trace)]
        collector = Collector(self)
        sender = self.spawn("send", TRACECTL, "send", trace, "--to", collector.to, "--certs", self.certs, "--service",
                            "shop", "--rate", f"{trace.stat().st_size / 4e6:.6f}", "--no-progress")
        tails = []
        for i, generations in enumerate((1, 6, 14, 20)):  # each begins somewhere else
            wait_until(f"{generations} generations", lambda: self.metric(collector, "generations_ordered_total") >= generations)
            tails.append(self.tail(collector, "--kind", "all", "--since", "@1", "--json", "-n", len(want), name=f"tail{i}"))
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        for i, tail in enumerate(tails):
            self.assertEqual(tail.wait(DEADLINE), 0, self.log(f"tail{i}"))
            self.assert_same([moment(event) for event in self.lines(f"tail{i}")], want, i)

    def test_an_expired_lease_is_taken_anew_and_the_archive_fills_the_gap(self):
        trace = self.trace("g26-gens")
        want = [place(event) for event in self.cat(trace)]
        collector = Collector(self, "lease.expire=200ms")
        tail = self.tail(collector, "--kind", "all", "--json", "-n", len(want))
        self.wait_leases(collector)
        tail.send_signal(signal.SIGSTOP)
        # The question that waits is answered after its ten seconds, or by what comes now.
        collector.send(trace, "shop")
        wait_until("the lease has expired", lambda: self.metric(collector, "leases_expired_total") >= 1)
        tail.send_signal(signal.SIGCONT)
        self.assertEqual(tail.wait(DEADLINE), 0, self.log("tail"))
        self.assert_same([place(event) for event in self.lines()], want)

    def test_a_reader_that_falls_behind_is_told_what_it_lost(self):
        collector, trace, sends = Collector(self, "lease.window=1MiB", "lease.expire=1h"), self.trace("g26-gens"), 3
        total = sends * len(self.cat(trace))
        slow = self.tail(collector, "--kind", "all", "--json", name="slow")
        strict = self.tail(collector, "--kind", "all", "--strict", "-n", 20000, name="strict")
        brisk = self.tail(collector, "--kind", "all", "--json", "--strict", "-n", total, name="brisk")
        self.wait_leases(collector, 3)
        asleep = time.monotonic()
        slow.send_signal(signal.SIGSTOP)
        strict.send_signal(signal.SIGSTOP)
        for i in range(sends):
            collector.send(trace, f"shop{i}")
            self.wait_lines(total // sends * (i + 1), "brisk")  # it keeps up, each is half a window
        wait_until("all is ordered", lambda: self.metric(collector, "events_ordered_total") == total)
        self.assertLessEqual(self.metric(collector, "lease_bytes"), 3 << 20)
        slow.send_signal(signal.SIGCONT)
        strict.send_signal(signal.SIGCONT)
        # A client that sleeps past the deadline of its request, 10 s and more, takes the lease again, and fills the gap from the archive.
        # It may have to wait for a core, too.
        may_fill_the_gap = time.monotonic() - asleep > 5

        def all_told():
            return sum(line.get("lost", 1) for line in self.lines("slow")) == total

        wait_until("events and losses are all there were", all_told)
        self.interrupt(slow)
        strict.wait(DEADLINE)
        if not may_fill_the_gap:
            self.assertGreater(sum(line.get("lost", 0) for line in self.lines("slow")), 0)
            self.assertEqual(strict.returncode, 4, self.log("strict"))
            self.assertIn("lost ", (self.folder / "strict.out").read_text())
        self.assertEqual(brisk.wait(DEADLINE), 0, "one reader's sleep is nothing to another")

    def test_feed_and_lease_in_one(self):
        for sockets in ((), ("listen.feed=tls+tcp://127.0.0.1:0",)):
            with self.subTest(sockets=sockets):
                collector, trace = Collector(self, *sockets, name=f"c{len(sockets)}"), self.trace("g26-annot")
                logs = [event for event in self.cat(trace) if event["event"] == "UserLog"]
                both = self.tail(collector, "shop/", "--kind", "generation", "--kind", "report", "--kind", "logs", "--json")
                feed = self.tail(collector, "shop/one/generation", "--json", name="feed")
                self.wait_leases(collector)
                wait_until("two subscribers", lambda: self.metric(collector, "feed_subscribers") >= 2)
                collector.send(trace, "other")
                collector.send(trace, "shop")

                def complete():
                    kinds = [line["record"] for line in self.lines()]
                    archived = [line for line in self.lines("feed") if line["message"]["state"] == 5]
                    return kinds.count("event") == len(logs) and "generation" in kinds and "report" in kinds and archived

                wait_until("lines of all three kinds", complete)
                self.assertEqual({line["service"] for line in self.lines() + self.lines("feed")}, {"shop"})
                self.assertEqual({line["record"] for line in self.lines("feed")}, {"generation"})
                self.interrupt(both)
                self.interrupt(feed)
                self.assertEqual(collector.stop(), 0)

    @suites("release", "asan")
    def test_the_feed_is_found_again_after_a_restart(self):
        collector, trace = Collector(self), self.trace("g26-gens")
        tail = self.tail(collector, "--kind", "generation", "--json")
        for service in ("before", "after"):
            wait_until("a subscriber", lambda: self.metric(collector, "feed_subscribers") >= 1)

            def is_heard():
                """Sends again: the first connection may have been the listener's own check that it
                works."""
                collector.send(trace, service)
                return any(line["service"] == service for line in self.lines())
            wait_until("its generations", is_heard)
            collector.restart()
        self.interrupt(tail)

    @suites("release", "asan")
    def test_a_watched_report_outlives_its_collector(self):
        collector, trace = Collector(self), self.trace("g26-gens")
        with open(self.folder / "watch.out", "wb") as out:
            watch = self.spawn("watch", TRACECTL, "report", "stw", "--watch", "--json", "--server", collector.to,
                               "--certs", self.certs, stdout=out)
        for service in ("before", "after"):
            collector.send(trace, service)
            wait_until("its report", lambda: f'"{service}"' in (self.folder / "watch.out").read_text())
            collector.restart()
        self.assertIsNone(watch.poll(), self.log("watch"))

    @suites("release", "asan")
    def test_a_name_that_nobody_has_is_said_and_waited_for(self):
        trace, collector = self.trace("g26-gens"), Collector(self)
        collector.send(trace, "shop")
        wait_until("it is known", lambda: any(s.get("service") == "shop" for s in collector.json_lines("status")))
        topics = (("shpo/", 'no service "shpo"; did you mean "shop"?'), ("nope/", 'no service "nope"; known services: shop'),
                  ("shop/on/", 'no instance "on" of shop; did you mean "one"?'))
        for number, (topic, words) in enumerate(topics):
            self.spawn(f"unknown{number}", TRACECTL, "tail", topic, "--server", collector.to, "--certs", self.certs)
            wait_until(words, lambda: f"tracectl tail: {words}; waiting until there is\n" in self.log(f"unknown{number}"))
        tail = self.spawn("later", TRACECTL, "tail", "later/", "-n", "1", "--server", collector.to, "--certs", self.certs)
        wait_until("it waits", lambda: "waiting" in self.log("later"))
        wait_until("its first line comes", lambda: collector.send(trace, "later") and tail.poll() == 0)
        self.assertEqual(collector.ask("findings", "--service", "shpo", expect=1).err, 'tracectl findings: no service "shpo"; did you mean "shop"?\n')
        self.assertEqual(collector.ask("findings", "--service", "later", "--since", "-1m").err, "tracectl findings: none\n")

    def test_what_cannot_be_asked_is_refused_with_a_reason(self):
        collector = Collector(self)
        for args, words in (
                (("--kind", "GoBlocks"), "tables kinds"),
                (("shop/one/events",), "report, generation, alert or event"),
                (("shop/one/event/Gox",), "begins so"),
                (("a/b/c/d/e",), "topic"),
                (("%2",), "two digits"),
                (("shop/", "--service", "shop"), "not in both"),
                (("-n", "0"), "-n needs a number of 1 or more, not '0'"),
                (("--goroutine", "-3"), "--goroutine needs a number of 1 or more"),
                (("--min-duration", "5"), "--min-duration needs a span of time (10ms, 30s, 5m, 24h), not '5'"),
                (("--kind", "alert", "--kind", "generation", "--since", "-5m"), "--since replays events, or alerts alone; reports and generations come live only"),
                (("--kind", "report", "--kind", "stw", "--since", "-5m"), "come live only"),
                (("shop/one/report/", "--since", "-5m"), "come live only"),
                (("one", "two"), "unexpected argument 'two'")):
            done = collector.ask("tail", *args, expect=2)
            self.assertIn(words, done.err, args)
        done = self.tracectl("tail", "--server", f"@{self.folder}/nothing", "--kind", "all", expect=1)
        self.assertIn("nothing", done.err)
