# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""`pure_folding.fold_columns`, compiled: same arguments, same answers, same errors. What it does is told there.

The columns' lengths are held against the number of rows before one of them is read. A key is compared where it lies;
whatever is not plainly a further topic of the group that was found last is asked of `offset_key_cache.offsets_of_key`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from logkernel.vocabulary import Record as _Record

from . import records as _records
from .offset_key_cache import KEY_HEAD as _KEY_HEAD
from .offset_key_cache import offsets_of_key as _offsets_of_key

cdef object Record = _Record
cdef object CommittedOffset = _records.CommittedOffset
made_of = CommittedOffset
cdef object offsets_of_key = _offsets_of_key
cdef object NO_TIME = _records.NO_TIME

cdef enum:
    KEY_HEAD_BYTES = 4
    TEXT_SIZE_BYTES = 2
    PARTITION_BYTES = 4
    OFFSET_BYTES = 8
    # Where a usual offset has its leader epoch, and what is the same for all of a commit's offsets in one topic:
    # from its metadata's length on the time, the tag and the topic's id.
    OFFSET_AT = 2
    EPOCH_AT = 10
    REST_AT = 14
    TIME_AT = 15
    TAG_AT = 23
    ID_AT = 26
    USUAL_BYTES = 42
    REST_BYTES = USUAL_BYTES - REST_AT
    TAG_BYTES = ID_AT - TAG_AT
    ID_BYTES = USUAL_BYTES - ID_AT
    FLEXIBLE = 4
    NO_METADATA = 1

cdef const char *TAG = b"\x01\x00\x10"
cdef tuple FIELDS = ("offset", "leader_epoch", "metadata", "commit_ms", "expire_ms", "topic_id", "record_offset")

if (
    (_records.USUAL_OFFSET.format, _records.FLEXIBLE, _records.NO_METADATA, _records.TOPIC_ID_TAG, _KEY_HEAD.format)
    != (">hqiBq3s16s", FLEXIBLE, NO_METADATA, TAG[:TAG_BYTES], ">hh")
    or tuple([known.name for known in CommittedOffset.__fields__]) != FIELDS
):
    raise ImportError("the compiled fold of offsets was built from another version of the plain one")


def fold_columns(coordinator, columns, replay):
    cdef bytes keys = whole(columns.keys), values = whole(columns.values), offsets = whole(columns.offsets)
    cdef Py_ssize_t rows, stride, row
    if not lengths_fit(columns.rows, keys, values, offsets):
        return False
    rows = PyBytes_GET_SIZE(values) // USUAL_BYTES
    stride = PyBytes_GET_SIZE(keys) // rows
    if not is_even(whole(columns.value_ends), rows, USUAL_BYTES):
        return False
    if not is_even(whole(columns.key_ends), rows, stride):
        return False
    cdef const char *key = PyBytes_AS_STRING(keys)
    cdef const char *value = PyBytes_AS_STRING(values)
    cdef const char *record_offset = PyBytes_AS_STRING(offsets)
    cdef const char *known = NULL       # the key whose offsets are `kept`
    cdef const char *behind = NULL      # the rest that `at_ms` and `topic_id` are of
    cdef Py_ssize_t size = stride - PARTITION_BYTES
    cdef Finder finder = Finder.__new__(Finder)
    cdef dict kept = None, ids = coordinator.offset_keys.ids
    cdef object at_ms = None, topic_id = None
    finder.coordinator, finder.cache, finder.texts = coordinator, coordinator.offset_keys, coordinator.offset_keys.texts
    for row in range(rows):
        if known == NULL or memcmp(key, known, size) != 0:
            known, kept = key, finder.find(key, size)
        if behind == NULL or memcmp(value + REST_AT, behind, REST_BYTES) != 0:
            behind = NULL
            if <uint8_t> value[REST_AT] == NO_METADATA and memcmp(value + TAG_AT, TAG, TAG_BYTES) == 0:
                behind = value + REST_AT
                at_ms = big_64(value + TIME_AT)
                topic_id = PyBytes_FromStringAndSize(value + ID_AT, ID_BYTES)
                topic_id = ids.setdefault(topic_id, topic_id)
        if kept is None or big_16(value) != FLEXIBLE or behind == NULL:
            replay(Record(key[:stride], value[:USUAL_BYTES], offset=native_64(record_offset)))
            known = NULL    # its group may be gone
            finder.topics = None
        else:
            kept[big_32(key + size)] = CommittedOffset(
                big_64(value + OFFSET_AT),
                big_32(value + EPOCH_AT),
                "",
                at_ms,
                NO_TIME,
                topic_id,
                native_64(record_offset),
            )
        key += stride
        value += USUAL_BYTES
        record_offset += OFFSET_BYTES
    return True


