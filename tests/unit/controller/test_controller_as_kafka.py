"""The controller against Apache Kafka 4.3.1: a recorded conversation of one admin with one fresh broker.

Each step is [operation, arguments…, what Kafka answered]; steps build on one another. CreateTopics answers are
[name, error, partitions, replication factor], others [name, error]; describes are
[error, [[name, value, source, type, read only, sensitive, [[synonym, value, source]…]]…]].
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import ClusterImage
from logkernel.requests import configs as c
from logkernel.requests import topics as t

STEPS: list[list[Any]] = json.loads(Path(__file__).with_name("kafka-4.3.1-admin.json").read_text())

DELIBERATE = {
    "c_d": "Kafka lets two names collide within one request",
    '["retention.ms", 9, "1"]': "an unknown operation is INVALID_REQUEST here, UNKNOWN_SERVER_ERROR there",
    "nope.nope": "a broker setting that nobody knows is refused here",
}


class Bench:
    """A broker's controller with its image, stepped as a shell would."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        ids = count(1)
        self.controller = Controller(BrokerConfig.load(), 1, lambda: UUID(int=next(ids)))

    def run(self, result: ControllerResult) -> Any:
        self.image.apply_all(result.changes)
        if result.effects.brokers_configured:
            self.controller.config = self.controller.dynamic_config(self.image)
        return result.response

    def create(self, rows: list[Any], validate: bool = False) -> list[Any]:
        request = t.CreateTopicsRequest(
            topics=[
                t.CreatableTopic(
                    name,
                    partitions,
                    factor,
                    [t.CreatableReplicaAssignment(*pair) for pair in assignment or []],
                    [t.CreatableTopicConfig(*pair) for pair in own.items()],
                )
                for name, partitions, factor, assignment, own in rows
            ],
            validate_only=validate,
        )
        response = self.run(self.controller.create_topics(request, self.image))
        return sorted([row.name, row.error_code, row.num_partitions, row.replication_factor] for row in response.topics)

    def delete(self, names: list[str], ids: tuple[str, ...] = ()) -> list[Any]:
        states = [t.DeleteTopicState(name) for name in names] + [t.DeleteTopicState(None, UUID(one)) for one in ids]
        response = self.run(self.controller.delete_topics(t.DeleteTopicsRequest(topics=states), self.image))
        return sorted([row.name or "", row.error_code] for row in response.responses)

    def grow(self, rows: list[Any], validate: bool = False) -> list[Any]:
        request = t.CreatePartitionsRequest(
            topics=[
                t.CreatePartitionsTopic(
                    name,
                    number,
                    None if given is None else [t.CreatePartitionsAssignment(one) for one in given],
                )
                for name, number, given in rows
            ],
            validate_only=validate,
        )
        response = self.run(self.controller.create_partitions(request, self.image))
        return sorted([row.name, row.error_code] for row in response.results)

    def alter(self, rows: list[Any], validate: bool = False) -> list[Any]:
        resources = [
            c.AlterConfigsResource(kind, name, [c.AlterableConfig(*pair) for pair in own.items()])
            for kind, name, own in rows
        ]
        request = c.AlterConfigsRequest(resources, validate)
        response = self.run(self.controller.alter_configs(request, self.image))
        return sorted([row.resource_name, row.error_code] for row in response.responses)

    def incremental(self, rows: list[Any], validate: bool = False) -> list[Any]:
        one = c.IncrementalAlterConfigsAlterableConfig
        resources = [
            c.IncrementalAlterConfigsAlterConfigsResource(kind, name, [one(*row) for row in own])
            for kind, name, own in rows
        ]
        request = c.IncrementalAlterConfigsRequest(resources, validate)
        response = self.run(self.controller.incremental_alter_configs(request, self.image))
        return sorted([row.resource_name, row.error_code] for row in response.responses)

    def describe(self, kind: int, name: str, keys: list[str] | None) -> list[Any]:
        request = c.DescribeConfigsRequest([c.DescribeConfigsResource(kind, name, keys)], True, True)
        (row,) = self.controller.describe_configs(request, self.image).results
        assert all(one.documentation for one in row.configs)
        return [
            row.error_code,
            sorted(
                [
                    one.name,
                    one.value,
                    one.config_source,
                    one.config_type,
                    one.read_only,
                    one.is_sensitive,
                    [[place.name, place.value, place.source] for place in one.synonyms],
                ]
                for one in row.configs
            ),
        ]


def comparable(step: list[Any], answer: Any) -> Any:
    """Without what only one side has: own settings, tiered storage's synonyms, and KRaft's kept min.insync.replicas."""
    if step[0] != "describe":
        return answer
    skip = ("partitioner", "election", "local.retention.", "min.insync.replicas")
    return [answer[0], [row for row in answer[1] if not row[0].startswith(skip)]]


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    bench = Bench()
    return [getattr(bench, name)(*arguments) for name, *arguments, _ in STEPS]


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_step_is_answered_as_kafka_answers(answers: list[Any], number: int) -> None:
    *step, expected = STEPS[number]
    if any(mark in json.dumps(step) for mark in DELIBERATE):
        assert answers[number] != expected
        return
    assert comparable(step, answers[number]) == comparable(step, expected)
