"""The in-sync replicas of one partition, as its leader sees them (KIP-497, KIP-841, KIP-903).

The controller keeps the ISR; the leader proposes changes to it, one at a time:

    state       event      next        why
    COMMITTED   expand     EXPANDING   a follower caught up
    COMMITTED   shrink     SHRINKING   a member lags
    EXPANDING   accepted   COMMITTED   the controller wrote it down
    EXPANDING   reverted   COMMITTED   the controller refused for good (INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED)
    EXPANDING   stuck      STUCK       the leader is behind the controller: only an order tells what holds
    SHRINKING   accepted   COMMITTED
    SHRINKING   reverted   COMMITTED
    SHRINKING   stuck      STUCK
    any         order      COMMITTED   LeaderAndIsr in a newer leader epoch names the set and its partition epoch

A proposal without an answer is sent again; the controller answers success if the state is already equal. Attempts
reach the controller in order, so a refusal counts only if it answers the last attempt; an acceptance of any attempt
counts.

While a proposal is in flight, either set may be the current one. So the watermark waits for both (`maximal`): for
joining members from now on, for leaving members until the controller has confirmed. A STUCK set keeps its maximum.

The topic's policy decides who is in the ISR (`contracts.IsrPolicy`). If there is none, or it fails, a member leaves
that was not caught up for `replica.lag.time.max.ms`, which is Kafka's rule.

Invariants: the leader is in `isr`; `isr <= maximal <= replicas`; `partition_epoch` never falls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from logkernel.attrs_lite import evolve, mutable
from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.errors import PluginError
from logkernel.transitions import Transitions
from logkernel.vocabulary import IsrProposal

UNKNOWN_END: Final = -1
ANY_BROKER_EPOCH: Final = -1
"""The broker epoch of a fetch that names none, as of Kafka's brokers in ZooKeeper mode."""


class State(Enum):
    COMMITTED = "committed"
    EXPANDING = "expanding"
    SHRINKING = "shrinking"
    STUCK = "stuck"


class Event(Enum):
    EXPAND = "expand"
    SHRINK = "shrink"
    ACCEPTED = "accepted"
    REVERTED = "reverted"
    STUCK = "stuck"
    ORDER = "order"


TRANSITIONS: Final = Transitions("in-sync replicas", {
    (State.COMMITTED, Event.EXPAND): State.EXPANDING,
    (State.COMMITTED, Event.SHRINK): State.SHRINKING,
    (State.EXPANDING, Event.ACCEPTED): State.COMMITTED,
    (State.EXPANDING, Event.REVERTED): State.COMMITTED,
    (State.EXPANDING, Event.STUCK): State.STUCK,
    (State.SHRINKING, Event.ACCEPTED): State.COMMITTED,
    (State.SHRINKING, Event.REVERTED): State.COMMITTED,
    (State.SHRINKING, Event.STUCK): State.STUCK,
    **{(state, Event.ORDER): State.COMMITTED for state in State},
})  # fmt: skip


@mutable
class FollowerState:
    """What a leader knows of one follower. Times are monotonic ms."""

    log_end: int = UNKNOWN_END
    """Its log end: it has every record below. -1 before its first fetch in this leader epoch."""
    log_start: int = 0
    caught_up_ms: int = 0
    """When it last had all of the leader's records."""
    fetched_ms: int = -1
    """When it last fetched, -1 for never."""
    leader_end_then: int = 0
    """The leader's log end at that fetch. A follower whose next fetch reaches it had caught up at that time."""
    broker_epoch: int = ANY_BROKER_EPOCH
    """The broker epoch of its last fetch (KIP-903)."""
    refused: bool = False
    """The policy's last answer was not in sync: the watermark does not wait for it to join."""


