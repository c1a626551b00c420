"""Codecs that break a promise. Each is gzip but for that."""

from __future__ import annotations

import gzip
import threading
import zlib
from contextlib import suppress
from typing import Any

from logkernel.errors import CorruptMessage, MessageTooLarge
from logkernel.testing.contracts.codec import built_in
from wrong_plugins import Wrong, made

GZIP = built_in("gzip")


class Right:
    """gzip as it should be."""

    name = "gzip"
    codec_id = 1

    def compress(self, data: Any) -> Any:
        return GZIP.compress(data)

    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return GZIP.decompress(data, limit_bytes)

    def decompress_legacy(self, data: Any, limit_bytes: int) -> Any:
        return GZIP.decompress_legacy(data, limit_bytes)


class Fifth(Right):
    name, codec_id = "brotli", 5


class Even(Right):
    def compress(self, data: Any) -> Any:
        return GZIP.compress(data[: len(data) & ~1])


class Viewer(Right):
    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return bytearray(GZIP.decompress(data, limit_bytes))


class BytesOnly(Right):
    def compress(self, data: Any) -> Any:
        return GZIP.compress(data + b"")


class Generous(Right):
    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return GZIP.decompress(data, limit_bytes + 1)


class Whole(Right):
    """It looks at the limit when it has all of it in memory."""

    def decompress(self, data: Any, limit_bytes: int) -> Any:
        plain = gzip.decompress(data)
        if len(plain) > limit_bytes:
            raise MessageTooLarge("too late")
        return plain


class Unlimited(Right):
    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return gzip.decompress(data)


class Trusting(Right):
    """It takes what there is, without the checksum at the end."""

    def decompress(self, data: Any, limit_bytes: int) -> Any:
        try:
            return zlib.decompressobj(31).decompress(data, limit_bytes)
        except zlib.error as error:
            raise CorruptMessage(str(error)) from error


class Naive(Right):
    """It lets the library's errors out."""

    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return gzip.decompress(data)

    def decompress_legacy(self, data: Any, limit_bytes: int) -> Any:
        return gzip.decompress(data)


class Modern(Right):
    def decompress_legacy(self, data: Any, limit_bytes: int) -> Any:
        raise CorruptMessage("magic 0 and 1 are not supported")


class Private(Right):
    """It reads its own format alone."""

    def compress(self, data: Any) -> Any:
        return b"acme" + GZIP.compress(data)

    def decompress(self, data: Any, limit_bytes: int) -> Any:
        return GZIP.decompress(data[4:], limit_bytes)


class OneAtATime(Right):
    """Its calls share a buffer, and the first two threads meet while they use it."""

    def __init__(self) -> None:
        self.pending: dict[str, bytes] = {}
        self.met = threading.Barrier(2, self.separate)

    def separate(self) -> None:
        self.two_have_met = True

    two_have_met = False

    def compress(self, data: Any) -> Any:
        self.pending["plain"] = bytes(data)
        if threading.current_thread() is not threading.main_thread() and not self.two_have_met:
            with suppress(threading.BrokenBarrierError):
                self.met.wait(20)
            self.met.abort()
        return GZIP.compress(self.pending["plain"])


WRONG = [
    Wrong(
        "test_it_is_one_of_the_four_codecs_of_kafka",
        "'brotli' and its codec_id 5; the batch format",
        made(lambda _: Fifth()),
    ),
    Wrong("test_large_data_come_back", r"compress\(\) raised TypeError", made(lambda _: BytesOnly())),
    Wrong("test_large_data_come_back", r"decompress\(\) returned bytearray; return bytes", made(lambda _: Viewer())),
    Wrong("test_any_data_come_back", "return what was compressed", made(lambda _: Even())),
    Wrong("test_the_limit_is_exact", "though the limit was 999; raise MessageTooLarge", made(lambda _: Generous())),
    Wrong("test_a_bomb_is_refused_before_it_takes_memory", "took [3-9][0-9] MB to refuse", made(lambda _: Whole())),
    Wrong("test_a_bomb_is_refused_before_it_takes_memory", "over a limit of 1000", made(lambda _: Unlimited())),
    Wrong("test_data_that_are_cut_off_are_refused", "raise CorruptMessage", made(lambda _: Trusting())),
    Wrong(
        "test_a_flipped_bit_is_refused_or_stays_within_the_limit",
        "of damaged data raised .*; raise only CorruptMessage or MessageTooLarge there",
        made(lambda _: Naive()),
    ),
    Wrong(
        "test_noise_is_refused_or_stays_within_the_limit", r"decompress\(\) of noise raised", made(lambda _: Naive())
    ),
    Wrong("test_batches_of_old_formats_are_read", r"decompress_legacy\(\) raised", made(lambda _: Modern())),
    Wrong(
        "test_others_read_it_and_it_reads_others", "another implementation of gzip cannot", made(lambda _: Private())
    ),
    Wrong("test_threads_may_share_it", "threads disturb one another", made(lambda _: OneAtATime())),
    Wrong(
        "test_levels_are_taken_or_refused",
        "was made with level 99; raise ConfigError",
        {**made(lambda _: Right()), "refused_levels": (99,)},
    ),
]
