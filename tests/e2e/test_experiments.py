# SPDX-License-Identifier: Apache-2.0
"""A program's own experiments, from its calls to a reader of the archive: F1 to F18, I24, J10."""
import collections
import json
import os
import re
import unittest
import urllib.request

from harness import SANITIZE, TRACECTL, Case, Collector, local_go, wait_until

GETS = 15000
OWN = ("Hit", "Miss", "Evict", "Content")


SPEC = """# Pages of a cache.
experiment PageCache
event Hit page_value reason_string
event Evict ctx=any lru lru_seq
event Content pages_value blob
event Tick
"""

# Emits by the one header and reads its own file back by the other.
EMITS = """#include "page_cache.experiment.h"
int main(int argc, char **argv) {
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "typed" };
  ta_sequence order = { { 0 } };
  if (argc < 3 || page_cache_register() != TA_OK || ta_emit_start(&where, NULL) != TA_OK) return 1;
  page_cache_hit(7, ta_name_of("warm"));
  page_cache_evict(3, &order);
  page_cache_content(ta_name_of("pages"), "abc", 3, 64);
  page_cache_tick();
  return ta_emit_stop(60000) != TA_OK;
}
"""
# Body of a generated reader; {header} and {body} are the experiment's.
READER = """#include <stdio.h>
#include <stdlib.h>
#include "{header}"
#include <online/trace/reader.h>
static void *resize(void *self, void *block, size_t before, size_t bytes) {{
  (void)self, (void)before;
  if (bytes == 0) {{ free(block); return NULL; }}
  return realloc(block, bytes);
}}
static tb_rc look(void *self, const struct to_generation *gen, const struct to_event *ev, size_t n) {{
  (void)self;
  for (; n > 0; ev++, n--) {{
{body}
  }}
  return TB_OK;
}}
int main(int argc, char **argv) {{
  static char bytes[1 << 20];
  struct to_reader *reader;
  struct tb_diag diag = {{ 0 }};
  struct tb_mem mem;
  FILE *file = argc < 2 ? NULL : fopen(argv[1], "rb");
  if (file == NULL) return 2;
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  tb_mem_init(&mem, resize, NULL, 64 << 20);
  if (to_reader_new(&mem, &(struct to_limits){{ 0 }}, 0, (struct to_event_sink){{ NULL, look }}, &diag, &reader) != TB_OK) return 2;
  tb_rc rc = to_reader_read(reader, bytes, n);
  to_reader_free(reader);
  return rc != TB_OK;
}}
"""
READS = READER.format(header="page_cache.reader.h", body="""
    static struct page_cache_hit hit;
    struct page_cache_evict evict;
    struct page_cache_content content;
    struct page_cache_tick tick;
    if (page_cache_hit_read(gen, ev, &hit))
      printf("hit %d %.*s\\n", (int)hit.page_value, (int)hit.reason_string.len, hit.reason_string.data);
    if (page_cache_evict_read(gen, ev, &evict)) printf("evict %d %d\\n", (int)evict.lru_, (int)evict.lru_seq);
    if (page_cache_content_read(gen, ev, &content)) printf("content %d %d\\n", (int)content.pages_value, content.blob_ != 0);
    if (page_cache_tick_read(gen, ev, &tick)) printf("tick %d\\n", tick.g == hit.g);
""")


