"""Times programs in turns: ROUNDS, then on standard input one case a line as JSON.

A case is {"case", "limit_s", "limit_mib", "programs": [{"name", "code", "says", "words", "folder", "env"}]}.
The first program of a case is the one that the limits are for; the others are its controls.
Each runs once to warm the page cache and then in turns. Wall time is this process's clock,
processor time and peak memory are the kernel's, of each child with its own children (wait4).
"""
import json
import os
import statistics
import subprocess
import sys
import time


def timed(program, scratch):
    with open(scratch, "w") as out:
        began = time.monotonic()
        child = subprocess.Popen(program["words"], cwd=program["folder"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=os.environ | program["env"])
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
    code, text = os.waitstatus_to_exitcode(status), open(scratch).read()
    if code != program["code"] or program["says"] not in text:
        sys.exit(f"{program['name']} ended with {code} and not with {program['code']} and `{program['says']}`:\n{text[-2000:]}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def load():
    return open("/proc/loadavg").read().split()[0]


def row(name, runs):
    walls, cpus, peaks = zip(*runs)
    return f"  {name:<12} median {statistics.median(walls):7.3f} s  ({min(walls):.3f} to {max(walls):.3f}), {statistics.median(cpus):6.2f} CPU-s, peak {max(peaks):5.0f} MiB"


def main():
    rounds, scratch = int(sys.argv[1]), sys.argv[2]
    cases = [json.loads(line) for line in sys.stdin if line.strip()]
    pairs = [(case["case"], program) for case in cases for program in case["programs"]]
    for _, program in pairs:
        timed(program, scratch)
    before, runs = load(), {}
    for _ in range(rounds):
        for case, program in pairs:
            runs.setdefault((case, program["name"]), []).append(timed(program, scratch))
    print(f"n = {rounds}, in turns; load average {before} before and {load()} after")
    missed = 0
    for case in cases:
        print(case["case"])
        ours = runs[case["case"], case["programs"][0]["name"]]
        for program in case["programs"]:
            theirs = runs[case["case"], program["name"]]
            text = row(program["name"], theirs)
            if theirs is not ours:
                ratio = statistics.median([t[0] / o[0] for t, o in zip(theirs, ours)])
                text += f", {ratio:.2f} x the guard's time (median of pairs)"
            print(text)
        wall, peak = statistics.median([run[0] for run in ours]), max(run[2] for run in ours)
        for value, limit, unit in ((wall, case["limit_s"], "s"), (peak, case["limit_mib"], "MiB")):
            if limit and value > limit:
                print(f"  MISSED: {value:.2f} {unit}, to reach were {limit} {unit}")
                missed += 1
    sys.exit(1 if missed else 0)


main()
