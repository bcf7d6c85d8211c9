"""Low subjects that take memory (tests/long/memory.sh).

memory.py hold N   N children each make a file in a kept place, for which their label needs storage,
                   and stay until all have tried.
memory.py report   what came of it.
memory.py failed   exit status 0 if some were refused for want of memory.
memory.py hog N    takes memory until it is killed, with N for its oom_score_adj.
"""

import collections
import errno
import json
import os
import sys

LOW, TREE = "/srv/low", "/srv/t"


def make(number):
    path = f"{TREE}/{number % 10 * 3 + 1:02}m/made.h{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def hold(count):
    errors = collections.Counter()
    read, write = os.pipe()
    children = []
    for number in range(count):
        try:
            child = os.fork()
        except OSError as e:
            errors["fork " + errno.errorcode[e.errno]] += 1
            continue
        if not child:
            try:
                os.close(write)
                result = 0
                try:
                    make(number)
                except OSError as e:
                    result = e.errno
                os.read(read, 1)
                os._exit(result)
            finally:
                os._exit(255)
        children.append(child)
    os.close(write)
    for child in children:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors["create " + (errno.errorcode.get(status, str(status)) if status else "done")] += 1
    with open(LOW + "/hold.report", "w") as file:
        json.dump(errors, file)


match sys.argv[1]:
    case "hold":
        hold(int(sys.argv[2]))
    case "report":
        with open(LOW + "/hold.report") as file:
            print(file.read())
    case "failed":
        with open(LOW + "/hold.report") as file:
            sys.exit(not any(name.endswith("ENOMEM") for name in json.load(file)))
    case "hog":
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(sys.argv[2])
        taken = []
        while True:
            taken.append(b"x" * (8 << 20))
