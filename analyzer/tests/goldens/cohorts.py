#!/usr/bin/env python3
"""Medians of two cohorts and their paired shifts, computed from the fixture's spans.

    python3 cohorts.py > cohorts.json

Standard library only; shares no code with the analyzer. Times are milliseconds.
The interval's rank comes from counting all 2^n signs of the ranks 1 … n.
"""
import itertools
import json
import pathlib
import statistics

TRACES = pathlib.Path(__file__).resolve().parents[3] / "fixtures/findings/pairs/traces.jsonl"
STAGES = ["channel.wait", "session.new"]


def runs():
    traces = {}
    for line in TRACES.read_text().splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    traces.setdefault(span["traceId"], {})[span["name"]] = span
    for spans in traces.values():
        length = lambda name: int(spans[name]["endTimeUnixNano"]) - int(spans[name]["startTimeUnixNano"])
        words = {one["key"]: list(one["value"].values())[0] for one in spans["run"]["attributes"]}
        total = length("POST /session")
        parts = {name: length(name) for name in STAGES}
        parts["unattributed"] = total - sum(parts.values())
        yield words["coldpath.run.cohort"], int(words["coldpath.run.pair.index"]), {"total": total, **parts, "session_cold": length("client.session")}


def rank(n):
    """The largest k with P(W < k) at most 2.5 %, W the signed-rank sum."""
    counts = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(r for r, sign in zip(range(1, n + 1), signs) if sign)] += 1
    k, below = 0, 0
    while (below + counts[k]) / 2**n <= 0.025:
        below += counts[k]
        k += 1
    return k


def shift(differences):
    averages = sorted((a + b) / 2 for i, a in enumerate(differences) for b in differences[i:])
    k = rank(len(differences))
    return {"estimate": statistics.median(averages) / 1e6, "low": averages[k - 1] / 1e6, "high": averages[-k] / 1e6}


def main():
    cohorts = {"wide": {}, "lean": {}}
    for cohort, pair, times in runs():
        cohorts[cohort][pair] = times
    wide, lean = cohorts["wide"], cohorts["lean"]
    names = ["total", *STAGES, "unattributed", "session_cold"]
    both = sorted(wide.keys() & lean.keys())
    print(json.dumps({
        "n": {cohort: len(of) for cohort, of in cohorts.items()},
        "n_pairs": len(both),
        "p50": {cohort: {name: statistics.median(run[name] for run in of.values()) / 1e6 for name in names} for cohort, of in cohorts.items()},
        "shift": {name: shift([lean[pair][name] - wide[pair][name] for pair in both]) for name in names},
    }, indent=1))


main()
