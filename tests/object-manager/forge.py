#!/usr/bin/env python3
"""What somebody does who would have an object manager believe what is not so.

forge.py words              the words of the status page
forge.py page               tries all that would change, cut or replace the page or the socket: 0 if nothing could be
forge.py ask QUESTION       a raw question to the daemon, and its answer
forge.py pair               who is at the other end of a pair of sockets
forge.py flood              two hundred records at once
forge.py record ABOUT       one record
forge.py stall FILE         connections to the daemon that say nothing: makes the file then, and stays until it is gone
forge.py inherit T CONTEXT  connects to the store, then becomes a program in another context that uses the connection
"""
import os
import socket
import struct
import sys
import time

PAGE = "/run/tidegate/status"
SOCKET = "/run/tidegate/tidegate.sock"
STORE = "/run/docstore.sock"


def words():
    with open(PAGE, "rb") as file:
        page = file.read()
    names = "version sequence enforcing policyload deny_unknown enabled".split()
    values = struct.unpack_from("6I", page)
    return " ".join(f"{name}={value}" for name, value in zip(names, values))


def writes():
    with open(PAGE, "r+b") as file:
        file.write(b"x")


def reopens():
    fd = os.open(PAGE, os.O_RDONLY)
    os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR))


def replaces():
    name = PAGE + ".mine"
    with open(name, "wb") as file:
        file.write(bytes(4096))
    os.rename(name, PAGE)


def binds():
    name = SOCKET + ".mine"
    socket.socket(socket.AF_UNIX).bind(name)
    os.rename(name, SOCKET)


def page():
    before = words()
    attempts = {
        "write": writes,
        "reopen": reopens,
        "cut": lambda: os.truncate(PAGE, 0),
        "chmod": lambda: os.chmod(PAGE, 0o666),
        "remove": lambda: os.unlink(PAGE),
        "replace": replaces,
        "socket": lambda: os.unlink(SOCKET),
        "bind": binds,
    }
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
            done.append(name)
        except OSError as error:
            print(f"{name}: {error.strerror}")
    if words() != before:
        done.append(words())
    print("done:", *done)
    return bool(done)


def ask(question):
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(SOCKET)
        daemon.sendall(question.encode() + b"\n")
        return daemon.makefile().readline().strip()


def pair():
    one, _other = socket.socketpair()
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.connect(SOCKET)
        question = b'{"ask":"security","question":{"what":"peer"}}\n'
        daemon.sendmsg([question], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", one.fileno()))])
        return daemon.makefile().readline().strip()


def record(about):
    parts = dict(what="record", verdict="denied", source="system_u:system_r:boss_t:s0",
                 target="system_u:object_r:plan_t:s0", request="read", denied="read", about=about)
    parts["class"] = "document"
    words = ",".join(f'"{name}":"{value}"' for name, value in parts.items())
    return '{"ask":"security","question":{%s,"missed":0}}' % words


def inherit(tidegate, context):
    store = socket.socket(socket.AF_UNIX)
    store.connect(STORE)
    store.set_inheritable(True)
    os.execv(tidegate, [tidegate, "run", "--context", context, "--", sys.executable, __file__, "use", str(store.fileno())])


def use(number):
    store = socket.socket(fileno=int(number))
    store.sendall(b"GET /doc/plan HTTP/1.1\r\n\r\n")
    print(store.makefile().readline().strip())


def stalled():
    daemon = socket.socket(socket.AF_UNIX)
    daemon.setblocking(False)
    try:
        daemon.connect(SOCKET)
    except OSError:
        pass
    return daemon


def is_held(daemon):
    try:
        return daemon.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def stall(sign):
    """Asks nothing by many connections; one that the daemon lets go is made anew."""
    held = [stalled() for _ in range(100)]
    open(sign, "w").close()
    while os.path.exists(sign):
        time.sleep(0.1)
        held = [daemon if is_held(daemon) else stalled() for daemon in held]


match sys.argv[1:]:
    case ["words"]:
        print(words())
    case ["page"]:
        sys.exit(page())
    case ["ask", question]:
        print(ask(question))
    case ["pair"]:
        print(pair())
    case ["flood"]:
        for n in range(200):
            ask(record(f"flood {n}\\nforged: line"))
    case ["record", about]:
        print(ask(record(about)))
    case ["stall", sign]:
        stall(sign)
    case ["inherit", tidegate, context]:
        inherit(tidegate, context)
    case ["use", number]:
        use(number)
    case _:
        sys.exit(__doc__)
