"""The control port of several brokers: their lives, the network between them, and who leads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from werkzeug.exceptions import NotFound
from werkzeug.routing import Map

from logkernel import __version__
from logkernel.errors import ConfigError, UnknownTopicOrPartition
from logkernel.testing.server.body import Fields
from logkernel.testing.server.control import MOST_PARTITION, MOST_WITHIN_S, WITHIN_S, Control, routes

if TYPE_CHECKING:
    from logkernel.testing.kafka.cluster import KafkaCluster


class ClusterControl(Control):
    """See `Control`."""

    routes: ClassVar[Map] = routes(
        ("GET", "/brokers", "brokers"),
        ("POST", "/brokers/<int:node>/stop", "stop"),
        ("POST", "/brokers/<int:node>/kill", "kill"),
        ("POST", "/brokers/<int:node>/start", "start"),
        ("POST", "/brokers/<int:node>/restart", "restart"),
        ("POST", "/brokers/<int:node>/pause", "pause"),
        ("POST", "/brokers/<int:node>/resume", "resume"),
        ("GET", "/brokers/<int:node>/disk", "disk"),
        ("PUT", "/brokers/<int:node>/disk", "set_disk"),
        ("POST", "/network/cut", "cut"),
        ("POST", "/network/heal", "heal"),
        ("GET", "/controller", "controller"),
        ("GET", "/topics/<topic>/partitions", "partitions"),
        ("GET", "/topics/<topic>/partitions/<int:partition>", "partition"),
        ("POST", "/topics/<topic>/partitions/<int:partition>/leader", "move_leader"),
        ("POST", "/wait/isr", "wait_isr"),
        ("POST", "/wait/leader", "wait_leader"),
    )
    stopped = "no broker runs; POST /brokers/1/start"
    elsewhere = (
        ("/broker/", "/disk"),
        "there are several brokers here: name one, as POST /brokers/1/kill or PUT /brokers/1/disk",
    )

    def __init__(self, kafka: KafkaCluster) -> None:
        super().__init__(kafka)
        self._cluster = kafka
        self._full: set[int] = set()

    @property
    def running(self) -> bool:
        return "running" in self._cluster.brokers.values()

    def health(self, given: Any) -> Any:
        Fields(given).end()
        return {
            "status": "running" if self.running else "stopped",
            "bootstrap_servers": self._cluster.bootstrap_servers if self.running else "",
            "brokers": self._cluster.brokers,
            "version": __version__,
            "pid": os.getpid(),
        }

    # ------------------------------------------------------------ brokers

    def brokers(self, given: Any) -> Any:
        Fields(given).end()
        return self._cluster.brokers

    def stop(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.stop)

    def kill(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.kill)

    def start(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.start)

    def restart(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.restart)

    def pause(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.pause)

    def resume(self, given: Any, node: int) -> Any:
        return self._live(given, node, self._cluster.resume)

    def _live(self, given: Any, node: int, turn: Callable[[int], None]) -> Any:
        Fields(given).end()
        self._check(node)
        with self._life:
            turn(node)
        return self._cluster.brokers

    def _check(self, node: int) -> None:
        there = self._cluster.brokers
        if node not in there:
            raise NotFound(f"there is no broker {node}; there are {', '.join(map(str, there))}")

    def disk(self, given: Any, node: int) -> Any:
        Fields(given).end()
        self._check(node)
        return {"full": node in self._full}

    def set_disk(self, given: Any, node: int) -> Any:
        fields = Fields(given)
        full = fields.flag("full")
        fields.end()
        self._check(node)
        self._cluster.fill_disk(node, full)
        (self._full.add if full else self._full.discard)(node)
        return {"full": full}

    # ------------------------------------------------------------ the network between them

    def cut(self, given: Any) -> Any:
        fields = Fields(given)
        one, other = (_nodes(name, fields.any(name)) for name in ("one", "other"))
        both_ways = fields.flag("both_ways", True)
        fields.end()
        self._cluster.cut(one, other, both_ways=both_ways)
        return {}

    def heal(self, given: Any) -> Any:
        Fields(given).end()
        self._cluster.heal()
        return self._cluster.brokers

    # ------------------------------------------------------------ who leads

    def controller(self, given: Any) -> Any:
        Fields(given).end()
        return {"controller": self._cluster.controller()}

    def partitions(self, given: Any, topic: str) -> Any:
        Fields(given).end()
        topics = self._cluster.topics
        if topic not in topics:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; create it first")
        return {number: self.partition({}, topic, number) for number in range(topics[topic])}

    def partition(self, given: Any, topic: str, partition: int) -> Any:
        Fields(given).end()
        return {
            "leader": self._cluster.leader(topic, partition),
            "isr": self._cluster.isr(topic, partition),
            "replicas": self._cluster.replicas(topic, partition),
        }

    def move_leader(self, given: Any, topic: str, partition: int) -> Any:
        fields = Fields(given)
        to = fields.number("to", 0, MOST_PARTITION, None)
        fields.end()
        return {"leader": self._cluster.move_leader(topic, partition, to=to)}

    def wait_isr(self, given: Any) -> Any:
        fields = Fields(given)
        topic, partition = fields.text("topic"), fields.number("partition", 0, MOST_PARTITION, 0)
        count, within = fields.number("count", 0, MOST_PARTITION), fields.amount("within_s", MOST_WITHIN_S, WITHIN_S)
        fields.end()
        self._cluster.wait_for_isr(topic, partition, count, within=within)
        return self.partition({}, topic, partition)

    def wait_leader(self, given: Any) -> Any:
        fields = Fields(given)
        topic, partition = fields.text("topic"), fields.number("partition", 0, MOST_PARTITION, 0)
        other_than = fields.number("other_than", 0, MOST_PARTITION, None)
        within = fields.amount("within_s", MOST_WITHIN_S, WITHIN_S)
        fields.end()
        return {"leader": self._cluster.wait_for_leader(topic, partition, other_than=other_than, within=within)}


def _nodes(name: str, given: Any) -> list[int]:
    if not isinstance(given, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in given):
        raise ConfigError(f"{name} is {given!r}; write a list of brokers, e.g. [1, 2]")
    return given
