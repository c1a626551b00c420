"""The admin client for asyncio, used on the event loop that created it.

async with aio.connect("host:9092") as log, log.admin() as admin:
    await admin.create_topics([NewTopic("orders", partitions=6)])
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Self, overload

from logkernel.client.admin import (
    access,
    cluster,
    configs,
    group_offsets,
    groups,
    offsets,
    placement,
    tokens,
    topics,
    transactions,
)
from logkernel.client.admin.base import AdminBase, P, PlanMethod, T
from logkernel.client.awaiting import AwaitingRunner
from logkernel.kernel import Kernel


class _Awaited(PlanMethod[P, T]):
    """A plan as a method that is awaited."""

    @overload
    def __get__(self, instance: None, owner: type) -> _Awaited[P, T]: ...

    @overload
    def __get__(self, instance: AsyncAdmin, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: AsyncAdmin | None, owner: type) -> Any:
        if instance is None:
            return self

        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await instance._runner.run(instance._operate(self.plan(*args, **kwargs)))

        call.__doc__, call.__name__ = self.plan.__doc__, self.plan.__name__
        return call


class AsyncAdmin(AdminBase):
    """An `Admin` for asyncio: the same operations, awaited. Create it with `admin()` of a log of `logkernel.aio`."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._runner = AwaitingRunner(self, driver)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._runner.run(self._close())

    create_topics = _Awaited(topics.create_topics)
    delete_topics = _Awaited(topics.delete_topics)
    create_partitions = _Awaited(topics.create_partitions)
    delete_records = _Awaited(topics.delete_records)
    list_topics = _Awaited(topics.list_topics)
    describe_topics = _Awaited(topics.describe_topics)

    list_offsets = _Awaited(offsets.list_offsets)
    list_replica_offsets = _Awaited(offsets.list_replica_offsets)

    describe_configs = _Awaited(configs.describe_configs)
    alter_configs = _Awaited(configs.alter_configs)
    list_config_resources = _Awaited(configs.list_config_resources)

    list_groups = _Awaited(groups.list_groups)
    describe_groups = _Awaited(groups.describe_groups)
    delete_groups = _Awaited(groups.delete_groups)
    remove_members_from_group = _Awaited(groups.remove_members_from_group)

    list_consumer_group_offsets = _Awaited(group_offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = _Awaited(group_offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _Awaited(group_offsets.delete_consumer_group_offsets)
    list_share_group_offsets = _Awaited(group_offsets.list_share_group_offsets)
    alter_share_group_offsets = _Awaited(group_offsets.alter_share_group_offsets)
    delete_share_group_offsets = _Awaited(group_offsets.delete_share_group_offsets)

    describe_producers = _Awaited(transactions.describe_producers)
    list_transactions = _Awaited(transactions.list_transactions)
    describe_transactions = _Awaited(transactions.describe_transactions)
    abort_transaction = _Awaited(transactions.abort_transaction)
    fence_producers = _Awaited(transactions.fence_producers)
    find_hanging_transactions = _Awaited(transactions.find_hanging_transactions)

    elect_leaders = _Awaited(placement.elect_leaders)
    describe_log_dirs = _Awaited(placement.describe_log_dirs)
    alter_replica_log_dirs = _Awaited(placement.alter_replica_log_dirs)
    alter_partition_reassignments = _Awaited(placement.alter_partition_reassignments)
    list_partition_reassignments = _Awaited(placement.list_partition_reassignments)

    describe_cluster = _Awaited(cluster.describe_cluster)
    describe_metadata = _Awaited(cluster.describe_metadata)
    describe_features = _Awaited(cluster.describe_features)
    update_features = _Awaited(cluster.update_features)
    describe_quorum = _Awaited(cluster.describe_quorum)
    unregister_broker = _Awaited(cluster.unregister_broker)

    describe_acls = _Awaited(access.describe_acls)
    create_acls = _Awaited(access.create_acls)
    delete_acls = _Awaited(access.delete_acls)
    describe_user_scram_credentials = _Awaited(access.describe_user_scram_credentials)
    alter_user_scram_credentials = _Awaited(access.alter_user_scram_credentials)
    describe_client_quotas = _Awaited(access.describe_client_quotas)
    alter_client_quotas = _Awaited(access.alter_client_quotas)

    create_delegation_token = _Awaited(tokens.create_delegation_token)
    renew_delegation_token = _Awaited(tokens.renew_delegation_token)
    expire_delegation_token = _Awaited(tokens.expire_delegation_token)
    describe_delegation_token = _Awaited(tokens.describe_delegation_token)
