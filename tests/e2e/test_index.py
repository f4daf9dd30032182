# SPDX-License-Identifier: Apache-2.0
"""`tracectl index` and parts of a trace: reading a part gives the events of that part, and nothing
else."""
import json
import os
import re

from harness import Case, Collector, wait_until


class Index(Case):
    def rows(self, file):
        return [json.loads(line) for line in self.tracectl("index", "--json", file).out.splitlines()]

    def cut(self, trace, first, last):
        """A file of just these generations, cut by hand."""
        rows, bytes_ = self.rows(trace), trace.read_bytes()
        begin, end = rows[first - 1]["offset"], rows[last - 1]["offset"] + rows[last - 1]["bytes"]
        file = self.folder / f"cut-{first}-{last}"
        file.write_bytes(bytes_[:16] + bytes_[begin:end])
        return file

    def test_generations_stand_one_after_the_other_and_every_event_is_counted(self):
        for name, generations in (("g22-mix", 1), ("g25-mix", 1), ("g26-gens", 26), ("g26-labels", 1)):
            trace = self.trace(name)
            rows = self.rows(trace)
            self.assertEqual([row["gen"] for row in rows], list(range(1, generations + 1)))
            at = 16
            for row in rows:
                self.assertEqual(row["offset"], at)
                at += row["bytes"]
            self.assertEqual(at, trace.stat().st_size)
            words = [line.split()[:2] for line in self.tracectl("cat", "-d", "wire", trace).out.splitlines()]
            timed = [word for word in words if len(word) == 2 and word[0] != "ClockSnapshot" and
                     (word[1].startswith("dt=") or word[0] == "CPUSample")]
            self.assertEqual(sum(row["events"] for row in rows), len(timed))
            for a, b in zip(rows, rows[1:]):
                self.assertLess(a["since_ns"], b["since_ns"])
                self.assertEqual(a["ended"], b["began"])

    def test_the_parts_are_the_whole(self):
        trace = self.trace("g26-gens")
        whole = self.tracectl("cat", "-d", "wire", trace).out
        parts = "".join(self.tracectl("cat", "-d", "wire", "--gen", gens, trace).out
                        for gens in ("..3", "4", "5..20", "21.."))
        self.assertEqual(parts, whole)

    def test_a_part_is_printed_as_a_trace_of_its_own(self):
        trace = self.trace("g26-gens")
        packed = self.folder / "packed.zst"
        self.run_program("zstd", "-q", trace, "-o", packed)
        for form in ("parsed", "json"):
            for first, last in ((1, 1), (7, 7), (10, 14), (26, 26)):
                want = self.tracectl("cat", "-d", form, self.cut(trace, first, last)).out
                for file in (trace, packed):
                    self.assertEqual(self.tracectl("cat", "-d", form, "--gen", f"{first}..{last}", file).out, want)

    def test_times_choose_events(self):
        trace = self.trace("g26-gens")
        rows = self.rows(trace)
        whole = self.tracectl("cat", "-d", "json", trace).out.splitlines()
        part = self.tracectl("cat", "-d", "json", "--since", rows[4]["began"], "--until", rows[6]["began"], trace).out.splitlines()
        self.assertGreater(len(part), 300)
        self.assertLess(len(part), len(whole) / 10)
        times = [json.loads(line)["time"] for line in part]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-2] - times[0], rows[6]["since_ns"] - rows[4]["since_ns"] + 2_000_000)
        for args, reason in ((("--since", "2100-01-01"), "no event"), (("--until", "2001-01-01"), "no such generation"),
                             (("--gen", "100.."), "1 to 26")):
            done = self.tracectl("cat", *args, trace, expect=1)
            self.assertEqual(done.out, "")
            self.assertIn(reason, done.err)
        self.assertIn("--gen", self.tracectl("cat", "--since", "@1", self.trace("g22-mix"), expect=1).err)

    def of_goroutine(self, event, goroutine):
        return goroutine in (event["g"], event.get("goroutine"), event["event"] == "GCMarkAssistActive" and event["scope_id"])

    def active(self, event):
        """Whom the event is about, but for a status that says of a goroutine that it waits."""
        waits = event["event"].startswith("GoStatus") and event["to"] not in ("Running", "Syscall")
        return {event["g"], None if waits else event.get("goroutine")} - {None}

    def test_a_goroutine_is_found_where_it_does_something(self):
        trace = self.trace("g26-gens")
        where = {}  # goroutine: generations
        for line in self.tracectl("cat", "-d", "json", trace).out.splitlines():
            event = json.loads(line)
            generation = event.get("generation", 0) if event["event"] == "Sync" else generation
            for goroutine in self.active(event) if event["event"] != "Sync" else ():
                where.setdefault(goroutine, set()).add(generation)
        rows = self.rows(trace)
        for row in rows:
            self.assertEqual(row["goroutines"], sum(row["gen"] in gens for gens in where.values()), row)
        rare = sorted((g for g in where if 1 < len(where[g]) < 20), key=lambda g: len(where[g]))
        self.assertGreater(len(rare), 2)
        for goroutine in (rare[0], rare[len(rare) // 2], rare[-1], 1):
            found = self.tracectl("index", "--json", "--goroutine", goroutine, trace).out.splitlines()
            self.assertEqual([json.loads(line)["gen"] for line in found], sorted(where[goroutine]))
        self.assertEqual(self.tracectl("index", "--json", "--goroutine", 999999, trace).out, "")

    def test_only_generations_with_a_goroutine_are_read_for_it(self):
        trace = self.trace("g26-gens")
        self.tracectl("index", "--write", trace)
        goroutine, gens = 19, [1, 3, 5, 8, 11, 13, 15, 18, 20, 23]
        rows = self.rows(trace)
        each = [[event for event in map(json.loads, self.tracectl("cat", "--json", "--gen", gen, trace).out.splitlines())
                 if self.of_goroutine(event, goroutine)] for gen in gens]
        self.assertTrue(all(each))
        bytes_ = bytearray(trace.read_bytes())
        for row in rows:
            if row["gen"] not in gens:
                bytes_[row["offset"]:row["offset"] + row["bytes"]] = b"\xee" * row["bytes"]
        trace.write_bytes(bytes_)
        os.utime(self.folder / f"{trace.name}.index")
        for args, want in (((), sum(each, [])), (("--gen", "6..13"), sum(each[3:6], [])), (("--since", rows[14]["began"]), sum(each[6:], []))):
            got = self.tracectl("cat", "--json", "--goroutine", goroutine, *args, trace).out.splitlines()
            self.assertEqual([json.loads(line) for line in got], want, args)
        parsed = self.tracectl("cat", "--goroutine", goroutine, trace).out.splitlines()
        self.assertEqual(sum(line.startswith("M=") for line in parsed), sum(map(len, each)))
        for args in (("999999",), (goroutine, "--gen", "6..7")):
            self.assertIn("does nothing in generations", self.tracectl("cat", "--goroutine", *args, trace, expect=1).err)

    def test_usage_is_told(self):
        trace = self.trace("g26-labels")
        for args in (("--gen", "2..1", trace), ("--gen", "x", trace), ("--since", "soon", trace),
                     ("--since", "now", "--until", "-5m", trace), ("--gen", "1", "-"), ("--goroutine", "0", trace), ("--goroutine", "g1", trace),
                     ("--goroutine", "1", "-d", "wire", trace)):
            self.tracectl("cat", *args, expect=2)
        self.tracectl("index", expect=2)
        self.tracectl("index", "--write", "-", expect=2)
        packed = self.folder / "packed.zst"
        self.run_program("zstd", "-q", trace, "-o", packed)
        self.assertIn("unpack it first", self.tracectl("index", "--write", packed, expect=1).err)
        self.assertFalse((self.folder / "packed.zst.index").exists())

    def test_an_index_saves_looking_and_one_that_does_not_fit_is_passed_over(self):
        trace = self.trace("g26-gens")
        want = self.tracectl("cat", "--gen", "9", trace).out
        self.tracectl("index", "--write", trace)
        index = self.folder / f"{trace.name}.index"
        # All before the generation is spoilt: only who is told where it begins finds it.
        bytes_ = bytearray(trace.read_bytes())
        bytes_[16:self.rows(trace)[7]["offset"]] = b"\xee" * (self.rows(trace)[7]["offset"] - 16)
        trace.write_bytes(bytes_)
        os.utime(index)
        self.assertEqual(self.tracectl("cat", "--gen", "9", trace).out, want)
        stamp = trace.stat().st_mtime
        os.utime(index, (stamp - 100, stamp - 100))
        self.tracectl("cat", "--gen", "9", trace, expect=1)
        os.utime(index)
        index.write_bytes(index.read_bytes()[:-1])
        self.tracectl("cat", "--gen", "9", trace, expect=1)

    def test_a_fault_in_a_part_is_placed_in_the_file(self):
        trace = self.trace("g26-gens")
        row = self.rows(trace)[4]
        bytes_ = bytearray(trace.read_bytes())
        at = row["offset"] + row["bytes"] - 400
        bytes_[at:at + 200] = b"\xff" * 200
        broken = self.folder / "broken"
        broken.write_bytes(bytes_)
        said = [re.search(r"offset (\d+)", self.tracectl("cat", *args, broken, expect=1).err)[1]
                for args in ((), ("--gen", "5"))]
        self.assertEqual(said[0], said[1])

    def test_what_is_no_trace_is_told(self):
        junk = self.folder / "junk"
        junk.write_bytes(b"go 1.26 trace\0\0\0" + b"\xee" * 100)
        self.assertIn("offset 16", self.tracectl("index", junk, expect=1).err)
        self.tracectl("index", self.folder, expect=1)
        self.tracectl("cat", "--gen", "1", junk, expect=1)

    def test_a_segments_meta_is_its_index(self):
        collector = Collector(self, "segment.generations_max=100")
        collector.send(self.trace("g26-gens"), "shop")
        wait_until("every generation is ordered", lambda: all(
            row["analysis"] == "ok" for row in collector.json_lines("list", "--service", "shop")))
        self.assertEqual(collector.stop(), 0)
        segment = next(collector.state.glob("archive/*/*/*.trace"))
        copy = self.folder / "copy.trace"
        copy.write_bytes(segment.read_bytes())
        fields = ("gen", "offset", "bytes")
        want = [[row[field] for field in fields] for row in self.rows(copy)]
        self.assertEqual([[row[field] for field in fields] for row in self.rows(segment)], want)
        self.assertTrue(self.rows(segment)[3]["ended"])
        self.assertEqual(self.tracectl("cat", "--gen", "12", segment).out, self.tracectl("cat", "--gen", "12", copy).out)
