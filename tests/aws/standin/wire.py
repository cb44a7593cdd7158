"""HTTP/1.1 as the stand-in needs it: everything that arrives is kept exactly as it was
sent, and a connection can be treated badly on demand. A framework's server would tidy
up targets and headers before a signature could be checked against them."""

import contextlib
import hashlib
import os
import re
import select
import socket
import ssl
import struct
import tempfile
import threading
import time
from email.utils import formatdate
from http import HTTPStatus

HEAD_MAX = 65536
PIECE = 262144
SPOOL = 262144  # a body above this lives in a file


class Gone(Exception):
    """The peer has closed, or speaks no HTTP: nothing more to say to it."""


class Body:
    """A request's body, read once: digests are taken on the way, and what is large is in
    a file, so that it is never in memory as a whole."""

    def __init__(self, folder):
        self.folder, self.size = folder, 0
        self.sha256, self.md5 = hashlib.sha256(), hashlib.md5()
        self.pieces, self.path, self._file = [], None, None

    def write(self, piece):
        self.size += len(piece)
        self.sha256.update(piece)
        self.md5.update(piece)
        if self._file is None and self.size > SPOOL:
            handle, self.path = tempfile.mkstemp(dir=self.folder)
            self._file = os.fdopen(handle, "wb", buffering=0)
            for earlier in self.pieces:
                self._file.write(earlier)
            self.pieces = []
        if self._file is None:
            self.pieces.append(piece)
        else:
            self._file.write(piece)

    def end(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    def bytes(self):
        """All of it: for what is known to be small."""
        if self.path is not None:
            with open(self.path, "rb") as file:
                return file.read()
        return b"".join(self.pieces)

    def walk(self):
        if self.path is None:
            yield from self.pieces
            return
        with open(self.path, "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def drop(self):
        self.end()
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            self.path = None


class Request:
    """Method, target and headers as they were sent. Names of headers keep their case in
    `raw_headers`; `headers` has them in lower case, repeated ones joined as AWS does."""

    def __init__(self, method, target, raw_headers, peer):
        self.method, self.target, self.raw_headers, self.peer = method, target, raw_headers, peer
        self.path, _, self.query = target.partition("?")
        self.headers = {}
        for name, value in raw_headers:
            name = name.lower()
            self.headers[name] = f"{self.headers[name]},{value}" if name in self.headers else value
        self.body = None

    def header(self, name, default=None):
        return self.headers.get(name, default)


class Reply:
    """What goes back. `body` is bytes, or an iterable of pieces whose sum is `length`."""

    def __init__(self, status=200, headers=(), body=b"", length=None):
        self.status, self.headers, self.body = status, list(headers), body
        self.length = len(body) if length is None else length
        self.close = False

    def header(self, name):
        for known, value in self.headers:
            if known.lower() == name.lower():
                return value
        return None

    def set(self, name, value):
        self.headers = [(known, old) for known, old in self.headers if known.lower() != name.lower()]
        self.headers.append((name, value))


class Connection:
    """One peer, one thread."""

    def __init__(self, sock, peer, server):
        self.sock, self.peer, self.server = sock, peer, server
        self.buffer = bytearray()
        self.expects = False

    def fill(self):
        try:
            piece = self.sock.recv(PIECE)
        except (OSError, ValueError) as error:
            raise Gone from error
        if not piece:
            raise Gone
        self.buffer += piece

    def read_request(self):
        """The head of the next request; None: the peer has ended the connection properly."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            if len(self.buffer) > HEAD_MAX:
                raise Gone
            try:
                self.fill()
            except Gone:
                if not self.buffer:
                    return None
                raise
        head = self.buffer[:end].decode("latin-1").split("\r\n")
        del self.buffer[:end + 4]
        words = head[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith(("/", "http")):
            raise Gone
        target = words[1]
        if not target.startswith("/"):  # as a proxy is asked
            target = "/" + target.split("//", 1)[1].partition("/")[2]
        headers = []
        for line in head[1:]:
            name, colon, value = line.partition(":")
            if not colon or name != name.strip():
                raise Gone
            headers.append((name, value.strip(" \t")))
        request = Request(words[0], target, headers, self.peer)
        self.expects = request.header("expect", "").lower() == "100-continue"
        return request

    def read_body(self, request, body, pace=None, until=None):
        """Fill `body`. `pace(size)` is called after each piece; `until`: stop after as many
        bytes, for a connection that is about to be broken."""
        if self.expects:
            self.expects = False
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        chunked = request.header("transfer-encoding", "").lower() == "chunked"
        pieces = self.chunks() if chunked else self.counted(request)
        for piece in pieces:
            body.write(piece)
            if pace:
                pace(len(piece))
            if until is not None and body.size >= until:
                break
        body.end()

    def counted(self, request):
        text = request.header("content-length", "0")
        if not text.isdigit():
            raise Gone
        left = int(text)
        while left:
            if not self.buffer:
                self.fill()
            piece = bytes(self.buffer[:left])
            del self.buffer[:left]
            left -= len(piece)
            yield piece

    def chunks(self):
        while True:
            while (end := self.buffer.find(b"\r\n")) < 0:
                self.fill()
            text = bytes(self.buffer[:end]).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", text):
                raise Gone
            size = int(text, 16)
            del self.buffer[:end + 2]
            while len(self.buffer) < size + 2:
                self.fill()
            piece = bytes(self.buffer[:size])
            del self.buffer[:size + 2]
            if not size:
                return
            yield piece

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (OSError, ValueError) as error:
            raise Gone from error

    def write_reply(self, request, reply, cut=None, pace=None, now=None):
        """`cut`: end the connection after as many bytes of body. `pace(size)`: called after
        each small piece."""
        try:
            phrase = HTTPStatus(reply.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {reply.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in reply.headers]
        if reply.header("date") is None:
            lines.append(f"Date: {formatdate(now if now is not None else time.time(), usegmt=True)}")
        bodiless = request.method == "HEAD" or reply.status in (204, 304)
        if reply.header("content-length") is None and reply.status != 204:
            lines.append(f"Content-Length: {reply.length}")
        if reply.close:
            lines.append("Connection: close")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
        pieces = () if bodiless else ([reply.body] if isinstance(reply.body, bytes) else reply.body)
        sent = 0
        for piece in pieces:
            if cut is not None:
                piece = piece[:max(cut - sent, 0)]
            sent += len(piece)
            if pace:
                self.send(head)
                for start in range(0, len(piece), pace.step):
                    self.send(piece[start:start + pace.step])
                    pace(min(pace.step, len(piece) - start))
            else:
                self.send(head + piece if len(piece) < SPOOL else head)
                if len(piece) >= SPOOL:
                    self.send(piece)
            head = b""
            if cut is not None and sent >= cut:
                break
        if head:
            self.send(head)
        if cut is not None:
            raise Gone

    def reset(self):
        """End it with a reset instead of a farewell."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.close()

    def is_open(self):
        """The peer has not gone away while it had to wait."""
        try:
            ready, _, _ = select.select([self.sock], [], [], 0)
            return not ready or bool(self.sock.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            return False


class Server:
    """A listening socket on loopback; `handle(connection, request)` answers on a thread of
    the connection and says whether it lives on."""

    def __init__(self, handle, port=0, certificate=None):
        self.handle, self.tls = handle, None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self.listener.getsockname()[1]

    def serve(self):
        while True:
            sock, peer = self.listener.accept()
            threading.Thread(target=self.talk, args=(sock, peer), daemon=True).start()

    def talk(self, sock, peer):
        connection = None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            connection = Connection(sock, peer, self)
            while (request := connection.read_request()) is not None:
                if not self.handle(connection, request):
                    break
        except (Gone, OSError):
            pass
        finally:
            if connection:
                connection.close()
            else:
                sock.close()
