# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium over a pair of pipes (the DevTools protocol): no driver, no library.
Complaints of a page are recorded, failed scripts and violated policies included.

One browser serves all cases of a module, and one tab those that follow each other: a start of either costs more than most
cases do. What we serve keeps nothing in a browser that could come from one case to the next; a tab that a case has not
closed itself, for it failed, is not used again. TC_SCREENSHOTS=1 stores how the pages look in build/SUITE/page.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time
import unittest

from harness import BUILD, DEADLINE, die_with_parent, wait_until

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Turns off what the browser does unasked: pages of its own behind each window, a spare renderer.
IDLE_FEATURES = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "AiModeOmniboxEntryPoint", "PreloadTopChromeWebUI",
                 "SpareRendererForSitePerProcess", "Translate", "OptimizationHints", "MediaRouter", "DialMediaRouteProvider")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-software-rasterizer", "--disable-quic", "--no-first-run", "--mute-audio",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
         "--disable-component-extensions-with-background-pages", "--disable-default-apps", "--disable-dev-shm-usage",
         "--disable-breakpad", "--disable-crash-reporter", "--disable-domain-reliability", "--disable-back-forward-cache", "--disable-search-engine-choice-screen",
         "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
         "--disable-features=" + ",".join(IDLE_FEATURES),
         "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-GB", "--remote-debugging-pipe")
SHOTS = BUILD / "page" if os.environ.get("TC_SCREENSHOTS") else None


def find():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def for_module():
    """Starts a module's browser, for its setUpModule(); the browser ends with the module."""
    if find() is None:
        if os.environ.get("CI"):
            raise AssertionError("no Chromium, and CI must not go without it: tools/deps.sh browser")
        raise unittest.SkipTest("no Chromium here: tools/deps.sh browser installs it")
    unittest.addModuleCleanup(Browser.end)


def need_certificates(case):
    """Skips a case that trust()s where that cannot be."""
    if shutil.which("certutil") and shutil.which("pk12util"):
        return
    if os.environ.get("CI"):
        raise AssertionError("no certutil, and CI must not go without it: tools/deps.sh browser")
    case.skipTest("no certutil here: tools/deps.sh browser installs it")


def trust(folder, authority, pack=None, password=""):
    """For Browser.furnish: a certificate authority of its user's and, if there is a pack (PKCS #12), the certificate in it, which it shows by
    itself wherever one is asked for, as a policy of AutoSelectCertificateForUrls makes it."""
    store = folder / ".pki/nssdb"
    store.mkdir(parents=True)

    def run(*command):
        subprocess.run([str(word) for word in command], check=True, capture_output=True)

    run("certutil", "-N", "-d", f"sql:{store}", "--empty-password")
    run("certutil", "-A", "-d", f"sql:{store}", "-n", "authority", "-t", "C,,", "-i", authority)
    if pack:
        run("pk12util", "-i", pack, "-d", f"sql:{store}", "-W", password, "-K", "")
    settings = folder / "profile/Default/Preferences"
    settings.parent.mkdir(parents=True)
    shown = json.dumps({"pattern": "*", "filter": {}})
    settings.write_text(json.dumps({"profile": {"managed_auto_select_certificate_for_urls": [shown]}}))


