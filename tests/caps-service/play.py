# What the service monitor lets through and refuses, played by a process that is limited by s.caps and is client and service at
# once: what is sent, what arrives, and what a service is given to read. `play.py CASE packets|stream`; the last line is
# `N passed, N failed`.
import os
import select
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, "/payload")
import wire  # noqa: E402
from wire import BOTH, BOUND, COPY, DROPPED, GET, MOVE, PING, PUT, TO_READ, TO_WRITE  # noqa: E402
from wire import Pair, descriptor, name, number, opening, reply, request, using  # noqa: E402

counts = {True: 0, False: 0}


def check(what, got, want):
    good = got == want
    counts[good] += 1
    if not good:
        line = sys._getframe(1).f_lineno
        print(f"FAILED  {case}:{line} {what}: {got!r:.100}, not {want!r:.100}", flush=True)


def arrives(what, pair, message):
    """It is sent, and the service reads the same."""
    check(what, pair.client.send(message), len(message))
    check(f"{what} arrives", pair.service.recv(len(message)), message)


def refused(what, pair, message, why="EACCES"):
    check(what, pair.client.send(message), why)
    check(f"{what}: nothing arrives", pair.service.recv(1), "EAGAIN")


def refused_when_made(what, pair, message):
    """What is found when a request is made: a packet is refused in the call, and of a stream nothing more arrives."""
    if not pair.is_stream:
        return refused(what, pair, message)
    check(f"{what} is sent", pair.client.send(message), len(message))
    check(f"{what}: nothing arrives", pair.service.recv(1), "EPROTO")
    check(f"{what}: nor later", pair.client.send(request(PING, 1)), "EPROTO")


def binding(pair):
    """What names an object, and what uses it."""
    arrives("free", pair, request(PING, 1, payload=b"hello"))
    refused("an operation that is not listed", pair, request(9, 1))
    arrives("open", pair, opening(5, "pub:a", TO_READ))
    refused("open for more", pair, opening(6, "pub:a", TO_WRITE))
    refused("open what no line gives", pair, opening(6, "zzz", TO_READ))
    refused("a value that the vector has not", pair, opening(6, "pub:a", 9))
    refused("a descriptor that no reply made", pair, using(GET, 7, 77))
    arrives("the same again", pair, opening(5, "pub:a", TO_READ))
    check("reply", pair.service.send(reply(5, BOUND, 77)), 24)
    check("reply arrives", pair.client.recv(100), reply(5, BOUND, 77))
    arrives("use", pair, using(GET, 7, 77))
    refused("use for what it was not opened for", pair, using(PUT, 7, 77))
    refused("another descriptor", pair, using(GET, 7, 78))
    pair.service.send(reply(5, BOUND, 78))
    pair.client.recv(100)
    refused("what a second reply would give", pair, using(GET, 7, 78))
    check("open for both", pair.bind(8, "x:b", BOTH, 79), "ok")
    arrives("put", pair, using(PUT, 7, 79, b"text"))
    check("a number that is taken", pair.bind(9, "x:c", TO_WRITE, 77), "ok")
    refused("is what it was", pair, using(PUT, 7, 77))
    arrives("is what it was, and of use", pair, using(GET, 7, 77))
    pair.service.send(reply(1000, DROPPED, 79))
    pair.client.recv(100)
    refused("dropped", pair, using(PUT, 7, 79))
    arrives("an id that is under way", pair, opening(90, "pub:a", TO_READ))
    refused_when_made("an id that is under way, for another object", pair, opening(90, "x:a", TO_READ))


def operands(pair):
    """Several operands, and those of another kind."""
    refused("a number for a name", pair, request(wire.OPEN, 1, number(1), number(0)))
    refused("a name for a number", pair, request(wire.OPEN, 1, name("pub:a"), name("0")))
    refused("a descriptor for a name", pair, request(wire.OPEN, 1, descriptor(1), number(0)))
    refused("none for a name", pair, request(wire.OPEN, 1))
    refused("none for the vector's", pair, request(wire.OPEN, 1, name("pub:a")))
    refused("a name for a descriptor", pair, request(GET, 1, name("pub:a")))
    refused("a number for a descriptor", pair, request(GET, 1, number(0)))
    arrives("two names", pair, request(MOVE, 2, name("x:a"), name("x:b")))
    refused("the first is not given", pair, request(MOVE, 3, name("pub:a"), name("x:b")))
    refused("the second is not given", pair, request(MOVE, 3, name("x:a"), name("pub:b")))
    refused("the second is not there", pair, request(MOVE, 3, name("x:a")))
    check("open the first", pair.bind(4, "pub:a", TO_READ, 10), "ok")
    check("open the second", pair.bind(5, "x:b", TO_WRITE, 11), "ok")
    arrives("two descriptors", pair, request(COPY, 6, descriptor(10), descriptor(11)))
    refused("the other way", pair, request(COPY, 6, descriptor(11), descriptor(10)))
    refused("the second for both", pair, request(COPY, 6, descriptor(11), descriptor(11)))
    refused("one that is none", pair, request(COPY, 6, descriptor(10), descriptor(12)))
    # what is there besides has no meaning for anybody
    longest = "pub:" + "y" * 251
    more = [name(longest)] * 6
    arrives("eight of the longest", pair, request(wire.OPEN, 20, name(longest), number(0), *more, payload=b"end"))


