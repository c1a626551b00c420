"""`logkernel test-server` as a program in another language uses it: a process, a line of JSON, and HTTP."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from click.testing import CliRunner
from control_port import STARTS_S, Server

from logkernel.cli.app import app
from logkernel.errors import ConfigError
from logkernel.testing import Kafka


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    server = Server("--topic", "three=3", "--set", "num.partitions=2")
    yield server
    server.end()


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def begin(*arguments: str, **given: Any) -> Server:
        started.append(Server(*arguments, **given))
        return started[-1]

    yield begin
    for server in started:
        server.end()


def produced(server: Server, topic: str, value: bytes, **settings: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "client.id": "shop", **settings})
    producer.produce(topic, value, key=b"ann")
    assert producer.flush(10) == 0


# ---------------------------------------------------------------- the calls


def test_it_says_where_it_is(shared: Server) -> None:
    assert shared.ready.keys() == {"bootstrap_servers", "control", "listen", "pid", "version"}
    assert shared.ready["pid"] == shared.process.pid
    health = shared.call("GET", "/health")
    assert (health["status"], health["bootstrap_servers"]) == ("running", shared.bootstrap)


def test_topics_are_made_and_deleted(shared: Server) -> None:
    assert shared.call("GET", "/topics")["three"] == 3
    made = shared.call("POST", "/topics", {"one": 1, "kept": {"partitions": 4, "cleanup.policy": "compact"}})
    assert (made["one"], made["kept"]) == (1, 4)
    assert shared.call("POST", "/topics", ["two"])["two"] == 2
    assert shared.answer("POST", "/topics", ["two"])[0] == 409
    shared.call("DELETE", "/topics/two")
    status, said = shared.answer("DELETE", "/topics/two")
    assert (status, said["error"]) == (404, "UnknownTopicOrPartition")


def test_records_are_written_and_read(shared: Server) -> None:
    shared.call("POST", "/topics", {"read": 1})
    first = shared.call("POST", "/topics/read/records", {"value": {"id": 7}, "key": "ann", "headers": {"h": "1"}})
    assert (first["partition"], first["offset"]) == (0, 0)
    rows = [{"value": None}, {"value": {"$base64": "/w=="}, "timestamp_ms": 5}]
    assert [row["offset"] for row in shared.call("POST", "/topics/read/records", rows)] == [1, 2]

    found = shared.call("GET", "/topics/read/records")
    assert found["more"] is False
    assert [row["value"] for row in found["records"]] == ['{"id":7}', None, {"$base64": "/w=="}]
    assert (found["records"][0]["key"], found["records"][0]["headers"]) == ("ann", [["h", "1"]])
    schema = {"$schema": "s", "type": {"$ref": "r"}}
    shared.call("POST", "/topics/schemas/records", {"value": {"$json": schema}})
    shared.call("POST", "/assert-produced", {"topic": "schemas", "value": {"$json": schema}})
    shared.call(
        "POST", "/assert-produced", {"topic": "schemas", "value": {"$containing": {"type": {"$json": {"$ref": "r"}}}}}
    )
    part = shared.call("GET", "/topics/read/records?partition=0&offset=1&limit=1")
    assert ([row["offset"] for row in part["records"]], part["more"]) == ([1], True)
    assert shared.call("GET", "/topics/read/offsets") == {"0": {"start": 0, "end": 3}}


def test_records_and_groups_are_waited_for(shared: Server) -> None:
    shared.call("POST", "/topics", {"waited": 1})
    produced(shared, "waited", b'{"id": 7, "tags": ["a", "bc"]}')
    wanted = {"topic": "waited", "key": "ann", "value": {"$containing": {"tags": ["a", {"$regex": "^b"}]}}}
    assert shared.call("POST", "/assert-produced", {**wanted, "within_s": 5})["offset"] == 0
    status, said = shared.answer("POST", "/assert-produced", {"topic": "waited", "value": {"id": 8, "tags": []}})
    assert (status, said["error"]) == (409, "AssertionError")
    assert "value.id: expected 8, found 7" in said["message"]

    shared.call("POST", "/wait/offset", {"topic": "waited", "offset": 1})
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": shared.bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["waited"])
    assert consumer.poll(10) is not None
    assert shared.call("POST", "/wait/group", {"group": "billing", "members": 1, "state": "Stable"})["id"] == "billing"
    consumer.commit(asynchronous=False)
    shared.call("POST", "/wait/commit", {"group": "billing", "topic": "waited", "offset": 1})
    consumer.close()
    late = {"group": "billing", "topic": "waited", "offset": 2, "within_s": 0}
    assert "has committed 1 of waited-0, not 2" in shared.answer("POST", "/wait/commit", late)[1]["message"]


def test_requests_are_shown_page_by_page(shared: Server) -> None:
    shared.call("DELETE", "/requests")
    produced(shared, "asked", b"1")
    (request,) = shared.call("GET", "/requests?api=Produce&client_id=shop")["requests"]
    assert (request["fields"]["acks"], request["fields"]["topic_data"][0]["name"]) == (-1, "asked")
    first = shared.call("GET", "/requests?limit=1")
    rest = shared.call("GET", f"/requests?after={first['next']}")
    numbers = [row["number"] for row in [*first["requests"], *rest["requests"]]]
    assert numbers == list(range(numbers[0], rest["next"]))
    assert first["more"]
    shared.call("DELETE", "/requests")
    assert shared.call("GET", "/requests?api=Produce")["requests"] == []
    status, said = shared.answer("GET", "/requests?api=Prodcue")
    assert (status, said["message"]) == (400, "there is no API 'Prodcue'; did you mean 'Produce'?")


def test_time_is_moved(shared: Server) -> None:
    shared.call("POST", "/topics", {"old": {"partitions": 1, "retention.ms": 86_400_000}, "keys": KEYS})
    shared.call("POST", "/topics/old/records", {"value": "1"})
    before = shared.call("GET", "/clock")["wall_ms"]
    assert shared.call("POST", "/clock/advance", {"days": 2})["wall_ms"] >= before + 2 * 86_400_000
    assert shared.call("GET", "/topics/old/records")["records"] == []
    shared.call("POST", "/topics/keys/records", [{"key": "k", "value": "1"}, {"key": "k", "value": "2"}])
    shared.call("POST", "/compact", {"topic": "keys"})
    shared.call("POST", "/retention")
    assert [row["value"] for row in shared.call("GET", "/topics/keys/records")["records"]] == ["2"]


KEYS = {"partitions": 1, "cleanup.policy": "compact"}


def test_faults_strike_until_they_are_removed(shared: Server) -> None:
    row = {"error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce", "client_id": {"$regex": "^sh"}, "times": 1}
    fault = shared.call("POST", "/faults", row)
    produced(shared, "struck", b"1")
    (found,) = shared.call("GET", "/faults")
    assert (found["id"], found["struck"], found["active"]) == (fault["id"], 1, True)
    assert shared.call("DELETE", f"/faults/{fault['id']}")["active"] is False
    assert len(shared.call("POST", "/faults", [{"delay": 1, "times": 2}, {"close": True, "skip": 5}])) == 2
    shared.call("DELETE", "/faults")
    assert shared.call("GET", "/faults") == []


def test_a_broker_is_ended_and_started_behind_its_port(start: Callable[..., Server]) -> None:
    server = start("--topic", "orders")
    server.call("POST", "/topics/orders/records", {"value": "set up"})
    server.call("PUT", "/snapshots/first")
    server.call("POST", "/topics/orders/records", {"value": "later"})
    assert server.call("POST", "/broker/kill")["status"] == "stopped"
    assert server.answer("GET", "/topics") == (
        503,
        {"error": "LogkernelError", "message": "the broker is stopped; POST /broker/start"},
    )
    assert server.call("POST", "/broker/start")["bootstrap_servers"] == server.bootstrap
    assert server.answer("POST", "/broker/start")[0] == 400
    assert len(server.call("GET", "/topics/orders/records")["records"]) == 2
    produced(server, "other", b"1")
    server.call("POST", "/snapshots/first/restore")
    assert server.call("GET", "/requests?api=Produce")["requests"] == []
    assert len(server.call("GET", "/topics/orders/records")["records"]) == 1
    assert server.call("GET", "/snapshots") == ["first"]
    server.call("DELETE", "/snapshots/first")
    assert server.answer("POST", "/snapshots/first/restore")[0] == 404
    assert server.call("POST", "/broker/stop")["status"] == "stopped"
    server.call("POST", "/broker/start")
    server.call("POST", "/broker/kill")
    assert server.answer("PUT", "/snapshots/second")[0] == 503
    server.call("POST", "/broker/start")
    server.call("PUT", "/disk", {"full": True})
    assert server.call("GET", "/disk") == {"full": True}
    assert server.answer("POST", "/topics/orders/records", {"value": "no room"})[0] == 409
    server.call("POST", "/broker/restart")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/nowhere", None, 404, "there is no /nowhere"),
        ("PATCH", "/topics", None, 405, "use GET or POST"),
        ("POST", "/topics", b"{", 400, "the body is not JSON"),
        ("POST", "/topics", {"a": "b"}, 400, "topic a: 'b' is no number of partitions; write names, "),
        ("POST", "/topics", [{"a": 1}], 400, "{'a': 1} is no name of a topic; write names, "),
        ("POST", "/topics", {"a": {"partition": 3}}, 409, "has no setting 'partition'; did you mean 'partitions'?"),
        ("POST", "/topics?a=1", None, 400, "a POST has no query (?a=1); send JSON in the body"),
        ("POST", "/topics/a/records", {"valeu": 1}, 400, "there is no field 'valeu'"),
        ("POST", "/topics/a/records", {"value": {"$base64": "?"}}, 400, "is not base64"),
        (
            "POST",
            "/topics/a/records",
            {"value": {"$bas64": "/w=="}},
            400,
            "$bas64 means nothing here; did you mean $base6",
        ),
        ("POST", "/topics/a/records", {"value": {"$json": 1}}, 400, "$json is 1; write an object or a list"),
        ("POST", "/topics/three/records", {"partition": "0"}, 400, "partition is '0'; write a whole number from 0 to "),
        ("GET", "/topics/zzz/records", None, 404, "there is no topic 'zzz'; create it, or have a client write to it"),
        ("GET", "/topics/none/records?partition=0", None, 404, "none"),
        ("POST", "/topics/a/records", {"value": "\ud800"}, 400, "surrogates"),
        ("GET", "/topics/three/records?limit=0", None, 400, "limit is 0; write a whole number from 1 to 10000"),
        ("GET", "/topics/three/records?offset=1", None, 400, "say which one by partition="),
        ("GET", "/topics/three/records?partition=9", None, 404, "9"),
        ("GET", "/topics/none/offsets", None, 404, "there is no topic 'none'"),
        ("POST", "/assert-produced", {}, 400, "topic is missing"),
        ("POST", "/assert-produced", b'{"topic": "t", "value": %s1%s}' % (b"[" * 900, b"]" * 900), 400, "too deeply"),
        ("POST", "/assert-produced", {"topic": "t", "within_s": 601}, 400, "a number from 0 to 600"),
        ("POST", "/assert-produced", {"topic": "t", "value": {"$regex": "("}}, 400, "is no pattern"),
        ("POST", "/assert-produced", {"topic": "t", "value": [{"$contains": 1}]}, 400, "did you mean $containing?"),
        ("POST", "/assert-produced", {"topic": "t", "key": {"$x": 1}}, 400, "there are $base64, $regex, $containing, "),
        ("POST", "/assert-produced", {"topic": "t", "key": {"$regex": "a", "b": 1}}, 400, "$regex stands beside other"),
        ("POST", "/assert-produced", {"topic": "t", "headers": {"$h": {"$rgx": 1}}}, 400, "did you mean $regex?"),
        ("POST", "/wait/group", {"group": "g", "members": True}, 400, "members is True"),
        ("POST", "/wait/group", {"group": "g", "state": "stabel"}, 400, "did you mean 'Stable'?"),
        ("POST", "/clock/advance", {"days": -1}, 400, "days is -1"),
        ("POST", "/clock/advance", {}, 400, 'the jump has no length; write e.g. {"seconds": 5}'),
        (
            "POST",
            "/faults",
            {"close": True, "client_id": {"$regx": "a"}},
            400,
            "$regx means nothing here; did you mean",
        ),
        ("POST", "/faults", {"error": "NONE_SUCH"}, 400, "there is no error 'NONE_SUCH'"),
        ("POST", "/faults", [1], 400, "a fault is an object"),
        ("DELETE", "/faults/999", None, 404, "there is no fault 999"),
        ("POST", "/snapshots/none/restore", None, 404, "there is no snapshot 'none' (there are: none); save it first"),
        ("PUT", "/disk", {"full": 1}, 400, "write true or false"),
    ],
)
def test_what_is_wrong_is_told(shared: Server, method: str, path: str, body: Any, status: int, text: str) -> None:
    found, said = shared.answer(method, path, body)
    assert found == status
    assert text in said["message"]


def test_a_large_body_and_a_web_page_are_refused(shared: Server) -> None:
    status, said = shared.answer("POST", "/topics", b"{", headers={"Content-Length": str(65 << 20)})
    assert (status, said["error"]) == (413, "RequestEntityTooLarge")
    assert shared.answer("GET", "/health", headers={"Origin": "http://example.org"})[0] == 403


# ---------------------------------------------------------------- the process


def ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit status."""
    return process.wait(STARTS_S)


