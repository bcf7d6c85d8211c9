"""What low subjects try and do while the machine is troubled (tests/long/lib.sh).

storm.py attack VICTIM N [MODE]  attack and work until /run/storm.stop is there. Runs at the
                         lowest level, with a kept file open for writing as descriptors 7 and 8.
                         `quick` leaves out what forks, `names` all but names in kept places; of
                         what `steady` makes little stays.
storm.py tally           adds up the reports; exit status 1 if anything came through, or if
                         something was not tried or honest work did not go on.

An attack is refused by any error but ENOENT, which would mean that what is kept has gone.
"""

import collections
import errno
import glob
import json
import os
import random
import signal
import sys
import time

STOP, LOW, TREE = "/run/storm.stop", "/srv/low", "/srv/t"
attacks, works = {}, {}


def attack(function):
    attacks[function.__name__] = function
    return function


def work(function):
    works[function.__name__] = function
    return function


def place(kinds="km"):
    """A directory: `k` kept, `m` where everybody may make files, `n` the lowest."""
    kind = random.choice(kinds)
    return f"{TREE}/{random.randrange(10) * 3 + 'kmn'.index(kind):02}{kind}"


def kept():
    return place() + random.choice(("/f", "/s/f"))


def own():
    """A file of ours, to be moved or linked over what is kept."""
    path = f"{LOW}/own.{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666))
    return path


def opened(path, flags):
    os.close(os.open(path, flags))


# --- what must be refused ---------------------------------------------------


@attack
def open_write(_):
    opened(kept(), os.O_WRONLY)


@attack
def open_append(_):
    opened(kept(), os.O_WRONLY | os.O_APPEND)


@attack
def open_truncate(_):
    opened(kept(), os.O_RDWR | os.O_TRUNC)


@attack
def create(_):
    opened(place("k") + "/new", os.O_WRONLY | os.O_CREAT)


@attack
def unlink(_):
    os.unlink(kept())


@attack
def remove_directory(_):
    os.rmdir(place("k") + "/s")


@attack
def rename_away(_):
    os.rename(kept(), f"{LOW}/stolen.{os.getpid()}")


@attack
def rename_over(_):
    os.rename(own(), kept())


@attack
def rename_in(_):
    os.rename(own(), place("k") + "/new")


@attack
def rename_within(_):
    d = place()
    os.rename(d + "/f", d + "/g")


@attack
def link_in(_):
    os.link(own(), place("k") + "/new")


@attack
def link_out(_):
    os.link(kept(), f"{LOW}/linked.{os.getpid()}.{random.random()}")


@attack
def symlink_in(_):
    os.symlink("f", place("k") + "/new")


@attack
def make_directory(_):
    os.mkdir(place("k") + "/new")


@attack
def make_fifo(_):
    os.mkfifo(place("k") + "/new")


@attack
def truncate(_):
    os.truncate(kept(), 0)


@attack
def chmod(_):
    os.chmod(kept(), 0o600)


@attack
def chown(_):
    os.chown(kept(), 1000, 1000)


@attack
def utime(_):
    os.utime(kept(), (1, 1))


@attack
def set_attribute(_):
    os.setxattr(kept(), "user.x", b"x")


@attack
def write_held(_):
    os.write(random.choice((7, 8)), b"x")


@attack
def truncate_held(_):
    os.ftruncate(7, 0)


@attack
def reopen_held(_):
    opened(f"/proc/self/fd/{random.choice((7, 8))}", os.O_WRONLY)


@attack
def send_signal(victim):
    os.kill(victim, random.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGUSR1)))


@attack
def write_memory(victim):
    opened(f"/proc/{victim}/mem", os.O_RDWR)


@attack
def set_priority(victim):
    os.setpriority(os.PRIO_PROCESS, victim, 19)


@attack
def write_oom_score(victim):
    with open(f"/proc/{victim}/oom_score_adj", "w") as file:
        file.write("1000")


@attack
def stop_daemon(_):
    with open("/run/tidegate/pid") as file:
        os.kill(int(file.read()), signal.SIGKILL)


@attack
def unpin(_):
    os.unlink("/sys/fs/bpf/tidegate/maps/subjects")


@attack
def write_given(_):
    opened("/var/lib/tidegate/given", os.O_WRONLY | os.O_CREAT)


@attack
def write_sysctl(_):
    opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)


# --- what must go on working ------------------------------------------------

made, stay = 0, 3000


@work
def make(_):
    """A file where everybody may make one; so many stay, to have their levels looked at."""
    global made
    made += 1
    path = f"{place('m')}/made.{os.getpid()}.{made}"
    opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    if made > stay:
        os.unlink(path)


