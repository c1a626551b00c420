"""`logkernel.testing.SchemaRegistry` under the unmodified serializers of confluent-kafka, with a broker between."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import testing_plugin
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from logkernel.cli.app import app
from logkernel.errors import ConfigError
from logkernel.testing import Kafka, RegistryError, SchemaRegistry

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})
NEWER_AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "state", "type": "string", "default": "new"}],
    }
)
JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
        "additionalProperties": False,
    }
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with Kafka() as kafka:
        yield kafka


@pytest.fixture(scope="module")
def shared() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as registry:
        yield registry


@pytest.fixture
def registry(shared: SchemaRegistry) -> SchemaRegistry:
    shared.clear()
    return shared


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def other_client(registry: SchemaRegistry) -> SchemaRegistryClient:
    """One without what the first has in its cache."""
    return SchemaRegistryClient({"url": registry.url})


def through(kafka: Kafka, topic: str, serializer: Any, value: Any, deserializer: Any) -> Any:
    """A value, written and read back."""
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, serializer(value, context))
    assert producer.flush(10) == 0
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        return deserializer(message.value(), context)
    finally:
        consumer.close()


def messages() -> dict[str, Any]:
    """Classes of demo.Address, and demo.Order, whose file imports that of the address."""
    kind = descriptor_pb2.FieldDescriptorProto
    pool = descriptor_pool.DescriptorPool()
    address = descriptor_pb2.FileDescriptorProto(name="address.proto", package="demo", syntax="proto3")
    address.message_type.add(name="Address").field.add(
        name="city", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL
    )
    order = descriptor_pb2.FileDescriptorProto(
        name="order.proto", package="demo", syntax="proto3", dependency=["address.proto"]
    )
    order.message_type.add(name="Other")
    message = order.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    message.field.add(name="to", number=2, type=kind.TYPE_MESSAGE, type_name=".demo.Address", label=kind.LABEL_OPTIONAL)
    for file in (address, order):
        pool.Add(file)
    names = ("demo.Address", "demo.Order")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def test_avro_goes_through_kafka_and_is_resolved_by_a_newer_reader(kafka, registry, client):
    reader = AvroDeserializer(other_client(registry), NEWER_AVRO)
    found = through(kafka, "avro", AvroSerializer(client, AVRO), {"id": 7}, reader)
    assert found == {"id": 7, "state": "new"}
    assert registry.subjects() == ["avro-value"]
    assert registry.version("avro-value").schema.kind == "AVRO"


def test_json_goes_through_kafka(kafka, registry, client):
    reader = JSONDeserializer(None, schema_registry_client=other_client(registry))
    assert through(kafka, "json", JSONSerializer(JSON, client), {"id": 7}, reader) == {"id": 7}
    assert registry.version("json-value").schema.kind == "JSON"


def test_protobuf_goes_through_kafka_with_what_it_imports(kafka, registry, client):
    made = messages()
    order = made["demo.Order"](id=7, to=made["demo.Address"](city="Ghent"))
    reader = ProtobufDeserializer(made["demo.Order"], schema_registry_client=other_client(registry))
    found = through(kafka, "protobuf", ProtobufSerializer(made["demo.Order"], client), order, reader)
    assert found == order
    assert registry.subjects() == ["address.proto", "protobuf-value"]
    registered = registry.version("protobuf-value").schema
    assert registered.references == (("address.proto", "address.proto", 1),)
    assert "  .demo.Address to = 2;\n" in registered.text, "others read it as text"


def test_serializers_use_what_was_registered_before(registry, client):
    registry.register("t-value", json.loads(AVRO))
    settings = {"auto.register.schemas": False}
    context = SerializationContext("t", MessageField.VALUE)
    assert AvroSerializer(client, AVRO, conf=settings)({"id": 7}, context) == b"\x00\x00\x00\x00\x01\x0e"
    latest = AvroSerializer(client, None, conf=settings | {"use.latest.version": True})
    assert latest({"id": 7}, context) == b"\x00\x00\x00\x00\x01\x0e"
    with pytest.raises(SchemaRegistryError) as caught:
        AvroSerializer(client, NEWER_AVRO, conf=settings)({"id": 7, "state": ""}, context)
    assert (caught.value.http_status_code, caught.value.error_code) == (404, 40403)


def test_a_serializer_with_an_incompatible_schema_is_refused(registry, client):
    registry.register("t-value", AVRO)
    fields = [{"name": "id", "type": "string"}]
    worse = json.dumps({"type": "record", "name": "Order", "fields": fields})
    with pytest.raises(SchemaRegistryError, match="TYPE_MISMATCH") as caught:
        AvroSerializer(client, worse)({"id": "7"}, SerializationContext("t", MessageField.VALUE))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    registry.set_compatibility("NONE", "t-value")
    AvroSerializer(client, worse)({"id": "7"}, SerializationContext("t", MessageField.VALUE))
    assert registry.versions("t-value") == [1, 2]


def test_the_calls_of_the_client_are_answered(registry, client):
    first, newer = Schema(AVRO, "AVRO"), Schema(NEWER_AVRO, "AVRO")
    assert client.register_schema("a/b", first) == client.register_schema("other", first, normalize_schemas=True) == 1
    assert client.test_compatibility("a/b", newer)
    assert client.test_compatibility_all_versions("a/b", newer, verbose=True)
    assert client.register_schema("a/b", newer) == 2
    assert client.get_schema(2).schema_str == json.dumps(json.loads(NEWER_AVRO), separators=(",", ":"))
    assert (client.get_latest_version("a/b").version, client.get_version("a/b", 1).schema_id) == (2, 1)
    assert client.lookup_schema("a/b", first).version == 1
    assert client.get_subjects(subject_prefix="a") == ["a/b"]
    assert client.get_versions("a/b") == [1, 2]
    assert client.get_subjects_by_schema_id(1) == ["a/b", "other"]
    assert [(one.subject, one.version) for one in client.get_schema_versions(1)] == [("a/b", 1), ("other", 1)]
    assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]
    assert client.get_contexts() == ["."]
    holder = json.dumps({"type": "record", "name": "Holder", "fields": [{"name": "o", "type": "Order"}]})
    holds = Schema(holder, "AVRO", references=[SchemaReference("Order", "other", 1)])
    assert client.register_schema("holder", holds) == 3
    assert client.get_referenced_by("other", 1) == [3]
    assert client.set_compatibility("a/b", "FULL") == {"compatibility": "FULL"}
    assert (client.get_compatibility("a/b"), client.get_compatibility()) == ("FULL", "BACKWARD")
    assert client.get_config("a/b").compatibility_level is not None
    assert client.delete_config("a/b").compatibility_level is not None
    assert client.get_global_mode() == "READWRITE"
    assert (client.update_mode("a/b", "READONLY"), client.get_mode("a/b")) == ("READONLY", "READONLY")
    assert client.delete_mode("a/b") == "READONLY"
    assert client.delete_version("a/b", 1) == 1
    assert client.delete_version("a/b", 1, permanent=True) == 1
    assert client.delete_subject("a/b") == [2]
    assert client.delete_subject("a/b", permanent=True) == [2]
    guid = registry.version("other").schema.guid
    assert json.loads(other_client(registry).get_schema_by_guid(guid).schema_str) == json.loads(AVRO)


# -------------------------------------------------------------------- kept in a topic


def test_a_registry_in_a_topic_is_there_again_after_a_restart() -> None:
    with Kafka() as kafka:
        with SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers) as registry:
            registry.register("base", {"type": "fixed", "name": "F", "size": 1})
            registry.register("s", '["null", "F"]', references=[("F", "base", 1)])
            registry.register("s", '["null", "F", "int"]', references=[("F", "base", 1)])
            registry.set_compatibility("FULL", "s")
            with SchemaRegistryClient({"url": registry.url}) as client:
                client.delete_version("s", 1)
        kafka.kill()
        kafka.start()
        with SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers) as registry:
            assert (registry.subjects(), registry.versions("s")) == (["base", "s"], [2])
            assert registry.version("s").schema.references == (("F", "base", 1),)
            with pytest.raises(RegistryError, match="compatibility: 'FULL'"):
                registry.register("s", '"int"')
            assert registry.register("t", '"int"') == 4
            registry.clear()
            assert registry.subjects() == []
        with SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers) as registry:
            assert registry.subjects() == []


def test_a_change_that_the_topic_does_not_take_is_none() -> None:
    with Kafka() as kafka, SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers) as registry:
        with kafka.faults.error("TOPIC_AUTHORIZATION_FAILED", api="Produce"), pytest.raises(RegistryError) as caught:
            registry.register("s", '"int"')
        assert (caught.value.status, caught.value.code) == (500, 50001)
        assert registry.subjects() == []
        assert registry.register("s", '"int"') == 1


def test_a_topic_from_which_schemas_would_vanish_is_refused(kafka: Kafka) -> None:
    kafka.create_topic("_schemas")
    try:
        with pytest.raises(ConfigError, match=r"cleanup\.policy=delete, by which schemas would vanish; set it"):
            SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers)
    finally:
        kafka.delete_topic("_schemas")


def test_a_topic_with_records_of_others_is_refused(kafka: Kafka) -> None:
    kafka.create_topic("_schemas", cleanup_policy="compact")
    try:
        kafka.produce("_schemas", "1", key="1")
        with pytest.raises(ConfigError, match="the record at offset 0 of _schemas is not a schema registry's"):
            SchemaRegistry(bootstrap_servers=kafka.bootstrap_servers)
    finally:
        kafka.delete_topic("_schemas")


# -------------------------------------------------------------------- the fixture, the command, what they need

SUITE = """
import pytest

