"""A broker whose certificate is wrong, among brokers that ask one another for certificates: the others go on, nothing
is lost, both sides say what is wrong in few lines, and a mended file is enough to have it back."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic

import authorities
import pytest
from authorities import Certified
from issued_certificates import WRONG, issued
from recorded_writes import Recorded

from logkernel.broker import peer_channels
from logkernel.cluster.cluster import Cluster

LISTENERS = "IN://127.0.0.1:0,OUT://127.0.0.1:0"
PLACES = dict.fromkeys((1, 2, 3), LISTENERS)
RULE = r"RULE:^.*CN=([a-z]+).*$/$1/,DEFAULT"


class Brokers:
    """A cluster of three, each with a certificate in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ca.pem").write_text(authorities.ca_pem())
        for node in PLACES:
            self.show(node, issued("broker"))
        self._configure(1)
        self.cluster = Cluster(3, listen=PLACES, over_sockets=True, config=str(folder / "server.properties"))

    def show(self, node: int, certificate: Certified) -> None:
        """From its next connection on."""
        new = self.folder / "new.pem"
        new.write_text(certificate.key + certificate.chain)
        new.replace(self.folder / f"{node}.pem")

    def _configure(self, node: int) -> None:
        tls = {
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.folder / f"{node}.pem"),
            "ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem"),
            "ssl.client.auth": "required", "ssl.principal.mapping.rules": RULE,
        }  # fmt: skip
        given = {f"listener.name.in.{name}": value for name, value in tls.items()} | {
            "listeners": LISTENERS,
            "listener.security.protocol.map": "IN:SSL,OUT:PLAINTEXT",
            "inter.broker.listener.name": "IN",
            "authorizer.class.name": "standard",
            "super.users": "User:broker;User:ANONYMOUS",
            "offsets.topic.num.partitions": "1",
            "replica.lag.time.max.ms": "2000",
        }
        text = "".join(f"{name}={value}\n" for name, value in given.items())
        (self.folder / "server.properties").write_text(text)

    def restart(self, node: int) -> None:
        self.cluster.stop(node)
        self.start(node)

    def start(self, node: int) -> None:
        self._configure(node)
        self.cluster.start(node)


@contextmanager
def written(folder: Path) -> Iterator[tuple[Brokers, Recorded]]:
    """Brokers, of which any two are enough for a writer. The controller, which does not lead, is the next to lead."""
    brokers = Brokers(folder)
    with brokers.cluster as cluster:
        controller = cluster.controller()
        assert controller is not None
        leader, last = (node for node in PLACES if node != controller)
        cluster.create_topic("orders", 1, assignment={0: (leader, controller, last)}, min_insync_replicas=2)
        cluster.wait_for_isr("orders", 0, 3)
        with Recorded(cluster, "orders") as writer:
            writer.wait_for_more()
            yield brokers, writer
            cluster.wait_for_isr("orders", 0, 3)
            writer.wait_for_more()
        writer.check(cluster)
        assert not writer.failed


class Said:
    """What brokers logged since it was made."""

    def __init__(self, caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]) -> None:
        self._caplog, self._eventually = caplog, eventually
        caplog.clear()

    def lines(self, pattern: str) -> list[str]:
        return [text for text in self._caplog.messages if re.search(pattern, text)]

    def wait(self, *patterns: str) -> None:
        for pattern in patterns:
            self._eventually(lambda pattern=pattern: self.lines(pattern), 60, f"a broker says: {pattern}")


def follower(cluster: Cluster) -> int:
    """Who neither leads nor controls."""
    return next(node for node in (1, 2, 3) if node not in (cluster.leader("orders"), cluster.controller()))


AT_THE_PEER = r"broker \d cannot be reached over IN: .*"
AT_THE_LISTENER = r"connection refused peer=\S+ listener=IN: .*"
TRUST = "unable to get local issuer certificate; put the CA of the broker into ssl.truststore.location"
USAGE = "certificate purpose; issue one whose extended key usage has"
SAID: Mapping[str, tuple[str, str]] = {
    "expired": (
        AT_THE_PEER + "certificate has expired; renew it",
        AT_THE_LISTENER + "certificate expired.; renew your certificate",
    ),
    "another authority": (
        AT_THE_PEER + TRUST,
        AT_THE_LISTENER + "unknown ca.; have it trust the CA of your certificate",
    ),
    "another host": (
        AT_THE_PEER + "IP address mismatch.*; connect by a name in it",
        AT_THE_LISTENER + "or use one that it trusts, for the host that it connects to",
    ),
    "not for clients": (
        AT_THE_PEER + "unsupported certificate.; use a certificate whose extended key usage has clientAuth",
        AT_THE_LISTENER + USAGE + " clientAuth",
    ),
    "not for servers": (
        AT_THE_PEER + USAGE + " serverAuth",
        AT_THE_LISTENER + "unsupported certificate.; use a certificate whose extended key usage has serverAuth",
    ),
}
"""What is wrong → what is said at either end of the connection that fails."""


