# Does what a line on standard input says, and says what came of it: `ok …`, or the errno's name.
import array
import errno
import fcntl
import importlib.machinery
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading

files = {}
kept = []


def path_or_abstract(name):
    return "\0" + name[1:] if name.startswith("@") else name


def kind(word):
    return socket.SOCK_STREAM if word == "tcp" else socket.SOCK_DGRAM


def do(op, *args):
    if op == "open":
        name, path, mode = args
        flags = {
            "r": os.O_RDONLY,
            "w": os.O_WRONLY,
            "rw": os.O_RDWR,
            "a": os.O_WRONLY | os.O_APPEND,
            "c": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        }[mode]
        files[name] = os.open(path, flags | os.O_CLOEXEC, 0o644)
    elif op == "read":
        os.lseek(files[args[0]], 0, os.SEEK_SET)
        return os.read(files[args[0]], 100).decode().strip()
    elif op == "write":
        os.write(files[args[0]], b"x\n")
    elif op == "close":
        os.close(files.pop(args[0]))
    elif op == "lock":
        fcntl.flock(files[args[0]], fcntl.LOCK_SH)
    elif op == "ioctl":
        fcntl.ioctl(files[args[0]], 0x5401, bytearray(60))
    elif op == "map":
        # by a program of the same layers: mmap(2) of a page to be read, shared
        fd = files[args[0]]
        script = f"syscall(9, 0, 4096, 1, 1, {fd}, 0); $| = 1; print STDOUT 'mapped'; sleep(1000)"
        kept.append(subprocess.Popen(["/usr/bin/perl", "-e", script], pass_fds=[fd], stdout=subprocess.PIPE))
        kept[-1].stdout.read(6)
        return str(kept[-1].pid)
    elif op == "truncate":
        os.truncate(args[0], 0)
    elif op == "chmod":
        os.chmod(args[0], 0o600)
    elif op == "fchmod":
        os.fchmod(files[args[0]], 0o600)
    elif op in ("unlink", "mkdir", "rmdir"):
        getattr(os, op)(args[0])
    elif op in ("rename", "link", "symlink"):
        getattr(os, op)(args[0], args[1])
    elif op == "list":
        return " ".join(sorted(os.listdir(args[0])))
    elif op == "stat":
        os.stat(args[0])
    elif op == "exec":
        done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True)
        return f"exit {done.returncode} {done.stdout.decode().strip()} {done.stderr.decode().strip()}".replace("\n", " ")
    elif op == "spawn":
        kept.append(subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        return str(kept[-1].pid)
    elif op == "preload":
        # the dynamic linker says on standard error what it cannot map
        program = [sys.executable, "-IBS", "-c", "print('ran')"]
        done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, env={"LD_PRELOAD": args[0]})
        return f"exit {done.returncode} {done.stdout.decode().strip()} {done.stderr.decode().strip()}".replace("\n", " ")
    elif op in ("connect", "bind"):
        name, family, place = args[:3]
        if family == "unix":
            s = socket.socket(socket.AF_UNIX)
            getattr(s, op)(path_or_abstract(place))
            if op == "bind":
                s.listen()
        else:
            s = socket.socket(socket.AF_INET6 if ":" in place else socket.AF_INET, kind(family))
            s.settimeout(60)
            getattr(s, op)((place, int(args[3])))
        files[name] = s.detach()
    elif op == "send":
        s = socket.socket(fileno=os.dup(files[args[0]]))
        s.send(b"x")
    elif op == "sendto":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b"x", (args[0], int(args[1])))
    elif op == "recv":
        s = socket.socket(fileno=os.dup(files[args[0]]))
        s.settimeout(60)
        return s.recv(100).decode()
    elif op == "give":
        # over a connection, a file
        s = socket.socket(fileno=os.dup(files[args[0]]))
        fds = array.array("i", [files[args[1]]])
        s.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    elif op == "take":
        s = socket.socket(fileno=os.dup(files[args[0]]))
        s.settimeout(60)
        _, ancillary, _, _ = s.recvmsg(1, socket.CMSG_SPACE(4))
        if not ancillary:
            return "nothing"
        files[args[1]] = array.array("i", ancillary[0][2])[0]
    elif op == "pipe":
        files[args[0] + "r"], files[args[0] + "w"] = os.pipe()
    elif op == "kill":
        os.kill(int(args[0]), 0)
    elif op == "load":
        # the dynamic linker maps it; that it is no module of Python's is told afterwards
        loader = importlib.machinery.ExtensionFileLoader("library", args[0])
        try:
            loader.create_module(importlib.util.spec_from_loader("library", loader))
        except ImportError as e:
            if "does not define" not in str(e):
                raise PermissionError(errno.EACCES, str(e)) from e
    elif op == "thread":
        kept.append(threading.Thread(target=threading.Event().wait, daemon=True))
        kept[-1].start()
    elif op == "narrow":
        # by itself, at once: with a bundle that is in a file; 15: F_SEAL_SEAL, SHRINK, GROW, WRITE
        bundle = os.memfd_create("bundle", os.MFD_ALLOW_SEALING)
        with open(args[0], "rb") as f:
            os.write(bundle, f.read())
        fcntl.fcntl(bundle, fcntl.F_ADD_SEALS, 15)
        return ask({"ask": "capabilities", "subject": args[1], "now": True}, bundle)
    elif op == "threads":
        # whether each may open it
        outcomes = []

        def one():
            try:
                os.close(os.open(args[0], os.O_RDONLY))
                outcomes.append("ok")
            except OSError as e:
                outcomes.append(errno.errorcode[e.errno])

        own = threading.Thread(target=one)
        own.start()
        own.join()
        return " ".join(outcomes)
    else:
        raise ValueError(op)
    return ""


def ask(question, fd=None):
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/tidegate/tidegate.sock")
    fds = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
    s.sendmsg([json.dumps(question).encode() + b"\n"], fds)
    answer = b""
    while not answer.endswith(b"\n"):
        more = s.recv(65536)
        if not more:
            break
        answer += more
    return answer.decode().strip()


def line(words):
    try:
        print("ok", do(*words), flush=True)
    except OSError as e:
        print(errno.errorcode.get(e.errno, str(e)), flush=True)
    except Exception as e:
        print("failed", type(e).__name__, str(e).replace("\n", " "), flush=True)


if len(sys.argv) > 1:
    line(sys.argv[1:])
else:
    for words in sys.stdin:
        line(words.split())
