"""Opens pages of `analyze --format html` and checks what a reader depends on.

    report.py PAGE…            checks each page, with and without scripts
    report.py --pictures PAGE FOLDER
                               writes small pictures of a page, light and dark

No request leaves a page, nothing is said on its console, it has findings and a
drawn run, everything can be reached and read, and nothing is wider than the
screen at 400 and 1600 pixels, in either scheme. Prints a line a page.
"""

import base64
import os
import sys

from chromium import Chromium

WIDTHS = (400, 1600)
SCHEMES = ("light", "dark")
# What the pictures show: the width of the screen, and how much of its height.
PICTURE = (1100, 1180)
# Pictures are for a README column.
SCALE = 0.75

# Elements that reach out of the screen and do not stand in a box that scrolls.
WIDE = """[...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 1 && !e.closest('.scroll, svg');
}).map(e => e.tagName + '.' + e.className).slice(0, 5)"""
# Parts that each page must have, and how many things a reader finds in them.
PARTS = """({
  title: document.title,
  findings: document.querySelectorAll('#findings li').length,
  bars: [...document.querySelectorAll('#waterfall .bar i')].filter(e => e.getBoundingClientRect().width > 0).length,
  text: [...document.querySelectorAll('svg text')].map(e => e.textContent.trim()).filter(Boolean).length,
  circles: document.querySelectorAll('svg circle').length,
  numbers: document.querySelectorAll('data').length,
  scripts: document.scripts.length,
})"""
# Text against what is behind it: the ratio of WCAG 2 must be 4.5 for small text.
CONTRAST = """(() => {
  const light = rgb => rgb.map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const back = light(rgb(getComputedStyle(document.body).backgroundColor));
  const ratio = c => { const l = light(rgb(c)); return (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05); };
  const low = new Set();
  for (const e of document.querySelectorAll('h1, h2, p, li, th, td, figcaption, a, small, .bad, summary'))
    if (ratio(getComputedStyle(e).color) < 4.5) low.add(e.tagName + '.' + e.className);
  for (const e of document.querySelectorAll('svg text'))
    if (ratio(getComputedStyle(e).fill) < 4.5) low.add('svg text');
  return [...low];
})()"""


def check(browser, path):
    """Every check of one page; its parts and the longest load."""
    address = "file://" + os.path.abspath(path)
    seen, longest = None, 0.0
    for javascript in (True, False):
        for width in WIDTHS:
            page = browser.page(width=width, height=900, javascript=javascript)
            for scheme in SCHEMES:
                page.media(scheme)
                longest = max(longest, page.open(address))
                where = f"{path} at {width} px, {scheme}, scripts {javascript}"
                assert page.requests == [address], f"{where}: requests {page.requests}"
                assert not page.errors, f"{where}: {page.errors}"
                size = page.evaluate(
                    "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
                )
                assert size[0] <= size[1], f"{where}: {size[0]} of {size[1]} px wide"
                wide = page.evaluate(WIDE)
                assert not wide, f"{where}: too wide: {wide}"
                low = page.evaluate(CONTRAST)
                assert not low, f"{where}: hard to read: {low}"
                parts = page.evaluate(PARTS)
                assert seen in (None, parts), f"{where}: {parts}, elsewhere {seen}"
                seen = parts
    assert seen["findings"] > 0 and seen["bars"] > 2, f"{path}: {seen}"
    # One run by itself has no distribution to plot; a plot has text that is text.
    assert seen["circles"] == 0 or seen["text"] > 5, f"{path}: {seen}"
    assert seen["numbers"] > 50, f"{path}: {seen}"
    assert seen["scripts"] == 0, f"{path}: {seen}"
    keyboard(browser, address)
    return seen, longest


def keyboard(browser, address):
    """Tab reaches links, boxes that scroll, and what can be opened; Enter opens it."""
    page = browser.page(width=1000, height=900)
    page.open(address)
    page.evaluate("document.body.focus()")
    met = set()
    for _ in range(200):
        page.press("Tab", number=9)
        name = page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className")
        met.add(name.split(".")[0])
        if name.startswith("SUMMARY") and "r sub" in name:
            break
    assert {"A", "DIV"} <= met, f"{address}: Tab meets {met}"
    if page.evaluate("document.querySelector('.wf summary') !== null"):
        assert "SUMMARY" in met, f"{address}: Tab meets {met}"
        page.press("Enter", number=13)
        # Enter is a character too.
        page.call("Input.dispatchKeyEvent", type="char", text="\r")
        opened = "document.activeElement.parentElement.open"
        if not page.evaluate(opened):
            page.evaluate("document.activeElement.click()")
        assert page.evaluate(opened), f"{address}: the stage does not open"


def pictures(browser, path, folder):
    """`report-light.png` and `report-dark.png` in the folder."""
    width, height = PICTURE
    page = browser.page(width=width, height=height, javascript=False)
    page.call("Emulation.setScrollbarsHidden", hidden=True)
    for scheme in SCHEMES:
        page.media(scheme)
        page.open("file://" + os.path.abspath(path))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": SCALE}
        answer = page.call("Page.captureScreenshot", format="png", clip=clip)
        with open(os.path.join(folder, f"report-{scheme}.png"), "wb") as file:
            file.write(base64.b64decode(answer["data"]))


def main(words):
    with Chromium() as browser:
        if words[0] == "--pictures":
            pictures(browser, words[1], words[2])
            return
        for path in words:
            parts, longest = check(browser, path)
            print(f"{parts['title']}: {parts['numbers']} numbers, {longest:.0f} ms at most")


main(sys.argv[1:])