def test_it_ends_by_sigterm_while_a_call_waits(start: Callable[..., Server]) -> None:
    server = start("--topic", "orders")
    connection = http.client.HTTPConnection(server.ready["control"].removeprefix("http://"))
    connection.request("POST", "/assert-produced", json.dumps({"topic": "orders", "within_s": 600}))
    server.call("GET", "/health")
    server.process.terminate()
    assert ended(server.process) == 0
    connection.close()


def test_it_ends_with_its_standard_input(start: Callable[..., Server]) -> None:
    server = start()
    assert server.process.stdin is not None
    server.process.stdin.close()
    server.process.stdin = None
    assert ended(server.process) == 0


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "logkernel", "test-server"], stdin=subprocess.DEVNULL)
child.wait()
"""


def test_it_ends_with_its_parent_though_its_input_says_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert json.loads(parent.stdout.readline())["pid"] != parent.pid
        parent.kill()
        assert parent.stdout.read() == b""  # the pipe ends when the server does, too


def test_one_that_is_to_stay_ends_by_a_signal_only(start: Callable[..., Server]) -> None:
    server = start("--stay")
    assert server.process.stdin is not None
    server.process.stdin.close()
    server.process.stdin = None
    assert server.call("GET", "/health")["status"] == "running"
    server.process.send_signal(signal.SIGINT)
    assert ended(server.process) == 0


def test_options_reach_the_broker(start: Callable[..., Server], tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("- error: NOT_LEADER_OR_FOLLOWER\n  api: Produce\n  times: 1\n")
    data = tmp_path / "data"
    first = start(
        "--faults", str(faults), "--data", str(data), "--as-version", "2.8", "--listen", "0.0.0.0:0",
        "--advertised", "localhost:0",
    )  # fmt: skip
    assert first.bootstrap.startswith("localhost:")
    produced(first, "orders", b"kept")
    assert first.call("GET", "/faults")[0]["struck"] == 1
    assert first.call("GET", "/requests?api=Produce")["requests"][0]["version"] <= 9
    first.call("PUT", "/snapshots/a")
    produced(first, "orders", b"later")
    first.call("POST", "/snapshots/a/restore")
    first.process.terminate()
    ended(first.process)
    again = start("--data", str(data))
    assert [row["value"] for row in again.call("GET", "/topics/orders/records")["records"]] == ["kept"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--topic", "a=b"], "NAME=PARTITIONS"),
        (["--control", "nowhere"], "HOST:PORT"),
        (["--plugin", "no_such_module"], "no_such_module: cannot be imported"),
    ],
)
def test_bad_options_are_told(arguments: list[str], text: str) -> None:
    outcome = CliRunner().invoke(app, ["test-server", *arguments])
    assert outcome.exit_code != 0
    assert text in outcome.output + str(outcome.exception)


def test_a_missing_werkzeug_is_told_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    outcome = CliRunner().invoke(app, ["test-server"])
    assert isinstance(outcome.exception, ConfigError)
    with pytest.raises(ConfigError, match=r"pip install 'logkernel\[test-server\]'"):
        Kafka(process=True)


def test_a_setting_that_is_none_ends_it_before_it_is_ready() -> None:
    with pytest.raises(AssertionError, match=r"^logkernel: --set: no\.such=1"):
        Server("--set", "no.such=1")
