"""How a broker comes to its cluster: alone, or by a coordination that it shares with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from logkernel.broker.governance.standalone import Standalone
from logkernel.contracts import PeerTransport, SharedCoordination

if TYPE_CHECKING:
    from logkernel.broker.governance.governance import Governance, Parts


class Alone(NamedTuple):
    """The broker is its own controller."""

    size: int = 1

    def govern(self, parts: Parts) -> Governance:
        return Standalone(parts)


class ClusterAccess(NamedTuple):
    """How a broker reaches its cluster: the coordination, and the other brokers."""

    new_session: Callable[[], SharedCoordination]
    transport: PeerTransport | None = None
    """None: brokers reach one another over their listeners (`peer_channels`)."""
    size: int | None = None
    """The number of brokers that the cluster is planned to have; None if it is not known."""

    def govern(self, parts: Parts) -> Governance:
        from logkernel.broker.governance.cluster_member import ClusterMember  # a broker alone pays for none of it

        return ClusterMember(parts, self.new_session, self.transport)
