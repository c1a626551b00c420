"""Repartition and changelog topics, which the broker makes with the settings that the topology asks for.

They are made in the name of the member whose heartbeat finds them missing: none, if it may not create them all. A
topic that is being made is not asked for again; one that could not be made, only after two heartbeats, and members are
told why meanwhile. All of it is soft: a later heartbeat asks again.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from logkernel.errors import TopicAlreadyExists, error_for
from logkernel.requests.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from logkernel.vocabulary import AclOperation

from ..coordinator import GroupCoordinator
from . import progress
from .configured import MAX_TOLD, Configured, Problem, listed
from .making import Making
from .topology import InternalTopic

TIMEOUT_MS: Final = 30_000
BROKERS_DEFAULT: Final = -1


def make_missing(coordinator: GroupCoordinator, group_id: str, configured: Configured, problem: Problem) -> Problem:
    """Ask for what is missing and not asked for; returns the problem, with why some could not be made. Raises
    `KafkaError` if the authorizer fails."""
    missing = [topic.name for topic in configured.missing]
    allowed = coordinator.cluster.allowed(coordinator.sender, AclOperation.CREATE, missing) if missing else ()
    if len(allowed) < len(missing):
        refused = listed([name for name in missing if name not in allowed])
        return evolve(problem, detail=f"{problem.detail}; Unauthorized to CREATE on topics {refused}.")
    making = coordinator.making_topics
    for name in [name for name, (_, until_ms) in making.failed.items() if until_ms <= coordinator.mono_ms]:
        del making.failed[name]
    known = making.asked | making.failed.keys()
    wanted = [topic for topic in configured.missing if topic.name not in known]
    if wanted:
        making.asked.update(topic.name for topic in wanted)
        request = CreateTopicsRequest([_creatable(topic) for topic in wanted], TIMEOUT_MS)
        coordinator.out.sends.append((Making(group_id, tuple(topic.name for topic in wanted)), request))
    faults = [
        f"{topic.name} ({making.failed[topic.name][0]})" for topic in configured.missing if topic.name in making.failed
    ]
    if not faults:
        return problem
    told = ", ".join(faults[:MAX_TOLD])
    more = f" and {len(faults) - MAX_TOLD} more" if len(faults) > MAX_TOLD else ""
    return evolve(problem, detail=f"{problem.detail}; Creation failed: {told}{more}.")


def _creatable(topic: InternalTopic) -> CreatableTopic:
    configs = [CreatableTopicConfig(name, value) for name, value in topic.configs]
    return CreatableTopic(topic.name, topic.partitions, topic.replication_factor or BROKERS_DEFAULT, configs=configs)


def on_response(coordinator: GroupCoordinator, asked: Making, response: CreateTopicsResponse) -> None:
    """Topics were made, or could not be. One that somebody else made meanwhile is there, as it should be."""
    making = coordinator.making_topics
    making.asked.difference_update(asked.names)
    until_ms = coordinator.mono_ms + 2 * progress.own_int(coordinator, asked.group_id, "heartbeat.interval.ms")
    for row in response.topics:
        if row.error_code not in (0, TopicAlreadyExists.code):
            making.failed[row.name] = (row.error_message or str(error_for(row.error_code)), until_ms)
