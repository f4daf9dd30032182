# SPDX-License-Identifier: Apache-2.0
"""A short run of tests/bench/fleet: many streams of the real agent library that join, leave and are killed, busy by day and quiet by
night, and books that close at the end. TC_FULL=1 is ten times as many for ten times as long."""
import os

from harness import BUILD, SOURCE, TRACECTL, Case, Collector

FULL = bool(os.environ.get("TC_FULL"))


class Fleet(Case):
    def test_books_close_after_joins_leaves_kills_and_a_day(self):
        streams, seconds, kill_s = (600, 100, 10) if FULL else (60, 10, 3)
        collector = Collector(self, "agents.heartbeat=1s", "agents.abandon_after=3s")
        books = self.folder / "books"
        options = {"streams": streams, "processes": 3, "seconds": seconds, "period_ms": 300, "leave_percent": 300, "kill_s": kill_s,
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
