"""Loads a trace into speedscope and prints what the viewer holds, as JSON.

    speedscope.py TRACE [SCREENSHOT]

prints one object a lane: its name as the viewer shows it, and its slices with their
names, starts and lengths in microseconds, read from what speedscope itself exports.
Needs npm's package `speedscope` in the folder that COLDPATH_SPEEDSCOPE names, else
installed globally; without it the check is skipped.
"""

import json
import os
import pathlib
import subprocess
import sys

from chromium import Chromium, program, skip

# Within the package: the static app.
APP = "dist/release/index.html"
# Keeps what the viewer would save.
CATCH = """
URL.createObjectURL = blob => { blob.text().then(text => window.saved = text); return '#'; };
HTMLAnchorElement.prototype.click = () => {};
"""
# Units of speedscope in microseconds.
MICROS = {"nanoseconds": 1e-3, "microseconds": 1.0, "milliseconds": 1e3, "seconds": 1e6}


def app():
    """Path of the static app; ends the check as skipped where there is none."""
    folders = [os.environ.get("COLDPATH_SPEEDSCOPE")]
    try:
        asked = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=False)
        folders.append(os.path.join(asked.stdout.strip(), "speedscope"))
    except FileNotFoundError:
        pass
    for folder in filter(None, folders):
        path = pathlib.Path(folder, APP)
        if path.is_file():
            return path.resolve()
    return skip("no speedscope; `npm install -g speedscope`, or name it in COLDPATH_SPEEDSCOPE")


def slices(profile, frames):
    """Slices of one exported lane, in the order of their starts."""
    unit = MICROS[profile["unit"]]
    found, open_slices = [], []
    for event in profile["events"]:
        if event["type"] == "O":
            slot = {"name": frames[event["frame"]]["name"], "ts": event["at"] * unit}
            found.append(slot)
            open_slices.append(slot)
        else:
            slot = open_slices.pop()
            if slot["name"] != frames[event["frame"]]["name"]:
                raise AssertionError(f"{slot} is closed by another slice")
            slot["dur"] = event["at"] * unit - slot["ts"]
    if open_slices:
        raise AssertionError(f"slices stay open: {open_slices}")
    return found


def main(trace, screenshot=None):
    index = app()
    program()
    with Chromium() as browser:
        page = browser.page()
        page.open(index.as_uri())
        page.wait_for("document.querySelector('input[type=file]') !== null")
        page.evaluate(CATCH)
        page.choose_file("input[type=file]", trace)
        page.wait_for("!document.body.innerText.includes('Loading') && document.title !== 'speedscope'")
        if screenshot:
            page.screenshot(screenshot)
        page.press("s", code="KeyS", number=83, modifiers=2)
        saved = json.loads(page.wait_for("window.saved"))
        if page.errors:
            raise AssertionError(f"the viewer complains: {page.errors}")
    frames = saved["shared"]["frames"]
    lanes = [{"lane": p["name"], "slices": slices(p, frames)} for p in saved["profiles"]]
    json.dump(lanes, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
