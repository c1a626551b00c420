"""A schema registry for tests: the common HTTP API of Confluent's, in memory.

errors          what a request is refused with, with Confluent's codes
contract        what a format of schemas does: parse, print, compare (avro, json_schema, protobuf)
compatibility   the levels: which earlier versions a new schema is compared with, and in which direction
catalog         pure: what is registered
registry        pure: decides over each request
records         pure: changes as records of Confluent's topic;  topic: keeps them in a broker
app             a WSGI application around a registry;  server: the same, listening: `SchemaRegistry`

The formats are imported when a schema of theirs is registered: `docs/schema-registry.md`.
"""
