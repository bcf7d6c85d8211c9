"""The registry: registry.py ADDRESS FILE answers every request with the file."""
import contextlib
import socket
import sys

server = socket.create_server((sys.argv[1], 80))
body = open(sys.argv[2], "rb").read()
while True:
    client, _ = server.accept()
    with client, contextlib.suppress(OSError):
        client.recv(4096)
        client.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + body)