class Experiments(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()

    def cache(self, collector, gets=GETS):
        """The example, built as a user builds it, and run to its end."""
        said = self.run_program(self.example("cache"), collector.to, self.certs, gets).out
        self.assertIn(f"{gets} gets, ", said)
        self.assertIn(" 0 dropped, 0 misused", said)

    def compile(self, source, *packages):
        """A program of this folder, built as a user builds it."""
        (self.folder / "made.c").write_text(source)
        sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
        self.run_program("cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitize, "made.c", "-I.",
                         *self.flags_of(*packages), "-o", packages[0], cwd=self.folder)
        return self.folder / packages[0]

    def test_a_spec_is_checked_and_becomes_typed_c(self):
        (self.folder / "cache.spec").write_text(SPEC)
        said = self.tracectl("tracepoints", "check", "cache.spec", cwd=self.folder).out
        self.assertEqual(said, "cache.spec: ok: experiment PageCache, 4 events\n")
        rows = [json.loads(row) for row in self.tracectl("tracepoints", "check", "--json", "cache.spec", cwd=self.folder).out.splitlines()]
        self.assertEqual(rows[1], {"experiment": "PageCache", "event": "Evict", "ctx": "any", "args": [
            {"name": "lru", "type": "value"}, {"name": "lru_seq", "type": "seq", "orders": True}]})
        for text, reason in (("experiment A\nevent B ctx=Q\n", "line 2: event B: ctx is"), ("", "no experiment is in it"),
                             ("experiment A\nevent B a_b c d e f\n", "line 2: event B has more than 4"),
                             ("event\n", "line 1: "), ("experiment A id=2\n", "line 1: an id= is given")):
            (self.folder / "bad.spec").write_text(text)
            self.assertIn(f"bad.spec: {reason}", self.tracectl("tracepoints", "check", "bad.spec", cwd=self.folder, expect=1).err)
        self.tracectl("tracepoints", "experiment", "cache.spec", cwd=self.folder)
        self.tracectl("tracepoints", "experiment", "cache.spec", "bad.spec", cwd=self.folder, expect=2)
        collector = Collector(self)
        self.run_program(self.compile(EMITS, "traceagent"), collector.to, self.certs)
        trace = self.folder / "typed.trace"
        collector.ask("fetch", "--full", "--service", "typed", "-o", trace, "--no-progress")
        read = self.run_program(self.compile(READS, "traceonline"), trace).out
        self.assertEqual(read.splitlines(), ["hit 7 warm", "evict 3 1", "content 64 1", "tick 1"])

    def fetch(self, collector, name, *more):
        trace = self.folder / name
        return trace, collector.ask("fetch", "--service", "cache", "-o", trace, "--no-progress", *more)

    def events(self, trace):
        return [json.loads(line) for line in self.tracectl("cat", "--json", trace).out.splitlines()]

    def check_story(self, events):
        """Each get is told once, and the evictions in their order."""
        own = [event for event in events if event["event"] in OWN]
        count = collections.Counter(event["event"] for event in own)
        self.assertEqual(count["Hit"] + count["Miss"], GETS)
        self.assertEqual(count["Content"], 1)
        self.assertEqual({event["experiment"] for event in own}, {"Cache"})
        self.assertEqual({event["kind"] for event in own}, {"Experimental"})
        reasons = {event["args"]["reason_string"] for event in own if event["event"] == "Miss"}
        self.assertEqual(reasons, {"never seen", "gone again"})
        number = 0
        for event in events:
            if event["event"] == "Sync":
                number = 0
            elif event["event"] == "Evict":
                number += 1
                self.assertEqual(event["args"]["shelf_seq"], number)
        self.assertGreater(count["Evict"], 0)
        return count

    def test_all_of_it_is_archived_and_go_reads_the_rest(self):
        collector = Collector(self)
        self.cache(collector)
        full, said = self.fetch(collector, "full.trace", "--full")
        self.assertNotIn("left out", said.err)
        events = self.events(full)
        self.check_story(events)
        self.assertIn(": ok:", self.tracectl("check", full).out)
        parsed = self.tracectl("cat", "-d", "parsed", full).out
        self.assertRegex(parsed, r' Experimental Time=\d+ Name=Miss Args=\[page_value=Value\{Uint64\(\d+\)\}, reason_string="never seen"\]')

        safe, said = self.fetch(collector, "safe.trace")
        self.assertIn("of experiments Go's tools cannot read were left out; --full keeps them", said.err)
        rest = self.events(safe)
        self.assertEqual([event["event"] for event in rest],
                         [event["event"] for event in events if event["event"] not in OWN])
        if self.go is not None:
            utc = {**os.environ, "TZ": "UTC"}
            self.assertEqual(self.go.parsed(self, safe).out, self.tracectl("cat", "-d", "parsed", safe, env=utc).out)
        collector.ask("verify")

    @unittest.skipIf(SANITIZE, "sends bytes, as the tests of send do")
    def test_a_file_says_it_all_to_another_collector(self):
        collector = Collector(self)
        self.cache(collector)
        full, _ = self.fetch(collector, "full.trace", "--full")
        other = Collector(self, name="other")
        other.send(full, "cache")
        again, _ = self.fetch(other, "again.trace", "--full")
        self.assert_same_bytes(again, full)

    def test_a_restarted_collector_orders_what_it_finds(self):
        """Generations not ordered before a kill are ordered after it, and not reported as
        broken."""
        collector = Collector(self)
        self.cache(collector)
        collector.kill()
        collector.restart()
        full, said = self.fetch(collector, "full.trace", "--full")
        self.assertNotIn("broken", said.err)
        self.check_story(self.events(full))
        collector.ask("verify")

    def leases(self, collector):
        """Whose reader asks for events: one that has not yet may take what comes now for older than itself."""
        with urllib.request.urlopen(f"http://{collector.ready['http']}/metrics") as page:
            return float(re.search(r"^tracecollect_leases_polled (\S+)$", page.read().decode(), re.M).group(1))

    def test_a_reader_that_leases_them_gets_them_by_name(self):
        collector = Collector(self)
        lines = self.folder / "tail.out"
        with open(lines, "wb") as out:
            tail = self.spawn("tail", TRACECTL, "tail", "cache/", "--kind", "experiments", "--json", "--server", collector.to,
                              "--certs", self.certs, stdout=out)
        wait_until("a lease", lambda: self.leases(collector) == 1)
        self.cache(collector, 2000)
        wait_until("the last event", lambda: '"event":"Content"' in lines.read_text())
        tail.terminate()
        tail.wait()
        got = [json.loads(line) for line in lines.read_text().splitlines()]
        got = [event for event in got if event.get("record") == "event"]
        count = collections.Counter(event["event"] for event in got)
        self.assertEqual(count["Hit"] + count["Miss"], 2000)
        miss = next(event for event in got if event["event"] == "Miss")
        self.assertEqual(miss["experiment"], "Cache")
        self.assertEqual(miss["args"]["reason_string"], "never seen")
