#!/usr/bin/env python3
"""Independent figures for the twelve cold captures in fixtures/qwen-serve-0.24.4/cold.

Needs Python 3.9 or newer and nothing else. Shares no code with the analyzer: it
decodes the concatenated JSON with the json module and does plain arithmetic.

    python3 qwen_cold.py ../../../fixtures/qwen-serve-0.24.4/cold > qwen_cold.json

Definitions, all in milliseconds:
  total         duration of the first `POST /session` request span that has a session.new child
  runtime.wait  its attribute qwen-code.daemon.runtime.wait_ms
  channel.wait  duration of its child span with that operation
  session.new   duration of its child span with that operation
  unattributed  total minus the three
  agent         attribute child.process_to_response_ms of channel.initialize (same channel id as session.new)
  module_loading  its phases gemini_import + acp_import
  share         median over runs of stage / total
"""
import gzip
import json
import pathlib
import statistics
import sys

OP = "qwen-code.daemon.operation"
CHANNEL = "qwen-code.daemon.acp_channel.id"
STARTUP = "qwen-code.daemon.acp_startup."
STAGES = ["runtime.wait", "channel.wait", "session.new", "unattributed"]


def values(text):
    decoder = json.JSONDecoder()
    at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        value, at = decoder.raw_decode(text, at)
        yield value


def ns(pair):
    return pair[0] * 1_000_000_000 + pair[1]


def ms(nanos):
    return nanos / 1e6


def one_run(folder):
    with gzip.open(folder / "telemetry.json.gz", "rt", encoding="utf-8") as file:
        spans = [v for v in values(file.read()) if "startTime" in v and "_spanContext" in v]
    with gzip.open(folder / "client.json.gz", "rt", encoding="utf-8") as file:
        client = json.load(file)
    children = {}
    for span in spans:
        parent = span.get("parentSpanContext")
        if parent:
            children.setdefault((parent["traceId"], parent["spanId"]), []).append(span)
    requests = []
    for span in spans:
        if span["attributes"].get("http.route") != "POST /session":
            continue
        context = span["_spanContext"]
        below = {c["attributes"][OP]: c for c in children.get((context["traceId"], context["spanId"]), [])}
        if "session.new" in below:
            requests.append((ns(span["startTime"]), span, below))
    requests.sort(key=lambda item: item[0])
    _, request, below = requests[0]
    total = ms(ns(request["_duration"]))
    stages = {
        "runtime.wait": request["attributes"].get("qwen-code.daemon.runtime.wait_ms", 0.0),
        "channel.wait": ms(ns(below["channel.wait"]["_duration"])),
        "session.new": ms(ns(below["session.new"]["_duration"])),
    }
    stages["unattributed"] = total - sum(stages.values())
    channel = below["session.new"]["attributes"][CHANNEL]
    initialize = next(
        s for s in spans
        if s["attributes"].get(OP) == "channel.initialize" and s["attributes"].get(CHANNEL) == channel
    )
    spawn = next(
        s for s in spans
        if s["attributes"].get(OP) == "channel.spawn" and s["attributes"].get(CHANNEL) == channel
    )
    phases = {
        key[len(STARTUP + "phase."):-len("_ms")]: value
        for key, value in initialize["attributes"].items()
        if key.startswith(STARTUP + "phase.")
    }
    agent = initialize["attributes"][STARTUP + "child.process_to_response_ms"]
    child = children[(below["session.new"]["_spanContext"]["traceId"], below["session.new"]["_spanContext"]["spanId"])][0]
    session_stages = {
        key.split(".")[-1][:-len("_ms")]: value
        for key, value in child["attributes"].items()
        if "session_start." in key
    }
    client_start = client["spawn_at_epoch_ms"] + client["session_request_at_ms"]
    request_start = ms(ns(request["startTime"]))
    return {
        "run": client["run"],
        "total": total,
        "stages": stages,
        "spawn": ms(ns(spawn["_duration"])),
        "initialize": ms(ns(initialize["_duration"])),
        "agent": agent,
        "phases": phases,
        "agent_unattributed": initialize["attributes"][STARTUP + "child.unattributed_ms"],
        "module_loading": phases["gemini_import"] + phases["acp_import"],
        "session_start": ms(ns(child["_duration"])),
        "session_stages": session_stages,
        "client": client["cold_session_ms"],
        "gap_before": request_start - client_start,
        "gap_after": client_start + client["cold_session_ms"] - request_start - total,
        "metrics": {
            "process_to_listener": client["spawn_to_listener_ms"],
            "health": client["health_ms"],
            "process_to_health": client["spawn_to_health_ms"],
            "session_cold": client["cold_session_ms"],
            "session_warm": client["warm_session_ms"],
            "process_to_session": client["spawn_to_session_ms"],
            "shutdown": client["shutdown_ms"],
            "rss_listener_kib": client["rss_at_listener"]["total_kib"],
            "rss_session_kib": client["rss_after_session"]["total_kib"],
            "rss_peak_kib": client["rss_peak_50ms"]["total_kib"],
        },
    }


def pearson(xs, ys):
    mx, my = statistics.fmean(xs), statistics.fmean(ys)
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys))
    sxx = sum((x - mx) ** 2 for x in xs)
    syy = sum((y - my) ** 2 for y in ys)
    return sxy / (sxx * syy) ** 0.5


def covariance_share(xs, ts):
    mx, mt = statistics.fmean(xs), statistics.fmean(ts)
    return sum((x - mx) * (t - mt) for x, t in zip(xs, ts)) / sum((t - mt) ** 2 for t in ts)


def main(root):
    runs = [one_run(folder) for folder in sorted(pathlib.Path(root).iterdir())]
    totals = [run["total"] for run in runs]
    column = {name: [run["stages"][name] for run in runs] for name in STAGES}
    summary = {
        "n": len(runs),
        "p50": {"total": statistics.median(totals)},
        "max": {"total": max(totals)},
        "mean": {"total": statistics.fmean(totals)},
        "share_p50": {},
        "variance_share": {},
        "pearson_with_client": {},
    }
    client = [run["client"] for run in runs]
    for name in STAGES:
        summary["p50"][name] = statistics.median(column[name])
        summary["max"][name] = max(column[name])
        summary["mean"][name] = statistics.fmean(column[name])
        summary["share_p50"][name] = statistics.median(s / t for s, t in zip(column[name], totals))
        summary["variance_share"][name] = covariance_share(column[name], totals)
        summary["pearson_with_client"][name] = pearson(column[name], client)
    summary["agent_p50"] = statistics.median(run["agent"] for run in runs)
    summary["module_loading_p50"] = statistics.median(run["module_loading"] for run in runs)
    summary["module_loading_share_p50"] = statistics.median(run["module_loading"] / run["agent"] for run in runs)
    json.dump({"summary": summary, "runs": runs}, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


main(sys.argv[1])
