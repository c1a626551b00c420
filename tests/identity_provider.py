"""An identity provider for tests: signs tokens, and serves them and its keys over HTTP or TLS."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


@cache
def private_key(kid: str = "rsa-1") -> Any:
    """Of the kind that its id begins with: rsa, ec or ed."""
    if kid.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1()) if kid.startswith("ec") else ed25519.Ed25519PrivateKey.generate()


def jwk(kid: str, **others: Any) -> dict[str, Any]:
    kinds: dict[str, Any] = {
        "rsa": jwt.algorithms.RSAAlgorithm,
        "ec": jwt.algorithms.ECAlgorithm,
        "ed": jwt.algorithms.OKPAlgorithm,
    }
    kind = kinds[kid.partition("-")[0]]
    return {**kind.to_jwk(private_key(kid).public_key(), as_dict=True), "kid": kid, **others}


def jwks(*kids: str) -> bytes:
    return json.dumps({"keys": [jwk(kid) for kid in kids]}).encode()


def public_pem(kid: str) -> bytes:
    made: bytes = private_key(kid).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return made


def claims(**others: Any) -> dict[str, Any]:
    """Of a good token; None takes one out."""
    now = int(time.time())
    good = {"sub": "alice", "iat": now, "exp": now + 300, "iss": "https://idp.example/", "aud": "kafka", "scope": "a b"}
    return {name: value for name, value in (good | others).items() if value is not None}


def signed(kid: str = "rsa-1", algorithm: str = "RS256", header: dict[str, Any] | None = None, **others: Any) -> str:
    return jwt.encode(claims(**others), private_key(kid), algorithm, headers={"kid": kid} | (header or {}))


class Provider(ThreadingHTTPServer):
    """Answers each request by the next of `answers` (status, body), and by the last one from then on."""

    daemon_threads = True

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.scheme = "http"

    def url(self, path: str = "/token") -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}{path}"

    def next_answer(self) -> tuple[int, bytes]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of some tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        status, answer = self.server.next_answer()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url("/elsewhere"))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(*answers: tuple[int, bytes], context: ssl.SSLContext | None = None) -> Iterator[Provider]:
    provider = Provider(*answers)
    if context is not None:
        provider.socket = context.wrap_socket(provider.socket, server_side=True)
        provider.scheme = "https"
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        thread.join()
        provider.server_close()
