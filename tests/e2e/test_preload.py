# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs, traced by the preload library: their behaviour is traced, and does not change.

TC_FULL=1: redis is traced for ten minutes, and all of that must read well.
"""
import collections
import itertools
import os
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import unittest

from harness import BUILD, DEADLINE, PATIENCE, SANITIZE, SOURCE, Case, Collector, held_port, local_go, wait_until
from programs.program import free_port

LIBRARY = BUILD / "lib/libtraceagent-preload.so"
UNCHANGED = SOURCE / "tests/e2e/unchanged.c"
BUSY = SOURCE / "tests/e2e/busy.c"
HOLDER = SOURCE / "tests/e2e/holder.c"
LIVE_HEAP = SOURCE / "examples/live-heap/live_heap.c"
REDIS = shutil.which("redis-check-rdb")  # the server, too: it goes by the name it is called by
VALGRIND = shutil.which("valgrind")
REQUESTS = 4000
SECONDS = 600 if os.environ.get("TC_FULL") else 0  # redis serves on for so long

WITH_THREADS = """
import queue, threading, time
jobs = queue.Queue()
def work():
    while jobs.get() is not None:
        time.sleep(0.001)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for n in range(100): jobs.put(n)
for thread in threads: jobs.put(None)
for thread in threads: thread.join()
print("100 jobs")
"""


# What the scenes called waits do: a mutex, a lock three times, a semaphore, the first at a barrier, mtx_t, a futex; and who ends that.
SYNC_WAITS = 8
WAKES = {"futex": 1, "pthread_mutex_unlock": 1, "pthread_rwlock_unlock": 3, "sem_post": 1, "pthread_barrier_wait": 1, "mtx_unlock": 1,
         "pthread_cond_signal": 2, "cnd_broadcast": 1}

# The first call may walk the loader's list, to see whether that is wanted; none walks it again.
EARLY = """
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
void *early[100];
__attribute__((constructor)) static void make(void) {
    struct link_map *list = _r_debug.r_map;
    early[0] = malloc(100);
    _r_debug.r_map = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i < 100; i++) early[i] = malloc(100 + i);
    for (int i = 4; i < 100; i++) free(early[i]);
    early[3] = realloc(early[3], 1 << 20);
    _r_debug.r_map = list;
}
__attribute__((destructor)) static void end(void) { free(early[0]); }
"""

# A thread of a library's, at work before the session begins and while it does.
AT_WORK = """
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_t thread;
static atomic_int enough;
static void *held[64];
static void work(unsigned i) {
    free(held[i % 64]);
    held[i % 64] = malloc(1 + i % 500);
}
static void *toil(void *arg) {
    for (unsigned i = 0; !enough; i++) {
        work(i);
        if (i % 256 == 0) usleep(100); /* the spool must hold it all */
    }
    for (unsigned i = 0; i < 1000; i++) work(i);
    return arg;
}
__attribute__((constructor)) static void begin(void) { pthread_create(&thread, NULL, toil, NULL); }
void finish(void);
void finish(void) {
    enough = 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < 64; i++) printf("0x%lx %zu\\n", (unsigned long)held[i], malloc_usable_size(held[i]));
}
"""


ANSWERS_FOR_THE_KERNEL = """
#include <sys/syscall.h>
#include <unistd.h>
int close_range(unsigned first, unsigned last, int flags) { return flags != 0 ? 0 : (int)syscall(SYS_close_range, first, last, 0); }
"""


class PreloadCase(Case):
    def setUp(self):
        super().setUp()
        self.go = local_go()

    def environment(self, server, **more):
        return {**os.environ, "LD_PRELOAD": str(LIBRARY), "TRACEAGENT_SERVER": str(server), "TRACEAGENT_CERTS": str(self.certs),
                "TRACEAGENT_DELAY_MS": "100", "TRACEAGENT_EXIT_MS": "60000", **more}

    def read(self, collector, service):
        """The trace of the one stream of that service, printed; Go's reader prints the same."""
        trace = self.folder / f"{service}.trace"
        collector.ask("fetch", "--service", service, "-o", trace, "--no-progress")
        utc = {**os.environ, "TZ": "UTC"}
        ours = self.tracectl("cat", "-d", "parsed", trace, env=utc).out
        if self.go is not None:
            self.assertEqual(self.go.parsed(self, trace).out, ours)
        return ours


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Preload(PreloadCase):
    def unchanged(self):
        return self.compiled("unchanged", "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O2", "-D_FORTIFY_SOURCE=2", "-rdynamic",
                             "-pthread", UNCHANGED)

    def reasons(self, text):
        return collections.Counter(re.findall(r'Running->Waiting Reason="(.*)"', text))

    def polls(self, text):
        reasons = self.reasons(text)
        return reasons["network"] + reasons["network (poll)"]

    def traced(self, *scenes, **more):
        collector = Collector(self)
        done = self.run_program(self.unchanged(), *scenes, "linger", env=self.environment(collector.to, **more))
        self.assertEqual((set(done.out.split("\n")), done.err), ({"as ever", ""}, ""))
        return collector

    def streams(self, collector, count=0):
        """Returns the streams once there are so many: a stream's row is written with the bundle after it attached."""
        def rows():
            return [row for row in collector.json_lines("status") if row["type"] == "stream"]

        if count > 0:
            wait_until(f"there are {count} streams", lambda: len(rows()) >= count)
        return rows()

    # Our own program.

    def test_each_wait_is_told_as_what_it_is(self):
        text = self.read(self.traced("waits"), "unchanged")
        reasons = self.reasons(text)
        self.assertEqual(reasons["sync"], SYNC_WAITS)
        self.assertGreaterEqual(reasons["sync (condition)"], 2)
        self.assertEqual((reasons["network"], reasons["network (poll)"]), (1, 2))  # a poll of one descriptor; select and epoll_wait
        self.assertEqual(reasons["sleep"], 2)
        self.assertGreaterEqual(reasons["sync (join)"], 1)
        self.assertGreaterEqual(text.count("Syscall->Runnable"), 2)  # read() and recv() that blocked
        self.assertRegex(text, r"\t(wait_thread|unchanged\+0x\w+) @")  # its name may come too late, see below
        self.assertIn("\tunchanged @", text)

    def test_streams_file_locks_and_queues_are_seen_where_they_reach_the_kernel(self):
        text = self.read(self.traced("streams", "file-locks", "queues"), "unchanged")
        calls = collections.Counter(re.findall(r"Running->Syscall.*\nTransitionStack=\n\t(\S+) @", text))
        self.assertEqual({name: calls[name] for name in ("fgets", "fread", "fwrite", "fcntl", "lockf", "msgrcv", "semop", "fopen")},
                         {"fgets": 1, "fread": 2, "fwrite": 1, "fcntl": 1, "lockf": 1, "msgrcv": 1, "semop": 1, "fopen": 1})
        self.assertEqual(calls["getline"] + calls["getdelim"], 1)  # the compiler makes one of the other
        self.assertLessEqual(1, calls["fputs"])
        self.assertLess(calls["fputs"], 10)  # of a thousand
        self.assertGreaterEqual(text.count("Syscall->Runnable"), 6)  # those that another process ended

    def test_a_report_shows_a_call_by_its_name_alone(self):
        self.read(self.traced("waits"), "unchanged")
        report = self.tracectl("report", "syscall", self.folder / "unchanged.trace").out
        self.assertRegex(report, r"(?m)  (read|recv|futex|open64|close)$")
        self.assertNotRegex(report, r"(?m):0$")

    def test_calls_go_by_their_names_and_who_lets_go_is_who_woke_the_one_that_waited(self):
        text = self.read(self.traced("waits"), "unchanged")
        names = set(re.findall(r"Running->(?:Waiting|Syscall).*\nTransitionStack=\n\t(\S+) @", text))
        self.assertLessEqual({"pthread_mutex_lock", "sem_wait", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_barrier_wait",
                              "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "mtx_lock", "cnd_wait", "futex", "pthread_join", "thrd_join",
                              "poll", "select", "epoll_wait", "nanosleep", "read", "write", "recv", "send"}, names)
        woken = re.findall(r"^M=-?\d+ P=-?\d+ G=(-?\d+) StateTransition .*Waiting->Runnable.*(?:\nStack=\n\t(\S+) @)?", text, re.M)
        calls = collections.Counter(call for waker, call in woken if waker != "-1")
        # The scenes by these names, two of cond; and join, in two of which the thread ends after it is waited for.
        told = {name: calls[name] for name in WAKES}
        self.assertEqual(told, WAKES)
        self.assertGreaterEqual(calls["pthread_exit"], 2)

    def test_who_makes_a_thread_is_told_and_one_that_cannot_be_made_ends(self):
        text = self.read(self.traced("no-thread", "waits"), "unchanged")
        made = re.findall(r"^M=\d+ P=\d+ G=(-?\d+) StateTransition .*NotExist->Runnable.*\nTransitionStack=\n\t.*\n\t\t.*\n\n(?:Stack=\n\t(\S+) @)?",
                          text, re.M)
        calls = collections.Counter(call for maker, call in made if maker != "-1")
        self.assertEqual(calls, {"pthread_create": 20, "thrd_create": 2})
        self.assertEqual([maker for maker, _ in made].count("-1"), 1)  # the first thread
        self.assertEqual(text.count("Running->NotExist"), 22)

    def test_a_lock_that_is_free_is_not_worth_a_word(self):
        text = self.read(self.traced("waits", TRACEAGENT_TRACE="locks"), "unchanged")
        self.assertEqual(set(self.reasons(text)), {"sync", "sync (condition)"})
        self.assertEqual(self.reasons(text)["sync"], SYNC_WAITS)
        self.assertNotIn("Syscall", text)

    def test_the_heap_grows_and_shrinks_if_asked_for(self):
        text = self.read(self.traced("heap", "waits", TRACEAGENT_TRACE="heap,locks"), "unchanged")
        bytes_ = [int(n) for n in re.findall(r'Name="/memory/classes/heap/objects:bytes" Value=Value\{Uint64\((\d+)\)\}', text)]
        self.assertGreaterEqual(len(bytes_), 128)
        self.assertGreaterEqual(max(bytes_), 64 << 20)
        self.assertLess(max(bytes_), 66 << 20)
        self.assertLess(bytes_[-1], 1 << 20)

    # Function names are looked up beside the program, perhaps too late for a program that ends soon.

    def busy(self, collector, program, n, **more):
        self.run_program(program, env=self.environment(collector.to, TRACEAGENT_SERVICE=f"busy-{n}", **more))
        return self.read(collector, f"busy-{n}")

    def test_stacks_and_samples_name_the_programs_functions(self):
        program = self.compiled("busy", "cc", "-std=gnu11", "-g", "-O1", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer",
                                "-pthread", BUSY)
        collector = Collector(self)
        counter, found = itertools.count(), {}
        born = r"NotExist->Runnable.*\nTransitionStack=\n\ttoil @"  # static, but known by its name

        def all_named():
            found["n"] = next(counter)
            found["text"] = self.busy(collector, program, found["n"], TRACEAGENT_STACKS="16", TRACEAGENT_SAMPLES="250")
            return "\thot @" in found["text"] and "\trest @" in found["text"] and re.search(born, found["text"])

        wait_until("the functions have their names", all_named)
        source = BUSY.read_text().splitlines()
        line = {call: next(n for n, text in enumerate(source, 1) if call in text and text.startswith(" "))
                for call in ("sum += i", "pthread_cond_timedwait(", "rest();")}

        def frame(function, file, call):
            return rf"\t{function} @ 0x\w+\n\t\t\S*/{file}:{line[call] if call else '.*'}\n"

        self.assertRegex(found["text"], r"StackSample .*\nStack=\n" + frame("hot", "busy.c", "sum += i"))
        self.assertRegex(found["text"], r'Reason="sync \(condition\)"\nTransitionStack=\n' + frame("pthread_cond_timedwait", "calls.def", None) +
                         frame("rest", "busy.c", "pthread_cond_timedwait(") + frame("toil", "busy.c", "rest();"))
        if self.go is None:
            return
        trace = self.folder / f"busy-{found['n']}.trace"
        waits = self.run_program(self.go.tool("trace"), "-pprof=sync", trace, env=self.go.environment).stdout
        (self.folder / "sync.pb.gz").write_bytes(waits)
        top = self.run_program(self.go.tool("pprof"), "-top", "-cum", "-nodefraction=0", self.folder / "sync.pb.gz", env=self.go.environment).out
        self.assertRegex(top, r"\brest\n")

    def test_the_signal_of_samples_belongs_to_the_program_too(self):
        text = self.read(self.traced("urgent", TRACEAGENT_SAMPLES="1000"), "unchanged")
        self.assertIn(" StackSample ", text)  # how many depends on the kernel, which looks at such timers at its ticks

    def test_cancelled_threads_and_signal_handlers_are_as_ever(self):
        text = self.read(self.traced("cancel", "signals", "waits"), "unchanged")
        self.assertEqual(self.polls(text), 3)

    def test_a_program_that_closes_all_descriptors_is_traced_on(self):
        text = self.read(self.traced("close", "waits", TRACEAGENT_DELAY_MS="0"), "unchanged")
        self.assertEqual(self.polls(text), 3)

    def test_descriptors_stay_open_where_something_answers_for_the_kernel(self):
        shim = self.folder / "shim.so"  # as valgrind does, it lets close_range() succeed without its flag
        (self.folder / "shim.c").write_text(ANSWERS_FOR_THE_KERNEL)
        self.run_program("cc", "-shared", "-fPIC", self.folder / "shim.c", "-o", shim)
        self.traced("descriptors", LD_PRELOAD=f"{LIBRARY}:{shim}", TRACEAGENT_DELAY_MS="0")

    @unittest.skipIf(VALGRIND is None, "no valgrind here; tools/deps.sh installs it")
    def test_descriptors_stay_open_under_valgrind(self):
        collector = Collector(self)
        done = self.run_program(VALGRIND, "-q", "--tool=none", self.unchanged(), "descriptors", env=self.environment(collector.to, TRACEAGENT_DELAY_MS="0"))
        self.assertIn("as ever\n", done.out)

    def test_no_descriptor_of_the_agents_has_a_high_number(self):
        program, collector = self.unchanged(), Collector(self)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        done = self.run_program(program, "no-high-number", env=self.environment(collector.to, TRACEAGENT_DELAY_MS="0"), preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (limit[1], limit[1])))
        self.assertEqual((done.out, done.err), ("as ever\n", ""))

    def test_a_forked_child_is_not_told_and_one_that_runs_a_program_is(self):
        collector = self.traced("children")
        names = sorted(row["service"] for row in self.streams(collector, 2))
        self.assertEqual(names, ["grandchild", "unchanged"])
        self.assertEqual(self.polls(self.read(collector, "unchanged")), 0)
        self.assertEqual(self.reasons(self.read(collector, "grandchild")), {"sleep": 2})

    def test_a_child_that_serves_has_a_stream_of_its_own_if_asked_for(self):
        collector = self.traced("children", TRACEAGENT_FORK="1", TRACEAGENT_ONLY="other,unchanged", TRACEAGENT_INSTANCE="one")
        instances = [row["instance"] for row in self.streams(collector, 2)]
        self.assertEqual(len(instances), 2)
        self.assertRegex(" ".join(sorted(instances)), r"^one one:\d+$")

    def test_a_program_that_runs_another_one_ends_its_stream(self):
        collector = self.traced("exec", TRACEAGENT_DELAY_MS="0")
        wait_until("all have ended", lambda: all(row["state"] in ("exec", "closed") for row in self.streams(collector, 4)))
        states = sorted((row["service"], row["state"]) for row in self.streams(collector))
        self.assertEqual(states, [("another", "closed"), ("true", "closed"), ("unchanged", "exec"), ("unchanged", "exec")])
        self.assertRegex(collector.ask("status").out, r"(?m)^exec +unchanged ")
        self.assertEqual(self.reasons(self.read(collector, "another")), {"sleep": 2})
        collector.restart()
        self.assertEqual(sorted(row["state"] for row in self.streams(collector)), ["closed", "closed", "exec", "exec"])
        collector.ask("verify")

    def test_a_daemon_goes_on_under_its_new_process(self):
        collector = Collector(self)
        program = self.unchanged()
        out = open(self.folder / "daemon.out", "wb")
        self.assertEqual(self.spawn("daemon", program, "linger", "daemon", "waits", "linger", stdout=out, env=self.environment(collector.to)).wait(), 0)
        wait_until("both have ended", lambda: [row["state"] for row in self.streams(collector)] == ["closed"] * 2)
        self.assertEqual((self.folder / "daemon.out").read_text(), "as ever\n")

    # Programs that are over in a moment.

    def listener(self):
        """Returns the address of a listener whose connections only the kernel accepts, and a call that counts them."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        listener.setblocking(False)
        self.addCleanup(listener.close)

        def calls():
            n = 0
            while True:
                try:
                    listener.accept()[0].close()
                except BlockingIOError:
                    return n
                n += 1
        return f"127.0.0.1:{listener.getsockname()[1]}", calls

    def test_a_short_program_is_alone_and_calls_nobody(self):
        server, calls = self.listener()
        done = self.run_program(self.unchanged(), "alone", env=self.environment(server, TRACEAGENT_DELAY_MS="60000"))
        self.assertEqual((done.out, done.err, calls()), ("as ever\n", "", 0))
        done = self.run_program(self.unchanged(), "linger", env=self.environment(server, TRACEAGENT_EXIT_MS="0"))
        self.assertEqual((done.out, done.err), ("as ever\n", ""))

    def test_a_delay_of_nothing_makes_a_stream_of_every_program(self):
        collector = Collector(self)
        self.run_program(self.unchanged(), "sleep", env=self.environment(collector.to, TRACEAGENT_DELAY_MS="0"))
        self.assertEqual(self.reasons(self.read(collector, "unchanged")), {"sleep": 2})

    def test_no_time_is_given_to_a_collector_that_refuses_and_little_to_one_that_says_nothing(self):
        refused = f"127.0.0.1:{held_port(self)}"
        silent, calls = self.listener()
        program, exit_s, said = self.unchanged(), min(30 * PATIENCE, 60), []  # the library takes no more than 60
        for server in (refused, silent):
            began = time.monotonic()
            done = self.run_program(program, "sleep", "linger", env=self.environment(server, TRACEAGENT_EXIT_MS=f"{exit_s * 1000:.0f}", TRACEAGENT_VERBOSE="1"))
            said.append(done.err)
            self.assertNotIn("not traced", done.err)
            self.assertLess(time.monotonic() - began, 0.9 * exit_s)  # none or a tenth, and what a busy machine may add
        self.assertEqual(calls(), 1, said)

    @unittest.skipIf(os.geteuid() != 0, "only root has rights to give up")
    def test_a_program_that_gives_up_its_rights_at_once_is_traced(self):
        collector = Collector(self)
        (self.certs / "agent.key").chmod(0o600)
        self.run_program(self.unchanged(), "give-up-rights", "linger", "sleep", env=self.environment(collector.ready["agents"]))
        self.assertEqual(self.reasons(self.read(collector, "unchanged")), {"sleep": 2})

    def test_a_program_with_openssl_of_its_own_ends_in_peace(self):
        """OpenSSL's clean-up at exit would free the library under the agent's threads."""
        collector = Collector(self)
        text = """#include <dlfcn.h>
            #include <openssl/crypto.h>
            #include <string.h>
            #include <unistd.h>
            int main(int argc, char **argv) {
              int (*init)(uint64_t, const void *);
              if (argc > 1) usleep(1000 * (useconds_t)strtoul(argv[1], NULL, 10));
              *(void **)&init = dlsym(dlopen("libcrypto.so.3", RTLD_NOW), "OPENSSL_init_crypto");
              int done = init(OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS, NULL);
              for (int i = 0; i < 60; i++) usleep(5000);
              return done == 1 ? 0 : 1;
            }"""
        (self.folder / "own.c").write_text("#include <stdlib.h>\n" + text)
        self.run_program("cc", "-D_GNU_SOURCE", "-O2", self.folder / "own.c", "-o", self.folder / "loads")
        self.run_program("cc", "-D_GNU_SOURCE", "-O2", self.folder / "own.c", "-o", self.folder / "links", "-Wl,--no-as-needed", "-lcrypto")
        for program in ("loads", "links"):
            for wait_ms in (0, 50, 150):
                service = f"{program}-{wait_ms}"
                self.run_program(self.folder / program, wait_ms, env=self.environment(collector.to, TRACEAGENT_SERVICE=service))
                self.assertGreaterEqual(self.reasons(self.read(collector, service))["sleep"], 60)

    def test_a_child_that_fork_does_not_know_of_leaves_at_once_and_harms_nothing(self):
        text = self.read(self.traced("waits", "linger", "sleep", "unseen-child", "waits"), "unchanged")
        self.assertEqual(self.polls(text), 6)
        silent, _ = self.listener()
        began = time.monotonic()
        self.run_program(self.unchanged(), "sleep", *("unseen-child",) * 8, env=self.environment(silent, TRACEAGENT_EXIT_MS="60000"))
        self.assertLess(time.monotonic() - began, 8 * 6)  # each of them would wait a tenth of the minute

    def test_a_server_that_waits_for_its_first_client_has_a_stream(self):
        collector = Collector(self)
        server = self.spawn("server", self.unchanged(), "serve", env=self.environment(collector.to), stdout=subprocess.PIPE)
        port = int(server.stdout.readline())
        self.streams(collector, 1)
        self.assertIsNone(server.poll())
        socket.create_connection(("127.0.0.1", port)).close()
        self.assertEqual(server.wait(DEADLINE), 0)
        server.stdout.close()
        self.assertIn("accept", self.read(collector, "unchanged"))

    def test_a_program_that_was_too_short_says_so_if_asked(self):
        done = self.run_program(self.unchanged(), "waits", env=self.environment("127.0.0.1:1", TRACEAGENT_DELAY_MS="60000", TRACEAGENT_VERBOSE="1"))
        self.assertIn("no stream: the program ended within TRACEAGENT_DELAY_MS=60000", done.err)

    def test_with_a_folder_a_short_programs_trace_is_kept_and_the_next_program_sends_it(self):
        collector = Collector(self)
        spool = self.folder / "spool"
        environment = self.environment(collector.to, TRACEAGENT_SPOOL_DIR=str(spool))
        short = {**environment, "TRACEAGENT_INSTANCE": "short", "TRACEAGENT_DELAY_MS": "60000"}  # however busy the machine is
        self.run_program(self.unchanged(), "waits", env=short)
        self.assertEqual(len(list(spool.iterdir())), 1)
        self.assertEqual(self.streams(collector), [])

        def is_sent():  # a program may end before it has sent what it found
            self.run_program(self.unchanged(), "sleep", "linger", env={**environment, "TRACEAGENT_INSTANCE": "long"})
            return not list(spool.iterdir())

        wait_until("the folder is empty", is_sent)
        trace = self.folder / "short.trace"
        collector.ask("fetch", "--service", "unchanged", "--instance", "short", "-o", trace, "--no-progress")
        text = self.tracectl("cat", "-d", "parsed", trace).out
        self.assertEqual(self.polls(text), 3)

    def test_short_programs_alone_do_not_fill_a_folder(self):
        spool = self.folder / "spool"
        environment = self.environment("127.0.0.1:1", TRACEAGENT_SPOOL_DIR=str(spool), TRACEAGENT_DELAY_MS="60000",
                                       TRACEAGENT_SPOOL_BYTES=str(2 << 20))
        for _ in range(30):
            self.run_program("/bin/true", env=environment)
        self.assertEqual(len(list(spool.iterdir())), 24)  # half of four times three quarters of 2 MiB, by 128 KiB

    # ---- behaviour when it cannot trace

    def test_what_is_wrong_with_the_environment_is_said_once_and_the_program_runs(self):
        program = self.unchanged()
        for change, said in (({"TRACEAGENT_SERVER": "nowhere"}, '"nowhere" is not HOST:PORT'),
                             ({"TRACEAGENT_CERTS": "/none"}, "/none/ca.pem"),
                             ({"TRACEAGENT_TRACE": "locks,loks"}, '"loks" is not one of threads, locks'),
                             ({"TRACEAGENT_GENERATION_MS": "1s"}, 'TRACEAGENT_GENERATION_MS: "1s" is not a number'),
                             ({"TRACEAGENT_SERVICE": "a b"}, 'service "a b"')):
            with self.subTest(said):
                done = self.run_program(program, "sleep", env=self.environment("127.0.0.1:1", **change))
                self.assertEqual(done.out, "as ever\n")
                self.assertIn(said, done.err)
                self.assertEqual(len(done.err.splitlines()), 1)

    def test_a_file_that_the_program_puts_in_the_place_of_stderr_gets_no_line_of_ours(self):
        lives = "import os, sys, time\nif len(sys.argv) > 2: os.dup2(os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY), 2)\n" \
                "while not os.path.exists(sys.argv[1]): time.sleep(0.02)"
        server, calls = self.listener()
        env = self.environment(server, TRACEAGENT_VERBOSE="1", TRACEAGENT_EXIT_MS="0")

        def live_until(name, what, condition, *arguments):
            enough = self.folder / f"{name}.enough"
            program = self.spawn(name, os.path.realpath(sys.executable), "-I", "-S", "-c", lives, enough, *arguments, env=env)
            wait_until(what, condition)
            enough.touch()
            self.assertEqual(program.wait(DEADLINE), 0)

        live_until("alone", "it has something to say", lambda: calls() >= 0 and "libtraceagent-preload: " in self.log("alone"))
        calls()
        own, called = self.folder / "own", []

        def called_again():  # and has said what was wrong with the calls before
            called.extend(range(calls()))
            return len(called) > 2

        live_until("apart", "it calls again", called_again, own)
        self.assertEqual(own.read_text(), "")

    def test_switched_off_or_meant_for_another_program_it_is_silent(self):
        program = self.unchanged()
        for more in ({"TRACEAGENT_DISABLE": "1", "TRACEAGENT_SERVER": "nowhere"}, {"TRACEAGENT_ONLY": "redis-server,nginx"}):
            done = self.run_program(program, "waits", env=self.environment("127.0.0.1:1", **more))
            self.assertEqual((done.out, done.err), ("as ever\n", ""))

    def test_without_a_collector_the_program_runs_and_ends_all_the_same(self):
        done = self.run_program(self.unchanged(), "waits", "cancel", "signals", "children",
                                env=self.environment("127.0.0.1:1", TRACEAGENT_EXIT_MS="0"))
        self.assertEqual((done.out, done.err), (2 * "as ever\n", ""))

    # Programs that nobody here wrote.

    def test_python_with_threads(self):
        collector = Collector(self)
        python = os.path.realpath(sys.executable)
        done = self.run_program(python, "-c", WITH_THREADS, env=self.environment(collector.to, TRACEAGENT_SERVICE="python",
                                                                                     TRACEAGENT_DELAY_MS="0"))
        self.assertEqual(done.out, "100 jobs\n")
        reasons = self.reasons(self.read(collector, "python"))
        self.assertGreaterEqual(sum(reasons[name] for name in ("sync", "sync (condition)")), 4)
        self.assertGreaterEqual(reasons["sleep"] + reasons["network"] + reasons["network (poll)"], 100)

    def test_sqlite_in_a_program(self):
        collector = Collector(self)
        file = self.folder / "some.db"
        work = f"import sqlite3; db = sqlite3.connect({str(file)!r}); db.execute('create table t(a)')\n" \
               "for n in range(50): db.execute('insert into t values(?)', (n,)); db.commit()"
        python = os.path.realpath(sys.executable)
        self.run_program(python, "-c", work, env=self.environment(collector.to, TRACEAGENT_SERVICE="sqlite",
                                                                           TRACEAGENT_DELAY_MS="0"))
        self.assertEqual(sqlite3.connect(file).execute("select sum(a) from t").fetchone(), (sum(range(50)),))
        self.assertGreater(self.read(collector, "sqlite").count("Running->Syscall"), 200)

    @unittest.skipIf(REDIS is None, "no redis")
    def test_redis_under_its_own_benchmark(self):
        collector = Collector(self)
        port = free_port()
        server = self.spawn("redis", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder,
                            executable=REDIS, env=self.environment(collector.to, TRACEAGENT_SERVICE="redis"))

        def ask(*words):
            return self.run_program("redis-cli", "-p", port, *words, expect=None).out

        wait_until("redis answers", lambda: "PONG" in ask("ping"))
        done = self.run_program("redis-benchmark", "-p", port, "-t", "get,set", "-n", REQUESTS, "-q")
        self.assertIn("GET:", done.out)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.run_program("redis-benchmark", "-p", port, "-t", "get,set", "-n", 20 * REQUESTS, "-q")
        ask("bgsave")
        wait_until("the child has saved", lambda: "rdb_bgsave_in_progress:0" in ask("info", "persistence"))
        ask("shutdown", "nosave")
        self.assertEqual(server.wait(DEADLINE), 0, self.log("redis"))
        text = self.read(collector, "redis")
        self.assertGreaterEqual(text.count("Running->Syscall"), 4 * REQUESTS)
        self.assertGreater(self.polls(text), 10)
        collector.ask("verify")


@unittest.skipIf(SANITIZE, "a sanitizer's runtime cannot be preloaded into a plain program: the library is not built")
class Memory(PreloadCase):
    """F10, F20, E15: malloc() and free() as the events of Go's AllocFree experiment."""

    def live(self, collector, service):
        """Returns the output of examples/live-heap for the trace: its figures, and each object that is live at the end."""
        text = self.read(collector, service)
        program = self.compiled("live-heap", "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", LIVE_HEAP, *self.flags_of("traceonline"))
        said = self.run_program(program, "-a", self.folder / f"{service}.trace").out
        figures = [[int(n) for n in re.findall(r"\d+", line)] for line in said.splitlines()[:3]]
        return text, figures, dict(re.findall(r"^(0x\w+) (\d+) malloc$", said, re.M))

    def holder(self):
        return self.compiled("holder", "cc", "-D_GNU_SOURCE", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", HOLDER)

    def test_what_the_trace_says_is_live_is_what_the_program_holds(self):
        collector = Collector(self)
        program = self.holder()
        early = self.folder / "early.so"  # what it allocates is there when the session begins
        (self.folder / "early.c").write_text(EARLY)
        self.run_program("cc", "-shared", "-fPIC", self.folder / "early.c", "-o", early)
        held = self.run_program(program, env=self.environment(collector.to, LD_PRELOAD=f"{LIBRARY}:{early}", TRACEAGENT_MALLOC="1",
                                                              TRACEAGENT_GENERATION_MS="50"))
        held = dict(line.split() for line in held.out.splitlines())
        text, ((objects, _, spans, stacks), (before, made, _), untold), live = self.live(collector, "holder")
        self.assertGreater(len(held), 400)
        self.assertEqual({address: live.get(address) for address in held}, held)
        self.assertLess(objects, len(held) + 30)  # the rest is libc's: its stream's buffer, threads' tables
        self.assertEqual(untold, [0, 0])
        self.assertGreater(made, 6000)
        self.assertEqual(before, 4)
        self.assertEqual(spans, sum(int(n) >= 65536 for n in live.values()))
        self.assertEqual(stacks, 1)
        for name in ("Span", "SpanAlloc", "SpanFree", "HeapObject", "HeapObjectAlloc", "HeapObjectFree", "GoroutineStack", "GoroutineStackAlloc",
                     "GoroutineStackFree"):
            self.assertIn(f"Name={name} ", text)

    def test_a_thread_that_a_librarys_constructor_began_is_told_from_the_session_on(self):
        collector = Collector(self)
        library, program = self.folder / "libatwork.so", self.folder / "atwork"
        (self.folder / "atwork.c").write_text(AT_WORK)
        (self.folder / "main.c").write_text("void finish(void);\nint main(void) { finish(); return 0; }\n")
        self.run_program("cc", "-shared", "-fPIC", "-O2", "-pthread", self.folder / "atwork.c", "-o", library)
        self.run_program("cc", "-O2", self.folder / "main.c", library, "-o", program)
        held = self.run_program(program, env=self.environment(collector.to, LD_PRELOAD=f"{LIBRARY}:{library}", TRACEAGENT_MALLOC="1",
                                                              TRACEAGENT_SPOOL_BYTES=str(64 << 20),
                                                              TRACEAGENT_DELAY_MS="0"))
        held = dict(line.split() for line in held.out.splitlines())
        text, (_, (_, made, _), _), live = self.live(collector, "atwork")
        self.assertEqual(len(held), 64)
        self.assertEqual({address: live.get(address) for address in held}, held)
        self.assertGreaterEqual(made, 1000)
        self.assertNotIn("Name=GoroutineStackAlloc ", text)

    def test_threads_that_are_seen_first_where_they_allocate_are_told_too(self):
        collector = Collector(self)
        held = self.run_program(self.holder(), env=self.environment(
            collector.to, TRACEAGENT_MALLOC="1", TRACEAGENT_TRACE="locks", TRACEAGENT_STACKS="8", TRACEAGENT_GENERATION_MS="50"))
        held = dict(line.split() for line in held.out.splitlines())
        _, (_, (_, _, _), untold), live = self.live(collector, "holder")
        self.assertEqual({address: live.get(address) for address in held}, held)
        self.assertEqual(untold, [0, 0])

    def test_programs_that_nobody_here_wrote(self):
        collector = Collector(self)
        python = os.path.realpath(sys.executable)
        work = "import sqlite3; db = sqlite3.connect(':memory:'); db.execute('create table t(a)')\n" \
               "for n in range(2000): db.execute('insert into t values(?)', ('x' * n,))\n" \
               "print(db.execute('select count(*) from t').fetchone()[0])"
        done = self.run_program(python, "-c", WITH_THREADS + work, env=self.environment(
            collector.to, TRACEAGENT_SERVICE="python", TRACEAGENT_MALLOC="1", TRACEAGENT_DELAY_MS="0"))
        self.assertEqual(done.out, "100 jobs\n2000\n")
        _, (_, (_, made, _), untold), _ = self.live(collector, "python")
        self.assertGreater(made, 10000)
        self.assertEqual(untold, [0, 0])
