"""An HTTP proxy before an S3 server: loses replies, damages bodies, answers in its place."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """What a rule decides on."""

    method: str
    path: str  # with the query
    headers: dict[str, str]  # names in lower case


@dataclass(frozen=True, slots=True)
class Answer:
    """What the proxy says itself; the request goes no further."""

    status: int
    code: str  # "" for a success without a body


LOSE_REPLY = "lose the reply"
REFUSE = "refuse the connection"
DAMAGE = "damage the body"
CUT = "cut the body in half"
Fate = Answer | str | None


@dataclass(slots=True)
class S3Proxy:
    """A running proxy.

    Attributes:
        endpoint: its URL.
        requests: all that came so far, in order.
        rule: what befalls a request; None lets it pass.
    """

    endpoint: str
    requests: list[Request] = field(default_factory=list)
    rule: Callable[[Request], Fate] = lambda _: None

    def strike(self, method: str, *fates: Fate, query: str = "") -> None:
        """Let the next requests of a method meet these fates, one each."""
        left = list(fates)
        lock = threading.Lock()

        def rule(request: Request) -> Fate:
            with lock:
                meant = request.method == method and query in request.path
                return left.pop(0) if left and meant else None

        self.rule = rule

    def count(self, method: str, query: str = "") -> int:
        """How many requests of a method came so far."""
        return sum(one.method == method and query in one.path for one in self.requests)


@contextlib.contextmanager
def s3_proxy(upstream: str) -> Iterator[S3Proxy]:
    """Run a proxy on loopback before the server at a URL."""
    host = urlsplit(upstream).netloc
    proxy = S3Proxy("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_any(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0")))
            request = Request(self.command, self.path, headers)
            proxy.requests.append(request)
            fate = proxy.rule(request)
            if fate == REFUSE:
                self.close_connection = True
            elif isinstance(fate, Answer):
                xml = f"<Error><Code>{fate.code}</Code><Message>secret</Message></Error>"
                self.reply(fate.status, [], xml.encode() if fate.code else b"")
            else:
                self.forward(body, fate)

        def forward(self, body: bytes, fate: Fate) -> None:
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() != "expect":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            data = answer.read()
            connection.close()
            if fate == LOSE_REPLY:
                self.close_connection = True
                return
            if fate == DAMAGE and data:
                data = bytes([data[0] ^ 1]) + data[1:]
            self.reply(answer.status, answer.getheaders(), data, cut=fate == CUT)

        def reply(
            self, status: int, headers: list[tuple[str, str]], data: bytes, *, cut: bool = False
        ) -> None:
            self.send_response_only(status)
            length = str(len(data))
            for name, value in headers:
                if name.lower() == "content-length":
                    length = value if self.command == "HEAD" else length
                elif name.lower() not in {"transfer-encoding", "connection"}:
                    self.send_header(name, value)
            if status != http.HTTPStatus.NO_CONTENT:
                self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if cut else data)
            self.close_connection = self.close_connection or cut

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do_any

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            pass  # the client went away

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
