# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, told what to do over a pair of pipes (the DevTools protocol): no driver, no
library. What the page complains of, scripts that fail and policies that are broken included, is kept.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import time

from harness import DEADLINE, die_with_parent

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
         "--disable-default-apps", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
         "--lang=en-GB", "--remote-debugging-pipe")


def find():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with a profile of its own, and one page in it."""

    def __init__(self, case):
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        # The browser reads its commands from descriptor 3 and writes to 4; ours must not stand in their way.
        to_child, from_child = (os.dup2(fd, fd + 60) for fd in (to_child, from_child))

        def pipes():
            die_with_parent()
            os.dup2(to_child, 3)
            os.dup2(from_child, 4)

        log = open(case.folder / "browser.log", "ab")
        # A runtime folder and a home of its own: nothing of the machine's user is touched.
        home = case.folder / "browser-home"
        home.mkdir(exist_ok=True)
        environment = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "TZ": "UTC"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_PRELOAD"):
            environment.pop(name, None)
        self.process = subprocess.Popen([find(), *FLAGS, f"--user-data-dir={case.folder}/browser", "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=pipes,
                                        env=environment, close_fds=False)
        case.processes.append(self.process)
        for fd in (to_child, from_child):
            os.close(fd)
        self.number, self.buffer, self.answers = 0, b"", {}
        self.complaints, self.events = [], []
        self.session = None
        target = next(t for t in self.command("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.command("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.command("Browser.close")
        except (OSError, AssertionError):
            pass  # it may end before it answers
        self.process.wait(DEADLINE)
        os.close(self.out)
        os.close(self.into)

    # --- the protocol ---

    def command(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE
        while self.number not in self.answers:
            self._read(end)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _read(self, end):
        ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
        piece = os.read(self.into, 1 << 20) if ready else b""
        if not piece:
            raise AssertionError("the browser does not answer")
        *messages, self.buffer = (self.buffer + piece).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self._event(message["method"], message["params"])

    def _event(self, method, said):
        self.events.append((method, said))
        if method == "Runtime.exceptionThrown":
            self.complaints.append(said["exceptionDetails"].get("exception", {}).get("description", str(said)))
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a)) for a in said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{said['entry']['source']}: {said['entry']['text']} {said['entry'].get('url', '')}")

    # --- the page ---

    def look(self, width, height=900, scheme="light", scale=1):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                     mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def draw(self):
        """A frame is drawn, and observers of sizes have run: on a busy machine a page without a screen may draw none for long."""
        self.command("Page.captureScreenshot", clip={"x": 0, "y": 0, "width": 1, "height": 1, "scale": 1})
        return True

    def open(self, url):
        """The page is there when this returns: what is asked next is asked of it, not of the page before it."""
        loader = self.command("Page.navigate", url=url).get("loaderId")
        if loader:  # not a move within the page
            self._wait_for_page(0, lambda frame: frame["loaderId"] == loader)

    def follow(self, link):
        """As open(), by a click on the element that this expression answers."""
        url, seen = self.ask(f"{link}.href"), len(self.events)
        self.ask(f"{link}.click()")
        self._wait_for_page(seen, lambda frame: frame["url"] == url)

    def _wait_for_page(self, seen, wanted):
        end = time.monotonic() + DEADLINE
        while not any(method == "Page.frameNavigated" and wanted(said["frame"]) for method, said in self.events[seen:]):
            self._read(end)

    def ask(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        said = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise AssertionError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def press(self, key):
        code = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                         **(text if kind == "keyDown" else {}))

    def screenshot(self, path, whole=False):
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
