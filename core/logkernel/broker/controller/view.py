"""The controller as this broker knows it, and the check of orders by epochs and by the connection they come over."""

from __future__ import annotations

from typing import Final

from logkernel.broker.controller.newest_connections import NewestConnections
from logkernel.contracts import RequestContext
from logkernel.controller.image import NO_LEADER
from logkernel.controller.state import ControllerState
from logkernel.errors import NotController, StaleBrokerEpoch, StaleControllerEpoch
from logkernel.requests.replication import Order

NO_EPOCH: Final = -1


class ControllerView:
    """See the module. Every broker of a cluster has one."""

    def __init__(self, node_id: int, state: ControllerState) -> None:
        self._node_id = node_id
        self._state = state
        self._ordered_epoch = 0
        """The controller epoch of the latest obeyed order."""
        self._connections = NewestConnections()
        self.broker_epoch = NO_EPOCH
        """This broker's epoch, set by `ControllerElection` at its registration."""

    @property
    def controller_id(self) -> int:
        """Node id of the controller, -1 for none."""
        found = self._state.controller_id
        return NO_LEADER if found is None else found

    @property
    def controller_epoch(self) -> int:
        """The latest controller epoch that this broker knows, from the coordination or an order."""
        return max(self._state.known_term, self._ordered_epoch)

    def check_order(self, order: Order, context: RequestContext) -> None:
        """Check whether to obey an order. Raises `StaleBrokerEpoch` if it was sent to an earlier incarnation of this
        broker, `StaleControllerEpoch` if it is from a deposed controller, `NetworkException` if it outlived its
        connection and arrives after what its controller sent over the next one."""
        broker_epoch, controller_epoch = order.broker_epoch, order.controller_epoch
        if broker_epoch < self.broker_epoch:
            raise StaleBrokerEpoch(f"this broker's epoch is {self.broker_epoch}, not {broker_epoch}")
        if controller_epoch < self.controller_epoch:
            raise StaleControllerEpoch(f"the controller's epoch is {self.controller_epoch}, not {controller_epoch}")
        self._connections.check(order.controller_id, context.listener, context.connection_id)
        self._ordered_epoch = controller_epoch

    def not_controller(self) -> NotController:
        """The error of a request that only the controller answers."""
        return NotController(f"broker {self._node_id} is not the controller; ask broker {self.controller_id}")
