# SPDX-License-Identifier: Apache-2.0
"""HTTP written by hand on a socket, so that a client can be as unlucky as it likes."""

import json
import socket

AUTH = "Authorization: Basic cm9vdDo=\r\n"  # root, no password


class Broken(Exception):
    """No whole answer came: whatever was asked may have happened or not."""


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Broken(f"not JSON: {self.body[:200]!r}") from error


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


class Connection:
    """One connection, closed after use."""

    def __init__(self, node, timeout, source=None):
        try:
            where = (source, 0) if source else None
            self.sock = socket.create_connection(address(node), timeout, where)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Broken(f"connect: {error}") from error
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Broken(f"send: {error}") from error

    def _more(self):
        try:
            data = self.sock.recv(262144)
        except OSError as error:
            raise Broken(f"receive: {error}") from error
        if not data:
            raise Broken("the connection was closed")
        self.rest += data

    def _line(self):
        while b"\r\n" not in self.rest:
            self._more()
        line, self.rest = self.rest.split(b"\r\n", 1)
        return line.decode("latin-1")

    def _exactly(self, size):
        while len(self.rest) < size:
            self._more()
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def answer(self):
        """The next answer, which may be a 100."""
        status = int(self._line().split()[1])
        headers = {}
        while line := self._line():
            name, value = line.split(":", 1)
            headers[name.lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            pieces = []
            while size := int(self._line(), 16):
                pieces.append(self._exactly(size))
                self._line()
            self._line()
            body = b"".join(pieces)
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        return Answer(status, headers, body)


def head(method, path, headers):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{AUTH}{lines}\r\n".encode()


def ask(node, method, path, headers=None, body=b"", timeout=15, source=None):
    """A small request, asked once."""
    headers = dict(headers or {})
    if body or method in ("PUT", "POST"):
        headers["Content-Length"] = len(body)
    with Connection(node, timeout, source) as connection:
        connection.send(head(method, path, headers) + body)
        return connection.answer()


def get_following(node, path, timeout=15):
    """A read, through a redirect if there is one."""
    answer = ask(node, "GET", path, timeout=timeout)
    if answer.status == 307:
        where = answer.headers["location"].split("@", 1)[1].split("/", 1)[0]
        answer = ask(where, "GET", path, timeout=timeout)
    return answer
