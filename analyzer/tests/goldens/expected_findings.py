#!/usr/bin/env python3
"""Findings that the twelve cold captures must give, computed from the raw records.

    python3 expected_findings.py > expected-findings.json

Standard library only; reads the captures, shares no code with the analyzer. Times
are milliseconds, shares are parts of 1. Values are rounded to what the report prints.
"""
import gzip
import json
import math
import pathlib
import statistics

COLD = pathlib.Path(__file__).resolve().parents[3] / "fixtures/qwen-serve-0.24.4/cold"
KEY = "qwen-code.daemon."


def records(path):
    text, decoder, at = gzip.open(path, "rt").read(), json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        yield value


def half_up(value):
    return math.floor(value + 0.5)


def ns(pair):
    return pair[0] * 10**9 + pair[1]


class Run:
    def __init__(self, folder):
        spans = [r for r in records(folder / "telemetry.json.gz") if "_spanContext" in r and "startTime" in r]
        self.client = next(records(folder / "client.json.gz"))
        self.name = self.client["run"]
        by = lambda op: [s for s in spans if s["attributes"].get(KEY + "operation") == op]
        # The cold request is the one that waited for the runtime.
        request = next(s for s in by("http_request") if KEY + "runtime.wait_ms" in s["attributes"])
        trace = request["_spanContext"]["traceId"]
        mine = lambda op: next(s for s in by(op) if s["_spanContext"]["traceId"] == trace)
        wait, new = mine("channel.wait"), mine("session.new")
        channel = new["attributes"][KEY + "acp_channel.id"]
        self.initialize = next(s for s in by("channel.initialize") if s["attributes"][KEY + "acp_channel.id"] == channel)
        length = lambda s: ns(s["endTime"]) - ns(s["startTime"])
        self.total = length(request)
        stages = {"runtime.wait": round(request["attributes"][KEY + "runtime.wait_ms"] * 1e6), "channel.wait": length(wait), "session.new": length(new)}
        stages["unattributed"] = self.total - sum(stages.values())
        self.stages = stages
        self.wait, self.request = wait, request
        startup = self.initialize["attributes"]
        prefix = KEY + "acp_startup."
        self.startup = startup[prefix + "child.process_to_response_ms"]
        self.phases = {k[len(prefix + "phase."):-3]: v for k, v in startup.items() if k.startswith(prefix + "phase.")}
        self.start = ns(request["startTime"])

    def outside_ms(self):
        """How far the request span reaches out of the client's window."""
        begin = round((self.client["spawn_at_epoch_ms"] + self.client["session_request_at_ms"]) * 1e6)
        end = begin + round(self.client["cold_session_ms"] * 1e6)
        inside = max(0, min(end, ns(self.request["endTime"])) - max(begin, self.start))
        return (self.total - inside) / 1e6


def main():
    runs = sorted((Run(folder) for folder in COLD.iterdir()), key=lambda run: run.start)
    names = list(runs[0].stages)
    totals = [run.total for run in runs]
    share = {n: statistics.median(r.stages[n] / r.total for r in runs) for n in names}
    mean_total = statistics.fmean(totals)
    variance = {}
    for n in names:
        mean = statistics.fmean(r.stages[n] for r in runs)
        variance[n] = sum((r.stages[n] - mean) * (r.total - mean_total) for r in runs) / sum((t - mean_total) ** 2 for t in totals)
    order = sorted(runs, key=lambda run: run.total)
    middle = order[5:7]                                  # a fifth of twelve, centred
    slow = order[-math.ceil(len(runs) * 0.1):]           # the slowest tenth
    excess = {n: statistics.fmean(r.stages[n] for r in slow) - statistics.fmean(r.stages[n] for r in middle) for n in names}
    top = lambda table: max(table, key=table.get)
    slow_share = {n: statistics.fmean(r.stages[n] for r in slow) / statistics.fmean(r.total for r in slow) for n in names}
    modules = statistics.median((r.phases["gemini_import"] + r.phases["acp_import"]) / r.startup for r in runs)
    ends = [abs(ns(r.wait["endTime"]) - ns(r.initialize["endTime"])) for r in runs]
    together = sum(end <= 1_000_000 and ns(r.wait["startTime"]) - ns(r.initialize["startTime"]) > 1_000_000 for end, r in zip(ends, runs))
    outside = [r.outside_ms() for r in runs]
    findings = [
        {"code": "dominant_stage", "values": {"stage": top(share), "share_p50": round(share[top(share)], 3), "variance_share": round(variance[top(share)], 3), "slowest": top(slow_share), "slowest_share": round(slow_share[top(slow_share)], 3)}},
        {"code": "group_share", "values": {"group": "module_loading", "share_p50": round(modules, 3)}},
        {"code": "shared_deadline", "values": {"stage": "channel.wait", "deadline": "channel.initialize", "runs": together}},
        {"code": "slow_runs", "values": {"stage": top(excess), "runs": [r.name for r in reversed(slow)], "excess_ms": half_up(excess[top(excess)] / 1e6), "of_ms": half_up(sum(excess.values()) / 1e6)}},
        {"code": "request_outlives_client", "values": {"runs": sum(o > 1 for o in outside), "of": len(runs), "most_ms": half_up(max(outside))}},
        {"code": "few_runs", "values": {"n": len(runs), "needs": next(n for n in range(1, 99) if 1 - 0.95**n - 0.05**n >= 0.95)}},
        {"code": "clock_quantum", "values": {"quantum_ms": 1}},
    ]
    absent = ["dominant_variance" if top(variance) == top(share) else None, "dominant_p95" if top(slow_share) == top(share) else None, "wrapper_or_relaunch" if statistics.median(r.startup * 1e6 / (ns(r.initialize["endTime"]) - ns(r.initialize["startTime"])) for r in runs) >= 0.5 else None]
    print(json.dumps({"findings": findings, "absent": [code for code in absent if code] + ["client_gap", "incomplete_chains", "failed_runs", "covariate", "mediator"], "variance_share": {n: round(v, 3) for n, v in variance.items()}}, indent=1))


main()