def malformed(pair):
    """What is no request: of a stream the head tells, so each has one of its own."""
    good = bytearray(opening(5, "pub:a", TO_READ))

    def changed(at, byte):
        message = bytearray(good)
        message[at] = byte
        return bytes(message)

    messages = {
        "operands do not fit": changed(12, 3),
        "too many operands": changed(12, 9),
        "bytes of operands do not fit": changed(14, 8),
        "bytes of operands are no multiple of 8": changed(14, 33),
        "a kind that is none": changed(16, 4),
        "what has no meaning": changed(17, 1),
        "a name without bytes": changed(18, 0),
        "a NUL in a name": changed(24 + 2, 0),
        "a name's padding": changed(24 + 6, 1),
        "a number of 7 bytes": changed(32 + 2, 7),
        "shorter than its operands": changed(0, 20),
        "shorter than a head": changed(0, 3) if not pair.is_stream else changed(0, 15),
    }
    if not pair.is_stream:
        messages["another length"] = changed(0, len(good) - 1)
        messages["half a head"] = bytes(good[:8])
        messages["nothing"] = b""
    for what, message in messages.items():
        refused(what, pair, message, "EPROTO")
    check("out of band", wire.tried(pair.client.s.send, b"a", socket.MSG_OOB), "EOPNOTSUPP")
    r, w = os.pipe()
    os.write(w, request(PING, 1))
    spliced = wire.tried(os.splice, r, pair.client.s.fileno(), 16)
    check("pages", spliced, "EOPNOTSUPP")
    if not pair.is_stream:
        message = request(PING, 1)
        named = wire.tried(pair.client.s.sendmsg, [message], [], 0, wire.address(pair.place))
        check("with an address", named, "EISCONN")
    arrives("a good one goes through still", pair, bytes(good))


def gathered(pair):
    """From several places, long, and in pieces."""
    message = opening(20, "pub:bbbbbbbbbbbbb", TO_READ)
    parts = [message[:3], message[3:23], b"", message[23:]]
    check("four parts", wire.tried(pair.client.s.sendmsg, parts), len(message))
    check("arrive", pair.service.recv(len(message)), message)
    evil = opening(21, "zzz:bbbbbbbbbbbbb", TO_READ)
    parts = [evil[:3], evil[3:23], b"", evil[23:]]
    check("four parts that are not given", wire.tried(pair.client.s.sendmsg, parts), "EACCES")
    parts = [message[i : i + 2] for i in range(0, 22, 2)] + [message[22:]]
    sent = wire.tried(pair.client.s.sendmsg, parts)
    if pair.is_stream:
        check("more parts than are looked at beforehand", sent, len(message))
        check("arrive", pair.service.recv(len(message)), message)
        written = os.writev(pair.client.s.fileno(), [message[:10], message[10:]])
        check("writev", written, len(message))
        check("arrives", pair.service.recv(len(message)), message)
    else:
        check("more parts than are looked at", sent, "EPROTO")
    long = request(PING, 1, payload=b"p" * 100000)
    check("long", pair.client.send(long), len(long))
    check("arrives", pair.service.whole(len(long)) if pair.is_stream else pair.service.recv(len(long)), long)


