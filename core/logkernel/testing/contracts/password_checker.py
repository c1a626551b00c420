"""What every password checker promises to the broker that asks it, and to those who type passwords."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cached_property
from typing import ClassVar

from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Login, PasswordChecker
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown, traced_memory
from logkernel.vocabulary import Secret

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
NAMES = st.sampled_from(["ann", "Ann", "a b", "*", "cn=ann,o=x", "%s", "ä" * 300, "../ann", "ann\n", ")(uid=*"]) | TEXT
LISTENERS = st.sampled_from(["OUT", "SASL_PLAINTEXT"])
HOSTS = st.sampled_from(["10.0.0.1", "::1", ""])
LOGINS = st.builds(Login, NAMES, st.builds(Secret, TEXT), LISTENERS, HOSTS)
PLANTED = "planted-password-0f3b"
STRANGERS = 40
KEPT_BYTES = 1 << 20
"""Most memory for users that came once, with names of 50 kB."""


class PasswordCheckerContract(Kit[PasswordChecker]):
    """`logkernel.contracts.PasswordChecker`. `settings` are the broker's."""

    kind = "password checker"
    methods = ("check",)
    known: ClassVar[Sequence[tuple[str, str]]] = ()
    """Users and passwords that it lets in, if your suite has some."""

    def provide(self, kernel: Kernel, name: str) -> PasswordChecker:
        given = [f"{setting}={value}" for setting, value in self.settings.items()]
        return kernel.password_checker(name, BrokerConfig.load(None, given, kernel.declarations()))

    @for_all(15, login=LOGINS)
    def test_it_answers_whatever_is_sent(self, login: Login) -> None:
        """A user of whom it knows nothing is refused, not an error."""
        self._ask(self._checker, login)

    def test_it_lets_in_who_is_known_by_the_right_password_only(self) -> None:
        for username, password in self.known:
            if not self._ask(self._checker, _login(username, password)):
                self.broken(f"check() refuses {shown(username)} with the password of `known`; accept it")
            for wrong in (password + "x", password[:-1] or "x", password.swapcase() + " "):
                if self._ask(self._checker, _login(username, wrong)):
                    self.broken(f"check() accepts {shown(username)} with a wrong password; compare all of it")
        if self._ask(self._checker, _login("no such user", PLANTED)):
            self.broken("check() accepts a user that nobody knows; refuse it")

    @for_all(10, login=LOGINS, others=st.lists(LOGINS, max_size=3))
    def test_equal_logins_get_equal_answers(self, login: Login, others: list[Login]) -> None:
        """Whoever logged in before."""
        first = self._ask(self._checker, login)
        for other in others:
            self._ask(self._checker, other)
        again = self._ask(self._checker, login)
        if first != again:
            self.broken(f"check() answered {first} to {shown(login)}, then {again}; depend on the login only")

    def test_it_is_asked_on_several_threads_at_once(self) -> None:
        logins = [_login(f"user-{number}", PLANTED) for number in range(8)]
        logins += [_login(username, password) for username, password in self.known]
        alone = [self._ask(self._checker, login) for login in logins]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda login: self._ask(self._checker, login), logins * 4))
        if together != alone * 4:
            self.broken("check() answers otherwise where several threads call it at once; share nothing between calls")

    def test_it_shows_no_password(self) -> None:
        """Neither in a log, nor in what it prints, nor by its repr()."""
        checker = self.make()
        heard = _Heard()
        with heard.listening():
            self._ask(checker, _login("ann", PLANTED))
        if PLANTED in heard.out.getvalue() + repr(checker):
            self.broken("a password that it was asked for is in its log, output or repr; leave it out")

    def test_users_that_are_gone_take_no_memory(self) -> None:
        """Names are what clients say: each login may bring another."""
        self._ask(self._checker, _login("first", PLANTED))
        with traced_memory() as memory:
            for number in range(STRANGERS):
                self._ask(self._checker, _login(f"{number}-{'x' * 50_000}", PLANTED))
        if memory.kept_bytes > KEPT_BYTES:
            self.broken(f"it keeps {memory.kept_bytes >> 10} kB of {STRANGERS:,} users that came once; forget them")

    # ------------------------------------------------------------ steps

    @cached_property
    def _checker(self) -> PasswordChecker:
        """One object behind the guard that a broker asks it through."""
        return self.guarded()

    def _ask(self, checker: PasswordChecker, login: Login) -> bool | str:
        with self.calling("check()"):
            return checker.check(login)


def _login(username: str, password: str) -> Login:
    return Login(username, Secret(password), "OUT", "10.0.0.1")


class _Heard(logging.Handler):
    """Keeps what is logged at any level, and what is printed, as one text."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.out = io.StringIO()

    def emit(self, record: logging.LogRecord) -> None:
        self.out.write(self.format(record) + "\n")

    @contextmanager
    def listening(self) -> Iterator[None]:
        root = logging.getLogger()
        level = root.level
        root.addHandler(self)
        root.setLevel(logging.DEBUG)
        try:
            with redirect_stdout(self.out), redirect_stderr(self.out):
                yield
        finally:
            root.setLevel(level)
            root.removeHandler(self)
