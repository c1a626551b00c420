"""Password checkers that break a promise."""

from __future__ import annotations

import logging
import threading
from typing import Any

from logkernel.contracts import Login
from wrong_plugins import Wrong, made

log = logging.getLogger("acme.passwords")


class Plain:
    """A checker that keeps its promises: ann's password is `wonder`."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def check(self, login: Login) -> Any:
        return login.username == "ann" and login.password.reveal() == "wonder"


class Mute(Plain):
    def check(self, login: Login) -> Any:
        return True if super().check(login) else None


class Nameless(Plain):
    def check(self, login: Login) -> Any:
        return "" if not super().check(login) else login.username


class Strict(Plain):
    def check(self, login: Login) -> Any:
        return {"ann": "wonder"}[login.username] == login.password.reveal()


class Open(Plain):
    def check(self, login: Login) -> Any:
        return True


class Shut(Plain):
    def check(self, login: Login) -> Any:
        return False


class Loose(Plain):
    def check(self, login: Login) -> Any:
        return login.username == "ann" and login.password.reveal().startswith("wonder")


class Weary(Plain):
    """Who comes often enough is let in."""

    def check(self, login: Login) -> Any:
        self.seen.append(login.username)
        return len(self.seen) % 3 == 0


class Alone(Plain):
    """It was not meant for threads: it knows the first one only."""

    def __init__(self) -> None:
        super().__init__()
        self.home = threading.get_ident()

    def check(self, login: Login) -> Any:
        return super().check(login) and threading.get_ident() == self.home


class Chatty(Plain):
    def check(self, login: Login) -> Any:
        log.debug("%s tried %s", login.username, login.password.reveal())
        return super().check(login)


class Printing(Plain):
    def check(self, login: Login) -> Any:
        print(login.password.reveal())
        return super().check(login)


class Showing(Plain):
    def check(self, login: Login) -> Any:
        self.seen.append(login.password.reveal())
        return super().check(login)

    def __repr__(self) -> str:
        return f"Showing({self.seen})"


class Ledger(Plain):
    def check(self, login: Login) -> Any:
        self.seen.append(login.username)
        return super().check(login)


def knowing(make: Any) -> dict[str, Any]:
    return {**made(lambda _: make()), "known": [("ann", "wonder")]}


ANY = "test_it_answers_whatever_is_sent"
RIGHT = "test_it_lets_in_who_is_known_by_the_right_password_only"
SHOWS = "test_it_shows_no_password"
WRONG = [
    Wrong(ANY, "answered with a NoneType; return True, False or a name", made(lambda _: Mute())),
    Wrong(ANY, "answered with a str; return True, False or a name", made(lambda _: Nameless())),
    Wrong(ANY, "failed in password checker .*: KeyError; the login is refused", made(lambda _: Strict())),
    Wrong(RIGHT, "a user that nobody knows; refuse it", made(lambda _: Open())),
    Wrong(RIGHT, "refuses 'ann' with the password of `known`", knowing(Shut)),
    Wrong(RIGHT, "with a wrong password; compare all of it", knowing(Loose)),
    Wrong("test_equal_logins_get_equal_answers", "depend on the login only", made(lambda _: Weary())),
    Wrong("test_it_is_asked_on_several_threads_at_once", "share nothing between calls", knowing(Alone)),
    Wrong(SHOWS, "leave it out", made(lambda _: Chatty())),
    Wrong(SHOWS, "leave it out", made(lambda _: Printing())),
    Wrong(SHOWS, "leave it out", made(lambda _: Showing())),
    Wrong("test_users_that_are_gone_take_no_memory", "forget them", made(lambda _: Ledger())),
]
