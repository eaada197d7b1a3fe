"""Times `analyze`, DuckDB and chDB on one file, in turns, and compares their P50s.

    python3 p50.py ANALYZE FILE ROUNDS SPANS

Processor time and peak memory are the kernel's, of each child process (wait4).
"""
import json
import os
import subprocess
import sys
import time

# Windows and stages of the report that are one span a run, and the span's name.
SAME = {("request", None): "POST /session", ("request", "channel.wait"): "channel.wait", ("request", "session.new"): "session.new", ("agent.startup", None): "agent.startup", ("daemon.boot", None): "daemon.boot"}

DUCKDB = """
import duckdb, json, sys
query = '''
WITH groups AS (SELECT unnest(resourceSpans) AS g FROM read_json('{0}', format='newline_delimited', maximum_object_size=67108864,
  columns={{'resourceSpans': 'STRUCT(scopeSpans STRUCT(spans STRUCT(name VARCHAR, startTimeUnixNano VARCHAR, endTimeUnixNano VARCHAR)[])[])[]'}})),
scopes AS (SELECT unnest(g.scopeSpans) AS s FROM groups),
spans AS (SELECT unnest(s.spans) AS x FROM scopes)
SELECT x.name, quantile_cont(CAST(x.endTimeUnixNano AS BIGINT) - CAST(x.startTimeUnixNano AS BIGINT), 0.5) FROM spans GROUP BY 1'''
print(json.dumps(dict(duckdb.sql(query.format(sys.argv[1])).fetchall())))
"""

CHDB = """
import chdb, json, sys
query = '''
SELECT tupleElement(x, 1) AS name, quantileExactInclusive(0.5)(toInt64(tupleElement(x, 3)) - toInt64(tupleElement(x, 2))) AS p50
FROM (SELECT arrayJoin(tupleElement(arrayJoin(tupleElement(arrayJoin(JSONExtract(line, 'resourceSpans',
  'Array(Tuple(scopeSpans Array(Tuple(spans Array(Tuple(name String, startTimeUnixNano String, endTimeUnixNano String))))))')), 1)), 1)) AS x
  FROM file('{0}', LineAsString)) GROUP BY name'''
print(json.dumps({{row['name']: float(row['p50']) for row in map(json.loads, str(chdb.query(query.format(sys.argv[1]), 'JSONEachRow')).splitlines())}}))
""".replace("{{row", "{row").replace("splitlines())}}", "splitlines())}")


def timed(words):
    """Wall seconds, processor seconds, peak MiB and standard output of a program."""
    read, write = os.pipe()
    began = time.monotonic()
    child = subprocess.Popen(words, stdout=write, stdin=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    if status != 0:
        sys.exit(f"{words[0]} failed: wait status {status}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def p50s_of_report(report):
    found = {}
    windows = {window["name"]: window for window in report["windows"]}
    for (window, stage), span in SAME.items():
        part = windows[window]["total"] if stage is None else next(s for s in windows[window]["stages"] if s["name"] == stage)
        found[span] = part["p50"] * 1e6
    return found


def main():
    analyze, file, rounds, spans = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    programs = {
        "analyze, full report": [analyze, file],
        "DuckDB, P50 a name": [sys.executable, "-c", DUCKDB, file],
        "chDB, P50 a name": [sys.executable, "-c", CHDB, file],
    }
    best = {name: None for name in programs}
    for turn in range(rounds + 1):
        for name, words in programs.items():
            wall, cpu, rss, text = timed(words)
            if turn:
                old = best[name]
                best[name] = (min(wall, old[0]), min(cpu, old[1]), max(rss, old[2]), text) if old else (wall, cpu, rss, text)
    report = json.loads(timed([analyze, file, "--format", "json"])[3])
    own = p50s_of_report(report)
    for name in ("DuckDB, P50 a name", "chDB, P50 a name"):
        theirs = json.loads(best[name][3])
        for span, value in own.items():
            # The report prints nanoseconds; a median of two may lie half way.
            if abs(theirs[span] - value) > 0.51:
                sys.exit(f"P50 of {span}: {name} says {theirs[span]} ns, analyze {value} ns")
    size = os.path.getsize(file) / 1e6
    print(f"P50s of {len(own)} spans agree; best of {rounds} turns; MB = 10^6 bytes")
    print(f"{'':24} {'wall s':>7} {'MB/s':>7} {'CPU s':>7} {'MB/CPU-s':>9} {'peak MiB':>9}")
    for name, (wall, cpu, rss, _) in best.items():
        print(f"{name:24} {wall:7.3f} {size / wall:7.0f} {cpu:7.3f} {size / cpu:9.0f} {rss:9.1f}")
    print(f"bound for analyze: 64 MiB + 200 B a span = {64 + 200 * spans / 2**20:.1f} MiB")


main()