cdef class Finder:
    # Finds a key's offsets, and knows the topics of the group that was found last, for as long as nothing else is folded.
    cdef object coordinator, cache
    cdef dict texts, topics
    cdef bytes head         # the start of that group's keys

    cdef dict find(self, const char *key, Py_ssize_t size):
        cdef Py_ssize_t behind_head
        cdef dict kept
        if self.topics is None and self.cache.group is not None:
            self.head, self.topics = self.cache.head, self.cache.group.offsets
        if self.topics is not None:
            behind_head = PyBytes_GET_SIZE(self.head) + TEXT_SIZE_BYTES
            if (
                size >= behind_head
                and memcmp(key, PyBytes_AS_STRING(self.head), behind_head - TEXT_SIZE_BYTES) == 0
                and big_16(key + behind_head - TEXT_SIZE_BYTES) == size - behind_head
            ):
                name = self.texts.get(key[behind_head:size])
                if name is not None:
                    kept = self.topics.get(name)
                    if kept is None:
                        kept = self.topics[name] = {}
                    return kept
        self.topics = None
        return offsets_of_key(self.coordinator, key[:size])


cdef bytes whole(column):
    # None would pass for bytes.
    if type(column) is not bytes:
        raise TypeError(f"a column is bytes, not {type(column).__name__}")
    return column


cdef bint lengths_fit(rows, bytes keys, bytes values, bytes offsets) except -1:
    # Whether there are that many values, offsets, and keys of one length that is more than that of an empty key.
    cdef Py_ssize_t count = PyBytes_GET_SIZE(offsets) // OFFSET_BYTES
    cdef Py_ssize_t key_bytes = PyBytes_GET_SIZE(keys)
    return (
        rows == count
        and count > 0
        and PyBytes_GET_SIZE(offsets) == count * OFFSET_BYTES
        and PyBytes_GET_SIZE(values) % USUAL_BYTES == 0
        and PyBytes_GET_SIZE(values) // USUAL_BYTES == count
        and key_bytes % count == 0
        and key_bytes // count > KEY_HEAD_BYTES
    )


cdef bint is_even(bytes ends, Py_ssize_t rows, Py_ssize_t stride) except -1:
    # Whether these are the end offsets of `rows` fields of `stride` bytes each.
    cdef const char *at = PyBytes_AS_STRING(ends)
    cdef Py_ssize_t row
    cdef int32_t end
    if PyBytes_GET_SIZE(ends) % sizeof(int32_t) != 0 or PyBytes_GET_SIZE(ends) // sizeof(int32_t) - 1 != rows:
        return False
    for row in range(rows + 1):
        memcpy(&end, at + row * sizeof(int32_t), sizeof(int32_t))
        if end != row * stride:
            return False
    return True


cdef inline int64_t native_64(const char *at) noexcept:
    cdef int64_t found
    memcpy(&found, at, sizeof(found))
    return found


cdef inline int16_t big_16(const char *at) noexcept:
    cdef const uint8_t *raw = <const uint8_t *> at
    return <int16_t> (<uint16_t> raw[0] << 8 | raw[1])


cdef inline int32_t big_32(const char *at) noexcept:
    cdef const uint8_t *raw = <const uint8_t *> at
    return <int32_t> (<uint32_t> raw[0] << 24 | <uint32_t> raw[1] << 16 | <uint32_t> raw[2] << 8 | raw[3])


cdef inline int64_t big_64(const char *at) noexcept:
    return <int64_t> (<uint64_t> <uint32_t> big_32(at) << 32 | <uint32_t> big_32(at + 4))
