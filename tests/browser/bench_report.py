"""bench_report.py ANALYZE FOLDER ROUNDS: the page of many cold starts.

Makes 1,000 and 20,000 cold starts out of one of the fixtures, each with ids and
times of its own, draws them in every format in turns, and opens the page of each.
Prints medians: processor and elapsed seconds of `analyze`, bytes, milliseconds until
the browser has loaded and laid out the page.
"""

import os
import random
import re
import resource
import statistics
import subprocess
import sys
import time

from chromium import Chromium

COUNTS = (1_000, 20_000)
FORMATS = ("table", "json", "html")
FIXTURE = os.path.join(os.path.dirname(__file__), "../../fixtures/coldpath/valid/one-run")
FILES = ("measure.jsonl", "coldpathd.jsonl", "coldpath-agent.jsonl")
TRACE = "c3e290dc3bc54913a72afac6f7dc4ada"
# Layout is forced, so that it is part of the time.
LAID_OUT = "document.documentElement.scrollHeight"


def make(count, path):
    """Writes `count` runs; the same every time."""
    draw = random.Random(1)
    text = "".join(open(os.path.join(FIXTURE, name), encoding="utf-8").read() for name in FILES)
    with open(path, "w", encoding="utf-8") as out:
        for run in range(count):
            # Few runs are slow, and those very.
            factor = 1 + draw.random() ** 3
            own = text.replace(TRACE, f"{TRACE[:24]}{run:08x}").replace("channel-r1", f"channel-{run}")
            second = 1_700_000_000 + run
            out.write(
                re.sub(
                    r'"1700000000(\d{9})',
                    lambda found: f'"{second}{int(int(found[1]) * factor):09}',
                    own,
                )
            )


def timed(analyze, path, shape, out):
    """Processor and elapsed seconds of one report."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([analyze, path, "--format", shape, "-o", out], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - begin


def main(analyze, folder, rounds):
    os.makedirs(folder, exist_ok=True)
    print(f"load before: {open('/proc/loadavg').read().strip()}; n = {rounds}")
    with Chromium() as browser:
        for count in COUNTS:
            path = os.path.join(folder, f"{count}.jsonl")
            make(count, path)
            found = {shape: [] for shape in FORMATS}
            outs = {shape: os.path.join(folder, f"{count}.{shape}") for shape in FORMATS}
            for _ in range(rounds):
                for shape in FORMATS:
                    found[shape].append(timed(analyze, path, shape, outs[shape]))
            for shape in FORMATS:
                cpu, wall = (statistics.median(part) for part in zip(*found[shape]))
                size = os.path.getsize(outs[shape])
                print(f"{count} runs, {shape}: {cpu:.3f} s of processors, {wall:.3f} s, {size} bytes")
            loads = []
            for _ in range(rounds):
                page = browser.page(width=1600, height=1000)
                begin = time.monotonic()
                page.open("file://" + os.path.abspath(outs["html"]))
                page.evaluate(LAID_OUT)
                loads.append((time.monotonic() - begin) * 1e3)
            print(f"{count} runs, opened: {statistics.median(loads):.0f} ms, {max(loads):.0f} ms at most")


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
