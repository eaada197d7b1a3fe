#!/usr/bin/env python3
"""Every number of three comparisons, computed with numpy and scipy from the same files.

    pip install numpy scipy
    python3 compare.py > compare.json

Shares no code with the analyzer. Times are milliseconds, sizes bytes. Walsh averages
are all made and sorted; ranks of their ends come from the counted signed-rank
distribution; order and drift from numpy.linalg.lstsq with scipy's Student t;
quantile bounds from scipy.stats.binom; p-values from scipy.stats.wilcoxon.
"""
import gzip
import json
import pathlib

import numpy as np
from scipy import stats

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "fixtures"
STAGES = ["runtime.wait", "channel.wait", "session.new"]


def coldpath(folder, control):
    """(arm, pair) -> start, figures, request stages, in ns and bytes."""
    traces = {}
    for line in gzip.decompress((FIXTURES / folder / "traces.jsonl.gz").read_bytes()).decode().splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    warm = any(a["value"].get("stringValue") == "warm" for a in span["attributes"])
                    traces.setdefault(span["traceId"], {})[span["name"] + ("/warm" if warm else "")] = span
    for spans in traces.values():
        start = lambda name: int(spans[name]["startTimeUnixNano"])
        end = lambda name: int(spans[name]["endTimeUnixNano"])
        words = {one["key"]: list(one["value"].values())[0] for one in spans["run"]["attributes"]}
        begin, post = start("run"), "POST /session"
        stages = {name: end(name) - start(name) if name in spans else 0 for name in STAGES}
        stages["unattributed"] = end(post) - start(post) - sum(stages.values())
        yield {
            "arm": 0 if words["coldpath.run.cohort"] == control else 1,
            "pair": int(words["coldpath.run.pair.index"]),
            "start": begin,
            "figures": {
                "process_to_listener": end("client.listener") - begin,
                "health": end("client.health") - start("client.health"),
                "process_to_health": end("client.health") - begin,
                "health_to_session": end("client.action") - end("client.health"),
                "action_to_session": end("client.action") - start("client.action"),
                "session_cold": end("client.session") - start("client.session"),
                "session_warm": end("client.session/warm") - start("client.session/warm"),
                "process_to_session": end("client.action") - begin,
                "rss_listener": int(words["coldpath.rss.listener_bytes"]),
                "rss_session": int(words["coldpath.rss.session_bytes"]),
            },
            "request": {"total": end(post) - start(post), **stages},
        }


def qwen():
    """Six pairs by start time, from what the client wrote."""
    ns = lambda ms: round(ms * 1e6)
    records = [json.loads(gzip.decompress(path.read_bytes())) for path in (FIXTURES / "qwen-serve-ab").glob("*/client.json.gz")]
    records.sort(key=lambda record: record["spawn_at_epoch_ms"])
    for place, r in enumerate(records):
        kib = lambda key: r[key]["total_kib"] * 1024
        yield {
            "arm": 0 if "control" in r["cohort"] else 1,
            "pair": place // 2,
            "start": r["spawn_at_epoch_ms"],
            "figures": {
                "process_to_listener": ns(r["spawn_to_listener_ms"]),
                "health": ns(r["health_ms"]),
                "process_to_health": ns(r["spawn_to_health_ms"]),
                "health_to_session": ns(r["spawn_to_session_ms"]) - ns(r["spawn_to_health_ms"]),
                "action_to_session": ns(r["spawn_to_session_ms"]) - ns(r["session_request_at_ms"]),
                "session_cold": ns(r["cold_session_ms"]),
                "session_warm": ns(r["warm_session_ms"]),
                "process_to_session": ns(r["spawn_to_session_ms"]),
                "shutdown": ns(r["shutdown_ms"]),
                "rss_listener": kib("rss_at_listener"),
                "rss_session": kib("rss_after_session"),
                "rss_peak": kib("rss_peak_50ms"),
            },
            "request": None,
        }


