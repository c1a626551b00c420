"""What every authorizer promises to the broker that asks it, and to the clients that it judges."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Authorizer, RequestContext
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown, traced_memory
from logkernel.vocabulary import Acl, AclOperation, Principal, ResourceType

NAMES = st.sampled_from(["orders", "orders-eu", "o", "*", "kafka-cluster", "ä/%s\n", "x" * 300])
PRINCIPALS = st.sampled_from(["User:ann", "User:*", "User:CN=bob,O=acme", "Group:x"])
HOSTS = st.sampled_from(["*", "10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "example.org"])
ACLS = st.builds(
    Acl,
    resource_type=st.sampled_from([int(kind) for kind in ResourceType]),
    pattern_type=st.sampled_from([3, 4]),
    resource_name=NAMES,
    principal=PRINCIPALS,
    host=HOSTS,
    operation=st.sampled_from([int(operation) for operation in AclOperation]),
    permission_type=st.sampled_from([2, 3]),
)
RULES = st.lists(ACLS, max_size=6)
CLIENTS = st.builds(
    RequestContext,
    client_id=st.none() | st.text(max_size=5),
    client_host=st.sampled_from(["10.0.0.1", "10.0.0.2", "::1", "", "memory"]),
    principal=st.builds(
        Principal, kind=st.sampled_from(["User", "Group"]), name=st.sampled_from(["ann", "CN=bob,O=acme", "*", "", "ä"])
    ),
)
OPERATIONS = st.sampled_from([operation for operation in AclOperation if operation is not AclOperation.ALL])
TYPES = st.sampled_from(list(ResourceType))
SEVERAL = st.lists(NAMES, max_size=4)
Question = tuple[RequestContext, AclOperation, ResourceType, list[str]]
QUESTIONS: st.SearchStrategy[Question] = st.tuples(CLIENTS, OPERATIONS, TYPES, SEVERAL)
STRANGERS = 4_000
KEPT_BYTES = 16 << 20
"""Most memory for what clients asked that came once."""


class AuthorizerContract(Kit[Authorizer]):
    """`logkernel.contracts.Authorizer`. `settings` are the broker's."""

    kind = "authorizer"
    methods = ("acls_changed", "authorize", "authorize_by_resource_type")

    def provide(self, kernel: Kernel, name: str) -> Authorizer:
        given = [f"{setting}={value}" for setting, value in self.settings.items()]
        return kernel.authorizer(name, BrokerConfig.load(None, given, kernel.declarations()))

    @for_all(80, acls=RULES, asked=QUESTIONS)
    def test_it_answers_for_each_resource_whatever_is_asked(self, acls: list[Acl], asked: Question) -> None:
        """What it does not answer is refused."""
        authorizer = self._knowing(acls)
        self._ask(authorizer, asked)
        self._ask_for_any(authorizer, asked)

    @for_all(40, acls=RULES, asked=QUESTIONS, others=st.lists(QUESTIONS, max_size=5))
    def test_equal_questions_get_equal_answers(self, acls: list[Acl], asked: Question, others: list[Question]) -> None:
        """Nothing that is remembered of one client counts for another."""
        authorizer = self._knowing(acls)
        first = self._ask(authorizer, asked), self._ask_for_any(authorizer, asked)
        for other in others:
            self._ask(authorizer, other)
        again = self._ask(authorizer, asked), self._ask_for_any(authorizer, asked)
        anew = self._knowing(acls)
        new = self._ask(anew, asked), self._ask_for_any(anew, asked)
        if not first == again == new:
            self.broken(
                f"it answered {first} for {shown(asked)}, then {again}, and a new object {new}; depend on the arguments"
                f" and the ACLs only"
            )

    @for_all(40, acls=RULES, asked=QUESTIONS)
    def test_several_resources_are_judged_each_for_itself(self, acls: list[Acl], asked: Question) -> None:
        client, operation, kind, names = asked
        authorizer = self._knowing(acls)
        together = self._ask(authorizer, asked)
        alone = [self._ask(authorizer, (client, operation, kind, [name]))[0] for name in names]
        if together != alone:
            self.broken(f"authorize() answered {together} for {shown(names)}, and {alone} one by one; keep their order")

    @for_all(60, acls=RULES, more=RULES, asked=QUESTIONS)
    def test_an_acl_that_is_gone_counts_no_more(self, acls: list[Acl], more: list[Acl], asked: Question) -> None:
        """Also where an answer was given while it was there."""
        new = [acl for acl in dict.fromkeys(more) if acl not in acls]
        authorizer = self._knowing([*acls, *new])
        self._ask(authorizer, asked)
        self._tell(authorizer, [], new)
        without = self._knowing(acls)
        after = self._ask(authorizer, asked), self._ask_for_any(authorizer, asked)
        never = self._ask(without, asked), self._ask_for_any(without, asked)
        if after != never:
            self.broken(f"{shown(asked)} gets {after} after {shown(new)} came and went, not {never}; forget them")

    @for_all(60, acls=RULES, asked=QUESTIONS)
    def test_an_acl_that_is_told_twice_counts_once(self, acls: list[Acl], asked: Question) -> None:
        """A broker tells the same again where a call failed."""
        authorizer = self._knowing(acls)
        self._tell(authorizer, acls, [])
        self._tell(authorizer, [], acls)
        gone = self._ask(authorizer, asked)
        self._tell(authorizer, [], acls)
        still, never = self._ask(authorizer, asked), self._ask(self._knowing([]), asked)
        if not gone == still == never:
            self.broken(f"ACLs that were told twice, and deleted, change the answer to {shown(asked)}; keep a set")

    def test_clients_that_are_gone_take_no_memory(self) -> None:
        """Names of resources are what clients say: each request may bring another."""
        authorizer = self._knowing([])
        with traced_memory() as memory:
            for number in range(STRANGERS):
                client = RequestContext(client_host=f"10.0.{number % 256}.1", principal=Principal("User", f"u{number}"))
                names = [f"{number}-{'x' * 2_000}-{index}" for index in range(10)]
                self._ask(authorizer, (client, AclOperation.READ, ResourceType.TOPIC, names))
        if memory.kept_bytes > KEPT_BYTES:
            self.broken(f"it keeps {memory.kept_bytes >> 20} MB of {STRANGERS:,} clients that came once; forget them")

    # ------------------------------------------------------------ steps

    def _knowing(self, acls: Sequence[Acl]) -> Authorizer:
        """A new object, behind the guard that a broker asks it through, that was told these ACLs."""
        authorizer = self.guarded()
        self._tell(authorizer, acls, [])
        return authorizer

    def _tell(self, authorizer: Authorizer, added: Sequence[Acl], removed: Sequence[Acl]) -> None:
        with self.calling("acls_changed()"):
            authorizer.acls_changed(added, removed)

    def _ask(self, authorizer: Authorizer, asked: Question) -> list[bool]:
        with self.calling("authorize()"):
            return list(authorizer.authorize(*asked))

    def _ask_for_any(self, authorizer: Authorizer, asked: Question) -> bool:
        client, operation, kind, _ = asked
        with self.calling("authorize_by_resource_type()"):
            return authorizer.authorize_by_resource_type(client, operation, kind)
