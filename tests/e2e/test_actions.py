# SPDX-License-Identifier: Apache-2.0
"""Commands and webhooks of rules: tracecollect-actions does each firing's once, again where that may help, and hangs for none."""
import base64
import hashlib
import hmac
import json
import signal

from harness import BUILD, DEADLINE, Case, Collector, suites, wait_until
from receiver import Receiver

ACTIONS = BUILD / "bin/tracecollect-actions"
RULE = "slow WHEN sched.latency.p99 > 50us DO "
SECRET = b"a secret of the test, 24 bytes or so"


class Actions(Case):
    def setUp(self):
        super().setUp()
        self.receiver = Receiver(self)
        self.actions_file = self.folder / "actions"
        (self.folder / "helper.state").mkdir()
        self.secret = self.folder / "secret"
        self.secret.write_bytes(SECRET + b"\n")

    def script(self, name, text):
        path = self.folder / name
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def collect(self, actions, *more):
        rules = self.folder / "rules"
        rules.write_text(RULE + actions + "\n")
        self.collector = Collector(self, f"trigger.file={rules}", *more)

    def help(self, text):
        self.actions_file.write_text(text)
        self.start()

    def start(self):
        self.helper = self.spawn("helper", ACTIONS, "--config", self.actions_file, "--state", self.folder / "helper.state",
                                 "--server", self.collector.to, "--certs", self.certs)

    def fire(self, instance="one"):
        """Fires once more; returns the firing."""
        before = len(self.history())
        self.collector.send(self.trace("g26-gens"), "shop", instance)
        return wait_until("it fires", lambda: (found := self.history())[before:] and found[-1])

    def history(self):
        return self.collector.json_lines("trigger", "history")

    def end(self):
        self.helper.send_signal(signal.SIGTERM)
        self.assertEqual(self.helper.wait(DEADLINE), 0)

    def progress(self):
        file = self.folder / "helper.state/progress"
        return dict(line.split() for line in file.read_text().splitlines()) if file.exists() else {}

    def test_a_command_and_a_webhook_get_each_firing_once(self):
        paged, chat = self.folder / "paged", "/hooks/chat"
        self.collect("exec page, webhook chat, webhook elsewhere", "trigger.every=0s")
        self.fire("before")  # of no concern for actions that are new
        page = self.script("page", f'cat >> {paged}; echo "$1" >> {paged}')
        self.help(f'exec page {page} "team shop; $(false)"\n'
                  f'webhook chat {self.receiver.url(chat)} secret={self.secret} # a comment\n')
        wait_until("it has begun", lambda: len(self.progress()) == 2)
        self.receiver.answers[chat] = [(503, 3)]
        fired = self.fire("host:1")
        self.assertEqual(fired["actions"], ["exec:page", "webhook:chat", "webhook:elsewhere"])
        posts = wait_until("it is posted again", lambda: (found := self.receiver.of(chat)) and len(found) == 2 and found)
        self.assertEqual(posts[0]["body"], posts[1]["body"])
        for post in posts:
            headers = post["headers"]
            self.assertEqual((headers["webhook-id"], headers["content-type"]), (str(fired["id"]), "application/json"))
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + post["body"]
            self.assertEqual(headers["webhook-signature"], "v1," + base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode())
        said_of_it = json.loads(posts[0]["body"])
        self.assertEqual(said_of_it["type"], "trigger.fired")
        self.assertEqual(said_of_it["text"], f"slow: shop/host:1, generation {fired['gen']}: {fired['words']}")
        self.assertEqual({key: said_of_it["data"][key] for key in ("id", "rule", "service", "instance", "gen", "words", "stream")},
                         {**{key: fired[key] for key in ("rule", "service", "instance", "gen", "words", "stream")}, "id": str(fired["id"])})
        wait_until("it is noted", lambda: set(self.progress().values()) == {str(fired["id"])})
        expected = (f"rule: slow\nservice: shop\ninstance: host:1\nstream: {fired['stream']}\ngeneration: {fired['gen']}\n"
                    f"ended: {said_of_it['timestamp']}\nsaw: {fired['words']}\nteam shop; $(false)\n")
        self.assertEqual(paged.read_text(), expected)
        self.assertIn("webhook:chat: the answer is 503; again in 3 s", self.log("helper"))
        self.assertIn(f'rule=slow: no action "webhook:elsewhere" in {self.actions_file}', self.log("helper"))
        # Neither a restart of the helper nor one of the collector does anything twice. (After a kill a rule may fire again.)
        self.end()
        missed = self.fire("host:2")
        self.assertEqual(self.collector.stop(), 0)
        self.start()
        wait_until("it says so", lambda: "asked again each second" in self.log("helper"))
        self.collector.start()
        wait_until("what it missed is done", lambda: set(self.progress().values()) == {str(missed["id"])})
        self.assertEqual([post["headers"]["webhook-id"] for post in self.receiver.of(chat)], [str(fired["id"])] * 2 + [str(missed["id"])])
        self.assertEqual(paged.read_text().count("rule: slow\n"), 2)
        self.assertEqual([row["id"] for row in self.history()[1:]], [fired["id"], missed["id"]])
        wait_until("it says so", lambda: "collector: back" in self.log("helper"))
        self.end()
        self.assertEqual(self.collector.stop(), 0)

    def test_one_that_hangs_delays_no_other(self):
        self.collect("webhook hangs, webhook chat, exec fails, exec later, webhook stalls, webhook floods", "trigger.every=1h")
        tries = self.folder / "tries"
        self.help(f"webhook hangs {self.receiver.url('/hangs')}\nwebhook chat {self.receiver.url('/chat')}\n"
                  f"webhook stalls {self.receiver.url('/stalls')}\nwebhook floods {self.receiver.url('/floods')}\n"
                  f"exec fails {self.script('fails', 'exit 7')}\n"
                  f"exec later {self.script('later', f'echo >> {tries}; [ $(wc -l < {tries}) = 2 ] || exit 75')}\n")
        self.receiver.answers.update({"/hangs": ["hang"] * 1000, "/stalls": ["stall"], "/floods": ["flood"]})
        wait_until("it has begun", lambda: len(self.progress()) == 6)
        fired = self.fire()
        wait_until("the others are done", lambda: {self.progress()[action] for action in ("webhook:chat", "exec:fails", "exec:later", "webhook:stalls", "webhook:floods")} == {str(fired["id"])})
        # The status decides: a body that stalls or does not end asks for no other try.
        self.assertEqual([len(self.receiver.of(path)) for path in ("/stalls", "/floods")], [1, 1])
        wait_until("it hangs", lambda: self.receiver.of("/hangs"))  # each try is given up after ten seconds
        self.assertNotRegex(self.log("helper"), "webhook:(stalls|floods): ")
        self.assertIn("exec:fails: exit code 7; given up", self.log("helper"))
        self.assertIn("exec:later: exit code 75; again in 1 s", self.log("helper"))
        # A rule that fires again so soon is limited, and the log and the history name it.
        again = self.fire("two")
        self.assertEqual((again.get("actions", []), again["limited"]), ([], fired["actions"]))
        left_out = "; too soon or too often, left out: webhook:hangs,webhook:chat,exec:fails,exec:later,webhook:stalls,webhook:floods"
        wait_until("the log says so", lambda: left_out in self.log("collector"))  # the history has it first
        self.assertIn("; left out: webhook:hangs, webhook:chat, exec:fails, exec:later, webhook:stalls, webhook:floods\n", self.collector.ask("trigger", "history", "slow").out)
        # The service stops at once, and repeats the interrupted action at its next start.
        self.end()
        self.assertEqual(self.progress()["webhook:hangs"], "1")
        hung = len(self.receiver.of("/hangs"))
        del self.receiver.answers["/hangs"]
        self.start()
        wait_until("it is done", lambda: self.progress().get("webhook:hangs") == str(fired["id"]))
        posts = [post["headers"]["webhook-id"] for post in self.receiver.of("/hangs")]
        self.assertGreater(len(posts), hung)
        self.assertEqual(set(posts), {str(fired["id"])})
        self.end()

    @suites("release", "asan")
    def test_what_is_wrong_is_named(self):
        program = self.script("fine", "exit 0")
        for text, words in (("", "no action in it"),
                            ("\nrun page /bin/true\n", 'line 2: "run" is not an action: exec, webhook'),
                            ("exec pa/ge /bin/true\n", 'line 1: "pa/ge" is not a name: letters, digits and ._:-, at most 32'),
                            ("exec\n", 'line 1: "" is not a name'),
                            ("exec page\n", "line 1: exec page: a command is required"),
                            ("exec page true\n", 'line 1: "true" is not a program\'s absolute path'),
                            ("exec page /bin/nothing-of-that-name\n", "line 1: /bin/nothing-of-that-name: No such file"),
                            (f'exec page {program} "a b\n', "line 1: a quote has no end"),
                            (f"exec page {program}\nexec page {program}\n", "line 2: there is exec page already"),
                            ("webhook chat ftp://host/\n", 'line 1: "ftp://host/" is not a URL'),
                            ("webhook chat http://host/ key=1\n", 'line 1: "key=1" cannot follow a URL: only secret=FILE'),
                            (f"webhook chat http://host/ secret={self.folder}/none\n", "none: No such file"),
                            (f"webhook c http://host/ secret={self.script('short', '')}\n", "a secret has at least 16 bytes")):
            with self.subTest(text):
                self.actions_file.write_text(text)
                said = self.run_program(ACTIONS, "--config", self.actions_file, "--check-config", expect=1)
                self.assertIn(words, said.err)
        self.actions_file.write_text(f"exec page {program}\n")
        self.assertEqual(self.run_program(ACTIONS, "--config", self.actions_file, "--check-config").err, "")
        self.assertIn("--state DIR is required", self.run_program(ACTIONS, "--config", self.actions_file, expect=2).err)
        self.assertIn("unexpected argument 'more'\nTry 'tracecollect-actions --help'", self.run_program(ACTIONS, "--check-config", "more", expect=2).err)
        # Only the rules file may name actions, however a rule is added.
        self.collect("exec page")
        said = self.collector.ask("trigger", "add", "other WHEN finding leak DO exec page", expect=2)
        self.assertIn("DO: exec is for rules of the file trigger.file", said.err)
        self.assertEqual(self.collector.stop(), 0)
        (self.collector.state / "triggers").write_text("other WHEN finding leak DO webhook chat\n")
        self.collector.start()
        self.assertEqual([row["name"] for row in self.collector.json_lines("trigger", "list")], ["slow"])
        self.assertIn("rule left out: other: DO: webhook is for rules of the file trigger.file", self.log("collector"))
