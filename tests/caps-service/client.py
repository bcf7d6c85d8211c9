# A client of examples/notes that does what a line on standard input says, and says what came of it: `ok …`, or the errno's name.
import array
import errno
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, "/payload")
import wire  # noqa: E402

ends = {}
# what goes on while something else is done, and what came of it
calls = {}
ids = iter(range(1, 1 << 30))
KINDS = {"packets": socket.SOCK_SEQPACKET, "stream": socket.SOCK_STREAM}


def call(end, message):
    end.s.settimeout(60)
    end.s.sendall(message)
    return answered(end)


def answered(end):
    end.s.settimeout(60)
    head = end.s.recv(1 << 16)
    _, _, status, flags, which = wire.struct.unpack("<IIIIQ", head[:24])
    if status:
        return f"status {status}"
    return str(which) if flags & wire.BOUND else head[24:].decode()


def begin(key, call, *args):
    def run():
        calls[key] = [None, wire.tried(call, *args)]

    thread = threading.Thread(target=run, daemon=True)
    calls[key] = [thread]
    thread.start()


def ended(key):
    if calls[key][0]:
        calls[key][0].join(60)
    if calls[key][0]:
        return "waits"
    return str(calls.pop(key)[1])


def do(op, *args):
    if op == "stat":
        os.stat(args[0])
    elif op == "connect":
        key, place, kind = args
        ends[key] = wire.connected(place, KINDS[kind])
    elif op == "inherit":
        ends[args[0]] = wire.End(socket.socket(fileno=int(args[1])))
    elif op == "close":
        ends.pop(args[0]).close()
    elif op == "open":
        return call(ends[args[0]], wire.opening(next(ids), args[1], int(args[2])))
    elif op == "get":
        return call(ends[args[0]], wire.using(wire.GET, next(ids), int(args[1])))
    elif op == "put":
        return call(ends[args[0]], wire.using(wire.PUT, next(ids), int(args[1]), args[2].encode()))
    elif op == "ping":
        return call(ends[args[0]], wire.request(wire.PING, next(ids)))
    elif op == "operation":
        return call(ends[args[0]], wire.request(int(args[1]), next(ids)))
    elif op == "leave":
        # a request whose answer is not waited for
        ends[args[0]].s.send(wire.opening(next(ids), args[1], int(args[2])))
    elif op == "receive":
        return answered(ends[args[0]])
    elif op == "listen":
        s = socket.socket(socket.AF_UNIX, KINDS[args[2]])
        s.bind(args[1])
        s.listen()
        ends[args[0]] = wire.End(s)
    elif op == "accept":
        ends[args[1]] = wire.End(ends[args[0]].s.accept()[0])
    elif op == "large":
        # a request of so many bytes, which is sent while something else is done
        begin(args[0], ends[args[0]].s.sendall, wire.request(wire.PING, next(ids), payload=bytes(int(args[1]))))
    elif op == "ended":
        return ended(args[0])
    elif op == "read":
        got = ends[args[0]].recv(int(args[1]))
        return got if isinstance(got, str) else str(len(got))
    elif op == "whole":
        got = ends[args[0]].whole(int(args[1]))
        return got if isinstance(got, str) else str(len(got))
    elif op == "send":
        # a request, unless it would wait
        return str(ends[args[0]].send(wire.request(wire.PING, next(ids))))
    elif op == "by":
        # has somebody who was connected to send something by a connection
        message = {
            "open": lambda what, mode: wire.opening(next(ids), what, int(mode)),
            "get": lambda which: wire.using(wire.GET, next(ids), int(which)),
            "put": lambda which: wire.using(wire.PUT, next(ids), int(which)),
            "malformed": lambda: bytes(16),
        }[args[2]](*args[3:])
        fds = array.array("i", [ends[args[1]].s.fileno()])
        ends[args[0]].s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        sent = ends[args[0]].s.recv(100).decode()
        # the reply comes here
        if sent.isdigit():
            answered(ends[args[1]])
        return sent
    elif op == "give":
        fds = array.array("i", [ends[args[1]].s.fileno()])
        ends[args[0]].s.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    elif op == "take":
        ends[args[0]].s.settimeout(60)
        _, ancillary, _, _ = ends[args[0]].s.recvmsg(1, socket.CMSG_SPACE(4))
        if not ancillary:
            return "nothing"
        ends[args[1]] = wire.End(socket.socket(fileno=array.array("i", ancillary[0][2])[0]))
    elif op == "exec":
        # with a connection, whose number is told behind the other arguments
        fd = ends[args[0]].s.fileno()
        done = subprocess.run([*args[1:], str(fd)], pass_fds=[fd], stdin=subprocess.DEVNULL, capture_output=True)
        said = done.stdout + done.stderr
        return f"exit {done.returncode} " + said.decode().strip().replace("\n", "; ")
    else:
        raise ValueError(op)
    return ""


def line(words):
    try:
        print("ok", do(*words), flush=True)
    except OSError as e:
        print(errno.errorcode.get(e.errno, str(e)), flush=True)
    except Exception as e:
        print("failed", type(e).__name__, str(e).replace("\n", " "), flush=True)


# `,` between what is done, one after the other, by a connection that was inherited
if len(sys.argv) > 1:
    line(["inherit", "c", sys.argv[-1]])
    for words in " ".join(sys.argv[1:-1]).split(","):
        line(words.split())
else:
    for words in sys.stdin:
        line(words.split())
