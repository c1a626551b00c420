"""What TLS itself has to say to a client that does not read."""

from __future__ import annotations

from typing import Any

from logkernel.plugins.transport.tcp.sending import MAX_UNREAD_RECORDS, Sender

RECORD = b"k" * 30
"""The answer to a KeyUpdate."""


class Records:
    """A TLS session whose client asks for a KeyUpdate again and again."""

    def take(self) -> bytes:
        return RECORD


class Transport:
    """Of a client that takes nothing."""

    def __init__(self) -> None:
        self.written = 0
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.written += len(data)

    def abort(self) -> None:
        self.aborted = True

    def set_write_buffer_limits(self, high: int) -> None: ...


class Machine:
    """An open connection without answers."""

    peer = "peer"
    state = 0

    def __init__(self) -> None:
        self.output: list[Any] = []
        self.told: list[str] = []

    def tell_refused(self, why: str) -> None:
        self.told.append(why)


def sender(transport: Any, machine: Machine) -> Sender:
    given: list[Any] = [None, transport, machine, True, lambda: None, Records()]
    return Sender(*given)


def test_a_client_that_asks_for_records_and_reads_none_is_disconnected() -> None:
    """They were kept for it, as many as it asked for, and it need not have said who it is."""
    transport, machine = Transport(), Machine()
    made = sender(transport, machine)
    made.on_paused()
    for _ in range(2 * MAX_UNREAD_RECORDS // len(RECORD)):
        if not transport.aborted:
            made.send_records()
    assert transport.aborted
    assert transport.written <= MAX_UNREAD_RECORDS
    assert machine.told == ["it asks for records of TLS and reads none"], "where the lines of a host are counted"


def test_a_client_that_reads_may_ask_for_records_without_end() -> None:
    transport = Transport()
    made = sender(transport, Machine())
    for _ in range(2 * MAX_UNREAD_RECORDS // len(RECORD)):
        made.on_paused()
        made.send_records()
        made.on_resumed()
    assert not transport.aborted
