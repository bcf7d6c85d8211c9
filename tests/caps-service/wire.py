# Requests and replies as docs/reference/service-monitor.md lays them out, and sockets whose calls give an errno's name where they fail.
import errno
import os
import select
import socket
import struct
import time

# seconds without a byte after which a stream brings no more
STALLED = 60

OPEN, GET, PUT, PING, MOVE, COPY = 1, 2, 3, 4, 5, 6
TO_READ, TO_WRITE, BOTH = 0, 1, 2
BOUND, DROPPED = 1, 2


def number(value):
    return struct.pack("<BBHIQ", 1, 0, 8, 0, value)


def descriptor(value):
    return struct.pack("<BBHIQ", 3, 0, 8, 0, value)


def name(text):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<BBHI", 2, 0, len(text), 0) + text + bytes(-len(text) % 8)


def request(operation, ident, *operands, payload=b""):
    body = b"".join(operands)
    head = struct.pack("<IIIHH", 16 + len(body) + len(payload), operation, ident, len(operands), len(body))
    return head + body + payload


def opening(ident, what, mode):
    return request(OPEN, ident, name(what), number(mode))


def using(operation, ident, which, payload=b""):
    return request(operation, ident, descriptor(which), payload=payload)


def reply(ident, flags=0, which=0, status=0, payload=b""):
    return struct.pack("<IIIIQ", 24 + len(payload), ident, status, flags, which) + payload


def address(place):
    return "\0" + place[1:] if place.startswith("@") else place


def tried(call, *args):
    try:
        return call(*args)
    except OSError as e:
        return "EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno]


class End:
    """An end of a connection."""

    def __init__(self, s):
        self.s = s

    def send(self, message):
        return tried(self.s.send, message, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def recv(self, most):
        return tried(self.s.recv, most, socket.MSG_DONTWAIT)

    def whole(self, size):
        """So many bytes of a stream, as a service reads them that knows how many there are: fewer at once, then polled for."""
        got, most, since = b"", 65536, time.monotonic()
        while len(got) < size:
            some = self.recv(min(size - len(got), most))
            if some == "EAGAIN" and most > 1:
                most = max(most // 8, 1)
            elif some == "EAGAIN":
                if time.monotonic() - since > STALLED:
                    return f"stalled after {len(got)} of {size} bytes"
                # it is another's turn, or nothing is there yet
                select.select([self.s], [], [], 0.01)
                most = 65536
            elif isinstance(some, str) or not some:
                return some
            else:
                got += some
                since = time.monotonic()
        return got

    def close(self):
        self.s.close()


def connected(place, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.connect(address(place))
    return End(s)


class Pair:
    """A service's socket, a client's and the service's end."""

    def __init__(self, place, kind):
        if not place.startswith("@") and os.path.exists(place):
            os.unlink(place)
        self.place, self.kind = place, kind
        self.is_stream = kind == socket.SOCK_STREAM
        self.listener = socket.socket(socket.AF_UNIX, kind)
        self.listener.bind(address(place))
        self.listener.listen()
        self.again()

    def again(self):
        self.client = connected(self.place, self.kind)
        self.service = End(self.listener.accept()[0])

    def close(self):
        for end in (self.client, self.service, self.listener):
            end.close()

    def bind(self, ident, what, mode, which):
        """Opens an object, and has the service answer with a descriptor."""
        message = opening(ident, what, mode)
        sent = self.client.send(message)
        if sent != len(message):
            return sent
        self.drain()
        self.service.send(reply(ident, BOUND, which))
        answer = self.client.recv(24)
        return "ok" if len(answer) == 24 else answer

    def drain(self):
        """Takes away all that the service may read."""
        most = 1 if self.is_stream else 1 << 18
        some = b"some"
        while some and not isinstance(some, str):
            some = self.service.recv(most)
