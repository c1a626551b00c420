"""A password checker says whether a user's password is right."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.vocabulary import Secret


@frozen
class Login:
    """What a client sent to prove who it is, by the mechanism PLAIN."""

    username: str
    """Any text but the empty one: there may be no such user."""
    password: Secret
    """Not empty. `reveal()` gives the text; log neither it nor what was made of it."""
    listener: str
    """Name of the listener that the client connected to."""
    client_host: str = ""
    """The client's address, without its port."""


@runtime_checkable
class PasswordChecker(Protocol):
    """Says whether a user's password is right. One object for each listener, called on threads, several at once.

    It may wait for others, such as a directory. A login that takes longer than `logkernel.password.check.timeout.ms` is
    refused, and what the call returns later is not used. So is one whose call raises, or answers neither a bool nor a
    name. Neither holds up others."""

    def check(self, login: Login) -> bool | str:
        """Return True where the password is the user's, else False. Return a name where the client is to be known by
        another than it gave: its principal is User:NAME.

        Take as long for a user that there is not as for a wrong password: clients are not told which it was."""
        ...
