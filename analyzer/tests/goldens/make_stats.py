#!/usr/bin/env python3
"""Golden values of the statistics, made with numpy and scipy.

    python3 -m venv venv && venv/bin/pip install numpy scipy
    venv/bin/python make_stats.py > stats.json

Values were made with numpy 2.x and scipy 1.x; any later version must give the
same to 1e-9. The Hodges-Lehmann interval is counted here by brute force over
the null distribution (scipy has none): k from the exact distribution of the
signed-rank statistic, computed by convolution of its generating function.
"""
import json
import sys

import numpy as np
from scipy import stats

rng = np.random.default_rng(20261130)


def sample(n, ties=False):
    x = rng.gamma(4.0, 25.0, n)
    return [float(v) for v in (np.round(x / 20) * 20 if ties else np.round(x, 3))]


def quantiles():
    out = []
    for n in (1, 2, 5, 12, 30, 61):
        x = sample(n)
        for p in (0.0, 0.5, 0.9, 0.95, 1.0):
            out.append({"x": x, "p": p, "type7": float(np.quantile(x, p, method="linear")),
                        "nearest_rank": float(np.quantile(x, p, method="inverted_cdf"))})
    return out


def correlations():
    out = []
    for n, ties in ((4, False), (12, False), (30, True), (60, False)):
        x = sample(n, ties)
        y = [float(v) for v in np.round(np.array(x) * 0.7 + rng.normal(0, 30, n), 3)]
        if ties:
            y = [float(round(v / 20) * 20) for v in y]
        r = stats.pearsonr(x, y)
        ci = r.confidence_interval(0.95)
        out.append({"x": x, "y": y, "pearson": float(r.statistic), "low": float(ci.low), "high": float(ci.high),
                    "spearman": float(stats.spearmanr(x, y).statistic), "slope": float(stats.linregress(x, y).slope)})
    return out


def order_intervals():
    out = []
    for p in (0.5, 0.9, 0.95, 0.99):
        for n in (1, 5, 6, 12, 28, 29, 30, 58, 59, 60, 120, 298, 299, 1000):
            b = stats.binom(n, p)
            if p ** n + (1 - p) ** n > 0.05:
                out.append({"n": n, "p": p, "low": None, "high": None})
                continue
            above, below = p ** n, (1 - p) ** n
            low_budget = 0.05 - above if above > 0.025 else 0.025
            high_budget = 0.05 - below if below > 0.025 else 0.025
            low = max([1] + [l for l in range(1, n + 1) if b.cdf(l - 1) <= low_budget])
            high = min([n] + [u for u in range(1, n + 1) if b.sf(u - 1) <= high_budget])
            coverage = float(b.cdf(high - 1) - b.cdf(low - 1))
            assert coverage >= 0.95 - 1e-9, (n, p, coverage)
            out.append({"n": n, "p": p, "low": low, "high": high})
    return out


def null_distribution(n):
    polynomial = np.array([1], dtype=object)
    for rank in range(1, n + 1):
        factor = np.zeros(rank + 1, dtype=object)
        factor[0] = factor[rank] = 1
        polynomial = np.convolve(polynomial, factor)
    return polynomial


def hodges_lehmann():
    out = []
    for n in (1, 3, 6, 10, 25, 50, 51, 60, 120):
        d = [float(v) for v in np.round(rng.normal(-10, 18, n), 3)]
        walsh = sorted((d[i] + d[j]) / 2 for i in range(n) for j in range(i, n))
        low = high = None
        if n >= 6:
            counts = null_distribution(n)
            total, cumulative, k = 2 ** n, 0, 0
            for count in counts:
                cumulative += count
                if cumulative * 1000 > 25 * total:
                    break
                k += 1
            low, high = walsh[k - 1], walsh[-k]
        out.append({"d": d, "estimate": float(np.median(walsh)), "low": low, "high": high})
    return out


def variance_shares():
    parts = [sample(30) for _ in range(4)]
    total = np.sum(parts, axis=0)
    shares = [float(np.cov(part, total)[0, 1] / np.var(total, ddof=1)) for part in parts]
    return {"parts": parts, "shares": shares}


def within_groups():
    """Partial correlation by least squares on group indicators, p by Fisher's z;
    Holm's step-down written out."""
    own, out = np.random.default_rng(4748), []
    for sizes in ((12,), (6, 6), (4, 9, 7)):
        groups = [g for g, size in enumerate(sizes) for _ in range(size)]
        indicators = np.array([[g == k for k in range(len(sizes))] for g in groups], dtype=float)
        x = np.round(own.normal(0, 10, len(groups)) + 50 * np.array(groups), 3)
        y = np.round(0.6 * own.normal(0, 10, len(groups)) + 0.5 * x, 3)
        left = [v - indicators @ np.linalg.lstsq(indicators, v, rcond=None)[0] for v in (x, y)]
        r = float(np.corrcoef(left[0], left[1])[0, 1])
        z = np.arctanh(r) * np.sqrt(len(groups) - len(sizes) - 2)
        out.append({"groups": groups, "x": x.tolist(), "y": y.tolist(), "pearson": r, "p": float(2 * stats.norm.sf(abs(z)))})
    raw = [case["p"] for case in out] + [0.04, 0.01]
    order = np.argsort(raw)
    adjusted, reached = [0.0] * len(raw), 0.0
    for rank, index in enumerate(order):
        reached = max(reached, min(1.0, raw[index] * (len(raw) - rank)))
        adjusted[index] = reached
    return [{"cases": out, "raw": raw, "holm": adjusted}]


json.dump({"within": within_groups(), "quantiles": quantiles(), "correlations": correlations(), "order_intervals": order_intervals(),
           "hodges_lehmann": hodges_lehmann(), "variance_shares": variance_shares()}, sys.stdout, indent=None)
sys.stdout.write("\n")
