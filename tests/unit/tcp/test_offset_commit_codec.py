"""OffsetCommit is read and written by hand: as the generic codec does it, at every version and every length."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.api import Api
from logkernel.plugins.transport.tcp.apis.offset_commit import _decode_usual
from logkernel.plugins.transport.tcp.wire import DECODE_ERRORS
from logkernel.requests import groups as g

KEY = 8
VERSIONS = range(2, 11)
LENGTHS = (0, 1, 126, 127, 128, 300)


def generic(version: int) -> Api:
    """The codec that kio's schema alone gives."""
    return Api(registry.BY_KEY[KEY])


def text(chance: random.Random) -> str:
    return chance.choice("aé😀") * chance.choice(LENGTHS)


def some_request(chance: random.Random) -> g.OffsetCommitRequest:
    topics = [
        g.OffsetCommitRequestTopic(
            text(chance),
            [
                g.OffsetCommitRequestPartition(
                    chance.randrange(2**31),
                    chance.randrange(-1, 2**63),
                    chance.choice((None, text(chance))),
                    chance.randrange(-1, 9),
                )
                for _ in range(chance.choice((0, 1, 3, 200)))
            ],
            UUID(int=chance.randrange(1, 2**128)),
        )
        for _ in range(chance.randrange(3))
    ]
    instance = chance.choice((None, text(chance)))
    return g.OffsetCommitRequest(text(chance), chance.randrange(-1, 9), text(chance), 77, topics, instance)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_read_as_the_generic_codec_reads_them(version: int) -> None:
    chance = random.Random(version)
    by_hand = registry.load(KEY).request_decoder(version)
    for _ in range(30):
        data = generic(version).request_encoder(version)(some_request(chance))
        assert by_hand(memoryview(data)) == generic(version).request_decoder(version)(memoryview(data))


@pytest.mark.parametrize("version", VERSIONS)
def test_responses_are_written_as_the_generic_codec_writes_them(version: int) -> None:
    chance = random.Random(version)
    for _ in range(60):
        topics = [
            g.OffsetCommitResponseTopic(
                text(chance),
                [g.OffsetCommitResponsePartition(chance.randrange(9), chance.randrange(-1, 9)) for _ in range(rows)],
                UUID(int=chance.randrange(1, 2**128)),
            )
            for rows in chance.choices((0, 1, 3), k=chance.randrange(3))
        ]
        response = g.OffsetCommitResponse(topics, chance.choice((0, 77)))
        written = [bytes(b"".join(api.response_encoder(version)(response))) for api in both(version)]  # type: ignore[arg-type]
        assert written[0] == written[1]


def usual_request(chance: random.Random) -> g.OffsetCommitRequest:
    def word() -> str:
        return "".join(chance.choices("abcé", k=chance.choice((0, 1, 9, 50))))

    def row() -> g.OffsetCommitRequestPartition:
        metadata = chance.choice((None, "", word()))
        return g.OffsetCommitRequestPartition(chance.randrange(99), chance.randrange(2**40), metadata, 7)

    topics = [
        g.OffsetCommitRequestTopic(
            word(),
            [row() for _ in range(chance.choice((0, 1, 1, 3)))],
            UUID(int=chance.choice((0, chance.randrange(1, 2**128)))),
        )
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    return g.OffsetCommitRequest(word(), chance.randrange(-1, 9), word(), -1, topics, chance.choice((None, word())))


@pytest.mark.parametrize("version", range(8, 11))
def test_the_short_way_reads_what_the_generic_codec_reads(version: int) -> None:
    """Usual requests, each whole, with one byte changed, cut off, and with bytes behind it."""
    chance = random.Random(version)
    taken = 0
    for _ in range(200):
        whole = bytearray(generic(version).request_encoder(version)(usual_request(chance)))
        assert _decode_usual(version, bytes(whole)) is not None
        changed = whole.copy()
        changed[chance.randrange(len(changed))] = chance.choice((0, 1, 2, 0x7F, 0x80, chance.randrange(256)))
        for data in (whole, changed):
            found = _decode_usual(version, bytes(data))
            if found is not None:
                taken += 1
                assert found == generic(version).request_decoder(version)(memoryview(data))
        assert _decode_usual(version, bytes(whole[: chance.randrange(len(whole))])) is None
        assert _decode_usual(version, bytes(whole + b"\0")) is None
    assert taken > 250


@pytest.mark.parametrize("version", range(8, 11))
def test_a_length_of_two_bytes_is_left_to_the_long_way(version: int) -> None:
    rest = generic(version).request_encoder(version)(g.OffsetCommitRequest(member_id="m"))[1:]
    found = _decode_usual(version, b"\x7f" + b"a" * 126 + rest)
    assert found is not None
    assert (found.group_id, found.member_id) == ("a" * 126, "m")
    assert _decode_usual(version, b"\x80" + b"a" * 127 + rest) is None


def both(version: int) -> tuple[Any, Any]:
    return registry.load(KEY), generic(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_cut_off_or_null_is_refused(version: int) -> None:
    topics = [g.OffsetCommitRequestTopic("t" * 130, [g.OffsetCommitRequestPartition(1, 2, "m")], UUID(int=1))]
    data = generic(version).request_encoder(version)(g.OffsetCommitRequest("g", 1, "m", -1, topics))
    decode = registry.load(KEY).request_decoder(version)
    for end in range(len(data)):
        with pytest.raises(DECODE_ERRORS):
            decode(memoryview(data)[:end])
    null = b"\0" if version >= 8 else b"\xff\xff"
    with pytest.raises(DECODE_ERRORS):
        decode(memoryview(null + data[1:]))
