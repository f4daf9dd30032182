# SPDX-License-Identifier: Apache-2.0
"""A C program in its own words: no report of it speaks of goroutines, and an event loop that waits for work is idle."""
import json
import os
import re
import shutil
import unittest

from harness import BUILD, SANITIZE, SOURCE, Case, Collector, corpus

LIBRARY = BUILD / "lib/libtraceagent-preload.so"
GOS_WORDS = re.compile(r"[Gg]oroutine|GOROUTINE|\bPs?\b|cgo|\bruntime\b|GOMAXPROCS|\bworld\b|sync\.\(")

# A loop that answers ten words, 50 ms apart, and a worker that waits for jobs; and a thread that waits for a lock.
PROGRAM = r"""
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, jobs = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job = PTHREAD_COND_INITIALIZER;
static int todo, wire[2], peer[2];
static sem_t asking;
__attribute__((noinline)) void *job_worker(void *arg) {
  pthread_mutex_lock(&jobs);
  while (todo >= 0) {
    pthread_cond_wait(&job, &jobs);
    if (todo > 0) todo--;
  }
  pthread_mutex_unlock(&jobs);
  return arg;
}
static void *client(void *arg) {
  for (int i = 0; i < 10; i++) {
    usleep(50000);
    if (write(wire[1], "x", 1) != 1) return arg;
  }
  sem_wait(&asking);
  usleep(50000);
  return write(peer[1], "x", 1) == 1 ? arg : NULL;
}
static void *locker(void *arg) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return arg;
}
int main(void) {
  struct epoll_event event = { .events = EPOLLIN };
  pthread_t worker, sender, other;
  int loop = epoll_create1(0);
  char word;
  if (pipe(wire) != 0 || pipe(peer) != 0 || epoll_ctl(loop, EPOLL_CTL_ADD, wire[0], &event) != 0) return 1;
  pthread_create(&worker, NULL, job_worker, NULL);
  pthread_create(&sender, NULL, client, NULL);
  for (int i = 0; i < 10; i++) {
    if (epoll_wait(loop, &event, 1, -1) != 1 || read(wire[0], &word, 1) != 1) return 1;
    pthread_mutex_lock(&jobs);
    todo++;
    pthread_cond_signal(&job);
    pthread_mutex_unlock(&jobs);
  }
  pthread_mutex_lock(&lock);
  pthread_create(&other, NULL, locker, NULL);
  sem_post(&asking);
  if (poll(&(struct pollfd){ .fd = peer[0], .events = POLLIN }, 1, -1) != 1) return 1;
  usleep(100000);
  pthread_mutex_unlock(&lock);
  pthread_join(other, NULL);
  pthread_mutex_lock(&jobs);
  todo = -1;
  pthread_cond_signal(&job);
  pthread_mutex_unlock(&jobs);
  pthread_join(worker, NULL);
  pthread_join(sender, NULL);
  return 0;
}
"""


