"""Headless Chromium over its debugging pipe: open a page, look at it, ask it.

For checks of what the programs draw; needs Debian's package `chromium` and
nothing beside Python's own library. It knows nothing of any page. Every wait has
a deadline, and the browser ends with the `with` block that began it.

    with Chromium() as browser:
        page = browser.page(width=400, javascript=False)
        page.open("file:///tmp/report.html")
        assert page.requests == ["file:///tmp/report.html"] and not page.errors
        page.evaluate("document.documentElement.scrollWidth")

A check ends with 0 when all holds, with `SKIPPED` and a line on stderr when the
browser is missing, and with a traceback otherwise.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

# Exit code of a check that could not be made.
SKIPPED = 77
# Seconds for any one answer: a loaded machine starts the browser in ten.
DEADLINE = 60.0
# How Debian, other systems and Google call it.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    # Viewers draw with WebGL; there is no graphics card to do it.
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # Containers have little /dev/shm.
    "--disable-dev-shm-usage",
    # No request but those of the page.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--metrics-recording-only",
    "--password-store=basic",
)


class BrowserError(Exception):
    """The browser refused, ended, or did not answer in time."""


def skip(reason):
    """Ends a check that cannot be made, loudly."""
    sys.stderr.write(f"SKIPPED: {reason}\n")
    sys.exit(SKIPPED)


def program():
    """Path of the browser; ends the check as skipped where there is none."""
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    return skip("no Chromium; Debian's package is `chromium`")


class Chromium:
    """A browser with a profile of its own; a context manager."""

    def __init__(self):
        self._next = 1
        self._buffer = b""
        self._pages = {}
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-")
        flags = list(FLAGS) + [f"--user-data-dir={self._profile.name}"]
        if os.geteuid() == 0:
            # Its sandbox refuses to be set up by root.
            flags.append("--no-sandbox")
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        # The browser reads descriptor 3 and writes 4; from above them nothing is
        # overwritten before it is moved.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_child, from_child)]

        def place():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        try:
            self._process = subprocess.Popen(
                [program(), *flags, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(3, 4),
                preexec_fn=place,
            )
        finally:
            for end in (to_child, from_child, *ends):
                os.close(end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the browser, by force when it does not end by itself."""
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)
        # Its helpers may still be writing for an instant.
        for _ in range(50):
            try:
                self._profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def page(self, width=1280, height=800, javascript=True):
        """A new page of this size in CSS pixels, blank."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        answer = self.call("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, answer["sessionId"])
        self._pages[answer["sessionId"]] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.call("Emulation.setScriptExecutionDisabled", value=not javascript)
        return page

    def call(self, method, session=None, **params):
        """The result of a method of the DevTools protocol.

        Raises BrowserError when it is refused.
        """
        number, self._next = self._next, self._next + 1
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                break
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _send(self, data):
        while data:
            data = data[os.write(self._write, data) :]

    def receive(self, deadline=DEADLINE):
        """The next message; events are noted on their page."""
        end = time.monotonic() + deadline
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer in {deadline:.0f} s")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise BrowserError("the browser ended")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        page = self._pages.get(message.get("sessionId"))
        if page and "method" in message:
            page.note(message["method"], message["params"])
        return message


class Page:
    """A page and what happened on it since it was opened last."""

    def __init__(self, browser, session):
        self._browser = browser
        self._session = session
        self._clear()

    def _clear(self):
        # Addresses asked for, the page's own first; `data:` and `blob:` stay within.
        self.requests = []
        # Console errors and warnings, uncaught exceptions, what the browser blocked.
        self.errors = []
        self._loaded = False

    def call(self, method, **params):
        """A DevTools method on this page."""
        return self._browser.call(method, session=self._session, **params)

    def note(self, method, params):
        """Takes down an event."""
        if method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            if not address.startswith(("data:", "blob:")):
                self.requests.append(address)
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            thrown = details.get("exception", {}).get("description")
            self.errors.append(thrown or details["text"])
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("error", "warning", "assert"):
                words = [str(a.get("value", a.get("description"))) for a in params["args"]]
                self.errors.append(" ".join(words))
        elif method == "Log.entryAdded":
            entry = params["entry"]
            if entry["level"] in ("error", "warning"):
                self.errors.append(entry["text"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def resize(self, width, height):
        """Sets the size in CSS pixels."""
        size = {"width": width, "height": height}
        self.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **size)

    def media(self, scheme="light", kind="screen"):
        """Sets `light` or `dark`, and `screen` or `print`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def open(self, address):
        """Opens an address and waits until all of it is loaded; its milliseconds."""
        self._clear()
        begin = time.monotonic()
        answer = self.call("Page.navigate", url=address)
        if "errorText" in answer:
            raise BrowserError(f"{address}: {answer['errorText']}")
        while not self._loaded:
            self._browser.receive()
        return (time.monotonic() - begin) * 1e3

    def evaluate(self, expression):
        """The JSON value of an expression, awaited; also where scripts are off.

        Raises BrowserError with the exception that it threw.
        """
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            thrown = details.get("exception", {}).get("description")
            raise BrowserError(thrown or details["text"])
        return answer["result"].get("value")

    def wait_for(self, expression):
        """The first truthy value of an expression, asked for again and again."""
        end = time.monotonic() + DEADLINE
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError(f"not so in {DEADLINE:.0f} s: {expression}")
            time.sleep(0.02)

    def choose_file(self, selector, path):
        """Gives a file to the first file input that a CSS selector finds."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        found = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        if not found:
            raise BrowserError(f"nothing is {selector}")
        self.call("DOM.setFileInputFiles", nodeId=found, files=[os.path.abspath(path)])

    def press(self, key, code=None, number=0, modifiers=0):
        """Presses and lets go a key: its name, code and number; 2 is Control."""
        stroke = {
            "key": key,
            "code": code or key,
            "windowsVirtualKeyCode": number,
            "modifiers": modifiers,
        }
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **stroke)

    def screenshot(self, path, whole=False):
        """Writes a PNG of what is seen, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
