# SPDX-License-Identifier: Apache-2.0
"""A short run of tests/bench/fleet: many streams of the real agent library that join, leave and are killed, busy by day and quiet by
night, and books that close at the end. TC_FULL=1 is ten times as many for ten times as long."""
import csv
import io
import os
import random
import re
import time
import urllib.request

from harness import BUILD, FULL, SOURCE, TRACECTL, Case, Collector, patient, wait_until


class Fleet(Case):
    def test_books_close_after_joins_leaves_kills_and_a_day(self):
        streams, seconds, kill_s = (600, 100, 10) if FULL else (60, 6, 2)
        collector = Collector(self, f"agents.heartbeat={patient(1)}", f"agents.abandon_after={patient(3)}")
        books = self.folder / "books"
        options = {"streams": streams, "processes": 3, "seconds": seconds, "period_ms": 300, "leave_percent": 300, "leave_least": 6, "kill_s": kill_s,
                   "curve_s": seconds, "spool": self.folder / "spool", "books": books}
        out = self.run_program(BUILD / "tests/fleet", collector.ready["agents"], self.certs, self.trace("g26-gens"),
                               *(word for option in options.items() for word in option)).out
        figures = {name: float(value) for name, value in (line.split("\t") for line in out.splitlines())}
        check = ("python3", SOURCE / "tests/bench/check_books.py", books, TRACECTL, collector.to, self.certs, "now")
        said = self.run_program(*check[:-1])
        print(f"fleet: {out.split()} {said.out.strip()}", flush=True)
        self.assertEqual(figures["kills"], (seconds - 1) // kill_s)
        self.assertGreater(figures["streams_left"], 0)
        self.assertGreater(figures["streams_opened"], streams * (1 + figures["kills"] / 3))
        self.assertEqual((figures["unacked_streams"], figures["lost_generations"]), (0, 0))
        self._expect_a_missing_batch_is_found(books, check)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    def _expect_a_missing_batch_is_found(self, books, check):
        lines = books.read_text().splitlines()
        at = next(n for n, line in enumerate(lines) if "\tended\t" in line)
        stream, state, produced, acked, lost = lines[at].split("\t")
        lines[at] = "\t".join((stream, state, produced, str(int(acked) + 1), lost))
        books.write_text("\n".join(lines) + "\n")
        self.assertEqual(self.run_program(*check, expect=1).err.splitlines(),
                         [f"{stream}: {int(acked) + 1} acked and {lost} lost, the collector has {acked} and {lost}"])


class Overload(Case):
    """More streams than the collector calls in time: the limit is a millisecond."""

    def figure(self, collector, name):
        return float(re.search(rf"(?m)^tracecollect_{name} (\S+)$", collector.get("/metrics"))[1])

    def test_streams_are_thinned_and_reports_state_it(self):
        collector = Collector(self, "analysis.thin_after=1ms")
        options = {"streams": 80, "processes": 2, "seconds": 4, "period_ms": 20}
        with open(self.folder / "figures", "wb") as out:
            fleet = self.spawn("fleet", BUILD / "tests/fleet", collector.ready["agents"], self.certs, self.trace("g26-gens"),
                               *(str(word) for option in options.items() for word in option), stdout=out)
        shares = []
        while fleet.poll() is None:
            shares.append(self.figure(collector, "analysed_share"))
        self.assertEqual(fleet.returncode, 0)
        self.assertLess(min(shares), 1)
        figures = dict(line.split("\t") for line in (self.folder / "figures").read_text().splitlines())
        self.assertEqual((figures["unacked_streams"], figures["lost_generations"]), ("0", "0"))
        wait_until("all that waited is ordered", lambda: self.figure(collector, "generations_waiting") == 0)
        began = time.monotonic()
        wait_until("nothing is thinned", lambda: self.figure(collector, "analysed_share") == 1)
        print(f"back after {time.monotonic() - began:.1f} s, {self.figure(collector, 'generations_thinned_total'):.0f} of "
              f"{self.figure(collector, 'generations_ordered_total'):.0f} thinned", flush=True)
        wait_until("the log says so", lambda: "all generations are analysed again" in self.log("collector"))
        self.assertIn("some are thinned", self.log("collector"))
        self._expect_stated(collector)
        self.assertEqual(collector.stop(), 0)

    def _expect_stated(self, collector):
        thinned = [r for r in collector.json_lines("report", "sched", "--window", "all") if r["thinned_events"] > 0]
        self.assertGreater(len(thinned), 0)
        for report in thinned:
            self.assertAlmostEqual(report["analysed_share"], 1 - report["thinned_events"] / report["events"])
            self.assertIn("thinned the stream", report["notes"][0])
        for report in collector.json_lines("report", "gc", "--window", "all"):
            self.assertEqual((report["thinned_events"], report["analysed_share"], report["events"] > 0), (0, 1, True))
        stream = thinned[0]
        text = collector.ask("report", "sched", "--window", "all", "--stream", stream["stream"]).out
        self.assertIn(f"\n{stream['analysed_share'] * 100:.3g} % of the events are analysed.\n", text)
        table = collector.ask("report", "sched", "--window", "all", "--stream", stream["stream"], "--csv").out
        row = next(csv.DictReader(io.StringIO(table, newline="")))
        self.assertAlmostEqual(float(row["analysed_share"]), stream["analysed_share"], 6)


class Day(Case):
    """An operator's day with a fleet: status, page, list, fetch of any moment of any program, retention at work, and two kills of the
    collector. TC_DAY_SECONDS and TC_DAY_STREAMS make it longer: 3600 and 500 are an hour of five hundred programs. TC_DAY_TRACE is the
    trace that each of them sends."""

    seconds, streams = int(os.environ.get("TC_DAY_SECONDS", 12 if FULL else 6)), int(os.environ.get("TC_DAY_STREAMS", 40 if FULL else 20))

    def test_an_operator_sees_and_gets_all_of_it(self):
        collector = Collector(self, f"retention.bytes={self.streams * self.seconds * 3000}", "retention.every=1s")
        books, took = self.folder / "books", {}
        options = {"streams": self.streams, "processes": 4, "seconds": self.seconds, "books": books, "spool": self.folder / "spool"}
        with open(self.folder / "figures", "wb") as figures:
            fleet = self.spawn("fleet", BUILD / "tests/fleet", collector.ready["agents"], self.certs,
                               os.environ.get("TC_DAY_TRACE") or self.trace("g26-gens"),
                               *(word for option in options.items() for word in option), stdout=figures)
        began, kills, rounds = time.monotonic(), 0, 0
        while fleet.poll() is None or kills < 2 or rounds == 0:  # on a slow machine a round takes long
            if kills < 2 and time.monotonic() - began > (kills + 1) * self.seconds / 3:
                self._timed(took, "kill -9 to ready", collector.restart)
                kills += 1
            rounds += self._look(collector, took)
        figures = dict(line.split("\t") for line in (self.folder / "figures").read_text().splitlines())
        print(f"{self.streams} programs, {self.seconds} s, {rounds} rounds; longest: "
              + ", ".join(f"{name} {max(times):.2f} s" for name, times in took.items()), figures, flush=True)
        self.assertEqual((fleet.returncode, kills), (0, 2))
        self.assertGreater(rounds, 0)
        self.assertEqual((figures["unacked_streams"], figures["lost_generations"]), ("0", "0"))
        self.assertGreater(collector.json_lines("verify")[-1]["expired"], 0, "retention has worked")
        said = self.run_program("python3", SOURCE / "tests/bench/check_books.py", books, TRACECTL, collector.to, self.certs)
        print(said.out, flush=True)
        self.assertEqual(collector.stop(), 0)
        self.tracectl("verify", collector.state)

    def _timed(self, took, name, act):
        began = time.monotonic()
        answer = act()
        took.setdefault(name, []).append(time.monotonic() - began)
        return answer

    def _look(self, collector, took):
        """Does one round; returns 1 if there was something to fetch."""
        rows = [row for row in self._timed(took, "status", lambda: collector.json_lines("status")) if row["type"] == "stream"]
        with self._timed(took, "page", lambda: urllib.request.urlopen(f"http://{collector.ready['http']}/")) as page:
            self.assertIn(b"<html", page.read())
        if not rows:
            return 0
        stream = random.choice(rows)["stream"]
        kept = [row for row in self._timed(took, "list", lambda: collector.json_lines("list", "--stream", stream))
                if not row["expired"]]
        if not kept:
            return 0
        row = random.choice(kept)
        out = self.folder / "fetched.trace"
        gens = f"{row['first_gen']}..{row['last_gen']}"
        done = self._timed(took, "fetch", lambda: collector.ask("fetch", "--stream", stream, "--gen", gens, "-o", out, "--no-progress", expect=None))
        if done.returncode != 0:  # retention was faster
            self.assertIn("expired", done.err)
            return 0
        self.tracectl("check", out)
        return 1
