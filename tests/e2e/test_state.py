# SPDX-License-Identifier: Apache-2.0
"""`tracectl state`: every goroutine of one moment, against a replay of what `tracectl cat -d json` prints."""
import json
import random

from harness import FULL, Case, Collector

INSTANTS = 1000 if FULL else 8


class State(Case):
    read = {}  # events by name of the trace

    def events(self, trace):
        if trace.name not in self.read:
            self.read[trace.name] = [json.loads(line) for line in self.tracectl("cat", "-d", "json", trace).out.split("\n")[:-1]]
        return self.read[trace.name]

    def state(self, trace, at, *more):
        return [json.loads(line) for line in self.tracectl("state", "--at", str(at), trace, "--json", *more).out.split("\n")[:-1]]

    def replay(self, events, at):
        """By goroutine: state, since when, whether that is known, reason, the functions of its stack."""
        known = {}
        for event in events:
            if event["time"] > at:
                break
            if "goroutine" not in event or event["from"] == event["to"]:
                continue
            g = event["goroutine"]
            if event["to"] == "NotExist":
                del known[g]
                continue
            stack = event.get("transition_stack") or (event.get("stack") if event["g"] == g else None)
            known[g] = (event["to"].lower(), event["time"], event["from"] != "Undetermined", event.get("reason", ""),
                        [frame["func"] for frame in stack] if stack else None)
        return known

    def test_it_is_what_a_replay_finds(self):
        for name in ("g22-mix", "g25-mix", "g26-gens", "g26-cgo"):
            trace = self.trace(name)
            events = self.events(trace)
            chance = random.Random(name)
            first, last = events[1]["time"], events[-1]["time"]
            instants = [chance.randint(first, last) for _ in range(INSTANTS)] + [chance.choice(events[1:])["time"] for _ in range(5)] + [first, last]
            for at in instants:
                want = self.replay(events, at)
                got = {row["goroutine"]: row for row in self.state(trace, at)}
                self.assertEqual({g: (row["state"], row["since_known"] and row["since_ns"]) for g, row in got.items()},
                                 {g: (state, since_known and since) for g, (state, since, since_known, _, _) in want.items()}, (name, at))
                for g, (state, _, since_known, reason, stack) in want.items():
                    if state == "waiting" and since_known:
                        self.assertEqual(got[g]["reason"], reason, (name, at, g))
                        self.assertEqual([frame["function"] for frame in got[g]["stack"]], stack or [], (name, at, g))

    def test_it_says_what_created_each(self):
        trace = self.trace("g26-gens")
        events = self.events(trace)
        at = events[-1]["time"]
        created = {event["goroutine"]: event for event in events if event["event"] == "GoCreate"}
        rows = [row for row in self.state(trace, at) if row["goroutine"] in created]
        self.assertGreater(len(rows), 3)
        for row in rows:
            event = created[row["goroutine"]]
            self.assertEqual((row["created_ns"], row["creator"]), (event["time"], event["g"]))
            self.assertEqual([frame["function"] for frame in row["creation_stack"]], [frame["func"] for frame in event["stack"]])
            self.assertTrue(row["entry"])

    def test_a_part_knows_no_earlier_begins(self):
        trace = self.trace("g26-gens")
        at = next(event["time"] for event in self.events(trace) if event["event"] == "Sync" and event["n"] == 10) + 1_000_000
        whole, part = (self.state(trace, at, *more) for more in ((), ("--gen", "9..10")))
        self.assertEqual([(row["goroutine"], row["state"]) for row in sorted(whole, key=lambda row: row["goroutine"])],
                         [(row["goroutine"], row["state"]) for row in sorted(part, key=lambda row: row["goroutine"])])
        self.assertLess(sum(row["since_known"] for row in part), sum(row["since_known"] for row in whole))

    def test_text_and_wall_clock(self):
        trace = self.trace("g26-gens")
        rows = self.state(trace, self.events(trace)[5000]["time"])
        wall = rows[0]["wall_ns"]
        out = self.tracectl("state", "--at", f"@{wall // 10**9}.{wall % 10**9:09}", trace, "--top", "5").out.splitlines()
        self.assertRegex(out[0], rf": {len(rows)} goroutines at {rows[0]['at_ns']} \(.*Z\): \d+ running, \d+ runnable, \d+ waiting, \d+ in system calls$")
        self.assertEqual(out[1].split()[:4], ["GOROUTINE", "ENTRY", "STATE", "FOR"])
        self.assertEqual(len(out), 2 + 5 + 1)
        self.assertEqual(out[-1], f"and {len(rows) - 5} more (--top 0: all)")

    def test_mistakes(self):
        trace = self.trace("g26-gens")
        self.assertIn("--at T is required", self.tracectl("state", trace, expect=2).err)
        self.assertIn("outside of what is read", self.tracectl("state", "--at", "5", trace, expect=1).err)
        said = self.tracectl("state", "--at", "now", trace, expect=1).err
        self.assertRegex(said, r"outside of what is read, which has \d+ to \d+; --at 20\S+Z to 20\S+Z$")
        self.tracectl("state", "--at", said.split()[-1], trace)
        self.assertIn("no wall clock is in it", self.tracectl("state", "--at", "now", self.trace("g22-mix"), expect=1).err)
        self.assertIn("--at needs a time", self.tracectl("state", "--at", "soon", trace, expect=2).err)
        torn = self.folder / "torn"
        torn.write_bytes(trace.read_bytes()[:80000])
        last = self.events(trace)[-1]["time"]
        self.assertIn("middle of a batch", self.tracectl("state", "--at", str(last), torn, expect=1).err)
        self.assertGreater(len(self.state(torn, self.events(trace)[100]["time"])), 3)

    def test_of_a_collector(self):
        trace = self.trace("g26-gens")
        collector = Collector(self)
        collector.send(trace, "shop")
        want = self.state(trace, self.events(trace)[11500]["time"])
        wall = want[0]["wall_ns"]
        at = f"@{wall // 10**9}.{wall % 10**9:09}"
        got = [json.loads(line) for line in collector.ask("state", "--service", "shop", "--at", at, "--json").out.split("\n")[:-1]]
        self.assertEqual([{**row, "stream": ""} for row in got], [{**row, "stream": ""} for row in want])
        self.assertEqual(collector.stop(), 0)