def limits(pair):
    """What ends by itself, and what is left when much was opened."""
    check("few", pair.bind(10, "lim:a", TO_READ, 80), "ok")
    arrives("first", pair, using(GET, 7, 80))
    refused("a refused one is no use", pair, using(PUT, 7, 80))
    arrives("second", pair, using(GET, 7, 80))
    refused("third", pair, using(GET, 7, 80))
    check("opened anew", pair.bind(11, "lim:a", TO_READ, 81), "ok")
    arrives("and used", pair, using(GET, 7, 81))
    check("short", pair.bind(12, "exp:a", TO_READ, 82), "ok")
    arrives("at once", pair, using(GET, 7, 82))
    time.sleep(5.2)
    refused("later", pair, using(GET, 7, 82))
    for first in (100, 200):
        for ident in range(first, first + 64):
            check("unanswered", pair.client.send(opening(ident, "x:a", BOTH)) > 0, True)
        pair.drain()
        if first == 100:
            for ident in range(100, 164):
                pair.service.send(reply(ident, BOUND, ident))
                pair.client.recv(24)
            arrives("what the answers gave", pair, using(PUT, 7, 163))
    refused_when_made("one too many unanswered", pair, opening(264, "x:a", BOTH))


def batches(pair):
    """Of a stream: heads in pieces, many requests in a send, and the first of them alone is looked at beforehand."""
    refused("more than there is", pair, request(9, 1))
    message = request(PING, 1, payload=b"hello")
    check("ping", pair.client.send(message), 21)
    check("more than was sent", pair.service.recv(100), "EAGAIN")
    check("peek", wire.tried(pair.service.s.recv, 16, socket.MSG_PEEK | socket.MSG_DONTWAIT), message[:16])
    check("head", pair.service.recv(16), message[:16])
    check("part", pair.service.recv(2), b"he")
    check("rest", pair.service.recv(3), b"llo")
    check("open", pair.bind(5, "pub:a", TO_READ, 77), "ok")
    message = using(GET, 7, 77, b"in pieces")
    for at in range(len(message)):
        check("a byte", pair.client.send(message[at : at + 1]), 1)
        if at < 31:
            check("not yet", pair.service.recv(1), "EAGAIN")
    check("whole", pair.service.recv(len(message)), message)
    evil = using(PUT, 7, 77)
    for at in range(len(evil) - 1):
        pair.client.send(evil[at : at + 1])
    pair.client.send(evil[-1:])
    check("one in pieces that is not given", pair.service.recv(1), "EPROTO")
    check("nor more", pair.client.send(request(PING, 1)), "EPROTO")
    pair.again()
    many = b"".join(request(wire.OPEN, 100 + i, name("x:bb"), number(2), payload=b"abc") for i in range(40))
    check("many", pair.client.send(many), len(many))
    check("arrive", pair.service.whole(len(many)), many)
    answers = b"".join(reply(100 + i, BOUND, 200 + i) for i in range(40))
    check("answers in two pieces", pair.service.send(answers[:100]) + pair.service.send(answers[100:]), len(answers))
    while not isinstance(pair.client.recv(1000), str):
        pass
    for i in range(40):
        arrives("put", pair, using(PUT, 7, 200 + i))
    mixed = b"".join(
        request(PING, i, payload=b"p" * (9000 + i * 7)) + using(PUT, 7, 200 + i) for i in range(5)
    )
    check("long ones and short ones", pair.client.send(mixed), len(mixed))
    check("arrive", pair.service.whole(len(mixed)), mixed)
    three = request(PING, 1) + request(9, 1) + request(PING, 1)
    check("the second of three is not given", pair.client.send(three), 48)
    check("two are not to be had", pair.service.recv(32), "EAGAIN")
    check("one is", pair.service.recv(16), request(PING, 1))
    check("nothing behind it", pair.service.recv(16), "EPROTO")
    check("nor more", pair.client.send(request(PING, 1)), "EPROTO")
    pair.again()
    pair.client.send(request(PING, 1))
    check("half a head", pair.client.send(request(PING, 1)[:8]), 8)
    pair.client.close()
    check("what is whole", pair.service.recv(16), request(PING, 1))
    check("what is not", pair.service.recv(8), "EPROTO")
    pair.again()
    pair.client.send(request(PING, 1))
    pair.client.close()
    check("before the end", pair.service.recv(16), request(PING, 1))
    check("the end", pair.service.recv(16), b"")


def large(pair):
    """As long as a packet can be, and megabytes of a stream, which a reader takes bit by bit."""
    size = 3 << 20 if pair.is_stream else 200000
    message = struct.pack("<IIIHH", 16 + size, PING, 1, 0, 0) + b"q" * size
    if not pair.is_stream:
        arrives("a packet", pair, message)
        refused("one that is not given", pair, struct.pack("<IIIHH", 16 + size, 9, 1, 0, 0) + b"q" * size)
        return
    reader = os.fork()
    if not reader:
        got = pair.service.whole(len(message))
        os._exit(got != message)
    pair.client.s.settimeout(None)
    pair.client.s.sendall(message)
    check("the reader has all of it", os.waitpid(reader, 0)[1], 0)
    check("goes on", pair.client.send(request(PING, 2)), 16)
    check("arrives", pair.service.whole(16), request(PING, 2))
    sender = os.fork()
    if not sender:
        wire.tried(pair.client.s.sendall, message + request(9, 1))
        os._exit(0)
    check("megabytes with one that is not given behind: they arrive", pair.service.whole(len(message)), message)
    os.waitpid(sender, 0)
    check("and nothing more", pair.service.recv(1), "EPROTO")