@pytest.mark.parametrize(
    "wrong", [wrong if wrong == "expired" else pytest.param(wrong, marks=pytest.mark.long) for wrong in WRONG]
)
def test_a_follower_with_a_wrong_certificate_is_told_of_and_comes_back(
    wrong: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]
) -> None:
    """The broker that a TLS client did not trust was not told so, and its log had nothing."""
    with caplog.at_level(logging.INFO), written(tmp_path) as (brokers, writer):
        node = follower(brokers.cluster)
        brokers.cluster.stop(node)
        brokers.show(node, WRONG[wrong]())
        said = Said(caplog, eventually)
        brokers.start(node)
        said.wait(*SAID[wrong])
        writer.wait_for_more(200)
        assert node not in brokers.cluster.isr("orders")
        for pattern in (AT_THE_PEER, AT_THE_LISTENER):
            assert len(said.lines(pattern)) <= 3, "a line for each other broker, and one more"
        brokers.show(node, issued("broker"))


def test_a_follower_whose_certificate_is_about_another_says_that_it_may_not_fetch(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asked its leader again at once, and its log had nothing; and its connection stood when the file was mended, so
    that it had to be restarted."""
    monkeypatch.setattr(peer_channels, "RENEW_MS", 1_000)
    with caplog.at_level(logging.INFO), written(tmp_path) as (brokers, writer):
        node = follower(brokers.cluster)
        brokers.cluster.stop(node)
        brokers.show(node, issued("ann"))
        said = Said(caplog, eventually)
        brokers.start(node)
        said.wait(
            "refused: principal=User:ann operation=CLUSTER_ACTION .* request=Fetch",
            "all fetches refused: leader=. times=4; let the principal",
        )
        writer.wait_for_more(200)
        assert node not in brokers.cluster.isr("orders")
        assert len(said.lines("fetches refused")) < 10
        brokers.show(node, issued("broker"))


@pytest.mark.long
def test_a_controller_with_a_wrong_certificate_gets_its_brokers_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]
) -> None:
    """Those that it has stay; one that starts anew waits for its orders until the certificate is renewed."""
    with caplog.at_level(logging.INFO), written(tmp_path) as (brokers, writer):
        cluster = brokers.cluster
        for node in (1, 2, 3):
            brokers.restart(node)
            cluster.wait_for_isr("orders", 0, 3)
        controller, node = cluster.controller(), follower(cluster)
        assert controller is not None
        brokers.show(controller, issued("broker", by="others"))
        said = Said(caplog, eventually)
        brokers.restart(node)
        said.wait(
            AT_THE_LISTENER + "the certificate of the client is not trusted",
            AT_THE_PEER + "unknown ca",
            f"the broker waits for the first one: controller={controller}",
        )
        writer.wait_for_more(200)
        assert cluster.controller() == controller
        assert len(said.lines(AT_THE_PEER)) <= 3
        assert len(said.lines(AT_THE_LISTENER)) <= 3
        brokers.show(controller, issued("broker"))


@pytest.mark.long
def test_a_certificate_that_ends_while_its_broker_follows_is_renewed_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]
) -> None:
    """Connections that stand go on; the next one fails, until the file has another certificate."""
    with caplog.at_level(logging.INFO), written(tmp_path) as (brokers, writer):
        cluster = brokers.cluster
        node, holds = follower(cluster), timedelta(seconds=20)
        cluster.stop(node)
        brokers.show(node, issued("broker", ends=holds))
        ends_s = monotonic() + holds.total_seconds()
        brokers.start(node)
        cluster.wait_for_isr("orders", 0, 3)
        while monotonic() <= ends_s + 1:
            writer.wait_for_more()
        assert sorted(cluster.isr("orders")) == [1, 2, 3]
        said = Said(caplog, eventually)
        leader = cluster.leader("orders")
        assert leader is not None
        brokers.restart(leader)
        expired = "certificate (has )?expired.*; renew"
        said.wait(AT_THE_PEER + expired, AT_THE_LISTENER + expired)
        writer.wait_for_more(200)
        brokers.show(node, issued("broker"))
