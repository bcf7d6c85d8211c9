"""Samples of memory, and whether it grows (tests/long/soak.sh).

soak.py sample PID AT    prints a line: seconds, and kilobytes of each of COLUMNS.
soak.py judge FILE       the rise, by least squares, through the last third of the samples; exit status 1
                         if one is above its bound. What a run fills at its beginning is not asked:
                         a short one shows that nothing grows fast, a long one that nothing grows.
"""

import sys

# What is looked at, and by how much it may rise in the last third, kB.
COLUMNS = {
    "daemon": 512,  # its resident memory
    "unreclaimable": 1024,  # the kernel's slabs without caches: labels of subjects and objects
    "percpu": 128,  # the tables'
    "vmalloc": 512,
    "run": 256,  # files in /run/tidegate
}


def number(path, key):
    with open(path) as file:
        for line in file:
            if line.startswith(key):
                return int(line.split()[1])
    raise SystemExit(f"{path} has no {key}")


def sample(pid, at):
    import os
    run = sum(os.stat(os.path.join(d, f)).st_blocks for d, _, fs in os.walk("/run/tidegate") for f in fs)
    print(at, number(f"/proc/{pid}/status", "VmRSS:"), number("/proc/meminfo", "SUnreclaim:"),
          number("/proc/meminfo", "Percpu:"), number("/proc/meminfo", "VmallocUsed:"), run // 2)


def slope(points):
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    over = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / over if over else 0.0


def judge(name):
    with open(name) as file:
        rows = [[int(word) for word in line.split()] for line in file]
    if len(rows) < 9:
        print(len(rows), "samples are too few")
        return 1
    late = rows[len(rows) * 2 // 3:]
    span = late[-1][0] - late[0][0]
    bad = 0
    for column, (what, bound) in enumerate(COLUMNS.items(), 1):
        rise = slope([(row[0], row[column]) for row in late]) * span
        word = "ok" if rise <= bound else "GROWS"
        bad += rise > bound
        print(f"{what:>14}: {rows[0][column]:>7} kB at first, {late[0][column]:>7} then, {rows[-1][column]:>7} "
              f"at the end, {rise:+8.1f} in the last {span} s of at most {bound} {word}")
    return 1 if bad else 0


if sys.argv[1] == "sample":
    sample(sys.argv[2], sys.argv[3])
else:
    sys.exit(judge(sys.argv[2]))
