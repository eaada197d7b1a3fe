"""Times one program on one file: NAME COUNT PROGRAM FILE."""
import os
import subprocess
import sys
import time

name, count, program, file = sys.argv[1:5]
began = time.monotonic()
child = subprocess.Popen([program, file], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
wall = time.monotonic() - began
if status not in (0, 3 << 8):
    sys.exit(f"{program} failed on {name}: wait status {status}")
cpu = usage.ru_utime + usage.ru_stime
print(f"{name}: {int(count):,} spans, {os.path.getsize(file) / 1e6:.0f} MB: {wall:.2f} s, {cpu:.2f} CPU-s, peak {usage.ru_maxrss / 1024:.0f} MiB")
