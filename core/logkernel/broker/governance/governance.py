"""The part that decides for a broker: the broker itself (`standalone`), or its controller (`cluster_member`).

A broker has one `Governance` for its life, and does not ask which: whatever depends on it is behind these methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from logkernel.broker.cluster_view import LiveClusterView
from logkernel.broker.log_manager import LogManager
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.own_addresses import OwnAddresses
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import BrokerDoor, RequestContext
from logkernel.controller.effects import ControllerResult, Effects, Spend
from logkernel.controller.image import ClusterImage
from logkernel.errors import KafkaError
from logkernel.requests.replication import Order
from logkernel.vocabulary import IsrProposal, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.controller.active import ActiveController
    from logkernel.broker.governance.leader_orders import LeaderOrders
    from logkernel.broker.received_metadata import ReceivedMetadata
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.requests.placement import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ElectLeadersRequest,
        ElectLeadersResponse,
    )

Forward = Callable[[int, Any, Callable[[Any], None]], None]
"""(node id, request, done): `done` is called once, later, with the response, or with None where none came."""


class ClusterEvents(Protocol):
    """What the rest of the broker does about news of the cluster."""

    def on_effects(self, effects: Effects) -> None:
        """Notify services, plugins and replicas. Logs were already created or deleted, or will be by order."""
        ...

    def on_deletion(self, topic: str) -> None:
        """A topic of a broker that stands alone was deleted: remove its logs."""
        ...

    def on_shard_role(self, name: TopicPartition) -> None:
        """In a cluster: the role of a partition changed, in which a service may keep its state."""
        ...


class Parts(NamedTuple):
    """The parts of the broker that its governance works on."""

    runtime: Runtime
    turn: Turn
    logs: LogManager
    metadata: MetadataManager
    replicas: ReplicaManager
    addresses: OwnAddresses
    door: BrokerDoor
    events: ClusterEvents


class Governance(Protocol):
    """See the module."""

    view: LiveClusterView
    """The cluster as services and handlers see it."""
    is_shared: bool
    """Whether it is one broker of a cluster: a service's shard is here while its partition is led here."""
    command_listeners: frozenset[str]
    """Listeners over which other brokers may command this one; empty where none may, and in-process."""

    # ------------------------------------------------------------ life

    def open(self) -> None:
        """Open the logs and the metadata, and lead what this broker leads without an order."""
        ...

    def join(self) -> None:
        """The listeners are open: be announced, and take orders."""
        ...

    def is_ready(self, brokers: int) -> bool:
        """Whether the broker knows of a controller and of so many brokers, itself included. Raises
        `DuplicateBrokerRegistration` where another one has its node id."""
        ...

    def leave(self, done: Callable[[], None]) -> None:
        """Have others lead, before a stop; `done` is called once."""
        ...

    def close(self) -> None:
        """Say goodbye."""
        ...

    def abandon(self) -> None:
        """Send no more requests and answers, as if killed."""
        ...

    # ------------------------------------------------------------ decisions

    @property
    def is_controller(self) -> bool:
        """Whether this broker decides about the cluster now."""
        ...

    @property
    def image(self) -> ClusterImage:
        """What the controller decides by. Raises `NotController` where another broker is that."""
        ...

    def commit(self, result: ControllerResult) -> Any:
        """Keep what the controller decided and do what it asks for; returns the response. Raises `NotController`, and
        `KafkaError` if the coordination cannot be reached."""
        ...

    def when_confirmed(self, work: Callable[[], None], timeout_ms: int) -> None:
        """Run `work` when this broker knows what was committed until now, or the time is up. Raises `NotController`."""
        ...

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Raises `NotController`."""
        ...

    def alter_reassignments(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        """Raises `NotController`."""
        ...

    # ------------------------------------------------------------ what this broker needs

    @property
    def forward(self) -> Forward | None:
        """Asks another broker; None where there is none."""
        ...

    def create_internal(self, name: str, partitions: int = -1) -> None:
        """Create the topic of a service, as it is declared. Raises `KafkaError`; in a cluster always
        `CoordinatorNotAvailable`, as the controller was asked for it."""
        ...

    def auto_create(self, name: str, spend: Spend) -> None:
        """Create a topic that a client asked for, and have it `spend` the partitions. Raises `KafkaError`; in a cluster
        always `LeaderNotAvailable`, as the controller was asked for it."""
        ...

    def when_known(self, work: Callable[[], None], timeout_ms: int) -> None:
        """Run `work` when this broker knows any broker of the cluster, or the time is up."""
        ...

    def knows_settings(
        self, topics: Iterable[str], again: Callable[[], None], refused: Callable[[KafkaError], None]
    ) -> bool:
        """Whether this broker knows the settings of these topics. If it does not, it reads them; one of the two is
        called later: `again` when it knows them, `refused` if that takes too long."""
        ...

    # ------------------------------------------------------------ a cluster's requests

    @property
    def active(self) -> ActiveController:
        """This broker as the controller of its cluster. Raises `NotController`, `ClusterAuthorizationFailed` where it
        stands alone."""
        ...

    @property
    def orders(self) -> LeaderOrders:
        """What takes LeaderAndIsr. Raises `ClusterAuthorizationFailed` where the broker stands alone."""
        ...

    def admit(self, order: Order, context: RequestContext) -> ReceivedMetadata:
        """Check an order, and return the metadata that it may change. Raises as `ControllerView.check_order`, and
        `ClusterAuthorizationFailed` where the broker stands alone."""
        ...

    # ------------------------------------------------------------ events

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        """As of `ReplicaEvents`."""
        ...

    def role_changed(self, name: TopicPartition) -> None:
        """As of `ReplicaEvents`."""
        ...

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        """As of `ReplicaEvents`."""
        ...

    def log_dir_failed(self) -> None:
        """A log directory of this broker failed."""
        ...


class Access(Protocol):
    """How a broker reaches its cluster."""

    @property
    def size(self) -> int | None:
        """The number of brokers that the cluster is planned to have; None if it is not known."""
        ...

    def govern(self, parts: Parts) -> Governance: ...
