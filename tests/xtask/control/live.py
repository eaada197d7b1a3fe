"""How far the live view's times are from the trace's: one line a span name.

    live.py FOLDER…   each with the views `live*.json` and the trace in `traces/*.jsonl`

Both clocks are the process's own; the view is dated by `unix_nano` of its first event,
which is read some microseconds before that event's own time: shifts are that much low.
"""

import glob
import json
import statistics
import sys


def traced(folder):
    """Start and length of each span in nanoseconds, by id."""
    found = {}
    for path in glob.glob(f"{folder}/traces/**/*.jsonl", recursive=True):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                for resource in json.loads(line).get("resourceSpans", []):
                    for scope in resource.get("scopeSpans", []):
                        for span in scope.get("spans", []):
                            start = int(span["startTimeUnixNano"])
                            found[span["spanId"]] = (start, int(span["endTimeUnixNano"]) - start)
    return found


def viewed(path):
    """Name, id, start and length of each span of a view in nanoseconds."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)
    first = next(event for event in events if event["name"] == "live view begins")
    zero = int(first["args"]["unix_nano"]) - first["ts"] * 1e3
    ends = {event["args"]["span_id"]: event["ts"] for event in events if event["ph"] == "e"}
    for event in events:
        if event["ph"] == "b":
            span = event["args"]["span_id"]
            yield event["name"], span, zero + event["ts"] * 1e3, (ends[span] - event["ts"]) * 1e3


def main(folders):
    shifts, stretches = {}, {}
    for folder in folders:
        spans = traced(folder)
        for path in glob.glob(f"{folder}/live*.json"):
            for name, span, start, length in viewed(path):
                if span in spans:
                    shifts.setdefault(name, []).append((start - spans[span][0]) / 1e3)
                    stretches.setdefault(name, []).append((length - spans[span][1]) / 1e3)
    print(f"{'live view minus trace, µs':34} {'n':>5} {'start p50':>10} {'max':>9} {'length p50':>11} {'max':>9}")
    for name in sorted(shifts):
        start, length = shifts[name], stretches[name]
        print(
            f"{name:34} {len(start):5} {statistics.median(start):10.1f} {max(start, key=abs):9.1f}"
            f" {statistics.median(length):11.1f} {max(length, key=abs):9.1f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