class Browser:
    """The one browser, with a profile of its own, as long as it lives."""

    running = None
    furnish = None  # a function that puts something into its folder before it starts

    @classmethod
    def get(cls):
        if cls.running and cls.running.process.poll() is not None:  # the case that saw it die has failed
            cls.end()
        cls.running = cls.running or cls()
        return cls.running

    @classmethod
    def end(cls):
        if cls.running:
            cls.running.close()
            cls.running = None

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tc-browser-"))
        if Browser.furnish:
            Browser.furnish(self.folder)
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        # The browser reads its commands from descriptor 3 and writes to 4; ours must not stand in their way.
        to_child, from_child = (os.dup2(fd, fd + 60) for fd in (to_child, from_child))

        def pipes():
            die_with_parent()
            os.dup2(to_child, 3)
            os.dup2(from_child, 4)

        # A runtime folder and a home of its own: nothing of the machine's user is touched.
        environment = {**os.environ, "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "TZ": "UTC"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_PRELOAD"):
            environment.pop(name, None)
        with open(self.folder / "browser.log", "ab") as log:
            self.process = subprocess.Popen([find(), *FLAGS, f"--user-data-dir={self.folder}/profile", "about:blank"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=pipes,
                                            env=environment, close_fds=False)
        for fd in (to_child, from_child):
            os.close(fd)
        self.number, self.buffer, self.answers, self.pages, self.free_tabs = 0, b"", {}, {}, []

    def close(self):
        try:
            self.command("Browser.close")
        except (OSError, AssertionError):
            pass  # it may end before it answers
        try:
            self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.out)
            os.close(self.into)
            shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE
        while self.number not in self.answers:
            self.read(end)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def read(self, end):
        """Reads the browser's next message: an answer, or an event of an open page."""
        ready, _, _ = select.select([self.into], [], [], max(0, end - time.monotonic()))
        piece = os.read(self.into, 1 << 20) if ready else b""
        if not piece:
            raise AssertionError("the browser does not answer")
        *messages, self.buffer = (self.buffer + piece).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            elif page := self.pages.get(message.get("sessionId")):
                page.event(message["method"], message["params"])


class Tab:
    """A tab: a target of the browser in a context of its own."""

    def __init__(self, browser):
        self.browser = browser
        self.context = browser.command("Target.createBrowserContext")["browserContextId"]
        target = browser.command("Target.createTarget", url="about:blank", browserContextId=self.context)["targetId"]
        self.session = browser.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.command(f"{domain}.enable", self.session)

    def end(self):
        self.browser.command("Target.disposeBrowserContext", browserContextId=self.context)


class Page:
    """A page of a case, that nothing is left of when the case has ended."""

    def __init__(self, case, before="", width=1280, **look):
        """before: what runs in each document before its own scripts."""
        self.browser = Browser.get()
        self.complaints, self.events = [], []
        self.tab = self.browser.free_tabs.pop() if self.browser.free_tabs else Tab(self.browser)
        case.addCleanup(self._give_up)
        self.browser.pages[self.tab.session] = self
        self.look(width, **look)
        self.before = self.command("Page.addScriptToEvaluateOnNewDocument", source=before)["identifier"]

    def close(self):
        self.command("Page.removeScriptToEvaluateOnNewDocument", identifier=self.before)
        self.open("about:blank")
        self.browser.pages.pop(self.tab.session)
        self.browser.free_tabs.append(self.tab)
        self.tab = None

    def _give_up(self):
        if self.tab and self.browser.process.poll() is None:
            self.browser.pages.pop(self.tab.session)
            self.tab.end()

    def command(self, method, **parameters):
        return self.browser.command(method, self.tab.session, **parameters)

    def event(self, method, said):
        self.events.append((method, said))
        if method == "Runtime.exceptionThrown":
            self.complaints.append(said["exceptionDetails"].get("exception", {}).get("description", str(said)))
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a)) for a in said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{said['entry']['source']}: {said['entry']['text']} {said['entry'].get('url', '')}")

    def asked(self):
        """The addresses that it has asked for."""
        return {said["request"]["url"] for method, said in self.events if method == "Network.requestWillBeSent"}

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
            self.browser.read(end)

    def ask(self, expression):
        """The value of a JavaScript expression; promises are waited for."""
        said = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            raise AssertionError(f"{expression}: {said['exceptionDetails']}")
        return said["result"].get("value")

    def path(self):
        """The path of its address; "" while it goes from one page to another."""
        return self.ask_any("location.pathname")

    def ask_any(self, expression):
        """As ask(), of whichever page is there; "" while it goes from one page to another."""
        try:
            return self.ask(expression)
        except AssertionError as error:
            if "navigated" in str(error):
                return ""
            raise

    def press(self, key):
        code = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                         **(text if kind == "keyDown" else {}))

    def picture(self):
        """Returns a screenshot as PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", format="png")["data"])

    def screenshot(self, name, whole=False):
        """Stores it for people to look at, where that is asked for."""
        if SHOTS:
            SHOTS.mkdir(parents=True, exist_ok=True)
            shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
            (SHOTS / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
