"""The registry over HTTP, as Confluent's API reference has it, and what nobody should send."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from logkernel.testing import SchemaRegistry
from logkernel.testing.http_server import MAX_BODY_BYTES

INT = {"schema": '{"type": "int"}'}
JSON_SCHEMA = {"schemaType": "JSON", "schema": '{"type": "object"}'}


class Client:
    def __init__(self, registry: SchemaRegistry) -> None:
        self._address = registry.url.removeprefix("http://")

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            assert answer.getheader("Content-Type") == "application/vnd.schemaregistry.v1+json"
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, int]:
        """(status, error code)."""
        status, found = self.ask(method, path, body)
        assert found.keys() == {"error_code", "message"}, found
        return status, found["error_code"]


@pytest.fixture(scope="module")
def shared() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as registry:
        yield registry


@pytest.fixture
def registry(shared: SchemaRegistry) -> SchemaRegistry:
    shared.clear()
    return shared


@pytest.fixture
def client(registry: SchemaRegistry) -> Client:
    return Client(registry)


def test_a_schema_is_registered_and_read_back(client):
    status, found = client.ask("POST", "/subjects/s-value/versions", INT)
    assert (status, found["id"], found["version"]) == (200, 1, 1)
    guid = found["guid"]
    assert client.get("/schemas/ids/1") == {"schema": '"int"', "guid": guid}
    assert client.get("/schemas/ids/1?fetchMaxId=true&subject=s-value") == {
        "schema": '"int"', "guid": guid, "subject": "s-value", "version": 1, "maxId": 1,
    }  # fmt: skip
    assert client.get("/schemas/ids/1/schema") == "int"
    assert client.get("/schemas/ids/1/subjects") == ["s-value"]
    assert client.get("/schemas/ids/1/versions") == [{"subject": "s-value", "version": 1}]
    assert client.get(f"/schemas/guids/{guid}")["schema"] == '"int"'
    assert client.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]
    assert client.get("/subjects") == ["s-value"]
    assert client.get("/subjects/s-value/versions") == [1]
    whole = {"subject": "s-value", "version": 1, "id": 1, "guid": guid, "schema": '"int"'}
    for place in ("1", "latest", "-1"):
        assert client.get(f"/subjects/s-value/versions/{place}") == whole
    assert client.get("/subjects/s-value/versions/1/schema") == "int"
    assert client.ask("POST", "/subjects/s-value", INT) == (200, whole)
    assert client.get("/schemas?latestOnly=true") == [whole]


def test_what_is_not_the_default_is_told(client):
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]}
    more = {"metadata": {"properties": {"owner": "a/b c"}}, "ruleSet": rules, "version": 0, "id": -1}
    client.ask("POST", "/subjects/base/versions", JSON_SCHEMA)
    reference = {"name": "base.json", "subject": "base", "version": -1}
    client.ask("POST", "/subjects/s/versions", JSON_SCHEMA | more | {"references": [reference]})
    found = client.get("/subjects/s/versions/latest")
    assert (found["schemaType"], found["references"]) == ("JSON", [reference | {"version": 1}])
    assert (found["metadata"], found["ruleSet"]) == (more["metadata"], rules)
    assert client.get("/subjects/base/versions/1/referencedby") == [2]
    assert client.get("/subjects/s/metadata?key=owner&value=a%252Fb%2520c")["version"] == 1
    assert client.refused("GET", "/subjects/s/metadata?key=owner&value=x") == (404, 40403)


def test_a_name_may_have_any_signs(client):
    for name, quoted in (("a/b", "a%2Fb"), ("ä b", "%C3%A4%20b"), ("..", "%2E%2E"), ("a%2Fb", "a%252Fb")):
        client.ask("POST", f"/subjects/{quoted}/versions", INT)
        assert client.get(f"/subjects/{quoted}/versions/1")["subject"] == name
    assert client.refused("POST", "/subjects/%FF/versions", INT) == (422, 422)
    assert client.refused("POST", "/subjects/a%00b/versions", INT) == (422, 42208)
    assert client.refused("POST", "/subjects/:.other:s/versions", INT) == (422, 42208)


def test_lists_have_pages(client, registry):
    for name in "abcd":
        registry.register(f"s{name}", '"int"')
    registry.register("t", '"int"')
    assert client.get("/subjects?subjectPrefix=s&offset=1&limit=2") == ["sb", "sc"]
    assert client.get("/subjects?offset=4&limit=-1") == ["t"]
    assert client.get("/subjects?subjectPrefix=:*:t") == ["t"]
    assert client.refused("GET", "/subjects?offset=x") == (422, 422)


def test_deletes_are_soft_and_then_permanent(client):
    client.ask("POST", "/subjects/s/versions", INT)
    assert client.refused("DELETE", "/subjects/s/versions/1?permanent=true") == (404, 40407)
    assert client.refused("DELETE", "/subjects/s?permanent=true") == (404, 40405)
    assert client.ask("DELETE", "/subjects/s/versions/latest") == (200, 1)
    assert client.refused("DELETE", "/subjects/s/versions/1") == (404, 40406)
    assert client.refused("DELETE", "/subjects/s") == (404, 40404)
    assert client.refused("GET", "/subjects/s/versions") == (404, 40401)
    assert client.get("/subjects/s/versions?deleted=true") == [1]
    assert client.get("/subjects/s/versions/1?deleted=true")["deleted"] is True
    assert client.get("/subjects?deletedOnly=true") == ["s"]
    assert client.ask("DELETE", "/subjects/s?permanent=true") == (200, [1])
    assert client.refused("GET", "/schemas/ids/1") == (404, 40403)


def test_levels_are_set_and_deleted(client):
    assert client.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert client.refused("GET", "/config/s") == (404, 40408)
    assert client.get("/config/s?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert client.ask("PUT", "/config", {"compatibility": "full_transitive"}) == (
        200, {"compatibility": "FULL_TRANSITIVE"},
    )  # fmt: skip
    assert client.ask("PUT", "/config/s", {"compatibility": "NONE", "normalize": True}) == (
        200, {"compatibility": "NONE", "normalize": True},
    )  # fmt: skip
    assert client.ask("DELETE", "/config/s") == (200, {"compatibilityLevel": "NONE", "normalize": True})
    assert client.refused("DELETE", "/config/s") == (404, 40401)
    assert client.refused("PUT", "/config", {"compatibility": "SIDEWARD"}) == (422, 42203)
    assert client.refused("PUT", "/config", {"compatibility": 5}) == (422, 42203)


def test_modes_are_set_and_deleted(client):
    assert client.get("/mode") == {"mode": "READWRITE"}
    assert client.ask("PUT", "/mode/s", {"mode": "readonly"}) == (200, {"mode": "READONLY"})
    assert client.refused("POST", "/subjects/s/versions", INT) == (422, 42205)
    assert client.ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert client.refused("GET", "/mode/s") == (404, 40409)
    assert client.get("/mode/s?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert client.refused("PUT", "/mode", {"mode": "WRITE"}) == (422, 42204)
    assert client.refused("PUT", "/mode", {"mode": ["WRITE"]}) == (422, 42204)
    client.ask("POST", "/subjects/t/versions", INT)
    assert client.refused("PUT", "/mode/t", {"mode": "IMPORT"}) == (422, 42205)
    assert client.ask("PUT", "/mode/t?force=true", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    assert client.ask("POST", "/subjects/t/versions", {"schema": '"long"', "id": 40, "version": 9})[1]["id"] == 40


def test_compatibility_is_tested_without_registering(client):
    client.ask("POST", "/subjects/s/versions", INT)
    path = "/compatibility/subjects/s/versions"
    assert client.ask("POST", f"{path}/latest", {"schema": '"long"'}) == (200, {"is_compatible": True})
    status, found = client.ask("POST", f"{path}?verbose=true", {"schema": '"string"'})
    assert (status, found["is_compatible"]) == (200, False)
    assert "TYPE_MISMATCH" in found["messages"][0]
    assert client.ask("POST", f"{path}/1?verbose=true", {"schema": "{"})[1]["is_compatible"] is False
    assert client.refused("POST", f"{path}/1", {"schema": "{"}) == (422, 42201)
    assert client.refused("POST", f"{path}/2", INT) == (404, 40402)
    assert client.refused("POST", f"{path}/0", INT) == (422, 42202)
    assert client.refused("POST", "/subjects/s/versions", {"schema": '"string"'}) == (409, 409)
    assert client.get("/subjects/s/versions") == [1]


def test_there_are_three_types_and_one_context(client):
    assert client.get("/schemas/types") == ["AVRO", "JSON", "PROTOBUF"]
    assert client.get("/contexts") == ["."]
    assert client.get("/") == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nowhere"), ("POST", "/subjects"), ("PUT", "/subjects/s"), ("GET", "/schemas/ids"),
        ("GET", "/schemas/ids/x"), ("GET", "/schemas/ids/99999999999999999999"), ("GET", "/schemas/ids/%D9%A3"),
        ("DELETE", "/compatibility/subjects/s/versions/1"), ("POST", "/config"), ("PATCH", "/mode"),
        ("GET", "/associations/resources/-/orders"), ("POST", "/subjects/s/versions/1/tags"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_not_found(client, method, path):
    assert client.refused(method, path, {}) == (404, 404)


@pytest.mark.parametrize("version", ["0", "-2", "x", "1.0", "2147483648", "9" * 50, "+1", "%20"])
def test_versions_that_cannot_be_are_refused(client, version):
    assert client.refused("GET", f"/subjects/s/versions/{version}") == (422, 42202)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", (400, 400)),
        (b"{", (400, 400)),
        (b"\xff\xfe\x00", (400, 400)),
        (b"[" * 100_000, (400, 400)),
        (b"[]", (422, 422)),
        ({}, (422, 42201)),
        ({"schema": None}, (422, 42201)),
        ({"schema": ["int"]}, (422, 42201)),
        ({"schema": ""}, (422, 42201)),
        ({"schema": "\ud800"}, (422, 42201)),
        ({"schema": '"int"', "schemaType": 5}, (422, 422)),
        ({"schema": '"int"', "schemaType": "XML"}, (422, 42201)),
        ({"schema": '"int"', "references": {}}, (422, 422)),
        ({"schema": '"int"', "references": [{}]}, (422, 422)),
        ({"schema": '"int"', "references": [{"name": "a", "subject": "b", "version": True}]}, (422, 422)),
        ({"schema": '"int"', "references": [{"name": "a", "subject": "b", "version": 10**30}]}, (422, 422)),
        ({"schema": '"int"', "references": [{"name": "a", "subject": "b", "version": 1}]}, (422, 42201)),
        ({"schema": '"int"', "metadata": []}, (422, 422)),
        ({"schema": '"int"', "metadata": {"properties": []}}, (200, 0)),
        ({"schema": '"int"', "metadata": {"properties": [1]}}, (422, 422)),
        ({"schema": '"int"', "ruleSet": "x"}, (422, 422)),
        ({"schema": '"int"', "version": "1"}, (422, 422)),
        ({"schema": '"int"', "version": 10**30}, (422, 422)),
        ({"schema": '"int"', "id": 5}, (422, 42205)),
        ({"schema": '"int"', "colour": "red"}, (422, 422)),
        ({"schema": '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000}, (422, 42201)),
        ({"schema": '{"items":' * 5000 + "{}" + "}" * 5000, "schemaType": "JSON"}, (422, 42201)),
        ({"schema": '"' + "x" * (1 << 20) + '"'}, (422, 42209)),
        (b" " * (MAX_BODY_BYTES + 1), (413, 413)),
    ],
)
def test_bodies_that_no_client_would_send_are_refused(client, body, expected):
    status, found = client.ask("POST", "/subjects/s/versions", body)
    assert (status, found.get("error_code", 0)) == expected


def test_a_client_may_send_what_this_registry_does_not_know(client):
    body = INT | {"colour": "red"}
    status, _ = client.ask("POST", "/subjects/s/versions", body, Confluent_Accept_Unknown_Properties="true")
    assert status == 200


def test_requests_are_remembered(client, registry):
    before = len(registry.requests)
    client.ask("GET", "/subjects/x/versions?deleted=true", Authorization="Basic abc")
    (asked,) = registry.requests[before:]
    assert asked == ("GET", "/subjects/x/versions?deleted=true", 404, "Basic abc")
    client.ask("GET", "/" + "x" * 50_000, Authorization="y" * 50_000)
    assert [len(text) for text in registry.requests[-1][1::2]] == [2_000, 2_000]


def test_a_format_of_ones_own_is_a_type(client):
    class Upper:
        name = "UPPER"

        def parse(self, text, imports):
            raise RuntimeError("a defect")

    with SchemaRegistry(formats={"UPPER": Upper()}, compatibility="none") as registry:
        other = Client(registry)
        assert other.get("/schemas/types") == ["AVRO", "JSON", "PROTOBUF", "UPPER"]
        assert other.get("/config") == {"compatibilityLevel": "NONE"}
        assert other.refused("POST", "/subjects/s/versions", {"schema": "a", "schemaType": "UPPER"}) == (500, 500)
        assert other.ask("POST", "/subjects/s/versions", INT)[0] == 200