class CWords(Case):
    def shapes(self):
        folder = self.folder / "shapes"
        folder.mkdir()
        self.run_program(BUILD / "tests/emit_shapes", folder)
        return sorted(folder.glob("2[26]-*.trace"))

    def report(self, *arguments):
        return self.tracectl("report", *arguments, "--no-progress").out

    def test_no_report_of_what_the_agent_emits_is_in_gos_words(self):
        traces = self.shapes()
        self.assertGreater(len(traces), 40)
        for trace in traces:
            lines = self.report("all", trace).splitlines()
            found = [line for line in lines if GOS_WORDS.search(line) and not line.startswith("     tracectl ")]
            self.assertEqual(found, [], trace.name)

    def test_reports_that_a_program_does_not_need_are_left_out_in_one_line_and_said_if_asked_for(self):
        trace = next(path for path in self.shapes() if path.name.startswith("26-waits_have_reasons"))
        text = self.report("all", trace)
        self.assertIn("\nLeft out, as the trace of this C program has none: stw, tasks, regions, cpu, gc.\n", text)
        self.assertNotRegex(text, r"(?m)^gc  ")
        self.assertIn("Pauses of the whole program (ta_pause_begin) that ended.", self.report("stw", trace))
        kinds = [json.loads(line)["kind"] for line in self.report("all", trace, "--json").splitlines()]
        self.assertIn("gc", kinds)

    def test_names_in_json_and_csv_are_those_of_go(self):
        trace = next(path for path in self.shapes() if path.name.startswith("26-waits_have_objects"))
        ours = {row["kind"]: row for row in map(json.loads, self.report("all", trace, "--json").splitlines())}
        gos = {row["kind"]: row for row in map(json.loads, self.report("all", corpus()[0], "--json").splitlines())}
        for kind, row in ours.items():
            self.assertEqual((row.pop("program"), set(row)), ("C", set(gos[kind])), kind)
            for part in ("figures", "tables", "options"):
                self.assertEqual(set(row[part]), set(gos[kind][part]), kind)
        self.assertIn("goroutine", self.report("block", trace, "--csv", "--table", "longest").splitlines()[0])

    @unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
    def test_a_loop_and_a_worker_that_wait_for_work_are_idle_and_a_lock_is_not(self):
        (self.folder / "waits.c").write_text(PROGRAM)
        self.run_program("cc", "-D_GNU_SOURCE", "-O2", "-rdynamic", "-pthread", self.folder / "waits.c", "-o", self.folder / "waits")
        library = shutil.copy(LIBRARY, self.folder)
        collector = Collector(self)
        for stacks in ("0", "1", "16"):
            with self.subTest(stacks=stacks):
                service = f"waits{stacks}"
                self.run_program(self.folder / "waits", env={
                    **os.environ, "LD_PRELOAD": str(library), "TRACEAGENT_SERVER": collector.to, "TRACEAGENT_CERTS": str(self.certs),
                    "TRACEAGENT_DELAY_MS": "0", "TRACEAGENT_EXIT_MS": "60000", "TRACEAGENT_SERVICE": service, "TRACEAGENT_STACKS": stacks})
                trace = self.folder / f"{service}.trace"
                collector.ask("fetch", "--service", service, "-o", trace, "--no-progress")
                self.check_waits(trace)
                self.check_places(trace, stacks)

    def check_places(self, trace, stacks):
        """A call without a line has none, and the library's own source is no place of the program."""
        asked = self.tracectl("query", trace, "SELECT DISTINCT place(stack) place FROM waits", "--json", "--no-progress").out
        places = [row["place"] for row in map(json.loads, asked.splitlines())]
        self.assertNotIn(":0", " ".join(places))
        for call in ("epoll_wait", "pthread_cond_wait", "pthread_mutex_lock") if stacks != "16" else ():
            self.assertIn(call, places)
        self.assertNotRegex(self.report("all", trace), r"calls\.def|\w:0\b")

    def check_query_agrees(self, trace):
        rows = json.loads(self.report("block", trace, "--json"))["tables"]["by_reason"]
        said = {row["reason"]: row["idle_ns"] for row in rows if row["idle_ns"] > 0}
        asked = self.tracectl("query", trace, "SELECT reason, sum(duration_ns) ns FROM waits WHERE idle AND NOT duration_ns IS NULL GROUP BY 1",
                              "--json", "--no-progress").out
        self.assertEqual({row["reason"]: row["ns"] for row in map(json.loads, asked.splitlines())}, said, trace)

    def test_reports_and_queries_agree_on_what_is_idle(self):
        for name in ("c-locks", "g26-gens", "g22-mix"):
            with self.subTest(name=name):
                self.check_query_agrees(SOURCE / f"tests/data/{name}.trace.zst")

    def check_waits(self, trace):
        self.check_query_agrees(trace)
        rows = {row["reason"]: row for row in json.loads(self.report("block", trace, "--json"))["tables"]["by_reason"]}
        self.assertGreater(rows["network (poll)"]["idle_ns"], 400e6)  # ten times 50 ms
        self.assertEqual(rows["network (poll)"]["blocked"]["count"], 0)
        self.assertGreater(rows["sync (condition)"]["idle_ns"], 400e6)
        self.assertEqual(rows["sync (condition)"]["blocked"]["count"], 0)
        self.assertGreater(rows["network"]["blocked"]["total_ns"], 20e6)  # a poll of one descriptor
        self.assertGreater(rows["sync"]["blocked"]["total_ns"], 50e6)
        self.assertEqual(rows["sync"]["idle_ns"], 0)
        first = " ".join(self.report(trace).split())
        self.assertRegex(first, r"A wait for lock \S+( at locker\S*)? took [\d.]+ ms; held by waits tracectl report contention \S+ --table by_holder")
        self.assertNotRegex(first, r"\bat (pthread_|epoll_|poll\b)")
        text = self.report("all", trace)
        self.assertEqual([line for line in text.splitlines() if GOS_WORDS.search(line)], [])
        for call in ("epoll_wait", "pthread_cond_wait", "pthread_mutex_lock", "poll"):
            self.assertRegex(text, rf"\b{call}\b")
        why = self.report("why", trace, "--goroutine", self.waiter(trace), "--at", self.at)
        self.assertRegex(why, r"^thread \d+ \(Waiting\) took .* behind thread ")
        self.assertEqual([line for line in why.splitlines() if GOS_WORDS.search(line)], [])

        state = self.tracectl("state", "--at", self.at, trace, "--no-progress").out
        self.assertRegex(state, r"^\S+: \d+ threads at ")
        self.assertEqual([line for line in state.splitlines() if GOS_WORDS.search(line)], [])

    def waiter(self, trace):
        """The thread that waited for the lock, and a moment at which it did."""
        longest = json.loads(self.report("sync", trace, "--json", "--table", "longest"))["tables"]["longest"]
        lock = next(row for row in longest if row["reason"] == "sync")
        self.at = str(lock["start_ns"] + lock["waited_ns"] // 2)
        return str(lock["goroutine"])


if __name__ == "__main__":
    unittest.main()
