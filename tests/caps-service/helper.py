# A process that is not limited: it passes connections on between two, or sends by one what it is told to.
#   helper.py relay PATH   what the first who connects sends, descriptors and all, the second gets
#   helper.py sends PATH   sends by a connection that comes with a message that message, and says what came of it
import array
import errno
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
listener.listen()


def received(s):
    data, ancillary, _, _ = s.recvmsg(1 << 16, socket.CMSG_SPACE(4))
    return data, [array.array("i", part[2])[0] for part in ancillary]


a, _ = listener.accept()
b = listener.accept()[0] if sys.argv[1] == "relay" else None
while True:
    data, fds = received(a)
    if not data:
        break
    if b:
        b.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    else:
        by = socket.socket(fileno=os.dup(fds[0]))
        try:
            a.send(str(by.send(data)).encode())
        except OSError as e:
            a.send(errno.errorcode[e.errno].encode())
        by.close()
    for fd in fds:
        os.close(fd)
