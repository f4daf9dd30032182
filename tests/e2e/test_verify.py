# SPDX-License-Identifier: Apache-2.0
"""`tracectl verify` over archives of both kinds of content hash, signed and not, damaged and changed on purpose."""
import json
import os

from harness import DAEMON, DEADLINE, TRACECTL, Case, Collector, wait_until


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes((byte[0] ^ 1,)))


class Verify(Case):
    def verify(self, *args, expect=0, **options):
        return self.run_program(TRACECTL, "verify", "--no-progress", *args, expect=expect, **options)

    def key(self, name):
        private, public = self.folder / f"{name}.key", self.folder / f"{name}.pem"
        self.run_program("openssl", "genpkey", "-algorithm", "ed25519", "-out", private)
        private.chmod(0o600)
        self.run_program("openssl", "pkey", "-in", private, "-pubout", "-out", public)
        return private, public

    def stop(self, collector):
        """When all that is acked is archived: a stop has five seconds for that, and a list waits longer."""
        collector.json_lines("list")
        self.assertEqual(collector.stop(), 0)

    def longest(self, collector):
        """The segment with the most generations: its trace, and what list says of each."""
        row = max((row for row in collector.json_lines("list", "--service", "shop")), key=lambda r: r["last_gen"] - r["first_gen"])
        return collector.state / row["path"], row

    def test_a_flipped_byte_is_named_with_its_generation(self):
        """The generation's bytes begin where those before it end: the meta knows, and the trace has 26 of them."""
        collector = Collector(self)
        collector.send(self.trace("g26-gens"), "shop")
        path, row = self.longest(collector)
        self.assertEqual((row["hash_kind"], row["last_gen"] - row["first_gen"]), ("xxh3", 25))
        self.assertEqual(collector.stop(), 0)
        self.assertIn("ok: 1 segments", self.verify(collector.state).out)
        index = [json.loads(line) for line in self.tracectl("index", "--json", path).out.splitlines()]
        middle = index[len(index) // 2]
        flip(path, middle["offset"] + middle["bytes"] // 2)
        done = self.verify(collector.state, expect=1)
        self.assertIn(f"generation {middle['gen']} is damaged", done.out)
        self.assertEqual(done.out.count("is damaged"), 1)
        self.assertIn("XXH3-128 of the trace is not the meta's", done.out)
        flip(path, middle["offset"] + middle["bytes"] // 2)
        self.verify(collector.state)

    def test_the_kind_is_changed_in_the_middle_of_a_stream(self):
        """Killed in the middle of a run, and started with the other kind: one chain, one proof, the program's bytes."""
        trace = self.trace("g26-gens")
        collector = Collector(self, "segment.generations_max=3")
        size, growing = trace.stat().st_size, self.folder / "growing.trace"
        os.mkfifo(growing)
        sender = self.spawn("send", TRACECTL, "send", growing, "--to", collector.ready["agents"], "--certs", self.certs,
                            "--service", "shop", "--instance", "one", "--no-progress")
        whole, at = trace.read_bytes(), 0
        with open(growing, "wb", buffering=0) as pipe:
            for part, kind in ((4, "sha256"), (7, "xxh3"), (10, "sha256"), (13, None)):
                upto = size * part // 13
                while at < upto:
                    at += pipe.write(whole[at:min(at + 65536, upto)])
                wait_until("it is acked", lambda: any(row.get("service") == "shop" and row["bytes"] >= upto * 9 // 10
                                                      for row in collector.json_lines("status")))
                if kind:
                    collector.kill()
                    collector.settings.append(f"archive.hash={kind}")
                    collector.start()
        self.assertEqual(sender.wait(DEADLINE), 0, self.log("send"))
        self.assert_same_bytes(collector.fetch(self.folder / "fetched", "shop"), trace)
        kinds = {row["hash_kind"] for row in collector.json_lines("list") if not row["open"]}
        self.assertEqual(kinds, {"xxh3", "sha256"})
        self.assertEqual(collector.stop(), 0)
        self.verify(collector.state)
        self.verify(collector.state, "--rebuild")

    def test_signatures_are_checked_by_the_public_key(self):
        private, public = self.key("ours")
        _, other = self.key("other")
        collector = Collector(self, "archive.hash=sha256", f"archive.sign={private}", "segment.generations_max=5")
        collector.send(self.trace("g26-gens"), "shop")
        wait_until("all verdicts are known", lambda: all(row["analysis"] == "ok" for row in collector.json_lines("list")))
        self.assertEqual(collector.stop(), 0)
        self.assertIn(f"signatures: 6 metas are signed by a key of {public}", self.verify(collector.state, "--public-key", public).out)
        totals = json.loads(self.verify(collector.state, "--public-key", public, "--json").out.splitlines()[-1])
        self.assertEqual((totals["signed_metas"], totals["problems"]), (6, 0))
        for meta in collector.state.glob("archive/*/*/*.meta"):  # as docs/FORMAT.md says it, by another program
            file = meta.read_bytes()
            (self.folder / "signed").write_bytes(file[:-91])
            (self.folder / "signature").write_bytes(file[-68:-4])
            self.run_program("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", self.folder / "signed",
                             "-sigfile", self.folder / "signature")
        self.verify(collector.state)
        done = self.verify(collector.state, "--public-key", other, expect=1)
        self.assertEqual(done.out.count(": is signed with another key, "), 6)
        meta = sorted(collector.state.glob("archive/*/*/*.meta"))[1]
        flip(meta, meta.stat().st_size // 2)  # its checksum finds it first
        self.assertIn(f"{meta.name}: checksum is wrong", self.verify(collector.state, "--public-key", public, expect=1).out)

    def test_metas_without_a_signature_are_named(self):
        private, public = self.key("ours")
        collector = Collector(self, "archive.hash=sha256")
        collector.send(self.trace("g26-gens"), "shop")
        self.stop(collector)
        collector.settings.append(f"archive.sign={private}")
        collector.start()
        collector.send(self.trace("g26-gens"), "shop", "two")
        self.stop(collector)
        done = self.verify(collector.state, "--public-key", public, expect=1)
        self.assertEqual(done.out.count(".meta: has no signature"), 1)
        self.assertIn("signatures: 1 metas are signed", done.out)

    def test_what_makes_no_sense_is_refused_by_name(self):
        private, public = self.key("ours")
        done = self.run_program(DAEMON, "--check-config", "--set", f"archive.sign={private}", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("archive.sign: needs archive.hash: sha256", done.err)
        done = self.run_program(DAEMON, "--check-config", "--set", "archive.hash=crc", expect=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('archive.hash: "crc" is neither xxh3 nor sha256', done.err)
        self.run_program(DAEMON, "--check-config", "--set", f"archive.sign={private}", "--set", "archive.hash=sha256")
        private.chmod(0o644)
        for check in ([], ["--check-config"]):
            done = self.run_program(DAEMON, *check, "--set", f"state={self.folder / 'state'}", "--set", f"certs={self.certs}", "--set",
                                    "archive.hash=sha256", "--set", f"archive.sign={private}", expect=1)
            self.assertIn(f"archive.sign: {private}: others may use this private key (mode 0644): its mode must be 0600", done.err)
        self.assertFalse((self.folder / "state").exists())
        (self.folder / "state/archive").mkdir(parents=True)
        self.assertIn('is "PRIVATE KEY", expected a public key', self.verify(self.folder / "state", "--public-key", private, expect=1).err)
        self.assertIn("--public-key needs ARCHIVE", self.verify("--public-key", public, expect=2).err)
        self.assertIn("--rebuild needs ARCHIVE", self.verify("--rebuild", expect=2).err)
