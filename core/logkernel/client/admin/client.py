"""The admin client for threads, and its asyncio twin: over TCP or an embedded kernel.

    with logkernel.connect("host:9092") as log, log.admin() as admin:
        admin.create_topics([NewTopic("orders", partitions=6)])
        print(admin.describe_topics("orders"))

An operation returns when it is done. It is retried after errors that may pass, until default.api.timeout.ms or the
limit of `within`. If an operation on several things fails for some, it raises the error of the first; the error's
`results` hold the result or error of each. Threads may share an admin client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from logkernel.client.blocking import BlockingRunner
from logkernel.kernel import Kernel


class _Blocking(PlanMethod[P, T]):
    """A plan as a method that returns when it is done."""

    @overload
    def __get__(self, instance: None, owner: type) -> _Blocking[P, T]: ...

    @overload
    def __get__(self, instance: Admin, owner: type) -> Callable[P, T]: ...

    def __get__(self, instance: Admin | None, owner: type) -> Any:
        if instance is None:
            return self

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return instance._runner.run(instance._operate(self.plan(*args, **kwargs)))

        call.__doc__, call.__name__ = self.plan.__doc__, self.plan.__name__
        return call


class Admin(AdminBase):
    """Administers a cluster. Create it with `admin()` of a log; use it as a context manager, or call `close`."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._runner = BlockingRunner(self, driver)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._runner.run_last(self._close())

    create_topics = _Blocking(topics.create_topics)
    delete_topics = _Blocking(topics.delete_topics)
    create_partitions = _Blocking(topics.create_partitions)
    delete_records = _Blocking(topics.delete_records)
    list_topics = _Blocking(topics.list_topics)
    describe_topics = _Blocking(topics.describe_topics)

    list_offsets = _Blocking(offsets.list_offsets)
    list_replica_offsets = _Blocking(offsets.list_replica_offsets)

    describe_configs = _Blocking(configs.describe_configs)
    alter_configs = _Blocking(configs.alter_configs)
    list_config_resources = _Blocking(configs.list_config_resources)

    list_groups = _Blocking(groups.list_groups)
    describe_groups = _Blocking(groups.describe_groups)
    delete_groups = _Blocking(groups.delete_groups)
    remove_members_from_group = _Blocking(groups.remove_members_from_group)

    list_consumer_group_offsets = _Blocking(group_offsets.list_consumer_group_offsets)
    alter_consumer_group_offsets = _Blocking(group_offsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = _Blocking(group_offsets.delete_consumer_group_offsets)
    list_share_group_offsets = _Blocking(group_offsets.list_share_group_offsets)
    alter_share_group_offsets = _Blocking(group_offsets.alter_share_group_offsets)
    delete_share_group_offsets = _Blocking(group_offsets.delete_share_group_offsets)

    describe_producers = _Blocking(transactions.describe_producers)
    list_transactions = _Blocking(transactions.list_transactions)
    describe_transactions = _Blocking(transactions.describe_transactions)
    abort_transaction = _Blocking(transactions.abort_transaction)
    fence_producers = _Blocking(transactions.fence_producers)
    find_hanging_transactions = _Blocking(transactions.find_hanging_transactions)

    elect_leaders = _Blocking(placement.elect_leaders)
    describe_log_dirs = _Blocking(placement.describe_log_dirs)
    alter_replica_log_dirs = _Blocking(placement.alter_replica_log_dirs)
    alter_partition_reassignments = _Blocking(placement.alter_partition_reassignments)
    list_partition_reassignments = _Blocking(placement.list_partition_reassignments)

    describe_cluster = _Blocking(cluster.describe_cluster)
    describe_metadata = _Blocking(cluster.describe_metadata)
    describe_features = _Blocking(cluster.describe_features)
    update_features = _Blocking(cluster.update_features)
    describe_quorum = _Blocking(cluster.describe_quorum)
    unregister_broker = _Blocking(cluster.unregister_broker)

    describe_acls = _Blocking(access.describe_acls)
    create_acls = _Blocking(access.create_acls)
    delete_acls = _Blocking(access.delete_acls)
    describe_user_scram_credentials = _Blocking(access.describe_user_scram_credentials)
    alter_user_scram_credentials = _Blocking(access.alter_user_scram_credentials)
    describe_client_quotas = _Blocking(access.describe_client_quotas)
    alter_client_quotas = _Blocking(access.alter_client_quotas)

    create_delegation_token = _Blocking(tokens.create_delegation_token)
    renew_delegation_token = _Blocking(tokens.renew_delegation_token)
    expire_delegation_token = _Blocking(tokens.expire_delegation_token)
    describe_delegation_token = _Blocking(tokens.describe_delegation_token)
