"""Tokens by client credentials, from an endpoint that behaves and from others."""

from __future__ import annotations

import base64
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from authorities import certified, settings
from identity_provider import Provider, serving, signed

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.tls_contexts import client_context, server_context
from logkernel.security.tokens import source as tokens_source
from logkernel.security.tokens.client_login import token_source
from logkernel.security.tokens.http import MAX_RESPONSE_BYTES, Endpoint
from logkernel.security.tokens.oidc import ClientCredentials, Retries, fetch_from_file
from logkernel.security.tokens.source import Fetched, TokenSource

SECRET = "pl4nted&s3cret +ü"


def good(**others: object) -> tuple[int, bytes]:
    return 200, json.dumps(
        {"access_token": "t0ken.pl4nted", "token_type": "Bearer", "expires_in": 300} | others
    ).encode()


def credentials(provider: Provider, **others: object) -> ClientCredentials:
    return ClientCredentials(Endpoint(provider.url()), "the id", SECRET, **others)  # type: ignore[arg-type]


def fetch(client: ClientCredentials) -> tuple[Fetched, list[float]]:
    """What it fetches, and how long it paused."""
    pauses: list[float] = []
    return client.fetch(pauses.append), pauses


@pytest.mark.parametrize("encodes", [False, True])
def test_an_endpoint_is_asked_as_the_rfc_says(encodes: bool) -> None:
    with serving(good()) as provider:
        fetched, _ = fetch(credentials(provider, scope="read write", encodes_header=encodes))
    assert fetched == Fetched("t0ken.pl4nted", 300.0)
    ((method, path, headers, body),) = provider.requests
    assert (method, path, body) == ("POST", "/token", b"grant_type=client_credentials&scope=read+write")
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    pair = "the+id:pl4nted%26s3cret+%2B%C3%BC" if encodes else f"the id:{SECRET}"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == pair


def test_a_tls_endpoint_is_verified() -> None:
    context = server_context(settings(certified("127.0.0.1")))
    with serving(good(), context=context) as provider:
        endpoint = Endpoint(provider.url(), client_context(settings(trusts="ours")))
        assert ClientCredentials(endpoint, "id", SECRET).fetch().token == "t0ken.pl4nted"
        with pytest.raises(SaslAuthenticationFailed, match="certificate verify failed"):
            ClientCredentials(Endpoint(provider.url()), "id", SECRET, retries=Retries(backoff_max_ms=0)).fetch()
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    with serving((status, b""), (status, b""), good()) as provider:
        fetched, pauses = fetch(credentials(provider))
    assert fetched.token == "t0ken.pl4nted"
    assert pauses == [0.1, 0.2]


def test_it_is_tried_until_the_back_off_is_used_up() -> None:
    pauses: list[float] = []
    with (
        serving((503, b"")) as provider,
        pytest.raises(SaslAuthenticationFailed, match="HTTP status 503; try again later"),
    ):
        credentials(provider, retries=Retries(100, 1000, lambda: 0.0)).fetch(pauses.append)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.3]), "what is left is used up, as in Kafka"


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 501])
def test_a_refusal_is_not_tried_again_and_no_redirect_followed(status: int) -> None:
    answer = json.dumps({"error": "invalid_client", "error_description": f"bad {SECRET}"}).encode()
    with (
        serving((status, answer)) as provider,
        pytest.raises(SaslAuthenticationFailed, match=f"status {status}; ") as failed,
    ):
        credentials(provider).fetch()
    assert len(provider.requests) == 1
    assert "pl4nted" not in str(failed.value)
    assert failed.value.__cause__ is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"access_token": null}',
        b'{"access_token": ""}',
        b'{"access_token": 1}',
        b'{"access_token": "' + b"x" * 600_000 + b'"}',
        b"\xff",
        b"[" * 100_000,
        b"x" * (MAX_RESPONSE_BYTES + 1),
    ],
    ids=range(11),
)
def test_an_answer_without_token_is_refused(answer: bytes) -> None:
    with serving((200, answer)) as provider, pytest.raises(SaslAuthenticationFailed, match="; check"):
        credentials(provider).fetch()


@pytest.mark.parametrize("lifetime", [None, "300", -1, 0, 1e300, True, {}])
def test_a_lifetime_that_is_none_is_unknown(lifetime: object) -> None:
    with serving(good(expires_in=lifetime)) as provider:
        assert credentials(provider).fetch().lifetime_s in (None, 1.0)


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        client = ClientCredentials(
            Endpoint(f"http://127.0.0.1:{port}/t?key=pl4nted"), "id", SECRET, retries=Retries(backoff_max_ms=0)
        )
        with pytest.raises(
            SaslAuthenticationFailed, match=rf"http://127\.0\.0\.1:{port}/t cannot be reached"
        ) as failed:
            client.fetch()
    assert "pl4nted" not in str(failed.value)


def test_an_endpoint_that_does_not_answer_is_left_and_named_with_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/t"
        values = {
            "sasl.oauthbearer.token.endpoint.url": f"{url}?key=pl4nted",
            "sasl.login.read.timeout.ms": 50,
            "sasl.login.retry.backoff.max.ms": 0,
        }
        source, _ = token_source(values, {"clientId": "id", "clientSecret": SECRET})
        with pytest.raises(SaslAuthenticationFailed) as failed:
            source()
    assert str(failed.value) == (
        f"no token for OAUTHBEARER: {url} did not answer within 50 ms; check the URL and what serves it, or raise"
        " sasl.login.read.timeout.ms"
    )


