"""Looks at every process's level, over and over: none may rise.

levels.py TIDEGATE STOP, until the file STOP is there. Prints `N looks, N rose`.
A fall that is refused in the end may be seen before it is put back, so a level counts once two
looks in a row have seen it.
"""

import json
import os
import subprocess
import sys
import time

tidegate, stop = sys.argv[1:]
last: dict[int, int] = {}
settled: dict[int, int] = {}
looks = rose = 0
while not os.path.exists(stop):
    ps = subprocess.run([tidegate, "ps", "--json"], capture_output=True, text=True)
    if ps.returncode:
        print("ps:", ps.stderr.strip())
        time.sleep(0.2)
        continue
    looks += 1
    seen = {}
    for line in ps.stdout.splitlines():
        process = json.loads(line)
        pid, level = process["pid"], process["number"]
        seen[pid] = level
        if level > settled.get(pid, level):
            rose += 1
            print("rose:", line)
        if last.get(pid) == level:
            settled[pid] = min(level, settled.get(pid, level))
    # a number that is gone may be another process's next
    settled = {pid: level for pid, level in settled.items() if pid in seen}
    last = seen
    time.sleep(0.3)
print(f"{looks} looks, {rose} rose")
