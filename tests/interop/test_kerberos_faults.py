"""Kerberos that is slow, gone, or has another time: who waits for it, and what both sides are told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kdcs
import kerberos_logins
import pytest
from attrs import define
from kdcs import REALM, Kdc
from kerberos_logins import login

from logkernel import aio
from logkernel.errors import NetworkException, SaslAuthenticationFailed
from logkernel.security import jaas
from logkernel.security.kerberos import gss, logins
from logkernel.security.sasl.gssapi import GssapiClient, GssapiServer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
NewServer = Callable[[], GssapiServer]


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdcs.serving(tmp_path_factory.mktemp("kdc")) as kdc, pytest.MonkeyPatch.context() as patch:
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        yield kdc


@pytest.fixture(scope="module")
def new_server(kdc: Kdc) -> NewServer:
    new_context = gss.acceptors(str(kdc.keytab("kafka/localhost")), "kafka/localhost", None)
    return lambda: GssapiServer(new_context, str, lambda: 0)


def client(own: str) -> GssapiClient:
    values = {logins.SERVICE: "kafka", logins.KEYTAB: None, logins.PRINCIPAL: None}
    return logins.client_of(jaas.parse(own), values)("localhost")


def exchanged(one: GssapiClient, other: GssapiServer) -> None:
    message = one.respond(b"")
    while message is not None:
        message = one.respond(other.evaluate(message))


@define
class Gate:
    """Stands before a KDC: who connects waits until it is opened."""

    listener: socket.socket
    kdc: Kdc

    def wait(self) -> socket.socket:
        """Until somebody asks."""
        found, _ = self.listener.accept()
        return found

    def open(self, *waiting: socket.socket) -> None:
        """Let through who waits, and all that come from now on."""

        def serve() -> None:
            for asking in waiting:
                self._answer(asking)
            with contextlib.suppress(OSError):  # the test is over
                while True:
                    self._answer(self.wait())

        threading.Thread(target=serve, daemon=True).start()

    def _answer(self, asking: socket.socket) -> None:
        """One question, and its answer."""
        with asking, socket.create_connection(("127.0.0.1", self.kdc.port)) as behind:
            for source, target in ((asking, behind), (behind, asking)):
                size = source.recv(4, socket.MSG_WAITALL)
                target.sendall(size + source.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL))


@pytest.fixture
def gate(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """From now on, this process finds the KDC behind it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        configure(kdc, tmp_path, monkeypatch, f"127.0.0.1:{kdc.port}", f"127.0.0.1:{port}")
        yield Gate(listener, kdc)