def test_each_test_has_a_registry(schema_registry):
    assert schema_registry.subjects() == []
    schema_registry.register("s", '"int"')

def test_the_next_one_is_empty(schema_registry):
    assert schema_registry.subjects() == []

def test_a_failing_test_shows_what_was_asked(schema_registry):
    from urllib.request import urlopen
    urlopen(schema_registry.url + "/subjects?deleted=true").close()
    assert False
"""


def test_a_test_gets_a_registry_as_a_fixture(tmp_path):
    (tmp_path / "test_it.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *testing_plugin.words()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "what clients asked of the schema registry last" in done.stdout
    assert "200 GET /subjects?deleted=true" in done.stdout


def test_the_command_serves_until_it_is_stopped():
    options = ["--listen", "127.0.0.1:0", "--compatibility", "full"]
    command = [sys.executable, "-m", "logkernel", "schema-registry", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("logkernel schema-registry listening on http://127.0.0.1:")
            with SchemaRegistryClient({"url": line.split()[-1]}) as client:
                assert client.get_compatibility() == "FULL"
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_address_that_is_none_is_refused(listen):
    done = CliRunner().invoke(app, ["schema-registry", "--listen", listen])
    assert done.exit_code == 2
    assert f"--listen {listen!r} is not of the form HOST:PORT" in done.output


MISSING = """
import sys
for name in {names!r}:
    sys.modules[name] = None
from logkernel.errors import ConfigError
try:
    from importlib import import_module
    import_module("logkernel.testing.{module}")
except ConfigError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "names", "said"),
    [
        ("schema_registry.server", ["werkzeug", "werkzeug.exceptions"], "an HTTP server needs werkzeug ("),
        ("schema_registry.avro", ["avro"], "Avro schemas need Apache's avro ("),
        ("schema_registry.json_schema", ["jsonschema"], "JSON schemas need jsonschema ("),
        (
            "schema_registry.protobuf",
            ["proto_schema_parser"],
            "Protobuf schemas need protobuf and proto-",
        ),
    ],
)
def test_a_missing_library_is_named_with_the_way_to_get_it(module, names, said, run_python: Callable[[str], str]):
    text = run_python(MISSING.format(names=names, module=module))
    assert text.startswith(said)
    assert text.strip().endswith("; pip install 'logkernel[registry]'")


@pytest.fixture
def run_python(tmp_path: Path) -> Callable[[str], str]:
    """What a program prints, run in a process of its own."""

    def run(code: str) -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    return run