@work
def make_and_write(_):
    """What one has made is one's own: it has not risen."""
    path = f"{place('m')}/own.{os.getpid()}"
    opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    opened(path, os.O_WRONLY)
    os.unlink(path)


@work
def make_directory_there(_):
    path = f"{place('m')}/made.d{os.getpid()}.{random.randrange(300)}"
    try:
        os.mkdir(path)
    except FileExistsError:
        os.rmdir(path)


@work
def move_there(_):
    """What is low by its place is still low in another."""
    name = f"made.v{os.getpid()}.{random.randrange(300)}"
    os.rename(own(), f"{place('m')}/{name}")


@work
def append(_):
    with open(own(), "a") as file:
        file.write("x\n")


@work
def read_kept(_):
    with open(kept()) as file:
        assert file.read() == "trusted\n"


def forked(function, victim):
    """The same in a child, which must come to the same end."""
    child = os.fork()
    if not child:
        try:
            function(victim)
            os._exit(0)
        except OSError as e:
            os._exit(e.errno)
        except BaseException:
            os._exit(255)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        raise OSError(status, "in a child")


def program(what):
    """An attack by a program of its own (attack.c)."""
    def function(victim):
        child = os.posix_spawn(LOW + "/attack", ["attack", what, str(victim)], {})
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            raise OSError(status, "in a program")
    return function


PROGRAMS = {name: program(name) for name in ("map", "trace", "seize", "limit", "write")}


def play(victim, number, mode):
    random.seed(int(number))
    tried, refused, done, undone, through = (collections.Counter() for _ in range(5))
    report = f"{LOW}/reports/report.{os.getpid()}"
    opened(f"{LOW}/reports/begun.{number}", os.O_WRONLY | os.O_CREAT)
    global stay
    stay = 100 if mode == "steady" else stay
    quick = mode in ("quick", "names")
    if not quick:
        attacks.update(PROGRAMS)
    elif mode == "names":
        # names in kept places, which a policy's node decides
        for name in set(attacks) - {"unlink", "rename_over", "rename_away"}:
            del attacks[name]
        for name in set(works) - {"make_and_write", "move_there"}:
            del works[name]
    began = time.monotonic()
    while not os.path.exists(STOP):
        for name, function in random.sample(sorted(attacks.items()), min(12, len(attacks))):
            tried[name] += 1
            try:
                if not quick and name not in PROGRAMS and random.random() < 0.1:
                    forked(function, victim)
                else:
                    function(victim)
                through[name] += 1
            except OSError as e:
                gone = e.errno == errno.ENOENT and name not in ("stop_daemon", "write_given")
                (through if gone else refused)[f"{name} {errno.errorcode.get(e.errno, e.errno)}"] += 1
            except ValueError:
                tried[name] -= 1  # the daemon's file is empty for a moment
        for name, function in works.items():
            try:
                function(victim)
                done[name] += 1
            except OSError as e:
                undone[f"{name} {errno.errorcode.get(e.errno, e.errno)}"] += 1
    with open(report, "w") as file:
        json.dump({"seconds": time.monotonic() - began, "tried": tried, "refused": refused,
                   "done": done, "undone": undone, "through": through}, file)


def tally():
    total = {k: collections.Counter() for k in ("tried", "refused", "done", "undone", "through")}
    reports = glob.glob(LOW + "/reports/report.*")
    seconds = 0
    for name in reports:
        with open(name) as file:
            report = json.load(file)
        seconds = max(seconds, report["seconds"])
        for key, counter in total.items():
            counter.update(report[key])
    through, undone, done = total["through"], total["undone"], total["done"]
    begun = len(glob.glob(LOW + "/reports/begun.*"))
    print(f"{begun} began, {len(reports)} reported; {sum(total['tried'].values())} attacks of "
          f"{len(total['tried'])} sorts in {seconds:.0f} s, {sum(through.values())} came through; "
          f"{sum(done.values())} pieces of work done, {sum(undone.values())} not")
    errors = collections.Counter()
    for name, count in total["refused"].items():
        errors[name.split()[1]] += count
    print("refused with", dict(errors), "not done", dict(undone))
    if through:
        print("CAME THROUGH", dict(through))
    missing = [name for name in attacks if not total["tried"][name]]
    idle = [name for name in works if not done[name]]
    if missing or idle:
        print("not tried", missing, "not done", idle)
    return 1 if through or missing or idle or not reports or len(reports) < begun else 0


if sys.argv[1] == "tally":
    sys.exit(tally())
play(int(sys.argv[2]), sys.argv[3], (sys.argv[4:] or ["whole"])[0])