def configure(kdc: Kdc, folder: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Have this process read another krb5.conf."""
    file = folder / "krb5.conf"
    file.write_text(kdc.krb5_conf.read_text().replace(old, new))
    monkeypatch.setenv("KRB5_CONFIG", str(file))


class Login(threading.Thread):
    def __init__(self, ask: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.begun = threading.Event()
        self.outcome: Any = None
        self._ask = ask
        self.start()

    def run(self) -> None:
        self.begun.set()
        try:
            self.outcome = self._ask()
        except Exception as error:
            self.outcome = error


# ------------------------------------------------------------ a KDC that says nothing


@pytest.mark.usefixtures("new_server")
def test_no_login_stops_the_process_while_another_waits_for_a_kdc(kdc: Kdc, gate: Gate) -> None:
    """They share credentials, which the library locks while it waits: who asked them for their lifetime held the GIL,
    until it gave up the KDC."""
    tickets = gss.KeytabTickets(str(kdc.keytab("alice")), "alice")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.krb5_conf))
        tickets.current()
    first = Login(lambda: gss.initiator(tickets, "kafka", "localhost"))
    asking = gate.wait()
    second = Login(lambda: gss.initiator(tickets, "kafka", "localhost"))
    second.begun.wait()
    gate.open(asking)
    for each in (first, second):
        each.join()
        assert isinstance(each.outcome, gss.Context), each.outcome


def test_a_loop_goes_on_and_ends_while_a_kdc_says_nothing(
    kdc: Kdc, gate: Gate, start_broker: Callable[..., Any]
) -> None:
    broker = start_broker(
        "--set", "sasl.enabled.mechanisms=GSSAPI",
        "--set", f"listener.name.sasl_plaintext.gssapi.sasl.jaas.config={login(kdc.keytab('kafka/b'), 'kafka/b')}",
        listen="SASL_PLAINTEXT://localhost:0",
    )  # fmt: skip
    given = {
        "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "kafka",
        "sasl_jaas_config": login(kdc.keytab("bob"), "bob"),
    }  # fmt: skip
    asking: list[socket.socket] = []

    async def go() -> None:
        async with aio.connect(broker.bootstrap, **given) as log, log.admin() as admin:
            listing = asyncio.create_task(admin.list_topics())
            asking.append(await asyncio.to_thread(gate.wait))
            listing.cancel()

    asyncio.run(go())
    (waiting,) = [thread for thread in threading.enumerate() if thread.name == "logkernel-login"]
    assert waiting.daemon, "the process may end as well"
    gate.open(*asking)
    waiting.join()


def test_no_ticket_is_got_behind_a_cache(kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would get one by the keys that it has for this system's users, and keep the GIL meanwhile."""
    keys = f" default_client_keytab_name = {kdc.keytab('grace')}\n"
    configure(kdc, tmp_path, monkeypatch, "[libdefaults]\n", f"[libdefaults]\n{keys}")
    with pytest.raises(gss.GssError):
        gss.CachedTickets(str(tmp_path / "none")).current()


def test_a_kdc_that_nobody_reaches_is_named(kdc: Kdc, gate: Gate) -> None:
    own = login(kdc.keytab("carol"), "carol")
    gate.listener.close()
    with pytest.raises(NetworkException, match=rf"Cannot contact any KDC for realm '{REALM}'; start a KDC, or correct"):
        client(own).respond(b"")


# ------------------------------------------------------------ times


def while_there(tickets: gss.Tickets) -> None:
    while tickets.current():
        time.sleep(0.05)


@pytest.mark.parametrize("shift_s", [3600, -3600])
def test_a_kdc_with_another_time_is_told_of_on_both_sides(
    kdc: Kdc, new_server: NewServer, shift_s: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client follows the KDC's time by default, and the broker refuses it; or it does not."""
    own = login(kdc.keytab("dave"), "dave")
    kdc.stop()
    kdc.start(shift_s)
    try:
        with pytest.raises(
            SaslAuthenticationFailed, match=r"does not take the client's ticket; check .*clocks"
        ) as told:
            exchanged(client(own), new_server())
        (note,) = told.value.__notes__
        assert "Ticket not yet valid" in note or "Clock skew too great" in note
        assert "; compare the keytab with the KDC's keys (klist -k), and the clocks" in note
        configure(kdc, tmp_path, monkeypatch, "[libdefaults]\n", "[libdefaults]\n kdc_timesync = 0\n")
        with pytest.raises(SaslAuthenticationFailed, match=r"Clock skew too great in KDC reply; check .*the clocks"):
            client(own).respond(b"")
    finally:
        kdc.stop()
        kdc.start()


def test_a_ticket_that_has_expired_is_not_shown_and_not_taken(
    kdc: Kdc, new_server: NewServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, keytab = tmp_path / "cache", kdc.keytab("erin", options='-maxlife "12 sec"')
    configure(kdc, tmp_path, monkeypatch, "[libdefaults]\n", "[libdefaults]\n clockskew = 0\n")
    kerberos_logins.fill(cache, keytab, "erin")
    by_cache = f'{kerberos_logins.MODULE} useTicketCache=true ticketCache="{cache}";'
    token = client(by_cache).respond(b"")
    assert token
    with pytest.raises(gss.GssError, match="expired; run kinit"):
        while_there(gss.CachedTickets(str(cache)))
    with pytest.raises(SaslAuthenticationFailed, match="the ticket in the cache has expired; run kinit; check"):
        client(by_cache).respond(b"")
    with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket; check") as told:
        new_server().evaluate(token)
    (note,) = told.value.__notes__
    assert "Ticket expired" in note or "Clock skew too great" in note


# ------------------------------------------------------------ keys


def test_a_broker_whose_keytab_lacks_the_clients_service_says_so(kdc: Kdc) -> None:
    """The keytab is for another host than the one that clients connect to; and one whose keys are of before."""
    own = login(kdc.keytab("frank"), "frank")
    older = kdc.keytab("kafka/localhost", name="older")
    kdc.keytab("kafka/localhost", name="newer")
    old = gss.acceptors(str(older), "kafka/localhost", None)
    elsewhere = gss.acceptors(str(kdc.keytab("kafka/elsewhere")), None, "kafka")
    for new_context, why in ((old, "kvno"), (elsewhere, "kafka/localhost")):
        with pytest.raises(SaslAuthenticationFailed, match="does not take the client's ticket; check sasl") as told:
            exchanged(client(own), GssapiServer(new_context, str, lambda: 0))
        (note,) = told.value.__notes__
        assert why in note
