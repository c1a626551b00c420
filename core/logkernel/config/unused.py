"""Kafka broker settings, of today and of older releases, that have no meaning here: accepted with a warning.

KRaft's quorum, Kerberos, thread pools, Java's metrics, tiered storage, quotas of replication, and services. A
running broker takes those that a running Kafka takes. A plugin that owns one of these names gives it a meaning, as the
built-in services do with theirs: these names are all that the core knows of a service that is blocked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from logkernel.config.definitions import PER_LISTENER, Setting
from logkernel.config.values import PASSWORD, STRING

OPEN_PREFIXES = ("config.providers.", "rsm.config.", "rlmm.config.")
"""Names that Kafka lets its own plugins complete."""

_NAMES = """
advertised.host.name advertised.port allow.everyone.if.no.acl.found alter.config.policy.class.name
alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds background.threads
broker.heartbeat.interval.ms broker.id.generation.enable config.providers
controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
controller.quorum.retry.backoff.ms controller.quorum.voters cordoned.log.dirs create.topic.policy.class.name
delete.records.purgatory.purge.interval.requests early.start.listeners
fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms
group.consumer.assignors group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
group.consumer.migration.policy group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
group.coordinator.new.enable group.coordinator.rebalance.protocols group.coordinator.threads
group.initial.rebalance.delay.ms group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
group.share.heartbeat.interval.ms group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
group.share.min.session.timeout.ms group.share.partition.max.record.locks group.share.persister.class.name
group.share.record.lock.duration.ms group.share.session.timeout.ms group.streams.assignment.interval.ms
group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
group.streams.max.standby.replicas group.streams.min.assignment.interval.ms group.streams.min.heartbeat.interval.ms
group.streams.min.session.timeout.ms group.streams.num.standby.replicas group.streams.session.timeout.ms host.name
initial.broker.registration.timeout.ms inter.broker.protocol.version internal.metadata.delete.delay.millis
internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes kafka.csv.metrics.dir
kafka.csv.metrics.reporter.enabled kafka.metrics.polling.interval.secs kafka.metrics.reporters
log.dir.failure.timeout.ms log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes
metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms num.io.threads num.network.threads
num.replica.alter.log.dirs.threads offset.metadata.max.bytes offsets.commit.required.acks offsets.commit.timeout.ms
offsets.load.buffer.size offsets.retention.check.interval.ms offsets.retention.minutes offsets.topic.compression.codec
offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret port principal.builder.class
process.roles producer.purgatory.purge.interval.requests quota.consumer.default quota.producer.default
remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size
remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
replica.lag.max.messages replication.quota.window.num replication.quota.window.size.seconds reserved.broker.max.id
sasl.client.callback.handler.class sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.class
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
security.providers server.max.startup.time.ms share.coordinator.append.linger.ms
share.coordinator.cached.buffer.max.bytes share.coordinator.cold.partition.snapshot.interval.ms
share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
share.coordinator.state.topic.num.partitions share.coordinator.state.topic.prune.interval.ms
share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes share.coordinator.threads
share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests ssl.allow.dn.changes
ssl.allow.san.changes ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm super.users telemetry.max.bytes transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.max.timeout.ms transaction.remove.expired.transaction.cleanup.interval.ms
transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.num.partitions
transaction.state.log.replication.factor transaction.state.log.segment.bytes transaction.two.phase.commit.enable
transactional.id.expiration.ms unclean.leader.election.interval.ms unstable.api.versions.enable
unstable.feature.versions.enable zookeeper.clientCnxnSocket zookeeper.connect zookeeper.connection.timeout.ms
zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable zookeeper.session.timeout.ms zookeeper.set.acl
zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable zookeeper.ssl.enabled.protocols
zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password
zookeeper.ssl.keystore.type zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type zookeeper.sync.time.ms
"""


_DYNAMIC = """
background.threads config.providers follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms
group.coordinator.cached.buffer.max.bytes group.share.assignment.interval.ms group.streams.assignment.interval.ms
log.local.retention.bytes log.local.retention.ms metric.reporters num.io.threads num.network.threads
principal.builder.class remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
remote.log.manager.copy.max.bytes.per.second remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.follower.thread.pool.size remote.log.reader.threads
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter share.coordinator.cached.buffer.max.bytes
ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm
"""
"""Those that a running Apache Kafka 4.3 takes, by its own table of update modes; without `cordoned.log.dirs`, as
whoever sets that wants it heeded."""

_SECRETS = (
    "password", "passphrase", "secret", "secret.key", "jaas.config", "keystore.key", "certificate.chain",
    "certificates",
)  # fmt: skip
"""Ends of names whose values are not to be shown."""


@cache
def names() -> frozenset[str]:
    return frozenset(_NAMES.split())


def is_unused(name: str) -> bool:
    """Whether it is one of these, or a listener's own."""
    return any(one in names() or one.startswith(OPEN_PREFIXES) for one in (name, *of_listener(name)))


def of_listener(name: str) -> Iterator[str]:
    """What `listener.name.NAME.SETTING` and `listener.name.NAME.MECHANISM.SETTING` may have as SETTING. NAME may have
    dots."""
    if name.startswith(PER_LISTENER):
        parts = name.removeprefix(PER_LISTENER).split(".")
        yield from (".".join(parts[behind:]) for behind in range(1, len(parts)))


@cache
def _dynamic() -> frozenset[str]:
    return frozenset(_DYNAMIC.split())


def is_dynamic(name: str) -> bool:
    """Whether a running broker takes it too, without effect."""
    return name in _dynamic() or name.startswith(PER_LISTENER)


def setting(name: str) -> Setting:
    """To describe it, where somebody gave it."""
    secret = name.endswith(_SECRETS)
    return Setting(
        name, PASSWORD if secret else STRING, None, None, "A setting of Apache Kafka's that has no effect here.",
        dynamic=is_dynamic(name), sensitive=secret,
    )  # fmt: skip


def warning(where: str, name: str) -> str:
    return f"{where}: {name} is a Kafka setting that has no effect here"
