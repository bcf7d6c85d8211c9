"""A flood of refusals: flood.py N until /run/storm.stop is there, at the lowest level.

1: one file, over and over; 2: another file each time, which no rate limit takes together;
3: names that do not exist, in a kept directory; 4: from a new process every time.
`flood.py tally` adds up: exit status 1 if one attempt came through.
"""

import glob
import json
import os
import random
import sys

STOP, LOW, TREE = "/run/storm.stop", "/srv/low", "/srv/t"


def files():
    return f"{TREE}/{random.randrange(10) * 3:02}k/f"


def attempt(kind):
    if kind == 2:
        os.truncate(random.choice(kept), 0)
    elif kind == 3:
        os.mkdir(f"{TREE}/00k/{random.random()}")
    else:
        os.close(os.open(files() if kind == 4 else TREE + "/00k/f", os.O_WRONLY))


def tally():
    refused = through = 0
    for name in glob.glob(LOW + "/flood.report.*"):
        with open(name) as file:
            report = json.load(file)
        refused, through = refused + report[0], through + report[1]
    print(f"{refused} attempts refused, {through} came through")
    return 1 if through or not refused else 0


if sys.argv[1] == "tally":
    sys.exit(tally())
number = int(sys.argv[1])
kept = glob.glob("/usr/share/**/*", recursive=True)
kept = [name for name in kept if os.path.isfile(name)]
refused = through = 0
while not os.path.exists(STOP):
    for _ in range(100):
        if number == 4:
            child = os.fork()
            if not child:
                try:
                    attempt(4)
                    os._exit(0)
                except PermissionError:
                    os._exit(1)
            came = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        else:
            try:
                attempt(number)
                came = True
            except PermissionError:
                came = False
        refused, through = refused + (not came), through + came
with open(f"{LOW}/flood.report.{number}", "w") as file:
    json.dump([refused, through], file)
