"""Rules of a controller: its term, what it knows of brokers, and which of its orders count."""

from __future__ import annotations

from broken_rules import Mutants

from logkernel.attrs_lite import evolve
from logkernel.controller.state import State, ToDo
from logkernel.partition import follower
from logkernel.testing.simulation.protocol import broker, controller, coordination, replica

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant
def a_controller_writes_without_its_term(patch):
    """KAFKA-6082."""

    def commit(self, changes, term):
        self._store.commit(changes)

    patch.setattr(coordination.StoreSession, "commit_as_controller", commit)


@mutant
def a_write_without_an_answer_is_taken_for_failed(patch):
    """A controller that is unsure goes on with the image that it has."""
    before = controller.Controller._do

    def do(self, doing):
        if self.state.state is State.SUSPENDED and doing is ToDo.DROP:
            self.state.state = State.ACTIVE
            self.session.make_sure()
        else:
            before(self, doing)

    patch.setattr(controller.Controller, "_do", do)


@mutant
def an_order_for_an_earlier_life_is_obeyed(patch):
    """KIP-380, KAFKA-7235."""
    before = broker.Broker._fence

    def fence(self, request):
        return before(self, evolve(request, broker_epoch=1 << 40))

    patch.setattr(broker.Broker, "_fence", fence)


@mutant
def an_older_order_is_taken(patch):
    patch.setattr(replica.Replica, "leader_epoch", property(lambda self: -1))

    def on_leader(self, node, epoch):
        self.leader, self.leader_epoch = node, epoch
        return True

    patch.setattr(follower.Follower, "on_leader", on_leader)


@mutant
def a_broker_that_came_back_is_the_one_that_went(patch):
    """A controller that compares who is alive, and not their epochs."""

    def deal(self):
        if self.orders is None or self.session is None:
            return False
        try:
            self._known = dict(self.session.broker_epochs())
        except controller.KafkaStorageError:
            return False
        gone = [node for node in self.dealt if node not in self._known]
        if gone:
            return self._broker_gone(self.orders, gone[0], [node for node in self.dealt if node not in gone])
        came = [node for node in self._known if node not in self.dealt]
        for node, epoch in self._known.items():
            if node in self.dealt and self.dealt[node] != epoch:
                self.dealt[node] = epoch
                self.orders.broker_came(node, epoch)
        return bool(came) and self._broker_came(self.orders, came[0], self._known[came[0]])

    patch.setattr(controller.Controller, "_deal", deal)