def test_an_endpoint_that_takes_no_connection_is_named_with_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def hangs(address: Any, timeout: float, *others: Any) -> Any:
        given.append(timeout)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", hangs)
    values = {
        "sasl.oauthbearer.token.endpoint.url": "https://idp.example/t",
        "sasl.login.connect.timeout.ms": 1_500,
        "sasl.login.retry.backoff.max.ms": 0,
    }
    source, _ = token_source(values, {"clientId": "id", "clientSecret": SECRET})
    with pytest.raises(
        SaslAuthenticationFailed, match=r"https://idp\.example/t took no connection within 1500 ms; "
    ) as failed:
        source()
    assert str(failed.value).endswith(", or raise sasl.login.connect.timeout.ms")
    assert given == [1.5]


def test_the_time_of_an_answer_counts_among_the_retries() -> None:
    """As in Kafka: an endpoint that hangs is not asked as often as one that refuses."""
    times = iter([0.0, 8.0, 8.1, 16.1])
    pauses: list[float] = []
    with serving((503, b"")) as provider, pytest.raises(SaslAuthenticationFailed):
        credentials(provider, retries=Retries(clock=lambda: next(times))).fetch(pauses.append)
    assert pauses == [0.1]
    assert len(provider.requests) == 2


def test_who_waits_for_a_token_that_cannot_be_got_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that asked may have run out of time, and the next one would wait as long again."""
    asked: list[int] = []
    begun, go = threading.Event(), threading.Event()

    def fails() -> Fetched:
        asked.append(1)
        begun.set()
        assert go.wait(60)
        raise SaslAuthenticationFailed("no token: idp.example did not answer; check it")

    waiting = Entered()
    monkeypatch.setattr(tokens_source, "threading", SimpleNamespace(Lock=lambda: waiting))
    source = TokenSource(fails)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(source)
        assert begun.wait(60)
        second = threads.submit(source)
        assert waiting.second.wait(60)
        go.set()
        for future in (first, second):
            with pytest.raises(SaslAuthenticationFailed, match=r"idp\.example did not answer"):
                future.result(60)
    assert len(asked) == 1
    with pytest.raises(SaslAuthenticationFailed):
        source()
    assert len(asked) == 2, "a later call asks again"


class Entered:
    """A lock that tells when a second thread comes to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self.second = threading.Event()

    def __enter__(self) -> None:
        self._count += 1
        if self._count == 2:
            self.second.set()
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "idp.example/token",
        "ftp://idp.example",
        "file:///etc/passwd",
        "http://",
        "http://[x/",
        "http://a:b@h/",
        "http://h/a b",
        "http://h\r\nX: y/",
        "http://h:99999/",
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        ClientCredentials(Endpoint(url), "id", SECRET)


@pytest.mark.parametrize(("client_id", "secret"), [("", "x"), ("x", "")])
def test_id_and_secret_are_needed(client_id: str, secret: str) -> None:
    with pytest.raises(ConfigError, match="clientId and clientSecret"):
        ClientCredentials(Endpoint("https://idp.example/"), client_id, secret)


def test_secrets_are_not_shown() -> None:
    shown = repr(ClientCredentials(Endpoint("https://idp.example/"), "id", SECRET)) + repr(
        Fetched("t0ken.pl4nted", 1.0)
    )
    assert "pl4nted" not in shown


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    file.write_text("t0ken.pl4nted\n")
    url = file.as_uri()
    assert fetch_from_file(url) == Fetched("t0ken.pl4nted", None)
    for content in (b"", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(SaslAuthenticationFailed, match="; check sasl"):
            fetch_from_file(url)
    file.unlink()
    with pytest.raises(SaslAuthenticationFailed, match="No such file"):
        fetch_from_file(url)


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Tokens:
    """Gives tokens 1, 2, … that live for 100 s; fails while `fails`."""

    def __init__(self) -> None:
        self.count = 0
        self.fails = False

    def __call__(self) -> Fetched:
        if self.fails:
            raise SaslAuthenticationFailed("no token; try later")
        self.count += 1
        return Fetched(f"token-{self.count}", 100.0)


def test_a_token_is_kept_for_most_of_its_life() -> None:
    clock, tokens = Clock(), Tokens()
    source = TokenSource(tokens, clock)
    assert [source(), source()] == ["token-1", "token-1"]
    clock.now += 79
    assert source() == "token-1"
    clock.now += 2
    assert [source(), source()] == ["token-2", "token-2"]


def test_a_failed_refresh_uses_the_token_while_it_holds(caplog: pytest.LogCaptureFixture) -> None:
    clock, tokens = Clock(), Tokens()
    source = TokenSource(tokens, clock)
    source()
    tokens.fails = True
    clock.now += 85
    assert [source(), source()] == ["token-1", "token-1"]
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    clock.now += 15
    with pytest.raises(SaslAuthenticationFailed, match="try later"):
        source()
    tokens.fails = False
    assert source() == "token-2"


@pytest.mark.parametrize(
    ("token", "lifetime_s", "asked_again"),
    [
        ("opaque", None, True),
        (signed(exp=1_700_000_050), None, False),
        (signed(exp=1_700_000_050), 1000.0, False),
        (signed(exp=1_699_999_999), None, True),
        ("a.!!!.b", None, True),
        ("a.e30.b", None, True),
        ("a.eyJleHAiOiJ4In0.b", None, True),
    ],
)
def test_a_jwt_says_itself_when_it_ends(token: str, lifetime_s: float | None, asked_again: bool) -> None:
    asked: list[int] = []

    def fetch_one() -> Fetched:
        asked.append(1)
        return Fetched(token, lifetime_s)

    clock = Clock()
    source = TokenSource(fetch_one, clock)
    assert [source(), source()] == [token, token]
    assert len(asked) == (2 if asked_again else 1)
    clock.now += 41
    source()
    assert len(asked) == (3 if asked_again else 2)