class InSyncReplicas:
    """The ISR of one partition, as its leader keeps it for one leader epoch. Time is an argument; no I/O."""

    __slots__ = (
        "_proposal", "_state", "_ticked_end", "_ticked_ms", "followers", "isr", "lag_ms", "leader_epoch", "node_id",
        "partition_epoch", "policy",
    )  # fmt: skip

    def __init__(
        self,
        *,
        node_id: int,
        replicas: Iterable[int],
        isr: Iterable[int],
        leader_epoch: int,
        partition_epoch: int,
        lag_ms: int,
        mono_ms: int,
        policy: IsrPolicy | None = None,
    ) -> None:
        """`lag_ms` is `replica.lag.time.max.ms`. From `mono_ms` on, members have that long to fetch."""
        self.policy = policy
        self.node_id = node_id
        self.leader_epoch = leader_epoch
        self.lag_ms = lag_ms
        self.followers: dict[int, FollowerState] = {}
        self.isr: frozenset[int] = frozenset()
        self.partition_epoch = partition_epoch
        self._proposal: IsrProposal | None = None
        self._state = State.COMMITTED
        self._ticked_ms = mono_ms
        self._ticked_end = 2**63 - 1
        """The leader's log end at the last check for lagging members."""
        self._take(replicas, isr, partition_epoch, mono_ms)

    # ------------------------------------------------------------ questions

    @property
    def state(self) -> State:
        return self._state

    @property
    def proposal(self) -> IsrProposal | None:
        """The proposal that the controller has not answered; sent again until the state is STUCK."""
        return self._proposal

    @property
    def maximal(self) -> frozenset[int]:
        """Every replica that may be in the controller's ISR by now."""
        return self.isr if self._proposal is None else self.isr | self._proposal.isr

    def holding(self, leader_end: int, mono_ms: int, eligible: Collection[int]) -> Iterator[int]:
        """Log ends of the followers that the watermark waits for: the maximal ISR, and those about to join it (caught
        up within the lag, alive, and not refused by the policy). Else the watermark would move on before they can join
        (KAFKA-3861)."""
        maximal = self.maximal
        for node, follower in self.followers.items():
            if node in maximal or (
                node in eligible and not follower.refused and self._is_caught_up(follower, leader_end, mono_ms)
            ):
                yield follower.log_end

    def lagging(self, leader_end: int, mono_ms: int) -> frozenset[int]:
        """Return the members that are no longer in sync."""
        return frozenset(
            node for node in self.followers if node in self.isr and not self._belongs(node, leader_end, mono_ms)
        )

    def _is_caught_up(self, follower: FollowerState, leader_end: int, mono_ms: int) -> bool:
        return follower.log_end == leader_end or mono_ms - follower.caught_up_ms <= self.lag_ms

    def _belongs(self, node: int, leader_end: int, mono_ms: int) -> bool:
        """Whether a follower is in sync by the policy."""
        follower, is_member = self.followers[node], node in self.isr
        policy, end = self.policy, follower.log_end
        if policy is not None:
            facts = FollowerFacts(
                node=node,
                is_member=is_member,
                lag_records=None if end == UNKNOWN_END else max(0, leader_end - end),
                caught_up_ms=max(0, mono_ms - follower.caught_up_ms),
                fetched_ms=max(0, mono_ms - max(follower.fetched_ms, follower.caught_up_ms)),
                lag_time_max_ms=self.lag_ms,
            )
            try:
                belongs = policy.is_in_sync(facts)
            except PluginError:  # its guard noted it
                belongs = not is_member or self._is_caught_up(follower, leader_end, mono_ms)
            follower.refused = not belongs
            return belongs
        return not is_member or self._is_caught_up(follower, leader_end, mono_ms)

    # ------------------------------------------------------------ events

    def on_fetch(
        self, node: int, offset: int, log_start: int, leader_end: int, mono_ms: int, broker_epoch: int
    ) -> FollowerState:
        """A follower fetches from `offset`: it has all records below. A late fetch of an earlier incarnation of its
        broker is ignored: a power cut may have lost those records (KAFKA-15221). Raises KeyError for a node that is not
        a replica."""
        follower = self.followers[node]
        if ANY_BROKER_EPOCH < broker_epoch < follower.broker_epoch:
            return follower
        if offset >= leader_end:
            follower.caught_up_ms = max(follower.caught_up_ms, mono_ms)
        elif follower.fetched_ms >= 0 and offset >= follower.leader_end_then:
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.log_end = offset
        follower.log_start = log_start
        follower.fetched_ms = mono_ms
        follower.leader_end_then = leader_end
        follower.broker_epoch = broker_epoch
        return follower

    def take_policy(self, policy: IsrPolicy | None) -> None:
        """Replace the policy. The new one may admit followers that the last one refused."""
        self.policy = policy
        for follower in self.followers.values():
            follower.refused = False

    def on_gone(self, nodes: Collection[int]) -> None:
        """Brokers are no longer alive. One that comes back may have lost records: until it fetches again, its log end
        is unknown. The controller's order decides about members."""
        for node in nodes:
            if node in self.followers and node not in self.isr:
                self.followers[node] = self._unknown(node, self.followers)

    @staticmethod
    def _unknown(node: int, known: Mapping[int, FollowerState]) -> FollowerState:
        """All that is known of the follower is the last incarnation of its broker, so that none before it counts."""
        before = known.get(node)
        return FollowerState() if before is None else FollowerState(broker_epoch=before.broker_epoch)

    def propose_expansion(
        self,
        node: int,
        high_watermark: int,
        epoch_start: int,
        eligible: Collection[int],
        leader_end: int,
        mono_ms: int,
    ) -> IsrProposal | None:
        """`node` joins if it holds all that is committed and all of the epochs before this one (KIP-392's bug,
        KAFKA-7128), is alive and not on its way out (KIP-841), and belongs in the ISR. None if not, or while another is
        under way."""
        if self._state is not State.COMMITTED or node in self.isr or node not in eligible:
            return None
        end = self.followers[node].log_end
        if not self._belongs(node, leader_end, mono_ms) or end < high_watermark or end < epoch_start:
            return None
        return self._propose(Event.EXPAND, self.isr | {node})

    def propose_waiting(
        self, high_watermark: int, epoch_start: int, eligible: Collection[int], leader_end: int, mono_ms: int
    ) -> IsrProposal | None:
        """Propose the first follower that could have joined at its last fetch, but was blocked by another proposal or
        not yet alive, and does not lag by now."""
        for node, follower in self.followers.items():
            if self._is_caught_up(follower, leader_end, mono_ms):
                proposal = self.propose_expansion(node, high_watermark, epoch_start, eligible, leader_end, mono_ms)
                if proposal is not None:
                    return proposal
        return None

    def propose_shrink(self, leader_end: int, mono_ms: int) -> IsrProposal | None:
        """Propose the ISR without the members that lag. None if none lags, or while another proposal is under way."""
        self._note_idle(leader_end, mono_ms)
        if self._state is not State.COMMITTED:
            return None
        gone = self.lagging(leader_end, mono_ms)
        return self._propose(Event.SHRINK, self.isr - gone) if gone else None

    def _note_idle(self, leader_end: int, mono_ms: int) -> None:
        """A replica that held everything at the last check was caught up then. A follower need not repeat that: if
        nothing is written, its session has nothing to ask."""
        for follower in self.followers.values():
            if follower.log_end >= self._ticked_end:
                follower.caught_up_ms = max(follower.caught_up_ms, self._ticked_ms)
        self._ticked_end, self._ticked_ms = leader_end, mono_ms

    def _propose(self, event: Event, isr: frozenset[int]) -> IsrProposal:
        self._state = TRANSITIONS[self._state, event]
        epochs = tuple(
            (node, self.followers[node].broker_epoch if node != self.node_id else ANY_BROKER_EPOCH)
            for node in sorted(isr)
        )
        self._proposal = IsrProposal(epochs, self.leader_epoch, self.partition_epoch)
        return self._proposal

    def repeat(self) -> IsrProposal | None:
        """Return another attempt at the proposal in flight; None if there is none."""
        if self._proposal is not None and self._state is not State.STUCK:
            self._proposal = evolve(self._proposal, attempt=self._proposal.attempt + 1)
            return self._proposal
        return None

    def on_accepted(self, proposal: IsrProposal, partition_epoch: int) -> bool:
        """The controller stored a proposal. Return False if it is not the one in flight any more."""
        mine = self._proposal
        if mine is None or self._state is State.STUCK or evolve(proposal, attempt=mine.attempt) != mine:
            return False
        self._state = TRANSITIONS[self._state, Event.ACCEPTED]
        self.isr = mine.isr
        self.partition_epoch = partition_epoch
        self._proposal = None
        return True

    def on_refused(self, proposal: IsrProposal, *, revert: bool) -> bool:
        """The controller refused. `revert`: it never stores the proposal; else the leader is behind, and waits for an
        order."""
        if self._state is State.STUCK or proposal != self._proposal:
            return False
        self._state = TRANSITIONS[self._state, Event.REVERTED if revert else Event.STUCK]
        if revert:
            self._proposal = None
        return True

    def on_order(
        self, leader_epoch: int, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, mono_ms: int
    ) -> bool:
        """Take the ISR from an order. Return False if its leader epoch is not newer."""
        if leader_epoch <= self.leader_epoch:
            return False
        self._state = TRANSITIONS[self._state, Event.ORDER]
        self.leader_epoch = leader_epoch
        self._proposal = None
        self._take(replicas, isr, partition_epoch, mono_ms)
        return True

    def _take(self, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, mono_ms: int) -> None:
        self.isr = frozenset(isr) | {self.node_id}
        self.partition_epoch = partition_epoch
        known, self.followers = self.followers, {}
        for node in replicas:
            if node != self.node_id:
                kept = known.get(node) if node in self.isr else None  # others may have lost what they fetched
                self.followers[node] = kept or self._unknown(node, known)
        for node in self.isr & self.followers.keys():
            self.followers[node].caught_up_ms = mono_ms
