# SPDX-License-Identifier: Apache-2.0
"""deploy/container: both images built by buildah, and the services of compose.yaml run in the order that it says.

The base image is a root of our own, so no registry of images is needed. The services share one network namespace,
where `collector` is the loopback address. Where no root or image can be made, the case is skipped and says why.
"""
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import unittest

from harness import SANITIZE, SOURCE, Case, wait_until
from machine import Unavailable, check, has_own_mounts, packages, roots

CONTAINER = SOURCE / "deploy/container"
BASE = "localhost/debian:12"
# A network of its own with nothing but loopback, until its input ends.
NETWORK = "import fcntl,socket,struct,sys;fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'lo', 0x41));print('up', flush=True);sys.stdin.read()"


def compose():
    sys.path.append(str(SOURCE / "build/python"))
    import yaml
    return yaml.safe_load((CONTAINER / "compose.yaml").read_text())["services"]


@unittest.skipIf(SANITIZE, "packages are made of the release build")
class Containers(Case):
    def setUp(self):
        super().setUp()
        try:
            check("buildah", "nsenter", "unshare")
            self.base = roots() / "base.tar"
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")
        self.store = self.folder / "store"
        self.addCleanup(self._unmount)
        self.driver = "overlay" if has_own_mounts() else "vfs"  # its mounts would outlive a test that was killed

    def _unmount(self):
        """Unmounts the images, so that the folder can be removed."""
        for overlay in (*self.store.glob("images/overlay/*/merged"), self.store / "images/overlay"):
            subprocess.run(["umount", "-l", overlay], capture_output=True)

    def _buildah(self, verb, *args, **options):
        """buildah with a store of this test's own, and without what a confined machine forbids."""
        return self.run_program(*self._command(verb, *args), env=self._environment(), **options).out.strip()

    def _command(self, verb, *args):
        return ("buildah", "--root", self.store / "images", "--runroot", self.store / "run", "--storage-driver", self.driver, verb, *args)

    @staticmethod
    def _environment():
        return {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def _import(self):
        """The root as an image in buildah's store, from a layout of files of the OCI; answers what buildah says."""
        layout = self.folder / "layout"
        if not layout.exists():
            blobs = layout / "blobs/sha256"
            blobs.mkdir(parents=True)
            (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
            with open(self.base, "rb") as tar:
                layer = hashlib.file_digest(tar, "sha256").hexdigest()
            (blobs / layer).symlink_to(self.base)

            def stored(kind, text):
                data = json.dumps(text).encode()
                name = hashlib.sha256(data).hexdigest()
                (blobs / name).write_bytes(data)
                return {"mediaType": f"application/vnd.oci.image.{kind}.v1+json", "digest": f"sha256:{name}", "size": len(data)}

            architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
            config = stored("config", {"architecture": architecture, "os": "linux", "config": {},
                                       "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]}})
            tar = {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{layer}", "size": self.base.stat().st_size}
            manifest = stored("manifest", {"schemaVersion": 2, "config": config, "layers": [tar]})
            (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
        return self.run_program(*self._command("pull", "-q", f"oci:{layout}"), env=self._environment(), expect=None)

    def _make_base(self):
        """The base image; Unavailable where this machine lets no container run. A store that copies whole layers takes
        long, but works on top of an overlay, too."""
        done = self._import()
        if done.returncode != 0:
            self.driver = "vfs"
            shutil.rmtree(self.store, ignore_errors=True)
            done = self._import()
        if done.returncode != 0:
            raise Unavailable(f"buildah pull does not work here: {done.err.strip().splitlines()[-1:]}")
        self._buildah("tag", done.out.strip(), BASE)
        base = self._buildah("from", BASE)
        done = self.run_program(*self._alone(*self._command("run", base, "--", "true")), env=self._environment(), expect=None)
        if done.returncode != 0:
            raise Unavailable(f"buildah cannot run a command here: {done.err.strip().splitlines()[-1:]}")
        self._buildah("rm", base)

    def _build_images(self):
        folder = packages()[0].parent
        for target in ("collector", "traced"):
            build = self._command("build", "-f", CONTAINER / "Dockerfile", "--build-arg", f"DEBIAN={BASE}", "--target", target, "-t", target, folder)
            done = self.run_program(*self._alone(*build), env=self._environment(), expect=None)
            if re.search(r"Failed to fetch|Unable to fetch|Temporary failure", done.err):
                raise Unavailable("Debian's packages cannot be fetched from inside an image")
            self.assertEqual(done.returncode, 0, done.out[-2000:] + done.err[-4000:])

    def _container(self, service):
        """A container of a service of compose.yaml, with its variables; volumes are folders of the store."""
        name = self._buildah("from", "--add-host", "collector:127.0.0.1", service["build"]["target"])
        self._buildah("config", *(word for key, value in service.get("environment", {}).items() for word in ("--env", f"{key}={value}")),
                      "--hostname", service.get("hostname", "container"), name)
        # Here, so that all of its commands see one mount: a socket of one overlay is none in another of the same files.
        self._buildah("mount", name)
        return name

    def _volumes(self, service):
        words = []
        for volume in service["volumes"]:
            name, *rest = volume.split(":")
            folder = self.store / "volumes" / name
            if not folder.exists():
                folder.mkdir(parents=True)
                shutil.chown(folder, self.user, self.user)
            words += ["--volume", ":".join([str(folder), *rest])]
        return words

    def _run(self, container, service, *command):
        """The command line that runs a service's command, or its image's, in the network that all share."""
        image = json.loads(self._buildah("inspect", container))["OCIv1"]["config"]
        words = command or service.get("command") or image["Cmd"]
        return ("nsenter", "-n", "-t", self.network.pid, *self._alone(*self._command("run", *self._volumes(service), container, "--", *words)))

    @staticmethod
    def _alone(*command):
        """No process of the command outlives its first."""
        return ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command)

    def _open_network(self):
        self.network = self.spawn("network", "unshare", "-n", sys.executable, "-c", NETWORK, stdin=subprocess.PIPE)
        wait_until("the network is up", lambda: "up" in self.log("network") or self.network.poll() is not None)
        if self.network.poll() is not None:
            raise Unavailable(f"no network of its own: {self.log('network').strip()[-200:]}")

    def test_the_services_of_compose_yaml_bring_a_trace_of_redis(self):
        services = compose()
        try:
            self._open_network()
            self._make_base()
            self._build_images()
        except Unavailable as why:
            self.skipTest(f"skipped, because {why}")
        certs, collector, redis = (self._container(services[name]) for name in ("certs", "collector", "redis"))
        self.user = int(self._buildah("run", collector, "--", "id", "-u"))
        image = json.loads(self._buildah("inspect", collector))["OCIv1"]["config"]
        self.assertEqual((image["User"], self.user), ("999", 999), "kubelet verifies runAsNonRoot by the number")
        self.assertEqual(sorted(image["ExposedPorts"]), ["7070/tcp", "7071/tcp", "7073/tcp", "9090/tcp"])
        self.run_program(*self._run(certs, services["certs"]), env=self._environment())
        self.assertEqual(sorted(path.name for path in (self.store / "volumes/agent").iterdir()), ["agent.key", "agent.pem", "ca.pem"])
        self.spawn("collector", *self._run(collector, services["collector"]), env=self._environment())
        wait_until("the collector is ready", lambda: ": ready" in self.log("collector"))
        self.spawn("redis", *self._run(redis, services["redis"]), env=self._environment())
        ask = self._run(collector, services["collector"], "tracectl", "report", "syscall", "--service", "redis")
        said = wait_until("redis's trace arrives", lambda: self._answer(ask))
        self.assertRegex(said, r"(?m)^calls +[1-9]")

    def _answer(self, ask):
        done = self.run_program(*ask, env=self._environment(), expect=None)
        return done.out if done.returncode == 0 and re.search(r"(?m)^calls +[1-9]", done.out) else None