def rank(n, tail):
    """Largest k with P(W < k) at most the tail; whole numbers."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for r in range(1, n + 1):
        for total in range(len(counts) - 1, r - 1, -1):
            counts[total] += counts[total - r]
    k, below = 0, 0
    while (below + counts[k]) / 2**n <= tail:
        below += counts[k]
        k += 1
    return k


def walsh(d):
    n = len(d)
    i, j = np.triu_indices(n)
    averages = np.sort((d[i] + d[j]) / 2)
    two, one = rank(n, 0.025), rank(n, 0.05)
    ends = lambda k: [averages[k - 1], averages[-k]]
    return np.median(averages), ends(two), ends(one)


def quantile_change(a, b, p):
    n = len(a)
    qa, qb = np.quantile(a, p), np.quantile(b, p)
    a, b = np.sort(a), np.sort(b)
    def ends(tail):
        if max(p, 1 - p) ** n > tail:
            return None
        low = max(l for l in range(1, n + 1) if stats.binom.cdf(l - 1, n, p) <= tail)
        high = min(u for u in range(1, n + 1) if stats.binom.sf(u - 1, n, p) <= tail)
        return [qb - qa - np.hypot(qb - b[low - 1], a[high - 1] - qa), qb - qa + np.hypot(b[high - 1] - qb, qa - a[low - 1])]
    return qb - qa, ends(0.025), ends(0.05)


def sign(d):
    n, ordered = len(d), np.sort(d)
    low = max(l for l in range(1, n + 1) if stats.binom.cdf(l - 1, n, 0.5) <= 0.025)
    return np.median(d), [ordered[low - 1], ordered[n - low]]


def slots(d, orders):
    n = len(d)
    x = np.column_stack([np.ones(n), np.arange(n) / (n - 1) - 0.5, orders])
    terms, *_ = np.linalg.lstsq(x, d, rcond=None)
    residuals = d - x @ terms
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * (residuals @ residuals) / (n - 3))
    half = stats.t.ppf(0.975, n - 3) * errors
    centred = residuals - residuals.mean()
    r = (centred[:-1] @ centred[1:]) / (centred @ centred)
    ends = lambda k: [terms[k], [terms[k] - half[k], terms[k] + half[k]]]
    return {"order": ends(2), "drift": ends(1), "autocorrelation": [r, stats.norm.sf((r + 1 / n) * np.sqrt(n))]}


def p_value(d):
    # The exact distribution where it applies, else the normal one without a correction.
    ties = len(set(abs(d))) < len(d) or 0 in d
    if ties and len(d) <= 50:
        return None
    return stats.wilcoxon(d, zero_method="pratt", correction=False, method="exact" if len(d) <= 50 else "approx").pvalue


def compare(runs):
    pairs = {}
    for run in runs:
        pairs.setdefault(run["pair"], {})[run["arm"]] = run
    pairs = sorted((pair for pair in pairs.values() if len(pair) == 2), key=lambda pair: min(run["start"] for run in pair.values()))
    orders = np.array([1.0 if pair[0]["start"] < pair[1]["start"] else -1.0 for pair in pairs])
    metrics = {}
    for name in pairs[0][0]["figures"]:
        scale = 1.0 if name.startswith("rss") else 1e6
        a, b = (np.array([pair[arm]["figures"][name] for pair in pairs], float) / scale for arm in (0, 1))
        shift, p50, p95 = walsh(b - a), quantile_change(a, b, 0.5), quantile_change(a, b, 0.95)
        metrics[name] = {"n": len(pairs), "shift": shift, "sign": sign(b - a), "p50": p50, "p95": p95, "p": p_value(b - a), **slots(b - a, orders)}
    stages = {}
    if pairs[0][0]["request"]:
        for name in pairs[0][0]["request"]:
            d = np.array([pair[1]["request"][name] - pair[0]["request"][name] for pair in pairs], float) / 1e6
            if len(set(d)) > 1:
                stages[name] = walsh(d)
    return {"metrics": metrics, "stages": stages}


def plain(value):
    return value.item() if hasattr(value, "item") else value


print(json.dumps({
    "qwen-serve-ab": compare(qwen()),
    "verdicts/import-closure": compare(coldpath("verdicts/import-closure", "control")),
    "verdicts/await-preheat": compare(coldpath("verdicts/await-preheat", "control")),
}, default=plain, indent=1))
