"""Whoever asks a KDC waits for a bounded time, one after the other."""

from __future__ import annotations

import contextlib
import threading

import pytest

from logkernel.security.kerberos.asking import Asking
from logkernel.security.sasl.gssapi import GssError


def refused() -> str:
    raise GssError("no such principal")


def test_what_it_returns_or_raises_comes_back() -> None:
    asking = Asking()
    assert asking.run(lambda: "ticket") == "ticket"
    with pytest.raises(GssError, match="no such principal") as raised:
        asking.run(refused)
    assert not raised.value.unreachable
    assert asking.run(lambda: "again") == "again"


def unreachable() -> str:
    raise GssError("Cannot contact any KDC", unreachable=True)


def test_that_no_kdc_answers_is_logged_once_until_one_does(caplog: pytest.LogCaptureFixture) -> None:
    asking = Asking()
    for ask in (unreachable, unreachable, lambda: "ticket", unreachable, refused):
        with contextlib.suppress(GssError):
            asking.run(ask)
    told = "no login by Kerberos: Cannot contact any KDC; start a KDC, or correct the realm's in krb5.conf"
    assert [record.getMessage() for record in caplog.records] == [told, told]


def test_one_that_hangs_is_left_behind_and_nobody_follows_it() -> None:
    asking, end, asked = Asking(0.01), threading.Event(), list[str]()
    begun, threads = threading.Event(), list[threading.Thread]()

    def hang() -> str:
        asked.append("first")
        threads.append(threading.current_thread())
        begun.set()
        end.wait()
        return "too late"

    for ask in (hang, lambda: asked.append("second")):
        with pytest.raises(GssError, match=r"no KDC answers within 0\.01 s") as raised:
            asking.run(ask)
        assert raised.value.unreachable
    assert begun.wait(30)
    assert asked == ["first"]
    (left,) = threads
    assert left.daemon, "it does not hold up the end of the process"
    end.set()
    left.join()
    answers = list[str]()
    while not answers:
        with contextlib.suppress(GssError):  # a slow machine may need longer than that
            answers.append(asking.run(lambda: "ticket"))
    assert answers == ["ticket"]


def test_without_threads_it_says_so_and_others_may_try(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    asking = Asking()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(GssError, match="no thread to ask a KDC on"):
            asking.run(lambda: "ticket")
    assert asking.run(lambda: "ticket") == "ticket"