def threads(pair):
    """Three threads by one connection."""
    sent, busy = [], []

    def writer(ident):
        message = request(PING, ident, payload=bytes([ident]) * 6000)
        for _ in range(60):
            try:
                done = pair.client.s.send(message, socket.MSG_NOSIGNAL)
                sent.append(done == len(message))
            except BlockingIOError:
                busy.append(1)

    own = [threading.Thread(target=writer, args=(ident,), daemon=True) for ident in (1, 2, 3)]
    for thread in own:
        thread.start()
    got = bad = 0
    quiet = 0
    while quiet < 300:
        if pair.is_stream:
            head = pair.service.recv(16)
            rest = pair.service.whole(6000) if not isinstance(head, str) else head
            if isinstance(rest, str) and rest.startswith("stalled"):
                check("each comes whole", rest, "")
                return
            whole = rest if isinstance(rest, str) else head + rest
        else:
            whole = pair.service.recv(6016)
        if isinstance(whole, str):
            quiet += not any(thread.is_alive() for thread in own)
            select.select([], [], [], 0.005)
            continue
        got += 1
        bad += whole[16:] != bytes([whole[8]]) * 6000
    print(f"threads: {len(sent)} sent, {got} arrived, {len(busy)} were told that it is another's turn")
    check("whole ones", all(sent), True)
    check("all of them arrive", got, len(sent))
    check("each as it was", bad, 0)


def ends(pair):
    """A connection is one: what is bound on it is good for no other; and one that goes takes all with it."""
    check("open", pair.bind(1, "x:a", BOTH, 5), "ok")
    first, other = pair.client, pair.service
    pair.again()
    refused("not on another", pair, using(GET, 7, 5))
    pair.client.close()
    check("the end", pair.service.recv(1), b"")
    pair.client, pair.service = first, other
    arrives("on its own", pair, using(PUT, 7, 5))
    # the client goes with requests that nobody has answered
    for ident in range(10, 40):
        pair.client.send(opening(ident, "x:a", BOTH))
    pair.client.close()
    pair.drain()
    for ident in range(10, 40):
        pair.service.send(reply(ident, BOUND, ident))
    pair.service.close()
    pair.again()
    refused("nothing of it is left", pair, using(PUT, 7, 10))
    # a listener that is gone, and another one at its place
    pair.listener.close()
    os.unlink(pair.place)
    again = Pair(pair.place, pair.kind)
    arrives("a service that began anew", again, opening(1, "pub:a", TO_READ))
    refused("is one all the same", again, opening(2, "zzz", TO_READ))
    again.close()


def elsewhere(pair):
    """What is no service, and datagrams to one."""
    a, b = socket.socketpair(socket.AF_UNIX, pair.kind)
    check("a pair", a.send(b"hello") and b.recv(10), b"hello")
    plain = Pair("/srv/run/plain.sock", pair.kind)
    check("another socket", plain.client.send(b"hello"), 5)
    check("arrives", plain.service.recv(10), b"hello")
    plain.close()
    d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    d.bind("\0notes-datagrams")
    e = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    check("a datagram", wire.tried(e.sendto, b"x", "\0notes-datagrams"), "EACCES")
    abstract = Pair("@notes-" + case, pair.kind)
    arrives("abstract", abstract, request(PING, 1))
    refused("abstract, not given", abstract, opening(1, "zzz", TO_READ))
    abstract.close()


CASES = [binding, operands, malformed, gathered, limits, large, threads, ends, elsewhere]
kind = {"packets": socket.SOCK_SEQPACKET, "stream": socket.SOCK_STREAM}[sys.argv[1]]
if kind == socket.SOCK_STREAM:
    CASES.append(batches)
for one in CASES:
    case = one.__name__
    print(f"{sys.argv[1]}: {one.__doc__}", flush=True)
    pair = Pair(f"/srv/run/notes-{case}", kind)
    try:
        one(pair)
    except Exception as e:
        check(f"{case} ended", f"{type(e).__name__}: {e}", "")
    pair.close()
print(f"{counts[True]} passed, {counts[False]} failed")
